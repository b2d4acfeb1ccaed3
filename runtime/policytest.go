package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/spec"
)

// PolicyTested is what testing a whole set of rules gave.
type PolicyTested struct {
	Failed   spec.Diagnostics // examples that do not hold
	Cases    []CaseResult
	Coverage []policies.Coverage // nil: it is not known, since something is wrong with a case
	// Unasked says what is wrong with cases themselves. They have no result. Paths begin with cases.
	Unasked spec.Diagnostics
}

// CaseResult is what became of one case.
type CaseResult struct {
	Name string `json:"name"`
	// Passed is the same as having no Problems, each of which says what was expected and what was found.
	Passed   bool     `json:"passed"`
	Problems []string `json:"problems,omitempty"`
	// Action is what was found: allow, deny, suspend, ask or refused.
	Action string `json:"action"`
	spec.Decision
	input []byte // canonical. nil: it was not accepted
	role  string
}

// TestPolicy runs the examples of a policy by itself, as if an agent had every tool.
func TestPolicy(ctx context.Context, p *spec.Policy, known []spec.ToolInfo) (*PolicyTested, spec.Diagnostics) {
	out, ds := splitExamples(CheckPolicy(p, known))
	if ds.HasErrors(false) {
		return nil, ds
	}
	known = anyTeam(known)
	in := policies.RuleSet{Declared: true, Default: spec.ActionDeny, Known: known, Agents: []policies.AgentTools{{Name: "any", Tools: known}}, Alone: true}
	for i, r := range p.Rules {
		in.Rules = append(in.Rules, spec.PlanRule{Rule: r, Source: "file " + p.Name, Path: spec.Path("rules").Index(i)})
	}
	out.Coverage, _ = policies.Cover(ctx, in, nil)
	return out, ds
}

// TestTeam runs the examples of every rule in force for a team, and then cases over the whole set, each through the
// judgement of a run. o gives what a plan is judged with.
func TestTeam(ctx context.Context, b *spec.Bundle, co CompileOptions, o func(*spec.Plan) (Options, error), cases []spec.PolicyCase) (*PolicyTested, spec.Diagnostics, error) {
	plan, ds := Compile(b, co)
	out, ds := splitExamples(ds)
	if ds.HasErrors(false) {
		return nil, ds, nil
	}
	if plan == nil { // examples are all that is wrong
		if plan, _ = Compile(withoutExamples(b), co); plan == nil {
			return nil, out.Failed, nil
		}
	}
	options, err := o(plan)
	if err != nil {
		return nil, ds, err
	}
	tried, err := out.cases(ctx, plan, options, cases)
	if err != nil || out.Unasked != nil {
		return out, ds, err
	}
	g := plan.Gates
	g.Rules = withExamples(b, g.Rules)
	out.Coverage, _ = policies.Cover(ctx, ruleSet(plan, g, slices.Concat(co.Catalog.Tools, ToolsOf(plan))), tried)
	if a := plan.Approvals; a != nil {
		for _, s := range []struct {
			scope string
			rules []spec.PlanRule
		}{{spec.ScopePlan, a.Plan}, {spec.ScopeDispatch, a.Dispatch}} {
			more, _ := policies.Cover(ctx, boundarySet(plan, s.scope, withExamples(b, s.rules)), nil)
			out.Coverage = append(out.Coverage, more...)
		}
	}
	return out, ds, nil
}

// splitExamples takes the examples that do not hold out of what compiling found.
func splitExamples(ds spec.Diagnostics) (*PolicyTested, spec.Diagnostics) {
	out := &PolicyTested{}
	var rest spec.Diagnostics
	for _, d := range ds {
		if d.Code == "gate-example" && d.Severity == spec.Error {
			out.Failed = append(out.Failed, d)
		} else {
			rest = append(rest, d)
		}
	}
	return out, rest
}

// cases judges them, and gives them as calls that conditions can be tried with.
func (t *PolicyTested) cases(ctx context.Context, plan *spec.Plan, o Options, cases []spec.PolicyCase) (tried []spec.CallExample, err error) {
	k, err := NewChecker(plan, o)
	if err != nil {
		return nil, err
	}
	defer k.Close()
	for i := range cases {
		c := &cases[i]
		result, err := k.judgeCase(ctx, c)
		if err != nil {
			if err = caseProblem(c, spec.Path("cases").Index(i), err, &t.Unasked); err != nil {
				return nil, err
			}
			continue
		}
		t.Cases = append(t.Cases, *result)
		if result.input != nil {
			tried = append(tried, spec.CallExample{ToolName: c.ToolName, AgentName: c.AgentName, Role: result.role, Input: result.input, Situation: c.Situation})
		}
	}
	return tried, nil
}

// caseProblem adds what is wrong with a case itself, which then has no result. Any other error comes back.
func caseProblem(c *spec.PolicyCase, at spec.Path, err error, ds *spec.Diagnostics) error {
	var earlier *EarlierError
	switch {
	case errors.Is(err, ErrNoAgent):
		ds.Errorf("unknown-agent", at.Key("agentName"), "case %q: %v", c.Name, err)
	case errors.Is(err, ErrNoMark):
		ds.Errorf("unknown-mark", at.Key("marks"), "case %q: %v", c.Name, err)
	case errors.Is(err, errNoTool):
		ds.Errorf("unknown-tool", at.Key("toolName"), "case %q: %v", c.Name, err)
	case errors.As(err, &earlier):
		ds.Errorf("policy-case", at.Key("history").Index(earlier.Index), "case %q: no run could have made this call before: %s", c.Name, strings.ReplaceAll(earlier.Why, "\n  • ", " "))
	default:
		return err
	}
	return nil
}

var errNoTool = errors.New("there is no such tool")

// judgeCase judges a case as a run would, and holds the decision against what is expected.
func (k *Checker) judgeCase(ctx context.Context, c *spec.PolicyCase) (*CaseResult, error) {
	known := make([]string, len(k.r.o.Known))
	for i, t := range k.r.o.Known {
		known[i] = t.Name
	}
	if !slices.Contains(known, c.ToolName) {
		return nil, fmt.Errorf("%w as %q: %s", errNoTool, c.ToolName, spec.DidYouMean(c.ToolName, known))
	}
	j, err := k.Check(ctx, CheckCall{AgentName: c.AgentName, ToolName: c.ToolName, Arguments: string(c.Input), Role: c.Role, Situation: c.Situation})
	if err != nil {
		return nil, err
	}
	out := &CaseResult{Name: c.Name, Action: Asked(j.Decision), Decision: j.Decision, input: j.Canonical, role: j.Role}
	out.hold(&c.Expect)
	out.Passed = out.Problems == nil
	return out, nil
}

// Asked gives what the gate asks for: allow, deny, suspend, ask, or refused for a call that met no gate.
func Asked(d spec.Decision) string {
	switch {
	case d.Refused != "":
		return "refused"
	case d.Asks():
		return d.GateAction
	case d.Allowed():
		return spec.ActionAllow
	}
	return spec.ActionDeny
}

// hold compares.
func (r *CaseResult) hold(want *spec.PolicyExpect) {
	miss := func(what, expected, found string) {
		r.Problems = append(r.Problems, fmt.Sprintf("%s: expected %s, found %s", what, expected, found))
	}
	if r.Action != want.Action {
		found := r.Action
		if r.Refused != "" {
			found += " (" + r.Refused + ")"
		}
		miss("action", want.Action, found)
	}
	var rules []string
	for _, o := range r.Rules {
		rules = append(rules, o.Name)
	}
	if want.Rules != nil && !sameNames(*want.Rules, rules) {
		miss("rules", nameList(*want.Rules), nameList(rules))
	}
	if !strings.Contains(r.Reason, want.Reason) {
		found := "none"
		if r.Reason != "" {
			found = fmt.Sprintf("%q", r.Reason)
		}
		miss("reason", fmt.Sprintf("a part %q", want.Reason), found)
	}
	if want.Marks != nil && !sameNames(*want.Marks, r.Marks) {
		miss("marks", nameList(*want.Marks), nameList(r.Marks))
	}
}

func sameNames(a, b []string) bool {
	return slices.Equal(slices.Compact(slices.Sorted(slices.Values(a))), slices.Compact(slices.Sorted(slices.Values(b))))
}

func nameList(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(names))), ", ")
}
