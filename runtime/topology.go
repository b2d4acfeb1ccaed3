package runtime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/policies/routing"
	"github.com/open-multi-agent/oma/spec"
)

// governance checks the declaration, all of it in one pass, also when another topology displaces it.
func (c *compiler) governance() {
	g := c.team.Governance
	if g == nil {
		return
	}
	at := spec.Path("governance")
	if g.GovernanceIntent == spec.IntentNone {
		return // whatever stands beside it was refused when the file was read
	}
	if len(g.RequiredRoles) == 0 {
		c.diags.Errorf("governance-roles", at, "governanceIntent %s requires at least one role in requiredRoles", g.GovernanceIntent)
	}
	names := c.agentNames()
	for i, r := range g.RequiredRoles {
		where := at.Key("requiredRoles").Index(i)
		if !slices.Contains(names, r) {
			c.diags.Errorf("governance-roles", where, "required role %q is no agent of this team", r).Hint = spec.DidYouMean(r, names)
		}
	}
	if g.PreferredUnderBudget == degrade && g.GovernanceIntent != spec.IntentPreferred {
		c.diags.Errorf("governance-degrade", at.Key("preferredUnderBudget"), "degrade leaves roles out, and they are %s", g.GovernanceIntent).Hint = "declare governanceIntent: preferred, or leave the key out"
	}
	c.order(g, at.Key("requiredOrder"))
	c.independence(g, at)
}

func (c *compiler) order(g *spec.Governance, at spec.Path) {
	if g.RequiredOrder == nil {
		return
	}
	for i, r := range g.RequiredOrder {
		if !slices.Contains(g.RequiredRoles, r) {
			c.diags.Errorf("governance-order", at.Index(i), "requiredOrder names %q, which is not in requiredRoles", r).Hint = spec.DidYouMean(r, g.RequiredRoles)
		}
	}
	for _, r := range g.RequiredRoles {
		if !slices.Contains(g.RequiredOrder, r) {
			c.diags.Errorf("governance-order", at, "requiredOrder leaves out required role %q", r).Hint = "an order names every required role once"
		}
	}
}

func (c *compiler) independence(g *spec.Governance, at spec.Path) {
	if len(c.team.Tasks) == 0 && g.GovernanceIntent == spec.IntentRequired && len(g.RequiredRoles) > 1 && g.RequiredOrder == nil && !g.Independence.Parallel {
		c.diags.Errorf("governance-unsatisfiable", at, "%d required roles without an order leave no dependency between them, so independent review can never be observed",
			len(g.RequiredRoles)).Hint = "add requiredOrder, or independence: {parallel: true} if they must not see each other's output"
	}
	models := map[string]string{}
	for i, r := range g.RequiredRoles {
		a := c.plan.Agent(r)
		if a == nil {
			continue
		}
		where := at.Key("requiredRoles").Index(i)
		for _, t := range a.Tools {
			if g.Independence.ReviewersReadOnly && t.Consequential {
				c.diags.Errorf("governance-read-only", where, "reviewersReadOnly: role %q is granted %s, which is consequential", r, t.Name).Hint = "take it away with disallowedTools, or use toolPreset: readonly"
			}
		}
		if g.Independence.ReviewersReadOnly && a.Backend != nil && a.Consequential() {
			c.diags.Errorf("governance-read-only", where, "reviewersReadOnly: role %q is an external agent, which is consequential", r).Hint = "let a model with toolPreset: readonly review"
		}
		if g.Independence.DifferentModel && a.Backend != nil {
			c.diags.Errorf("governance-same-model", where, "differentModel: role %q is an external agent, and its answers do not name a model", r).Hint = "leave differentModel out, or take the agent out of requiredRoles"
			continue
		}
		key := c.server(a) + " " + a.Model
		if other, taken := models[key]; g.Independence.DifferentModel && taken && other != r {
			c.diags.Errorf("governance-same-model", where, "differentModel: roles %q and %q both use %s", other, r, key)
		}
		models[key] = r
	}
}

// server says where a model answers, whatever the team file calls the place.
func (c *compiler) server(a *spec.PlanAgent) string {
	p := c.plan.Providers[a.Provider]
	return strings.Join(slices.DeleteFunc([]string{p.Kind, strings.TrimRight(p.BaseURL, "/"), p.Cassette}, func(s string) bool { return s == "" }), " ")
}

func (c *compiler) agentNames() []string {
	names := make([]string, len(c.team.Agents))
	for i, a := range c.team.Agents {
		names[i] = a.Name
	}
	return names
}

// topology makes the tasks. An agent asked for alone wins over a declaration, which never passes silently.
func (c *compiler) topology() {
	g := c.team.Governance
	declared := g != nil && g.GovernanceIntent != spec.IntentNone
	switch {
	case c.o.Agent != "":
		c.single(c.o.Agent, "override", "one agent was asked for by name")
	case len(c.team.Tasks) > 0:
		c.graph()
	case c.team.Mode == "single" && len(c.team.Agents) == 1:
		c.single(c.team.Agents[0].Name, "override", "mode is single")
	case c.team.Mode == "single":
		name, why := c.selected()
		c.single(name, "override", "mode is single, and "+why)
	case c.degraded():
		name, why := c.selected()
		c.single(name, "policy", "preferred roles are left out under a ceiling, and "+why)
	case declared:
		c.roles(g)
	case len(c.team.Agents) == 1:
		c.single(c.team.Agents[0].Name, "policy", "the team has one agent")
	default:
		c.routed()
	}
}

// routed lets one agent work where the goal is simple. That several would have to is nothing to guess at.
func (c *compiler) routed() {
	d := routing.Classify(c.plan.Goal)
	if d.Mode == routing.Team {
		c.diags.Errorf("needs-topology", "", "%d agents and nothing that says who works on what: %s", len(c.team.Agents), strings.Join(d.Reasons, "; ")).Hint =
			"declare tasks, or governance with requiredRoles, or give --agent NAME"
		return
	}
	name, why := c.selected()
	c.single(name, "policy", why)
	c.plan.RoutingDecision.Reasons = append(d.Reasons, why)
	c.plan.RoutingDecision.RouterVersion = routing.Version
}

// degrade is the word of preferredUnderBudget by which a ceiling leaves preferred roles out.
const degrade = "degrade"

// degraded says that preferred roles are left out (reference behaviour G20). What they would cost is not predicted; a limit
// of time is no ceiling.
func (c *compiler) degraded() bool {
	g, b := c.team.Governance, c.team.Budgets
	return g != nil && g.GovernanceIntent == spec.IntentPreferred && g.PreferredUnderBudget == degrade && (b.MaxTokenBudget > 0 || b.MaxCostBudget != nil) &&
		c.o.Agent == "" && len(c.team.Tasks) == 0 && c.team.Mode != "single"
}

func (c *compiler) single(name, source, reason string) {
	c.plan.RoutingDecision = spec.RoutingDecision{Source: source, Mode: "single", Reasons: []string{reason}}
	if !slices.Contains(c.agentNames(), name) {
		c.diags.Errorf("unknown-agent", "", "no agent is called %q", name).Hint = spec.DidYouMean(name, c.agentNames())
		return
	}
	role := ""
	if g := c.team.Governance; g != nil && slices.Contains(g.RequiredRoles, name) {
		role = name
	}
	c.plan.Tasks = []spec.PlanTask{{ID: "single", Title: "Single: " + name, Description: c.plan.Goal, Assignee: name, Role: role, Status: spec.TaskPending}}
}

// roles makes one task a role, each with the goal as it is, chained where an order is declared.
func (c *compiler) roles(g *spec.Governance) {
	c.plan.RoutingDecision = spec.RoutingDecision{Source: "declared", Mode: "team", Reasons: []string{"governanceIntent is " + g.GovernanceIntent}}
	list := g.RequiredRoles
	if g.RequiredOrder != nil {
		list = g.RequiredOrder
	}
	for i, role := range list {
		t := spec.PlanTask{ID: fmt.Sprintf("governance-task-%d", i+1), Title: fmt.Sprintf("Governance task %d", i+1), Description: c.plan.Goal,
			Assignee: role, Role: role, Status: spec.TaskPending}
		if g.RequiredOrder != nil && i > 0 {
			t.DependsOn = []string{c.plan.Tasks[i-1].ID}
		}
		c.plan.Tasks = append(c.plan.Tasks, t)
	}
}

// unused says who works on nothing, where nobody asked for that.
func (c *compiler) unused() {
	if c.o.Agent != "" {
		return
	}
	working := c.plan.Working()
	for i, a := range c.team.Agents {
		if !working[a.Name] {
			c.diags.Notef("agent-unused", spec.Path("agents").Index(i), "agent %q works on no task", a.Name)
		}
	}
}

func (c *compiler) release() {
	_, diags := policies.CompileRelease(c.plan.Release, roleSchemas(c.plan), "release.require")
	c.diags = append(c.diags, diags...)
}

// roleSchemas are the agents whose results requirements may read: those with a task. Where one agent was asked for alone,
// every agent is: a requirement about another one is then unmet, not wrong.
func roleSchemas(p *spec.Plan) []policies.RoleSchema {
	working := map[string]bool{}
	for _, t := range p.Tasks {
		working[t.Assignee] = true
	}
	var out []policies.RoleSchema
	for i := range p.Agents {
		if a := &p.Agents[i]; working[a.Name] || p.RoutingDecision.Source == "override" {
			out = append(out, policies.RoleSchema{Role: a.Name, OutputSchema: a.OutputSchema})
		}
	}
	return out
}
