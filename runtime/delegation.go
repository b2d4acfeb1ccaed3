package runtime

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// maxRoster bounds what the tool says of each agent, in runes.
const maxRoster = 200

// delegateTo describes the tool to the agents of a team. Its schema names them, so that a rule about one that does not exist
// is an error. No agents: it names nobody, for rules that are read without a team.
func delegateTo(agents []spec.PlanAgent) spec.ToolInfo {
	target := map[string]any{"type": "string", "minLength": 1, "maxLength": 256, "description": "the agent's name"}
	text := "Hand a sub-task to another agent of the team and get its final answer. It sees nothing of this conversation but the prompt, and works with tools of its own."
	if len(agents) > 0 {
		names := make([]string, len(agents))
		text += " Agents:"
		for i, a := range agents {
			names[i] = a.Name
			text += "\n- " + a.Name
			if a.Description != "" {
				text += ": " + clip(strings.Join(strings.Fields(a.Description), " "), maxRoster)
			}
		}
		target["enum"] = names
	}
	schema, err := canon.Bytes(map[string]any{"type": "object", "additionalProperties": false, "required": []string{"target_agent", "prompt"},
		"properties": map[string]any{"target_agent": target, "prompt": map[string]any{"type": "string", "minLength": 1, "maxLength": 262144, "description": "all that it needs to know"}}})
	if err != nil {
		schema = []byte("false") // which accepts nothing
	}
	return spec.ToolInfo{Name: spec.DelegateTool, Description: text, InputSchema: schema}
}

// anyTeam gives the tools that a rule may name where no team is at hand.
func anyTeam(known []spec.ToolInfo) []spec.ToolInfo {
	return append(slices.Clip(known), delegateTo(nil))
}

func (c *compiler) delegateTool() spec.ToolInfo {
	roster := make([]spec.PlanAgent, len(c.team.Agents))
	for i, a := range c.team.Agents {
		roster[i] = spec.PlanAgent{Name: a.Name, Description: a.Description}
	}
	return delegateTo(roster)
}

// delegation says who may delegate, now that it is known who works. One agent alone has no team to ask.
func (c *compiler) delegation() {
	working, may := c.plan.Working(), false
	for i := range c.plan.Agents {
		a, at := &c.plan.Agents[i], spec.Path("agents").Index(i)
		if !a.Has(spec.DelegateTool) {
			continue
		}
		if c.plan.RoutingDecision.Mode == "single" {
			a.Tools = slices.DeleteFunc(a.Tools, func(g spec.Grant) bool { return g.Name == spec.DelegateTool })
			a.Removed = append(a.Removed, spec.Removal{Name: spec.DelegateTool, RemovedBy: "mode single"})
			c.diags.Notef("delegation-alone", at, "agent %q works alone, so it cannot delegate", a.Name)
			continue
		}
		may = may || working[a.Name]
	}
	c.memory()
	if d := c.team.Delegation; d != nil && !may && c.plan.RoutingDecision.Mode != "single" {
		c.diags.Warnf("delegation-unused", "delegation", "no agent with a task is granted %s", spec.DelegateTool).Hint = "add it to an agent's tools"
	}
	if !may {
		return
	}
	depth := spec.DefaultDelegationDepth
	if d := c.team.Delegation; d != nil && d.MaxDelegationDepth != nil {
		depth = *d.MaxDelegationDepth
	}
	c.plan.Delegation = &spec.Delegation{MaxDelegationDepth: &depth}
	if depth == 0 {
		c.diags.Warnf("delegation-unused", spec.Path("delegation").Key("maxDelegationDepth"), "maxDelegationDepth 0 refuses every delegation").Hint = "take the tool away, or allow a depth"
	}
	if c.plan.Scheduling.MaxConcurrency == 1 {
		c.diags.Warnf("delegation-no-slot", spec.Path("scheduling").Key("maxConcurrency"), "a delegated run needs a place beside the one of its caller, and there is one").Hint = "maxConcurrency: 2 or more"
	}
	if a := c.team.Approvals; a != nil && len(a.Dispatch) > 0 {
		c.diags.Errorf("delegation-dispatch", spec.Path("approvals").Key("dispatch"), "rules of approvals.dispatch look at tasks, and an agent that is delegated to starts without being one").Hint =
			"put rules over " + spec.DelegateTool + " into gates, or take the tool away"
	}
	c.delegatingRoles()
}

// delegatingRoles finds roles that are to be read-only and may act through others.
func (c *compiler) delegatingRoles() {
	g := c.team.Governance
	if g == nil || g.GovernanceIntent == spec.IntentNone || !g.Independence.ReviewersReadOnly {
		return
	}
	for i, role := range g.RequiredRoles {
		a := c.plan.Agent(role)
		if a == nil || !a.Has(spec.DelegateTool) {
			continue
		}
		at := spec.Path("governance").Key("requiredRoles").Index(i)
		for _, b := range c.plan.Agents {
			if b.Name != role && b.Consequential() {
				c.diags.Errorf("governance-read-only", at, "reviewersReadOnly: role %q may delegate to agent %q, which has a consequential tool", role, b.Name).Hint = "take " + spec.DelegateTool + " away from the role"
			}
		}
	}
}

// memory checks the patterns of the shared memory.
func (c *compiler) memory() {
	if c.plan.SharedMemory == nil {
		return
	}
	for i, pattern := range c.plan.SharedMemory.Redact {
		if _, err := regexp.Compile(pattern); err != nil {
			c.diags.Errorf("memory-pattern", spec.Path("sharedMemory").Key("redact").Index(i), "%q is not usable: %v", pattern, err).Hint = "patterns are in RE2 syntax"
		}
	}
}

// forgetting gives what takes out of a text what the shared memory does not keep. nil: nothing.
func forgetting(m *spec.SharedMemory) (func(string) string, error) {
	if m == nil || len(m.Redact) == 0 {
		return nil, nil
	}
	patterns := make([]*regexp.Regexp, len(m.Redact))
	for i, p := range m.Redact {
		var err error
		if patterns[i], err = regexp.Compile(p); err != nil {
			return nil, fmt.Errorf("%w: its pattern %q is not usable: %w", ErrStale, p, err)
		}
	}
	return func(s string) string {
		for _, p := range patterns {
			s = p.ReplaceAllLiteralString(s, "[redacted]")
		}
		return s
	}, nil
}

// undelegable says why an agent cannot hand work to the one that it names, whatever the rules say, in the reference's order
// (DL1). An empty code: it can, or what it says cannot be read, or it is no such call.
func (g *guard) undelegable(tool, arguments string, chain []string) (code, text string) {
	if tool != spec.DelegateTool || len(chain) == 0 {
		return "", ""
	}
	input, err := canon.Arguments(arguments)
	target, _ := input["target_agent"].(string)
	if err != nil || target == "" {
		return "", "" // the schema says what is wrong
	}
	depth := 0
	if d := g.plan.Delegation; d != nil && d.MaxDelegationDepth != nil {
		depth = *d.MaxDelegationDepth
	}
	switch {
	case target == chain[len(chain)-1]:
		return "delegation-self", "Cannot delegate to yourself. Do the work, or name another agent."
	case g.plan.Agent(target) == nil:
		return "delegation-unknown", fmt.Sprintf("Unknown agent %q. Roster: %s", clip(target, maxName), strings.Join(namesOf(g.plan), ", "))
	case slices.Contains(chain, target):
		return "delegation-cycle", fmt.Sprintf("Delegation cycle detected: %s -> %s. Answer with what you have.", strings.Join(chain, " -> "), target)
	case len(chain) > depth:
		return "delegation-depth", fmt.Sprintf("Maximum delegation depth (%d) reached; cannot delegate further.", depth)
	}
	return "", ""
}

func namesOf(p *spec.Plan) []string {
	names := make([]string, len(p.Agents))
	for i, a := range p.Agents {
		names[i] = a.Name
	}
	return names
}

// rootTask is the task below which a delegated run stands, or the task itself.
func rootTask(id string) string {
	root, _, _ := strings.Cut(id, "/")
	return root
}

// withTarget puts back into the log's form of a judgement whom the call delegates to. The door took it for the name of an agent,
// which stands in the plan as it is, even if some key is the same word.
func withTarget(e *core.Effect, shown, res *core.Result) *core.Result {
	if e.Call.Name != spec.DelegateTool || shown == res || res.Judged == nil || res.Judged.Refused != "" {
		return shown
	}
	input, err := canon.Arguments(string(shown.Judged.Canonical))
	was, bad := canon.Arguments(string(res.Judged.Canonical))
	if err != nil || bad != nil {
		return shown
	}
	input["target_agent"] = was["target_agent"]
	if b, err := canon.Bytes(input); err == nil {
		shown.Judged.Canonical = b // clean gave a copy
	}
	return shown
}
