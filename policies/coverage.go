package policies

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/parser"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// Coverage says how far examples try one rule.
type Coverage struct {
	Rule *spec.PlanRule
	// Matches and Ignores count the rule's own examples of tools that are known here: others were not tried.
	Matches, Ignores int
	// Conditions are what && || ! and ?: of the rule put together, in the order of the text.
	Conditions []Condition
}

// Condition is a part of a rule that is true or false by itself. A loop such as exists is one condition. The literals
// true and false are none: there is nothing to try.
type Condition struct {
	Text string   // in CEL's own spelling, on one line
	At   spec.Pos // inside the rule's expression
	// True and False say that some call gave it. One that && or || left out gave nothing.
	True, False bool
}

// Cover evaluates every rule over its examples, and over calls, and says what each condition has been. That an example
// holds is for [Compile] to say. The diagnostics are those of the rules without their examples.
func Cover(ctx context.Context, in RuleSet, calls []spec.CallExample) ([]Coverage, spec.Diagnostics) {
	written := in.Rules
	in.Rules = slices.Clone(written)
	for i := range in.Rules {
		in.Rules[i].Examples = nil
	}
	set, diags := Compile(in)
	if set == nil {
		return nil, diags
	}
	all := make([]Coverage, len(set.rules))
	for i := range set.rules {
		tried := cover{set: set, in: &in, rule: &set.rules[i]}
		out := Coverage{Rule: &set.rules[i]}
		examples := slices.Clone(calls)
		if e := written[i].Examples; e != nil {
			out.Matches, out.Ignores = tried.known(e.Matches), tried.known(e.Ignores)
			examples = slices.Concat(e.Matches, e.Ignores, calls)
		}
		out.Conditions = tried.run(ctx, examples)
		all[i] = out
	}
	return all, diags
}

// cover tries one rule.
type cover struct {
	set  *Set
	in   *RuleSet
	rule *spec.PlanRule
}

// known counts the examples that could be tried.
func (c cover) known(examples []spec.CallExample) (n int) {
	for _, e := range examples {
		name := cmp.Or(e.ToolName, onlyTool(c.rule))
		is := func(t spec.ToolInfo) bool { return t.Name == name }
		if c.in.Scope != "" || slices.ContainsFunc(c.in.Known, is) || slices.ContainsFunc(c.in.Agents, func(a AgentTools) bool { return slices.ContainsFunc(a.Tools, is) }) {
			n++
		}
	}
	return n
}

func (c cover) run(ctx context.Context, examples []spec.CallExample) []Condition {
	t, ok := c.set.traces[c.rule]
	if !ok {
		return nil
	}
	out := c.conditions(t.env)
	metered, err := meterLoops(t.env, t.ast)
	if err != nil {
		return out
	}
	p, err := t.env.Program(metered, cel.EvalOptions(cel.OptTrackState))
	if err != nil {
		return out
	}
	nodes := conditionsOf(metered.NativeRep().Expr()) // the same ones, under the ids that the program has
	if len(nodes) != len(out) {
		return out
	}
	for i := range examples {
		if r, ok := c.request(&examples[i]); ok {
			c.note(ctx, p, nodes, r, out)
		}
	}
	return out
}

// conditions reads the rule once more, so that loops keep the text they were written in.
func (c cover) conditions(env *cel.Env) (out []Condition) {
	env, err := env.Extend(cel.EnableMacroCallTracking())
	if err != nil {
		return nil
	}
	read, iss := env.Parse(c.rule.When)
	if iss.Err() != nil {
		return nil
	}
	info := read.NativeRep().SourceInfo()
	for _, e := range conditionsOf(read.NativeRep().Expr()) {
		out = append(out, Condition{Text: unparsed(e, info), At: begin(e, info, c.rule.When)})
	}
	return out
}

// note adds what each condition is for one call.
func (c cover) note(ctx context.Context, p cel.Program, nodes []ast.Expr, r *Request, out []Condition) {
	defer func() { _ = recover() }() // a rule that breaks on an example has been reported; it covers nothing
	_, details, _ := p.Eval(&variables{set: c.set, request: r, plain: foreign(c.rule), meter: meter{ctx: ctx}})
	if details == nil {
		return
	}
	for i, n := range nodes {
		if v, known := details.State().Value(n.ID()); known {
			out[i].True = out[i].True || v == types.True
			out[i].False = out[i].False || v == types.False
		}
	}
}

// request makes a call of an example, if the rule looks at such calls.
func (c cover) request(ex *spec.CallExample) (*Request, bool) {
	name := cmp.Or(c.in.Scope, ex.ToolName, onlyTool(c.rule))
	agent := cmp.Or(ex.AgentName, c.rule.Agent)
	info, ok := c.tool(agent, name)
	if !ok || !looksAt(c.rule, name) || !governs(c.rule, agent) {
		return nil, false
	}
	input, err := canon.Arguments(string(ex.Input))
	if err != nil {
		return nil, false
	}
	if len(info.InputSchema) > 0 {
		schema, err := canon.Decode(info.InputSchema)
		if err != nil {
			return nil, false
		}
		canon.Shape(schema, input)
	}
	r := &Request{ToolName: name, Input: input, AgentName: agent, Role: ex.Role, Consequential: info.Consequential, Situation: ex.Situation}
	if c.in.Scope != "" {
		r.ofSubject()
	}
	return r, true
}

// tool gives a tool as the agent has it, else as any agent of the rule has it, else as it exists.
func (c cover) tool(agent, name string) (spec.ToolInfo, bool) {
	is := func(t spec.ToolInfo) bool { return t.Name == name }
	for _, a := range c.in.Agents {
		if i := slices.IndexFunc(a.Tools, is); i >= 0 && governs(c.rule, a.Name) && (agent == "" || agent == a.Name) {
			return a.Tools[i], true
		}
	}
	if i := slices.IndexFunc(c.in.Known, is); i >= 0 {
		return c.in.Known[i], true
	}
	return spec.ToolInfo{}, false
}

// conditionsOf takes an expression apart at && || ! and ?:.
func conditionsOf(e ast.Expr) (out []ast.Expr) {
	if _, literal := boolOf(e); literal {
		return nil
	}
	if e.Kind() != ast.CallKind {
		return []ast.Expr{e}
	}
	switch c := e.AsCall(); c.FunctionName() {
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional:
		for _, arg := range c.Args() {
			out = append(out, conditionsOf(arg)...)
		}
		return out
	}
	return []ast.Expr{e}
}

// maxConditionRunes bounds the text of a condition that is shown.
const maxConditionRunes = 120

func unparsed(e ast.Expr, info *ast.SourceInfo) string {
	text, err := parser.Unparse(e, info)
	if err != nil {
		return "(no text)"
	}
	return clip(strings.Join(strings.Fields(text), " "), maxConditionRunes)
}

// begin gives the place where the text of an expression begins. CEL knows the place of an operator and of a bracket; the
// first of what stands around it is the beginning.
func begin(e ast.Expr, info *ast.SourceInfo, text string) spec.Pos {
	lines := strings.Split(text, "\n")
	first := spec.Pos{}
	walk(e, nil, func(x ast.Expr, _ []string) {
		at := info.GetStartLocation(x.ID())
		if at.Line() < 1 || at.Line() > len(lines) {
			return
		}
		pos := spec.Pos{Line: at.Line(), Col: beforeCall(lines[at.Line()-1], at.Column()) + 1}
		if first.Line == 0 || pos.Line < first.Line || pos.Line == first.Line && pos.Col < first.Col {
			first = pos
		}
	})
	return first
}

// beforeCall gives where the name begins whose bracket is at a column, or right before it; else the column.
func beforeCall(line string, col int) int {
	runes := []rune(line)
	at := min(max(col, 0), len(runes))
	end := at
	switch {
	case at < len(runes) && runes[at] == '(':
	case at > 0 && runes[at-1] == '(':
		end--
	default:
		return at
	}
	name := strings.TrimRightFunc(string(runes[:end]), wordRune)
	if start := utf8.RuneCountInString(name); start < end {
		return start
	}
	return at
}

func wordRune(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// LooksAt says whether a rule judges calls of a tool: it names it, or no tool at all.
func LooksAt(r *spec.PlanRule, tool string) bool { return looksAt(r, tool) }
