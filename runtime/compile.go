package runtime

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/schemas"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// CompileOptions is what the command line adds to a team file.
type CompileOptions struct {
	Catalog policies.Catalog
	// Agent runs one agent alone. Empty: the team's own topology.
	Agent string
	// Goal replaces the team's goal, as it is. nil: the team's, expanded.
	Goal *string
	// Inputs are the values of the team's inputs.
	Inputs map[string]string
}

// The defaults of an agent, of the reference where it has one.
const (
	defaultMaxTurns        = 10
	defaultToolInputBytes  = 1 << 20
	defaultToolConcurrency = 4
	defaultConcurrency     = 5
	defaultRepetitions     = 3
	defaultWindow          = 10
	defaultCompactTokens   = 32_000
	// defaultCallTimeout ends a call to a server that never answers: no run waits for ever.
	defaultCallTimeout = spec.Duration(10 * time.Minute)
	scriptedModel      = "scripted"
)

// Compile finds everything that can be known about a team before the first model call, all at once, and gives the plan
// of its run. It is inert: it opens nothing, asks nobody and reads no secret. The plan is nil when there are errors.
func Compile(b *spec.Bundle, o CompileOptions) (*spec.Plan, spec.Diagnostics) {
	c := &compiler{b: b, team: b.Team, o: o}
	c.plan = &spec.Plan{Envelope: spec.Envelope{APIVersion: spec.APIVersion, Kind: spec.KindPlan}, PlanOnly: true,
		GovernanceConclusion: spec.NotApplicable, Team: spec.PlanTeam{Name: b.Team.Name, Path: path.Base(b.TeamFile.Path), Digest: b.TeamFile.Digest},
		Governance: b.Team.Governance, Budgets: b.Team.Budgets, Scheduling: b.Team.Scheduling, Release: b.Team.Release.Require}
	if m := b.Team.SharedMemory; m != nil && !m.Off {
		c.plan.SharedMemory = m
	}
	if c.plan.Scheduling.MaxConcurrency == 0 {
		c.plan.Scheduling.MaxConcurrency = defaultConcurrency
	}
	c.goal()
	c.inputs()
	c.providers()
	c.customTools()
	c.mcpServers()
	for i := range c.team.Agents {
		c.agent(i)
	}
	c.emptyWorkspaces()
	c.unusedTools()
	c.unusedServers()
	c.governance()
	c.topology()
	c.delegation()
	c.lower()
	c.egress()
	c.gates()
	c.approvals()
	c.release()
	c.budgets()
	c.plan.Enforcement = enforcement(c.plan)
	c.limits()
	if c.diags.HasErrors(false) {
		c.diags.Sort()
		return nil, c.diags
	}
	c.unused()
	c.unplayed()
	c.plan.Flags = c.flags()
	c.confirmation()
	c.diags.Sort()
	if err := SealPlan(c.plan); err != nil {
		c.diags.Errorf("plan-encoding", "", "the plan cannot be encoded: %v", err)
		return nil, c.diags
	}
	return c.plan, c.diags
}

type compiler struct {
	b     *spec.Bundle
	team  *spec.Team
	o     CompileOptions
	plan  *spec.Plan
	diags spec.Diagnostics
	// catalog has the team's own tools too.
	catalog policies.Catalog
}

// SealPlan puts the plan's digest in. A plan that is changed afterwards is refused when it is read.
func SealPlan(p *spec.Plan) error {
	raw, err := p.Encode()
	if err != nil {
		return err
	}
	p.Digest, err = canon.DigestWithout("plan", raw, "digest")
	return err
}

func (c *compiler) goal() {
	var problems []string
	switch {
	case c.o.Goal != nil:
		c.plan.Goal = *c.o.Goal
	default:
		c.plan.Goal, problems = expand(c.team.Goal, c.value)
	}
	for _, p := range problems {
		c.diags.Errorf("unknown-input", "goal", "%s", p).Hint = spec.DidYouMean("", sortedKeys(c.team.Inputs))
	}
	for name := range c.o.Inputs {
		if _, ok := c.team.Inputs[name]; !ok {
			c.diags.Errorf("unknown-input", "inputs", "no input is called %q", name).Hint = spec.DidYouMean(name, sortedKeys(c.team.Inputs))
		}
	}
	if strings.TrimSpace(c.plan.Goal) == "" && len(problems) == 0 && (len(c.team.Tasks) == 0 || c.o.Agent != "") {
		c.diags.Errorf("goal-missing", "", "the team has no goal").Hint = "add goal: to the file, or give --goal TEXT"
	}
	c.plan.GoalDigest = canon.Digest("goal", []byte(c.plan.Goal))
}

func (c *compiler) value(name string) (string, string) {
	in, ok := c.team.Inputs[name]
	if !ok {
		return "", fmt.Sprintf("goal uses ${inputs.%s}, which is not declared in inputs", name)
	}
	if v, given := c.o.Inputs[name]; given {
		return v, ""
	}
	if in.Default == nil {
		return "", fmt.Sprintf("input %q has no default and was not given; use --input %s=VALUE", name, name)
	}
	return *in.Default, ""
}

// expand replaces ${inputs.NAME}, once: what it puts in is not looked at again. $${ is a literal ${, and every other
// dollar sign stays.
func expand(text string, value func(string) (string, string)) (string, []string) {
	var b strings.Builder
	var problems []string
	for text != "" {
		i := strings.Index(text, "${")
		if i < 0 {
			break
		}
		if i > 0 && text[i-1] == '$' {
			b.WriteString(text[:i-1] + "${")
			text = text[i+2:]
			continue
		}
		b.WriteString(text[:i])
		end := strings.IndexByte(text[i:], '}')
		name, ok := "", false
		if end > 0 {
			name, ok = strings.CutPrefix(text[i+2:i+end], "inputs.")
		}
		if !ok {
			problems = append(problems, fmt.Sprintf("%q is not ${inputs.NAME}; write $${ for a literal ${", clip(text[i:], 20)))
			b.WriteString("${")
			text = text[i+2:]
			continue
		}
		v, problem := value(name)
		if problem != "" {
			problems = append(problems, problem)
		}
		b.WriteString(v)
		text = text[i+end+1:]
	}
	return b.String() + text, problems
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// inputs lists every file the plan comes from.
func (c *compiler) inputs() {
	in := []spec.PlanInput{{Path: c.plan.Team.Path, Digest: c.b.TeamFile.Digest, Kind: spec.KindTeam}}
	for p, f := range c.b.Prompts {
		in = append(in, spec.PlanInput{Path: p, Digest: f.Digest, Kind: "prompt"})
	}
	for p, f := range c.b.Policies {
		in = append(in, spec.PlanInput{Path: p, Digest: f.Digest, Kind: spec.KindPolicy})
	}
	for p, f := range c.b.Cassettes {
		in = append(in, spec.PlanInput{Path: p, Digest: f.Digest, Kind: spec.KindCassette})
	}
	for p, f := range c.b.Programs {
		in = append(in, spec.PlanInput{Path: p, Digest: f.Digest, Kind: spec.InputProgram})
	}
	if f := c.b.Lock; f != nil {
		in = append(in, spec.PlanInput{Path: f.Path, Digest: f.Digest, Kind: spec.KindLock})
	}
	slices.SortFunc(in, func(a, b spec.PlanInput) int { return strings.Compare(a.Path+"\x00"+a.Kind, b.Path+"\x00"+b.Kind) })
	c.plan.Inputs = in
}

func (c *compiler) agent(i int) {
	a, d, at := &c.team.Agents[i], &c.team.Defaults, spec.Path("agents").Index(i)
	p := spec.PlanAgent{
		Name: a.Name, Description: a.Description, Provider: cmp.Or(a.Provider, d.Provider), Model: cmp.Or(a.Model, d.Model),
		SystemPrompt: a.SystemPrompt, Cwd: cleanCwd(cmp.Or(a.Cwd, d.Cwd)), Containment: a.Containment,
		OutputSchema: spec.CompactSchema(a.OutputSchema), MaxTurns: cmp.Or(a.MaxTurns, d.MaxTurns, defaultMaxTurns),
		MaxTokenBudget: a.MaxTokenBudget, MaxOutputTokens: cmp.Or(a.MaxOutputTokens, d.MaxOutputTokens),
		Temperature: cmp.Or(a.Temperature, d.Temperature), Timeout: cmp.Or(a.Timeout, d.Timeout), CallTimeout: cmp.Or(a.CallTimeout, d.CallTimeout, defaultCallTimeout),
		MaxToolOutputChars: cmp.Or(a.MaxToolOutputChars, d.MaxToolOutputChars),
		MaxToolInputBytes:  cmp.Or(a.MaxToolInputBytes, d.MaxToolInputBytes, defaultToolInputBytes),
		MaxToolConcurrency: cmp.Or(a.MaxToolConcurrency, d.MaxToolConcurrency, defaultToolConcurrency), Unmetered: a.Unmetered,
	}
	if compress := cmp.Or(a.CompressToolResults, d.CompressToolResults); compress != nil {
		p.CompressToolResults = *compress
	}
	if s := cmp.Or(a.ContextStrategy, d.ContextStrategy); s != nil && a.Backend == nil {
		p.ContextStrategy = c.contextStrategy(s, at, a.ContextStrategy != nil)
	}
	if l := cmp.Or(a.LoopDetection, d.LoopDetection); l != nil && a.Backend == nil {
		p.LoopDetection = &spec.LoopDetection{MaxRepetitions: cmp.Or(l.MaxRepetitions, defaultRepetitions), Action: cmp.Or(l.Action, spec.LoopWarn)}
	}
	if a.SystemPromptFile != "" {
		p.SystemPrompt = c.b.Prompts[a.SystemPromptFile].Text
	}
	p.Credentials, p.Capabilities = a.Credentials, slices.Compact(slices.Sorted(slices.Values(a.Capabilities)))
	if a.Backend != nil {
		c.backend(a, &p, at)
	} else {
		c.agentModel(&p, at)
		g := c.grant(a, d.ToolPreset, at)
		p.Tools, p.Removed = g.Tools, g.Removed
	}
	c.executor(a, &p, at)
	c.ownTools(a, at)
	c.credentials(&p, at)
	if p.Tools == nil {
		p.Tools = []spec.Grant{}
	}
	if len(p.OutputSchema) > 0 {
		c.outputSchema(p.OutputSchema, at.Key("outputSchema"))
	}
	c.plan.Agents = append(c.plan.Agents, p)
}

// contextStrategy fills in what a strategy leaves out, and refuses what is of another one.
func (c *compiler) contextStrategy(s *spec.ContextStrategy, at spec.Path, own bool) *spec.ContextStrategy {
	if !own {
		at = "defaults"
	}
	at = at.Key("contextStrategy")
	out := &spec.ContextStrategy{Type: s.Type}
	key, given := "maxTokens", s.MaxTokens > 0
	if s.Type == spec.ContextCompact {
		key, given = "maxTurns", s.MaxTurns > 0
		out.MaxTokens = cmp.Or(s.MaxTokens, defaultCompactTokens)
	} else {
		out.MaxTurns = cmp.Or(s.MaxTurns, defaultWindow)
	}
	if given {
		c.diags.Errorf("context-strategy", at.Key(key), "%s is no key of a %s", key, s.Type).Hint = "sliding-window has maxTurns, compact has maxTokens"
	}
	return out
}

// emptyWorkspaces finds agents that read in a folder which starts empty, and into which nobody writes.
func (c *compiler) emptyWorkspaces() {
	if slices.ContainsFunc(c.plan.Agents, func(a spec.PlanAgent) bool { return a.Cwd == "" && a.Consequential() }) {
		return
	}
	for i, a := range c.plan.Agents {
		if a.Cwd == "" && slices.ContainsFunc(a.Tools, c.inFolder) {
			c.diags.Warnf("workspace-default", spec.Path("agents").Index(i), "agent %q only reads, and its folder is %s, which starts empty", a.Name, spec.DefaultCwd).Hint = "add cwd: . to read the team file's own folder"
		}
	}
}

// inFolder says that a tool works in its agent's folder.
func (c *compiler) inFolder(g spec.Grant) bool {
	_, builtin := c.o.Catalog.Tool(g.Name)
	return builtin
}

func (c *compiler) outputSchema(s spec.Schema, at spec.Path) {
	if _, err := schemas.Compile(s); err != nil {
		c.diags.Errorf("output-schema", at, "outputSchema is not usable: %v", err)
		return
	}
	unknown, idle := schemas.Lint(s, at)
	for _, where := range unknown {
		c.noKeyword("output-schema-keyword", where)
	}
	if idle {
		c.diags.Warnf("output-schema-keyword", at, "outputSchema asks for nothing, so any JSON fits it").Hint = "say what the answer must be, such as type: object with required: [verdict]"
	}
}

// noKeyword says that a member of a schema stands where a keyword should.
func (c *compiler) noKeyword(code string, where spec.Path) {
	name := fmt.Sprint(where.Split()[len(where.Split())-1])
	d := c.diags.Warnf(code, where, "%q is no keyword of JSON Schema, so it asks for nothing", name)
	d.OnKey, d.Hint = true, "if it is meant for people, call it x-"+name
	if near := spec.Nearest(name, schemas.Keywords()); near != "" {
		d.Hint = "did you mean " + near + "?"
	}
}

func (c *compiler) agentModel(p *spec.PlanAgent, at spec.Path) {
	known := append(sortedKeys(c.team.Providers), sortedKeys(builtinProviders)...)
	if p.Provider == "" {
		c.diags.Errorf("provider-missing", at, "agent %q has no provider", p.Name).Hint = "add provider: to the agent or to defaults; " + spec.DidYouMean("", known)
		return
	}
	prov, ok := c.provider(p.Provider)
	if !ok {
		where := at.Key("provider")
		if c.agentOf(at).Provider == "" {
			where = "defaults.provider"
		}
		c.diags.Errorf("unknown-provider", where, "unknown provider %q", p.Provider).Hint = spec.DidYouMean(p.Provider, known)
		return
	}
	if p.Model == "" && prov.Kind == "scripted" {
		p.Model = scriptedModel
	}
	if p.Model == "" {
		c.diags.Errorf("model-missing", at, "agent %q has no model", p.Name).Hint = "add model: to the agent or to defaults"
	}
}

// unplayed finds agents whose work a cassette has no answer for: their first model call would end the run.
func (c *compiler) unplayed() {
	for i := range c.plan.Agents {
		a := &c.plan.Agents[i]
		file := c.plan.Providers[a.Provider].Cassette
		tape := c.b.Cassettes[file].Cassette
		if tape == nil {
			continue // the model answers by itself
		}
		without := slices.IndexFunc(c.plan.Tasks, func(t spec.PlanTask) bool {
			turns, ok := tape.Tasks[t.Title]
			if !ok {
				turns = tape.Agents[a.Name]
			}
			return t.Assignee == a.Name && len(turns) == 0
		})
		if without >= 0 {
			c.diags.Warnf("cassette-no-turns", spec.Path("agents").Index(i), "agent %q has a task, and cassette %q has no turns for it", a.Name, file).Hint =
				fmt.Sprintf("add agents.%s to %s", a.Name, file)
		}
	}
}

func (c *compiler) agentOf(at spec.Path) *spec.Agent { return &c.team.Agents[at.Split()[1].(int)] }

func cleanCwd(cwd string) string {
	if cwd == "" {
		return ""
	}
	return path.Clean(strings.ReplaceAll(cwd, "\\", "/"))
}

// flags are those that follow from grants and declarations alone.
func (c *compiler) flags() []string {
	if c.degraded() {
		return []string{spec.FlagReviewSkipped}
	}
	if c.plan.Governance != nil || len(c.team.Tasks) > 0 && c.o.Agent == "" { // somebody has said who does what
		return nil
	}
	for i := range c.plan.Agents {
		a := &c.plan.Agents[i]
		if (c.o.Agent == "" || a.Name == c.o.Agent) && a.Consequential() {
			return []string{spec.FlagConsequential}
		}
	}
	return nil
}

// CheckPolicy gives the problems of a policy by itself: its rules are held against the tools they name, or against all
// tools, and its limits against what a limit can be.
func CheckPolicy(p *spec.Policy, known []spec.ToolInfo) spec.Diagnostics {
	known = anyTeam(known)
	g := spec.PlanGates{Declared: true, Default: spec.ActionDeny}
	for i, r := range p.Rules {
		g.Rules = append(g.Rules, spec.PlanRule{Rule: r, Source: "file " + p.Name, Path: spec.Path("rules").Index(i)})
	}
	every := policies.AgentTools{Name: "any", Tools: known}
	_, diags := policies.Compile(policies.RuleSet{Declared: true, Default: g.Default, Rules: g.Rules, Known: known, Agents: []policies.AgentTools{every}, Alone: true})
	return append(diags, limitProblems(p.Limits)...)
}
