package runtime

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// ErrDiverged says that a log does not fit what this program does with its plan: nothing of the run goes on.
var ErrDiverged = errors.New("the log and the run differ")

// tape is a log told again: what was asked and what came of it, in the order in which the core took it.
type tape struct {
	events []spec.Event
	next   int
	at     int64 // of the last event told
	// late are answers that came while an attempt was wound up, by the effect's id.
	late map[string]spec.Event
}

func (t *tape) left() bool { return t != nil && t.next < len(t.events) }

func (t *tape) peek() *spec.Event { return &t.events[t.next] }

func (t *tape) take() *spec.Event {
	ev := &t.events[t.next]
	t.next, t.at = t.next+1, ev.At
	return ev
}

// taping gathers from a whole log what counts for going on, event by event.
//
// When a run is stopped, what follows in its log says how it was wound up: effects that never started, tasks that were
// given up. None of that happened as far as a later attempt is concerned, but for results of effects that were in
// flight and came to an end.
type taping struct {
	kept    []spec.Event
	open    map[string]bool // asked, and not answered yet
	late    map[string]spec.Event
	stopped bool
	ended   bool
}

func newTaping() *taping { return &taping{open: map[string]bool{}, late: map[string]spec.Event{}} }

func (t *taping) see(e *spec.Event) {
	switch e.Kind {
	case spec.EventRunStop:
		t.stopped = true
		return
	case spec.EventRunStart:
		t.stopped, t.ended = false, false
		return
	case spec.EventRunEnd:
		t.ended = true
		return
	case spec.EventPlanSet:
		return
	}
	switch answer := isAnswer[e.Kind]; {
	case t.stopped && answer && t.open[e.ID] && !cancelledIn(e):
		t.late[e.ID] = *e
	case t.stopped:
	case answer:
		delete(t.open, e.ID)
		delete(t.late, e.ID)
		t.kept = append(t.kept, *e)
	default:
		t.open[e.ID] = true
		t.kept = append(t.kept, *e)
	}
}

// tape ends the gathering. The run has ended for good if it did and was not stopped before.
func (t *taping) tape() (*tape, bool) {
	return &tape{events: t.kept, late: t.late}, t.ended && !t.stopped
}

func cancelledIn(e *spec.Event) bool {
	var res core.Result
	return len(e.Data) > 0 && json.Unmarshal(e.Data, &res) == nil && res.Cancelled
}

var isAnswer = func() map[string]bool {
	m := map[string]bool{}
	for _, kind := range answered {
		m[kind] = true
	}
	return m
}()

// pending is an effect that was asked in the past and has not been answered.
type pending struct {
	t  *thread
	s  step
	at int64
}

// retell deals with an effect that a thread asks for while the log is told again: it was answered at once, or it was
// asked and its answer comes later.
func (e *engine) retell(t *thread, s step) {
	ef, ev := s.effect, e.past.peek()
	switch {
	case ev.ID == ef.ID && ev.Kind == answered[ef.Kind] && (ef.Kind != core.Tree || cancelledIn(ev)):
		e.tell(t, ef, e.past.take())
	case ev.ID == ef.ID && ev.Kind == asked[ef.Kind] && ev.Digest == ef.Digest:
		e.pending = append(e.pending, pending{t, s, e.past.take().At})
	case ef.Kind == core.Tree: // leaves no event when it is asked
		e.pending = append(e.pending, pending{t, s, e.past.at})
	default:
		e.diverge(ev, fmt.Sprintf("%s %s", ef.Kind, ef.ID))
	}
}

// answer takes the next answer of the log to the effect that waits for it.
func (e *engine) answer() {
	ev := e.past.peek()
	for i, p := range e.pending {
		if p.s.effect.ID == ev.ID && answered[p.s.effect.Kind] == ev.Kind {
			e.pending = append(e.pending[:i:i], e.pending[i+1:]...)
			e.tell(p.t, p.s.effect, e.past.take())
			return
		}
	}
	e.diverge(ev, "nothing that asked for it")
}

func (e *engine) diverge(ev *spec.Event, got string) {
	e.broken = fmt.Errorf("%w: event %d is %s %s, and the run has %s", ErrDiverged, ev.Seq, ev.Kind, ev.ID, got)
}

// tell hands a recorded result to its thread. It is not recorded again.
func (e *engine) tell(t *thread, ef *core.Effect, ev *spec.Event) {
	res, err := e.recorded(ef, ev)
	if err != nil {
		e.broken = fmt.Errorf("%w: event %d cannot be read: %w", ErrDiverged, ev.Seq, err)
		return
	}
	if e.told != nil {
		e.told(ef, &res)
	}
	t.reply = res
	e.runnable = append(e.runnable, t)
}

// recorded is the inverse of data: the result as the core was given it. Where a model wrote a secret that the program
// resolved, the log has a reference in its place and the next request has another digest: such a run does not go on.
func (e *engine) recorded(ef *core.Effect, ev *spec.Event) (res core.Result, err error) {
	if len(ev.Data) > 0 && ef.Kind != core.Note {
		err = json.Unmarshal(ev.Data, &res)
	}
	res.At = ev.At
	if j := res.Judged; err == nil && j != nil && len(j.Canonical) > 0 { // the log's encoder escapes what canon does not
		var v any
		if v, err = canon.Decode(j.Canonical); err == nil {
			j.Canonical, err = canon.Bytes(v)
		}
	}
	return res, err
}

// resume deals with what the log asked for and has no answer to, now that all of it has been told. An answer that is
// known is given alone, as any other: what its thread then does stands in the log before the next one.
func (e *engine) resume() {
	for i, p := range e.pending {
		res, known, err := e.known(p)
		if err != nil {
			e.broken = err
			return
		}
		if known {
			e.pending = append(e.pending[:i:i], e.pending[i+1:]...)
			e.give(p.t, p.s.effect, res)
			return
		}
	}
	for _, p := range e.pending {
		if ef := p.s.effect; ef.Kind == core.Timer { // what has passed of it has passed
			rest := *ef
			rest.Delay = max(ef.Delay-spec.Duration(e.past.at-p.at)*millisecond, 0)
			p.s.effect = &rest
		}
		e.launch(p.t, p.s, true)
	}
	e.pending = nil
}

// known gives the answer of an effect that need not start: it came while an earlier attempt was wound up, or nobody can
// know whether the effect took place.
func (e *engine) known(p pending) (core.Result, bool, error) {
	ef := p.s.effect
	if ev, ok := e.past.late[ef.ID]; ok {
		res, err := e.recorded(ef, &ev)
		if err != nil {
			err = fmt.Errorf("%w: event %d cannot be read: %w", ErrDiverged, ev.Seq, err)
		}
		return res, true, err
	}
	if ef.Kind != core.ToolCall {
		return core.Result{}, false, nil
	}
	res, known := e.again(ef)
	return res, known, nil
}

const millisecond = 1_000_000
