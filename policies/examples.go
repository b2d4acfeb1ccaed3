package policies

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/schemas"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// examples runs the calls written beside a rule, on that rule alone.
func (k *ruleCheck) examples() {
	if k.rule.Examples == nil {
		return
	}
	x := exampleRun{k.untouched()}
	path := k.rule.Path.Key("examples")
	for i := range k.rule.Examples.Matches {
		x.run(&k.rule.Examples.Matches[i], path.Key("matches").Index(i), true)
	}
	for i := range k.rule.Examples.Ignores {
		x.run(&k.rule.Examples.Ignores[i], path.Key("ignores").Index(i), false)
	}
}

// untouched gives the check of a rule as its document knows it: what a team says of shell commands does not change
// whether the examples of a pack or a policy file hold.
func (k *ruleCheck) untouched() *ruleCheck {
	words, err := k.vocabulary(foreign(k.rule))
	if err != nil || words == k.words {
		return k
	}
	alone := *k
	alone.words, alone.found, alone.texts = words, map[*tool]*checked{}, nil
	if !alone.read(&alone.when) {
		return k
	}
	return &alone
}

type exampleRun struct{ *ruleCheck }

func (x exampleRun) fail(code string, path spec.Path, format string, args ...any) *spec.Diagnostic {
	d := x.diags.Errorf(code, path, "rule %q: "+format, append([]any{x.rule.Name}, args...)...)
	d.File = x.rule.Doc
	return d
}

// unknownTool says that an example cannot be tried, since nothing is known of the tool.
func (x exampleRun) unknownTool(path spec.Path, name string) {
	d := x.fail("unknown-tool", path, "there is no tool %q", name)
	if d.Hint = x.toolHint(name); x.elsewhere(x.rule, name) {
		d.Severity, d.Hint = spec.Warning, "the example is tried with a team that has it"
	}
}

func (x exampleRun) run(ex *spec.CallExample, path spec.Path, want bool) {
	name := cmp.Or(x.in.Scope, ex.ToolName, onlyTool(x.rule))
	if name == "" {
		x.fail("gate-example", path, "the example does not say which tool is called").Hint = "add toolName"
		return
	}
	t := x.namedTool(x.rule, name)
	if t == nil {
		x.unknownTool(path.Key("toolName"), name)
		return
	}
	if t.subject && !x.ofSubject(ex, path) {
		return
	}
	if a := ex.AgentName; a != "" && !foreign(x.rule) && !slices.Contains(x.agentNames(), a) {
		x.fail("unknown-agent", path.Key("agentName"), "the team has no agent %q", a).Hint = spec.DidYouMean(a, x.agentNames())
	}
	input, ok := x.input(t, ex.Input, path.Key("input"))
	for i, call := range ex.History {
		ok = x.earlier(call, path.Key("history").Index(i)) && ok
	}
	if !ok {
		return
	}
	req := Request{ToolName: name, Input: input, AgentName: cmp.Or(ex.AgentName, x.rule.Agent), Role: ex.Role, Consequential: t.info.Consequential,
		Situation: ex.Situation}
	if t.subject {
		req.ofSubject()
	}
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

// ofSubject refuses what an example of a boundary cannot have: it is no call, and the subject says whose it is.
func (x exampleRun) ofSubject(ex *spec.CallExample, path spec.Path) bool {
	ok := true
	for _, given := range []struct {
		key string
		is  bool
	}{{"toolName", ex.ToolName != ""}, {"agentName", ex.AgentName != ""}, {"role", ex.Role != ""}, {"history", ex.History != nil}, {"budget", ex.Budget != nil},
		{"marks", ex.Marks != nil && x.in.Scope == spec.ScopePlan}} {
		if given.is {
			ok = false
			d := x.fail("approval-rule", path.Key(given.key), "%s has no meaning in an example of approvals", given.key)
			d.OnKey, d.Hint = true, "write what the rule looks at under input"
		}
	}
	return ok
}

// ofSubject takes from the subject of a boundary what stands beside it.
func (r *Request) ofSubject() {
	r.AgentName, _ = r.Input["assignee"].(string)
	r.Role, _ = r.Input["role"].(string)
	r.Consequential, _ = r.Input["consequential"].(bool)
}

// onlyTool gives the tool of a rule that names exactly one. Empty: there is no such tool.
func onlyTool(r *spec.PlanRule) string {
	if len(r.Tools) != 1 || strings.Contains(r.Tools[0], "*") {
		return ""
	}
	return r.Tools[0]
}

// input decodes an example as the door decodes a call.
func (x exampleRun) input(t *tool, raw []byte, path spec.Path) (map[string]any, bool) {
	input, err := canon.Arguments(string(raw))
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
		what := "call of " + t.info.Name
		if t.subject {
			what = strings.TrimSuffix(t.info.Name, "_dispatch")
		}
		x.fail("gate-example", at+v.Path, "no %s has this input: %s", what, v.Message).Hint = t.takes()
	}
	return input, len(violations) == 0
}

// earlier checks an earlier call of an example as the door once did.
func (x exampleRun) earlier(call spec.HistoryCall, path spec.Path) bool {
	t := x.namedTool(x.rule, call.ToolName)
	if t == nil {
		x.unknownTool(path.Key("toolName"), call.ToolName)
		return false
	}
	_, ok := x.input(t, call.Input, path.Key("input"))
	return ok
}

// matches judges a call by the rule alone. A tool or an agent that the rule does not look at is no match.
func (x exampleRun) matches(t *tool, req *Request) (bool, error) {
	if !looksAt(x.rule, t.info.Name) || !governs(x.rule, req.AgentName) {
		return false, nil
	}
	ch, ok := x.found[t]
	if !ok { // nobody reaches it, so the rule was not checked for it
		ch = x.check(&x.when, t)
		x.found[t] = ch
	}
	if ch.ast == nil {
		if ch.never {
			return false, nil
		}
		return false, errNotAnObject
	}
	j, err := x.judge(t, ch)
	if err != nil {
		return false, err
	}
	return j.matches(context.Background(), &variables{set: x.set, request: req})
}
