package runtime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/policies/servers"
	"github.com/open-multi-agent/oma/policies/tools"
	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
)

// Capability is what one agent of a plan can do, and what stands before each tool.
type Capability struct {
	Agent string `json:"agent"`
	// Backend is the program that works in a model's place. nil: a model does.
	Backend     *spec.Backend    `json:"backend,omitempty"`
	Provider    string           `json:"provider"`
	Kind        string           `json:"kind"` // of the provider
	Model       string           `json:"model"`
	Cwd         string           `json:"cwd"`
	Containment string           `json:"containment"` // none, or cwd: file tools stay in it
	Tasks       []CapabilityTask `json:"tasks"`       // that it works on. Empty: none
	MaxTurns    int              `json:"maxTurns"`
	// MaxTokenBudget is its own; Budgets are those of the run. Zero: none.
	MaxTokenBudget int64        `json:"maxTokenBudget,omitempty"`
	Budgets        spec.Budgets `json:"budgets"`
	Tools          []ToolAccess `json:"tools"` // every tool that exists
	// Before are the rules of approvals that its work has to pass before any call.
	Before []BoundaryRule `json:"before,omitempty"`
	// Confirmed says that its consequential calls are denied until a person has approved the plan.
	Confirmed bool `json:"confirmed,omitempty"`
	// Door is the order in which every call of it is decided.
	Door        []string       `json:"door"`
	Enforcement []spec.Control `json:"enforcement"`
}

// CapabilityTask is a task and the required role that it fills.
type CapabilityTask struct {
	ID   string `json:"id"`
	Role string `json:"role,omitempty"`
}

// ToolAccess says how far an agent reaches one tool.
type ToolAccess struct {
	Name          string `json:"name"`
	Granted       bool   `json:"granted"`
	By            string `json:"by"` // the step that granted it or took it away, or why nothing grants it
	Consequential bool   `json:"consequential"`
	// Does says what a call of a tool of the team's own does, and Given which credentials it gets. Empty for other tools.
	Does  string   `json:"does,omitempty"`
	Given []string `json:"given,omitempty"`
	// Rules can judge its calls. Empty for a tool that is not granted: no call of it meets a rule.
	Rules []RuleAccess `json:"rules,omitempty"`
	// Default is what becomes of a call that no rule forbids or permits: allow, deny, or ungated where no gates are
	// declared. Empty for a tool that is not granted.
	Default string `json:"default,omitempty"`
	// Permits says what can let a call run. Empty: nothing can.
	Permits []string `json:"permits,omitempty"`
	// Asks names the rules that can put a call before a person.
	Asks []string `json:"asks,omitempty"`
}

// BoundaryRule is a rule over the plan or over a task.
type BoundaryRule struct {
	Scope  string `json:"scope"`
	Name   string `json:"name"`
	Action string `json:"action"`
}

// RuleAccess is a rule that looks at calls of a tool.
type RuleAccess struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	Action string `json:"action"`
	Cost   uint64 `json:"cost"` // of judging one call, at worst; of a rule that was replaced it may not be known
	Mark   string `json:"mark,omitempty"`
	// Replaced says that the agent's gates.replace took it away.
	Replaced bool `json:"replaced,omitempty"`
}

// door is what every call of a tool passes, in this order.
var door = []string{"granted", "arguments decoded, shaped and valid", "paths in their shown form, none protected", "budget of the turn reserved",
	"judged by every rule that looks at it", "approved by people where a rule asks them", "recorded", "made", "recorded"}

// CapabilityOf gives the view of one agent. nil: the plan has none of this name.
func CapabilityOf(p *spec.Plan, name string, known []spec.ToolInfo) *Capability {
	a := p.Agent(name)
	if a == nil {
		return nil
	}
	c := &Capability{Agent: name, Backend: a.Backend, Provider: a.Provider, Kind: p.Providers[a.Provider].Kind, Model: a.Model, Cwd: a.Cwd, Containment: a.Containment,
		Tasks: []CapabilityTask{}, MaxTurns: a.MaxTurns, MaxTokenBudget: a.MaxTokenBudget, Budgets: p.Budgets, Door: slices.Clone(door)}
	if c.Cwd == "" {
		c.Cwd = spec.DefaultCwd
	}
	if c.Containment == "" {
		c.Containment = "cwd"
	}
	for _, t := range p.Tasks {
		if t.Assignee == name {
			c.Tasks = append(c.Tasks, CapabilityTask{t.ID, t.Role})
		}
	}
	for _, info := range slices.Concat(known, ToolsOf(p)) {
		c.Tools = append(c.Tools, access(p, a, info))
	}
	for _, row := range p.Enforcement {
		if row.Agent == name {
			c.Enforcement = append(c.Enforcement, row)
		}
	}
	c.approvals(p, a)
	return c
}

// approvals tells what people are asked before the agent works.
func (c *Capability) approvals(p *spec.Plan, agent *spec.PlanAgent) {
	a := p.Approvals
	if a == nil || len(c.Tasks) == 0 {
		return
	}
	for _, r := range a.Plan {
		c.Before = append(c.Before, BoundaryRule{spec.ScopePlan, r.Name, r.Action})
	}
	for _, r := range a.Dispatch {
		c.Before = append(c.Before, BoundaryRule{spec.ScopeDispatch, r.Name, r.Action})
	}
	c.Confirmed = agent.Consequential() && core.Confirms(p)
}

func access(p *spec.Plan, a *spec.PlanAgent, info spec.ToolInfo) ToolAccess {
	t := ToolAccess{Name: info.Name, Consequential: info.Consequential, By: "nothing grants it"}
	for _, r := range a.Removed {
		if r.Name == info.Name {
			t.By = "removed by " + r.RemovedBy
		}
	}
	for _, g := range a.Tools {
		if g.Name == info.Name {
			t.Granted, t.By, t.Consequential = true, g.GrantedBy, g.Consequential
		}
	}
	if !t.Granted {
		return t
	}
	if own, ok := p.CustomTools[info.Name]; ok {
		t.Does, t.Given = tools.Does(&own), tools.Needs(&own)
	}
	if server, of, ok := p.ServerOf(info.Name); ok {
		s := p.MCPServers[server].MCPServer
		t.Does, t.Given = fmt.Sprintf("calls %q of MCP server %s", of.Name, server), servers.Credentials(&s)
	}
	if !p.Gates.Declared {
		t.Default, t.Permits = "ungated", []string{"the grant"}
		return t
	}
	switch t.Default = p.Gates.Default; {
	case info.Name == spec.PermissionTool: // nobody granted what an external agent has of its own
		t.Permits = []string{"kind read, search or think"}
	case t.Default != spec.ActionDeny:
		t.Permits = []string{"gates.default"}
	}
	for _, r := range p.Gates.Rules {
		if look, ok := looks(&r, a.Name, info.Name); ok {
			t.Rules = append(t.Rules, look)
			switch {
			case look.Replaced:
			case r.Action == spec.ActionAllow && Permits(r.Source):
				t.Permits = append(t.Permits, "rule "+r.Name)
			case r.Asks():
				t.Asks = append(t.Asks, r.Name)
			}
		}
	}
	if t.Asks != nil {
		t.Permits = append(t.Permits, "a person where a rule asks")
	}
	return t
}

// looks says how a rule looks at an agent's calls of a tool. false: it does not, since it can match none of them. Of one
// that was replaced that is not known: it is told where it names the tool or no tool at all.
func looks(r *spec.PlanRule, agent, tool string) (RuleAccess, bool) {
	out := RuleAccess{Name: r.Name, Source: r.Source, Action: r.Action, Mark: r.Mark, Replaced: slices.Contains(r.ReplacedFor, agent)}
	i := slices.IndexFunc(r.AppliesTo, func(c spec.RuleCost) bool { return c.Tool == tool })
	if i >= 0 {
		out.Cost = r.AppliesTo[i].Cost
	}
	mine := r.Agent == "" || r.Agent == agent
	return out, mine && (i >= 0 || out.Replaced && policies.LooksAt(r, tool))
}

// Permits says that rules of a source can permit calls: those of the team file itself, for all agents or for one.
func Permits(source string) bool { return source == "team" || strings.HasPrefix(source, "agent ") }
