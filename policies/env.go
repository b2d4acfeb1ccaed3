package policies

import (
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// The limits of one expression.
const (
	maxExprRunes   = 16 << 10
	maxExprDepth   = 64
	maxErrors      = 20  // that are shown
	identifierSize = 256 // runes of a name or an id, for the estimate
)

// newEnv makes an environment for one compilation. Nothing of it is global, and nothing is built before it is asked
// for. The first environment of a process takes 0.2 to 0.9 ms, later ones 40 µs.
//
// A variable may be added later with Extend but never given another type: declare here what all rules share.
func newEnv(p *provider, vars ...cel.EnvOption) (*cel.Env, error) {
	opts := []cel.EnvOption{
		cel.CustomTypeProvider(p),
		cel.CustomTypeAdapter(adapter{p.Registry}),
		cel.OptionalTypes(),
		cel.EnableIdentifierEscapeSyntax(),
		cel.ParserExpressionSizeLimit(maxExprRunes),
		cel.ParserRecursionLimit(maxExprDepth),
		cel.ParserErrorRecoveryLimit(4),
		cel.Variable(tickName, cel.BoolType),
		predicate("within", within),
		predicate("globMatch", globMatch),
	}
	return cel.NewEnv(append(opts, vars...)...)
}

func newProvider() (*provider, error) {
	reg, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	return &provider{Registry: reg, objects: map[string]*shape{}, missed: map[string]*shape{}}, nil
}

// adapter hides that it is a registry, which Extend would copy for every tool.
type adapter struct{ types.Adapter }

// gateVars are the variables of every gate rule but input, whose type is the tool's.
func gateVars() []cel.EnvOption {
	return []cel.EnvOption{
		cel.Variable("toolName", cel.StringType),
		cel.Variable("agentName", cel.StringType),
		cel.Variable("role", cel.StringType),
		cel.Variable("consequential", cel.BoolType),
		cel.Variable("runId", cel.StringType),
		cel.Variable("taskId", cel.StringType),
		cel.Variable("toolCallId", cel.StringType),
	}
}

// gateNames are what a rule may name, for hints.
var gateNames = []string{"agentName", "consequential", "globMatch", "has", "input", "matches", "role", "runId", "size", "taskId", "toolCallId", "toolName", "within"}

// laterNames are documented for rules and not there yet.
var laterNames = []string{"budget", "classifyBash", "history", "marks", "shell"}

// predicate declares a function of two strings. Its price is in pricing.
func predicate(name string, f func(a, b string) ref.Val) cel.EnvOption {
	return cel.Function(name, cel.Overload(name+"_string_string", []*cel.Type{cel.StringType, cel.StringType}, cel.BoolType,
		cel.BinaryBinding(func(a, b ref.Val) ref.Val {
			x, ok := a.(types.String)
			y, ok2 := b.(types.String)
			if !ok || !ok2 {
				return types.MaybeNoSuchOverloadErr(a)
			}
			return f(string(x), string(y))
		})))
}

// within says whether a path is root or below it. It looks at the text alone: links are not followed, and a relative
// path is never within an absolute root, nor the other way round.
func within(p, root string) ref.Val {
	if root == "" {
		return types.NewErr("within needs a root")
	}
	p, root = path.Clean(p), path.Clean(root)
	switch {
	case path.IsAbs(p) != path.IsAbs(root):
		return types.False
	case p == root, root == "/":
		return types.True
	case root == ".":
		return types.Bool(p != ".." && !strings.HasPrefix(p, "../"))
	}
	return types.Bool(strings.HasPrefix(p, root+"/"))
}

// globMatch matches a whole path, * within one name and ** across names.
func globMatch(pattern, p string) ref.Val {
	ok, err := doublestar.Match(pattern, p)
	if err != nil {
		return types.NewErr("bad pattern")
	}
	return types.Bool(ok)
}
