package core

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// A delegated run is work of another agent in the middle of a task: a conversation of its own that begins with the prompt
// alone, the target's own tools and credentials, and the same door. It is known by the effect of the call that asked for
// it, so that all it does is named below its task. It needs a free place and never waits for one: agents that wait for
// each other's places would wait for ever.

// delegate makes a call of delegate_to_agent, which was let through, and answers it.
func (w *worker) delegate(f Flow, p *pending, answer *spec.Message) {
	t := w.lend(p)
	if t == nil {
		w.failed(answer, "not run: it names no agent of the team")
		return
	}
	if !w.vacant() {
		t.Status = spec.TaskSkipped
		t.Cause = fmt.Sprintf("no free concurrency slot: all %d are taken", w.plan.Scheduling.MaxConcurrency)
		w.note(f, t)
		w.failed(answer, fmt.Sprintf("Cannot delegate to %q: %s. Do the work yourself, or delegate again later.", t.Task.Assignee, t.Cause))
		return
	}
	w.working++
	d := w.run.fresh(t, w.ledger)
	d.caller, d.chain = w, append(slices.Clip(w.chain), t.Task.Assignee)
	d.mark(w.t.Marks[:p.marked])
	d.mark(p.judged.Marks)
	d.say(spec.Message{Role: spec.RoleUser, Text: t.Task.Description})
	d.work(f)
	w.working--
	if t.Status != spec.TaskInProgress { // it waits for a person, and nothing has come of it yet
		w.audit(f, p, t)
	}
	w.note(f, t)
	t.EndedAt = w.now
	w.returned(p, t, answer)
}

// lend makes the record of a delegated run. nil: there is no such agent, which the door does not let through and a log that was
// changed may say.
func (w *worker) lend(p *pending) *task {
	var in struct {
		Target string `json:"target_agent"`
		Prompt string `json:"prompt"`
	}
	if json.Unmarshal(p.judged.Canonical, &in) != nil || w.agents[in.Target] == nil {
		return nil
	}
	t := &task{TaskOutcome: TaskOutcome{Task: spec.PlanTask{ID: p.id, Title: DelegationTitle(p.id), Description: in.Prompt, Assignee: in.Target, Status: spec.TaskPending},
		Status: spec.TaskPending, Caller: w.agent.Name, Decision: p.decision + 1}}
	w.lent = append(w.lent, t)
	return t
}

// returned answers with what a delegated run came to. Its marks come with its text, whatever became of it.
func (w *worker) returned(p *pending, t *task, answer *spec.Message) {
	w.mark(t.Marks)
	if t.Status == spec.TaskCompleted {
		answer.Text, answer.IsError = Truncate(t.Text, w.agent.MaxToolOutputChars), false
		w.t.Calls[p.fact].IsError = false
		return
	}
	if t.Status == spec.TaskInProgress {
		answer.Text = "not finished: it waits for a person"
		return
	}
	text := fmt.Sprintf("Agent %q did not complete its work: %s", t.Task.Assignee, t.Cause)
	if t.Text != "" {
		text += "\n\n" + t.Text
	}
	w.failed(answer, text)
}

func (w *worker) failed(answer *spec.Message, text string) {
	answer.Text = Truncate(text, w.agent.MaxToolOutputChars)
	w.t.ToolCalls.Failed++
}

// audit leaves in the shared memory who asked whom, and what came of it (reference behaviour DL6). The key is made from the
// call, and is another one for every call.
func (w *worker) audit(f Flow, p *pending, t *task) {
	id := strings.TrimPrefix(canon.Digest("delegation", []byte(p.id)), "sha256:")[:8]
	w.keep(f, p.id, spec.MemoryEntry{Key: fmt.Sprintf("%s/delegation:%s:%d-%s", w.agent.Name, t.Task.Assignee, w.now, id), Agent: w.agent.Name,
		DelegatedTo: t.Task.Assignee, Success: t.Status == spec.TaskCompleted}, t)
}

// DelegationTitle is what a delegated run is called, where a task has a title.
func DelegationTitle(id string) string { return "Delegation " + id }
