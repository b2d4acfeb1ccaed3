package runtime

import (
	"cmp"
	"slices"

	"github.com/open-multi-agent/oma/spec"
)

// backend compiles an agent that is a program of its own. What it could not heed may not stand beside it.
func (c *compiler) backend(a *spec.Agent, p *spec.PlanAgent, at spec.Path) {
	b := a.Backend
	for _, k := range []struct {
		key   string
		given bool
	}{{"provider", a.Provider != ""}, {"model", a.Model != ""}, {"temperature", a.Temperature != nil}, {"maxOutputTokens", a.MaxOutputTokens > 0},
		{"maxTurns", a.MaxTurns > 0}, {"tools", a.Tools != nil}, {"toolPreset", a.ToolPreset != ""}, {"disallowedTools", a.DisallowedTools != nil},
		{"customTools", a.CustomTools != nil}, {"compressToolResults", a.CompressToolResults != nil}, {"loopDetection", a.LoopDetection != nil}, {"contextStrategy", a.ContextStrategy != nil}, {"maxToolOutputChars", a.MaxToolOutputChars > 0},
		{"maxToolInputBytes", a.MaxToolInputBytes > 0}, {"maxToolConcurrency", a.MaxToolConcurrency > 0}, {"containment", a.Containment != ""},
		{"callTimeout", a.CallTimeout > 0}, {"shellExecutor", a.ShellExecutor != nil}, {"gates", a.Gates != nil && !b.Asks() && !b.Serves()}} {
		if k.given {
			d := c.diags.Errorf("backend-key", at.Key(k.key), "%s does not reach an external agent", k.key)
			d.OnKey, d.Hint = true, "leave it out; what an external agent does is its own program's"
		}
	}
	if HoldsNothing(&spec.PlanAgent{Backend: b, Unmetered: a.Unmetered}, c.ceilings(a)) {
		c.diags.Errorf("backend-unmetered", at.Key("backend"), "a ceiling is in force, and a process reports no usage").Hint =
			"write unmetered: allow beside backend, or take the ceiling away"
	}
	out := *b
	out.Cwd = cleanCwd(b.Cwd)
	p.Backend, p.Provider, p.Model, p.Temperature, p.MaxOutputTokens = &out, "", "", nil, 0
	p.CompressToolResults, p.MaxToolOutputChars, p.MaxToolInputBytes, p.MaxToolConcurrency = 0, 0, 0, 0
	p.CallTimeout, p.MaxTurns = 0, 1 // it keeps to the backend's timeout by itself, and says what it was doing then
	if len(a.OutputSchema) > 0 {
		p.MaxTurns = 2 // it may correct itself once
	}
	p.Cwd = cmp.Or(out.Cwd, p.Cwd)
	if b.Asks() {
		p.Tools = []spec.Grant{{ToolInfo: permission(b), GrantedBy: "backend"}}
		c.asksGates(a, at)
	}
	if b.Serves() {
		p.Tools, p.MaxToolInputBytes = append(p.Tools, c.served(b)...), defaultToolInputBytes
	}
	if b.Kind != spec.BackendACP && len(b.Capabilities) > 0 {
		c.diags.Errorf("backend-key", at.Key("backend").Key("capabilities"), "a process asks for nothing to be done").Hint = "leave it out, or write kind: acp"
	}
	if b.Kind != spec.BackendACP && b.Permission != "" {
		c.diags.Errorf("backend-key", at.Key("backend").Key("permission"), "a process asks for no permission").Hint = "leave it out, or write kind: acp"
	}
	if b.Kind == spec.BackendACP && b.Input != "" {
		c.diags.Errorf("backend-key", at.Key("backend").Key("input"), "an ACP agent gets its prompts by the protocol").Hint = "leave it out, or write kind: process"
	}
}

// served are the tools that an ACP agent is granted by what it is offered, in the catalog's order.
func (c *compiler) served(b *spec.Backend) (out []spec.Grant) {
	by := map[string]string{}
	for _, capability := range b.Capabilities {
		for _, name := range map[string][]string{spec.CapabilityFS: {"file_read", "file_write"}, spec.CapabilityTerminal: {"bash"}}[capability] {
			by[name] = "backend.capabilities " + capability
		}
	}
	for _, t := range c.o.Catalog.Tools {
		if by[t.Name] != "" {
			out = append(out, spec.Grant{ToolInfo: t, GrantedBy: by[t.Name]})
		}
	}
	return out
}

// asksGates wants gates where an agent's requests are put before them: without any, nothing would be judged.
func (c *compiler) asksGates(a *spec.Agent, at spec.Path) {
	if c.team.Gates == nil && a.Gates == nil && !slices.ContainsFunc(c.above(), func(p spec.PolicyFile) bool { return len(p.Policy.Rules) > 0 }) {
		c.diags.Errorf("backend-gates", at.Key("backend"), "agent %q asks for permission, and the team declares no gates", a.Name).Hint =
			"add gates:, with rules for tools: [permission], or write permission: reject"
	}
}

// ceilings are those that reach an agent.
func (c *compiler) ceilings(a *spec.Agent) spec.Budgets {
	b := c.team.Budgets
	for _, p := range c.above() {
		b = Narrow(b, ceilings(p.Policy.Limits))
	}
	return Narrow(b, spec.Budgets{MaxTokenBudget: a.MaxTokenBudget})
}

// HoldsNothing says that a ceiling would not hold an external agent back, and that nobody allowed that: a process reports
// nothing. An ACP agent that reports nothing ends with its first prompt.
func HoldsNothing(a *spec.PlanAgent, b spec.Budgets) bool {
	return a.Unmetered != "allow" && a.Backend.Kind == spec.BackendProcess && (b.MaxCostBudget != nil || b.MaxTokenBudget > 0)
}
