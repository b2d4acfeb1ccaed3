package policies

import (
	"context"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/open-multi-agent/oma/spec"
)

// trace is a rule as it was written, for all tools, so that it can be evaluated again with a record of every value.
type trace struct {
	env   *cel.Env
	ast   *cel.Ast
	plain bool // the team's levels of shell commands do not reach it
}

// Explain adds to a decision what the rules that forbade the call asked and what they read. It evaluates each of them
// once more; the decision itself stays as it is. Values are of the call, so a caller redacts them.
func (s *Set) Explain(ctx context.Context, r Request, d *spec.Decision) {
	if s == nil || d.Allowed() {
		return
	}
	g := s.calls[callKey{r.AgentName, r.ToolName}]
	if g == nil {
		return
	}
	vars := variables{set: s, request: &r}
	for i := range d.Rules {
		out := &d.Rules[i]
		if levelOf(out.Action) == free && out.Outcome == outcomeMatched {
			continue
		}
		for _, j := range g.rules {
			if j.rule.Name == out.Name && j.rule.Source == out.Source {
				out.When, out.Values = j.rule.When, s.values(ctx, j.rule, &vars)
			}
		}
	}
}

// Reads says whether a rule that judges calls of the agent and the tool reads a variable.
func (s *Set) Reads(agent, tool, variable string) bool {
	if s == nil || s.calls[callKey{agent, tool}] == nil {
		return false
	}
	return slices.ContainsFunc(s.calls[callKey{agent, tool}].rules, func(j *judge) bool {
		t, ok := s.traces[j.rule]
		return ok && reads(t.ast, variable)
	})
}

// Seen is one rule that looked at a call.
type Seen struct {
	Rule    *spec.PlanRule
	Outcome string // matched, ignored or error
	Error   string
	Values  []spec.ReadValue
}

// Look gives every rule that judges calls of the request's agent and tool, with what each one read and said.
func (s *Set) Look(ctx context.Context, r Request) (all []Seen) {
	if s == nil || s.calls[callKey{r.AgentName, r.ToolName}] == nil {
		return nil
	}
	vars := variables{set: s, request: &r}
	for _, j := range s.calls[callKey{r.AgentName, r.ToolName}].rules {
		seen := Seen{Rule: j.rule, Outcome: "ignored", Values: s.values(ctx, j.rule, &vars)}
		switch matched, err := j.matches(ctx, &vars); {
		case err != nil:
			seen.Outcome, seen.Error = outcomeError, cause(err)
		case matched:
			seen.Outcome = outcomeMatched
		}
		all = append(all, seen)
	}
	return all
}

// values evaluates a rule and gives what it read, in the order of the text. What && and || left out was not read.
func (s *Set) values(ctx context.Context, r *spec.PlanRule, vars *variables) (out []spec.ReadValue) {
	defer func() {
		if recover() != nil { // the decision stands; there is only nothing more to say of it
			out = nil
		}
	}()
	t, ok := s.traces[r]
	if !ok {
		return nil
	}
	metered, err := meterLoops(t.env, t.ast)
	if err != nil {
		return nil
	}
	p, err := t.env.Program(metered, cel.EvalOptions(cel.OptTrackState))
	if err != nil {
		return nil
	}
	vars.plain, vars.meter = t.plain, meter{ctx: ctx}
	_, details, _ := p.Eval(vars)
	if details == nil {
		return nil
	}
	seen := map[string]bool{}
	for _, read := range readsOf(metered.NativeRep().Expr(), nil) {
		v, known := details.State().Value(read.node)
		if !known || seen[read.path] {
			continue
		}
		seen[read.path] = true
		out = append(out, spec.ReadValue{Path: read.path, Value: vars.show(v)})
	}
	return out
}

// readOf is a place in an expression where a value of the call is read, and what the rule calls it.
type readOf struct {
	node int64
	path string
}

// readsOf finds the longest paths that begin with a variable, in the order of the text.
func readsOf(e ast.Expr, shadow []string) (out []readOf) {
	if path, ok := readPath(e, shadow); ok {
		return []readOf{{e.ID(), path}}
	}
	if e.Kind() == ast.ComprehensionKind {
		c := e.AsComprehension()
		inner := append(shadow[:len(shadow):len(shadow)], c.IterVar(), c.IterVar2(), c.AccuVar())
		out = append(readsOf(c.IterRange(), shadow), readsOf(c.AccuInit(), shadow)...)
		out = append(out, readsOf(c.LoopStep(), inner)...)
		return append(out, readsOf(c.Result(), inner)...)
	}
	for _, child := range children(e) {
		out = append(out, readsOf(child, shadow)...)
	}
	return out
}

// readPath gives a.b.c, has(a.b) and a.?b of a variable, and what is read of classifyBash.
func readPath(e ast.Expr, shadow []string) (string, bool) {
	switch e.Kind() {
	case ast.IdentKind:
		name := e.AsIdent()
		return name, !slices.Contains(shadow, name) && name != tickName
	case ast.SelectKind:
		path, ok := readPath(e.AsSelect().Operand(), shadow)
		path += "." + e.AsSelect().FieldName()
		if e.AsSelect().IsTestOnly() {
			path = "has(" + path + ")"
		}
		return path, ok
	case ast.CallKind:
		c := e.AsCall()
		if c.FunctionName() == operators.OptSelect && len(c.Args()) == 2 {
			path, ok := readPath(c.Args()[0], shadow)
			field, _ := stringOf(c.Args()[1])
			return path + ".?" + field, ok
		}
		if c.FunctionName() == "classifyBash" && len(c.Args()) == 1 {
			path, ok := readPath(c.Args()[0], shadow)
			return "classifyBash(" + path + ")", ok
		}
	}
	return "", false
}
