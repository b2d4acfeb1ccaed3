package policies

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

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
}

// Decide judges one call. It changes nothing and gives the same answer for the same call. Whatever goes wrong is a
// denial with outcome error: an agent or tool the set does not know, a rule that fails, a context that has ended.
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
	v := verdict{permitted: s.permit}
	vars := variables{request: &r}
	for _, j := range g.rules {
		if ctx.Err() != nil {
			break
		}
		matched, err := j.matches(ctx, &vars)
		if err != nil || matched {
			v.add(j.rule, err)
		}
	}
	if ctx.Err() != nil {
		d := broken("the call was cancelled before it was judged")
		d.Rules = v.rules
		return d
	}
	return v.decision()
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
	permitted bool
	worst     int      // the strictest level so far: an index into levels; 0: nothing forbids
	reasons   []string // of that level
	rules     []spec.RuleOutcome
}

// The levels of forbidding.
const (
	free = iota
	asks
	suspends
	denies
	fails
)

func (v *verdict) add(r *spec.PlanRule, err error) {
	out := spec.RuleOutcome{Name: r.Name, Source: r.Source, Action: r.Action, Outcome: outcomeMatched}
	level, why := levelOf(r.Action), r.Reason
	if err != nil {
		out.Outcome, out.Error = outcomeError, cause(err)
		level, why = fails, "it could not be evaluated: "+out.Error
	} else if level == asks || level == suspends {
		why = strings.TrimPrefix(r.Reason+"; it needs a person's approval, which is not available in this version", "; ")
	}
	v.rules = append(v.rules, out)
	v.permitted = v.permitted || err == nil && permits(r)
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

func (v *verdict) decision() spec.Decision {
	d := spec.Decision{Gated: true, GateAction: spec.ActionDeny, GateOutcome: outcomeDecided, Rules: v.rules}
	switch {
	case v.worst == fails:
		d.GateOutcome, d.Reason = outcomeError, strings.Join(v.reasons, "; ")
	case v.worst > free:
		d.Reason = strings.Join(v.reasons, "; ")
	case !v.permitted:
		d.Reason = "no rule allows the call, and calls are denied by default"
	default:
		d.GateAction = spec.ActionAllow
	}
	return d
}

// variables are what a rule can name. CEL asks for them one by one.
type variables struct {
	request *Request
	meter   meter
}

// ResolveName implements cel.Activation.
func (v *variables) ResolveName(name string) (any, bool) {
	switch name {
	case "input":
		return v.request.Input, true
	case "toolName":
		return v.request.ToolName, true
	case "agentName":
		return v.request.AgentName, true
	case "role":
		return v.request.Role, true
	case "consequential":
		return v.request.Consequential, true
	case "runId":
		return v.request.RunID, true
	case "taskId":
		return v.request.TaskID, true
	case "toolCallId":
		return v.request.ToolCallID, true
	case tickName:
		return v.meter.tick(), true
	}
	return nil, false
}

// Parent implements cel.Activation.
func (v *variables) Parent() cel.Activation { return nil }

var (
	errPanic   = errors.New("the evaluator failed")
	errNotBool = errors.New("the result is no boolean")
	errSpent   = errors.New("it takes more steps than allowed")
)

// boolean runs a program. Anything but true or false is an error, and so is whatever a loop that was stopped gives.
func boolean(p cel.Program, vars any, m *meter) (bool, error) {
	out, _, err := p.Eval(vars)
	switch b, ok := out.(types.Bool); {
	case m.spent:
		return false, errSpent
	case err != nil:
		return false, err
	case !ok:
		return false, errNotBool
	default:
		return bool(b), nil
	}
}

// cause says why a rule failed in words that hold nothing of the call: CEL's own errors quote keys and values.
func cause(err error) string {
	var field missingField
	msg := err.Error()
	switch {
	case errors.As(err, &field):
		return fmt.Sprintf("the input has no field %q", string(field))
	case errors.Is(err, errPanic), errors.Is(err, errNotBool), errors.Is(err, errSpent):
		return msg
	case strings.Contains(msg, "no such key"), strings.Contains(msg, "no such attribute"):
		return "it reads a field that is not there"
	case strings.Contains(msg, "no such overload"):
		return "a value has a type that the rule does not expect"
	case strings.Contains(msg, "out of bounds"), strings.Contains(msg, "out of range"):
		return "it reads past the end of a list"
	case strings.Contains(msg, "by zero"), strings.Contains(msg, "overflow"):
		return "its arithmetic fails"
	}
	return "its evaluation fails"
}
