package runtime

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

// budgets checks ceilings against prices and floors, and works out the worst case, which is information only.
func (c *compiler) budgets() {
	b := c.plan.Budgets
	at := spec.Path("budgets")
	if b.MaxCostBudget != nil {
		c.priced()
	}
	if b.ReserveForRequired && (b.MaxTokenBudget == 0 || c.team.Governance == nil || len(c.team.Governance.RequiredRoles) == 0) {
		c.diags.Warnf("reserve-without-roles", at.Key("reserveForRequired"), "reserveForRequired needs maxTokenBudget and required roles; it holds nothing back here")
	}
	c.plan.WorstCase = worstCase(c.plan)
	if floor := c.plan.WorstCase.FloorTokens; b.MaxTokenBudget > 0 && floor > b.MaxTokenBudget {
		c.diags.Warnf("budget-too-small", at.Key("maxTokenBudget"), "one turn of every task takes about %d tokens, more than the ceiling of %d", floor, b.MaxTokenBudget)
	}
}

// priced refuses a model without a price under a cost ceiling: it would count as free.
func (c *compiler) priced() {
	working := c.plan.Working()
	for i := range c.plan.Agents {
		p := &c.plan.Agents[i]
		if p.Provider == "" || !working[p.Name] {
			continue
		}
		if p.Backend != nil {
			continue
		}
		if _, ok := c.plan.Price(p); !ok {
			d := c.diags.Errorf("model-without-price", spec.Path("agents").Index(i), "there is a cost ceiling, and model %q of provider %q has no price", p.Model, p.Provider)
			d.Hint = fmt.Sprintf("add inputPer1M and outputPer1M under providers.%s.models.%s; 0 is a price", p.Provider, p.Model)
		}
	}
}

// floorTokens is one turn of a task at the least: its text at three bytes a token, and 256 tokens of answer.
func floorTokens(a *spec.PlanAgent, goal string) int64 {
	n := len(a.SystemPrompt) + len(goal)
	for _, t := range a.Tools {
		n += len(t.Name) + len(t.Description) + len(t.InputSchema)
	}
	return int64(n+2)/3 + 256
}

func worstCase(p *spec.Plan) spec.WorstCase {
	var w spec.WorstCase
	var tokens int64
	var cost spec.USD
	known, priced, unpriced := true, true, ""
	agents := p.ByName()
	for _, t := range p.Tasks {
		a := agents[t.Assignee]
		if a == nil {
			continue
		}
		if a.Backend != nil {
			known, w.Reason = false, fmt.Sprintf("agent %q is an external program", a.Name)
			continue
		}
		w.FloorTokens += floorTokens(a, t.Description)
		window := p.Providers[a.Provider].Models[a.Model].ContextWindow
		if window == 0 {
			known = false
			w.Reason = fmt.Sprintf("the context window of model %q of provider %q is not declared", a.Model, a.Provider)
			continue
		}
		out := a.MaxOutputTokens
		if out == 0 || out > window {
			out = window
		}
		turns := int64(a.MaxTurns)
		tokens = spec.AddCapped(tokens, capped(turns, window))
		price, ok := p.Price(a)
		if !ok {
			priced = false
			unpriced = fmt.Sprintf("model %q of provider %q has no price", a.Model, a.Provider)
		} else {
			cost = spec.AddCapped(cost, price.Cost(spec.Usage{Input: capped(turns, window-out), Output: capped(turns, out)}))
		}
	}
	if p.Delegation != nil {
		known, w.Reason = false, "agents may delegate"
	}
	if known && len(p.Tasks) > 0 {
		w.Tokens = &tokens
		if priced {
			w.Cost = &cost
		} else {
			w.Reason = unpriced
		}
	}
	return w
}

// capped multiplies two counts that are not negative, up to the largest there is.
func capped(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

// Unaffordable says whether the worst case is above a ceiling, or cannot be known while there is one.
func Unaffordable(p *spec.Plan) (string, bool) {
	w, b := p.WorstCase, p.Budgets
	switch {
	case b.MaxTokenBudget == 0 && b.MaxCostBudget == nil:
		return "", false
	case b.MaxTokenBudget > 0 && w.Tokens == nil, b.MaxCostBudget != nil && w.Cost == nil:
		return "the worst case is not known: " + w.Reason, true
	case b.MaxTokenBudget > 0 && *w.Tokens > b.MaxTokenBudget:
		return fmt.Sprintf("the worst case of %d tokens is above the ceiling of %d", *w.Tokens, b.MaxTokenBudget), true
	case b.MaxCostBudget != nil && *w.Cost > *b.MaxCostBudget:
		return fmt.Sprintf("the worst case of $%s is above the ceiling of $%s", *w.Cost, *b.MaxCostBudget), true
	}
	return "", false
}

// The controls of the enforcement map.
var controls = []string{"grants", "gates", "containment", "budget", "evidence", "secrets", "egress"}

// Controls gives the names that --require-enforced takes.
func Controls() []string { return slices.Clone(controls) }

// enforcement says for every agent how far each promise can be kept. It speaks of declarations only: what the machine
// adds is on the receipt.
func enforcement(p *spec.Plan) []spec.Control {
	out := []spec.Control{}
	for _, a := range p.Agents {
		shell, starts := a.Has("bash"), a.Starts(p)
		add := func(control, level, mechanism string) {
			out = append(out, spec.Control{Agent: a.Name, Control: control, Level: level, Mechanism: mechanism})
		}
		if a.Backend != nil {
			external(p, &a, add)
			continue
		}
		add("grants", spec.Enforced, "the door refuses a call that is not granted")
		if p.Gates.Declared {
			add("gates", spec.Enforced, "every granted call is judged before it runs")
		} else {
			add("gates", spec.NotEnforceable, "no gate is declared")
		}
		switch {
		case shell && Walled(a.ShellExecutor) && Alone(p, &a):
			walls(&a, add)
		case shell:
			add("containment", spec.NotEnforceable, "bash runs anywhere the user may")
			add("evidence", spec.NotEnforceable, "bash can write what judges it")
			add("secrets", spec.Observed, "bash gets a minimal environment; the program's own is closed to it as far as the machine allows")
		case starts:
			who, what := started(p, &a)
			add("containment", spec.NotEnforceable, who+" run anywhere the user may")
			add("evidence", spec.NotEnforceable, who+" can write what judges them")
			add("secrets", spec.Observed, what+" get a minimal environment and what they declare; the program's own is closed to them as far as the machine allows")
		case a.Containment == "none":
			add("containment", spec.NotEnforceable, "containment: none")
			add("evidence", spec.Enforced, "protected paths are refused to file tools")
			add("secrets", spec.Observed, "file tools may read any file the user may")
		default:
			add("containment", spec.Enforced, "file tools cannot leave the agent's folder")
			add("evidence", spec.Enforced, "protected paths are refused to file tools")
			add("secrets", spec.Enforced, "no tool reaches the environment")
		}
		switch {
		case p.Budgets.MaxTokenBudget == 0 && p.Budgets.MaxCostBudget == nil && a.MaxTokenBudget == 0:
			add("budget", spec.NotEnforceable, "no token or cost ceiling is declared")
		case a.Unmetered == "allow":
			add("budget", spec.Observed, "usage that the provider does not report is estimated")
		default:
			add("budget", spec.Enforced, "reserved before each model call and settled after it")
		}
		egressControl(p, &a, add)
	}
	return out
}

// started says which programs an agent's tools start, in full and in a word.
func started(p *spec.Plan, a *spec.PlanAgent) (who, what string) {
	who, what = "commands of the team's own tools", "commands"
	if slices.ContainsFunc(ServersOf(p, a), func(name string) bool { return p.MCPServers[name].Command != "" }) {
		who, what = "programs of MCP servers", "programs"
		if slices.ContainsFunc(a.Tools, func(g spec.Grant) bool { return p.CustomTools[g.Name].Command != nil }) {
			who = "commands of the team's own tools, and programs of MCP servers,"
		}
	}
	return who, what
}

// external says it of an agent that is a program of its own.
func external(p *spec.Plan, a *spec.PlanAgent, add func(control, level, mechanism string)) {
	if a.Backend.Serves() {
		served(p, a, add)
	}
	add("grants", spec.NotEnforceable, "an external agent has tools of its own")
	switch {
	case a.Backend.Asks():
		add("gates", spec.Observed, "what the agent asks for is judged; what it does without asking is not")
	case a.Backend.Permission == spec.PermissionReject:
		add("gates", spec.Observed, "everything the agent asks for is refused; what it does without asking is not")
	default:
		add("gates", spec.NotEnforceable, "what a program does meets no gate")
	}
	add("containment", spec.NotEnforceable, "a program runs anywhere the user may")
	add("evidence", spec.NotEnforceable, "a program can write what judges it")
	add("secrets", spec.Observed, "a program gets a minimal environment and what its env names; oma's own is closed to it as far as the machine allows")
	if a.Backend.Kind == spec.BackendACP {
		add("budget", spec.Observed, "the agent's own figures are counted after its work")
	} else {
		add("budget", spec.NotEnforceable, "a program reports no usage")
	}
	add("egress", spec.NotEnforceable, "a program asks whom it wants")
}

// served says it of what is done for an external agent, which comes before what it does with its own hands.
func served(p *spec.Plan, a *spec.PlanAgent, add func(control, level, mechanism string)) {
	var names []string
	for _, g := range given(a).Tools {
		names = append(names, g.Name)
	}
	calls := "calls of " + strings.Join(names, ", ") + " that it asks for"
	add("grants", spec.Enforced, calls+": the door refuses any other")
	if p.Gates.Declared {
		add("gates", spec.Enforced, calls+": every one is judged before it runs")
	}
	if slices.Contains(a.Backend.Capabilities, spec.CapabilityFS) {
		add("containment", spec.Enforced, "calls of file_read, file_write that it asks for: they cannot leave the agent's folder")
		add("evidence", spec.Enforced, "calls of file_write that it asks for: protected paths are refused")
	}
	if a.Has("bash") && Walled(a.ShellExecutor) {
		walls(a, add)
	}
}

// NotEnforced gives the agents at work for which a control is not enforced, whatever the plan says of that: a saved plan is a
// file like any other.
func NotEnforced(p *spec.Plan, control string) []spec.Control {
	var out []spec.Control
	working := p.Working()
	for _, c := range enforcement(p) {
		if working[c.Agent] && c.Control == control && c.Level != spec.Enforced {
			out = append(out, c)
		}
	}
	return out
}
