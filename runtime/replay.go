package runtime

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

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
	lost map[string]int // how many attempts asked for an effect and ended without its answer, by its id
	// permits are what external agents were answered while their prompts were at work, by the effect.
	permits map[string][]core.Permit
	rest    []rest
	end     int64 // the time of the log's last event
}

// rest is a time in which no process drove the run: from the end of an attempt to the next one, at which it was over.
type rest struct{ over, length int64 }

// driven is how much of the time from one event to the end of the log a process drove the run.
func (t *tape) driven(from int64) int64 {
	d := t.end - from
	for _, r := range t.rest {
		if r.over > from {
			d -= r.length
		}
	}
	return d
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
	idle    map[string]bool // the attempt ended while nobody worked on it
	late    map[string]spec.Event
	lost    map[string]int
	permits map[string][]core.Permit
	rest    []rest
	at      int64
	stopped bool
	ended   bool
}

func newTaping() *taping {
	return &taping{open: map[string]bool{}, idle: map[string]bool{}, late: map[string]spec.Event{}, lost: map[string]int{}, permits: map[string][]core.Permit{}}
}

func (t *taping) see(e *spec.Event) {
	if e.Kind == spec.EventRunStart && t.at > 0 {
		t.pause()
		t.rest = append(t.rest, rest{e.At, e.At - t.at})
	}
	t.at = e.At
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
	if o := ObservedIn(e); o != nil { // it was never asked for by the core: what came of it is in the answer to its prompt
		if of, n := promptOf(e.ID); o.Permit != nil && o.Permit.Judged != nil && n == len(t.permits[of])+1 {
			t.permits[of] = append(t.permits[of], *o.Permit)
		}
		return
	}
	switch answer := isAnswer[e.Kind]; {
	case t.stopped && answer && t.open[e.ID]:
		if res := resultIn(e); !res.Cancelled {
			t.late[e.ID] = *e
		} else {
			t.idle[e.ID] = res.Model != nil && res.Model.Idle
		}
	case t.stopped:
	case answer:
		delete(t.open, e.ID)
		delete(t.late, e.ID)
		delete(t.lost, e.ID)
		t.kept = append(t.kept, *e)
	default:
		t.open[e.ID] = true
		t.kept = append(t.kept, *e)
	}
}

// pause ends an attempt.
func (t *taping) pause() {
	for id := range t.open {
		if !t.idle[id] {
			t.lost[id]++
		}
	}
	clear(t.idle)
}

// tape ends the gathering. The run has ended for good if it did and was not stopped before.
func (t *taping) tape() (*tape, bool) {
	t.pause()
	return &tape{events: t.kept, late: t.late, lost: t.lost, permits: t.permits, rest: t.rest, end: t.at}, t.ended && !t.stopped
}

// ObservedIn reads what an external agent did or asked for while it was at work. nil: the event is of something else.
func ObservedIn(e *spec.Event) *Observed {
	if e.Kind != spec.EventToolAsked || !bytes.Contains(e.Data, []byte(`"observed":true`)) {
		return nil
	}
	var o Observed
	if json.Unmarshal(e.Data, &o) != nil || !o.Observed {
		return nil
	}
	return &o
}

// promptOf gives the prompt during which something was asked for, and which of its requests it was. 0: it was none.
func promptOf(id string) (prompt string, n int) {
	i := strings.LastIndex(id, "/permit/")
	if i < 0 {
		return "", 0
	}
	n, err := strconv.Atoi(id[i+len("/permit/"):])
	if err != nil {
		return "", 0
	}
	return id[:i], n
}

// resultIn reads what an event says came of an effect. A status of a task, or nothing, is a result without anything in it.
func resultIn(e *spec.Event) (res core.Result) {
	if len(e.Data) > 0 && json.Unmarshal(e.Data, &res) != nil {
		return core.Result{}
	}
	return res
}

var isAnswer = func() map[string]bool {
	m := map[string]bool{}
	for _, kind := range answered {
		m[kind] = true
	}
	return m
}()

// pending is an effect that was asked for and has not been answered.
type pending struct {
	t    *thread
	s    step
	at   int64 // when an earlier attempt asked for it
	lost int   // how many attempts may have had it worked on and lost the answer

	// An approval is asked once before is closed, and closes asked when it was. nil: there is none before it.
	before, asked chan struct{}
	hid           bool // and nobody is asked: the run could not go on with the answer
}

// retell deals with an effect that a thread asks for while the log is told again: it was answered at once, or it was
// asked and its answer comes later.
func (e *engine) retell(t *thread, s step) {
	ef, ev := s.effect, e.past.peek()
	switch {
	case ev.ID == ef.ID && ev.Kind == answered[ef.Kind] && (ef.Kind != core.Tree || resultIn(ev).Cancelled):
		e.tell(t, ef, e.past.take())
	case ev.ID == ef.ID && ev.Kind == asked[ef.Kind] && (ev.Digest == ef.Digest || e.withhold != nil || e.lenient):
		ef.At = e.past.take().At
		e.pending = append(e.pending, pending{t: t, s: s, at: ef.At, lost: e.past.lost[ef.ID]})
	case ef.Kind == core.Tree: // leaves no event when it is asked
		e.pending = append(e.pending, pending{t: t, s: s})
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
	res, ok := e.believed(ef, ev)
	if !ok {
		return
	}
	ev.Data = nil // nobody asks for it again, and a long log is large
	if e.told != nil {
		e.told(ef, &res)
	}
	t.reply = res
	e.runnable = append(e.runnable, t)
}

// believed is a recorded result, unless it cannot have been so. False: the run is broken.
func (e *engine) believed(ef *core.Effect, ev *spec.Event) (core.Result, bool) {
	res, err := e.recorded(ef, ev)
	if err != nil {
		e.broken = fmt.Errorf("%w: event %d cannot be read: %w", ErrDiverged, ev.Seq, err)
		return res, false
	}
	if e.check != nil {
		if err := e.check(ef, &res); err != nil {
			e.broken = fmt.Errorf("%w: event %d, %s %s: %w", ErrDiverged, ev.Seq, ev.Kind, ev.ID, err)
		}
	}
	return res, e.broken == nil
}

// recorded is the inverse of data: the result as the core was given it. Where a model wrote a secret that the program
// resolved, the log has a reference in its place and the next request has another digest: such a run does not go on.
func (e *engine) recorded(ef *core.Effect, ev *spec.Event) (res core.Result, err error) {
	switch {
	case ef.Kind == core.Memory:
		err = e.sameEntry(ef.Entry, ev.Data)
	case len(ev.Data) > 0 && ef.Kind != core.Note:
		err = json.Unmarshal(ev.Data, &res)
	}
	res.At = ev.At
	if m := res.Model; m != nil && (m.Attempts < 0 || m.Repeated < 0 || m.Repeated > len(e.past.rest)) {
		return res, errors.New("no run counts like that")
	}
	if j := res.Judged; err == nil && j != nil && len(j.Canonical) > 0 { // the log's encoder escapes what canon does not
		var v any
		if v, err = canon.Decode(j.Canonical); err == nil {
			j.Canonical, err = canon.Bytes(v)
		}
		if err == nil && canon.Digest("input", j.Canonical) != j.InputDigest && e.withhold == nil && !e.lenient {
			err = errors.New("the input is not in it as it was judged: a secret was taken out")
		}
	}
	return res, err
}

// sameEntry says whether the log has what was left in the shared memory. Where the log has less than the texts, their
// digests are others.
func (e *engine) sameEntry(is *spec.MemoryEntry, data json.RawMessage) error {
	var was spec.MemoryEntry
	if err := json.Unmarshal(data, &was); err != nil {
		return err
	}
	if e.hide != nil || e.lenient {
		was.Digest, was.Chars = is.Digest, is.Chars
	}
	if was != *is {
		return errors.New("something else was left in the shared memory")
	}
	return nil
}

// resume deals with what the log asked for and has no answer to, now that all of it has been told. An answer that is
// known is given alone, as any other: what its thread then does stands in the log before the next one.
func (e *engine) resume() {
	for i, p := range e.pending {
		if e.known(p) {
			e.pending = append(e.pending[:i:i], e.pending[i+1:]...)
			return
		}
	}
	for _, p := range e.pending {
		if ef := p.s.effect; ef.Kind == core.Timer { // what has passed of it has passed
			left := *ef
			left.Delay = max(ef.Delay-spec.Duration(e.past.driven(p.at))*millisecond, 0)
			p.s.effect = &left
		}
		e.starting = append(e.starting, p)
	}
	e.pending = nil
}

// known gives the answer of an effect that does not start: it came while an earlier attempt was wound up, nothing starts
// any more, or nobody can know whether the effect took place. False: there is none.
func (e *engine) known(p pending) bool {
	ef := p.s.effect
	if ev, ok := e.past.late[ef.ID]; ok {
		if res, ok := e.believed(ef, &ev); ok {
			e.hand(p.t, ef, res, e.told)
		}
		return true
	}
	if e.stopped(p.s.ctx) {
		res := core.Result{Cancelled: true}
		if ef.Kind == core.ModelCall {
			res.Model = &core.ModelResult{Idle: true, Repeated: p.lost, Permits: e.past.permits[ef.ID]}
		}
		e.give(p.t, ef, res)
		return true
	}
	if ef.Kind != core.ToolCall && ef.Kind != core.ModelCall {
		return false
	}
	res, known := e.again(ef)
	if !known {
		return false
	}
	if permits := e.past.permits[ef.ID]; len(permits) > 0 { // what an agent was let do has happened, however far it got
		res.Model = &core.ModelResult{Permits: permits}
		if e.check != nil {
			if err := e.check(ef, &res); err != nil {
				e.broken = fmt.Errorf("%w: what was asked for during %s before the run ended: %w", ErrDiverged, ef.ID, err)
				return true
			}
		}
	}
	e.give(p.t, ef, res)
	return true
}

const millisecond = 1_000_000
