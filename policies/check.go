package policies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

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
		for _, f := range explain(iss, k.provider, root, gateNames) {
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
		if c.set.permit {
			d := c.diags.Errorf("gate-no-effect", path, "rule %q: allow has no effect, since everything is allowed by default", r.Name)
			d.File, d.Hint = r.Doc, "put the exception into the deny rule's when, or write default: deny"
		} else if foreign(r) {
			d := c.diags.Warnf("gate-no-effect", path, "rule %q: allow has no effect in a policy file, which can only forbid", r.Name)
			d.File, d.Hint = r.Doc, "put the rule into the team file"
		}
	default:
		d := c.diags.Errorf("gate-action", path, "rule %q: unknown action %q", r.Name, r.Action)
		d.File, d.Hint = r.Doc, "actions are deny, suspend, ask, warn, allow"
	}
	if r.Action == spec.ActionDeny && r.Mark != "" {
		d := c.diags.Errorf("gate-no-effect", r.Path.Key("mark"), "rule %q: a call that is denied sets no mark", r.Name)
		d.File, d.Hint = r.Doc, "set the mark with a rule whose action is warn"
	}
	if r.Reason != "" && r.ReasonExpression != "" {
		d := c.diags.Errorf("gate-two-reasons", r.Path.Key("reasonExpression"), "rule %q has both reason and reasonExpression", r.Name)
		d.File, d.Hint = r.Doc, "keep one of them"
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
		if slices.ContainsFunc(c.names, func(tool string) bool { return nameMatches(name, tool) }) {
			continue
		}
		add := c.diags.Errorf
		if teamless(r) { // it may know tools that this team does not have
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
		out.findings = withoutShell(explain(iss, k.provider, p.root, gateNames), t)
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
	out.cost = est.Max
	if reads(a, "shell") {
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

// priceOf prices what an expression reads of one tool, and of the calls before it.
func (k *ruleCheck) priceOf(a *cel.Ast, t *tool) *pricing {
	name := &shape{size: identifierSize}
	p := *k.price
	p.provider, p.ast, p.ranges = k.provider, a.NativeRep(), rangesOf(a)
	p.roots = map[string]*shape{"input": t.input, "toolName": name, "agentName": name, "role": name, "runId": name, "taskId": name,
		"toolCallId": name, "shell": k.shapes.shell, "budget": k.shapes.budget,
		"marks":   {size: uint64(len(k.marks)), elem: name},
		"history": {size: MaxHistory, elem: k.anyCall()}}
	return &p
}

// anyCall is an earlier call whose input is as large, field by field, as that of any tool.
func (k *ruleCheck) anyCall() *shape {
	input := &shape{typ: types.DynType, size: k.limit, fields: map[string]*shape{}}
	for _, t := range k.scope.tools {
		for name, f := range t.input.fields {
			if old := input.fields[name]; old == nil || f.size > old.size {
				input.fields[name] = f
			}
		}
	}
	call := *k.shapes.call
	call.fields = map[string]*shape{"toolName": call.fields["toolName"], "action": call.fields["action"], "input": input}
	return &call
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

// suspicious finds words that pruning would silently turn into "never": a tool that does not exist, a field that no
// tool in scope has, a mark that nothing sets.
func (k *ruleCheck) suspicious(loose *cel.Ast) (out []finding) {
	a := loose.NativeRep()
	walk(a.Expr(), nil, func(e ast.Expr, shadow []string) {
		if isInputTest(e, shadow) && !k.scope.anyHas(e.AsSelect().FieldName()) {
			name := e.AsSelect().FieldName()
			out = append(out, finding{kind: "type", node: e.ID(), at: startOf(a, e.ID()), name: name,
				message: fmt.Sprintf("input has no field %q", name), hint: takes(k.scope.tools, name)})
		}
		isTool := func(e ast.Expr) bool { return isVariable(e, "toolName", shadow) || isToolOf(a, e) }
		for _, lit := range wordsBeside(e, isTool) {
			if w, _ := stringOf(lit); !slices.Contains(k.names, w) && !teamless(k.rule) {
				out = append(out, finding{kind: "unknown-tool", node: lit.ID(), at: startOf(a, lit.ID()), name: w,
					message: fmt.Sprintf("there is no tool %q", w), hint: k.toolHint(w)})
			}
		}
		for _, lit := range wordsBeside(e, func(e ast.Expr) bool { return isVariable(e, "marks", shadow) }) {
			if w, _ := stringOf(lit); !slices.Contains(k.marks, w) {
				out = append(out, k.unset(w, finding{node: lit.ID(), at: startOf(a, lit.ID())}))
			}
		}
		if !k.scope.foreign {
			out = append(out, k.strangers(e, a, shadow)...)
		}
	})
	return out
}

// unset is about a mark that no rule in force sets. In a shared document it may be one that only some teams use.
func (k *ruleCheck) unset(mark string, f finding) finding {
	f.kind, f.name, f.message = "unknown-mark", mark, fmt.Sprintf("no rule sets the mark %q", mark)
	f.hint = "add mark: " + mark + " to a rule whose action is warn"
	if near := spec.Nearest(mark, k.marks); near != "" {
		f.hint = fmt.Sprintf("did you mean %s?", near)
	}
	f.mild = k.scope.foreign
	return f
}

// anyHas says whether some tool may have the field. An empty scope knows nothing.
func (s scope) anyHas(field string) bool {
	return len(s.tools) == 0 || slices.ContainsFunc(s.tools, func(t *tool) bool { return t.has(field) })
}

func (t *tool) has(field string) bool { return !t.input.closed() || t.input.fields[field] != nil }

// strangers finds agents and roles that the team does not have: such a rule of the team would never match. A rule file
// may be shared by teams, so there it is no fault.
func (c *compiler) strangers(e ast.Expr, a *ast.AST, shadow []string) (out []finding) {
	for _, lit := range wordsBeside(e, func(e ast.Expr) bool { return isVariable(e, "agentName", shadow) }) {
		if w, _ := stringOf(lit); !slices.Contains(c.agentNames(), w) {
			out = append(out, finding{kind: "unknown-agent", node: lit.ID(), at: startOf(a, lit.ID()), name: w,
				message: fmt.Sprintf("the team has no agent %q", w), hint: spec.DidYouMean(w, c.agentNames())})
		}
	}
	for _, lit := range wordsBeside(e, func(e ast.Expr) bool { return isVariable(e, "role", shadow) }) {
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

// wordsBeside gives the literals that something is compared with.
func wordsBeside(e ast.Expr, is func(ast.Expr) bool) (out []ast.Expr) {
	if e.Kind() != ast.CallKind || len(e.AsCall().Args()) != 2 {
		return nil
	}
	switch e.AsCall().FunctionName() {
	case operators.Equals, operators.NotEquals, operators.In:
	default:
		return nil
	}
	for i, side := range e.AsCall().Args() {
		if !is(side) {
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
	for _, x := range k.reach {
		if j := out[x.tool]; j != nil && governs(r, x.agent) {
			g := k.set.calls[callKey{x.agent, x.tool.info.Name}]
			g.rules = append(g.rules, j)
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
	if len(k.scope.reached) == 0 {
		d.Message = fmt.Sprintf("rule %q can never match: nobody it governs has a tool it looks at", r.Name)
		d.Hint = "grant the tool or remove the rule"
	}
}
