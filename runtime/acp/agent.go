package acp

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/open-multi-agent/oma/spec"
)

// maxStarts is how often the program is started in one run: once, and once more after it died.
const maxStarts = 2

// Agent is one external agent of one run. Its methods are safe for concurrent use; prompts wait for each other, since a
// session knows one at a time.
type Agent struct {
	o      Options
	start  func(*Options) (*child, error)
	turn   chan struct{} // holds one token: whoever took it owns what is below
	life   context.Context
	end    context.CancelFunc
	starts int
	live   *session // nil: the program does not run
}

// New describes an agent. Nothing is started before its first prompt, and options that cannot work are reported there.
// Close it in the end.
func New(o Options) *Agent {
	a := &Agent{o: o.withDefaults(), start: start, turn: make(chan struct{}, 1)}
	a.turn <- struct{}{}
	a.life, a.end = context.WithCancel(context.Background())
	return a
}

// Prompt sends one prompt and gives what the agent made of it. The reply is never nil: where there is an error it holds
// what came before. The error is nil only if the turn was completed, and is an *Error otherwise.
//
// When ctx ends, the agent is asked to stop and killed if it does not. A program that died is started again by the next
// prompt, once.
func (a *Agent) Prompt(ctx context.Context, text string) (*Reply, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(a.life, func() { cancel(errClosed) })()
	reply, err := a.queue(ctx, text)
	if err == nil {
		return reply, nil
	}
	reply.Stop = err.Stop
	return reply, err
}

// queue waits for the prompts before this one. The time limit counts from its own turn.
func (a *Agent) queue(ctx context.Context, text string) (*Reply, *Error) {
	select {
	case <-a.turn:
		defer func() { a.turn <- struct{}{} }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return &Reply{}, a.o.interrupted(ctx, "before the prompt was sent")
	}
	if a.o.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, a.o.Timeout, errTimeout)
		defer stop()
	}
	return a.prompt(ctx, text)
}

func (a *Agent) prompt(ctx context.Context, text string) (*Reply, *Error) {
	if strings.TrimSpace(text) == "" {
		return &Reply{}, a.o.fail(spec.StopError, CodeOptions, "the prompt is empty")
	}
	restarted, err := a.open(ctx)
	if err != nil {
		return &Reply{}, err
	}
	reply, err := a.live.prompt(ctx, text)
	reply.Restarted = restarted
	if err != nil && err.Code == CodeDied {
		err.Retryable = a.starts < maxStarts
	}
	return reply, err
}

// open sees to it that the program runs and has a session.
func (a *Agent) open(ctx context.Context) (restarted bool, failure *Error) {
	if a.live != nil && a.live.open() {
		return false, nil
	}
	a.shut()
	if err := a.o.check(); err != nil {
		return false, a.o.fail(spec.StopError, CodeOptions, "%v", err)
	}
	if a.starts == maxStarts {
		return false, a.o.fail(spec.StopError, CodeGone, "the program ended twice in this run and is not started again")
	}
	a.starts++
	a.live, failure = connect(ctx, &a.o, a.start)
	if failure != nil {
		failure.Retryable = a.starts < maxStarts && (failure.Code == CodeDied || failure.Code == CodeStart)
		return false, failure
	}
	return a.starts > 1, nil
}

func (a *Agent) shut() {
	if a.live != nil {
		a.live.close()
		a.live = nil
	}
}

// Close ends what runs: a prompt as by cancelling it, then the program, gently first, with everything it started. It
// returns when nothing is left, and may be called more than once. Prompts fail afterwards.
func (a *Agent) Close() error {
	a.end()
	<-a.turn
	defer func() { a.turn <- struct{}{} }()
	a.shut()
	return nil
}

// interrupted says why the context ended.
func (o *Options) interrupted(ctx context.Context, when string) *Error {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errClosed):
		return o.fail(spec.StopCancelled, CodeGone, "%v %s", errClosed, when)
	case errors.Is(cause, errTimeout):
		return o.fail(spec.StopTimeout, CodeTimeout, "%v (%v) passed %s", errTimeout, o.Timeout, when)
	case errors.Is(cause, errStartTimeout):
		return o.fail(spec.StopTimeout, CodeTimeout, "%v (%v) passed %s", errStartTimeout, o.StartTimeout, when)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return o.fail(spec.StopTimeout, CodeTimeout, "time limit passed %s", when)
	}
	return o.fail(spec.StopCancelled, CodeCancelled, "cancelled %s", when)
}

// The causes of a context that ended.
var (
	errTimeout      = errors.New("time limit of the prompt")
	errStartTimeout = errors.New("time limit of starting")
	errClosed       = errors.New("the agent was closed")
)

// stopWait is how long a program gets to end after its input is closed, and again after SIGTERM. Some programs never
// end by the first.
func (o *Options) stopWait() time.Duration { return o.Grace / 2 }
