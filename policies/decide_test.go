package policies

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

func command(text string) Request {
	return Request{ToolName: "bash", AgentName: "a", Input: map[string]any{"command": text}, Consequential: true}
}

func matched(name, action string) spec.RuleOutcome {
	return spec.RuleOutcome{Name: name, Source: "team", Action: action, Outcome: "matched"}
}

func decided(action, reason string, rules ...spec.RuleOutcome) spec.Decision {
	return spec.Decision{Gated: true, GateAction: action, GateOutcome: "decided", Reason: reason, Rules: rules}
}

func TestDecide(t *testing.T) {
	warn := spec.Rule{Name: "log", When: "true", Action: "warn"}
	deny := spec.Rule{Name: "no-rm", When: `input.command.startsWith("rm")`, Tools: []string{"bash"}, Action: "deny", Reason: "nothing is removed here"}
	allow := spec.Rule{Name: "go", When: `input.command.startsWith("go ")`, Tools: []string{"bash"}, Action: "allow"}
	ask := spec.Rule{Name: "look", When: "consequential", Action: "ask", Reason: "somebody should look"}
	suspend := spec.Rule{Name: "wait", When: "true", Action: "suspend"}
	fails := spec.Rule{Name: "slow", When: `input.timeout > 5`, Tools: []string{"bash"}, Action: "warn"}
	failed := spec.RuleOutcome{Name: "slow", Source: "team", Action: "warn", Outcome: "error", Error: `the input has no field "timeout"`}
	marked := func(d spec.Decision, marks ...string) spec.Decision { d.Marks = marks; return d }
	for _, c := range []struct {
		name    string
		gate    string
		rules   []spec.Rule
		request Request
		want    spec.Decision
	}{
		{"K5 no rule: gated all the same", "", nil, command("ls"), decided("allow", "")},
		{"no rule matches", "", []spec.Rule{deny}, command("ls"), decided("allow", "")},
		{"deny", "", []spec.Rule{deny}, command("rm x"), decided("deny", `rule "no-rm": nothing is removed here`, matched("no-rm", "deny"))},
		{"N6 warn opens nothing", "deny", []spec.Rule{warn}, command("ls"), decided("deny", "no rule allows the call, and calls are denied by default", matched("log", "warn"))},
		{"warn only records", "", []spec.Rule{warn}, command("ls"), decided("allow", "", matched("log", "warn"))},
		{"allow permits", "deny", []spec.Rule{allow}, command("go test"), decided("allow", "", matched("go", "allow"))},
		{"allow permits what it matches", "deny", []spec.Rule{allow}, command("ls"), decided("deny", "no rule allows the call, and calls are denied by default")},
		{"N6 allow lifts no deny", "deny", []spec.Rule{{Name: "all", When: "true", Action: "allow"}, deny}, command("rm"),
			decided("deny", `rule "no-rm": nothing is removed here`, matched("all", "allow"), matched("no-rm", "deny"))},
		{"ask", "", []spec.Rule{ask}, command("ls"), decided("ask", `rule "look": somebody should look`, matched("look", "ask"))},
		{"suspend", "", []spec.Rule{suspend}, command("ls"), decided("suspend", `rule "wait"`, matched("wait", "suspend"))},
		{"suspend is stricter than ask, and a permission lifts neither", "", []spec.Rule{ask, suspend, warn}, command("ls"),
			decided("suspend", `rule "wait"`, matched("look", "ask"), matched("wait", "suspend"), matched("log", "warn"))},
		{"N6 a person's approval permits under default deny", "deny", []spec.Rule{ask}, command("ls"),
			decided("ask", `rule "look": somebody should look`, matched("look", "ask"))},
		{"N6 allow lifts no question", "deny", []spec.Rule{allow, ask}, command("go test"),
			decided("ask", `rule "look": somebody should look`, matched("go", "allow"), matched("look", "ask"))},
		{"what fails is stricter than a question", "", []spec.Rule{suspend, fails}, command("ls"),
			spec.Decision{Gated: true, GateAction: "deny", GateOutcome: "error", Rules: []spec.RuleOutcome{matched("wait", "suspend"), failed},
				Reason: `rule "slow": it could not be evaluated: the input has no field "timeout"`}},
		{"marks of a call that waits are those that it sets if it runs", "",
			[]spec.Rule{{Name: "look", When: "true", Action: "ask", Mark: "looked"}, {Name: "log", When: "true", Action: "warn", Mark: "b"}}, command("ls"),
			marked(decided("ask", `rule "look"`, matched("look", "ask"), matched("log", "warn")), "b", "looked")},
		{"the strictest gives the reason, all are recorded", "", []spec.Rule{ask, deny, suspend}, command("rm"),
			decided("deny", `rule "no-rm": nothing is removed here`, matched("look", "ask"), matched("no-rm", "deny"), matched("wait", "suspend"))},
		{"CE-01 a rule that fails denies", "", []spec.Rule{fails}, command("ls"),
			spec.Decision{Gated: true, GateAction: "deny", GateOutcome: "error", Rules: []spec.RuleOutcome{failed},
				Reason: `rule "slow": it could not be evaluated: the input has no field "timeout"`}},
		{"CE-01 and hides no deny", "", []spec.Rule{deny, fails}, command("rm"),
			spec.Decision{Gated: true, GateAction: "deny", GateOutcome: "error", Rules: []spec.RuleOutcome{matched("no-rm", "deny"), failed},
				Reason: `rule "slow": it could not be evaluated: the input has no field "timeout"`}},
		{"unknown agent", "", []spec.Rule{deny}, Request{ToolName: "bash", AgentName: "b"},
			spec.Decision{Gated: true, GateAction: "deny", GateOutcome: "error", Reason: `no rule was compiled for agent "b" and tool "bash"`}},
		{"unknown tool, without rules too", "", nil, Request{ToolName: "zz", AgentName: "a"},
			spec.Decision{Gated: true, GateAction: "deny", GateOutcome: "error", Reason: `no rule was compiled for agent "a" and tool "zz"`}},
		{"N11 a field that nobody judged", "", []spec.Rule{deny}, Request{ToolName: "bash", AgentName: "a", Input: map[string]any{"command": "ls", "Command": "rm"}},
			spec.Decision{Gated: true, GateAction: "deny", GateOutcome: "error", Reason: "the input has a field that the tool does not declare"}},
		{"no input at all", "", []spec.Rule{deny}, Request{ToolName: "bash", AgentName: "a"},
			spec.Decision{Gated: true, GateAction: "deny", GateOutcome: "error", Reason: `rule "no-rm": it could not be evaluated: the input has no field "command"`,
				Rules: []spec.RuleOutcome{{Name: "no-rm", Source: "team", Action: "deny", Outcome: "error", Error: `the input has no field "command"`}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := team(everyTool(), c.rules...)
			in.Default = c.gate
			got := mustCompile(t, in).Decide(t.Context(), c.request)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
			if got.Allowed() != (c.want.GateAction == "allow") {
				t.Errorf("allowed: %t", got.Allowed())
			}
			asks := c.want.GateAction == "ask" || c.want.GateAction == "suspend"
			if got.Asks() != asks || got.Waits() != asks {
				t.Errorf("asks: %t, waits: %t", got.Asks(), got.Waits())
			}
			for approval, runs := range map[string]bool{spec.ApprovalApproved: true, spec.ApprovalRejected: false, spec.ApprovalExpired: false, spec.ApprovalPending: false} {
				if got.Approval = approval; asks && got.Allowed() != runs {
					t.Errorf("%s: allowed: %t", approval, got.Allowed())
				}
			}
		})
	}
}

func TestDecideOrderNeverMatters(t *testing.T) {
	rules := []spec.Rule{{Name: "w", When: "true", Action: "warn"}, {Name: "d", When: `input.command == "x"`, Tools: []string{"bash"}},
		{Name: "s", When: "true", Action: "suspend"}, {Name: "al", When: "true", Action: "allow"}}
	want := ""
	for i := range rules {
		in := team(everyTool(), append(append([]spec.Rule{}, rules[i:]...), rules[:i]...)...)
		in.Default = "deny"
		d := mustCompile(t, in).Decide(t.Context(), command("x"))
		if want == "" {
			want = d.Reason
		}
		if d.Allowed() || d.Reason != want || len(d.Rules) != len(rules) {
			t.Errorf("turned by %d: %+v", i, d)
		}
	}
}

func TestDecideWithoutGates(t *testing.T) {
	in := team(everyTool())
	in.Declared = false
	d := mustCompile(t, in).Decide(t.Context(), command("rm"))
	if diff := cmp.Diff(spec.Decision{}, d); diff != "" || !d.Allowed() {
		t.Errorf("undeclared gates judged: %s", diff)
	}
	if d := (*Set)(nil).Decide(t.Context(), command("ls")); d.Allowed() || !d.Gated {
		t.Errorf("rules that do not compile let a call through: %+v", d)
	}
}

func TestAgentRulesOnlyAdd(t *testing.T) {
	in := team(everyTool(), spec.Rule{Name: "team", When: `input.command == "x"`, Tools: []string{"bash"}})
	in.Agents = append(in.Agents, AgentTools{Name: "b", Tools: everyTool()})
	in.Rules = append(in.Rules, spec.PlanRule{Rule: spec.Rule{Name: "own", When: "true", Action: "deny"}, Source: "agent b", Agent: "b"})
	s := mustCompile(t, in)
	for _, c := range []struct {
		agent, command string
		want           []string
	}{{"a", "x", []string{"team"}}, {"a", "y", nil}, {"b", "x", []string{"team", "own"}}, {"b", "y", []string{"own"}}} {
		r := command(c.command)
		r.AgentName = c.agent
		d := s.Decide(t.Context(), r)
		var got []string
		for _, rule := range d.Rules {
			got = append(got, rule.Name)
		}
		if diff := cmp.Diff(c.want, got); diff != "" || d.Allowed() != (c.want == nil) {
			t.Errorf("%s %s: %s", c.agent, c.command, diff)
		}
	}
}

func TestPolicyFilePermitsNothing(t *testing.T) {
	in := team(everyTool(), spec.Rule{When: "true", Action: "allow"})
	in.Default, in.Rules[0].Source = "deny", "file p.yaml"
	if d := mustCompile(t, in).Decide(t.Context(), command("ls")); d.Allowed() {
		t.Errorf("N6: %+v", d)
	}
}

func TestTwoSchemasOfOneName(t *testing.T) {
	in := team([]spec.ToolInfo{toolInfo("odd", `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)}, spec.Rule{When: "input.n == input.n && toolName == 'odd'"})
	in.Agents = append(in.Agents, AgentTools{Name: "b", Tools: []spec.ToolInfo{toolInfo("odd", `{"type":"object","properties":{"n":{"type":"string"}},"required":["n"]}`)}})
	s := mustCompile(t, in)
	for agent, n := range map[string]any{"a": int64(1), "b": "x"} {
		d := s.Decide(t.Context(), Request{ToolName: "odd", AgentName: agent, Input: map[string]any{"n": n}})
		if d.GateOutcome != "decided" || len(d.Rules) != 1 {
			t.Errorf("%s: %+v", agent, d)
		}
	}
	if n := len(s.Rules()[0].AppliesTo); n != 1 {
		t.Errorf("one name, %d entries", n)
	}
}

func TestDecideUnderEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, rule := range []spec.Rule{{When: "false || true", Action: "warn"}, {When: "dyn(input).command == 'x'", Action: "warn"}} {
		d := mustCompile(t, team([]spec.ToolInfo{bash}, rule)).Decide(ctx, command("x"))
		if d.Allowed() || d.GateOutcome != "error" || d.Reason != "the call was cancelled before it was judged" {
			t.Errorf("%+v", d)
		}
	}
}

// A list longer than the schema says never reaches the gate. Should it, the loop still ends.
func TestLoopsStop(t *testing.T) {
	list := toolInfo("list", `{"type":"object","properties":{"xs":{"type":"array","maxItems":500,"items":{"type":"integer"}}},"required":["xs"]}`)
	many := make([]any, 20_000)
	for i := range many {
		many[i] = int64(i)
	}
	for _, when := range []string{"input.xs.all(x, input.xs.all(y, x + y >= 0))", "input.xs.exists(x, input.xs.exists(y, x + y < 0))",
		"input.xs.filter(x, x >= 0).map(x, input.xs.filter(y, y > x)).size() < 0"} {
		s := mustCompile(t, team([]spec.ToolInfo{list}, spec.Rule{When: when, Action: "warn"}))
		d := s.Decide(t.Context(), Request{ToolName: "list", AgentName: "a", Input: map[string]any{"xs": many}})
		if d.Allowed() || d.GateOutcome != "error" || !strings.Contains(d.Reason, "it takes more steps than allowed") {
			t.Errorf("%s: %+v", when, d)
		}
	}
}

// ending is a context that ends while it is looked at.
type ending struct {
	context.Context
	looks int
}

func (e *ending) Err() error {
	if e.looks++; e.looks > 2 {
		return context.Canceled
	}
	return nil
}

func TestLoopsLookAtTheContext(t *testing.T) {
	list := toolInfo("list", `{"type":"object","properties":{"xs":{"type":"array","maxItems":1000,"items":{"type":"integer"}}},"required":["xs"]}`)
	s := mustCompile(t, team([]spec.ToolInfo{list}, spec.Rule{When: "input.xs.all(x, input.xs.exists(y, x == y))", Action: "warn"}))
	ctx := &ending{Context: t.Context()}
	d := s.Decide(ctx, Request{ToolName: "list", AgentName: "a", Input: map[string]any{"xs": slices.Repeat([]any{int64(0)}, 5000)}})
	if d.Allowed() || d.GateOutcome != "error" || len(d.Rules) != 1 || d.Rules[0].Outcome != "error" {
		t.Errorf("%+v", d)
	}
}

// panicking stands in for a fault of the evaluator.
type panicking struct{ cel.Program }

func (panicking) Eval(any) (ref.Val, *cel.EvalDetails, error) { panic("secret") }

func TestPanicDenies(t *testing.T) {
	s := mustCompile(t, team([]spec.ToolInfo{bash}, spec.Rule{When: "true", Action: "warn"}))
	s.calls[callKey{"a", "bash"}].rules[0].program = panicking{}
	d := s.Decide(t.Context(), command("ls"))
	if d.Allowed() || d.GateOutcome != "error" || strings.Contains(d.Reason, "secret") {
		t.Errorf("%+v", d)
	}
}

func TestReasonsHoldNothingOfTheCall(t *testing.T) {
	for _, when := range []string{`{"a": 1}[dyn(input).s] == 1`, `int(dyn(input).s) == 1`, `dyn(input).s > 1`, `timestamp(string(dyn(input).s)) == timestamp(0)`, `[1][int(size(dyn(input).s))] == 1`, `dyn(input).s.x == 1`} {
		d := mustCompile(t, team([]spec.ToolInfo{anything}, spec.Rule{When: when, Tools: []string{"free"}})).
			Decide(t.Context(), Request{ToolName: "free", AgentName: "a", Input: map[string]any{"s": "hunter2"}})
		if d.Allowed() || d.GateOutcome != "error" || strings.Contains(d.Reason+d.Rules[0].Error, "hunter2") {
			t.Errorf("%s: %+v", when, d)
		}
	}
}

func TestVariables(t *testing.T) {
	full := Request{ToolName: "bash", Input: map[string]any{"command": "x"}, AgentName: "a", Role: "reviewer", RunID: "run", TaskID: "t1", ToolCallID: "c1", Consequential: true}
	s := mustCompile(t, team([]spec.ToolInfo{bash}, spec.Rule{
		When:   `agentName == "a" && role == "reviewer" && runId == "run" && taskId == "t1" && toolCallId == "c1" && consequential && toolName == "bash" && input.command == "x"`,
		Action: "deny"}, spec.Rule{Name: "empty", When: `role == "" && runId == "" && taskId == "" && toolCallId == "" && !consequential`}))
	if d := s.Decide(t.Context(), full); len(d.Rules) != 1 || d.Rules[0].Name != "r" {
		t.Errorf("all set: %+v", d)
	}
	if d := s.Decide(t.Context(), Request{ToolName: "bash", AgentName: "a", Input: full.Input}); len(d.Rules) != 1 || d.Rules[0].Name != "empty" {
		t.Errorf("always bound: %+v", d)
	}
}

func TestDecideConcurrently(t *testing.T) {
	s := mustCompile(t, tenRuleSet())
	want := s.Decide(t.Context(), command("rm x"))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				if diff := cmp.Diff(want, s.Decide(t.Context(), command("rm x"))); diff != "" {
					t.Error(diff)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestFunctions(t *testing.T) {
	for expr, want := range map[string]bool{
		`within("src/a.go", "src")`: true, `within("src", "src")`: true, `within("src/../etc", "src")`: false, `within("srcx", "src")`: false,
		`within("./src//a", "src/")`: true, `within("../a", ".")`: false, `within("..a", ".")`: true, `within("/etc", ".")`: false,
		`within("/w/a", "/w")`: true, `within("w/a", "/w")`: false, `within("/etc", "/")`: true, `within("a/../../b", ".")`: false, `within("", ".")`: true,
		`globMatch("src/**/*.go", "src/a/b.go")`: true, `globMatch("src/*.go", "src/a/b.go")`: false, `globMatch("{a,b}/*", "b/x")`: true, `globMatch("**", "a/b")`: true,
	} {
		s := mustCompile(t, team([]spec.ToolInfo{bash}, spec.Rule{When: expr}))
		if d := s.Decide(t.Context(), command("x")); d.Allowed() == want || d.GateOutcome != "decided" {
			t.Errorf("%s: %+v", expr, d)
		}
	}
	s := mustCompile(t, team([]spec.ToolInfo{bash}, spec.Rule{When: `within("a", role)`}))
	if d := s.Decide(t.Context(), command("x")); d.GateOutcome != "error" {
		t.Errorf("an empty root: %+v", d)
	}
}
