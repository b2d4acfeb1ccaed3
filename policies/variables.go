package policies

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"github.com/open-multi-agent/oma/policies/shell"
	"github.com/open-multi-agent/oma/spec"
)

// maxTextRunes bounds what an expression may add to the record.
const maxTextRunes = 512

// variables are what a rule can name. CEL asks for them one by one; what takes work is made when the first rule asks,
// once for all rules of a call.
type variables struct {
	set     *Set
	request *Request
	meter   meter
	plain   bool // the team's levels of shell commands do not reach the rule that asks
	// shells are the facts as the team's levels have them, and as they are without.
	shells  [2]any
	history any
	marks   any
	budget  any
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
	return v.made(name)
}

// made gives what takes work.
func (v *variables) made(name string) (any, bool) {
	switch name {
	case "shell":
		return v.shell(), true
	case "marks":
		if v.marks == nil {
			v.marks = texts(v.request.Marks)
		}
		return v.marks, true
	case "budget":
		if v.budget == nil {
			v.budget = budgetValue(v.request.Budget)
		}
		return v.budget, true
	case "history":
		if v.history == nil {
			v.history = v.set.historyValue(v.request)
		}
		return v.history, true
	}
	return nil, false
}

// shell gives the facts of the call's command line.
func (v *variables) shell() any {
	levels, which := v.set.levels, 0
	if v.plain && len(levels) > 0 {
		levels, which = nil, 1
	}
	if v.shells[which] == nil {
		text, ok := v.request.Input["command"].(string)
		if !ok {
			return types.NewErr("no such key: command")
		}
		facts := shell.Classify(text, levels)
		v.shells[which] = shellValue(facts)
		if facts.Incomplete { // a rule that looks must not find less than there is
			v.shells[which] = types.WrapErr(errCut)
		}
	}
	return v.shells[which]
}

// Parent implements cel.Activation.
func (v *variables) Parent() cel.Activation { return nil }

// matches evaluates the rule. A panic inside the evaluator is an error like any other.
func (j *judge) matches(ctx context.Context, v *variables) (matched bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			matched, err = false, errPanic
		}
	}()
	v.meter, v.plain = meter{ctx: ctx}, j.plain
	return boolean(j.program, v, &v.meter)
}

// describe adds what the rule says of a match. Where that fails the decision stays what it is.
func (j *judge) describe(v *variables, out *spec.RuleOutcome) {
	if j.reason != nil {
		text, err := evaluateText(j.reason, v)
		if out.Reason = text; err != nil {
			out.Error = "reasonExpression: " + cause(err)
		}
	}
	for _, n := range j.notes {
		a := spec.Annotation{Name: n.name}
		text, err := evaluateText(n.program, v)
		if a.Value = text; err != nil {
			a.Error = cause(err)
		}
		out.Annotations = append(out.Annotations, a)
	}
}

func evaluateText(p cel.Program, v *variables) (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			text, err = "", errPanic
		}
	}()
	v.meter = meter{ctx: v.meter.ctx}
	out, _, err := p.Eval(v)
	s, ok := out.(types.String)
	switch {
	case v.meter.spent:
		return "", errSpent
	case err != nil:
		return "", err
	case !ok:
		return "", errNotText
	}
	return clip(v.masked(string(s)), maxTextRunes), nil
}

// masked takes secrets out of a text. It comes before the text is cut: half a secret is found by nobody.
func (v *variables) masked(s string) string {
	if v.request.Mask == nil {
		return s
	}
	return v.request.Mask(s)
}

// clip bounds a text, in runes.
func clip(s string, most int) string {
	for i := range s {
		if most == 0 {
			return s[:i] + "…"
		}
		most--
	}
	return s
}

var (
	errPanic   = errors.New("the evaluator failed")
	errNotBool = errors.New("the result is no boolean")
	errNotText = errors.New("the result is no text")
	errCut     = errors.New("the command line has more commands, redirects or files than are listed")
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
	case errors.Is(err, errPanic), errors.Is(err, errNotBool), errors.Is(err, errNotText), errors.Is(err, errSpent):
		return msg
	}
	for _, ours := range []error{errCut, errPast, errPastSize} { // which CEL may have wrapped in text of its own
		if errors.Is(err, ours) || strings.Contains(msg, ours.Error()) {
			return ours.Error()
		}
	}
	switch {
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
