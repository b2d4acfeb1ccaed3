package policies

import (
	"cmp"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/open-multi-agent/oma/policies/shell"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// MaxHistory is how many earlier calls of a task a rule can see, the newest ones. What must hold for ever is a mark.
const MaxHistory = 64

// maxHistoryBytes is how much of the inputs of earlier calls the rules of one call can look into.
const maxHistoryBytes = 4 << 20

// shellTool is the one tool whose input is a command line, so that shell can be asked of its calls.
const shellTool = "bash"

// findingSchema is of one reason for a risk.
const findingSchema = `{"type":"object","additionalProperties":false,"required":["code","level","reason","text"],"properties":{
	"code":{"type":"string","maxLength":64},"level":{"enum":["safe","review","high"]},
	"reason":{"type":"string","maxLength":512},"text":{"type":"string","maxLength":512}}}`

// shellSchema types what is known of a command line. Its sizes are for the estimate, and are shares: a command line is
// 64 KiB at most, so that what its lists hold together is no longer than that.
const shellSchema = `{"type":"object","additionalProperties":false,
	"required":["background","commands","findings","hasSubstitution","network","parseError","reason","redirects","risk","writes"],"properties":{
	"risk":{"enum":["safe","review","high"]},
	"reason":{"type":"string","maxLength":512},
	"findings":{"type":"array","maxItems":64,"items":` + findingSchema + `},
	"commands":{"type":"array","maxItems":256,"items":{"type":"object","additionalProperties":false,
		"required":["args","assignments","dynamic","name","path"],"properties":{
		"name":{"type":"string","maxLength":64},"path":{"type":"string","maxLength":64},"dynamic":{"type":"boolean"},
		"args":{"type":"array","maxItems":16,"items":{"type":"string","maxLength":64}},
		"assignments":{"type":"array","maxItems":16,"items":{"type":"string","maxLength":64}}}}},
	"redirects":{"type":"array","maxItems":256,"items":{"type":"object","additionalProperties":false,
		"required":["fd","known","op","target"],"properties":{
		"op":{"type":"string","maxLength":4},"fd":{"type":"string","maxLength":64},"target":{"type":"string","maxLength":64},"known":{"type":"boolean"}}}},
	"writes":{"type":"array","maxItems":256,"items":{"type":"string","maxLength":64}},
	"network":{"type":"boolean"},"hasSubstitution":{"type":"boolean"},"background":{"type":"boolean"},"parseError":{"type":"boolean"}}}`

// riskSchema types what classifyBash gives.
const riskSchema = `{"type":"object","additionalProperties":false,"required":["findings","level","reason"],"properties":{
	"level":{"enum":["safe","review","high"]},"reason":{"type":"string","maxLength":512},
	"findings":{"type":"array","maxItems":64,"items":` + findingSchema + `}}}`

// budgetSchema types what is left of the run's ceilings; a ceiling that does not exist is not there.
const budgetSchema = `{"type":"object","additionalProperties":false,"properties":{"tokens":{"type":"integer"},"cost":{"type":"number"}}}`

// earlierSchema types an earlier call; its input is added by hand.
const earlierSchema = `{"type":"object","additionalProperties":false,"required":["action","toolName"],"properties":{
	"action":{"enum":["allow","deny","suspend"]},"toolName":{"type":"string","maxLength":256}}}`

// The names of types. They have a space in them, so that no rule can build one.
const (
	shellType  = "shell facts"
	riskType   = "shell risk"
	budgetType = "budget left"
	callType   = "earlier call"
)

// declare makes the shape of a schema of ours under a type's name.
func declare(p *provider, name, schema string) (*shape, error) {
	decoded, err := canon.Decode([]byte(schema))
	if err != nil {
		return nil, err
	}
	r := schemaReader{provider: p, root: decoded, limit: defaultInputBytes, refs: map[string]*shape{}}
	return r.shape(place{name: name}, decoded)
}

// earlier declares the type of an earlier call of a tool with that input.
func earlier(p *provider, name string, input *shape) (*shape, error) {
	s, err := declare(p, name, earlierSchema)
	if err != nil {
		return nil, err
	}
	s.fields["input"] = input
	s.names = []string{"action", "input", "toolName"}
	s.always["input"] = true
	return s, nil
}

// levelsOf gives the classifier's own words for a team's levels.
func levelsOf(all []spec.ShellLevel) []shell.Level {
	out := make([]shell.Level, len(all))
	for i, l := range all {
		out[i] = shell.Level{Match: l.Match, Level: l.Level, Reason: l.Reason, Override: l.Override}
	}
	return out
}

// classifier declares classifyBash. Its price is in pricing.
func classifier(levels []shell.Level, result *types.Type) cel.EnvOption {
	return cel.Function("classifyBash", cel.Overload("classifyBash_string", []*cel.Type{cel.StringType}, result,
		cel.UnaryBinding(func(v ref.Val) ref.Val {
			text, ok := v.(types.String)
			if !ok {
				return types.MaybeNoSuchOverloadErr(v)
			}
			f := shell.Classify(string(text), levels)
			return types.DefaultTypeAdapter.NativeToValue(map[string]any{"level": f.Risk, "reason": f.Reason, "findings": findingValues(f.Findings)})
		})))
}

// shellValue gives facts as CEL reads them.
func shellValue(f shell.Facts) map[string]any {
	commands := make([]any, len(f.Commands))
	for i, c := range f.Commands {
		commands[i] = map[string]any{"name": c.Name, "path": c.Path, "args": texts(c.Args), "dynamic": c.Dynamic, "assignments": texts(c.Assignments)}
	}
	redirects := make([]any, len(f.Redirects))
	for i, r := range f.Redirects {
		redirects[i] = map[string]any{"op": r.Op, "fd": r.FD, "target": r.Target, "known": r.Known}
	}
	return map[string]any{"risk": f.Risk, "reason": f.Reason, "findings": findingValues(f.Findings), "commands": commands, "redirects": redirects,
		"writes": texts(f.Writes), "network": f.Network, "hasSubstitution": f.HasSubstitution, "background": f.Background, "parseError": f.ParseError}
}

func findingValues(all []shell.Finding) []any {
	out := make([]any, len(all))
	for i, f := range all {
		out[i] = map[string]any{"level": f.Level, "code": f.Code, "reason": f.Reason, "text": f.Text}
	}
	return out
}

func texts(all []string) []any {
	out := make([]any, len(all))
	for i, s := range all {
		out[i] = s
	}
	return out
}

// budgetValue gives what is left as CEL reads it: dollars as a number.
func budgetValue(b *spec.BudgetRemaining) map[string]any {
	out := map[string]any{}
	if b == nil {
		return out
	}
	if b.Tokens != nil {
		out["tokens"] = *b.Tokens
	}
	if b.Cost != nil {
		out["cost"] = float64(*b.Cost) / float64(spec.Dollar)
	}
	return out
}

// historyValue gives earlier calls as CEL reads them, the newest last.
func (s *Set) historyValue(r *Request) []any {
	calls := r.History
	if len(calls) > MaxHistory {
		calls = calls[len(calls)-MaxHistory:]
	}
	out, left := make([]any, len(calls)), maxHistoryBytes
	for i, c := range calls {
		input := &earlierInput{text: c.Input, left: &left}
		if g := s.calls[callKey{r.AgentName, c.ToolName}]; g != nil {
			input.schema = g.schema
		}
		out[i] = map[string]any{"toolName": c.ToolName, "action": cmp.Or(c.Action, spec.ActionAllow), "input": input}
	}
	return out
}
