package policies

import (
	"context"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// tickName is the variable that every loop asks before each step. No rule can write it. Its value is true until the
// rule has used up its steps.
//
// CEL has a cost limit of its own, which is no use here: its tracker searches a growing stack at every step. Nested
// loops took 13 s to reach a limit of 10,000,000 over lists of 2,000 items, and 80 s over 20,000.
const tickName = "@tick"

// addTick puts the question into a comprehension.
func addTick(ctx *cel.OptimizerContext, e ast.Expr) {
	cond := e.AsComprehension().LoopCondition()
	old := ctx.NewLiteral(types.True)
	old.SetKindCase(cond)
	ctx.UpdateExpr(cond, ctx.NewCall(operators.LogicalAnd, old, ctx.NewIdent(tickName)))
}

// meter counts the steps of one judgement. The zero value is ready.
type meter struct {
	ctx   context.Context // nil: cannot end
	steps int
	spent bool
}

// tick says whether the loop may go on.
func (m *meter) tick() bool {
	m.steps++
	if m.steps > maxLoopSteps || m.steps%contextEvery == 0 && m.ctx != nil && m.ctx.Err() != nil {
		m.spent = true
	}
	return !m.spent
}

// unbounded says that an expression may run away: it loops over what no schema describes, over the words of a command
// line, whose lists share one bound, or inside another loop, where an estimate that is wrong is wrong many times over.
func unbounded(a *cel.Ast) bool {
	rep, loops, open := a.NativeRep(), false, false
	walk(rep.Expr(), nil, func(e ast.Expr, shadow []string) {
		if e.Kind() == ast.ComprehensionKind {
			loops, open = true, open || len(shadow) > 0
		}
		t := rep.GetType(e.ID())
		open = open || t != nil && untyped(t) || isVariable(e, "shell", shadow)
	})
	return loops && open
}

// meterLoops puts a meter into every loop.
func meterLoops(env *cel.Env, a *cel.Ast) (*cel.Ast, error) {
	opt, err := cel.NewStaticOptimizer(metering{})
	if err != nil {
		return nil, err
	}
	a, iss := opt.Optimize(env, a)
	if iss != nil && iss.Err() != nil {
		return nil, iss.Err()
	}
	return a, nil
}

type metering struct{}

// Optimize implements cel.ASTOptimizer.
func (metering) Optimize(ctx *cel.OptimizerContext, a *ast.AST) *ast.AST {
	walk(a.Expr(), nil, func(e ast.Expr, _ []string) {
		if e.Kind() == ast.ComprehensionKind {
			addTick(ctx, e)
		}
	})
	return a
}
