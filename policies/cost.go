package policies

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/open-multi-agent/oma/policies/shell"
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
	// readingBase and perShellByte price reading a command line: 20 µs for a usual one, and up to 0.3 µs a byte.
	readingBase  = 400
	perShellByte = 6
	// perStep is the price of one character and one step.
	perStep = 0.1
)

// pricing knows how large values can be and what calls cost. Whatever it knows nothing of it takes to be as large as a
// whole input, so that the estimate errs upwards. Reads of untyped values alone are estimated at too little, by 1 each.
type pricing struct {
	roots    map[string]*shape // by variable
	provider *provider
	ast      *ast.AST // of the expression that is priced, with its types
	bound    bindings
	sizes    sizes
	limit    uint64 // size of what no schema bounds
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
	return &checker.SizeEstimate{Max: p.size(n.Path(), n.Expr())}
}

// EstimateCallCost implements checker.CostEstimator.
func (p *pricing) EstimateCallCost(function, _ string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	nodes := args
	if target != nil {
		nodes = append([]checker.AstNode{*target}, args...)
	}
	var cost uint64
	switch {
	case function == "classifyBash" && len(nodes) == 1:
		cost = reading(p.sizeOf(nodes[0]))
	case function == "matches" && len(nodes) == 2:
		cost = p.match(nodes[1].Expr(), p.sizeOf(nodes[0]))
	case function == "globMatch" && len(nodes) == 2:
		cost = p.match(nodes[0].Expr(), p.sizeOf(nodes[1]))
	case function == "within" && len(nodes) == 2:
		cost = scan(p.sizeOf(nodes[0]), 1) + scan(p.sizeOf(nodes[1]), 1)
	case len(nodes) == 1 && readsText(function, nodes[0].Type()):
		cost = scan(p.sizeOf(nodes[0]), 1)
	case len(nodes) == 2 && p.ast != nil:
		cost = p.lookup(function, nodes[0], nodes[1])
	}
	if cost == 0 {
		return nil // CEL's own figure is right
	}
	return &checker.CallEstimate{CostEstimate: checker.CostEstimate{Min: 1, Max: cost}}
}

// readsText says that a function goes through the text it is given, which CEL's own estimate takes to cost nothing.
func readsText(function string, of *types.Type) bool {
	switch of.Kind() {
	case types.StringKind, types.BytesKind, types.DynKind, types.AnyKind:
	default:
		return false
	}
	switch function {
	case "size", "int", "uint", "double", "bool", "duration", "timestamp":
		return true
	}
	return false
}

// lookup prices comparing lists, maps and objects, which CEL takes to be flat, and finding a key. 0: CEL's own figure is
// right.
func (p *pricing) lookup(function string, l, r checker.AstNode) uint64 {
	switch function {
	case operators.Equals, operators.NotEquals:
		if scalar(l.Type()) && scalar(r.Type()) {
			return 0
		}
		return min(p.weight(l.Expr()), p.weight(r.Expr()))
	case operators.Index, operators.OptIndex:
		if text := r.Type().Kind(); text == types.StringKind || text == types.DynKind {
			return scan(p.sizeOf(r), 1)
		}
	case operators.In:
		return p.search(l, r)
	}
	return 0
}

// search prices x in y.
func (p *pricing) search(x, y checker.AstNode) uint64 {
	t := y.Type()
	switch {
	case t.Kind() == types.MapKind:
		return scan(p.sizeOf(x), 1)
	case t.Kind() == types.ListKind && scalar(x.Type()) && scalar(t.Parameters()[0]):
		return 0
	}
	items := p.sizeOf(y)
	return sum(items, min(p.weight(y.Expr()), times(items, p.weight(x.Expr()))))
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

// reading prices the facts of a command line.
func reading(size uint64) uint64 {
	return readingBase + uint64(float64(min(size, shell.MaxBytes))*perShellByte)
}

// untyped says that some part of a type is not known.
func untyped(t *types.Type) bool {
	return t.Kind() == types.DynKind || slices.ContainsFunc(t.Parameters(), untyped)
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
