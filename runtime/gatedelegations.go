package runtime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
)

// callerOf gives the task, or the delegated run, in which a delegated run was asked for. False: it is a task.
func callerOf(id string) (string, bool) {
	i := strings.LastIndex(id, "/call/")
	if i < 0 {
		return "", false
	}
	j := strings.LastIndexByte(id[:i], '/')
	if j < 0 {
		return "", false
	}
	task := id[:j]
	if k := strings.LastIndex(task, "/try/"); k >= 0 && !strings.Contains(task[k+len("/try/"):], "/") {
		task = task[:k] // it was asked for in a further attempt
	}
	at, ok := placeIn(task, id)
	return task, ok && at.again == 0
}

// delegations holds each delegated run against the decision that let it, and each such decision against what came of it.
func (v *GateVerdict) delegations(r *spec.Receipt) {
	assignee, let := map[string]string{}, map[int]bool{}
	for _, t := range r.Tasks {
		assignee[t.ID] = t.Assignee
	}
	for _, d := range r.Delegations {
		var by spec.DecisionRecord
		if d.Decision > 0 && d.Decision <= len(r.Decisions) {
			by = r.Decisions[d.Decision-1]
		}
		caller, ok := callerOf(d.ID)
		_, twice := assignee[d.ID]
		switch {
		case !ok || assignee[caller] == "" || twice || assignee[caller] != d.Caller || d.Role != "" || d.Label != "" || len(d.DependsOn) > 0 || d.Title != core.DelegationTitle(d.ID):
			v.broken(hintReceipt, "delegated run %q stands nowhere", d.ID)
		case by.TaskID != caller || by.ToolName != spec.DelegateTool || by.Scope != "" || !by.Allowed() || let[d.Decision]:
			v.broken(hintReceipt, "delegated run %q was let by nothing", d.ID)
		}
		assignee[d.ID], let[d.Decision] = d.Assignee, true
	}
	for _, d := range r.Decisions {
		if d.ToolName == spec.DelegateTool && d.Scope == "" && d.Allowed() && !let[d.Seq] {
			v.broken(hintReceipt, "decision %d let an agent delegate, and nothing is said of what came of it", d.Seq)
		}
	}
}

// depths holds delegated runs against how deep, and in no circle, the plan lets them be.
func (v *GateVerdict) depths(r *spec.Receipt, p *spec.Plan) {
	chains := map[string][]string{}
	for _, t := range r.Tasks {
		chains[t.ID] = []string{t.Assignee}
	}
	g := guard{plan: p}
	for _, d := range r.Delegations {
		caller, _ := callerOf(d.ID)
		chain := chains[caller]
		code, text := g.undelegable(spec.DelegateTool, fmt.Sprintf(`{"target_agent":%q}`, d.Assignee), chain)
		if code != "" || p.Delegation == nil || !grants(p, d.Caller, spec.DelegateTool) {
			v.broken(hintReceipt, "delegated run %q is one that its plan does not allow: %s", d.ID, text)
			return
		}
		chains[d.ID] = append(slices.Clone(chain), d.Assignee)
	}
}

func grants(p *spec.Plan, agent, tool string) bool {
	a := p.Agent(agent)
	return a != nil && a.Has(tool)
}
