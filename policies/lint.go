package policies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/open-multi-agent/oma/spec"
)

// linter finds in a checked expression what the checker takes and what cannot be meant: a comparison with a word that
// an enum does not have, which never holds, and a read of an optional field that nothing guards, which fails for every
// value without it.
type linter struct {
	provider *provider
	a        *ast.AST
	out      []finding
}

func lint(p *provider, a *cel.Ast) []finding {
	l := linter{provider: p, a: a.NativeRep()}
	l.visit(l.a.Expr(), nil)
	return l.out
}

func (l *linter) add(e ast.Expr, f finding) {
	f.node, f.at = e.ID(), startOf(l.a, e.ID())
	l.out = append(l.out, f)
}

// visit goes down with the paths that has() has found present where e is evaluated.
func (l *linter) visit(e ast.Expr, guarded []string) {
	switch e.Kind() {
	case ast.SelectKind:
		l.read(e, guarded)
	case ast.CallKind:
		c := e.AsCall()
		l.compare(c)
		switch c.FunctionName() {
		case operators.LogicalAnd, operators.LogicalOr:
			l.junction(e, guarded)
			return
		case operators.Conditional:
			args := c.Args()
			l.visit(args[0], guarded)
			l.visit(args[1], append(slices.Clone(guarded), present(args[0], true)...))
			l.visit(args[2], append(slices.Clone(guarded), present(args[0], false)...))
			return
		}
	}
	for _, child := range children(e) {
		l.visit(child, guarded)
	}
}

// junction: && and || take their sides in either order, so each is guarded by all others.
func (l *linter) junction(e ast.Expr, guarded []string) {
	op := e.AsCall().FunctionName()
	sides := flatten(e, op, nil)
	found := make([][]string, len(sides))
	for i, side := range sides {
		found[i] = present(side, op == operators.LogicalAnd)
	}
	for i, side := range sides {
		g := slices.Clone(guarded)
		for j := range sides {
			if i != j {
				g = append(g, found[j]...)
			}
		}
		l.visit(side, g)
	}
}

func flatten(e ast.Expr, op string, out []ast.Expr) []ast.Expr {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != op {
		return append(out, e)
	}
	for _, arg := range e.AsCall().Args() {
		out = flatten(arg, op, out)
	}
	return out
}

// present gives the paths that are there when e is as given.
func present(e ast.Expr, is bool) (paths []string) {
	if e.Kind() == ast.CallKind {
		switch fn := e.AsCall().FunctionName(); {
		case fn == operators.LogicalNot:
			return present(e.AsCall().Args()[0], !is)
		case fn == operators.LogicalAnd && is, fn == operators.LogicalOr && !is:
			for _, arg := range e.AsCall().Args() {
				paths = append(paths, present(arg, is)...)
			}
		}
		return paths
	}
	if p, ok := pathOf(e); ok && is && e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly() {
		return []string{p}
	}
	return nil
}

func pathOf(e ast.Expr) (string, bool) {
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent(), true
	case ast.SelectKind:
		if p, ok := pathOf(e.AsSelect().Operand()); ok {
			return p + "." + e.AsSelect().FieldName(), true
		}
	}
	return "", false
}

func (l *linter) object(e ast.Expr) *shape {
	if t := l.a.GetType(e.ID()); t != nil && t.Kind() == types.StructKind {
		return l.provider.objects[t.TypeName()]
	}
	return nil
}

// past says that e is an earlier call or is read from one.
func (l *linter) past(e ast.Expr) bool {
	for {
		if t := l.a.GetType(e.ID()); t != nil && t.Kind() == types.StructKind && (t.TypeName() == callType || strings.HasSuffix(t.TypeName(), pastSuffix)) {
			return true
		}
		switch {
		case e.Kind() == ast.SelectKind:
			e = e.AsSelect().Operand()
		case e.Kind() == ast.CallKind && e.AsCall().IsMemberFunction():
			e = e.AsCall().Target()
		case e.Kind() == ast.CallKind && len(e.AsCall().Args()) > 0:
			e = e.AsCall().Args()[0]
		default:
			return false
		}
	}
}

func (l *linter) read(e ast.Expr, guarded []string) {
	s := e.AsSelect()
	obj := l.object(s.Operand())
	if s.IsTestOnly() || obj == nil || obj.always[s.FieldName()] {
		return
	}
	path, ok := pathOf(e)
	if ok && slices.Contains(guarded, path) {
		return
	}
	f := finding{kind: "optional", name: s.FieldName(), past: l.past(s.Operand()),
		message: fmt.Sprintf("%q may be left out, and reading it then fails", s.FieldName())}
	if ok {
		f.hint = fmt.Sprintf("write has(%s) && …", path)
	} else {
		f.hint = fmt.Sprintf("write .?%s.orValue(…)", s.FieldName())
	}
	l.add(e, f)
}

// compare looks at ==, != and in.
func (l *linter) compare(c ast.CallExpr) {
	switch c.FunctionName() {
	case operators.Equals, operators.NotEquals, operators.In:
	default:
		return
	}
	for i, side := range c.Args() {
		words := l.words(side)
		if words == nil {
			continue
		}
		for _, lit := range literals(c.Args()[1-i]) {
			if s, ok := stringOf(lit); ok && !slices.Contains(words, s) {
				l.add(lit, finding{kind: "enum", name: s, past: l.past(side),
					message: fmt.Sprintf("%q is never a value here", s), hint: meant(s, words)})
			}
		}
	}
}

// manyWords is how many values a hint lists where one of them was probably meant.
const manyWords = 8

func meant(word string, words []string) string {
	if near := spec.Nearest(word, words); near != "" && len(words) > manyWords {
		return fmt.Sprintf("did you mean %s?", near)
	}
	if i := slices.Index(words, ""); i >= 0 {
		words = slices.Clone(words)
		words[i] = `""`
	}
	return "the values are " + strings.Join(words, ", ")
}

// literals gives the items of a list, and what ?: can give.
func literals(e ast.Expr) (out []ast.Expr) {
	switch {
	case e.Kind() == ast.ListKind:
		return e.AsList().Elements()
	case e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Conditional:
		return append(literals(e.AsCall().Args()[1]), literals(e.AsCall().Args()[2])...)
	}
	return []ast.Expr{e}
}

// words gives the values of a.b and of a.?b.orValue(x), if they are an enum.
func (l *linter) words(e ast.Expr) []string {
	operand, field := ast.Expr(nil), ""
	switch e.Kind() {
	case ast.SelectKind:
		if e.AsSelect().IsTestOnly() {
			return nil
		}
		operand, field = e.AsSelect().Operand(), e.AsSelect().FieldName()
	case ast.CallKind:
		c := e.AsCall()
		if c.FunctionName() == "orValue" && c.IsMemberFunction() {
			c, ok := optionalRead(c.Target())
			if !ok {
				return nil
			}
			operand = c.Args()[0]
			field, _ = stringOf(c.Args()[1])
		}
	}
	if operand == nil {
		return nil
	}
	if obj := l.object(operand); obj != nil && obj.fields[field] != nil {
		return obj.fields[field].words
	}
	return nil
}

func optionalRead(e ast.Expr) (ast.CallExpr, bool) {
	if e.Kind() != ast.CallKind {
		return nil, false
	}
	c := e.AsCall()
	return c, c.FunctionName() == operators.OptSelect && len(c.Args()) == 2
}
