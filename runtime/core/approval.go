package core

import (
	"fmt"
	"slices"

	"github.com/open-multi-agent/oma/spec"
)

// What ends a run early beside its ceilings.
const (
	StopCancelled = "cancelled"
	StopSuspended = "suspended" // only people's decisions are left to wait for
	StopRejected  = "rejected"  // a rule, or a person, said no to the plan or to a task
)

// approvalOf names the effect that asks people about another one.
func approvalOf(id string) string { return id + "/approval" }

// RefusedUnconfirmed is the word for a consequential call that ran into requireConsequentialConfirmation.
const RefusedUnconfirmed = "unconfirmed"

// Confirms says that consequential calls of the plan need a confirmation, which is the approval of the plan by a person
// (reference behaviour C2 and C3).
func Confirms(p *spec.Plan) bool {
	return p.Approvals != nil && p.Approvals.RequireConsequentialConfirmation && slices.Contains(p.Flags, spec.FlagConsequential)
}

// planned puts the plan before the rules of approvals.plan, and before people where they say so. It comes before the
// deadline's clock: nobody's time runs while a person decides.
func (r *run) planned(root Flow) {
	if a := r.plan.Approvals; a != nil && len(a.Plan) > 0 {
		r.pass(root, &Effect{Kind: Boundary, ID: "plan", Scope: spec.ScopePlan})
	}
}

// dispatched does the same for a task that is about to start. False: it does not start.
func (r *run) dispatched(f Flow, t *task) bool {
	a := r.plan.Approvals
	if a == nil || len(a.Dispatch) == 0 {
		return true
	}
	ok := r.pass(f, &Effect{Kind: Boundary, ID: t.Task.ID + "/dispatch", Scope: spec.ScopeDispatch, TaskID: t.Task.ID, AgentName: t.Task.Assignee,
		Task: &t.Task, Marks: t.Marks})
	switch {
	case ok || r.stop == StopSuspended: // it starts, or it waits
	case r.stop == StopRejected:
		t.StopReason = spec.StopRejected
		fallthrough
	default:
		r.skip(f, t, r.stopCause())
	}
	return ok
}

// pass has the plan or a task judged, and asks people where the judgement says so. True: it may go on.
func (r *run) pass(f Flow, e *Effect) bool {
	res := f.Do(e)
	r.clock(res)
	j := res.Judged
	if res.Cancelled || j == nil {
		r.halt(StopCancelled)
		return false
	}
	at := len(r.out.Decisions)
	r.out.Decisions = append(r.out.Decisions, spec.DecisionRecord{Seq: at + 1, Scope: e.Scope, TaskID: e.TaskID, Agent: e.AgentName,
		Decision: j.Decision, InputDigest: j.InputDigest, ElapsedMicros: j.ElapsedMicros})
	why := j.Reason
	if j.Waits() {
		ask := *e
		ask.Kind, ask.ID, ask.Digest, ask.Ask = Approval, e.ID+"/approval", j.InputDigest, AskOf(j)
		var a answer
		if wait := func() { a = r.consult(f, &ask) }; e.Task == nil {
			wait()
		} else {
			r.leave(f, wait)
		}
		a.settle(&r.out.Decisions[at].Decision)
		why = a.said
	}
	d := &r.out.Decisions[at].Decision
	switch {
	case d.Waits():
		r.halt(StopCancelled) // unless it was suspended
	case !d.Allowed():
		r.reject(e, why)
	}
	return d.Allowed()
}

// reject ends the run for good. What is at work comes to its end.
func (r *run) reject(e *Effect, why string) {
	if r.stop != "" {
		return
	}
	r.stop, r.out.StopCause = StopRejected, "the plan was rejected"
	if e.Task != nil {
		r.out.StopCause = fmt.Sprintf("task %q was rejected", e.Task.Title)
	}
	if why != "" {
		r.out.StopCause += ": " + why
	}
}

// AskOf is what people are told of a judgement that asks them.
func AskOf(j *Judged) *Ask {
	a := &Ask{Action: j.GateAction, Reason: j.Reason}
	for _, o := range j.Rules {
		if o.Action == spec.ActionAsk || o.Action == spec.ActionSuspend {
			a.Rules = append(a.Rules, o.Name)
		}
	}
	return a
}

// answer is what came of asking people.
type answer struct {
	approval  string // approved, rejected, expired or pending; empty: nobody could be asked
	requestID string // empty: it was not asked
	said      string // what a reviewer gave as the reason, or why there is no answer
}

// consult asks people, and waits for them as long as anything else is at work.
func (r *run) consult(f Flow, e *Effect) answer {
	res := f.Do(e)
	r.clock(res)
	a := answer{approval: spec.ApprovalPending}
	if rec := res.Approval; rec != nil {
		r.out.Approvals = append(r.out.Approvals, *rec)
		a.requestID, a.said = rec.RequestID, said(rec)
	}
	switch {
	case res.Suspended:
		r.halt(StopSuspended)
	case res.Cancelled:
	case res.Approval != nil:
		a.approval = res.Approval.Decision
	default:
		a.approval, a.said = "", "nobody could be asked"
		if res.Err != nil {
			a.said = res.Err.Message
		}
	}
	return a
}

func said(rec *spec.ApprovalRecord) string {
	if rec.Decision == spec.ApprovalExpired {
		return "nobody decided in time"
	}
	if n := len(rec.Votes); n > 0 {
		return rec.Votes[n-1].Reason
	}
	return ""
}

// settle puts an answer into the record of the decision that asked for it.
func (a answer) settle(d *spec.Decision) {
	d.Approval, d.RequestID = a.approval, a.requestID
	if a.approval == "" {
		d.GateAction, d.GateOutcome, d.Reason = spec.ActionDeny, "error", a.said
	}
}

// confirm asks people about a call that was judged. False: it does not run, and text is what the model is told.
func (w *worker) confirm(f Flow, p *pending) (text string, ok bool) {
	a := w.consult(f, w.approval(p, p.id, AskOf(p.judged)))
	a.settle(&w.out.Decisions[p.decision].Decision)
	w.settled(p)
	switch {
	case w.out.Decisions[p.decision].Allowed():
		return "", true
	case a.approval == spec.ApprovalPending:
		w.gaveUp()
		return "not run: nobody has approved it yet", false
	case a.approval == "":
		return fmt.Sprintf("Tool %q needs a person's approval: %s.", p.call.Name, a.said), false
	case a.said == "":
		return fmt.Sprintf("Tool %q denied by durable approval.", p.call.Name), false
	}
	return fmt.Sprintf("Tool %q denied by durable approval: %s", p.call.Name, a.said), false
}

// repeat asks people whether a call that may have taken effect is to be made again.
func (w *worker) repeat(f Flow, p *pending, id string) bool {
	a := w.consult(f, w.approval(p, id, &Ask{Action: spec.ActionAsk, Again: true,
		Reason: "the run ended while this call was in flight, so it may have taken effect already"}))
	if a.approval == spec.ApprovalPending {
		w.gaveUp()
	}
	return a.approval == spec.ApprovalApproved
}

// restart asks people whether an external agent, which may have done its work or a part of it, is to be started again.
func (w *worker) restart(f Flow, id string) bool {
	var a answer
	w.leave(f, func() {
		a = w.consult(f, &Effect{Kind: Approval, ID: approvalOf(id), Scope: spec.ScopeDispatch, TaskID: w.t.Task.ID, AgentName: w.agent.Name, Task: &w.t.Task,
			Ask: &Ask{Action: spec.ActionAsk, Again: true, Reason: "the run ended while this agent was at work, so it may have done its work already"}})
	})
	if a.approval == spec.ApprovalPending {
		w.gaveUp()
	}
	return a.approval == spec.ApprovalApproved
}

// gaveUp says that an effect of the task was given up.
func (w *worker) gaveUp() {
	if !w.over() {
		w.halt(StopCancelled)
	}
}

// approval is the effect that asks about the call whose own effect has the id.
func (w *worker) approval(p *pending, id string, ask *Ask) *Effect {
	e := w.call(p, id)
	e.Kind, e.ID, e.Scope, e.Ask = Approval, id+"/approval", spec.ScopeToolCall, ask
	return e
}

// settled counts a call again, now that it is known whether it may run.
func (w *worker) settled(p *pending) {
	d := &w.out.Decisions[p.decision].Decision
	if d.Waits() {
		return
	}
	w.t.ToolCalls.Suspended--
	w.count(p.call.Name, d)
	w.t.Calls[p.fact].Action = actionOf(d)
	w.history[p.past].Action = actionOf(d)
	if d.Allowed() {
		w.mark(d.Marks)
	}
}
