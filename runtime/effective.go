package runtime

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

// Setting is one value in force and where it comes from.
type Setting struct {
	Path  spec.Path
	Value any // as JSON shows it
	// Source is file, agent, defaults, program (nobody said anything), flag, policy NAME, pack NAME or file PATH.
	Source string
	// At is where the value stands in Doc (empty: the team file). Empty: it stands in no document.
	At  spec.Path
	Doc string
}

// The sources of a setting.
const (
	FromFile     = "file"
	FromAgent    = "agent"
	FromDefaults = "defaults"
	FromProgram  = "program"
	FromFlag     = "flag"
)

// Effective lists every setting of a compiled team with its source, in a fixed order. Each source is found by holding
// what was declared against what the plan has.
func Effective(b *spec.Bundle, p *spec.Plan, o CompileOptions, ceilings spec.Budgets) []Setting {
	e := &effective{b: b, plan: p}
	e.goal(o)
	e.table("scheduling", members(p.Scheduling), members(b.Team.Scheduling), "scheduling")
	e.budgets(ceilings)
	e.governance()
	e.egress()
	for _, name := range sortedKeys(p.Providers) {
		e.provider(name)
	}
	for _, name := range sortedKeys(p.CustomTools) {
		at := spec.Path("customTools").Key(name)
		e.table(at, members(p.CustomTools[name]), members(b.Team.CustomTools[name]), at)
	}
	for _, name := range sortedKeys(p.MCPServers) {
		at := spec.Path("mcpServers").Key(name)
		e.table(at, members(p.MCPServers[name].MCPServer), members(b.Team.MCPServers[name]), at)
	}
	for i := range p.Agents {
		e.agent(i)
	}
	for i := range b.Team.Tasks {
		if at := spec.Path("tasks").Index(i); o.Agent == "" {
			e.table(at, members(p.Tasks[i]), members(b.Team.Tasks[i]), at)
		}
	}
	e.gates()
	e.approvals()
	for i, r := range p.Release {
		at := spec.Path("release").Key("require").Index(i)
		e.add(spec.Path("release").Key(r.Name).Key("that"), r.That, FromFile, at.Key("that"))
		if r.Reason != "" {
			e.add(spec.Path("release").Key(r.Name).Key("reason"), r.Reason, FromFile, at.Key("reason"))
		}
	}
	for _, d := range p.Policies {
		e.add(spec.Path("policies").Key(d.Name), d.Digest, d.Source, "")
	}
	return e.out
}

type effective struct {
	b    *spec.Bundle
	plan *spec.Plan
	out  []Setting
}

func (e *effective) add(path spec.Path, value any, source string, at spec.Path) {
	e.out = append(e.out, Setting{Path: path, Value: value, Source: source, At: at})
}

// members gives a document's keys as JSON has them: those that say something.
func members(v any) map[string]any {
	raw, err := json.Marshal(v)
	out := map[string]any{}
	if err == nil {
		d := json.NewDecoder(strings.NewReader(string(raw)))
		d.UseNumber()
		err = d.Decode(&out)
	}
	if err != nil {
		return map[string]any{}
	}
	return out
}

// table adds the members of the plan: those the file declares are of the file, the others of the program.
func (e *effective) table(path spec.Path, plan, file map[string]any, at spec.Path) {
	for _, key := range sortedKeys(plan) {
		if _, declared := file[key]; declared {
			e.add(path.Key(key), plan[key], FromFile, at.Key(key))
		} else {
			e.add(path.Key(key), plan[key], FromProgram, "")
		}
	}
}

func (e *effective) goal(o CompileOptions) {
	if o.Goal != nil {
		e.add("goal", e.plan.Goal, FromFlag, "")
	} else {
		e.add("goal", e.plan.Goal, FromFile, "goal")
	}
	for _, name := range sortedKeys(e.b.Team.Inputs) {
		path := spec.Path("inputs").Key(name)
		if v, given := o.Inputs[name]; given {
			e.add(path, v, FromFlag, "")
		} else if d := e.b.Team.Inputs[name].Default; d != nil {
			e.add(path, *d, FromFile, path.Key("default"))
		}
	}
	switch r := e.plan.RoutingDecision; {
	case o.Agent != "":
		e.add("mode", r.Mode, FromFlag, "")
	case e.b.Team.Mode != "":
		e.add("mode", r.Mode, FromFile, "mode")
	default:
		e.add("mode", r.Mode, FromProgram, "")
	}
}

// budgets follows each ceiling from the file through the policies above it to the flags. Whoever lowered it last is its
// source.
func (e *effective) budgets(flags spec.Budgets) {
	now := e.b.Team.Budgets
	source := map[string]string{}
	for key := range members(now) {
		source[key] = FromFile
	}
	narrow := func(by spec.Budgets, name string) {
		was := members(now)
		now = Narrow(now, by)
		for key, v := range members(now) {
			if was[key] != v {
				source[key] = name
			}
		}
	}
	c := compiler{b: e.b}
	for _, p := range c.above() {
		narrow(ceilings(p.Policy.Limits), aboveSource(&p))
	}
	narrow(flags, FromFlag)
	all := members(now)
	for _, key := range []string{"maxTokenBudget", "maxCostBudget", "maxDuration", "reserveForRequired"} {
		at, path := spec.Path(""), spec.Path("budgets").Key(key)
		from := source[key]
		switch {
		case from == FromFile:
			at = path
		case from == "" && key == "reserveForRequired":
			all[key], from = false, FromProgram
		case from == "":
			from = FromProgram // none
		}
		e.add(path, all[key], from, at)
	}
}

func (e *effective) governance() {
	if e.plan.Governance == nil {
		e.add("governance", "undeclared", FromProgram, "")
		return
	}
	e.table("governance", members(e.plan.Governance), members(e.b.Team.Governance), "governance")
}

func (e *effective) provider(name string) {
	path, plan := spec.Path("providers").Key(name), members(e.plan.Providers[name])
	delete(plan, "cassetteDigest")
	delete(plan, "models")
	p := e.plan.Providers[name].Provider
	if address := BaseURL(p); address != "" {
		retry := retryPolicy(p)
		plan["baseURL"], plan["stream"], plan["maxRetries"] = address, p.Stream == nil || *p.Stream, retry.MaxRetries
		if _, declared := plan["maxRetryDelay"]; !declared {
			plan["maxRetryDelay"] = spec.Duration(defaultMaxRetryDelay).String()
		}
	}
	file := map[string]any{} // of a built-in provider: nothing is declared
	if declared, ok := e.b.Team.Providers[name]; ok {
		file = members(declared)
	}
	e.table(path, plan, file, path)
	for _, model := range sortedKeys(p.Models) {
		at := path.Key("models").Key(model)
		e.table(at, members(p.Models[model]), members(p.Models[model]), at)
	}
}

// ownKeys are the keys of an agent that are no setting by themselves, or are told in another way.
var ownKeys = []string{"name", "tools", "removed", "systemPrompt", "outputSchema", "credentials"}

// silent are the settings of an agent that a plan leaves out where nobody said anything. nil: there is none.
var silent = map[string]any{"cwd": spec.DefaultCwd, "containment": "file tools stay in cwd", "unmetered": "refuse", "compressToolResults": false,
	"maxTokenBudget": nil, "maxOutputTokens": nil, "temperature": nil, "timeout": nil, "maxToolOutputChars": nil}

func (e *effective) agent(i int) {
	a, declared := &e.plan.Agents[i], &e.b.Team.Agents[i]
	path, at := spec.Path("agents").Key(a.Name), spec.Path("agents").Index(i)
	plan, own, defaults := members(a), members(declared), members(e.b.Team.Defaults)
	for key, value := range silent {
		if _, said := plan[key]; !said {
			plan[key] = value
		}
	}
	for _, key := range sortedKeys(plan) {
		if slices.Contains(ownKeys, key) {
			continue
		}
		switch {
		case own[key] != nil:
			e.add(path.Key(key), plan[key], FromAgent, at.Key(key))
		case defaults[key] != nil:
			e.add(path.Key(key), plan[key], FromDefaults, spec.Path("defaults").Key(key))
		default:
			e.add(path.Key(key), plan[key], FromProgram, "")
		}
	}
	if declared.SystemPromptFile != "" {
		e.add(path.Key("systemPrompt"), a.SystemPrompt, "file "+declared.SystemPromptFile, at.Key("systemPromptFile"))
	} else {
		e.add(path.Key("systemPrompt"), a.SystemPrompt, FromAgent, at.Key("systemPrompt"))
	}
	if len(a.OutputSchema) > 0 {
		e.add(path.Key("outputSchema"), json.RawMessage(a.OutputSchema), FromAgent, at.Key("outputSchema"))
	}
	e.grants(a, declared, path, at)
}

// grants tells which tools an agent has, the team's own and those of servers once more by themselves, and where its credentials
// come from.
func (e *effective) grants(a *spec.PlanAgent, declared *spec.Agent, path, at spec.Path) {
	kinds := map[string][]spec.Grant{"tools": a.Tools}
	for _, g := range a.Tools {
		if _, ok := e.plan.CustomTools[g.Name]; ok {
			kinds["customTools"] = append(kinds["customTools"], g)
		} else if _, _, ok := e.plan.ServerOf(g.Name); ok {
			kinds["mcpTools"] = append(kinds["mcpTools"], g)
		}
	}
	for _, key := range []string{"tools", "customTools", "mcpTools"} {
		granted, any := kinds[key]
		if !any {
			continue
		}
		names := []string{}
		for _, g := range granted {
			names = append(names, g.Name)
		}
		source, where := e.granted(granted, declared, at)
		e.add(path.Key(key), names, source, where)
	}
	for _, name := range sortedKeys(a.Credentials) {
		e.add(path.Key("credentials").Key(name), a.Credentials[name], FromAgent, at.Key("credentials").Key(name))
	}
}

// granted says where grants come from: the agent's own keys, else defaults.toolPreset. customTools comes beside one of them, so
// it is named where it gave all of them.
func (e *effective) granted(all []spec.Grant, declared *spec.Agent, at spec.Path) (source string, where spec.Path) {
	added := func(g spec.Grant) bool { return strings.HasPrefix(g.GrantedBy, "customTools") }
	switch {
	case len(all) > 0 && !slices.ContainsFunc(all, func(g spec.Grant) bool { return !added(g) }):
		return FromAgent, at.Key("customTools")
	case declared.Tools != nil:
		return FromAgent, at.Key("tools")
	case declared.ToolPreset != "":
		return FromAgent, at.Key("toolPreset")
	case e.b.Team.Defaults.ToolPreset != "":
		return FromDefaults, "defaults.toolPreset"
	}
	return FromProgram, ""
}

func (e *effective) gates() {
	g := e.plan.Gates
	switch team := e.b.Team.Gates; {
	case team != nil && team.Default != "":
		e.add("gates.default", g.Default, FromFile, "gates.default")
	case g.Declared:
		e.add("gates.default", g.Default, FromProgram, "")
	default:
		e.add("gates", "undeclared", FromProgram, "")
	}
	for i, l := range g.Levels {
		at := spec.Path("gates.shell.levels").Index(i)
		e.add(at, strings.Join(l.Match, " ")+": "+l.Level, FromFile, at)
	}
	for i := range g.Rules {
		e.rule("gates.rules", &g.Rules[i])
	}
}

func (e *effective) rule(below spec.Path, r *spec.PlanRule) {
	path, rule := below.Key(r.Name), members(r)
	for _, key := range []string{"name", "source", "examples"} {
		delete(rule, key)
	}
	source := r.Source
	if source == "team" {
		source = FromFile
	}
	for _, key := range sortedKeys(rule) {
		s := Setting{path.Key(key), rule[key], source, r.Path.Key(key), r.Doc}
		if key == "appliesTo" || key == "agent" || key == "replacedFor" { // found out, not written there
			s.At = ""
		}
		e.out = append(e.out, s)
	}
}

// approvals tells who decides what people are asked, and about what they are asked beside calls.
func (e *effective) approvals() {
	const path = spec.Path("approvals")
	p := e.plan.Approvals
	if p == nil {
		e.add(path, "undeclared: anybody may decide what gates ask", FromProgram, "")
		return
	}
	plan := members(p)
	for key, value := range map[string]any{"requireConsequentialConfirmation": false, "separateApprover": false, "expires": nil} {
		if _, said := plan[key]; !said {
			plan[key] = value
		}
	}
	for _, key := range []string{"plan", "dispatch", "reviewers"} {
		delete(plan, key)
	}
	by, file := e.deciders(), members(e.b.Team.Approvals)
	for _, key := range sortedKeys(plan) {
		if source := by[key]; source != "" {
			e.add(path.Key(key), plan[key], source, "")
			continue
		}
		e.table(path, map[string]any{key: plan[key]}, file, path)
	}
	if p.Reviewers == nil {
		e.add(path.Key("reviewers"), "anybody", FromProgram, "")
	}
	for i, r := range p.Reviewers {
		proof := "by a signature"
		if r.PublicKey == "" {
			proof = "by name alone"
		}
		if source := by["reviewers"]; source != "" {
			e.add(path.Key("reviewers").Key(r.ID), proof, source, "")
			continue
		}
		at := path.Key("reviewers").Index(i)
		e.add(path.Key("reviewers").Key(r.ID), proof, FromFile, at)
	}
	for i := range p.Plan {
		e.rule(path.Key("plan"), &p.Plan[i])
	}
	for i := range p.Dispatch {
		e.rule(path.Key("dispatch"), &p.Dispatch[i])
	}
}

// deciders names the policy from above whose word holds on who decides, by key. What is not in it is the team's or the
// program's word.
func (e *effective) deciders() map[string]string {
	c := compiler{b: e.b}
	d, _ := decidersOf(c.above())
	team := e.b.Team.Approvals
	if team == nil {
		team = &spec.Approvals{}
	}
	by := map[string]string{}
	if d.names != nil && len(team.Reviewers) == 0 {
		by["reviewers"] = aboveSource(d.names)
	}
	if d.counts != nil && d.quorum > max(team.Quorum, 1) {
		by["quorum"] = aboveSource(d.counts)
	}
	if d.separate && !team.SeparateApprover {
		by["separateApprover"] = aboveSource(d.separates)
	}
	return by
}
