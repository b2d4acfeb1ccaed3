package builtin

import (
	"context"
	"strings"
	"sync"
)

// Locks makes writes to one file wait for each other, so that two edits never lose one. Agents of a run share one
// value, since their folders may overlap. The zero value is ready. It is safe for concurrent use and must not be copied.
type Locks struct {
	mu    sync.Mutex
	turns map[string]*turn
}

// turn is held by whoever put the token in.
type turn struct {
	token chan struct{}
	users int // holders and waiters; the last one removes the turn
}

// lock waits for the file with this absolute path, links resolved. The key is folded because the disk may fold names:
// waiting for another file does no harm.
func (l *Locks) lock(ctx context.Context, file string) (unlock func(), err error) {
	key := strings.ToLower(file)
	l.mu.Lock()
	if l.turns == nil {
		l.turns = map[string]*turn{}
	}
	t := l.turns[key]
	if t == nil {
		t = &turn{token: make(chan struct{}, 1)}
		l.turns[key] = t
	}
	t.users++
	l.mu.Unlock()

	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(l.turns, key)
		}
	}
	select {
	case t.token <- struct{}{}:
		return func() { <-t.token; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
