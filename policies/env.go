package policies

import (
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/open-multi-agent/oma/policies/shell"
	"github.com/open-multi-agent/oma/spec"
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

// vocabulary is what rules of one origin can name. Rules from above the team file have their own, since nothing that
// the team declares may change what they see.
type vocabulary struct {
	base  *cel.Env // what all calls have
	loose *cel.Env // input of any type, earlier calls too, and shell
	// typed is of the call that is judged, past of the earlier ones; each is made for the first rule that meets the tool.
	typed, past map[*tool]*cel.Env
}

func (c *compiler) newVocabulary(levels []shell.Level) (v *vocabulary, err error) {
	v = &vocabulary{typed: map[*tool]*cel.Env{}, past: map[*tool]*cel.Env{}}
	if v.base, err = newEnv(c.provider, c.variables(levels)...); err != nil {
		return nil, err
	}
	loose := []cel.EnvOption{cel.Variable("input", cel.DynType)}
	if c.in.Scope == "" {
		loose = append(loose, c.shapes.anyShell(), c.shapes.anyHistory())
	}
	v.loose, err = v.base.Extend(loose...)
	return v, err
}

// variables are what a rule can name beside the input. At a boundary that is what is there before any call.
func (c *compiler) variables(levels []shell.Level) []cel.EnvOption {
	vars := []cel.EnvOption{cel.Variable("consequential", cel.BoolType), cel.Variable("runId", cel.StringType)}
	if c.in.Scope == spec.ScopePlan {
		return vars
	}
	vars = append(vars, cel.Variable("agentName", cel.StringType), cel.Variable("role", cel.StringType), cel.Variable("taskId", cel.StringType),
		cel.Variable("marks", cel.ListType(cel.StringType)))
	if c.in.Scope == spec.ScopeDispatch {
		return vars
	}
	return append(vars, cel.Variable("toolName", cel.StringType), cel.Variable("toolCallId", cel.StringType),
		cel.Variable("budget", c.shapes.budget.typ), classifier(levels, c.shapes.risk.typ))
}

// nameable are what a rule may name, for hints.
func (c *compiler) nameable() []string {
	switch c.in.Scope {
	case spec.ScopePlan:
		return planNames
	case spec.ScopeDispatch:
		return dispatchNames
	}
	return gateNames
}

// forCall gives the environment in which a call of the tool is judged.
func (c *compiler) forCall(v *vocabulary, t *tool) (*cel.Env, error) {
	if env := v.typed[t]; env != nil {
		return env, nil
	}
	opts := []cel.EnvOption{cel.Variable("input", t.input.typ)}
	if c.in.Scope == "" {
		opts = append(opts, c.shapes.anyHistory())
	}
	if t.info.Name == shellTool {
		opts = append(opts, c.shapes.anyShell())
	}
	env, err := v.base.Extend(opts...)
	v.typed[t] = env
	return env, err
}

// forPast gives the environment in which every earlier call was a call of the tool.
func (c *compiler) forPast(v *vocabulary, t *tool) (*cel.Env, error) {
	if env := v.past[t]; env != nil {
		return env, nil
	}
	call, err := earlier(c.provider, t.typeName+pastSuffix, t.input)
	if err != nil {
		return nil, err
	}
	env, err := v.base.Extend(cel.Variable("input", cel.DynType), c.shapes.anyShell(), cel.Variable("history", cel.ListType(call.typ)))
	v.past[t] = env
	return env, err
}

// pastSuffix ends the name of the type of a tool's earlier calls.
const pastSuffix = " earlier call"

// shapes are of what rules can name beside the input.
type shapes struct{ shell, risk, budget, call *shape }

func newShapes(p *provider, limit uint64) (s shapes, err error) {
	if s.shell, err = declare(p, shellType, shellSchema); err != nil {
		return s, err
	}
	if s.risk, err = declare(p, riskType, riskSchema); err != nil {
		return s, err
	}
	for _, f := range []*shape{s.shell, s.risk} { // so that a misspelt code is an error
		f.fields["findings"].elem.fields["code"].words = shell.Codes()
	}
	if s.budget, err = declare(p, budgetType, budgetSchema); err != nil {
		return s, err
	}
	s.call, err = earlier(p, callType, &shape{typ: types.DynType, size: limit})
	return s, err
}

func (s shapes) anyShell() cel.EnvOption { return cel.Variable("shell", s.shell.typ) }

func (s shapes) anyHistory() cel.EnvOption { return cel.Variable("history", cel.ListType(s.call.typ)) }

// What a rule of a scope may name.
var (
	planNames     = []string{"consequential", "globMatch", "has", "input", "matches", "runId", "size", "within"}
	dispatchNames = []string{"agentName", "consequential", "globMatch", "has", "input", "marks", "matches", "role", "runId", "size", "taskId", "within"}
)

// gateNames are what a rule over calls may name.
var gateNames = []string{"agentName", "budget", "classifyBash", "consequential", "globMatch", "has", "history", "input", "marks", "matches", "role",
	"runId", "shell", "size", "taskId", "toolCallId", "toolName", "within"}

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
