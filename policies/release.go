package policies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// RoleSchema says what the structured answer of a required role is. A nil schema: the role gives text only.
type RoleSchema struct {
	Role         string
	OutputSchema spec.Schema
}

// RoleResult is what release requirements may look at.
type RoleResult struct {
	Structured any // as canon.Decode gives it; nil: none
	Text       string
	StopReason string
	Turns      int
	Calls      []CallFact
	FilesRead  []string // below the agent's cwd, with /
	Denied     int
}

// CallFact is one call that a role asked for.
type CallFact struct {
	ToolName string
	Input    map[string]any // nil: the call was not accepted, so there is none
	Action   string         // allow, deny, suspend or refused
	IsError  bool
}

// Release holds compiled requirements. It is immutable and safe for concurrent use.
type Release struct {
	requirements []requirement
	schemas      map[string]any // decoded, by role
}

type requirement struct {
	spec.Requirement
	program cel.Program
	roles   []string // that it looks at
}

// CompileRelease checks requirements against the roles there are. at is the path of the list. The release is nil if
// anything is an error.
func CompileRelease(reqs []spec.Requirement, roles []RoleSchema, at spec.Path) (*Release, spec.Diagnostics) {
	rel := &Release{schemas: map[string]any{}}
	if len(reqs) == 0 {
		return rel, nil
	}
	c := &releaseCompiler{release: rel}
	if err := c.open(roles); err != nil {
		c.diags.Errorf("release-type", at, "requirements cannot be compiled: %v", err)
		return nil, c.diags
	}
	seen := map[string]bool{}
	for i, req := range reqs {
		if seen[req.Name] { // the conclusion looks outcomes up by name
			c.diags.Errorf("duplicate-name", at.Index(i).Key("name"), "requirement %q is declared twice", req.Name)
		}
		seen[req.Name] = true
		c.requirement(req, at.Index(i).Key("that"))
	}
	if c.diags.HasErrors(false) {
		return nil, c.diags
	}
	c.provider.missed = nil
	return rel, c.diags
}

type releaseCompiler struct {
	release  *Release
	provider *provider
	env      *cel.Env
	results  *shape
	diags    spec.Diagnostics
}

func (c *releaseCompiler) open(roles []RoleSchema) (err error) {
	if c.provider, err = newProvider(); err != nil {
		return err
	}
	c.results = c.provider.object("the results", nil)
	roles = slices.Clone(roles)
	slices.SortFunc(roles, func(a, b RoleSchema) int { return strings.Compare(a.Role, b.Role) })
	for _, r := range roles {
		s, err := c.role(r)
		if err != nil {
			return fmt.Errorf("output schema of %q: %w", r.Role, err)
		}
		c.results.add(r.Role, s, true)
	}
	c.env, err = newEnv(c.provider, cel.Variable("results", c.results.typ))
	return err
}

// resultSchema is what every role's result has.
const resultSchema = `{"type":"object","required":["calls","denied","filesRead","stopReason","text","turns"],"properties":{
	"calls":{"type":"array","items":{"type":"object","required":["action","isError","toolName"],"properties":{
		"action":{"enum":["allow","deny","suspend","refused"]},"input":{"type":"object"},"isError":{"type":"boolean"},"toolName":{"type":"string"}}}},
	"denied":{"type":"integer"},
	"filesRead":{"type":"array","items":{"type":"string"}},
	"stopReason":{"enum":["completed","max_turns","refused","length","budget","cancelled","timeout","empty","error","suspended","rejected"]},
	"text":{"type":"string"},
	"turns":{"type":"integer"}}}`

func (c *releaseCompiler) role(r RoleSchema) (*shape, error) {
	common, err := canon.Decode([]byte(resultSchema))
	if err != nil {
		return nil, err
	}
	reader := schemaReader{provider: c.provider, root: common, limit: defaultInputBytes, refs: map[string]*shape{}}
	s, err := reader.shape(place{name: r.Role + " result"}, common)
	if err != nil || len(r.OutputSchema) == 0 {
		return s, err
	}
	out, err := canon.Decode(r.OutputSchema)
	if err != nil {
		return nil, err
	}
	c.release.schemas[r.Role] = out
	reader = schemaReader{provider: c.provider, root: out, limit: defaultInputBytes, refs: map[string]*shape{}}
	structured, err := reader.shape(place{name: r.Role + " answer"}, out)
	if err != nil {
		return nil, err
	}
	s.add("structured", structured, true)
	slices.Sort(s.names)
	return s, nil
}

func (c *releaseCompiler) requirement(req spec.Requirement, path spec.Path) {
	report := func(f finding) {
		f.report(&c.diags, "release-", path, fmt.Sprintf("requirement %q", req.Name), req.That)
	}
	clear(c.provider.missed)
	parsed, root, iss := parseAndCheck(c.env, req.That)
	if iss.Err() != nil {
		for _, f := range c.sharpen(explain(iss, c.provider, root, []string{"results", "has", "size", "within", "globMatch", "matches"})) {
			report(f)
		}
		return
	}
	findings := append(inspect(parsed, map[string]uint64{}), lint(c.provider, parsed)...)
	if f, ok := wants(parsed, cel.BoolType); !ok {
		findings = append(findings, f)
	}
	before := len(c.diags)
	for _, f := range findings {
		report(f)
	}
	if c.diags[before:].HasErrors(false) {
		return
	}
	program, err := c.program(parsed)
	if err != nil {
		report(finding{kind: "type", message: fmt.Sprintf("cannot be planned: %v", err)})
		return
	}
	c.release.requirements = append(c.release.requirements, requirement{req, program, rolesRead(parsed, c.results.names)})
}

// program plans a requirement with its loops metered. Results have no bounds, so there is no estimate to hold it to.
func (c *releaseCompiler) program(a *cel.Ast) (cel.Program, error) {
	metered, err := meterLoops(c.env, a)
	if err != nil {
		return nil, err
	}
	return c.env.Program(metered, cel.EvalOptions(cel.OptOptimize))
}

// resultVariables are what a requirement can name.
type resultVariables struct {
	results map[string]any
	meter   meter
}

// ResolveName implements cel.Activation.
func (v *resultVariables) ResolveName(name string) (any, bool) {
	switch name {
	case "results":
		return v.results, true
	case tickName:
		return v.meter.tick(), true
	}
	return nil, false
}

// Parent implements cel.Activation.
func (v *resultVariables) Parent() cel.Activation { return nil }

// sharpen gives the hints that only results need: their valid names, roles with a hyphen, answers without a schema.
func (c *releaseCompiler) sharpen(all []finding) []finding {
	for i, f := range all {
		switch {
		case f.object == nil:
		case f.object == c.results:
			all[i].message = fmt.Sprintf("results has no role %q", f.name)
			all[i].hint = "roles are " + strings.Join(c.results.names, ", ")
			for _, role := range c.results.names {
				if strings.HasPrefix(role, f.name+"-") { // CEL reads a-b as a subtraction
					all[i].hint = fmt.Sprintf("write results.`%s`", role)
					return all[i : i+1]
				}
			}
		case f.name == "structured":
			all[i].hint = "give the agent an outputSchema"
		default:
			all[i].hint = fields(cmp.Or(f.path, "it"), f.object, "has")
		}
	}
	return all
}

// rolesRead gives the roles that an expression looks at: all of them where it uses results as a whole.
func rolesRead(a *cel.Ast, all []string) (roles []string) {
	uses, selected := 0, 0
	walk(a.NativeRep().Expr(), nil, func(e ast.Expr, shadow []string) {
		if isVariable(e, "results", shadow) {
			uses++
		}
		if e.Kind() == ast.SelectKind && isVariable(e.AsSelect().Operand(), "results", shadow) {
			selected++
			roles = append(roles, e.AsSelect().FieldName())
		}
	})
	if uses > selected {
		return all
	}
	return roles
}

// Judge evaluates every requirement, in order. A requirement that cannot be evaluated, or that looks at a role without
// a result, has outcome error: it never holds.
func (r *Release) Judge(results map[string]RoleResult) []spec.Released {
	if r == nil {
		return []spec.Released{{Name: "release", Outcome: outcomeError, Reason: "the requirements are not in force"}}
	}
	if len(r.requirements) == 0 {
		return nil
	}
	values := map[string]any{}
	var bad error
	for _, role := range sortedKeys(results) {
		v, err := r.value(role, results[role])
		if err != nil {
			bad = fmt.Errorf("the answer of %q is not usable: %w", role, err)
		}
		values[role] = v
	}
	out := make([]spec.Released, len(r.requirements))
	for i, req := range r.requirements {
		out[i] = req.judge(values, bad)
	}
	return out
}

func (q *requirement) judge(values map[string]any, bad error) spec.Released {
	failed := func(reason string) spec.Released {
		return spec.Released{Name: q.Name, Outcome: outcomeError, Reason: reason}
	}
	for _, role := range q.roles {
		if _, ok := values[role]; !ok {
			return failed(fmt.Sprintf("%q has no result", role))
		}
	}
	if bad != nil {
		return failed(bad.Error())
	}
	vars := &resultVariables{results: values}
	held, err := boolean(q.program, vars, &vars.meter)
	switch {
	case err != nil:
		return failed("it could not be evaluated: " + strings.Replace(cause(err), "the input", "the result", 1))
	case !held:
		reason := q.Reason
		if reason == "" {
			reason = "it does not hold"
		}
		return spec.Released{Name: q.Name, Outcome: "failed", Reason: reason}
	}
	return spec.Released{Name: q.Name, Outcome: "held"}
}

// value gives a result as CEL reads it. The answer is copied, since shaping changes it in place.
func (r *Release) value(role string, res RoleResult) (map[string]any, error) {
	calls := make([]any, len(res.Calls))
	for i, c := range res.Calls {
		calls[i] = map[string]any{"toolName": c.ToolName, "action": c.Action, "isError": c.IsError}
		if c.Input != nil {
			calls[i].(map[string]any)["input"] = c.Input
		}
	}
	files := make([]any, len(res.FilesRead))
	for i, f := range res.FilesRead {
		files[i] = f
	}
	out := map[string]any{"text": res.Text, "stopReason": res.StopReason, "turns": int64(res.Turns), "calls": calls, "filesRead": files, "denied": int64(res.Denied)}
	if res.Structured == nil {
		return out, nil
	}
	raw, err := canon.Bytes(res.Structured)
	if err != nil {
		return out, err
	}
	copied, err := canon.Decode(raw)
	out["structured"] = canon.Shape(r.schemas[role], copied)
	return out, err
}
