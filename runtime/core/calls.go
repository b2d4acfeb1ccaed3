package core

import (
	"fmt"
	"slices"

	"github.com/open-multi-agent/oma/spec"
)

// maxCalls is how many calls of one turn are judged. The rest are answered, not run.
const maxCalls = 64

// calls judges the calls of one turn one after another, in the model's order, then runs the allowed ones together, as
// many at once as the agent may, and answers every one of them in the model's order. Where a call waits for people and
// rules over later ones look at what becomes of it, those are judged once it is decided: they must not slip by.
func (w *worker) calls(f Flow, turn int, calls []spec.ToolCall) {
	answers := make([]spec.Message, len(calls))
	var todo, asks []*pending
	for i, c := range calls {
		answers[i] = spec.Message{Role: spec.RoleTool, ToolCallID: c.ID, ToolName: c.Name, IsError: true}
		if i >= maxCalls {
			answers[i].Text = w.refuse(c, "too-many", fmt.Sprintf("not run: at most %d calls a turn are taken", maxCalls))
			continue
		}
		if w.stop == StopSuspended { // nothing is decided about it: a later attempt judges it
			answers[i].Text = "not run: nobody has approved a call before it yet"
			continue
		}
		p := &pending{index: i, id: fmt.Sprintf("%s/%d/call/%d", w.path, turn, i+1), call: c}
		w.judge(f, p)
		switch j := p.judged; {
		case j.Allowed():
			todo = append(todo, p)
		case j.Waits():
			if asks = append(asks, p); j.Holds {
				w.act(f, todo, asks, answers)
				todo, asks = nil, nil
			}
		default:
			answers[i].Text = j.Text
		}
	}
	w.act(f, todo, asks, answers)
	for _, a := range answers {
		w.say(a)
	}
}

// pending is a call that was judged.
type pending struct {
	index    int // among the turn's calls
	fact     int // among the task's facts
	past     int // in the task's history
	decision int // among the run's decisions
	marked   int // how many marks the task had then
	id       string
	call     spec.ToolCall
	judged   *Judged
}

// judge asks the door.
func (w *worker) judge(f Flow, p *pending) {
	res := f.Do(&Effect{Kind: Judge, ID: p.id + "/judge", TaskID: w.t.Task.ID, AgentName: w.agent.Name,
		Call: &Call{ID: p.call.ID, Name: p.call.Name, Role: w.t.Task.Role, Arguments: p.call.Arguments, Situation: w.situation(), Chain: w.chain}})
	w.clock(res)
	p.judged = res.Judged
	if res.Cancelled || p.judged == nil {
		p.judged = &Judged{Decision: spec.Decision{Refused: "cancelled"}, Text: "not run: the run was cancelled"}
	}
	p.decision, p.fact, p.past = len(w.out.Decisions), len(w.t.Calls), len(w.history)
	w.decided(p.call, p.judged)
	p.marked = len(w.t.Marks)
}

// decided records one judgement.
func (w *worker) decided(c spec.ToolCall, j *Judged) {
	w.out.Decisions = append(w.out.Decisions, spec.DecisionRecord{Seq: len(w.out.Decisions) + 1, TaskID: w.t.Task.ID,
		Agent: w.agent.Name, ToolName: c.Name, ToolCallID: c.ID, Decision: j.Decision, InputDigest: j.InputDigest,
		ElapsedMicros: j.ElapsedMicros})
	w.count(c.Name, &j.Decision)
	fact := CallFact{ToolName: c.Name, Input: j.Canonical, Action: actionOf(&j.Decision), IsError: true}
	w.t.Calls = append(w.t.Calls, fact)
	if j.Refused == "" {
		w.history = append(w.history, spec.HistoryCall{ToolName: fact.ToolName, Input: fact.Input, Action: fact.Action})
	}
	if j.Allowed() {
		w.mark(j.Marks)
	}
}

func (w *worker) count(name string, d *spec.Decision) {
	if w.confirms && w.consequential(name) {
		w.out.Unconfirmed = w.out.Unconfirmed || d.Refused == RefusedUnconfirmed
		w.out.Denied = w.out.Denied || d.Refused == "" && !d.Allowed() && !d.Waits()
	}
	sums := &w.t.ToolCalls
	switch {
	case d.Allowed():
		sums.Allowed++
	case d.Waits():
		sums.Suspended++
	case d.Refused != "":
		sums.Refused++
	default:
		sums.Denied++
	}
}

func (w *worker) consequential(name string) bool {
	return slices.ContainsFunc(w.agent.Tools, func(g spec.Grant) bool { return g.Name == name && g.Consequential })
}

// actionOf is a decision as later rules and release requirements see it.
func actionOf(d *spec.Decision) string {
	switch {
	case d.Allowed():
		return spec.ActionAllow
	case d.Waits():
		return spec.ActionSuspend
	case d.Refused != "":
		return "refused"
	}
	return spec.ActionDeny
}

// refuse records a call that is answered without asking the door.
func (w *worker) refuse(c spec.ToolCall, code, text string) string {
	w.decided(c, &Judged{Decision: spec.Decision{Refused: code, Reason: text}})
	return text
}

// refuseAll answers every call of a turn that runs none, so that the conversation holds no call without an answer.
func (w *worker) refuseAll(calls []spec.ToolCall, code, text string) {
	for _, c := range calls {
		w.say(spec.Message{Role: spec.RoleTool, ToolCallID: c.ID, ToolName: c.Name, IsError: true, Text: w.refuse(c, code, text)})
	}
}

// act runs allowed calls on their own threads, the first ones first, and those that people approve once they have. Whoever
// waits for a person keeps nobody from running.
func (w *worker) act(f Flow, todo, asks []*pending, answers []spec.Message) {
	next := 0
	w.running, w.asking = 0, len(asks)
	for _, p := range asks {
		f.Go(p.id+"/approval", func(f Flow) {
			text, ok := w.confirm(f, p)
			if answers[p.index].Text = text; ok {
				todo = append(todo, p)
			}
			w.asking--
		})
	}
	ready := func() bool { return next < len(todo) && w.running < w.agent.MaxToolConcurrency }
	for next < len(todo) || w.running+w.asking > 0 {
		for ready() {
			p := todo[next]
			next++
			w.running++
			f.Go(p.id, func(f Flow) {
				w.run1(f, p, &answers[p.index])
				w.running--
			})
		}
		w.yield(f, func() bool { return w.running == 0 && w.asking > 0 }, func() bool { return ready() || next == len(todo) && w.running+w.asking == 0 })
	}
}

// yield waits for cond, and lets another task work as long as this one waits for people alone.
func (w *worker) yield(f Flow, idle, cond func() bool) {
	for !cond() {
		f.Await(func() bool { return cond() || idle() })
		if idle() && !cond() {
			w.leave(f, func() { f.Await(func() bool { return cond() || !idle() }) })
		}
	}
}

// call is the effect of a call that was judged.
func (w *worker) call(p *pending, id string) *Effect {
	return &Effect{Kind: ToolCall, ID: id, TaskID: w.t.Task.ID, AgentName: w.agent.Name, Digest: p.judged.InputDigest,
		Call: &Call{ID: p.call.ID, Name: p.call.Name, Role: w.t.Task.Role, Canonical: p.judged.Canonical, InputDigest: p.judged.InputDigest}}
}

func (w *worker) run1(f Flow, p *pending, answer *spec.Message) {
	if p.call.Name == spec.DelegateTool {
		w.delegate(f, p, answer)
		return
	}
	id := p.id
	res := f.Do(w.call(p, id))
	for again := 1; res.Unsure; again++ { // each attempt that ended in the middle of it asks anew
		id = fmt.Sprintf("%s/again/%d", p.id, again)
		w.running, w.asking = w.running-1, w.asking+1
		yes := w.repeat(f, p, id)
		if w.running, w.asking = w.running+1, w.asking-1; !yes {
			break
		}
		res = f.Do(w.call(p, id))
	}
	w.clock(res)
	if res.Cancelled || res.Tool == nil {
		answer.Text = w.notFinished(res)
		w.t.ToolCalls.Failed++
		return
	}
	answer.Text, answer.IsError, answer.Attachments = res.Tool.Text, res.Tool.IsError, res.Tool.Attachments
	w.t.Calls[p.fact].IsError = res.Tool.IsError
	if res.Tool.IsError {
		w.t.ToolCalls.Failed++
		return
	}
	for _, path := range res.Tool.FilesRead {
		w.read(path)
	}
}

func (w *worker) notFinished(res Result) string {
	if !res.Cancelled && res.Err != nil {
		return "not run: " + res.Err.Message
	}
	w.gaveUp()
	return "not finished: cancelled"
}

// read keeps each path once, in the order of reading.
func (w *worker) read(path string) {
	if w.seen == nil {
		w.seen = map[string]bool{}
	}
	if !w.seen[path] {
		w.seen[path] = true
		w.t.FilesRead = append(w.t.FilesRead, path)
	}
}
