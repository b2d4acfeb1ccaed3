package runtime

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/spec"
)

// approvals compiles what is put before people, and who may decide. It comes behind gates, whose marks the rules of a
// task may read.
func (c *compiler) approvals() {
	d := c.deciders()
	if c.team.Approvals == nil && d.reviewers == nil {
		return
	}
	a := &spec.Approvals{}
	if c.team.Approvals != nil {
		*a = *c.team.Approvals
	}
	if len(a.Reviewers) == 0 {
		a.Reviewers = d.reviewers
	}
	const at = spec.Path("approvals")
	c.diags = append(c.diags, policies.CheckReviewers(a, at)...)
	c.reachable(&d, a)
	p := &spec.PlanApprovals{RequireConsequentialConfirmation: a.RequireConsequentialConfirmation, Reviewers: a.Reviewers, Expires: a.Expires,
		Quorum: max(a.Quorum, d.quorum, 1), SeparateApprover: a.SeparateApprover || d.separate}
	all := slices.Clone(c.plan.Gates.Rules)
	p.Plan = c.boundary(spec.ScopePlan, a.Plan, at.Key("plan"), &all)
	p.Dispatch = c.boundary(spec.ScopeDispatch, a.Dispatch, at.Key("dispatch"), &all)
	c.plan.Approvals = p
	c.subjects(p)
}

// boundary compiles the rules of one scope. all are the rules before them, whose names are taken.
func (c *compiler) boundary(scope string, rules []spec.Rule, at spec.Path, all *[]spec.PlanRule) []spec.PlanRule {
	var out []spec.PlanRule
	for i, r := range rules {
		out = append(out, spec.PlanRule{Rule: r, Source: "team", Path: at.Index(i)})
	}
	taken := len(*all)
	*all = append(*all, out...)
	c.newNames(*all, taken)
	set, diags := policies.Compile(boundarySet(c.plan, scope, out))
	c.diags = append(c.diags, diags...)
	if set == nil {
		return out
	}
	return set.Rules()
}

// boundarySet is what the rules of a boundary are compiled against.
func boundarySet(p *spec.Plan, scope string, rules []spec.PlanRule) policies.RuleSet {
	var agents, roles []string
	for i := range p.Agents {
		agents = append(agents, p.Agents[i].Name)
	}
	if p.Governance != nil {
		roles = p.Governance.RequiredRoles
	}
	in := policies.Boundary(scope, rules, agents, roles)
	in.Marks = []string{}
	for _, r := range p.Gates.Rules {
		if r.Mark != "" && !slices.Contains(in.Marks, r.Mark) {
			in.Marks = append(in.Marks, r.Mark)
		}
	}
	return in
}

// subjects refuses a plan that is larger than what rules of approvals were checked for.
func (c *compiler) subjects(p *spec.PlanApprovals) {
	if len(p.Plan) > 0 {
		if err := boundarySet(c.plan, spec.ScopePlan, p.Plan).Fits(policies.PlanSubject(c.plan)); err != nil {
			c.diags.Errorf("approval-subject", "approvals.plan", "this plan is more than its rules can look at: %v", err).Hint = tooLarge
		}
	}
	for i := range c.plan.Tasks {
		t := &c.plan.Tasks[i]
		if len(p.Dispatch) == 0 {
			break
		}
		if err := boundarySet(c.plan, spec.ScopeDispatch, p.Dispatch).Fits(policies.TaskSubject(c.plan, t)); err != nil {
			c.diags.Errorf("approval-subject", "approvals.dispatch", "task %q is more than its rules can look at: %v", t.Title, err).Hint = tooLarge
		}
	}
}

const tooLarge = "make it smaller, or leave the rules out"

// confirmation warns where requireConsequentialConfirmation asks for what nobody can give, or asks for nothing. It comes
// behind the flags of the plan.
func (c *compiler) confirmation() {
	p := c.plan.Approvals
	if p == nil || !p.RequireConsequentialConfirmation {
		return
	}
	at := spec.Path("approvals.requireConsequentialConfirmation")
	asks := func(r spec.PlanRule) bool { return r.Asks() }
	switch {
	case !slices.Contains(c.plan.Flags, spec.FlagConsequential):
		why := "no agent at work holds a consequential tool"
		if c.plan.Governance != nil {
			why = fmt.Sprintf("governanceIntent is %s", c.plan.Governance.GovernanceIntent)
		}
		d := c.diags.Warnf("approval-confirmation", at, "requireConsequentialConfirmation has no effect: %s, so the run does not carry the flag %s", why, spec.FlagConsequential)
		d.OnKey, d.Hint = true, "leave it out, and let a rule of gates ask"
	case slices.ContainsFunc(c.plan.Gates.Rules, asks): // an approval of the call is one too
	case !slices.ContainsFunc(p.Plan, asks):
		d := c.diags.Warnf("approval-confirmation", at, "requireConsequentialConfirmation denies every consequential call: nobody is asked about the plan")
		d.OnKey, d.Hint = true, "add a rule to approvals.plan whose action is suspend or ask"
	case !slices.ContainsFunc(p.Plan, func(r spec.PlanRule) bool { return asks(r) && c.foreseen(r.Name) }):
		d := c.diags.Warnf("approval-confirmation", at, "requireConsequentialConfirmation denies every consequential call: no rule that asks about the plan matches this one")
		d.OnKey, d.Hint = true, "let a rule of approvals.plan match plans that are consequential"
	}
}

// foreseen says whether a rule over the plan matches it.
func (c *compiler) foreseen(rule string) bool {
	seen, err := ForeseeApprovals(context.Background(), c.plan)
	return err == nil && seen[rule].Matches
}

// Foreseen is what a rule of approvals says of a plan before it runs, when no task has a mark.
type Foreseen struct {
	Tasks []string // of a rule over tasks: those it matches
	// Matches says that it matches the plan, or some task.
	Matches bool
	// Error says why it failed, which denies. Empty: it did not.
	Error string
}

// ForeseeApprovals asks the rules of approvals about a plan, by the name of each. Names differ over all rules.
func ForeseeApprovals(ctx context.Context, p *spec.Plan) (map[string]Foreseen, error) {
	bounds, err := boundsOf(p)
	if err != nil {
		return nil, err
	}
	out := map[string]Foreseen{}
	note := func(scope string, r policies.Request, task string) {
		set := bounds[scope]
		if set == nil {
			return
		}
		r.ToolName = scope
		r.Consequential, _ = r.Input["consequential"].(bool)
		for _, o := range set.Decide(ctx, r).Rules {
			f := out[o.Name]
			if f.Error = cmp.Or(f.Error, o.Error); o.Outcome != "error" {
				f.Matches = true
			}
			if task != "" {
				f.Tasks = append(f.Tasks, task)
			}
			out[o.Name] = f
		}
	}
	note(spec.ScopePlan, policies.Request{Input: policies.PlanSubject(p)}, "")
	for i := range p.Tasks {
		t := &p.Tasks[i]
		note(spec.ScopeDispatch, policies.Request{Input: policies.TaskSubject(p, t), AgentName: t.Assignee, Role: t.Role, TaskID: t.ID}, t.ID)
	}
	return out, nil
}
