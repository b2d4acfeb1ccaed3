package core_test

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
)

func price(in, out string) map[string]spec.ModelPrice {
	i, _ := spec.ParseUSD(in)
	o, _ := spec.ParseUSD(out)
	return map[string]spec.ModelPrice{"m": {InputPer1M: &i, OutputPer1M: &o}}
}

// plan makes one agent a task, named by the task's title, and the edges "a>b": b depends on a.
func plan(concurrency int, tasks string, edges ...string) *spec.Plan {
	p := &spec.Plan{Scheduling: spec.Scheduling{MaxConcurrency: concurrency},
		Providers: map[string]spec.PlanProvider{"p": {Provider: spec.Provider{Kind: "scripted", Models: price("1", "2")}}}}
	for _, name := range strings.Fields(tasks) {
		p.Agents = append(p.Agents, spec.PlanAgent{Name: name, Provider: "p", Model: "m", MaxTurns: 5, MaxToolConcurrency: 4, MaxOutputTokens: 10})
		t := spec.PlanTask{ID: name, Title: name, Description: "work", Assignee: name, Status: spec.TaskPending}
		for _, e := range edges {
			if from, to, _ := strings.Cut(e, ">"); to == name {
				t.DependsOn = append(t.DependsOn, from)
			}
		}
		p.Tasks = append(p.Tasks, t)
	}
	return p
}

func text(s string, u *spec.Usage) core.Result {
	return core.Result{Model: &core.ModelResult{Attempts: 1, Response: &spec.ModelResponse{Message: spec.Message{Text: s}, Finish: spec.FinishStop, Usage: u}}}
}

func tools(u *spec.Usage, names ...string) core.Result {
	r := text("", u)
	for i, n := range names {
		r.Model.Response.Message.ToolCalls = append(r.Model.Response.Message.ToolCalls, spec.ToolCall{ID: fmt.Sprintf("c%d", i+1), Name: n})
	}
	return r
}

func allowAll(e *core.Effect) core.Result {
	return core.Result{Judged: &core.Judged{Canonical: []byte("{}"), InputDigest: "d", Decision: spec.Decision{Gated: true, GateAction: "allow", GateOutcome: "decided"}}}
}

func statuses(o *core.Outcome) map[string]string {
	m := map[string]string{}
	for _, t := range o.Tasks {
		m[t.Task.ID] = t.Status + " " + string(t.StopReason)
	}
	return m
}

// every runs a plan with every order in which results can come, up to limit runs.
func every(t *testing.T, limit int, in func() core.Input, world func(*core.Effect) core.Result, check func(*orders, *core.Outcome)) {
	t.Helper()
	var path []int // the choice at each step; the last run's widths say which to try next
	for range limit {
		var widths []int
		step := 0
		o := &orders{world: world, choose: func(n int) int {
			c := 0
			if step < len(path) {
				c = path[step]
			}
			widths = append(widths, n)
			step++
			return c
		}}
		out, err := o.run(in())
		if err != nil {
			t.Fatal(err)
		}
		check(o, out)
		next := make([]int, len(widths))
		copy(next, path)
		i := len(widths) - 1
		for ; i >= 0 && next[i]+1 >= widths[i]; i-- {
		}
		if i < 0 {
			return
		}
		next[i]++
		path = next[:i+1]
	}
}

func TestEveryOrderRespectsDependenciesAndTheCap(t *testing.T) {
	world := func(e *core.Effect) core.Result {
		if e.TaskID == "c" {
			return core.Result{Err: &spec.ErrorInfo{Kind: "provider", Message: "down"}, Model: &core.ModelResult{Attempts: 3}}
		}
		return text("done "+e.TaskID, &spec.Usage{Input: 5, Output: 2})
	}
	runs := 0
	every(t, 20000, func() core.Input { return core.Input{Plan: plan(3, "a b c d e f g", "a>d", "b>d", "c>e", "e>f")} }, world, func(o *orders, out *core.Outcome) {
		runs++
		want := map[string]string{"a": "completed completed", "b": "completed completed", "c": "failed error", "d": "completed completed",
			"e": "skipped ", "f": "skipped ", "g": "completed completed"}
		if diff := cmp.Diff(want, statuses(out)); diff != "" {
			t.Fatal(diff)
		}
		if o.most[core.ModelCall] > 3 {
			t.Fatalf("%d model calls at once with a concurrency of 3", o.most[core.ModelCall])
		}
		byID := map[string]core.TaskOutcome{}
		for _, task := range out.Tasks {
			byID[task.Task.ID] = task
		}
		for _, task := range out.Tasks {
			for _, dep := range task.Task.DependsOn {
				if task.StartedAt > 0 && byID[dep].EndedAt > task.StartedAt {
					t.Fatalf("%s started at %d, before %s ended at %d", task.Task.ID, task.StartedAt, dep, byID[dep].EndedAt)
				}
			}
		}
		if byID["f"].Cause != `dependency "e" skipped` {
			t.Fatalf("cause of f: %q", byID["f"].Cause)
		}
	})
	if runs < 30 {
		t.Fatalf("only %d orders were tried", runs)
	}
}

// The exact remainder, whatever the order: 100 tokens, each call holds its output and settles what it used.
func TestBudgetIsExactInEveryOrder(t *testing.T) {
	world := func(e *core.Effect) core.Result { return text("x", &spec.Usage{Input: 15, Output: 10}) }
	totals := map[int64]int{}
	every(t, 20000, func() core.Input {
		return core.Input{Plan: plan(3, "a b c d e f"), Budgets: spec.Budgets{MaxTokenBudget: 100}}
	}, world, func(_ *orders, out *core.Outcome) {
		completed := 0
		for _, task := range out.Tasks {
			if task.Status == spec.TaskCompleted {
				completed++
			}
		}
		if want := int64(completed) * 25; out.UsedTokens != want {
			t.Fatalf("%d tasks completed and %d tokens are counted, want %d", completed, out.UsedTokens, want)
		}
		// a turn's input per running task is the most that may pass the ceiling
		if out.UsedTokens > 100+3*15 {
			t.Fatalf("%d tokens of 100", out.UsedTokens)
		}
		totals[out.UsedTokens]++
	})
	if len(totals) == 0 {
		t.Fatal("no run")
	}
}

func TestG19BudgetEndsTheSecondRole(t *testing.T) {
	p := plan(5, "reviewer security", "reviewer>security")
	o := &orders{choose: func(int) int { return 0 }, world: func(*core.Effect) core.Result { return text("ok", &spec.Usage{Input: 1, Output: 1}) }}
	out, err := o.run(core.Input{Plan: p, Budgets: spec.Budgets{MaxTokenBudget: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"reviewer": "completed completed", "security": "skipped "}, statuses(out)); diff != "" {
		t.Error(diff)
	}
	if out.Stop != "tokens" || out.Exceeded != "tokens" || out.UsedTokens != 2 {
		t.Errorf("stop %q, exceeded %q, used %d", out.Stop, out.Exceeded, out.UsedTokens)
	}
}

func TestCostCeilingIsExact(t *testing.T) {
	limit, _ := spec.ParseUSD("0.00005") // 50 micro-dollars: 10 input + 10 output cost 30
	p := plan(1, "a b c", "a>b", "b>c")
	o := &orders{choose: func(int) int { return 0 }, world: func(*core.Effect) core.Result { return text("ok", &spec.Usage{Input: 10, Output: 10}) }}
	out, err := o.run(core.Input{Plan: p, Budgets: spec.Budgets{MaxCostBudget: &limit}})
	if err != nil {
		t.Fatal(err)
	}
	if got := out.UsedCost.String(); got != "0.00006" || out.Stop != "cost" {
		t.Errorf("used $%s, stop %q", got, out.Stop)
	}
	if got := statuses(out)["c"]; got != "skipped " {
		t.Errorf("c is %q", got)
	}
}

func TestBU04TurnLimit(t *testing.T) {
	p := plan(1, "a")
	p.Agents[0].MaxTurns = 3
	calls := 0
	o := &orders{choose: func(int) int { return 0 }, world: func(e *core.Effect) core.Result {
		switch e.Kind {
		case core.Judge:
			return allowAll(e)
		case core.ToolCall:
			return core.Result{Tool: &spec.ToolResult{Text: "nothing", IsError: true}}
		}
		calls++
		return tools(&spec.Usage{Input: 1, Output: 1}, "file_read")
	}}
	out, err := o.run(core.Input{Plan: p})
	if err != nil {
		t.Fatal(err)
	}
	if calls != 3 || out.Tasks[0].StopReason != spec.StopMaxTurns || out.Tasks[0].Status != spec.TaskFailed {
		t.Errorf("%d model calls, %s, %s", calls, out.Tasks[0].StopReason, out.Tasks[0].Status)
	}
}

func TestBU03CallsOfABudgetTurnAreAnsweredAndNotRun(t *testing.T) {
	p := plan(1, "a")
	o := &orders{choose: func(int) int { return 0 }, world: func(e *core.Effect) core.Result {
		if e.Kind != core.ModelCall {
			t.Errorf("%s must not be asked for", e.Kind)
			return core.Result{}
		}
		return tools(&spec.Usage{Input: 50, Output: 60}, "bash", "bash")
	}}
	out, err := o.run(core.Input{Plan: p, Budgets: spec.Budgets{MaxTokenBudget: 100}})
	if err != nil {
		t.Fatal(err)
	}
	if out.Tasks[0].StopReason != spec.StopBudget || len(out.Decisions) != 2 || out.Decisions[1].Refused != "budget" {
		t.Errorf("%s, %+v", out.Tasks[0].StopReason, out.Decisions)
	}
}

func TestOA07CutCallsDoNotRun(t *testing.T) {
	p := plan(1, "a")
	o := &orders{choose: func(int) int { return 0 }, world: func(e *core.Effect) core.Result {
		r := tools(&spec.Usage{Input: 1, Output: 1}, "file_write")
		r.Model.Response.Finish = spec.FinishLength
		if e.Kind != core.ModelCall {
			t.Errorf("%s must not be asked for", e.Kind)
		}
		return r
	}}
	out, err := o.run(core.Input{Plan: p})
	if err != nil {
		t.Fatal(err)
	}
	if out.Tasks[0].StopReason != spec.StopLength || out.Decisions[0].Refused != "cut" {
		t.Errorf("%s, %+v", out.Tasks[0].StopReason, out.Decisions)
	}
}

// Calls of a turn are judged in the model's order before any of them runs, run together up to the cap, and are answered
// in the model's order, whichever ends first.
func TestCallsOfATurn(t *testing.T) {
	turn := 0
	world := func(e *core.Effect) core.Result {
		switch e.Kind {
		case core.Judge:
			if e.Call.Name == "deny" {
				return core.Result{Judged: &core.Judged{Text: "no", Decision: spec.Decision{Gated: true, GateAction: "deny", GateOutcome: "decided"}}}
			}
			return allowAll(e)
		case core.ToolCall:
			return core.Result{Tool: &spec.ToolResult{Text: "result of " + e.Call.ID}}
		}
		turn++
		if e.Request.Turn == 1 {
			return tools(&spec.Usage{}, "x", "deny", "x", "x", "x")
		}
		var got []string
		for _, m := range e.Request.Messages[2:] {
			got = append(got, m.Text)
		}
		if diff := cmp.Diff([]string{"result of c1", "no", "result of c3", "result of c4", "result of c5"}, got); diff != "" {
			t.Error(diff)
		}
		return text("done", &spec.Usage{})
	}
	every(t, 5000, func() core.Input {
		p := plan(1, "a")
		p.Agents[0].MaxToolConcurrency = 2
		return core.Input{Plan: p}
	}, world, func(o *orders, out *core.Outcome) {
		if o.most[core.ToolCall] != 2 {
			t.Fatalf("%d tools at once, want 2", o.most[core.ToolCall])
		}
		var kinds []string
		for _, e := range o.trace {
			if k, _, _ := strings.Cut(e, " "); k == "judge" || k == "tool" {
				kinds = append(kinds, k)
			}
		}
		if got := strings.Join(kinds[:5], " "); got != "judge judge judge judge judge" {
			t.Fatalf("first five: %s", got)
		}
		if out.Tasks[0].ToolCalls != (spec.CallSums{Allowed: 4, Denied: 1}) {
			t.Fatalf("%+v", out.Tasks[0].ToolCalls)
		}
	})
}

// The same order of results gives the same effects and the same outcome: nothing else decides.
func TestSameOrderSameRun(t *testing.T) {
	world := func(e *core.Effect) core.Result {
		switch e.Kind {
		case core.Judge:
			return allowAll(e)
		case core.ToolCall:
			return core.Result{Tool: &spec.ToolResult{Text: e.ID}}
		}
		if e.Request.Turn < 3 {
			return tools(&spec.Usage{Input: 9, Output: 3}, "x", "x")
		}
		return text("done", &spec.Usage{Input: 9, Output: 3})
	}
	for seed := range int64(60) {
		run := func() (*orders, *core.Outcome) {
			rng := rand.New(rand.NewSource(seed))
			o := &orders{world: world, choose: rng.Intn}
			out, err := o.run(core.Input{Plan: plan(3, "a b c d e", "a>d", "b>e"), Budgets: spec.Budgets{MaxTokenBudget: 140}})
			if err != nil {
				t.Fatal(err)
			}
			return o, out
		}
		o1, out1 := run()
		o2, out2 := run()
		if diff := cmp.Diff(o1.trace, o2.trace); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		if diff := cmp.Diff(out1, out2); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}

func TestMaxDurationEndsTheRun(t *testing.T) {
	p := plan(1, "a b", "a>b")
	o := &orders{world: func(e *core.Effect) core.Result {
		if e.Kind == core.Timer {
			return core.Result{}
		}
		return text("late", &spec.Usage{Input: 1, Output: 1})
	}}
	o.choose = func(n int) int { return 0 } // the deadline was asked for first
	out, err := o.run(core.Input{Plan: p, Budgets: spec.Budgets{MaxDuration: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if out.Stop != "duration" || statuses(out)["b"] != "skipped " || statuses(out)["a"] != "failed budget" {
		t.Errorf("stop %q, %v", out.Stop, statuses(out))
	}
}

func TestOutputSchemaGetsOneCorrectiveRetry(t *testing.T) {
	check := func(s string) (any, string) {
		if s == "good" {
			return map[string]any{"ok": true}, ""
		}
		return nil, "not good"
	}
	for _, c := range []struct {
		answers string
		want    string
	}{{"good", "completed completed"}, {"bad good", "completed completed"}, {"bad bad good", "failed error"}} {
		left := strings.Fields(c.answers)
		o := &orders{choose: func(int) int { return 0 }, world: func(*core.Effect) core.Result {
			s := left[0]
			left = left[1:]
			return text(s, &spec.Usage{})
		}}
		out, err := o.run(core.Input{Plan: plan(1, "a"), Answers: map[string]core.AnswerCheck{"a": check}})
		if err != nil {
			t.Fatal(err)
		}
		if got := statuses(out)["a"]; got != c.want {
			t.Errorf("%s: %s, want %s", c.answers, got, c.want)
		}
	}
}

func TestEmptyAnswerDoesNotComplete(t *testing.T) {
	o := &orders{choose: func(int) int { return 0 }, world: func(*core.Effect) core.Result { return text("", &spec.Usage{}) }}
	out, err := o.run(core.Input{Plan: plan(1, "a")})
	if err != nil {
		t.Fatal(err)
	}
	if got := statuses(out)["a"]; got != "failed empty" {
		t.Error(got)
	}
}

func TestUnmeteredUnderACeilingIsRefused(t *testing.T) {
	for _, c := range []struct{ allow, want string }{{"", "failed budget"}, {"allow", "completed completed"}} {
		p := plan(1, "a")
		p.Agents[0].Unmetered = c.allow
		o := &orders{choose: func(int) int { return 0 }, world: func(*core.Effect) core.Result { return text("hello", nil) }}
		out, err := o.run(core.Input{Plan: p, Budgets: spec.Budgets{MaxTokenBudget: 1000}})
		if err != nil {
			t.Fatal(err)
		}
		if got := statuses(out)["a"]; got != c.want || !out.Tasks[0].Estimated || out.UsedTokens == 0 {
			t.Errorf("unmetered %q: %s, estimated %v, used %d", c.allow, got, out.Tasks[0].Estimated, out.UsedTokens)
		}
	}
}

func TestO2Truncate(t *testing.T) {
	got := core.Truncate(strings.Repeat("x", 1000), 100)
	if want := strings.Repeat("x", 44) + "\n\n[...truncated 937 characters...]\n\n" + strings.Repeat("x", 19); got != want {
		t.Errorf("got %q", got)
	}
	for _, max := range []int{0, -1, 1000, 5000} {
		if got := core.Truncate("héllo", max); got != "héllo" {
			t.Errorf("max %d: %q", max, got)
		}
	}
	for max := 1; max < 200; max++ {
		if n := len([]rune(core.Truncate(strings.Repeat("é", 300), max))); n > max {
			t.Fatalf("max %d: %d runes", max, n)
		}
	}
}

// D4: usage survives errors, cancellation and time-outs; what nobody reported is estimated, and said so.
func TestUsageOfLostCalls(t *testing.T) {
	for _, c := range []struct {
		name      string
		res       core.Result
		least     int64
		exactly   int64
		estimated bool
	}{
		{name: "timed out, with a report", res: core.Result{Err: &spec.ErrorInfo{Kind: "timeout"}, Model: &core.ModelResult{Attempts: 1, Wasted: spec.Usage{Input: 50, Output: 7}}}, exactly: 57},
		{name: "timed out, without", res: core.Result{Err: &spec.ErrorInfo{Kind: "timeout"}, Model: &core.ModelResult{Attempts: 1}}, least: 11, estimated: true},
		{name: "cancelled in flight", res: core.Result{Cancelled: true, Model: &core.ModelResult{Attempts: 1}}, least: 11, estimated: true},
		{name: "cancelled between two attempts", res: core.Result{Cancelled: true, Model: &core.ModelResult{Attempts: 1, Idle: true}}},
		{name: "cancelled before it was made", res: core.Result{Cancelled: true}},
		{name: "broken stream", res: core.Result{Err: &spec.ErrorInfo{Kind: "provider", Code: "INCOMPLETE"}, Model: &core.ModelResult{Attempts: 3}}, least: 11, estimated: true},
		{name: "refused by the server", res: core.Result{Err: &spec.ErrorInfo{Kind: "provider", HTTPStatus: 400}, Model: &core.ModelResult{Attempts: 1}}},
	} {
		o := &orders{choose: func(int) int { return 0 }, world: func(*core.Effect) core.Result { return c.res }}
		out, err := o.run(core.Input{Plan: plan(1, "a"), Budgets: spec.Budgets{MaxTokenBudget: 1000}})
		if err != nil {
			t.Fatal(err)
		}
		got := out.Tasks[0].Tokens.Total()
		if out.UsedTokens != got || out.Tasks[0].Estimated != c.estimated || got < c.least || c.least == 0 && got != c.exactly {
			t.Errorf("%s: %d tokens, the ledger has %d, estimated %v", c.name, got, out.UsedTokens, out.Tasks[0].Estimated)
		}
	}
}

// The ceiling that ended a task is the one that is named.
func TestWhichCeiling(t *testing.T) {
	usd := func(s string) *spec.USD { v, _ := spec.ParseUSD(s); return &v }
	for _, c := range []struct {
		name    string
		budgets spec.Budgets
		own     int64
		usage   *spec.Usage
		want    string
	}{
		{"tokens of the run", spec.Budgets{MaxTokenBudget: 20}, 0, &spec.Usage{Input: 20, Output: 5}, "tokens"},
		{"money of the run", spec.Budgets{MaxCostBudget: usd("0.00001")}, 0, &spec.Usage{Input: 20, Output: 5}, "cost"},
		{"the agent's own tokens", spec.Budgets{MaxTokenBudget: 1000}, 20, &spec.Usage{Input: 20, Output: 5}, "agent"},
		{"no usage reported", spec.Budgets{MaxTokenBudget: 1000}, 0, nil, "unmetered"},
	} {
		p := plan(1, "a")
		p.Agents[0].MaxTokenBudget = c.own
		o := &orders{choose: func(int) int { return 0 }, world: func(e *core.Effect) core.Result { return tools(c.usage, "x") }}
		out, err := o.run(core.Input{Plan: p, Budgets: c.budgets})
		if err != nil {
			t.Fatal(err)
		}
		if got := out.Tasks[0]; got.Ceiling != c.want || got.StopReason != spec.StopBudget {
			t.Errorf("%s: %q, %s", c.name, got.Ceiling, got.StopReason)
		}
	}
}

func TestReserveForRequiredKeepsTheSecondRolesShare(t *testing.T) {
	for _, c := range []struct {
		reserve bool
		want    string
	}{{false, "skipped "}, {true, "completed completed"}} {
		p := plan(1, "greedy security", "greedy>security")
		p.Governance = &spec.Governance{GovernanceIntent: "required", RequiredRoles: []string{"greedy", "security"}}
		for i := range p.Tasks {
			p.Tasks[i].Role = p.Tasks[i].Assignee
			p.Agents[i].MaxOutputTokens = 90
		}
		o := &orders{choose: func(int) int { return 0 }, world: func(e *core.Effect) core.Result {
			return text("all I may", &spec.Usage{Output: min(e.Request.MaxOutputTokens, 90)})
		}}
		out, err := o.run(core.Input{Plan: p, Budgets: spec.Budgets{MaxTokenBudget: 90, ReserveForRequired: c.reserve}})
		if err != nil {
			t.Fatal(err)
		}
		if got := statuses(out)["security"]; got != c.want {
			t.Errorf("reserveForRequired %v: security %s after greedy used %d", c.reserve, got, out.Tasks[0].Tokens.Total())
		}
	}
}

func TestWhiteSpaceIsNoAnswer(t *testing.T) {
	o := &orders{choose: func(int) int { return 0 }, world: func(*core.Effect) core.Result { return text(" \n", &spec.Usage{}) }}
	out, err := o.run(core.Input{Plan: plan(1, "a")})
	if err != nil {
		t.Fatal(err)
	}
	if got := statuses(out)["a"]; got != "failed empty" {
		t.Error(got)
	}
}

// O6: results the model has seen are replaced, errors and the newest ones are not.
func TestO6CompressToolResults(t *testing.T) {
	p := plan(1, "a")
	p.Agents[0].CompressToolResults = 20
	long := strings.Repeat("x", 30)
	var seen []string
	o := &orders{choose: func(int) int { return 0 }, world: func(e *core.Effect) core.Result {
		switch e.Kind {
		case core.Judge:
			return allowAll(e)
		case core.ToolCall:
			return core.Result{Tool: &spec.ToolResult{Text: long, IsError: e.Call.ID == "c2"}}
		}
		seen = nil
		for _, m := range e.Request.Messages {
			if m.Role == spec.RoleTool {
				seen = append(seen, m.Text)
			}
		}
		if e.Request.Turn < 3 {
			return tools(&spec.Usage{}, "x", "x")
		}
		return text("done", &spec.Usage{})
	}}
	if _, err := o.run(core.Input{Plan: p}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"[Tool output compressed: 30 characters, already processed]", long, long, long}, seen); diff != "" {
		t.Error(diff)
	}
}

// O6: a result with attachments is replaced by what they are taken for, whatever its text says, and counts no more.
func TestO6CompressAttachments(t *testing.T) {
	p := plan(1, "a")
	p.Agents[0].CompressToolResults = 500
	p.Agents[0].Unmetered = "allow"
	picture := []spec.Attachment{{Type: spec.AttachImage, MediaType: "image/png", Digest: "sha256:1", Size: 1 << 20, Data: make([]byte, 1<<20)}}
	var first spec.Message
	o := &orders{choose: func(int) int { return 0 }, world: func(e *core.Effect) core.Result {
		switch e.Kind {
		case core.Judge:
			return allowAll(e)
		case core.ToolCall:
			return core.Result{Tool: &spec.ToolResult{Text: "note", Attachments: picture}}
		}
		for _, m := range e.Request.Messages {
			if m.Role == spec.RoleTool {
				first = m
				break
			}
		}
		if e.Request.Turn < 3 {
			return tools(nil, "x")
		}
		return text("done", nil)
	}}
	out, err := o.run(core.Input{Plan: p})
	if err != nil {
		t.Fatal(err)
	}
	if first.Text != "[Tool output compressed: 4804 estimated characters, already processed]" || first.Attachments != nil {
		t.Errorf("%+v", first)
	}
	// Each picture was in one request, at its figure: turn 2 had the first, turn 3 the second.
	if got := out.Tasks[0].Tokens.Input; got < 2*spec.ImageTokens || got > 2*spec.ImageTokens+500 {
		t.Errorf("%d tokens are estimated", got)
	}
}

// The digest of a request goes by the digests of its attachments: a log has no bytes, and must come to the same.
func TestDigestsOfRequestsGoByDigestsOfAttachments(t *testing.T) {
	digest := func(a spec.Attachment) (last string) {
		o := &orders{choose: func(int) int { return 0 }, world: func(e *core.Effect) core.Result {
			switch {
			case e.Kind == core.Judge:
				return allowAll(e)
			case e.Kind == core.ToolCall:
				return core.Result{Tool: &spec.ToolResult{Text: "note", Attachments: []spec.Attachment{a}}}
			case e.Kind == core.ModelCall:
				if last = e.Digest; e.Request.Turn == 1 {
					return tools(&spec.Usage{}, "x")
				}
			}
			return text("done", &spec.Usage{})
		}}
		if _, err := o.run(core.Input{Plan: plan(1, "a")}); err != nil {
			t.Fatal(err)
		}
		return last
	}
	one := spec.Attachment{Type: spec.AttachImage, MediaType: "image/png", Digest: "sha256:1", Size: 3}
	loaded, other := one, one
	loaded.Data, other.Digest = []byte("abc"), "sha256:2"
	if digest(one) != digest(loaded) {
		t.Error("it differs with the bytes at hand")
	}
	if digest(one) == digest(other) {
		t.Error("it is the same for other bytes")
	}
}

func TestTreesThatCannotBeLookedAtStopTheRun(t *testing.T) {
	p := plan(1, "a")
	p.Tasks[0].Role = "a"
	p.Agents[0].Tools = []spec.Grant{{ToolInfo: spec.ToolInfo{Name: "file_read"}}}
	n := 0
	o := &orders{choose: func(int) int { return 0 }, world: func(e *core.Effect) core.Result {
		if e.Kind != core.Tree {
			return text("done", &spec.Usage{})
		}
		if n++; n > 1 {
			return core.Result{Cancelled: true}
		}
		return core.Result{Tree: "sha256:1"}
	}}
	out, err := o.run(core.Input{Plan: p})
	if err != nil {
		t.Fatal(err)
	}
	want := []spec.Tree{{Before: "a", Digest: "sha256:1"}, {Digest: core.TreeCancelled}}
	if diff := cmp.Diff(want, out.Trees); diff != "" || out.Stop != "cancelled" {
		t.Errorf("%s, stop %q", diff, out.Stop)
	}
}

// An external agent that waits to be started again has given its place away, so it may hold no tokens: who works in that place
// would wait for them, and it for the place.
func TestARestartHoldsNoTokensWhileItWaits(t *testing.T) {
	p := plan(1, "a b")
	p.Agents[0].Backend, p.Agents[0].Unmetered = &spec.Backend{Kind: "process"}, "allow"
	for i := range p.Agents {
		p.Agents[i].MaxOutputTokens = 600
	}
	out, err := (&orders{choose: func(int) int { return 0 }, world: func(e *core.Effect) core.Result {
		switch {
		case e.Kind == core.Approval:
			return core.Result{Approval: &spec.ApprovalRecord{Decision: spec.ApprovalApproved}}
		case e.Kind == core.ModelCall && e.ID == "a/1/model":
			return core.Result{Unsure: true}
		}
		return text("done", &spec.Usage{Input: 5, Output: 5})
	}}).run(core.Input{Plan: p, Budgets: spec.Budgets{MaxTokenBudget: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "completed completed", "b": "completed completed"}, statuses(out)); diff != "" {
		t.Error(diff)
	}
	if out.UsedTokens != 20 {
		t.Errorf("%d tokens", out.UsedTokens)
	}
}
