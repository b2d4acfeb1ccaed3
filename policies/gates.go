package policies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"

	"github.com/open-multi-agent/oma/policies/shell"
	"github.com/open-multi-agent/oma/schemas"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// RuleSet is what gates are compiled from: the rules in force and who can reach which tool.
type RuleSet struct {
	// Scope is plan or task_dispatch for the rules of a boundary; see [Boundary]. Empty: rules over calls.
	Scope string
	// Declared is false when neither team nor any agent declares gates: calls are then not gated.
	Declared bool
	Default  string // allow (or empty) or deny
	// Rules carry their place: Path in the document Doc (empty: the team file). AppliesTo is filled in by Compile.
	Rules  []spec.PlanRule
	Agents []AgentTools
	// Alone says that the rules are checked without a team: names that are like none of Known may be of a team's own tools.
	Alone bool
	// Known are the tools that exist whether or not anybody may use them.
	Known []spec.ToolInfo
	// Roles are the required roles a task may fill. nil: there are none, and role is always empty.
	Roles []string
	// Marks are those that may be set beside those that Rules set. nil, at a boundary: any.
	Marks []string
	// Levels extend what is known of shell commands, for all rules but those from above the team file.
	Levels []spec.ShellLevel
}

// AgentTools are the tools that one agent is granted.
type AgentTools struct {
	Name  string
	Tools []spec.ToolInfo
	// MaxInputBytes bounds the arguments of one call. 0: 1 MiB.
	MaxInputBytes int
}

// Set holds compiled rules. It is immutable and safe for concurrent use. A nil Set denies every call.
type Set struct {
	declared bool
	permit   bool // the default allows
	rules    []spec.PlanRule
	calls    map[callKey]*gate
	levels   []shell.Level // for rules that are not from above
	traces   map[*spec.PlanRule]trace
	past     map[string]bool // agents whose calls meet a rule that reads history
}

type callKey struct{ agent, tool string }

// gate is everything one agent's calls of one tool must pass.
type gate struct {
	input  *shape // nil: there are no rules
	schema any    // of the input, decoded
	rules  []*judge
}

// judge is one rule checked for one tool.
type judge struct {
	rule    *spec.PlanRule
	plain   bool // the team's levels of shell commands do not reach it
	program cel.Program
	reason  cel.Program // nil: the rule's reason is a text
	notes   []note
}

// note is a text that a rule adds to the record.
type note struct {
	name    string
	program cel.Program
}

// ReadsHistory says that a rule over an agent's calls looks at its earlier ones.
func (s *Set) ReadsHistory(agent string) bool { return s != nil && s.past[agent] }

// Rules gives the rules with the tools each can match and the static cost of judging one call.
func (s *Set) Rules() []spec.PlanRule {
	if s == nil {
		return nil
	}
	return slices.Clone(s.rules)
}

// Compile checks every rule against every tool it can meet, runs the examples, and gives the set in force. The set is
// nil if anything is an error. All problems are reported in one pass.
func Compile(in RuleSet) (*Set, spec.Diagnostics) {
	s := &Set{declared: in.Declared, permit: in.Default != spec.ActionDeny, rules: slices.Clone(in.Rules), calls: map[callKey]*gate{},
		levels: levelsOf(in.Levels), traces: map[*spec.PlanRule]trace{}, past: map[string]bool{}}
	c := &compiler{in: in, set: s, limit: defaultInputBytes, tools: map[string]*tool{}}
	if in.Default != "" && in.Default != spec.ActionAllow && in.Default != spec.ActionDeny {
		c.diags.Errorf("gate-action", "gates.default", "default %q is neither allow nor deny", in.Default)
	}
	c.levels()
	if len(s.rules) > 0 {
		if err := c.open(); err != nil {
			c.diags.Errorf("gate-type", "", "rules cannot be compiled: %v", err)
			return nil, c.diags
		}
	}
	c.agents()
	c.marks = marksOf(s.rules, in.Marks)
	for i := range s.rules {
		c.rule(&s.rules[i])
	}
	if c.diags.HasErrors(false) {
		return nil, c.diags
	}
	if c.provider != nil {
		c.provider.missed = nil // from here on it is only read
	}
	return s, c.diags
}

type compiler struct {
	in       RuleSet
	set      *Set
	diags    spec.Diagnostics
	limit    uint64 // bytes of one call's arguments
	provider *provider
	shapes   shapes
	own      *vocabulary // with the team's levels
	plain    *vocabulary // without. nil: not needed yet, or the team has none
	tools    map[string]*tool
	known    []*tool
	reach    []reached
	names    []string // of all tools, sorted
	marks    []string // that some rule sets, sorted
}

// tool is a tool as rules see it. Two agents may have tools of one name with different schemas.
type tool struct {
	info      spec.ToolInfo
	schema    any // decoded
	input     *shape
	subject   bool               // it is none: its input is what a boundary judges
	typeName  string             // without what follows it: the types of the input and of its parts begin so
	validator *schemas.Validator // made for the first example
}

type reached struct {
	agent string
	tool  *tool
}

func (c *compiler) open() (err error) {
	if c.provider, err = newProvider(); err != nil {
		return err
	}
	if c.shapes, err = newShapes(c.provider, c.limit); err != nil {
		return err
	}
	c.own, err = c.newVocabulary(c.set.levels)
	return err
}

// vocabulary gives what a rule can name: with the team's levels of shell commands, or plain.
func (c *compiler) vocabulary(plain bool) (*vocabulary, error) {
	if !plain || len(c.set.levels) == 0 {
		return c.own, nil
	}
	var err error
	if c.plain == nil {
		c.plain, err = c.newVocabulary(nil)
	}
	return c.plain, err
}

// levels checks what the team says of shell commands.
func (c *compiler) levels() {
	for i, l := range c.set.levels {
		at := spec.Path("gates.shell.levels").Index(i)
		if err := shell.CheckLevel(l); err != nil {
			c.diags.Errorf("shell-level", at, "%v", err)
		}
	}
}

// marksOf gives the marks that rules set, and others.
func marksOf(rules []spec.PlanRule, others []string) []string {
	marks := slices.Clone(others)
	for _, r := range rules {
		if r.Mark != "" {
			marks = append(marks, r.Mark)
		}
	}
	slices.Sort(marks)
	return slices.Compact(marks)
}

// agents registers every tool before any rule is looked at, since sizes depend on the largest input of all.
func (c *compiler) agents() {
	for _, a := range c.in.Agents {
		c.limit = max(c.limit, uint64(max(a.MaxInputBytes, 0)))
	}
	for _, info := range c.in.Known {
		c.known = append(c.known, c.tool(info))
	}
	for _, a := range c.in.Agents {
		for _, info := range a.Tools {
			t := c.tool(info)
			c.reach = append(c.reach, reached{a.Name, t})
			c.set.calls[callKey{a.Name, info.Name}] = &gate{input: t.input, schema: t.schema}
		}
	}
	slices.Sort(c.names)
	c.names = slices.Compact(c.names)
}

// tool gives the tool of that name and schema. Without rules nobody needs its type.
func (c *compiler) tool(info spec.ToolInfo) *tool {
	key := info.Name + "\x00" + string(spec.CompactSchema(info.InputSchema))
	if t, ok := c.tools[key]; ok {
		return t
	}
	t := &tool{info: info, subject: c.in.Scope != ""}
	c.tools[key] = t
	c.names = append(c.names, info.Name)
	if c.provider == nil {
		return t
	}
	t.typeName = info.Name
	if c.provider.objects[t.typeName+" input"] != nil {
		t.typeName = fmt.Sprintf("%s/%d", info.Name, len(c.tools))
	}
	if err := c.typed(t, t.typeName+" input"); err != nil {
		c.diags.Errorf("tool-schema", "", "tool %q: input schema: %v", info.Name, err)
		t.input = &shape{typ: cel.DynType, size: c.limit}
	}
	return t
}

func (c *compiler) typed(t *tool, name string) (err error) {
	r := schemaReader{provider: c.provider, limit: c.limit, refs: map[string]*shape{}}
	if len(t.info.InputSchema) > 0 {
		if r.root, err = canon.Decode(t.info.InputSchema); err != nil {
			return err
		}
	}
	t.schema = r.root
	t.input, err = r.shape(place{name: name}, r.root)
	return err
}

// governs says whether a rule is about an agent.
func governs(r *spec.PlanRule, agent string) bool {
	return (r.Agent == "" || r.Agent == agent) && !slices.Contains(r.ReplacedFor, agent)
}

// foreign says that the rule comes from a document that does not know the team: a policy file, a pack or a policy from
// above. Such a rule can forbid and never permit.
func foreign(r *spec.PlanRule) bool {
	return r.Source != "team" && !strings.HasPrefix(r.Source, "agent ")
}

// teamless says that the rule comes from a document that is shared by teams, whose tools it cannot know: a pack or a
// policy from above. A policy file belongs to its team.
func teamless(r *spec.PlanRule) bool { return above(r) || strings.HasPrefix(r.Source, "pack ") }

// elsewhere says that a name of no tool here may be one of another team's.
func (c *compiler) elsewhere(r *spec.PlanRule, name string) bool {
	return teamless(r) || c.in.Alone && spec.Nearest(name, c.names) == ""
}

// above says that the rule was given from outside the team file, so that nothing the team declares may weaken it.
func above(r *spec.PlanRule) bool { return strings.HasPrefix(r.Source, "policy ") }

// Covers says whether a rule judges an agent's calls of a tool.
func Covers(r *spec.PlanRule, agent, tool string) bool { return governs(r, agent) && looksAt(r, tool) }

// looksAt says whether a rule judges calls of a tool: it names it, or no tool at all. A * stands for any part of a name.
func looksAt(r *spec.PlanRule, tool string) bool {
	return r.Tools == nil || slices.ContainsFunc(r.Tools, func(pattern string) bool { return nameMatches(pattern, tool) })
}

func nameMatches(pattern, name string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, first)
	if !ok {
		return false
	}
	parts := strings.Split(rest, "*")
	for _, part := range parts[:len(parts)-1] {
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name = name[i+len(part):]
	}
	return strings.HasSuffix(name, parts[len(parts)-1])
}

// scope is what one rule is checked against.
type scope struct {
	tools   []*tool // in the order of their names
	reached map[*tool]bool
	foreign bool // the rule is from a file, which does not know the team
}

// scope gives the tools a rule can meet: those it names, or those its agents reach. A policy file's rule is checked
// against all tools there are, since the file does not know the team.
func (c *compiler) scope(r *spec.PlanRule) scope {
	s := scope{reached: map[*tool]bool{}, foreign: foreign(r)}
	for _, x := range c.reach {
		if governs(r, x.agent) && looksAt(r, x.tool.info.Name) {
			s.reached[x.tool] = true
		}
	}
	named := map[string]bool{}
	for t := range s.reached {
		s.tools = append(s.tools, t)
		named[t.info.Name] = true
	}
	for _, t := range c.known {
		name := t.info.Name
		if !named[name] && looksAt(r, name) && (r.Tools != nil || foreign(r)) {
			s.tools = append(s.tools, t)
		}
	}
	slices.SortFunc(s.tools, func(a, b *tool) int {
		if n := strings.Compare(a.info.Name, b.info.Name); n != 0 {
			return n
		}
		return strings.Compare(string(a.info.InputSchema), string(b.info.InputSchema))
	})
	return s
}

// namedTool finds the tool an example speaks of: as the rule's agents have it, else as it exists.
func (c *compiler) namedTool(r *spec.PlanRule, name string) *tool {
	for _, x := range c.reach {
		if governs(r, x.agent) && x.tool.info.Name == name {
			return x.tool
		}
	}
	for _, t := range c.known {
		if t.info.Name == name {
			return t
		}
	}
	return nil
}
