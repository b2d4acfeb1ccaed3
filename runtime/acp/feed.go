package acp

import "sync"

// maxQueued is how many bytes of updates may wait for a slow reader before the agent has to wait too.
const maxQueued = 64 << 20

// updateCost is what an update takes beside its text, roughly, so that many small ones are bounded too.
const updateCost = 256

// feed hands updates on, in order and one at a time, without holding up who tells of them until much is waiting.
type feed struct {
	give func(Update)
	max  int // bytes that may wait
	done chan struct{}

	mu     sync.Mutex
	change sync.Cond // of mu
	queue  []Update
	bytes  int
	over   bool // nothing more comes
	lost   bool // what waits is thrown away
}

// newFeed starts a feed. finish or drop ends it.
func newFeed(give func(Update), max int) *feed {
	f := &feed{give: give, max: max, done: make(chan struct{})}
	f.change.L = &f.mu
	go f.run()
	return f
}

func cost(u *Update) int { return updateCost + len(u.Text) + len(u.Raw) }

func (f *feed) put(u Update) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.bytes > f.max && !f.lost {
		f.change.Wait()
	}
	if f.over || f.lost {
		return
	}
	f.queue = append(f.queue, u)
	f.bytes += cost(&u)
	f.change.Broadcast()
}

func (f *feed) run() {
	defer close(f.done)
	for {
		f.mu.Lock()
		for len(f.queue) == 0 && !f.over && !f.lost {
			f.change.Wait()
		}
		if f.lost || len(f.queue) == 0 {
			f.mu.Unlock()
			return
		}
		u := f.queue[0]
		f.queue[0] = Update{}
		f.queue = f.queue[1:]
		f.bytes -= cost(&u)
		f.change.Broadcast()
		f.mu.Unlock()
		f.give(u)
	}
}

// finish lets what waits be handed on; done is closed then.
func (f *feed) finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	f.change.Broadcast()
}

// drop throws away what waits.
func (f *feed) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = true
	f.change.Broadcast()
}
