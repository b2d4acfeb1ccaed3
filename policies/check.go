package policies

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"

	"github.com/open-multi-agent/oma/policies/shell"
	"github.com/open-multi-agent/oma/spec"
)

// expression is one CEL text of a rule.
type expression struct {
	text  string
	path  spec.Path
	want  *cel.Type
	loose *cel.Ast // checked with input of any type
}

// checked is what checking one expression against one tool gave.
type checked struct {
	tool     *tool
	ast      *cel.Ast // nil: never matches, or findings say why not
	never    bool
	cost     uint64
	findings []finding
}

// ruleCheck is one rule on its way to its calls.
type ruleCheck struct {
	*compiler
	rule  *spec.PlanRule
	words *vocabulary
	scope scope
	price *pricing
	when  expression
	found map[*tool]*checked // of when
	// texts are reasonExpression, under the empty name, and annotate.
	texts map[string]*text
}

// text is an expression that gives one, with what checking it gave for each tool.
type text struct {
	expression
	found map[*tool]*checked
}

// rule compiles one rule and puts it before the calls it governs.
func (c *compiler) rule(r *spec.PlanRule) {
	r.AppliesTo = []spec.RuleCost{}
	c.action(r)
	if !c.toolNames(r) {
		return
	}
	words, err := c.vocabulary(above(r))
	if err != nil {
		c.report(r, nil, finding{kind: "type", message: fmt.Sprintf("cannot be checked: %v", err)})
		return
	}
	k := &ruleCheck{compiler: c, rule: r, words: words, scope: c.scope(r), found: map[*tool]*checked{}, texts: map[string]*text{},
		price: &pricing{limit: c.limit, steps: map[string]uint64{}},
		when:  expression{text: r.When, path: r.Path.Key("when"), want: cel.BoolType}}
	before := len(c.diags)
	if !k.expressions() || c.diags[before:].HasErrors(false) {
		return
	}
	judges := k.judges()
	if len(judges) == 0 && !foreign(r) {
		k.dead()
	}
	c.set.traces[r] = trace{words.loose, k.when.loose, words == c.plain}
	k.examples()
}

// expressions checks when, and what the rule says of a match. False: when cannot be read at all.
func (k *ruleCheck) expressions() bool {
	if !k.read(&k.when) {
		return false
	}
	for _, t := range k.scope.tools {
		k.found[t] = k.check(&k.when, t)
	}
	k.reportAll(&k.when, k.found)
	k.past(&k.when)
	if k.rule.ReasonExpression != "" {
		k.text("", expression{text: k.rule.ReasonExpression, path: k.rule.Path.Key("reasonExpression")})
	}
	for _, name := range sortedKeys(k.rule.Annotate) {
		k.text(name, expression{text: k.rule.Annotate[name], path: k.rule.Path.Key("annotate").Key(name)})
	}
	return true
}

// text checks an expression that speaks of a match, for the tools that the rule can match.
func (k *ruleCheck) text(name string, x expression) {
	x.want = cel.StringType
	if !k.read(&x) {
		return
	}
	t := &text{expression: x, found: map[*tool]*checked{}}
	for tool, ch := range k.found {
		if ch.ast != nil {
			t.found[tool] = k.check(&x, tool)
		}
	}
	k.reportAll(&x, t.found)
	k.past(&x)
	k.texts[name] = t
}

// read parses an expression and finds what is wrong with it whatever tool is called.
func (k *ruleCheck) read(x *expression) bool {
	loose, root, iss := parseAndCheck(k.words.loose, x.text)
	if iss.Err() != nil {
		for _, f := range explain(iss, k.provider, root, k.nameable()) {
			if f.object != nil {
				f.hint = fields(cmp.Or(f.path, "it"), f.object, "has")
			}
			k.report(k.rule, x, f)
		}
		return false
	}
	x.loose = loose
	for _, f := range append(inspect(loose, k.price.steps), k.suspicious(loose)...) {
		k.report(k.rule, x, f)
	}
	return true
}

// action checks what a rule does, apart from when.
func (c *compiler) action(r *spec.PlanRule) {
	path := r.Path.Key("action")
	switch r.Action {
	case spec.ActionDeny, spec.ActionSuspend, spec.ActionAsk, spec.ActionWarn:
	case spec.ActionAllow:
		if c.set.permit && !ofRequests(r) {
			d := c.diags.Errorf("gate-no-effect", path, "rule %q: allow has no effect, since everything is allowed by default", r.Name)
			d.File, d.Hint = r.Doc, "put the exception into the deny rule's when, or write default: deny"
			if c.in.Scope != "" {
				d.Hint = "put the exception into the other rule's when"
			}
		} else if foreign(r) {
			d := c.diags.Warnf("gate-no-effect", path, "rule %q: allow has no effect in a policy file, which can only forbid", r.Name)
			d.File, d.Hint = r.Doc, "put the rule into the team file"
		}
	default:
		d := c.diags.Errorf("gate-action", path, "rule %q: unknown action %q", r.Name, r.Action)
		d.File, d.Hint = r.Doc, "actions are deny, suspend, ask, warn, allow"
	}
	if c.in.Scope != "" {
		c.ofCalls(r)
	} else if levelOf(r.Action) == denies && r.Mark != "" {
		d := c.diags.Errorf("gate-no-effect", r.Path.Key("mark"), "rule %q: a call that is denied sets no mark", r.Name)
		d.File, d.Hint = r.Doc, "set the mark with a rule whose action is warn"
	}
	if r.Reason != "" && r.ReasonExpression != "" {
		d := c.diags.Errorf("gate-two-reasons", r.Path.Key("reasonExpression"), "rule %q has both reason and reasonExpression", r.Name)
		d.File, d.Hint = r.Doc, "keep one of them"
	}
}

// ofRequests says that a rule is about the requests of external agents alone.
func ofRequests(r *spec.PlanRule) bool {
	return len(r.Tools) > 0 && !slices.ContainsFunc(r.Tools, func(name string) bool { return name != spec.PermissionTool })
}

// ofCalls refuses what only a rule over calls can have.
func (c *compiler) ofCalls(r *spec.PlanRule) {
	for _, x := range []struct {
		key, hint string
		given     bool
	}{
		{"tools", "leave it out: the rule looks at what is about to start, not at calls", r.Tools != nil},
		{"mark", "leave it out, and set the mark by a rule of gates", r.Mark != ""},
	} {
		if x.given {
			d := c.diags.Errorf("approval-rule", r.Path.Key(x.key), "rule %q: %s has no meaning in a rule of approvals", r.Name, x.key)
			d.File, d.Hint, d.OnKey = r.Doc, x.hint, true
		}
	}
}

func (c *compiler) toolNames(r *spec.PlanRule) bool {
	if c.in.Scope != "" {
		return r.Tools == nil
	}
	if r.Tools != nil && len(r.Tools) == 0 {
		d := c.diags.Errorf("gate-dead", r.Path.Key("tools"), "rule %q: tools is empty, so the rule can never match", r.Name)
		d.File, d.Hint = r.Doc, "leave tools out to look at every tool"
		return false
	}
	ok := true
	for i, name := range r.Tools {
		if slices.ContainsFunc(c.names, func(tool string) bool { return nameMatches(name, tool) }) {
			continue
		}
		add := c.diags.Errorf
		if c.elsewhere(r, name) {
			add = c.diags.Warnf
		} else {
			ok = false
		}
		d := add("unknown-tool", r.Path.Key("tools").Index(i), "rule %q: there is no tool %q", r.Name, name)
		d.File, d.Hint = r.Doc, c.toolHint(name)
	}
	return ok
}

func (c *compiler) toolHint(name string) string {
	if near := spec.Nearest(name, c.names); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	return "tools are " + strings.Join(c.names, ", ")
}

// check prunes and checks an expression for one tool, prices it and lints what is left of it.
func (k *ruleCheck) check(x *expression, t *tool) *checked {
	out := &checked{tool: t}
	env, err := k.forCall(k.words, t)
	if err != nil {
		out.findings = []finding{{kind: "type", message: fmt.Sprintf("cannot be checked: %v", err)}}
		return out
	}
	clear(k.provider.missed)
	p := ofCall(t)
	a, iss := p.prune(env, x.loose)
	if iss != nil && iss.Err() != nil {
		out.findings = withoutShell(explain(iss, k.provider, p.root, k.nameable()), t)
		return out
	}
	if x.want.IsExactType(cel.BoolType) && isBool(a.NativeRep().Expr(), false) {
		out.never = true
		return out
	}
	if f, ok := wants(a, x.want); !ok {
		out.findings = []finding{f}
		return out
	}
	// What is read of earlier calls is looked at where their tools are known.
	out.ast, out.findings = a, slices.DeleteFunc(lint(k.provider, a), func(f finding) bool { return f.past })
	if untyped(t.input.typ) && reads(a, "input") {
		out.findings = append(out.findings, finding{kind: "untyped", message: "input has no known type, so nothing checks what the rule reads of it"})
	}
	est, err := env.EstimateCost(a, k.priceOf(a, t))
	if out.cost = min(est.Max, math.MaxInt64); reads(a, "shell") {
		out.cost += reading(shell.MaxBytes) + k.scans(a)
	}
	if err != nil || out.cost > maxRuleCost {
		out.findings = append(out.findings, finding{kind: "cost",
			message: fmt.Sprintf("judging one call may cost %d units; at most %d are allowed", out.cost, maxRuleCost),
			hint:    "look at less: bound the field with maxLength or maxItems, or test a shorter one"})
	}
	return out
}

// scans prices looking through all text of a command line once for each call that may do so: the sizes of its lists are
// shares of one line, and a single word may be all of it.
func (k *ruleCheck) scans(a *cel.Ast) (cost uint64) {
	walk(a.NativeRep().Expr(), nil, func(e ast.Expr, _ []string) {
		if e.Kind() != ast.CallKind {
			return
		}
		steps := uint64(1)
		if pattern, _ := patternOf(e); pattern != nil {
			text, _ := stringOf(pattern)
			steps = max(steps, k.price.steps[text])
		}
		cost += scan(shell.MaxBytes, steps)
	})
	return cost
}

// withoutShell says why a call of the tool has no shell.
func withoutShell(all []finding, t *tool) []finding {
	for i, f := range all {
		if f.name == "shell" && f.kind == "type" && t.info.Name != shellTool {
			all[i].message = "there is no shell: the tool takes no command line"
			all[i].hint = fmt.Sprintf("write tools: [%[1]s], or toolName == %[1]q && …", shellTool)
		}
	}
	return all
}

// wants says whether an expression gives what is wanted of it.
func wants(a *cel.Ast, want *cel.Type) (finding, bool) {
	t := a.OutputType()
	if t.IsExactType(want) {
		return finding{}, true
	}
	root := a.NativeRep().Expr()
	f := finding{kind: "type", node: root.ID(), at: startOf(a.NativeRep(), root.ID())}
	f.message = fmt.Sprintf("gives %s, want a boolean", typeWords.Replace(cel.FormatCELType(t)))
	f.hint = "write a comparison"
	if want.IsExactType(cel.StringType) {
		f.message = fmt.Sprintf("gives %s, want a text", typeWords.Replace(cel.FormatCELType(t)))
		f.hint = "write string(…)"
	}
	return f, false
}

// firstRead gives the place where a variable is named first.
func firstRead(a *cel.Ast, name string) (at common.Location) {
	rep := a.NativeRep()
	walk(rep.Expr(), nil, func(e ast.Expr, shadow []string) {
		if isVariable(e, name, shadow) && at == nil {
			at = startOf(rep, e.ID())
		}
	})
	return at
}

func reads(a *cel.Ast, name string) (found bool) {
	walk(a.NativeRep().Expr(), nil, func(e ast.Expr, shadow []string) { found = found || isVariable(e, name, shadow) })
	return found
}

// judges makes the programs for the tools that somebody reaches, and puts them before their calls.
func (k *ruleCheck) judges() map[*tool]*judge {
	r, out := k.rule, map[*tool]*judge{}
	for _, t := range k.scope.tools {
		ch := k.found[t]
		if !k.scope.reached[t] || ch.ast == nil {
			continue
		}
		j, err := k.judge(t, ch)
		if err != nil {
			k.report(r, &k.when, finding{kind: "type", message: fmt.Sprintf("cannot be planned: %v", err)})
			continue
		}
		out[t] = j
		if n := len(r.AppliesTo); n > 0 && r.AppliesTo[n-1].Tool == t.info.Name {
			r.AppliesTo[n-1].Cost = max(r.AppliesTo[n-1].Cost, ch.cost)
			continue
		}
		r.AppliesTo = append(r.AppliesTo, spec.RuleCost{Tool: t.info.Name, Cost: ch.cost})
	}
	past := reads(k.when.loose, "history")
	for _, x := range k.reach {
		if j := out[x.tool]; j != nil && governs(r, x.agent) {
			g := k.set.calls[callKey{x.agent, x.tool.info.Name}]
			g.rules = append(g.rules, j)
			k.set.past[x.agent] = k.set.past[x.agent] || past
		}
	}
	return out
}

// judge makes the programs of the rule for one tool.
func (k *ruleCheck) judge(t *tool, ch *checked) (j *judge, err error) {
	env, err := k.forCall(k.words, t)
	if err != nil {
		return nil, err
	}
	j = &judge{rule: k.rule, plain: k.words == k.compiler.plain}
	if j.program, err = plan(env, ch.ast); err != nil {
		return nil, err
	}
	for _, name := range sortedKeys(k.texts) {
		a := k.texts[name].found[t]
		if a == nil || a.ast == nil {
			continue
		}
		p, err := plan(env, a.ast)
		switch {
		case err != nil:
			return nil, err
		case name == "":
			j.reason = p
		default:
			j.notes = append(j.notes, note{name, p})
		}
	}
	return j, nil
}

// plan makes a program. Its loops are metered only where the estimate knows no bound.
func plan(env *cel.Env, a *cel.Ast) (cel.Program, error) {
	if unbounded(a) {
		metered, err := meterLoops(env, a)
		if err != nil {
			return nil, err
		}
		a = metered
	}
	return env.Program(a, cel.EvalOptions(cel.OptOptimize))
}

func (k *ruleCheck) dead() {
	r := k.rule
	d := k.diags.Warnf("gate-dead", r.Path.Key("when"), "rule %q can never match a call of %s", r.Name, toolList(k.scope.tools, 6))
	d.File = r.Doc
	if k.in.Scope != "" {
		d.Message = fmt.Sprintf("rule %q can never match", r.Name)
		return
	}
	if len(k.scope.reached) == 0 {
		d.Message = fmt.Sprintf("rule %q can never match: nobody it governs has a tool it looks at", r.Name)
		d.Hint = "grant the tool or remove the rule"
	}
}
