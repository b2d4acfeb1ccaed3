package core_test

import (
	"fmt"
	"iter"

	"github.com/open-multi-agent/oma/runtime/core"
)

// orders drives the core with results in an order the test chooses: choose(n) picks which of the n effects in flight
// answers next. world gives the answer. Every effect asked for and every choice is kept, so that a run can be replayed.
type orders struct {
	world  func(*core.Effect) core.Result
	choose func(n int) int

	runnable []*coroutine
	waiting  []*coroutine
	flight   []*coroutine
	trace    []string // effects in the order asked
	answers  []string // effects in the order answered
	most     map[core.Kind]int
	now      int64
}

type coroutine struct {
	next      func() (want, bool)
	stop      func()
	effect    *core.Effect
	cond      func() bool
	reply     core.Result
	cancelled *cancel
}

type want struct {
	effect    *core.Effect
	cond      func() bool
	cancelled *cancel
}

type testFlow struct {
	o         *orders
	c         *coroutine
	yield     func(want) bool
	cancelled *cancel
}

func (o *orders) run(in core.Input) (out *core.Outcome, err error) {
	o.most = map[core.Kind]int{}
	o.start(nil, func(f core.Flow) { out = core.Run(f, in) })
	for {
		o.step()
		if out != nil {
			return out, nil
		}
		if len(o.flight) == 0 {
			return nil, fmt.Errorf("stuck: %d threads wait and nothing is in flight", len(o.waiting))
		}
		i := o.choose(len(o.flight))
		c := o.flight[i]
		o.flight = append(o.flight[:i:i], o.flight[i+1:]...)
		o.answer(c)
	}
}

func (o *orders) start(cancelled *cancel, body func(core.Flow)) {
	c := &coroutine{cancelled: cancelled}
	c.next, c.stop = iter.Pull(func(yield func(want) bool) { body(testFlow{o, c, yield, cancelled}) })
	o.runnable = append(o.runnable, c)
}

func (o *orders) step() {
	for {
		kept := o.waiting[:0]
		for _, c := range o.waiting {
			if c.cond() {
				o.runnable = append(o.runnable, c)
			} else {
				kept = append(kept, c)
			}
		}
		o.waiting = kept
		if len(o.runnable) == 0 {
			return
		}
		c := o.runnable[0]
		o.runnable = o.runnable[1:]
		w, more := c.next()
		switch {
		case !more:
		case w.cond != nil:
			c.cond = w.cond
			o.waiting = append(o.waiting, c)
		default:
			c.effect, c.cancelled = w.effect, w.cancelled
			o.trace = append(o.trace, string(w.effect.Kind)+" "+w.effect.ID+" "+w.effect.Digest)
			if w.effect.Kind == core.Note || w.effect.Kind == core.Judge || w.effect.Kind == core.Timer && w.effect.Delay == 0 {
				o.answer(c)
				continue
			}
			o.flight = append(o.flight, c)
			n := 0
			for _, f := range o.flight {
				if f.effect.Kind == w.effect.Kind {
					n++
				}
			}
			o.most[w.effect.Kind] = max(o.most[w.effect.Kind], n)
		}
	}
}

func (o *orders) answer(c *coroutine) {
	o.now++
	switch e := c.effect; {
	case e.Kind == core.Note || e.Kind == core.Timer && e.Delay == 0:
		c.reply = core.Result{}
	case c.cancelled.over():
		c.reply = core.Result{Cancelled: true}
	default:
		c.reply = o.world(e)
	}
	c.reply.At = o.now
	o.answers = append(o.answers, c.effect.ID)
	o.runnable = append(o.runnable, c)
}

func (f testFlow) Go(_ string, body func(core.Flow)) { f.o.start(f.cancelled, body) }

func (f testFlow) Do(e *core.Effect) core.Result {
	f.yield(want{effect: e, cancelled: f.cancelled})
	return f.c.reply
}

func (f testFlow) Await(cond func() bool) {
	for !cond() {
		f.yield(want{cond: cond})
	}
}

func (f testFlow) WithCancel() (core.Flow, func()) {
	c := &cancel{above: f.cancelled}
	f.cancelled = c
	return f, func() { c.done = true }
}

// cancel is the state of a flow: it ends with the one above it.
type cancel struct {
	done  bool
	above *cancel
}

func (c *cancel) over() bool { return c != nil && (c.done || c.above.over()) }
