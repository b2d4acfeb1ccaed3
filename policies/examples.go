package policies

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"

	"github.com/open-multi-agent/oma/schemas"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// examples runs the calls written beside a rule, on that rule alone.
func (c *compiler) examples(r *spec.PlanRule, loose *cel.Ast, all map[*tool]*checked, price *pricing) {
	if r.Examples == nil {
		return
	}
	x := exampleRun{compiler: c, rule: r, loose: loose, all: all, price: price}
	path := r.Path.Key("examples")
	for i := range r.Examples.Matches {
		x.run(&r.Examples.Matches[i], path.Key("matches").Index(i), true)
	}
	for i := range r.Examples.Ignores {
		x.run(&r.Examples.Ignores[i], path.Key("ignores").Index(i), false)
	}
}

type exampleRun struct {
	*compiler
	rule  *spec.PlanRule
	loose *cel.Ast
	all   map[*tool]*checked
	price *pricing
}

func (x *exampleRun) fail(code string, path spec.Path, format string, args ...any) *spec.Diagnostic {
	d := x.diags.Errorf(code, path, "rule %q: "+format, append([]any{x.rule.Name}, args...)...)
	d.File = x.rule.Doc
	return d
}

func (x *exampleRun) run(ex *spec.CallExample, path spec.Path, want bool) {
	name := ex.ToolName
	if name == "" && len(x.rule.Tools) == 1 {
		name = x.rule.Tools[0]
	}
	if name == "" {
		x.fail("gate-example", path, "the example does not say which tool is called").Hint = "add toolName"
		return
	}
	t := x.namedTool(x.rule, name)
	if t == nil {
		x.fail("unknown-tool", path.Key("toolName"), "there is no tool %q", name).Hint = x.toolHint(name)
		return
	}
	if a := ex.AgentName; a != "" && !fromFile(x.rule) && !slices.Contains(x.agentNames(), a) {
		x.fail("unknown-agent", path.Key("agentName"), "the team has no agent %q", a).Hint = spec.DidYouMean(a, x.agentNames())
	}
	input, ok := x.input(t, ex, path)
	if !ok {
		return
	}
	req := Request{ToolName: name, Input: input, AgentName: cmp.Or(ex.AgentName, x.rule.Agent), Role: ex.Role, Consequential: t.info.Consequential}
	got, err := x.matches(t, &req)
	switch {
	case err != nil:
		x.fail("gate-example", path, "the rule fails on this call, which denies it: %s", cause(err))
	case want && !got:
		x.fail("gate-example", path, "this call must match, and does not")
	case got && !want:
		x.fail("gate-example", path, "this call must not match, and does")
	}
}

// input decodes an example as the door decodes a call.
func (x *exampleRun) input(t *tool, ex *spec.CallExample, path spec.Path) (map[string]any, bool) {
	path = path.Key("input")
	input, err := canon.Arguments(string(ex.Input))
	if err != nil {
		x.fail("gate-example", path, "the example's input is not usable: %v", err)
		return nil, false
	}
	canon.Shape(t.schema, input)
	if t.validator == nil {
		if t.validator, err = schemas.Compile(t.info.InputSchema); err != nil {
			x.fail("tool-schema", path, "tool %q: %v", t.info.Name, err)
			return nil, false
		}
	}
	violations := t.validator.Validate(map[string]any(input))
	for _, v := range violations {
		at := path
		if v.Path != "" && !strings.HasPrefix(string(v.Path), "[") {
			at += "."
		}
		x.fail("gate-example", at+v.Path, "no call of %s has this input: %s", t.info.Name, v.Message).Hint = fields(t.info.Name, t.input, "takes")
	}
	return input, len(violations) == 0
}

// matches judges a call by the rule alone. A tool or an agent that the rule does not look at is no match.
func (x *exampleRun) matches(t *tool, req *Request) (bool, error) {
	if x.rule.Tools != nil && !slices.Contains(x.rule.Tools, t.info.Name) || !governs(x.rule, req.AgentName) {
		return false, nil
	}
	ch, ok := x.all[t]
	if !ok { // nobody reaches it, so the rule was not checked for it
		ch = x.check(x.rule, x.loose, t, x.price)
		x.all[t] = ch
	}
	if ch.ast == nil {
		if ch.never {
			return false, nil
		}
		return false, fmt.Errorf("no such overload")
	}
	j, err := x.program(x.rule, ch)
	if err != nil {
		return false, err
	}
	return j.matches(context.Background(), &variables{request: req})
}
