package core

import (
	"fmt"

	"github.com/open-multi-agent/oma/spec"
)

// maxCalls is how many calls of one turn are judged. The rest are answered, not run.
const maxCalls = 64

// calls judges the calls of one turn one after another, in the model's order, then runs the allowed ones together, as
// many at once as the agent may, and answers every one of them in the model's order.
func (w *worker) calls(f Flow, turn int, calls []spec.ToolCall) {
	answers := make([]spec.Message, len(calls))
	var todo []pending
	for i, c := range calls {
		answers[i] = spec.Message{Role: spec.RoleTool, ToolCallID: c.ID, ToolName: c.Name, IsError: true}
		if i >= maxCalls {
			answers[i].Text = w.refuse(c, "too-many", fmt.Sprintf("not run: at most %d calls a turn are taken", maxCalls))
			continue
		}
		p := pending{index: i, id: fmt.Sprintf("%s/%d/call/%d", w.t.Task.ID, turn, i+1), call: c}
		if text, ok := w.judge(f, &p); ok {
			todo = append(todo, p)
		} else {
			answers[i].Text = text
		}
	}
	w.act(f, todo, answers)
	for _, a := range answers {
		w.say(a)
	}
}

// pending is a call that was judged.
type pending struct {
	index  int // among the turn's calls
	fact   int // among the task's facts
	id     string
	call   spec.ToolCall
	judged *Judged
}

// judge asks the door. When the call may not run, text is what the model is told.
func (w *worker) judge(f Flow, p *pending) (text string, ok bool) {
	res := f.Do(&Effect{Kind: Judge, ID: p.id + "/judge", TaskID: w.t.Task.ID, AgentName: w.agent.Name,
		Call: &Call{ID: p.call.ID, Name: p.call.Name, Role: w.t.Task.Role, Arguments: p.call.Arguments, Situation: w.situation()}})
	w.clock(res)
	p.judged = res.Judged
	if res.Cancelled || p.judged == nil {
		p.judged = &Judged{Decision: spec.Decision{Refused: "cancelled"}, Text: "not run: the run was cancelled"}
	}
	p.fact = w.decided(p.call, p.judged)
	return p.judged.Text, p.judged.Allowed()
}

// decided records one judgement and gives its place among the task's facts.
func (w *worker) decided(c spec.ToolCall, j *Judged) int {
	w.out.Decisions = append(w.out.Decisions, spec.DecisionRecord{Seq: len(w.out.Decisions) + 1, TaskID: w.t.Task.ID,
		Agent: w.agent.Name, ToolName: c.Name, ToolCallID: c.ID, Decision: j.Decision, InputDigest: j.InputDigest,
		ElapsedMicros: j.ElapsedMicros})
	fact := CallFact{ToolName: c.Name, Input: j.Canonical, Action: spec.ActionAllow, IsError: true}
	switch {
	case j.Allowed():
		w.t.ToolCalls.Allowed++
	case j.Refused != "":
		fact.Action = "refused"
		w.t.ToolCalls.Refused++
	default:
		fact.Action = spec.ActionDeny
		w.t.ToolCalls.Denied++
	}
	w.t.Calls = append(w.t.Calls, fact)
	if j.Refused == "" {
		w.history = append(w.history, spec.HistoryCall{ToolName: fact.ToolName, Input: fact.Input, Action: fact.Action})
		w.mark(j.Marks)
	}
	return len(w.t.Calls) - 1
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

// act runs allowed calls on their own threads. The first ones start first.
func (w *worker) act(f Flow, todo []pending, answers []spec.Message) {
	limit, next, running := w.agent.MaxToolConcurrency, 0, 0
	for next < len(todo) || running > 0 {
		for next < len(todo) && running < limit {
			p := todo[next]
			next++
			running++
			f.Go(p.id, func(f Flow) {
				w.run1(f, p, &answers[p.index])
				running--
			})
		}
		f.Await(func() bool { return running == 0 || next < len(todo) && running < limit })
	}
}

func (w *worker) run1(f Flow, p pending, answer *spec.Message) {
	res := f.Do(&Effect{Kind: ToolCall, ID: p.id, TaskID: w.t.Task.ID, AgentName: w.agent.Name, Digest: p.judged.InputDigest,
		Call: &Call{ID: p.call.ID, Name: p.call.Name, Role: w.t.Task.Role, Canonical: p.judged.Canonical, InputDigest: p.judged.InputDigest}})
	w.clock(res)
	if res.Cancelled || res.Tool == nil {
		answer.Text = w.notFinished(res)
		w.t.ToolCalls.Failed++
		return
	}
	answer.Text, answer.IsError = res.Tool.Text, res.Tool.IsError
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
	if !w.over() {
		w.halt("cancelled")
	}
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
