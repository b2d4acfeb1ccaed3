package policies

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

// Request is one call to be judged. Input is the canonical value: decoded, shaped and valid.
type Request struct {
	ToolName   string
	Input      map[string]any
	AgentName  string
	Role       string // the required role the task fills; empty: none
	RunID      string
	TaskID     string
	ToolCallID string
	// Consequential says that the tool is.
	Consequential bool
	// Mask takes secrets out of what rules add to the record, before that is cut. nil: nothing does.
	Mask func(string) string
	// Situation is what came before. Of History the last MaxHistory calls count.
	spec.Situation
}

// Decide judges one call. It changes nothing and gives the same answer for the same call. Whatever goes wrong is a
// denial with outcome error: an agent or tool the set does not know, a rule that fails, a context that has ended.
//
// Where the strictest that rules say is suspend or ask, the decision neither lets the call run nor denies it: that is for
// people, and Marks are those that the call sets if they let it run.
//
// Every rule in scope is evaluated and every match recorded, so the order of rules decides nothing.
func (s *Set) Decide(ctx context.Context, r Request) spec.Decision {
	switch {
	case s == nil:
		return broken("the rules are not in force")
	case !s.declared:
		return spec.Decision{}
	}
	g, ok := s.calls[callKey{r.AgentName, r.ToolName}]
	if !ok {
		return broken(fmt.Sprintf("no rule was compiled for agent %q and tool %q", r.AgentName, r.ToolName))
	}
	if len(g.rules) > 0 && g.input.closed() {
		for name := range r.Input {
			if g.input.fields[name] == nil {
				return broken("the input has a field that the tool does not declare")
			}
		}
	}
	v := verdict{permit: s.permits(&r)}
	vars := variables{set: s, request: &r}
	for _, j := range g.rules {
		if ctx.Err() != nil {
			break
		}
		matched, err := j.matches(ctx, &vars)
		if err != nil || matched {
			v.add(j, &vars, err)
		}
	}
	if ctx.Err() != nil {
		d := broken("the call was cancelled before it was judged")
		d.Rules = v.rules
		return d
	}
	return v.decision(r.Marks)
}

// permits is the default for a call. An external agent's request is about its own tools, which nobody granted: whatever the
// default is for tools of ours, it may look and think, and else only what a rule allows.
func (s *Set) permits(r *Request) bool {
	if r.ToolName != spec.PermissionTool {
		return s.permit
	}
	kind, _ := r.Input["kind"].(string)
	return kind == "read" || kind == "search" || kind == "think"
}

func broken(reason string) spec.Decision {
	return spec.Decision{Gated: true, GateAction: spec.ActionDeny, GateOutcome: outcomeError, Reason: reason}
}

const (
	outcomeDecided = "decided"
	outcomeError   = "error"
	outcomeMatched = "matched"
)

// verdict gathers what the rules say. A call runs only if nothing forbids it and something permits it.
type verdict struct {
	permit  bool     // the default allows
	worst   int      // the strictest level so far; 0: nothing forbids
	reasons []string // of that level
	rules   []spec.RuleOutcome
	marks   []string // that matching rules set, if the call runs
}

// The levels of forbidding.
const (
	free = iota
	asks
	suspends
	denies
	fails
)

func (v *verdict) add(j *judge, vars *variables, err error) {
	r := j.rule
	out := spec.RuleOutcome{Name: r.Name, Source: r.Source, Action: r.Action, Outcome: outcomeMatched}
	why := r.Reason
	if err != nil {
		out.Outcome, out.Error = outcomeError, cause(err)
		why = "it could not be evaluated: " + out.Error
	} else {
		j.describe(vars, &out)
		why = cmp.Or(out.Reason, why)
		if r.Mark != "" {
			v.marks = append(v.marks, r.Mark)
		}
	}
	v.rules = append(v.rules, out)
	level := levelOfOutcome(&out)
	if level == free || level < v.worst {
		return
	}
	if level > v.worst {
		v.worst, v.reasons = level, nil
	}
	reason := fmt.Sprintf("rule %q", r.Name)
	if why != "" {
		reason += ": " + why
	}
	v.reasons = append(v.reasons, reason)
}

// levelOf takes an action nobody knows for a denial.
func levelOf(action string) int {
	switch action {
	case spec.ActionAllow, spec.ActionWarn:
		return free
	case spec.ActionAsk:
		return asks
	case spec.ActionSuspend:
		return suspends
	}
	return denies
}

// levelOfOutcome takes whatever is no match for a failure.
func levelOfOutcome(o *spec.RuleOutcome) int {
	if o.Outcome != outcomeMatched {
		return fails
	}
	return levelOf(o.Action)
}

// permits says that what a rule said lets a call run under default deny.
func permits(o *spec.RuleOutcome) bool {
	return o.Outcome == outcomeMatched && o.Action == spec.ActionAllow && !foreign(&spec.PlanRule{Source: o.Source})
}

// Concluded gives the action and the outcome that follow from all that rules said of a call: the strictest counts. permit is
// the default, for a call that nothing forbids and nothing permits. A person who is asked permits the call, so that no
// default stands in front of the question.
func Concluded(rules []spec.RuleOutcome, permit bool) (action, outcome string) {
	worst := free
	for i := range rules {
		worst = max(worst, levelOfOutcome(&rules[i]))
		permit = permit || permits(&rules[i])
	}
	switch {
	case worst == fails:
		return spec.ActionDeny, outcomeError
	case worst == suspends:
		return spec.ActionSuspend, outcomeDecided
	case worst == asks:
		return spec.ActionAsk, outcomeDecided
	case worst == free && permit:
		return spec.ActionAllow, outcomeDecided
	}
	return spec.ActionDeny, outcomeDecided
}

// decision sums up. marks are those set before.
func (v *verdict) decision(marks []string) spec.Decision {
	d := spec.Decision{Gated: true, Rules: v.rules, Reason: strings.Join(v.reasons, "; ")}
	d.GateAction, d.GateOutcome = Concluded(v.rules, v.permit)
	switch {
	case d.GateAction != spec.ActionDeny:
		d.Marks = NewMarks(v.marks, marks)
	case v.worst == free:
		d.Reason = "no rule allows the call, and calls are denied by default"
	}
	return d
}

// NewMarks gives the marks that were not set before, sorted.
func NewMarks(marks, before []string) (fresh []string) {
	for _, m := range marks {
		if !slices.Contains(before, m) && !slices.Contains(fresh, m) {
			fresh = append(fresh, m)
		}
	}
	slices.Sort(fresh)
	return fresh
}
