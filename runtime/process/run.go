package process

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"
)

// Limits bound one run of a command. The zero value is a run without input, time limit or grace.
type Limits struct {
	// Input is written to standard input, which is then closed. nil: there is none to wait for.
	Input []byte
	// Timeout ends the command. 0: the context alone does.
	Timeout time.Duration
	// Grace is the time between the request to end (SIGTERM) and the end (SIGKILL), both to the whole group. 0: no request
	// is made. A command that ended by itself gets none: what it left in the background is killed.
	Grace time.Duration
	// Keep is how many bytes of the start and of the end of each stream are kept. 0: 512 KiB.
	Keep int
	// MaxStdout keeps that many bytes of stdout whole and ends a command that writes more. 0: stdout is clipped as Keep
	// says, and the command goes on.
	MaxStdout int64
}

const defaultKeep = 512 << 10

// Outcome is how a run of a command went.
type Outcome struct {
	Stdout, Stderr Output
	Exit           Exit
	Reason         Reason // anything but Exited: the command was ended, and Exit says no more than that
}

// ErrClosed says that a Runner starts nothing any more.
var ErrClosed = errors.New("the run has ended")

// Runner runs commands until it is closed. It is safe for concurrent use; the zero value is ready.
type Runner struct {
	mu      sync.Mutex
	closed  bool
	over    chan struct{} // closed with the runner; nil: nothing was run yet
	running sync.WaitGroup
}

// Run is as the function [Run]. Closing the Runner ends the command.
func (r *Runner) Run(ctx context.Context, c Command, l Limits) (Outcome, error) {
	over, err := r.enter()
	if err != nil {
		return Outcome{}, err
	}
	defer r.running.Done()
	return run(ctx, c, l, over)
}

func (r *Runner) enter() (<-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, ErrClosed
	}
	if r.over == nil {
		r.over = make(chan struct{})
	}
	r.running.Add(1)
	return r.over, nil
}

// Close ends what still runs and waits for it. It may be called more than once.
func (r *Runner) Close() error {
	r.mu.Lock()
	if !r.closed && r.over != nil {
		close(r.over)
	}
	r.closed = true
	r.mu.Unlock()
	r.running.Wait()
	return nil
}

// Run runs a command to its end, its time limit or the end of ctx, whichever is first. An error means that it did not
// start; a *[TooLongError] is one.
func Run(ctx context.Context, c Command, l Limits) (Outcome, error) { return run(ctx, c, l, nil) }

func run(ctx context.Context, c Command, l Limits, over <-chan struct{}) (Outcome, error) {
	if ctx.Err() != nil {
		return Outcome{Reason: ended(ctx)}, nil
	}
	p, err := open(&c, l.Input != nil)
	if err != nil {
		return Outcome{}, err
	}
	keep := cmp.Or(l.Keep, defaultKeep)
	stdout := collect(p.stdout, max(keep, int(l.MaxStdout+1)/2), l.MaxStdout)
	stderr := collect(p.stderr, keep, 0)
	if p.stdin != nil {
		defer feed(p.stdin, l.Input).stop()
	}
	o := Outcome{Reason: wait(ctx, p.child, l.Timeout, over, stdout.full)}
	if o.Reason != Exited {
		p.child.end(l.Grace)
	}
	o.Exit = p.child.exit
	until := time.Now().Add(drain)
	stdout.finish(until)
	stderr.finish(until)
	o.Stdout, o.Stderr = stdout.output(), stderr.output()
	if l.MaxStdout > 0 && o.Stdout.Total > l.MaxStdout && o.Reason == Exited {
		o.Reason = Flooded // it was faster than its end
	}
	return o, nil
}

func wait(ctx context.Context, c *child, timeout time.Duration, over, full <-chan struct{}) Reason {
	var limit <-chan time.Time
	if timeout > 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		limit = t.C
	}
	select {
	case <-c.done:
		return Exited
	case <-limit:
		return TimedOut
	case <-ctx.Done():
		return ended(ctx)
	case <-over:
		return Closed
	case <-full:
		return Flooded
	}
}

func ended(ctx context.Context) Reason {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return Deadline
	}
	return Cancelled
}
