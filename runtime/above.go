package runtime

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

// lower takes the lower of the team's ceilings and those of policies from above.
func (c *compiler) lower() {
	by := map[string]string{} // the policy that sets a ceiling, by key
	b := &c.plan.Budgets
	for _, p := range c.above() {
		was := *b
		*b = Narrow(was, ceilings(p.Policy.Limits))
		for key, changed := range map[string]bool{"maxTokenBudget": b.MaxTokenBudget != was.MaxTokenBudget,
			"maxCostBudget": b.MaxCostBudget != was.MaxCostBudget, "maxDuration": b.MaxDuration != was.MaxDuration} {
			if changed {
				by[key] = p.Policy.Name
			}
		}
	}
	team := c.team.Budgets
	warn := func(key string, declared bool, had, now any) {
		if name := by[key]; declared && name != "" {
			c.diags.Warnf("policy-budget", spec.Path("budgets").Key(key), "policy %q lowers %s from %v to %v", name, key, had, now).Hint = fmt.Sprintf("write %v, which is what holds", now)
		}
	}
	warn("maxTokenBudget", team.MaxTokenBudget > 0, team.MaxTokenBudget, b.MaxTokenBudget)
	warn("maxCostBudget", team.MaxCostBudget != nil, team.MaxCostBudget, b.MaxCostBudget)
	warn("maxDuration", team.MaxDuration > 0, team.MaxDuration, b.MaxDuration)
}

// ceilings are the limits that are budgets. nil limits have none.
func ceilings(l *spec.Limits) spec.Budgets {
	if l == nil {
		return spec.Budgets{}
	}
	return spec.Budgets{MaxTokenBudget: l.MaxTokenBudget, MaxCostBudget: l.MaxCostBudget, MaxDuration: l.MaxDuration}
}

// limits holds the team against what policies from above let it name and declare. All of them hold, each by itself.
func (c *compiler) limits() {
	b := bounds{plan: c.plan, team: c.team, files: c.named()}
	for _, p := range c.above() {
		problems := limitProblems(p.Policy.Limits)
		for _, d := range problems {
			d.File = p.Path
			c.diags = append(c.diags, d)
		}
		if problems == nil {
			b.hold(p.Policy)
		}
	}
	c.diags = append(c.diags, b.diags...)
}

// named is a file that a team names: its path from the team file's folder, cleaned, and where the name stands.
type named struct {
	path string
	at   spec.Path
}

// named gives every file the team names.
func (c *compiler) named() []named {
	var out []named
	add := func(name string, at spec.Path) {
		if name != "" {
			out = append(out, named{path.Join(".", name), at})
		}
	}
	gates := func(g *spec.Gates, at spec.Path) {
		if g != nil {
			for i, name := range g.Files {
				add(name, at.Key("files").Index(i))
			}
		}
	}
	gates(c.team.Gates, "gates")
	for i, a := range c.team.Agents {
		at := spec.Path("agents").Index(i)
		add(a.SystemPromptFile, at.Key("systemPromptFile"))
		gates(a.Gates, at.Key("gates"))
		for _, name := range sortedKeys(a.Credentials) {
			add(a.Credentials[name].File, at.Key("credentials").Key(name).Key("file"))
		}
	}
	for _, name := range sortedKeys(c.team.Providers) {
		p, at := c.team.Providers[name], spec.Path("providers").Key(name)
		add(p.Cassette, at.Key("cassette"))
		if p.APIKey != nil {
			add(p.APIKey.File, at.Key("apiKey").Key("file"))
		}
	}
	return out
}

// bounds holds a plan against limits.
type bounds struct {
	plan  *spec.Plan
	team  *spec.Team // nil for a saved plan: problems have no place then
	files []named
	diags spec.Diagnostics
}

// hold finds everything that one policy's limits do not let through. A ceiling counts if the plan is not below it.
func (b *bounds) hold(p *spec.Policy) {
	l := p.Limits
	if l == nil {
		return
	}
	for _, name := range sortedKeys(b.plan.Providers) {
		b.provider(p, name)
	}
	b.reach(p)
	if plain(narrowEgress(b.plan.EgressPolicy, l)) != plain(b.plan.EgressPolicy) {
		b.diags.Errorf("policy-origin", "egressPolicy", "policy %q lets models be asked at fewer origins than the plan (limits.origins)", p.Name)
	}
	for _, name := range sortedKeys(b.plan.CustomTools) {
		b.tool(p, name)
	}
	if plain(Narrow(b.plan.Budgets, ceilings(l))) != plain(b.plan.Budgets) {
		b.diags.Errorf("policy-budget", "budgets", "policy %q sets lower ceilings than the plan has", p.Name)
	}
	b.roles(p)
	b.people(p)
	for _, control := range l.RequireEnforced {
		for _, c := range NotEnforced(b.plan, control) {
			at := spec.Path("agents").Index(slices.IndexFunc(b.plan.Agents, func(a spec.PlanAgent) bool { return a.Name == c.Agent }))
			b.diags.Errorf("policy-enforced", at, "policy %q requires control %s to be enforced, and for agent %q it is %s: %s (limits.requireEnforced)",
				p.Name, c.Control, c.Agent, c.Level, c.Mechanism)
		}
	}
}

// reach finds what it does not let through of files, secrets, external agents and servers. A policy without limits has no say.
func (b *bounds) reach(p *spec.Policy) {
	l := p.Limits
	for _, f := range b.files {
		if l.Files != nil && !slices.ContainsFunc(*l.Files, func(pattern string) bool { return covers(pattern, f.path) }) {
			b.diags.Errorf("policy-file", f.at, "policy %q does not let a team name the file %q (limits.files)", p.Name, f.path).Hint = passes(*l.Files)
		}
	}
	for i, a := range b.plan.Agents {
		for _, name := range sortedKeys(a.Credentials) {
			b.key(p, a.Credentials[name], spec.Path("agents").Index(i).Key("credentials").Key(name).Key("env"))
		}
		if a.Backend != nil {
			b.command(p, a.Backend.Command, spec.Path("agents").Index(i).Key("backend").Key("command"))
			b.loads(p, sortedKeys(a.Backend.Env), spec.Path("agents").Index(i).Key("backend").Key("env"))
		}
	}
	for _, name := range sortedKeys(b.plan.MCPServers) {
		s, at := b.plan.MCPServers[name], spec.Path("mcpServers").Key(name)
		if s.URL != "" {
			b.origin(p, s.URL, "MCP servers", at.Key("url"))
		} else {
			b.command(p, s.Command, at.Key("command"))
			b.loads(p, sortedKeys(s.Env), at.Key("env"))
		}
	}
}

// provider asks where the key of a provider comes from and where its models answer.
func (b *bounds) provider(p *spec.Policy, name string) {
	prov := b.plan.Providers[name].Provider
	if prov.APIKey != nil {
		b.key(p, *prov.APIKey, b.of(name, "apiKey", "env"))
	}
	if address := BaseURL(prov); address != "" {
		b.origin(p, address, "models", b.of(name, "baseURL"))
	}
}

// key asks whether a secret may come from where it comes from. Files are asked for by themselves.
func (b *bounds) key(p *spec.Policy, ref spec.SecretRef, at spec.Path) {
	if env := p.Limits.Env; env != nil && ref.Env != "" && !slices.Contains(*env, ref.Env) {
		b.diags.Errorf("policy-env", at, "policy %q does not let a key come from the variable %s (limits.env)", p.Name, ref.Env).Hint = passes(*env)
	}
}

// origin asks whether somebody may be asked at an address.
func (b *bounds) origin(p *spec.Policy, address, who string, place spec.Path) {
	origins := p.Limits.Origins
	if origins == nil {
		return
	}
	at, ok := origin(address)
	if !ok || !slices.ContainsFunc(*origins, func(o string) bool { got, ok := origin(o); return ok && got == at }) {
		b.diags.Errorf("policy-origin", place, "policy %q does not let %s be asked at %s (limits.origins)", p.Name, who, at).Hint = passes(*origins)
	}
}

// tool asks what a tool of the team's own may start, and whom it may ask.
func (b *bounds) tool(p *spec.Policy, name string) {
	t, at := b.plan.CustomTools[name], spec.Path("customTools").Key(name)
	if t.HTTP != nil {
		b.origin(p, t.HTTP.URL, "tools", at.Key("http").Key("url"))
	}
	if len(t.Command) > 0 {
		b.command(p, t.Command[0], at.Key("command").Index(0))
		b.loads(p, t.Credentials, at.Key("credentials"))
	}
}

// loads refuses variables that decide what a program is, or what it runs beside itself.
func (b *bounds) loads(p *spec.Policy, names []string, at spec.Path) {
	for _, name := range names {
		upper := strings.ToUpper(name)
		if p.Limits.Commands != nil && (strings.HasPrefix(upper, "LD_") || strings.HasPrefix(upper, "DYLD_") || strings.HasPrefix(upper, "GIT_") ||
			slices.Contains([]string{"PATH", "BASH_ENV", "ENV", "NODE_OPTIONS", "PYTHONPATH", "PYTHONSTARTUP", "PERL5OPT", "PERL5LIB", "RUBYOPT", "JAVA_TOOL_OPTIONS"}, upper)) {
			b.diags.Errorf("policy-command", at, "policy %q bounds the programs that a team may start, and %s decides what a program loads (limits.commands)", p.Name, name).Hint = "leave the variable out"
		}
	}
}

// command asks whether a team may start a program.
func (b *bounds) command(p *spec.Policy, program string, at spec.Path) {
	if commands := p.Limits.Commands; commands != nil && !slices.Contains(*commands, program) {
		b.diags.Errorf("policy-command", at, "policy %q does not let a team start %q (limits.commands)", p.Name, program).Hint = passes(*commands)
	}
}

// of gives the place of a provider's key. A built-in provider has none: it stands where the first agent takes it.
func (b *bounds) of(provider string, keys ...string) spec.Path {
	at := spec.Path("providers").Key(provider)
	if b.team != nil {
		if _, declared := b.team.Providers[provider]; !declared {
			i := slices.IndexFunc(b.plan.Agents, func(a spec.PlanAgent) bool { return a.Provider == provider })
			if b.team.Agents[i].Provider == "" {
				return "defaults.provider"
			}
			return spec.Path("agents").Index(i).Key("provider")
		}
	}
	for _, key := range keys {
		at = at.Key(key)
	}
	return at
}

// passes says what a list lets through.
func passes(list []string) string {
	if len(list) == 0 {
		return "it lets none through"
	}
	return "it lets through: " + strings.Join(list, ", ")
}

// roles asks that the roles are required, and that each of them is at work: asking for one agent alone does not lead
// around a policy. A plan without tasks has problems of its own.
func (b *bounds) roles(p *spec.Policy) {
	required := p.Limits.RequiredRoles
	if len(required) == 0 {
		return
	}
	g, at := b.plan.Governance, spec.Path("governance")
	if g == nil {
		b.diags.Errorf("policy-roles", at, "policy %q requires the roles %s, and the team declares no governance (limits.requiredRoles)", p.Name, strings.Join(required, ", ")).Hint =
			fmt.Sprintf("add governance: {governanceIntent: required, requiredRoles: [%s]}", strings.Join(required, ", "))
		return
	}
	if g.GovernanceIntent != spec.IntentRequired {
		b.diags.Errorf("policy-roles", at.Key("governanceIntent"), "policy %q requires the roles %s, and governanceIntent is %s (limits.requiredRoles)",
			p.Name, strings.Join(required, ", "), g.GovernanceIntent).Hint = "write governanceIntent: required"
	}
	for _, role := range required {
		switch {
		case !slices.Contains(g.RequiredRoles, role):
			b.diags.Errorf("policy-roles", at.Key("requiredRoles"), "policy %q requires role %q, and requiredRoles leaves it out (limits.requiredRoles)", p.Name, role).Hint = "add it to requiredRoles"
		case len(b.plan.Tasks) > 0 && !slices.ContainsFunc(b.plan.Tasks, func(t spec.PlanTask) bool { return t.Role == role && t.Assignee == role }):
			b.diags.Errorf("policy-roles", "", "policy %q requires role %q, and this run has no task for it (limits.requiredRoles)", p.Name, role).Hint = "leave out --agent, and mode: single if the team has it"
		}
	}
}
