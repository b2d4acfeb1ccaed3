package policies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/open-multi-agent/oma/spec"
)

// checked is what checking one rule against one tool gave.
type checked struct {
	tool     *tool
	ast      *cel.Ast // nil: never matches, or findings say why not
	never    bool
	cost     uint64
	findings []finding
}

// rule compiles one rule and puts it before the calls it governs.
func (c *compiler) rule(r *spec.PlanRule) {
	r.AppliesTo = []spec.RuleCost{}
	c.action(r)
	if !c.toolNames(r) {
		return
	}
	loose, root, iss := parseAndCheck(c.loose, r.When)
	if iss.Err() != nil {
		for _, f := range explain(iss, c.provider, root, gateNames) {
			c.report(r, f)
		}
		return
	}
	s := c.scope(r)
	price := &pricing{limit: c.limit, steps: map[string]uint64{}}
	before := len(c.diags)
	for _, f := range append(inspect(loose, price.steps), c.suspicious(loose, s)...) {
		c.report(r, f)
	}
	all := map[*tool]*checked{}
	for _, t := range s.tools {
		all[t] = c.check(r, loose, t, price)
	}
	c.reportAll(r, s, all)
	if c.diags[before:].HasErrors(false) {
		return
	}
	judges := c.judges(r, s, all)
	if len(judges) == 0 && !fromFile(r) {
		c.dead(r, s)
	}
	c.examples(r, loose, all, price)
}

// action checks what a rule does, apart from when.
func (c *compiler) action(r *spec.PlanRule) {
	path := r.Path.Key("action")
	switch r.Action {
	case spec.ActionDeny, spec.ActionSuspend, spec.ActionAsk, spec.ActionWarn:
	case spec.ActionAllow:
		if c.set.permit {
			d := c.diags.Errorf("gate-no-effect", path, "rule %q: allow has no effect, since everything is allowed by default", r.Name)
			d.File, d.Hint = r.Doc, "put the exception into the deny rule's when, or write default: deny"
		} else if fromFile(r) {
			d := c.diags.Warnf("gate-no-effect", path, "rule %q: allow has no effect in a policy file, which can only forbid", r.Name)
			d.File, d.Hint = r.Doc, "put the rule into the team file"
		}
	default:
		d := c.diags.Errorf("gate-action", path, "rule %q: unknown action %q", r.Name, r.Action)
		d.File, d.Hint = r.Doc, "actions are deny, suspend, ask, warn, allow"
	}
}

func (c *compiler) toolNames(r *spec.PlanRule) bool {
	if r.Tools != nil && len(r.Tools) == 0 {
		d := c.diags.Errorf("gate-dead", r.Path.Key("tools"), "rule %q: tools is empty, so the rule can never match", r.Name)
		d.File, d.Hint = r.Doc, "leave tools out to look at every tool"
		return false
	}
	ok := true
	for i, name := range r.Tools {
		if slices.Contains(c.names, name) {
			continue
		}
		ok = false
		d := c.diags.Errorf("unknown-tool", r.Path.Key("tools").Index(i), "rule %q: there is no tool %q", r.Name, name)
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

// check prunes and checks a rule for one tool, prices it and lints what is left of it.
func (c *compiler) check(r *spec.PlanRule, loose *cel.Ast, t *tool, price *pricing) *checked {
	out := &checked{tool: t}
	env, err := c.typedEnv(t)
	if err != nil {
		out.findings = []finding{{kind: "type", message: fmt.Sprintf("cannot be checked: %v", err)}}
		return out
	}
	p := &pruner{tool: t.info.Name, lacks: func(f string) bool { return t.input.closed() && t.input.fields[f] == nil }}
	clear(c.provider.missed)
	a, iss := p.prune(env, loose)
	if iss != nil && iss.Err() != nil {
		out.findings = explain(iss, c.provider, p.root, gateNames)
		return out
	}
	if a == nil {
		out.never = true
		return out
	}
	if f, ok := wantBool(a); !ok {
		out.findings = []finding{f}
		return out
	}
	out.ast, out.findings = a, lint(c.provider, a)
	if untyped(t.input.typ) && reads(a, "input") {
		out.findings = append(out.findings, finding{kind: "untyped", message: "input has no known type, so nothing checks what the rule reads of it"})
	}
	est, err := env.EstimateCost(a, price.of(t))
	out.cost = est.Max
	if err != nil || est.Max > maxRuleCost {
		out.findings = append(out.findings, finding{kind: "cost",
			message: fmt.Sprintf("judging one call may cost %d units; at most %d are allowed", est.Max, maxRuleCost),
			hint:    "look at less: bound the field with maxLength or maxItems, or test a shorter one"})
	}
	return out
}

// of prices what a rule reads of one tool.
func (p *pricing) of(t *tool) *pricing {
	name := &shape{size: identifierSize}
	return &pricing{limit: p.limit, steps: p.steps, roots: map[string]*shape{"input": t.input, "toolName": name,
		"agentName": name, "role": name, "runId": name, "taskId": name, "toolCallId": name}}
}

func wantBool(a *cel.Ast) (finding, bool) {
	t := a.OutputType()
	if t.IsExactType(cel.BoolType) {
		return finding{}, true
	}
	root := a.NativeRep().Expr()
	return finding{kind: "type", node: root.ID(), at: startOf(a.NativeRep(), root.ID()),
		message: fmt.Sprintf("gives %s, want a boolean", typeWords.Replace(cel.FormatCELType(t))),
		hint:    "write a comparison"}, false
}

func reads(a *cel.Ast, name string) (found bool) {
	walk(a.NativeRep().Expr(), nil, func(e ast.Expr, shadow []string) { found = found || isVariable(e, name, shadow) })
	return found
}

// inspect refuses what the checker takes and no rule may do: building messages, and patterns that are no literals or
// too dear. It notes the price of every pattern in steps.
func inspect(a *cel.Ast, steps map[string]uint64) (out []finding) {
	add := func(e ast.Expr, message, hint string) {
		out = append(out, finding{kind: "type", node: e.ID(), at: startOf(a.NativeRep(), e.ID()), message: message, hint: hint})
	}
	walk(a.NativeRep().Expr(), nil, func(e ast.Expr, _ []string) {
		if e.Kind() == ast.StructKind {
			add(e, "a rule cannot build "+e.AsStruct().TypeName(), "compare the fields instead")
			return
		}
		pattern, price := patternOf(e)
		if pattern == nil {
			return
		}
		text, ok := stringOf(pattern)
		if !ok {
			add(pattern, fmt.Sprintf("the pattern of %s must be a literal", e.AsCall().FunctionName()), "write the pattern itself, in quotes")
			return
		}
		n, err := price(text)
		if err != nil {
			add(pattern, err.Error(), "")
			return
		}
		steps[text] = max(steps[text], n)
	})
	return out
}

// patternOf gives the pattern argument of a call, and what prices it.
func patternOf(e ast.Expr) (ast.Expr, func(string) (uint64, error)) {
	if e.Kind() != ast.CallKind || len(e.AsCall().Args()) == 0 {
		return nil, nil
	}
	args := e.AsCall().Args()
	switch e.AsCall().FunctionName() {
	case "matches": // s.matches(p) and matches(s, p)
		return args[len(args)-1], patternSteps
	case "globMatch":
		return args[0], globSteps
	}
	return nil, nil
}

// suspicious finds words that pruning would silently turn into "never": a tool that does not exist, and a field that
// no tool in scope has.
func (c *compiler) suspicious(loose *cel.Ast, s scope) (out []finding) {
	a := loose.NativeRep()
	walk(a.Expr(), nil, func(e ast.Expr, shadow []string) {
		if isInputTest(e, shadow) && !s.anyHas(e.AsSelect().FieldName()) {
			name := e.AsSelect().FieldName()
			out = append(out, finding{kind: "type", node: e.ID(), at: startOf(a, e.ID()), name: name,
				message: fmt.Sprintf("input has no field %q", name), hint: takes(s.tools, name)})
		}
		for _, lit := range wordsBeside(e, "toolName", shadow) {
			if w, _ := stringOf(lit); !slices.Contains(c.names, w) {
				out = append(out, finding{kind: "unknown-tool", node: lit.ID(), at: startOf(a, lit.ID()), name: w,
					message: fmt.Sprintf("there is no tool %q", w), hint: c.toolHint(w)})
			}
		}
		if !s.foreign {
			out = append(out, c.strangers(e, a, shadow)...)
		}
	})
	return out
}

// anyHas says whether some tool may have the field. An empty scope knows nothing.
func (s scope) anyHas(field string) bool {
	return len(s.tools) == 0 || slices.ContainsFunc(s.tools, func(t *tool) bool { return t.has(field) })
}

func (t *tool) has(field string) bool { return !t.input.closed() || t.input.fields[field] != nil }

// strangers finds agents and roles that the team does not have: such a rule of the team would never match. A rule file
// may be shared by teams, so there it is no fault.
func (c *compiler) strangers(e ast.Expr, a *ast.AST, shadow []string) (out []finding) {
	for _, lit := range wordsBeside(e, "agentName", shadow) {
		if w, _ := stringOf(lit); !slices.Contains(c.agentNames(), w) {
			out = append(out, finding{kind: "unknown-agent", node: lit.ID(), at: startOf(a, lit.ID()), name: w,
				message: fmt.Sprintf("the team has no agent %q", w), hint: spec.DidYouMean(w, c.agentNames())})
		}
	}
	for _, lit := range wordsBeside(e, "role", shadow) {
		if w, _ := stringOf(lit); w != "" && !slices.Contains(c.in.Roles, w) {
			out = append(out, finding{kind: "unknown-role", node: lit.ID(), at: startOf(a, lit.ID()), name: w,
				message: fmt.Sprintf("the team requires no role %q", w), hint: spec.DidYouMean(w, c.in.Roles)})
		}
	}
	return out
}

func (c *compiler) agentNames() []string {
	names := make([]string, len(c.in.Agents))
	for i, a := range c.in.Agents {
		names[i] = a.Name
	}
	return names
}

// wordsBeside gives the literals that a variable is compared with.
func wordsBeside(e ast.Expr, variable string, shadow []string) (out []ast.Expr) {
	if e.Kind() != ast.CallKind || len(e.AsCall().Args()) != 2 {
		return nil
	}
	switch e.AsCall().FunctionName() {
	case operators.Equals, operators.NotEquals, operators.In:
	default:
		return nil
	}
	for i, side := range e.AsCall().Args() {
		if !isVariable(side, variable, shadow) {
			continue
		}
		for _, lit := range literals(e.AsCall().Args()[1-i]) {
			if _, ok := stringOf(lit); ok {
				out = append(out, lit)
			}
		}
	}
	return out
}

// judges makes the programs for the tools that somebody reaches, and puts them before their calls.
func (c *compiler) judges(r *spec.PlanRule, s scope, all map[*tool]*checked) map[*tool]*judge {
	out := map[*tool]*judge{}
	for _, t := range s.tools {
		ch := all[t]
		if !s.reached[t] || ch.ast == nil {
			continue
		}
		j, err := c.program(r, ch)
		if err != nil {
			c.report(r, finding{kind: "type", message: fmt.Sprintf("cannot be planned: %v", err)})
			continue
		}
		out[t] = j
		if n := len(r.AppliesTo); n > 0 && r.AppliesTo[n-1].Tool == t.info.Name {
			r.AppliesTo[n-1].Cost = max(r.AppliesTo[n-1].Cost, ch.cost)
			continue
		}
		r.AppliesTo = append(r.AppliesTo, spec.RuleCost{Tool: t.info.Name, Cost: ch.cost})
	}
	for _, x := range c.reach {
		if j := out[x.tool]; j != nil && governs(r, x.agent) {
			g := c.set.calls[callKey{x.agent, x.tool.info.Name}]
			g.rules = append(g.rules, j)
		}
	}
	return out
}

func (c *compiler) program(r *spec.PlanRule, ch *checked) (*judge, error) {
	p, err := ch.tool.env.Program(ch.ast, cel.EvalOptions(cel.OptOptimize))
	return &judge{rule: r, program: p}, err
}

func (c *compiler) dead(r *spec.PlanRule, s scope) {
	d := c.diags.Warnf("gate-dead", r.Path.Key("when"), "rule %q can never match a call of %s", r.Name, toolList(s.tools, 6))
	d.File = r.Doc
	if len(s.reached) == 0 {
		d.Message = fmt.Sprintf("rule %q can never match: nobody it governs has a tool it looks at", r.Name)
		d.Hint = "grant the tool or remove the rule"
	}
}
