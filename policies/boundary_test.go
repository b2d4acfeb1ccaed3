package policies

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/schemas"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

func boundaryPlan() *spec.Plan {
	p := &spec.Plan{Goal: "ship it", Flags: []string{spec.FlagConsequential}}
	p.RoutingDecision.Mode = "team"
	p.Agents = []spec.PlanAgent{
		{Name: "author", Provider: "gateway", Model: "m1", Tools: []spec.Grant{{ToolInfo: spec.ToolInfo{Name: "bash", Consequential: true}}}},
		{Name: "idle", Provider: "gateway", Model: "m2", Tools: []spec.Grant{{ToolInfo: spec.ToolInfo{Name: "bash", Consequential: true}}}},
		{Name: "reviewer", Provider: "local", Model: "m3", Tools: []spec.Grant{{ToolInfo: spec.ToolInfo{Name: "grep"}}}},
	}
	p.Tasks = []spec.PlanTask{
		{ID: "author", Title: "write", Description: "write it", Assignee: "author"},
		{ID: "reviewer", Title: "review", Description: "read it", Assignee: "reviewer", Role: "reviewer", DependsOn: []string{"author"}},
	}
	cost := spec.USD(5) * spec.Dollar / 2
	p.Budgets = spec.Budgets{MaxTokenBudget: 1000, MaxCostBudget: &cost, MaxDuration: spec.Duration(90e9)}
	return p
}

var (
	boundaryAgents = []string{"author", "idle", "reviewer"}
	boundaryRoles  = []string{"reviewer"}
)

func boundaryRule(action, when string) spec.PlanRule {
	return spec.PlanRule{Rule: spec.Rule{Name: "r", When: when, Action: action, Reason: "because"}, Source: "team", Path: "approvals.plan[0]"}
}

// What the rules see fits the schema they were checked against, and holds nothing but values that canon gives.
func TestSubjects(t *testing.T) {
	p := boundaryPlan()
	for scope, subject := range map[string]map[string]any{spec.ScopePlan: PlanSubject(p), spec.ScopeDispatch: TaskSubject(p, &p.Tasks[1]),
		"nobody's " + spec.ScopeDispatch: TaskSubject(p, &spec.PlanTask{ID: "x", Title: "x"})} {
		schema := subjectSchema(strings.TrimPrefix(scope, "nobody's "), boundaryAgents, boundaryRoles)
		check, err := schemas.Compile(schema)
		if err != nil {
			t.Fatal(err)
		}
		if found := check.Validate(subject); len(found) > 0 {
			t.Errorf("%s: %+v", scope, found)
		}
		raw, err := canon.Bytes(subject)
		if err != nil {
			t.Fatal(err)
		}
		again, err := canon.Arguments(string(raw))
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := canon.Decode(schema)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(canon.Shape(decoded, map[string]any(again)), any(subject)); diff != "" {
			t.Errorf("%s: as canon shapes it (-), as it is (+)\n%s", scope, diff)
		}
	}
}

func TestBoundaryDecide(t *testing.T) {
	p := boundaryPlan()
	for _, c := range []struct {
		scope, action, when, want string
	}{
		{spec.ScopePlan, "ask", "consequential", "ask"},
		{spec.ScopePlan, "suspend", "input.tasks.exists(t, t.consequential && t.role == '')", "suspend"},
		{spec.ScopePlan, "deny", "input.goal.contains('ship')", "deny"},
		{spec.ScopePlan, "warn", "true", "allow"},
		{spec.ScopePlan, "deny", "input.agents.exists(a, a.name == 'idle')", "allow"},
		{spec.ScopePlan, "deny", "size(input.agents) == 2 && 'bash' in input.agents[0].tools", "deny"},
		{spec.ScopePlan, "ask", "has(input.budgets.maxCostBudget) && input.budgets.maxCostBudget > 2.4 && input.budgets.maxTokenBudget == 1000", "ask"},
		{spec.ScopePlan, "ask", "has(input.budgets.maxDurationMs) && input.budgets.maxDurationMs == 90000", "ask"},
		{spec.ScopePlan, "ask", "input.mode == 'team' && 'consequential-no-independence' in input.flags", "ask"},
		{spec.ScopePlan, "ask", "input.tasks.exists(t, input.agents.exists(a, a.name == t.assignee && a.tools.exists(x, x == 'bash')))", "ask"},
		{spec.ScopeDispatch, "ask", "agentName == 'author' && consequential && role == '' && taskId == 'author'", "ask"},
		{spec.ScopeDispatch, "ask", "agentName == 'reviewer'", "allow"},
		{spec.ScopeDispatch, "deny", "'bash' in input.tools && input.provider == 'gateway' && input.model == 'm1'", "deny"},
		{spec.ScopeDispatch, "suspend", "'tainted' in marks", "suspend"},
		{spec.ScopeDispatch, "deny", "input.dependsOn[0] == 'x'", "deny"}, // it fails: nothing runs
	} {
		set, diags := CompileBoundary(c.scope, []spec.PlanRule{boundaryRule(c.action, c.when)}, boundaryAgents, boundaryRoles)
		if set == nil {
			t.Errorf("%s: %v", c.when, diags)
			continue
		}
		r := Request{ToolName: c.scope, Input: PlanSubject(p), Consequential: true}
		if c.scope == spec.ScopeDispatch {
			r.Input, r.AgentName, r.TaskID, r.Marks = TaskSubject(p, &p.Tasks[0]), "author", "author", []string{"tainted"}
		}
		d := set.Decide(t.Context(), r)
		if d.GateAction != c.want || !d.Gated {
			t.Errorf("%s %s: got %+v, want %s", c.action, c.when, d, c.want)
		}
	}
}

// Without rules nothing is gated, and a set that there is not refuses.
func TestBoundaryWithoutRules(t *testing.T) {
	set, diags := CompileBoundary(spec.ScopePlan, nil, boundaryAgents, nil)
	if set == nil || diags != nil {
		t.Fatal(diags)
	}
	if d := set.Decide(t.Context(), Request{ToolName: spec.ScopePlan, Input: PlanSubject(boundaryPlan())}); d.Gated || !d.Allowed() {
		t.Errorf("no rules: %+v", d)
	}
	if d := (*Set)(nil).Decide(context.Background(), Request{ToolName: spec.ScopePlan}); d.Allowed() {
		t.Errorf("no set: %+v", d)
	}
	if d := set.Decide(t.Context(), Request{ToolName: "bash", AgentName: "author"}); d.Gated {
		t.Errorf("another tool: %+v", d)
	}
}

func TestBoundaryProblems(t *testing.T) {
	for _, c := range []struct {
		name, scope string
		edit        func(*spec.PlanRule)
		want        string // code, path, message
	}{
		{"allow", spec.ScopePlan, func(r *spec.PlanRule) { r.Action = "allow" }, `gate-no-effect approvals.plan[0].action rule "r": allow has no effect, since everything is allowed by default; put the exception into the other rule's when`},
		{"tools", spec.ScopePlan, func(r *spec.PlanRule) { r.Tools = []string{"bash"} }, `approval-rule approvals.plan[0].tools rule "r": tools has no meaning in a rule of approvals; leave it out: the rule looks at what is about to start, not at calls`},
		{"mark", spec.ScopeDispatch, func(r *spec.PlanRule) { r.Mark = "m" }, `approval-rule approvals.plan[0].mark rule "r": mark has no meaning in a rule of approvals; leave it out, and set the mark by a rule of gates`},
		{"field", spec.ScopePlan, func(r *spec.PlanRule) { r.When = "input.gaol == ''" }, `gate-type approvals.plan[0].when rule "r": input has no field "gaol"; input has agents, budgets, consequential, flags, goal, mode, tasks`},
		{"field of a task", spec.ScopePlan, func(r *spec.PlanRule) { r.When = "input.tasks.exists(t, t.rol == '')" }, `gate-type approvals.plan[0].when rule "r": t has no field "rol"; t has assignee, consequential, dependsOn, id, role, title`},
		{"role", spec.ScopePlan, func(r *spec.PlanRule) { r.When = "input.tasks.exists(t, t.role == 'reviwer')" }, `gate-enum approvals.plan[0].when rule "r": "reviwer" is never a value here; the values are "", reviewer`},
		{"agent", spec.ScopeDispatch, func(r *spec.PlanRule) { r.When = "agentName == 'autor'" }, `unknown-agent approvals.plan[0].when rule "r": the team has no agent "autor"; did you mean author?`},
		{"nobody", spec.ScopePlan, func(r *spec.PlanRule) { r.When = "agentName == 'author'" }, `gate-type approvals.plan[0].when rule "r": unknown name "agentName"; known names are consequential, globMatch, has, input, matches, runId, size, within`},
		{"shell", spec.ScopeDispatch, func(r *spec.PlanRule) { r.When = "shell.risk == 'high'" }, `gate-type approvals.plan[0].when rule "r": unknown name "shell"; known names are agentName, consequential, globMatch, has, input, marks, matches, role, runId, size, taskId, within`},
		{"never", spec.ScopeDispatch, func(r *spec.PlanRule) { r.When = "false" }, `gate-dead approvals.plan[0].when rule "r" can never match; `},
		{"no boolean", spec.ScopePlan, func(r *spec.PlanRule) { r.When = "input.goal" }, `gate-type approvals.plan[0].when rule "r": gives string, want a boolean; write a comparison`},
		{"example", spec.ScopePlan, func(r *spec.PlanRule) {
			r.When = "input.tasks.exists(t, t.consequential)"
			r.Examples = &spec.RuleExamples{Matches: []spec.CallExample{{Input: json.RawMessage(`{"tasks":[{"consequential":true}]}`)}, {}}}
		}, `gate-example approvals.plan[0].examples.matches[1] rule "r": this call must match, and does not; `},
		{"example with a tool", spec.ScopePlan, func(r *spec.PlanRule) {
			r.Examples = &spec.RuleExamples{Matches: []spec.CallExample{{ToolName: "bash"}}}
		}, `approval-rule approvals.plan[0].examples.matches[0].toolName rule "r": toolName has no meaning in an example of approvals; write what the rule looks at under input`},
		{"example of a task", spec.ScopeDispatch, func(r *spec.PlanRule) {
			r.When = "agentName == 'author' && consequential"
			r.Examples = &spec.RuleExamples{Matches: []spec.CallExample{{Input: json.RawMessage(`{"assignee":"author","consequential":true}`)}},
				Ignores: []spec.CallExample{{Input: json.RawMessage(`{"assignee":"x"}`)}}}
		}, `gate-example approvals.plan[0].examples.ignores[0].input.assignee rule "r": no task has this input: `},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := boundaryRule("ask", "true")
			c.edit(&r)
			_, diags := CompileBoundary(c.scope, []spec.PlanRule{r}, boundaryAgents, boundaryRoles)
			if len(diags) != 1 {
				t.Fatalf("got %d problems: %v", len(diags), diags)
			}
			if got := diags[0].Code + " " + string(diags[0].Path) + " " + diags[0].Message + "; " + diags[0].Hint; !strings.HasPrefix(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// A mark is held against those that the team's gates set, where these are known.
func TestBoundaryMarks(t *testing.T) {
	in := Boundary(spec.ScopeDispatch, []spec.PlanRule{boundaryRule("ask", "'tanted' in marks")}, boundaryAgents, nil)
	in.Marks = []string{"tainted"}
	_, diags := Compile(in)
	if len(diags) != 1 || diags[0].Code != "unknown-mark" || diags[0].Hint != "did you mean tainted?" {
		t.Errorf("got %v", diags)
	}
	in.Rules[0].When = "'tainted' in marks"
	if set, diags := Compile(in); set == nil || len(diags) > 0 {
		t.Error(diags)
	}
}

// A plan that is larger than what its rules were priced for is refused, with what is too large.
func TestBoundaryFits(t *testing.T) {
	many := func(p *spec.Plan, n int) {
		p.Tasks = nil
		for range n {
			p.Tasks = append(p.Tasks, spec.PlanTask{ID: "x", Title: "x", Assignee: "author"})
		}
	}
	for _, c := range []struct {
		name, scope string
		edit        func(*spec.Plan)
		want        string // the beginning of what is wrong; empty: it fits
	}{
		{"as it is", spec.ScopePlan, func(*spec.Plan) {}, ""},
		{"64 tasks", spec.ScopePlan, func(p *spec.Plan) { many(p, maxSubjectItems) }, ""},
		{"65 tasks", spec.ScopePlan, func(p *spec.Plan) { many(p, maxSubjectItems+1) }, "tasks: "},
		{"a long goal", spec.ScopePlan, func(p *spec.Plan) { p.Goal = strings.Repeat("é", maxSubjectText) }, ""},
		{"a longer goal", spec.ScopePlan, func(p *spec.Plan) { p.Goal = strings.Repeat("x", maxSubjectText+1) }, "goal: "},
		{"a long model", spec.ScopePlan, func(p *spec.Plan) { p.Agents[0].Model = strings.Repeat("x", maxSubjectName+1) }, "agents[0].model: "},
		{"a stranger", spec.ScopePlan, func(p *spec.Plan) { p.Tasks[0].Assignee = "nobody" }, "tasks[0].assignee: "},
		{"a mode", spec.ScopePlan, func(p *spec.Plan) { p.RoutingDecision.Mode = "auto" }, "mode: "},
		{"a task", spec.ScopeDispatch, func(*spec.Plan) {}, ""},
		{"a long command line", spec.ScopeDispatch, func(p *spec.Plan) {
			p.Agents[0].Backend = &spec.Backend{Kind: "process", Command: "x", Args: []string{strings.Repeat("x", 2048)}}
		}, "backend: "},
		{"a long title", spec.ScopeDispatch, func(p *spec.Plan) { p.Tasks[0].Title = strings.Repeat("x", maxSubjectName+1) }, "title: "},
		{"a long description", spec.ScopeDispatch, func(p *spec.Plan) { p.Tasks[0].Description = strings.Repeat("x", maxSubjectText+1) }, "description: "},
		{"many tools", spec.ScopeDispatch, func(p *spec.Plan) { p.Agents[0].Tools = make([]spec.Grant, maxSubjectItems+1) }, "tools: "},
	} {
		p := boundaryPlan()
		c.edit(p)
		subject := PlanSubject(p)
		if c.scope == spec.ScopeDispatch {
			subject = TaskSubject(p, &p.Tasks[0])
		}
		got := ""
		if err := Boundary(c.scope, nil, boundaryAgents, boundaryRoles).Fits(subject); err != nil {
			got = err.Error()
		}
		if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	if err := Boundary(spec.ScopeDispatch, nil, nil, nil).Fits(map[string]any{"x": 1}); err != nil {
		t.Errorf("a team of nobody: %v", err)
	}
}

// A plan is as consequential as whoever may be asked in it. One without a task counts where agents delegate, and nowhere else.
func TestPlanIsAsConsequentialAsItsDelegates(t *testing.T) {
	for delegation, want := range map[*spec.Delegation]bool{nil: false, {}: true} {
		p := boundaryPlan()
		p.Agents[0].Tools, p.Delegation = nil, delegation
		if got := PlanSubject(p)["consequential"]; got != want {
			t.Errorf("delegation %v: consequential %v", delegation, got)
		}
	}
}
