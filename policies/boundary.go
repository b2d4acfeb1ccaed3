package policies

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/open-multi-agent/oma/schemas"
	"github.com/open-multi-agent/oma/spec"
)

// What the rules of a boundary look at is a value of the plan, so that its sizes are known. A plan that is larger than
// this is refused where approvals have rules: what a rule may cost was estimated for no more.
const (
	maxSubjectItems = 64      // tasks, agents, and tools of one agent
	maxSubjectName  = 256     // runes of a name or a title
	maxSubjectLine  = 2048    // runes of a command line
	maxSubjectText  = 1 << 20 // runes of a goal or a description
	// maxSubjectMarks is for the estimate alone.
	maxSubjectMarks = 256
)

// CompileBoundary checks the rules of approvals.plan (scope plan) or approvals.dispatch (scope task_dispatch). agents and
// roles are those of the team. To judge a plan, [Set.Decide] takes a request with the scope as ToolName, [PlanSubject] as
// Input, no AgentName, and Consequential as the subject has it. For a task it takes [TaskSubject], with the task's
// assignee, role, id and marks beside it. What no rule forbids may go on; without rules nothing is gated.
func CompileBoundary(scope string, rules []spec.PlanRule, agents []string, roles []string) (*Set, spec.Diagnostics) {
	return Compile(Boundary(scope, rules, agents, roles))
}

// Boundary is what [CompileBoundary] compiles. Marks may be added to it.
func Boundary(scope string, rules []spec.PlanRule, agents []string, roles []string) RuleSet {
	subject := []spec.ToolInfo{{Name: scope, InputSchema: subjectSchema(scope, agents, roles)}}
	in := RuleSet{Declared: len(rules) > 0, Scope: scope, Rules: rules, Roles: roles}
	if scope == spec.ScopePlan {
		agents = []string{""} // nobody in particular
	}
	for _, name := range agents {
		in.Agents = append(in.Agents, AgentTools{Name: name, Tools: subject})
	}
	return in
}

// Fits says why a subject is not what the rules of a boundary were checked for, or nil: it is larger.
func (in RuleSet) Fits(subject map[string]any) error {
	if len(in.Agents) == 0 {
		return nil // nobody can start anything
	}
	check, err := schemas.Compile(in.Agents[0].Tools[0].InputSchema)
	if err != nil {
		return err
	}
	for _, v := range check.Validate(subject) {
		return fmt.Errorf("%s: %s", v.Path, v.Message)
	}
	return nil
}

// subjectSchema types what the rules of a scope see as input. Every member has a default, so that an example writes only
// what it is about.
func subjectSchema(scope string, agents, roles []string) spec.Schema {
	name := map[string]any{"type": "string", "maxLength": maxSubjectName, "default": ""}
	text := map[string]any{"type": "string", "maxLength": maxSubjectText, "default": ""}
	yes := map[string]any{"type": "boolean", "default": false}
	line := map[string]any{"type": "string", "maxLength": maxSubjectLine, "default": ""}
	names := listOf(map[string]any{"type": "string", "maxLength": maxSubjectName})
	task := map[string]any{"id": name, "title": name, "assignee": oneOf(agents), "role": oneOf(roles), "dependsOn": names, "consequential": yes}
	if scope == spec.ScopeDispatch {
		for key, of := range map[string]any{"description": text, "tools": names, "provider": name, "model": name, "backend": line} {
			task[key] = of
		}
		return encoded(closedObject(task))
	}
	budgets := closedObject(map[string]any{"maxTokenBudget": map[string]any{"type": "integer"}, "maxCostBudget": map[string]any{"type": "number"},
		"maxDurationMs": map[string]any{"type": "integer"}})
	budgets["default"] = map[string]any{}
	return encoded(closedObject(map[string]any{
		"goal": text, "mode": map[string]any{"enum": []string{"single", "team"}, "default": "team"}, "flags": names, "consequential": yes, "budgets": budgets,
		"tasks":  listOf(closedObject(task)),
		"agents": listOf(closedObject(map[string]any{"name": oneOf(agents), "provider": name, "model": name, "backend": line, "tools": names})),
	}))
}

func closedObject(members map[string]any) map[string]any {
	return map[string]any{"type": "object", "additionalProperties": false, "properties": members}
}

func listOf(items map[string]any) map[string]any {
	return map[string]any{"type": "array", "maxItems": maxSubjectItems, "items": items, "default": []any{}}
}

// oneOf is one of the names, or none.
func oneOf(names []string) map[string]any {
	return map[string]any{"enum": append([]string{""}, names...), "default": ""}
}

// encoded takes values that JSON has.
func encoded(schema map[string]any) spec.Schema {
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil // which no value fits
	}
	return raw
}

// PlanSubject is what the rules of approvals.plan see as input. Agents are those at work, on a task or for
// another agent.
func PlanSubject(p *spec.Plan) map[string]any {
	by := p.ByName()
	tasks, agents, some := []any{}, []any{}, false
	working := p.Working()
	for i := range p.Tasks {
		t := &p.Tasks[i]
		tasks = append(tasks, taskMembers(t, by[t.Assignee]))
	}
	for i := range p.Agents {
		if a := &p.Agents[i]; working[a.Name] {
			some = some || consequential(a)
			agents = append(agents, map[string]any{"name": a.Name, "provider": a.Provider, "model": a.Model, "backend": program(a), "tools": toolNames(a)})
		}
	}
	return map[string]any{"goal": p.Goal, "mode": p.RoutingDecision.Mode, "flags": texts(p.Flags), "consequential": some,
		"tasks": tasks, "agents": agents, "budgets": ceilings(p.Budgets)}
}

// TaskSubject is what the rules of approvals.dispatch see as input.
func TaskSubject(p *spec.Plan, t *spec.PlanTask) map[string]any {
	a := p.Agent(t.Assignee)
	m := taskMembers(t, a)
	m["description"], m["tools"], m["provider"], m["model"], m["backend"] = t.Description, []any{}, "", "", ""
	if a != nil {
		m["tools"], m["provider"], m["model"], m["backend"] = toolNames(a), a.Provider, a.Model, program(a)
	}
	return m
}

func taskMembers(t *spec.PlanTask, a *spec.PlanAgent) map[string]any {
	return map[string]any{"id": t.ID, "title": t.Title, "assignee": t.Assignee, "role": t.Role, "dependsOn": texts(t.DependsOn), "consequential": consequential(a)}
}

func consequential(a *spec.PlanAgent) bool { return a != nil && a.Consequential() }

func toolNames(a *spec.PlanAgent) []any {
	names := make([]any, len(a.Tools))
	for i, g := range a.Tools {
		names[i] = g.Name
	}
	return names
}

// ceilings holds those that exist: tokens, dollars, milliseconds.
func ceilings(b spec.Budgets) map[string]any {
	out := map[string]any{}
	if b.MaxTokenBudget > 0 {
		out["maxTokenBudget"] = b.MaxTokenBudget
	}
	if b.MaxCostBudget != nil {
		out["maxCostBudget"] = float64(*b.MaxCostBudget) / float64(spec.Dollar)
	}
	if b.MaxDuration > 0 {
		out["maxDurationMs"] = time.Duration(b.MaxDuration).Milliseconds()
	}
	return out
}

// program names the program that works in a model's place. Empty: a model does.
func program(a *spec.PlanAgent) string {
	if a.Backend == nil {
		return ""
	}
	return strings.Join(append([]string{a.Backend.Kind, a.Backend.Command}, a.Backend.Args...), " ")
}
