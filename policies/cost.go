package policies

import (
	"fmt"
	"regexp/syntax"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
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
	// interruptEvery is how many loop steps a metered rule takes between looks at its context.
	interruptEvery = 100
	// perStep is the price of one character and one step.
	perStep = 0.1
)

// pricing knows how large values can be and what calls cost. It is immutable once its rule is compiled.
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

// CallCost implements interpreter.ActualCostEstimator, with the same prices.
func (p *pricing) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	if len(args) != 2 {
		return nil
	}
	a, ok := args[0].(types.String)
	b, ok2 := args[1].(types.String)
	if !ok || !ok2 {
		return nil
	}
	var cost uint64
	switch function {
	case "matches":
		cost = scan(uint64(len(a)), p.steps[string(b)])
	case "globMatch":
		cost = scan(uint64(len(b)), p.steps[string(a)])
	case "within":
		cost = scan(uint64(len(a)), 1) + scan(uint64(len(b)), 1)
	default:
		return nil
	}
	return &cost
}

// mustMeter says that an estimate is no upper bound: some value has no type, or a list was built on the way, whose
// elements the estimate loses sight of.
func mustMeter(a *cel.Ast) bool {
	for _, t := range a.NativeRep().TypeMap() {
		if untyped(t) {
			return true
		}
	}
	meter := false
	walk(a.NativeRep().Expr(), nil, func(e ast.Expr, _ []string) {
		if e.Kind() == ast.ComprehensionKind {
			k := e.AsComprehension().AccuInit().Kind()
			meter = meter || k == ast.ListKind || k == ast.MapKind
		}
	})
	return meter
}

func untyped(t *types.Type) bool {
	switch t.Kind() {
	case types.DynKind, types.AnyKind, types.TypeParamKind:
		return true
	case types.TypeKind: // the type of a type says nothing of a value
		return false
	}
	for _, p := range t.Parameters() {
		if untyped(p) {
			return true
		}
	}
	return false
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
