package runtime

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/redact"
)

// engine runs the core on coroutines: one thread of the core at a time, effects on goroutines, results recorded and
// handed out in the order in which they are taken.
type engine struct {
	ctx     context.Context // ends effects in flight
	outside context.Context // as it was given
	drain   <-chan struct{} // when closed, nothing new starts
	rec     *recorder
	door    func(context.Context, *core.Effect) core.Result
	watch   func(*core.Effect, *core.Result)
	hide    func(string) string // puts references in place of resolved secrets; nil: there are none
	// withhold redacts what the log holds; hide is then its Text. nil: it holds exactly what the core was given.
	withhold *redact.Redactor

	// past is told again before anything new is asked. nil: the run starts now.
	past      *tape
	request   func(*core.Effect) (spec.ApprovalRequest, error) // is what an approval asks people
	check     func(*core.Effect, *core.Result) error           // says why what is told again cannot have been so; nil: nobody does
	told      func(*core.Effect, *core.Result)                 // sees what is told again; nil: nobody does
	again     func(*core.Effect) (core.Result, bool)           // answers a call that may have run; false: it runs
	lasting   func(*core.Effect) bool                          // says that what was asked must survive the machine before it is done
	starting  []pending                                        // asked for and on record, to be started together
	pending   []pending                                        // asked for in the past, and not answered as far as it was told
	broken    error                                            // why the past does not fit
	halted    bool                                             // the log says that the run was stopped
	lenient   bool                                             // digests of what held secrets may differ: nothing new starts
	hid       bool                                             // a model wrote a secret, and the log has a reference in its place
	suspended bool                                             // it was stopped because only people's decisions were left to wait for

	notes     chan note // what effects at work put on record
	cancel    func()
	runnable  []*thread
	waiting   []*thread
	done      chan completion
	inflight  int
	timers    int                  // of those in flight: they bound something, and nothing waits for them
	held      int                  // of those in flight: approvals that nobody has decided
	consulted chan struct{}        // closed once people have been asked what was asked for last; nil: nothing was
	threads   map[*thread]struct{} // for unwinding only
}

// thread is a coroutine of the core.
type thread struct {
	next  func() (step, bool)
	stop  func()
	cond  func() bool // while waiting
	reply core.Result
	ended bool
}

// step is what a thread wants before it can go on: an effect, or a condition.
type step struct {
	effect *core.Effect
	ctx    context.Context
	cond   func() bool
}

type completion struct {
	held int // 1: an approval was asked for and waits, and is still in flight; -1: it was one of those
	t    *thread
	e    *core.Effect
	res  core.Result
	lost int // as of the pending effect
}

// flow is the core's Flow on this engine. It belongs to one thread.
type flow struct {
	e     *engine
	ctx   context.Context
	t     *thread
	yield func(step) bool
}

// run drives body to its end; nothing it started is left. When the log fails, effects in flight are ended and none
// starts any more, so that body comes to an end with what it knows.
func (e *engine) run(body func(core.Flow)) error {
	e.outside = e.ctx
	ctx, cancel := context.WithCancel(e.ctx)
	e.ctx, e.cancel = ctx, cancel
	e.done = make(chan completion)
	e.threads = map[*thread]struct{}{}
	defer e.unwind()
	defer cancel()
	main := e.start(ctx, body)
	for {
		e.step()
		switch {
		case e.broken != nil:
			return e.broken
		case main.ended && e.past.left():
			return fmt.Errorf("%w: the run ends before event %d", ErrDiverged, e.past.peek().Seq)
		case main.ended:
			return nil
		case e.past.left():
			e.answer()
			continue
		case len(e.starting) > 0:
			e.begin()
			continue
		case len(e.pending) > 0:
			e.resume()
			continue
		case e.held > 0 && e.held+e.timers == e.inflight && !e.suspended:
			e.suspend()
		case e.inflight == 0:
			return errors.New("the run waits for something that nothing will bring about")
		}
		if e.rec.flush(); e.rec.err != nil {
			e.cancel()
		}
		c := e.next()
		if e.held += c.held; c.held > 0 {
			continue
		}
		e.inflight--
		if limits(c.e) {
			e.timers--
		}
		if c.res.Model != nil {
			c.res.Model.Repeated = c.lost
		}
		e.give(c.t, c.e, c.res)
	}
}

func (e *engine) start(ctx context.Context, body func(core.Flow)) *thread {
	t := &thread{}
	t.next, t.stop = iter.Pull(func(yield func(step) bool) {
		defer func() {
			if p := recover(); p != nil && p != any(unwound) {
				panic(p)
			}
		}()
		body(flow{e, ctx, t, yield})
	})
	e.threads[t] = struct{}{}
	e.runnable = append(e.runnable, t)
	return t
}

// unwind ends threads that still wait and takes the results of effects that are being cancelled, so that no goroutine
// outlives the run.
func (e *engine) unwind() {
	for t := range e.threads {
		t.stop()
	}
	for e.inflight > 0 {
		if c := e.next(); c.held <= 0 {
			e.inflight--
		}
	}
}

type unwinding struct{}

var unwound = &unwinding{}

// step runs threads in the order in which they became ready, until all of them wait.
func (e *engine) step() {
	for e.broken == nil && (len(e.runnable) > 0 || e.wake()) {
		t := e.runnable[0]
		e.runnable = e.runnable[1:]
		s, more := t.next()
		switch {
		case !more:
			t.ended = true
			delete(e.threads, t)
		case s.effect != nil:
			e.ask(t, s)
		default:
			t.cond = s.cond
			e.waiting = append(e.waiting, t)
		}
	}
}

// wake makes the threads runnable whose condition holds. It costs what is running: threads exist for nothing else.
func (e *engine) wake() bool {
	kept := e.waiting[:0]
	for _, t := range e.waiting {
		if t.cond() {
			e.runnable = append(e.runnable, t)
		} else {
			kept = append(kept, t)
		}
	}
	e.waiting = kept
	return len(e.runnable) > 0
}

// ask starts an effect. What changes nothing outside the run is done at once; everything else is recorded before it
// starts.
func (e *engine) ask(t *thread, s step) {
	ef := s.effect
	switch {
	case e.past.left():
		e.retell(t, s)
	case ef.Kind == core.Note || ef.Kind == core.Memory:
		e.give(t, ef, core.Result{})
	case ef.Kind == core.Timer && ef.Delay == 0:
		e.give(t, ef, core.Result{})
	case e.stopped(s.ctx):
		e.give(t, ef, core.Result{Cancelled: true})
	case ef.Kind == core.Judge || ef.Kind == core.Boundary:
		e.give(t, ef, e.door(s.ctx, ef))
	default:
		if kind := asked[ef.Kind]; kind != "" {
			ef.At = e.rec.record(event(kind, ef), e.asked(ef))
		}
		e.starting = append(e.starting, pending{t: t, s: s})
	}
}

// begin starts what threads have asked for since the last time, once all of it is on record. It does nothing where that
// fails: everything ends then.
func (e *engine) begin() {
	if e.lasting != nil && slices.ContainsFunc(e.starting, func(p pending) bool { return e.lasting(p.s.effect) }) {
		e.rec.sync()
	}
	e.rec.flush()
	for _, p := range e.starting {
		if e.rec.err != nil {
			e.give(p.t, p.s.effect, core.Result{Cancelled: true})
			continue
		}
		e.launch(p)
	}
	e.starting = e.starting[:0]
}

func (e *engine) launch(p pending) {
	if e.watch != nil {
		e.watch(p.s.effect, nil)
	}
	e.inflight++
	if limits(p.s.effect) {
		e.timers++
	}
	if p.s.effect.Kind == core.Approval { // people are asked one thing after another, in the core's order
		p.hid, p.before, p.asked = e.hid, e.consulted, make(chan struct{})
		e.consulted = p.asked
	}
	go func() { e.done <- e.act(p) }()
}

// limits says that an effect is a timer by which something else is bounded.
func limits(e *core.Effect) bool { return e.Kind == core.Timer && e.Scope != core.ScopeRetry }

// suspend ends a run in which nothing goes on any more until a person has decided.
func (e *engine) suspend() {
	if e.suspended = true; !e.halted {
		e.halted = true
		e.rec.record(spec.Event{Kind: spec.EventRunStop}, map[string]string{"reason": core.StopSuspended})
	}
	e.cancel()
}

// ordered says that somebody outside asked the run to stop.
func (e *engine) ordered() bool {
	select {
	case <-e.drain:
		return true
	default:
		return e.outside.Err() != nil
	}
}

// stopped says that an effect must not start any more.
func (e *engine) stopped(ctx context.Context) bool {
	select {
	case <-e.drain:
		return true
	case <-ctx.Done():
		return true
	default:
		return e.rec.err != nil
	}
}

// act brings an effect about.
func (e *engine) act(p pending) completion {
	c := completion{t: p.t, e: p.s.effect, lost: p.lost}
	ctx := p.s.ctx
	if p.before != nil {
		<-p.before
	}
	if c.e.Kind != core.Timer {
		if p.hid {
			c.res = unasked(errHid)
		} else {
			c.res = e.door(ctx, c.e)
		}
		if p.asked != nil {
			close(p.asked)
		}
		if rec := c.res.Approval; rec != nil && rec.Decision == spec.ApprovalPending { // it waits as long as anything else is at work
			e.done <- completion{held: 1}
			<-ctx.Done()
			c.held, c.res.Cancelled = -1, true
		}
		return c
	}
	timer := time.NewTimer(time.Duration(c.e.Delay))
	defer timer.Stop()
	var drain <-chan struct{} // what is waited for is the start of something
	if c.e.Scope == core.ScopeRetry {
		drain = e.drain
	}
	select {
	case <-timer.C:
	case <-drain:
		c.res.Cancelled = true
	case <-ctx.Done():
		c.res.Cancelled = true
	}
	return c
}

// give records a result and hands it to the thread that asked.
func (e *engine) give(t *thread, ef *core.Effect, res core.Result) { e.hand(t, ef, res, e.watch) }

// hand is give for whoever sees the result. nil: nobody does.
func (e *engine) hand(t *thread, ef *core.Effect, res core.Result, see func(*core.Effect, *core.Result)) {
	res.Suspended = res.Cancelled && e.suspended
	if res.Cancelled && !e.halted && e.ordered() {
		e.halted = true
		e.rec.record(spec.Event{Kind: spec.EventRunStop}, nil)
	}
	e.keep(&res)
	res.At = e.rec.record(event(answered[ef.Kind], ef), e.data(ef, &res))
	if e.rec.err != nil {
		e.cancel()
	}
	if see != nil {
		see(ef, &res)
	}
	t.reply = res
	e.runnable = append(e.runnable, t)
}

func (f flow) Go(_ string, body func(core.Flow)) { f.e.start(f.ctx, body) }

func (f flow) Do(ef *core.Effect) core.Result {
	f.wait(step{effect: ef, ctx: f.ctx})
	return f.t.reply
}

func (f flow) Await(cond func() bool) {
	for !cond() {
		f.wait(step{cond: cond})
	}
}

func (f flow) WithCancel() (core.Flow, func()) {
	ctx, cancel := context.WithCancel(f.ctx)
	f.ctx = ctx
	return f, cancel
}

func (f flow) wait(s step) {
	if !f.yield(s) {
		panic(unwound)
	}
}

// The events an effect leaves in the log. A tree and a judgement have no event of asking.
var (
	asked    = map[core.Kind]string{core.ModelCall: spec.EventModelAsked, core.ToolCall: spec.EventToolAsked, core.Timer: spec.EventTimerAsked, core.Approval: spec.EventApprovalAsked}
	answered = map[core.Kind]string{core.ModelCall: spec.EventModelResult, core.ToolCall: spec.EventToolResult, core.Timer: spec.EventTimerResult,
		core.Judge: spec.EventToolJudged, core.Boundary: spec.EventBoundary, core.Approval: spec.EventApprovalDecision, core.Tree: spec.EventTree, core.Note: spec.EventTaskStatus,
		core.Memory: spec.EventMemorySet}
)

func event(kind string, ef *core.Effect) spec.Event {
	return spec.Event{Kind: kind, ID: ef.ID, TaskID: ef.TaskID, AgentName: ef.AgentName, Digest: ef.Digest}
}
