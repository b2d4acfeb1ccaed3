package process

import (
	"io"
	"os"
	"sync"
	"time"
)

// drain is how long pipes are still read after the child ended and its group was killed: only a process that left the
// group can hold them by then.
const drain = 500 * time.Millisecond

// Output is what was kept of one stream, as it came: it need not be UTF-8.
type Output struct {
	Text    string // with a mark where something is missing
	Total   int64  // bytes that were written
	Missing int64  // bytes that are not in Text
}

// stream reads one pipe all the time, so that the child never waits for us.
type stream struct {
	pipe *os.File
	most int64         // 0: no bound
	full chan struct{} // closed when more than most was written
	done chan struct{}

	mu   sync.Mutex
	kept clipped
}

func collect(pipe *os.File, keep int, most int64) *stream {
	s := &stream{pipe: pipe, most: most, kept: clipped{keep: keep}, full: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		_, _ = io.Copy(s, pipe) // ends at the end of the pipe or at the deadline
	}()
	return s
}

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.kept.total
	n, err := s.kept.Write(p)
	if s.most > 0 && before <= s.most && s.kept.total > s.most {
		close(s.full)
	}
	return n, err
}

func (s *stream) output() Output {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept.output()
}

// finish waits for the end of the stream, at most until then.
func (s *stream) finish(until time.Time) {
	_ = s.pipe.SetReadDeadline(until)
	<-s.done
	s.pipe.Close()
}

// feeder writes the child's input. That the child does not take it all is no error.
type feeder struct {
	pipe *os.File
	done chan struct{}
}

func feed(pipe *os.File, input []byte) *feeder {
	f := &feeder{pipe: pipe, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		_, _ = pipe.Write(input)
		pipe.Close()
	}()
	return f
}

// stop ends the writing, also where a process outside the group holds the other end.
func (f *feeder) stop() {
	_ = f.pipe.SetWriteDeadline(time.Now())
	<-f.done
}
