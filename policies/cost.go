package policies

import (
	"context"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

const (
	// maxRuleCost bounds one judgement of one rule, in CEL cost units of about 50 ns.
	maxRuleCost = 10_000_000
	// defaultInputBytes bounds the arguments of one call where no agent says otherwise.
	defaultInputBytes = 1 << 20
	// maxPatternSteps bounds a pattern's compiled size. Matching takes about 5 ns for each character and step, and
	// neither CEL's own figures nor its interrupts see that.
	maxPatternSteps = 100
	// maxGlobRunes and maxGlobBranches bound a glob: every combination of its {a,b} is tried by itself.
	maxGlobRunes    = 256
	maxGlobBranches = 64
	// maxLoopSteps bounds the steps of all loops of one judgement, should an estimate ever be wrong: 0.3 s where a step
	// is cheap.
	maxLoopSteps = 1_000_000
	// contextEvery is how many steps pass between looks at the context.
	contextEvery = 1024
	// perStep is the price of one character and one step.
	perStep = 0.1
)

// pricing knows how large values can be and what calls cost. Whatever it knows nothing of it takes to be as large as a
// whole input, so that the estimate errs upwards. Reads of untyped values alone are estimated at too little, by 1 each.
type pricing struct {
	roots map[string]*shape // by variable
	limit uint64            // size of what no schema bounds
	// steps has the patterns of one rule and what one character costs to match, in steps.
	steps map[string]uint64
}

// EstimateSize implements checker.CostEstimator.
func (p *pricing) EstimateSize(n checker.AstNode) *checker.SizeEstimate {
	switch n.Type().Kind() {
	case types.StringKind, types.BytesKind, types.ListKind, types.MapKind, types.StructKind, types.DynKind, types.AnyKind:
	default:
		return nil
	}
	size := p.limit
	if path := n.Path(); len(path) > 0 {
		if s := p.roots[path[0]].at(path[1:]); s != nil && s.size > 0 {
			size = s.size
		}
	}
	return &checker.SizeEstimate{Max: size}
}

// EstimateCallCost implements checker.CostEstimator.
func (p *pricing) EstimateCallCost(function, _ string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	nodes := args
	if target != nil {
		nodes = append([]checker.AstNode{*target}, args...)
	}
	if len(nodes) != 2 {
		return nil
	}
	var cost uint64
	switch function {
	case "matches":
		cost = p.match(nodes[1].Expr(), p.sizeOf(nodes[0]))
	case "globMatch":
		cost = p.match(nodes[0].Expr(), p.sizeOf(nodes[1]))
	case "within":
		cost = scan(p.sizeOf(nodes[0]), 1) + scan(p.sizeOf(nodes[1]), 1)
	default:
		return nil
	}
	return &checker.CallEstimate{CostEstimate: checker.CostEstimate{Min: 1, Max: cost}}
}

func (p *pricing) sizeOf(n checker.AstNode) uint64 {
	if s := n.ComputedSize(); s != nil {
		return s.Max
	}
	if s := p.EstimateSize(n); s != nil {
		return s.Max
	}
	return p.limit
}

func (p *pricing) match(pattern ast.Expr, size uint64) uint64 {
	text, _ := stringOf(pattern)
	return scan(size, p.steps[text])
}

// scan prices looking at every character of a text. It cannot overflow: texts have at most 2^53 characters and patterns
// a few thousand steps.
func scan(size, steps uint64) uint64 { return uint64(float64(size+1)*float64(steps)*perStep) + 1 }

// untyped says that some part of a type is not known.
func untyped(t *types.Type) bool {
	return t.Kind() == types.DynKind || slices.ContainsFunc(t.Parameters(), untyped)
}

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

// patternSteps gives what one character costs to match against a regular expression.
func patternSteps(expr string) (uint64, error) {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return 0, fmt.Errorf("bad pattern: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return 0, fmt.Errorf("bad pattern: %w", err)
	}
	if n := len(prog.Inst); n > maxPatternSteps {
		return 0, fmt.Errorf("the pattern compiles to %d steps; at most %d are allowed", n, maxPatternSteps)
	}
	return uint64(len(prog.Inst)), nil
}

// globSteps does the same for a glob.
func globSteps(pattern string) (uint64, error) {
	if !doublestar.ValidatePattern(pattern) {
		return 0, fmt.Errorf("%q is no glob", pattern)
	}
	if n := len([]rune(pattern)); n > maxGlobRunes {
		return 0, fmt.Errorf("the glob has %d characters; at most %d are allowed", n, maxGlobRunes)
	}
	branches := globBranches(pattern)
	if branches > maxGlobBranches {
		return 0, fmt.Errorf("the glob has more than %d combinations of its {…}", maxGlobBranches)
	}
	return branches * uint64(len(pattern)+1), nil
}

// globBranches is an upper bound of the ways through all {…}: nested ones are counted as if they stood side by side.
func globBranches(pattern string) uint64 {
	ways := uint64(1)
	for _, group := range strings.Split(pattern, "{")[1:] {
		inside, after, _ := strings.Cut(group, "}")
		ways *= uint64(strings.Count(inside, ",")+strings.Count(after, ",")) + 1
		if ways > maxGlobBranches {
			break
		}
	}
	return ways
}
