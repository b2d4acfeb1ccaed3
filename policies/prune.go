package policies

import (
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// pruner makes a rule that speaks of several tools mean one of them, for the call that is judged or for all calls before
// it. It knows the tool's name and its fields, folds what follows from those two and cuts the branches that cannot run.
// It evaluates nothing else, so it needs no program and every node keeps its position.
//
// Cutting keeps the rule's meaning, errors included: x && false is false in CEL even where x fails.
type pruner struct {
	tool *tool
	// isTool finds the tool's name, isTest a has() of a field of its input.
	isTool func(*ast.AST, ast.Expr, []string) bool
	isTest func(*ast.AST, ast.Expr, []string) bool
	root   ast.Expr // set by Optimize: the tree whose ids the checker's errors carry
}

// ofCall prunes for a call of the tool.
func ofCall(t *tool) *pruner {
	return &pruner{tool: t,
		isTool: func(_ *ast.AST, e ast.Expr, shadow []string) bool { return isVariable(e, "toolName", shadow) },
		isTest: func(_ *ast.AST, e ast.Expr, shadow []string) bool { return isInputTest(e, shadow) }}
}

// ofPast prunes as if every earlier call had been one of the tool.
func ofPast(t *tool) *pruner {
	return &pruner{tool: t,
		isTool: func(a *ast.AST, e ast.Expr, _ []string) bool { return isToolOf(a, e) },
		isTest: func(a *ast.AST, e ast.Expr, _ []string) bool { return isInputTestOf(a, e) }}
}

// prune checks an expression in one tool's environment. loose is the expression compiled with input of any type.
func (p *pruner) prune(typed *cel.Env, loose *cel.Ast) (*cel.Ast, *cel.Issues) {
	opt, err := cel.NewStaticOptimizer(p)
	if err != nil {
		return nil, cel.ErrorAsIssues(err)
	}
	return opt.Optimize(typed, loose) // checks the pruned tree in typed
}

// Optimize implements cel.ASTOptimizer.
func (p *pruner) Optimize(ctx *cel.OptimizerContext, a *ast.AST) *ast.AST {
	p.root = a.Expr()
	walk(a.Expr(), nil, func(e ast.Expr, shadow []string) {
		switch {
		case p.isTool(a, e, shadow):
			ctx.UpdateExpr(e, ctx.NewLiteral(types.String(p.tool.info.Name)))
		case p.isTest(a, e, shadow) && !p.tool.has(e.AsSelect().FieldName()):
			ctx.UpdateExpr(e, ctx.NewLiteral(types.False))
		case e.Kind() == ast.CallKind:
			if to, ok := fold(e.AsCall()); ok {
				ctx.UpdateExpr(e, to(ctx))
			}
		}
	})
	return a
}

// isCall says that e is an earlier call, in a tree that was checked with calls of any tool.
func isCall(a *ast.AST, e ast.Expr) bool {
	t := a.GetType(e.ID())
	return t != nil && t.Kind() == types.StructKind && t.TypeName() == callType
}

// isToolOf says that e is the tool's name of an earlier call.
func isToolOf(a *ast.AST, e ast.Expr) bool {
	return e.Kind() == ast.SelectKind && !e.AsSelect().IsTestOnly() && e.AsSelect().FieldName() == "toolName" && isCall(a, e.AsSelect().Operand())
}

// isInputTestOf says that e is has(c.input.f) of an earlier call c.
func isInputTestOf(a *ast.AST, e ast.Expr) bool {
	if e.Kind() != ast.SelectKind || !e.AsSelect().IsTestOnly() || e.AsSelect().Operand().Kind() != ast.SelectKind {
		return false
	}
	in := e.AsSelect().Operand().AsSelect()
	return in.FieldName() == "input" && !in.IsTestOnly() && isCall(a, in.Operand())
}

func isVariable(e ast.Expr, name string, shadow []string) bool {
	return e.Kind() == ast.IdentKind && e.AsIdent() == name && !slices.Contains(shadow, name)
}

// isInputTest says that e is has(input.f).
func isInputTest(e ast.Expr, shadow []string) bool {
	return e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly() && isVariable(e.AsSelect().Operand(), "input", shadow)
}

type replacement func(*cel.OptimizerContext) ast.Expr

func literal(b bool) replacement {
	return func(ctx *cel.OptimizerContext) ast.Expr { return ctx.NewLiteral(types.Bool(b)) }
}

// fold gives what a call with known arguments is.
func fold(c ast.CallExpr) (replacement, bool) {
	args := c.Args()
	switch c.FunctionName() {
	case operators.LogicalNot:
		if b, ok := boolOf(args[0]); ok {
			return literal(!b), true
		}
	case operators.LogicalAnd:
		return junction(args, false)
	case operators.LogicalOr:
		return junction(args, true)
	case operators.Conditional:
		if b, ok := boolOf(args[0]); ok {
			branch := args[2]
			if b {
				branch = args[1]
			}
			return func(*cel.OptimizerContext) ast.Expr { return branch }, true
		}
	case operators.Equals, operators.NotEquals:
		l, ok := stringOf(args[0])
		r, ok2 := stringOf(args[1])
		return literal((l == r) == (c.FunctionName() == operators.Equals)), ok && ok2
	case operators.In:
		l, ok := stringOf(args[0])
		all, ok2 := stringsOf(args[1])
		return literal(slices.Contains(all, l)), ok && ok2
	case "startsWith", "endsWith", "contains", "matches":
		return foldText(c)
	}
	return nil, false
}

// junction folds && (decider false) and || (decider true). true && x is left standing, so that the checker still
// demands that x is a boolean.
func junction(args []ast.Expr, decider bool) (replacement, bool) {
	known := 0
	for _, arg := range args {
		if b, ok := boolOf(arg); ok && b == decider {
			return literal(decider), true
		} else if ok {
			known++
		}
	}
	return literal(!decider), known == len(args)
}

func foldText(c ast.CallExpr) (replacement, bool) {
	if !c.IsMemberFunction() || len(c.Args()) != 1 {
		return nil, false
	}
	s, ok := stringOf(c.Target())
	arg, ok2 := stringOf(c.Args()[0])
	if !ok || !ok2 {
		return nil, false
	}
	switch c.FunctionName() {
	case "startsWith":
		return literal(strings.HasPrefix(s, arg)), true
	case "endsWith":
		return literal(strings.HasSuffix(s, arg)), true
	case "contains":
		return literal(strings.Contains(s, arg)), true
	}
	re, err := regexp.Compile(arg)
	if err != nil {
		return nil, false
	}
	return literal(re.MatchString(s)), true
}

// walk visits children before parents. shadow has the names that comprehensions around a node have taken.
func walk(e ast.Expr, shadow []string, f func(ast.Expr, []string)) {
	if e.Kind() == ast.ComprehensionKind {
		c := e.AsComprehension()
		walk(c.IterRange(), shadow, f)
		walk(c.AccuInit(), shadow, f)
		inner := append(slices.Clone(shadow), c.IterVar(), c.IterVar2(), c.AccuVar())
		walk(c.LoopCondition(), inner, f)
		walk(c.LoopStep(), inner, f)
		walk(c.Result(), inner, f)
	} else {
		for _, child := range children(e) {
			walk(child, shadow, f)
		}
	}
	f(e, shadow)
}

func children(e ast.Expr) (out []ast.Expr) {
	switch e.Kind() {
	case ast.SelectKind:
		return []ast.Expr{e.AsSelect().Operand()}
	case ast.CallKind:
		if e.AsCall().IsMemberFunction() {
			out = append(out, e.AsCall().Target())
		}
		return append(out, e.AsCall().Args()...)
	case ast.ListKind:
		return e.AsList().Elements()
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			out = append(out, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
	case ast.StructKind:
		for _, f := range e.AsStruct().Fields() {
			out = append(out, f.AsStructField().Value())
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		return []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()}
	}
	return out
}

func isBool(e ast.Expr, want bool) bool {
	b, ok := boolOf(e)
	return ok && b == want
}

func boolOf(e ast.Expr) (value, ok bool) {
	if e.Kind() != ast.LiteralKind {
		return false, false
	}
	b, ok := e.AsLiteral().(types.Bool)
	return bool(b), ok
}

func stringOf(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}

func stringsOf(e ast.Expr) (all []string, ok bool) {
	if e == nil || e.Kind() != ast.ListKind {
		return nil, false
	}
	for _, el := range e.AsList().Elements() {
		s, ok := stringOf(el)
		if !ok {
			return nil, false
		}
		all = append(all, s)
	}
	return all, true
}
