package core_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
)

// lending makes a plan of tasks and of further agents, who may be asked.
func lending(concurrency int, tasks, others string, edges ...string) *spec.Plan {
	p := plan(concurrency, tasks, edges...)
	depth := 3
	p.Delegation = &spec.Delegation{MaxDelegationDepth: &depth}
	for _, name := range strings.Fields(others) {
		p.Agents = append(p.Agents, spec.PlanAgent{Name: name, Provider: "p", Model: "m", MaxTurns: 5, MaxToolConcurrency: 4, MaxOutputTokens: 10})
	}
	return p
}

// asks is an answer that delegates to each of the agents.
func asks(u *spec.Usage, agents ...string) core.Result {
	r := text("", u)
	for i, a := range agents {
		r.Model.Response.Message.ToolCalls = append(r.Model.Response.Message.ToolCalls,
			spec.ToolCall{ID: fmt.Sprintf("c%d", i+1), Name: spec.DelegateTool, Arguments: fmt.Sprintf(`{"target_agent":%q,"prompt":"help"}`, a)})
	}
	return r
}

// letThrough is a door that lets everything through as it came.
func letThrough(e *core.Effect) core.Result {
	res := allowAll(e)
	if e.Call.Arguments != "" {
		res.Judged.Canonical = json.RawMessage(e.Call.Arguments)
	}
	return res
}

// told gives the tool results in a request.
func told(e *core.Effect) (out []string) {
	for _, m := range e.Request.Messages {
		if m.Role == spec.RoleTool {
			out = append(out, fmt.Sprintf("%t %s", m.IsError, m.Text))
		}
	}
	return out
}

func lent(o *core.Outcome) (out []string) {
	for _, d := range o.Delegated {
		out = append(out, fmt.Sprintf("%s %s>%s %s by %d", d.Task.ID, d.Caller, d.Task.Assignee, d.Status, d.Decision))
	}
	return out
}

// DL2, DL4, DL5, BU-02: a delegate begins with the prompt alone, its answer is the result of the call, its tokens count once
// in the run and stand by themselves, and it may delegate in its turn.
func TestDelegation(t *testing.T) {
	p := lending(5, "a", "b c")
	var prompts []string
	var chains [][]string
	world := func(e *core.Effect) core.Result {
		switch {
		case e.Kind == core.Judge:
			chains = append(chains, e.Call.Chain)
			return letThrough(e)
		case e.Kind != core.ModelCall:
			return core.Result{}
		case e.AgentName == "a" && e.Request.Turn == 1:
			return asks(&spec.Usage{Input: 30, Output: 6}, "b", "c")
		case e.AgentName == "a":
			if diff := cmp.Diff([]string{"false b's word", "false c's word"}, told(e)); diff != "" {
				t.Error(diff)
			}
			return text("done", &spec.Usage{Input: 20, Output: 4})
		case e.AgentName == "b" && e.Request.Turn == 1:
			prompts = append(prompts, e.Request.TaskTitle+": "+e.Request.Messages[0].Text)
			return asks(&spec.Usage{Input: 60, Output: 10}, "c")
		case e.AgentName == "b":
			return text("b's word", &spec.Usage{Input: 40, Output: 10})
		}
		return text("c's word", &spec.Usage{Input: 7, Output: 1})
	}
	out, err := (&orders{world: world, choose: first}).run(core.Input{Plan: p})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a/1/call/1 a>b completed by 1", "a/1/call/2 a>c completed by 2", "a/1/call/1/1/call/1 b>c completed by 3"}
	if diff := cmp.Diff(want, lent(out)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"Delegation a/1/call/1: help"}, prompts); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][]string{{"a"}, {"a"}, {"a", "b"}}, chains); diff != "" {
		t.Error(diff)
	}
	if got := out.Tasks[0].Tokens; got != (spec.Usage{Input: 50, Output: 10}) {
		t.Errorf("the task's own tokens are %+v", got)
	}
	if got := out.Delegated[0].Tokens; got != (spec.Usage{Input: 100, Output: 20}) {
		t.Errorf("the delegate's tokens are %+v", got)
	}
	if out.UsedTokens != 60+120+2*8 {
		t.Errorf("the run used %d tokens", out.UsedTokens)
	}
}

func first(int) int { return 0 }

// DL3, MA-02: a delegated run needs a free place and never waits for one. Whatever comes first, the run ends.
func TestDelegationTakesAPlace(t *testing.T) {
	for _, c := range []struct {
		name        string
		concurrency int
		tasks       string
		ask         map[string][]string // whom an agent asks on its first turn
		tool        int                 // of each agent: calls at once
		lent        []string            // nil: it depends on the order
	}{
		{"one place refuses all", 1, "a", map[string][]string{"a": {"x"}}, 4, []string{"a/1/call/1 a>x skipped by 1"}},
		{"one place free: the first of two", 2, "a", map[string][]string{"a": {"x", "y"}}, 4,
			[]string{"a/1/call/1 a>x completed by 1", "a/1/call/2 a>y skipped by 2"}},
		{"one after the other", 2, "a", map[string][]string{"a": {"x", "y"}}, 1,
			[]string{"a/1/call/1 a>x completed by 1", "a/1/call/2 a>y completed by 2"}},
		{"two tasks that both ask, twice nested", 2, "a b", map[string][]string{"a": {"x"}, "b": {"x"}, "x": {"y"}}, 4, nil},
		{"a and b ask each other", 4, "a b", map[string][]string{"a": {"b"}, "b": {"a"}}, 4, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := func() core.Input {
				p := lending(c.concurrency, c.tasks, "x y")
				for i := range p.Agents {
					p.Agents[i].MaxToolConcurrency = c.tool
				}
				return core.Input{Plan: p}
			}
			every(t, 2000, in, func(e *core.Effect) core.Result {
				switch ask := c.ask[e.AgentName]; {
				case e.Kind == core.Judge && slices.Contains(e.Call.Chain, target(e)): // as the door does
					return core.Result{Judged: &core.Judged{Decision: spec.Decision{Refused: "delegation-cycle"}, Text: "in a circle"}}
				case e.Kind == core.Judge:
					return letThrough(e)
				case e.Kind == core.ModelCall && e.Request.Turn == 1 && ask != nil:
					return asks(&spec.Usage{Input: 1, Output: 1}, ask...)
				case e.Kind == core.ModelCall:
					return text("done", &spec.Usage{Input: 1, Output: 1})
				}
				return core.Result{}
			}, func(o *orders, out *core.Outcome) {
				if o.most[core.ModelCall] > c.concurrency {
					t.Fatalf("%d at once", o.most[core.ModelCall])
				}
				for id, s := range statuses(out) {
					if s != "completed completed" {
						t.Fatalf("%s: %s", id, s)
					}
				}
				if c.lent != nil {
					if diff := cmp.Diff(c.lent, lent(out)); diff != "" {
						t.Fatal(diff)
					}
				}
			})
		})
	}
}

func target(e *core.Effect) string {
	var in struct {
		Target string `json:"target_agent"`
	}
	_ = json.Unmarshal([]byte(e.Call.Arguments), &in)
	return in.Target
}

// A delegate that fails is an error result with what it said, its own ceiling ends nobody else, and the caller's ceiling and
// the run's count what it used.
func TestDelegateFails(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*core.Input)
		answers func(*core.Effect) core.Result // of the delegate
		told    string
		status  string
		ceiling string
	}{
		{"an error", nil, func(*core.Effect) core.Result {
			return core.Result{Err: &spec.ErrorInfo{Kind: "provider", Message: "down"}, Model: &core.ModelResult{Attempts: 1}}
		}, `true Agent "b" did not complete its work: down`, "completed completed", ""},
		{"its own budget", func(in *core.Input) { in.Plan.Agents[1].MaxTokenBudget = 25 }, func(e *core.Effect) core.Result {
			r := asks(&spec.Usage{Input: 20, Output: 5}, "a")
			r.Model.Response.Message.Text = "so far"
			return r
		}, `true Agent "b" did not complete its work: the budget was used up on a turn that asked for tools`, "completed completed", ""},
		{"no usage under the caller's budget", func(in *core.Input) { in.Plan.Agents[0].MaxTokenBudget = 5000 }, func(*core.Effect) core.Result {
			return text("much", nil)
		}, `true Agent "b" did not complete its work: the provider reports no usage and a ceiling is in force`, "completed completed", ""},
		{"the caller's budget", func(in *core.Input) { in.Plan.Agents[0].MaxTokenBudget = 50 }, func(*core.Effect) core.Result {
			return text("much", &spec.Usage{Input: 60, Output: 5})
		}, "", "failed budget", "agent"},
		{"the run's budget", func(in *core.Input) { in.Budgets.MaxTokenBudget = 50 }, func(*core.Effect) core.Result {
			return text("much", &spec.Usage{Input: 60, Output: 5})
		}, "", "failed budget", "tokens"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := core.Input{Plan: lending(5, "a", "b")}
			if c.change != nil {
				c.change(&in)
			}
			var got []string
			out, err := (&orders{choose: first, world: func(e *core.Effect) core.Result {
				switch {
				case e.Kind == core.Judge:
					return letThrough(e)
				case e.Kind != core.ModelCall:
					return core.Result{}
				case e.AgentName == "b":
					return c.answers(e)
				case e.Request.Turn == 1:
					return asks(&spec.Usage{Input: 10, Output: 5}, "b")
				}
				got = told(e)
				return text("done", &spec.Usage{Input: 1, Output: 1})
			}}).run(in)
			if err != nil {
				t.Fatal(err)
			}
			if s := statuses(out)["a"]; s != c.status || out.Tasks[0].Ceiling != c.ceiling {
				t.Errorf("the task is %s by %q, want %s by %q", s, out.Tasks[0].Ceiling, c.status, c.ceiling)
			}
			if c.told != "" && (len(got) != 1 || got[0] != c.told) {
				t.Errorf("the caller was told %q", got)
			}
			if c.told != "" && out.Tasks[0].ToolCalls.Failed != 1 {
				t.Errorf("%+v", out.Tasks[0].ToolCalls)
			}
		})
	}
}

// N7: marks go down with the prompt and come back with the answer. Those of a call beside it do not: its text was written
// before.
func TestMarksOfDelegates(t *testing.T) {
	var seen []string
	world := func(e *core.Effect) core.Result {
		switch {
		case e.Kind == core.Judge:
			seen = append(seen, fmt.Sprintf("%s %s %v", e.AgentName, e.Call.Name, e.Call.Situation.Marks))
			res := letThrough(e)
			if e.Call.Name != spec.DelegateTool {
				res.Judged.Marks = []string{e.AgentName + "-" + e.Call.Name}
			}
			return res
		case e.Kind == core.ToolCall:
			return core.Result{Tool: &spec.ToolResult{Text: "read"}}
		case e.Kind != core.ModelCall:
			return core.Result{}
		case e.AgentName == "a" && e.Request.Turn == 1:
			r := tools(&spec.Usage{}, "before")
			calls := &r.Model.Response.Message.ToolCalls
			*calls = append(*calls, asks(nil, "b").Model.Response.Message.ToolCalls...)
			*calls = append(*calls, spec.ToolCall{ID: "c3", Name: "beside"})
			return r
		case e.Request.Turn <= 2 && e.AgentName == "a", e.Request.Turn == 1:
			return tools(&spec.Usage{}, "look")
		}
		return text("done", &spec.Usage{})
	}
	out, err := (&orders{world: world, choose: first}).run(core.Input{Plan: lending(5, "a n", "b", "a>n")})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a before []", "a delegate_to_agent [a-before]", "a beside [a-before]", "b look [a-before]",
		"a look [a-before a-beside b-look]", "n look [a-before a-beside b-look a-look]"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a-before", "b-look"}, out.Delegated[0].Marks); diff != "" {
		t.Error(diff)
	}
}

// DL7: what a delegate answered is never replaced by a note.
func TestDelegateResultsStay(t *testing.T) {
	p := lending(5, "a", "b")
	p.Agents[0].CompressToolResults = 3
	var last []string
	_, err := (&orders{choose: first, world: func(e *core.Effect) core.Result {
		switch {
		case e.Kind == core.Judge:
			return letThrough(e)
		case e.Kind == core.ToolCall:
			return core.Result{Tool: &spec.ToolResult{Text: "something long"}}
		case e.Kind != core.ModelCall:
			return core.Result{}
		case e.AgentName == "b":
			return text("b's word", &spec.Usage{})
		case e.Request.Turn == 1:
			r := asks(&spec.Usage{}, "b")
			r.Model.Response.Message.ToolCalls = append(r.Model.Response.Message.ToolCalls, spec.ToolCall{ID: "c2", Name: "look"})
			return r
		case e.Request.Turn == 2:
			return tools(&spec.Usage{}, "look")
		}
		last = told(e)
		return text("done", &spec.Usage{})
	}}).run(core.Input{Plan: p})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"false b's word", "false [Tool output compressed: 14 characters, already processed]", "false something long"}; !slices.Equal(last, want) {
		t.Errorf("%q", last)
	}
}

// The caller's timeout ends the delegate with it, and nobody else.
func TestCallersTimeout(t *testing.T) {
	p := lending(5, "a z", "b")
	p.Agents[0].Timeout = 5
	o := &orders{world: func(e *core.Effect) core.Result {
		switch {
		case e.Kind == core.Judge:
			return letThrough(e)
		case e.Kind == core.ModelCall && e.AgentName == "a":
			return asks(&spec.Usage{}, "b")
		case e.Kind == core.ModelCall:
			return text("done", &spec.Usage{})
		}
		return core.Result{}
	}}
	o.choose = func(n int) int { // a's time is up while b is at work, and not before
		at := func(is func(*core.Effect) bool) int {
			return slices.IndexFunc(o.flight, func(c *coroutine) bool { return is(c.effect) })
		}
		timer := at(func(e *core.Effect) bool { return e.Kind == core.Timer && e.ID == "a/timeout" })
		if b := at(func(e *core.Effect) bool { return e.AgentName == "b" }); b >= 0 && timer >= 0 {
			return timer
		}
		return max(at(func(e *core.Effect) bool { return e.Kind != core.Timer }), 0)
	}
	out, err := o.run(core.Input{Plan: p})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "failed timeout", "z": "completed completed"}, statuses(out)); diff != "" {
		t.Error(diff)
	}
	if d := out.Delegated[0]; d.Status != spec.TaskFailed || d.StopReason != spec.StopCancelled || out.Stop != "" {
		t.Errorf("the delegate %s %s, the run %q", d.Status, d.StopReason, out.Stop)
	}
}

// S13, DL6: what tasks and delegated runs came to is left under the name of who did it, once each, with keys that differ.
func TestSharedMemory(t *testing.T) {
	p := lending(5, "a", "b")
	p.SharedMemory = &spec.SharedMemory{}
	var kept []spec.MemoryEntry
	_, err := (&orders{choose: first, world: func(e *core.Effect) core.Result {
		switch {
		case e.Kind == core.Judge:
			return letThrough(e)
		case e.Kind == core.Memory:
			kept = append(kept, *e.Entry)
		case e.Kind == core.ModelCall && e.AgentName == "b" && e.TaskID == "a/1/call/1":
			return text("a b c", &spec.Usage{})
		case e.Kind == core.ModelCall && e.AgentName == "b":
			return core.Result{Err: &spec.ErrorInfo{Message: "down"}, Model: &core.ModelResult{}}
		case e.Kind == core.ModelCall && e.Request.Turn == 1:
			return asks(&spec.Usage{}, "b", "b")
		case e.Kind == core.ModelCall:
			return text("done", &spec.Usage{})
		}
		return core.Result{}
	}}).run(core.Input{Plan: p, Redact: func(s string) string { return strings.ReplaceAll(s, "b", "[redacted]") }})
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	var got []string
	for _, e := range kept {
		head, _, _ := strings.Cut(e.Key, ":")
		got = append(got, fmt.Sprintf("%s %s %s %t %d", head, e.Agent, e.DelegatedTo, e.Success, e.Chars))
		keys[e.Key] = true
	}
	if want := []string{"a/delegation a b true 14", "a/delegation a b false 0", "a/task a  true 4"}; !slices.Equal(got, want) || len(keys) != 3 || !keys["a/task:a:result"] {
		t.Errorf("%q %v", got, keys)
	}
}

// A log that was changed may have an agent delegate to nobody. The door never does.
func TestDelegateToNobody(t *testing.T) {
	var got []string
	out, err := (&orders{choose: first, world: func(e *core.Effect) core.Result {
		switch {
		case e.Kind == core.Judge:
			return letThrough(e)
		case e.Kind == core.ModelCall && e.Request.Turn == 1:
			return asks(&spec.Usage{}, "nobody")
		case e.Kind == core.ModelCall:
			got = told(e)
			return text("done", &spec.Usage{})
		}
		return core.Result{}
	}}).run(core.Input{Plan: lending(5, "a", "b")})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Delegated) != 0 || out.Tasks[0].ToolCalls.Failed != 1 || !slices.Equal(got, []string{"true not run: it names no agent of the team"}) {
		t.Errorf("%q %+v", got, out.Delegated)
	}
}
