package policies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/open-multi-agent/oma/spec"
)

// inspect refuses what the checker takes and no rule may do: building messages, time zones, which CEL reads from the
// machine's files, and patterns that are no literals or too dear. It notes the price of every pattern in steps.
func inspect(a *cel.Ast, steps map[string]uint64) (out []finding) {
	add := func(e ast.Expr, message, hint string) {
		out = append(out, finding{kind: "type", node: e.ID(), at: startOf(a.NativeRep(), e.ID()), message: message, hint: hint})
	}
	walk(a.NativeRep().Expr(), nil, func(e ast.Expr, _ []string) {
		if e.Kind() == ast.StructKind {
			add(e, "a rule cannot build "+e.AsStruct().TypeName(), "compare the fields instead")
			return
		}
		if e.Kind() == ast.CallKind && strings.HasPrefix(e.AsCall().FunctionName(), "get") && len(e.AsCall().Args()) > 0 {
			add(e, "a rule knows no time zones", "leave it out: times are read in UTC")
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
	b := bindingsOf(a.Expr())
	walk(a.Expr(), nil, func(e ast.Expr, shadow []string) {
		if f, ok := k.nobodyHas(a, e, shadow); ok {
			out = append(out, f)
		}
		isTool := func(e ast.Expr) bool { return isVariable(e, "toolName", shadow) || isToolOf(a, e) }
		for _, lit := range b.wordsBeside(e, isTool) {
			if w, _ := stringOf(lit); !slices.Contains(k.names, w) && !k.elsewhere(k.rule, w) {
				out = append(out, finding{kind: "unknown-tool", node: lit.ID(), at: startOf(a, lit.ID()), name: w,
					message: fmt.Sprintf("there is no tool %q", w), hint: k.toolHint(w)})
			}
		}
		for _, lit := range b.wordsBeside(e, func(e ast.Expr) bool { return isVariable(e, "marks", shadow) }) {
			if w, _ := stringOf(lit); !slices.Contains(k.marks, w) && !k.anyMark() {
				out = append(out, k.unset(w, finding{node: lit.ID(), at: startOf(a, lit.ID())}))
			}
		}
		if !k.scope.foreign {
			out = append(out, k.strangers(e, a, b, shadow)...)
		}
	})
	return append(out, pastEnd(a)...)
}

// pastEnd finds items that are read of history and marks by their number where nothing asks how many there are: on the
// first call of a task there are none, and the rule fails.
func pastEnd(a *ast.AST) (out []finding) {
	for _, name := range []string{"history", "marks"} {
		var reads []ast.Expr
		all := 0
		walk(a.Expr(), nil, func(e ast.Expr, shadow []string) {
			switch {
			case isVariable(e, name, shadow):
				all++
			case e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Index && isVariable(e.AsCall().Args()[0], name, shadow):
				reads = append(reads, e)
			}
		})
		if len(reads) == 0 || len(reads) < all {
			continue
		}
		out = append(out, finding{kind: "optional", node: reads[0].ID(), at: startOf(a, reads[0].AsCall().Args()[0].ID()), name: name,
			message: fmt.Sprintf("%s may hold less, and reading past its end then fails", name), hint: fmt.Sprintf("write size(%s) > … && …", name)})
	}
	return out
}

// nobodyHas finds has() of a field that no tool has: of the input, or of the input of an earlier call.
func (k *ruleCheck) nobodyHas(a *ast.AST, e ast.Expr, shadow []string) (finding, bool) {
	s := k.scope
	switch {
	case isInputTest(e, shadow):
	case isInputTestOf(a, e):
		s.tools = k.everyTool()
	default:
		return finding{}, false
	}
	name := e.AsSelect().FieldName()
	who, _ := pathOf(e.AsSelect().Operand())
	return finding{kind: "type", node: e.ID(), at: startOf(a, e.ID()), name: name,
		message: fmt.Sprintf("%s has no field %q", cmp.Or(who, "the value"), name), hint: takes(s.tools, name)}, !s.anyHas(name)
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

// anyMark says that it is not known which marks there are.
func (c *compiler) anyMark() bool { return c.in.Scope != "" && c.in.Marks == nil }

// anyHas says whether some tool may have the field. An empty scope knows nothing.
func (s scope) anyHas(field string) bool {
	return len(s.tools) == 0 || slices.ContainsFunc(s.tools, func(t *tool) bool { return t.has(field) })
}

func (t *tool) has(field string) bool { return !t.input.closed() || t.input.fields[field] != nil }

// strangers finds agents and roles that the team does not have: such a rule of the team would never match. A rule file
// may be shared by teams, so there it is no fault.
func (c *compiler) strangers(e ast.Expr, a *ast.AST, b bindings, shadow []string) (out []finding) {
	for _, lit := range b.wordsBeside(e, func(e ast.Expr) bool { return isVariable(e, "agentName", shadow) }) {
		if w, _ := stringOf(lit); !slices.Contains(c.agentNames(), w) {
			out = append(out, finding{kind: "unknown-agent", node: lit.ID(), at: startOf(a, lit.ID()), name: w,
				message: fmt.Sprintf("the team has no agent %q", w), hint: spec.DidYouMean(w, c.agentNames())})
		}
	}
	for _, lit := range b.wordsBeside(e, func(e ast.Expr) bool { return isVariable(e, "role", shadow) }) {
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

// wordsBeside gives the literals that something is compared with. Both sides may be named by a loop: an item of a list
// stands for the list.
func (b bindings) wordsBeside(e ast.Expr, is func(ast.Expr) bool) (out []ast.Expr) {
	if e.Kind() != ast.CallKind || len(e.AsCall().Args()) != 2 {
		return nil
	}
	switch e.AsCall().FunctionName() {
	case operators.Equals, operators.NotEquals, operators.In:
	default:
		return nil
	}
	for i, side := range e.AsCall().Args() {
		if !is(b.list(side)) {
			continue
		}
		for _, lit := range literals(b.list(e.AsCall().Args()[1-i])) {
			if _, ok := stringOf(lit); ok {
				out = append(out, lit)
			}
		}
	}
	return out
}

// list gives the list that e is an item of, else e.
func (b bindings) list(e ast.Expr) ast.Expr {
	if to, ok := b[e.ID()]; ok && to.item {
		return b.list(to.expr)
	}
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Index {
		return b.list(e.AsCall().Args()[0])
	}
	return e
}
