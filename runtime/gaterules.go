package runtime

import (
	"context"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/redact"
)

// reasoned holds every decision against what its own rules said. Without the plan nobody knows the default.
func (v *GateVerdict) reasoned(r *spec.Receipt) {
	for i := range r.Decisions {
		if d := &r.Decisions[i]; !mayFollow(d) {
			v.broken(hintReceipt, "decision %d does not follow from what its rules said", d.Seq)
		}
	}
}

// mayFollow says whether there is a default with which a decision is what its rules led to. The plan and its tasks may start
// unless a rule says otherwise.
func mayFollow(d *spec.DecisionRecord) bool {
	return follows(d, true) || d.Scope == "" && follows(d, false)
}

// follows says whether a decision is what its rules led to. permit is the default.
func follows(d *spec.DecisionRecord, permit bool) bool {
	asked := d.Approval != "" || d.RequestID != ""
	switch action, outcome := policies.Concluded(d.Rules, permit); {
	case d.Refused != "" && d.Refused != core.RefusedUnconfirmed, !d.Gated: // no rule was asked
		return !d.Gated && d.GateAction == "" && d.GateOutcome == "" && len(d.Rules)+len(d.Marks) == 0 && !asked
	case d.Refused != "": // rules would have let it run
		return action == spec.ActionAllow && d.GateAction == action && d.GateOutcome == outcome && !asked
	case doorFailed(d):
		return !asked
	default:
		return d.GateAction == action && d.GateOutcome == outcome && (d.Asks() || !asked)
	}
}

// doorFailed says that nothing was decided, and so it was denied: whatever rules said, a person could not be asked, or the
// run was being ended.
func doorFailed(d *spec.DecisionRecord) bool {
	return d.Gated && d.Refused == "" && d.GateAction == spec.ActionDeny && d.GateOutcome == "error"
}

// ruled is a receipt's decisions on their way through the rules of its plan. Those over calls are not evaluated again, for
// the input of a call is not on a receipt; those over the plan and its tasks are.
type ruled struct {
	*GateVerdict
	receipt *spec.Receipt
	plan    *spec.Plan
	agents  map[string]*spec.PlanAgent
	tasks   map[string]*spec.PlanTask
	door    *guard              // judges the plan and its tasks
	marks   map[string][]string // by task, as far as the decisions have been looked at
	given   map[int][]string    // those of the task when a decision let it delegate, by the decision's seq
	lent    map[string]int      // the decision that let a delegated run
	heard   map[string]bool     // by task: what hears says
	passed  map[string]bool     // by scope and task: whether it was let through
}

// rulings holds the decisions against the plan's rules, and what started against the decisions about plan and tasks.
func (v *GateVerdict) rulings(r *spec.Receipt, p *spec.Plan, agents map[string]*spec.PlanAgent) {
	bounds, err := boundsOf(p)
	if err != nil {
		v.broken(hintPlan, "the plan and its tasks cannot be judged again: %v", err)
		return
	}
	q := ruled{GateVerdict: v, receipt: r, plan: p, agents: agents, tasks: map[string]*spec.PlanTask{}, marks: map[string][]string{}, passed: map[string]bool{}, given: map[int][]string{}, lent: map[string]int{}, heard: map[string]bool{},
		door: &guard{plan: p, bounds: bounds, runID: r.RunID, mask: strings.Clone}}
	for i := range p.Tasks {
		q.tasks[p.Tasks[i].ID] = &p.Tasks[i]
	}
	for _, d := range r.Delegations {
		q.lent[d.ID] = d.Decision
	}
	for i := range r.Decisions {
		if d := &r.Decisions[i]; d.Scope != "" {
			q.boundary(d)
		} else {
			q.call(d)
		}
	}
	q.started(bounds)
}

// call holds a decision about a call against the rules that can have judged it.
func (q *ruled) call(d *spec.DecisionRecord) {
	if d.Refused != "" && d.Refused != core.RefusedUnconfirmed {
		return
	}
	if d.Gated != q.plan.Gates.Declared {
		q.broken(hintReceipt, "decision %d is gated where its plan has no gates, or the other way round", d.Seq)
		return
	}
	if a := q.agents[d.Agent]; (a == nil || !a.Backend.Asks()) && !follows(d, q.plan.Gates.Default != spec.ActionDeny) && mayFollow(d) {
		q.broken(hintReceipt, "decision %d does not follow from what its rules said and the plan's default", d.Seq)
	}
	var marks []string
	for i, o := range d.Rules {
		rule := q.ruleOf(d, &o)
		if rule == nil || slices.ContainsFunc(d.Rules[:i], func(b spec.RuleOutcome) bool { return b.Name == o.Name && b.Source == o.Source }) {
			q.broken(hintReceipt, "decision %d is by a rule %q that its plan does not have for the call", d.Seq, o.Name)
			continue
		}
		if rule.Mark != "" {
			marks = append(marks, rule.Mark)
		}
	}
	if !d.Allowed() {
		return
	}
	if now := policies.NewMarks(marks, q.marked(d.TaskID)); slices.Equal(now, d.Marks) || q.remembered(d, now, marks) {
		marks = d.Marks
	} else {
		q.broken(hintReceipt, "decision %d sets other marks than its rules do", d.Seq)
	}
	// a delegated run gives its marks to whoever asked for it, who decides about nothing else meanwhile
	for id, ok := d.TaskID, true; ok; id, ok = callerOf(id) {
		q.marks[id] = append(q.marked(id), marks...)
	}
	if d.ToolName == spec.DelegateTool {
		q.given[d.Seq] = slices.Clone(q.marked(d.TaskID))
	}
}

// hears says that a task is told what others did, or is given what one that was told came to: when which of their marks came
// to it is in the log alone.
func (q *ruled) hears(task string) bool {
	heard, known := q.heard[task]
	if t := q.tasks[task]; t != nil && !known {
		q.heard[task] = t.MemoryScope == spec.MemoryAll
		heard = q.heard[task] || slices.ContainsFunc(t.DependsOn, q.hears)
		q.heard[task] = heard
	}
	return heard
}

// remembered says that a decision of a task that hears of others leaves out marks that came with that. When each of
// them was left is in the log alone.
func (q *ruled) remembered(d *spec.DecisionRecord, now, marks []string) bool {
	if !q.hears(rootTask(d.TaskID)) {
		return false
	}
	var all []string
	for _, m := range q.marks {
		all = append(all, m...)
	}
	within := func(a, b []string) bool {
		return !slices.ContainsFunc(a, func(m string) bool { return !slices.Contains(b, m) })
	}
	return within(d.Marks, now) && within(policies.NewMarks(marks, all), d.Marks)
}

// ruleOf gives the plan's rule that said something of a call. nil: it has none that did.
func (q *ruled) ruleOf(d *spec.DecisionRecord, o *spec.RuleOutcome) *spec.PlanRule {
	a := q.agents[d.Agent]
	if a == nil {
		return nil
	}
	hidden := strings.Contains(d.ToolName, redact.Mark)
	for i := range q.plan.Gates.Rules {
		r := &q.plan.Gates.Rules[i]
		if r.Name == o.Name && r.Source == o.Source && r.Action == o.Action && slices.ContainsFunc(a.Tools, func(g spec.Grant) bool {
			return (hidden || shownAs(g.Name, d.ToolName)) && policies.Covers(r, a.Name, g.Name)
		}) {
			return r
		}
	}
	return nil
}

// marked gives the marks of a task so far: those of the tasks it was given, and those that its own calls set.
func (q *ruled) marked(task string) []string {
	if marks, known := q.marks[task]; known {
		return marks
	}
	q.marks[task] = nil
	if seq, ok := q.lent[task]; ok {
		q.marks[task] = slices.Clone(q.given[seq])
		return q.marks[task]
	}
	var marks []string
	if t := q.tasks[task]; t != nil {
		for _, before := range t.DependsOn {
			for _, m := range q.marked(before) {
				if !slices.Contains(marks, m) {
					marks = append(marks, m)
				}
			}
		}
	}
	q.marks[task] = marks
	return marks
}

// boundary judges the plan, or a task, again.
func (q *ruled) boundary(d *spec.DecisionRecord) {
	e := core.Effect{Kind: core.Boundary, Scope: d.Scope, TaskID: d.TaskID, AgentName: d.Agent}
	if d.Scope == spec.ScopeDispatch {
		e.Task, e.Marks = q.tasks[d.TaskID], q.marked(d.TaskID)
	}
	key := d.Scope + " " + d.TaskID
	_, twice := q.passed[key]
	q.passed[key] = d.Gated && d.Allowed()
	switch {
	case d.Scope == spec.ScopePlan && d.Seq != 1, d.Scope == spec.ScopeDispatch && e.Task == nil, q.door.bounds[d.Scope] == nil, twice:
		q.broken(hintReceipt, "decision %d is about something that its plan does not put before anybody, or not then", d.Seq)
	case doorFailed(d): // it let nothing start
	default:
		j := q.door.bound(context.Background(), &e)
		err := sameDecision(&d.Decision, &j.Decision)
		if q.Chained && q.hears(d.TaskID) { // the log knows its marks, and is told again with them
			err = nil
		}
		if err != nil || d.InputDigest != j.InputDigest {
			q.broken(hintReceipt, "decision %d is another one by the rules of approvals%s", d.Seq, because(err))
		}
	}
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// started holds what started against the decisions about the plan and its tasks.
func (q *ruled) started(bounds map[string]*policies.Set) {
	plan, dispatch := bounds[spec.ScopePlan] != nil, bounds[spec.ScopeDispatch] != nil
	for _, t := range q.receipt.Tasks {
		switch {
		case t.StartedAt == "" && t.Turns == 0:
		case plan && !q.passed[spec.ScopePlan+" "]:
			q.broken(hintReceipt, "task %q started and the plan was not let through", t.ID)
		case dispatch && !q.passed[spec.ScopeDispatch+" "+t.ID]:
			q.broken(hintReceipt, "task %q started and was not let through", t.ID)
		}
	}
}

// aboveRules holds what decisions say of the rules of a policy from above against the policy.
func (v *GateVerdict) aboveRules(r *spec.Receipt, source string, rules []spec.Rule) {
	has := func(d *spec.DecisionRecord, o *spec.RuleOutcome) bool {
		return slices.ContainsFunc(rules, func(rule spec.Rule) bool {
			return rule.Name == o.Name && rule.Action == o.Action &&
				(strings.Contains(d.ToolName, redact.Mark) || policies.Covers(&spec.PlanRule{Rule: rule}, d.Agent, d.ToolName))
		})
	}
	for i := range r.Decisions {
		d := &r.Decisions[i]
		for _, o := range d.Rules {
			if o.Source == source && !has(d, &o) {
				v.broken(hintReceipt, "decision %d is by a rule %q that %s does not have for the call", d.Seq, o.Name, source)
			}
		}
	}
}
