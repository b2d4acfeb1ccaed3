package policies

import (
	"cmp"
	"math"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// maxSize is where sizes stop growing, so that no sum or product of them overflows.
const maxSize = math.MaxUint32

func sum(a, b uint64) uint64   { return min(min(a, maxSize)+min(b, maxSize), maxSize) }
func times(a, b uint64) uint64 { return min(min(a, maxSize)*min(b, maxSize), maxSize) }

// bindings has, by the identifier's node, what a name of a loop stands for: an item of what the loop goes over, or what
// its result starts from.
type bindings map[int64]bound

type bound struct {
	expr ast.Expr
	item bool // the name is of an item of expr
}

// bindingsOf finds what the names that loops take stand for.
func bindingsOf(root ast.Expr) bindings {
	b := bindings{}
	b.visit(root, map[string]bound{})
	return b
}

func (b bindings) visit(e ast.Expr, names map[string]bound) {
	switch e.Kind() {
	case ast.IdentKind:
		if to, ok := names[e.AsIdent()]; ok {
			b[e.ID()] = to
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		b.visit(c.IterRange(), names)
		b.visit(c.AccuInit(), names)
		inner := map[string]bound{}
		for k, v := range names {
			inner[k] = v
		}
		inner[c.IterVar()] = bound{c.IterRange(), true}
		inner[c.AccuVar()] = bound{c.AccuInit(), false}
		for _, part := range []ast.Expr{c.LoopCondition(), c.LoopStep(), c.Result()} {
			b.visit(part, inner)
		}
	default:
		for _, child := range children(e) {
			b.visit(child, names)
		}
	}
}

// sizes are what is known of one expression, by node. Each is found once: a chain of maps doubles its text at each step,
// and would double the work to find that out.
type sizes struct{ deep, weight map[int64]uint64 }

// priceOf prices what an expression reads of one tool, and of the calls before it.
func (k *ruleCheck) priceOf(a *cel.Ast, t *tool) *pricing {
	name := &shape{typ: types.StringType, size: identifierSize}
	p := *k.price
	p.provider, p.ast, p.bound = k.provider, a.NativeRep(), bindingsOf(a.NativeRep().Expr())
	p.sizes = sizes{map[int64]uint64{}, map[int64]uint64{}}
	p.roots = map[string]*shape{"input": t.input, "toolName": name, "agentName": name, "role": name, "runId": name, "taskId": name,
		"toolCallId": name, "shell": k.shapes.shell, "budget": k.shapes.budget,
		"marks":   {typ: types.NewListType(types.StringType), size: k.markCount(), elem: name},
		"history": {typ: types.NewListType(k.shapes.call.typ), size: MaxHistory, elem: k.anyCall()}}
	return &p
}

// markCount is the most marks there can be.
func (c *compiler) markCount() uint64 {
	if c.in.Scope != "" {
		return maxSubjectMarks
	}
	return uint64(len(c.marks))
}

// anyCall is an earlier call whose input is as large, field by field, as that of any tool.
func (k *ruleCheck) anyCall() *shape {
	input := &shape{typ: types.DynType, size: k.limit, fields: map[string]*shape{}}
	for _, t := range k.everyTool() {
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

// size follows a path, or where the estimate has lost it, as behind filter(), the types of what is read.
func (p *pricing) size(path []string, e ast.Expr) uint64 {
	if len(path) > 0 {
		if s := p.roots[path[0]].at(path[1:]); s != nil && s.size > 0 {
			return s.size
		}
	}
	switch {
	case e == nil || p.ast == nil:
		return p.limit
	case e.Kind() == ast.ComprehensionKind: // no macro gives more items than it was given
		return p.size(nil, e.AsComprehension().IterRange())
	}
	if s := p.shapeOf(e); s != nil {
		return cmp.Or(s.size, p.limit)
	}
	return p.deep(e)
}

// shapeOf gives what is known of a variable and of what is read of it. nil: nothing.
func (p *pricing) shapeOf(e ast.Expr) *shape {
	switch e.Kind() {
	case ast.IdentKind:
		to, bound := p.bound[e.ID()]
		if !bound {
			return p.roots[e.AsIdent()]
		}
		if s := p.shapeOf(to.expr); to.item && s != nil && s.typ != nil && s.typ.Kind() == types.ListKind {
			return s.elem
		}
	case ast.SelectKind:
		sel := e.AsSelect()
		if t := p.ast.GetType(sel.Operand().ID()); t != nil && t.Kind() == types.StructKind {
			if obj := p.provider.objects[t.TypeName()]; obj != nil && obj.fields[sel.FieldName()] != nil && !untyped(obj.fields[sel.FieldName()].typ) {
				return obj.fields[sel.FieldName()]
			}
		}
		if s := p.shapeOf(sel.Operand()); s != nil {
			return s.at([]string{sel.FieldName()})
		}
	}
	return nil
}

// deep bounds the longest text and the longest list anywhere in a value.
func (p *pricing) deep(e ast.Expr) uint64 {
	n, ok := p.sizes.deep[e.ID()]
	if !ok {
		n = p.deepOf(e)
		p.sizes.deep[e.ID()] = n
	}
	return n
}

func (p *pricing) deepOf(e ast.Expr) (n uint64) {
	switch e.Kind() {
	case ast.LiteralKind:
		s, _ := stringOf(e)
		return uint64(len(s))
	case ast.IdentKind:
		switch to, ok := p.bound[e.ID()]; {
		case !ok:
			return p.limit
		case to.item && to.expr.Kind() == ast.ListKind:
			for _, item := range to.expr.AsList().Elements() {
				n = max(n, p.deep(item))
			}
			return n
		default:
			return p.deep(to.expr)
		}
	case ast.CallKind:
		if c := e.AsCall(); c.FunctionName() == operators.Add {
			return sum(p.deep(c.Args()[0]), p.deep(c.Args()[1]))
		}
	case ast.SelectKind:
		if s := p.shapeOf(e); s != nil && s.typ.Kind() == types.StringKind {
			return cmp.Or(s.size, p.limit)
		}
	}
	all := children(e)
	n = max(uint64(len(all)), shortText)
	for _, child := range all {
		n = max(n, p.deep(child))
	}
	return n
}

// shortText bounds the text of a number, of a time and of what type() gives.
const shortText = 64

// weight bounds what comparing a value with another costs: 1 for each byte that a list or an object takes in the call's
// arguments, which is what two items a byte apart cost.
func (p *pricing) weight(e ast.Expr) uint64 {
	n, ok := p.sizes.weight[e.ID()]
	if !ok {
		n = p.weightOf(e)
		p.sizes.weight[e.ID()] = n
	}
	return n
}

func (p *pricing) weightOf(e ast.Expr) uint64 {
	t := p.ast.GetType(e.ID())
	if e.Kind() == ast.LiteralKind || t != nil && scalar(t) {
		return scan(p.size(nil, e), 1)
	}
	switch s := p.shapeOf(e); {
	case s == nil:
	case s == p.roots["history"]:
		return times(MaxHistory, p.limit)
	default:
		return p.shapeWeight(s, 0)
	}
	switch e.Kind() {
	case ast.IdentKind:
		if to, ok := p.bound[e.ID()]; ok {
			return p.weight(to.expr)
		}
		return p.limit
	case ast.SelectKind:
		return p.weight(e.AsSelect().Operand())
	case ast.ComprehensionKind:
		return p.loopWeight(e.AsComprehension())
	}
	n := uint64(1)
	for _, child := range children(e) {
		n = sum(n, p.weight(child))
	}
	return n
}

// loopWeight is of what filter, map and optMap give. What they only pick out of their items weighs no more than those.
func (p *pricing) loopWeight(c ast.ComprehensionExpr) uint64 {
	over := p.weight(c.IterRange())
	items, whole := p.size(nil, c.IterRange()), sum(p.weight(c.AccuInit()), p.weight(c.Result()))
	walk(c.LoopStep(), nil, func(e ast.Expr, _ []string) {
		if e.Kind() != ast.ListKind || e.AsList().Size() != 1 {
			return
		}
		if given := e.AsList().Elements()[0]; picks(given, c.IterVar()) {
			whole = sum(whole, sum(over, items))
		} else {
			whole = sum(whole, times(items, p.weight(e)))
		}
	})
	return whole
}

// picks says that e is a loop's variable, or read from it.
func picks(e ast.Expr, name string) bool {
	path, ok := pathOf(e)
	first, _, _ := strings.Cut(path, ".")
	return ok && first == name
}

// maxWeightDepth is how far weighing follows a schema, which may contain itself.
const maxWeightDepth = 8

// shapeWeight is of a value that a schema describes. Whatever it is, it is a part of one call's arguments.
func (p *pricing) shapeWeight(s *shape, depth int) (n uint64) {
	switch {
	case s == nil || s.typ == nil || s.typ.Kind() == types.DynKind && len(s.fields) == 0 || depth > maxWeightDepth:
		return p.limit
	case scalar(s.typ):
		return min(scan(s.size, 1), p.limit)
	}
	if s.elem != nil {
		n = p.limit
		if s.size > 0 {
			n = times(s.size, sum(2, p.shapeWeight(s.elem, depth+1)))
		}
	}
	for _, name := range s.names {
		n = sum(n, p.shapeWeight(s.fields[name], depth+1))
	}
	return min(n, p.limit)
}

// scalar says that a value of the type is compared at once: it is no list, map or object, nor may it be one.
func scalar(t *types.Type) bool {
	switch t.Kind() {
	case types.ListKind, types.MapKind, types.StructKind, types.DynKind, types.AnyKind, types.OpaqueKind, types.TypeParamKind:
		return false
	}
	return true
}
