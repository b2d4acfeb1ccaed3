package core_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
)

const second = 1_000_000_000

// S9, S10: what may pass is tried again, from the beginning, and what cannot is not. All attempts are paid for.
func TestRetries(t *testing.T) {
	down := func(info spec.ErrorInfo) func(int) core.Result {
		return func(int) core.Result {
			return core.Result{Err: &info, Model: &core.ModelResult{Attempts: 1, Wasted: spec.Usage{Input: 5}}}
		}
	}
	finish := func(r spec.FinishReason) func(int) core.Result {
		return func(int) core.Result {
			res := text("x", &spec.Usage{Input: 5})
			res.Model.Response.Finish = r
			return res
		}
	}
	for _, c := range []struct {
		name     string
		answer   func(attempt int) core.Result
		budgets  spec.Budgets
		attempts int
		status   string
	}{
		{"the connection broke", down(spec.ErrorInfo{Kind: "provider", Retryable: true}), spec.Budgets{}, 3, "failed error"},
		{"a busy server", down(spec.ErrorInfo{Kind: "provider", HTTPStatus: 503, Retryable: true}), spec.Budgets{}, 3, "failed error"},
		{"a wrong key", down(spec.ErrorInfo{Kind: "provider", HTTPStatus: 401}), spec.Budgets{}, 1, "failed error"},
		{"a timeout", down(spec.ErrorInfo{Kind: "timeout", Code: "LLM_CALL_TIMEOUT", Retryable: true}), spec.Budgets{}, 3, "failed timeout"},
		{"a cassette that differs", down(spec.ErrorInfo{Kind: "validation", Code: "CASSETTE_MISMATCH"}), spec.Budgets{}, 1, "failed error"},
		{"an agent that may have done its work", down(spec.ErrorInfo{Kind: "framework", Code: "AGENT_NOT_REPEATED"}), spec.Budgets{}, 1, "failed error"},
		{"an empty answer", func(int) core.Result { return text("", &spec.Usage{}) }, spec.Budgets{}, 3, "failed empty"},
		{"an answer that was cut", finish(spec.FinishLength), spec.Budgets{}, 3, "failed length"},
		{"a refusal", finish(spec.FinishRefused), spec.Budgets{}, 3, "failed refused"},
		{"a budget", func(int) core.Result { return tools(&spec.Usage{Input: 20}, "look") }, spec.Budgets{MaxTokenBudget: 10}, 1, "failed budget"},
		{"it passes", func(attempt int) core.Result {
			if attempt < 2 {
				return down(spec.ErrorInfo{Kind: "provider", Retryable: true})(attempt)
			}
			return text("done", &spec.Usage{Input: 5})
		}, spec.Budgets{}, 2, "completed completed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := plan(1, "a")
			p.Tasks[0].MaxRetries, p.Tasks[0].RetryDelay, p.Tasks[0].RetryBackoff = 2, second, 2
			calls := 0
			out, err := (&orders{choose: first, world: func(e *core.Effect) core.Result {
				switch e.Kind {
				case core.Judge:
					return allowAll(e)
				case core.ModelCall:
					calls++
					if len(e.Request.Messages) != 1 {
						t.Errorf("attempt %d begins with %d messages", calls, len(e.Request.Messages))
					}
					return c.answer(calls)
				}
				return core.Result{}
			}}).run(core.Input{Plan: p, Budgets: c.budgets, Seed: "run"})
			if err != nil {
				t.Fatal(err)
			}
			if got := statuses(out)["a"]; got != c.status || out.Tasks[0].Attempts != c.attempts || out.Tasks[0].Turns != c.attempts {
				t.Errorf("%s after %d attempts and %d turns, want %s after %d", got, out.Tasks[0].Attempts, out.Tasks[0].Turns, c.status, c.attempts)
			}
		})
	}
}

// S9: the wait is the nominal one, or down to a half of it, grows with each attempt, and is never above 30 seconds. It is
// the same whenever a run is told again, and another one in another run.
func TestRetryDelays(t *testing.T) {
	waits := func(seed string, delay spec.Duration) (out []spec.Duration) {
		p := plan(1, "a")
		p.Tasks[0].MaxRetries, p.Tasks[0].RetryDelay, p.Tasks[0].RetryBackoff = 8, delay, 2
		_, err := (&orders{choose: first, world: func(e *core.Effect) core.Result {
			if e.Kind == core.Timer {
				out = append(out, e.Delay)
				return core.Result{}
			}
			return core.Result{Err: &spec.ErrorInfo{Kind: "provider", Retryable: true}, Model: &core.ModelResult{Attempts: 1}}
		}}).run(core.Input{Plan: p, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	got := waits("one", second)
	if len(got) != 8 {
		t.Fatalf("%v", got)
	}
	for i, d := range got {
		nominal := min(spec.Duration(second)<<i, 30*second)
		if d < nominal/2 || d > nominal {
			t.Errorf("wait %d is %s, of nominally %s", i+1, d, nominal)
		}
	}
	if again := waits("one", second); !slices.Equal(got, again) {
		t.Errorf("told again it waits\n%v and not\n%v", again, got)
	}
	if other := waits("two", second); slices.Equal(got, other) {
		t.Error("two runs wait alike")
	}
}

// What one attempt read and did is no evidence for the next; its marks stay.
func TestAttemptBeginsAnew(t *testing.T) {
	p := plan(1, "a")
	p.Tasks[0].MaxRetries, p.Tasks[0].RetryDelay, p.Tasks[0].RetryBackoff = 1, second, 2
	calls := 0
	out, err := (&orders{choose: first, world: func(e *core.Effect) core.Result {
		switch e.Kind {
		case core.Judge:
			res := allowAll(e)
			res.Judged.Marks = []string{"seen"}
			return res
		case core.ToolCall:
			return core.Result{Tool: &spec.ToolResult{Text: "x", FilesRead: []string{"f"}}}
		case core.ModelCall:
			switch calls++; calls {
			case 1:
				return tools(&spec.Usage{}, "look")
			case 2:
				return text("", &spec.Usage{})
			}
			return text("done", &spec.Usage{})
		}
		return core.Result{}
	}}).run(core.Input{Plan: p})
	if err != nil {
		t.Fatal(err)
	}
	got := out.Tasks[0]
	if got.Status != spec.TaskCompleted || len(got.FilesRead)+len(got.Calls) != 0 || !slices.Equal(got.Marks, []string{"seen"}) || got.ToolCalls.Allowed != 1 || got.Turns != 3 {
		t.Errorf("%+v", got)
	}
}

// A higher priority starts first, and among equals whoever could start first.
func TestPriority(t *testing.T) {
	p := plan(1, "a b c d e", "a>e")
	p.Tasks[1].Priority, p.Tasks[2].Priority, p.Tasks[4].Priority = "low", "critical", "high"
	var order []string
	_, err := (&orders{choose: first, world: func(e *core.Effect) core.Result {
		if e.Kind == core.ModelCall {
			order = append(order, e.TaskID)
		}
		return text("done", &spec.Usage{})
	}}).run(core.Input{Plan: p})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, " "); got != "c a e d b" {
		t.Errorf("%s", got)
	}
}

// S12: what a dependency hands on, and that a task which cannot be handed it fails before it runs.
func TestDependencyPayload(t *testing.T) {
	for _, c := range []struct {
		name, kind string
		value      any
		text       string
		want       string // of the prompt
		code       string
	}{
		{"output", "", nil, "words", "### a (by a)\nwords", ""},
		{"structured, its keys sorted", spec.PayloadStructured, map[string]any{"b": "2", "a": "1"}, "words", "### a (by a)\n#### Validated structured result\n{\"a\":\"1\",\"b\":\"2\"}", ""},
		{"both", spec.PayloadBoth, []any{"x"}, "words", "### a (by a)\n#### Raw output\nwords\n\n#### Validated structured result\n[\"x\"]", ""},
		{"none", spec.PayloadStructured, nil, "words", "", "DEPENDENCY_STRUCTURED_RESULT_MISSING"},
		{"too large", spec.PayloadBoth, []any{"x"}, strings.Repeat("x", 64<<10), "", "DEPENDENCY_PAYLOAD_TOO_LARGE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := plan(1, "a b c", "a>b", "b>c")
			p.Tasks[1].DependencyPayload = c.kind
			var prompt string
			in := core.Input{Plan: p}
			if c.value != nil {
				in.Answers = map[string]core.AnswerCheck{"a": func(string) (any, string) { return c.value, "" }}
			}
			out, err := (&orders{choose: first, world: func(e *core.Effect) core.Result {
				if e.Kind == core.ModelCall && e.TaskID == "b" {
					prompt = e.Request.Messages[0].Text
				}
				return text(c.text, &spec.Usage{})
			}}).run(in)
			if err != nil {
				t.Fatal(err)
			}
			if c.code == "" {
				if !strings.HasSuffix(prompt, "## Context from prerequisite tasks\n\n"+c.want) {
					t.Errorf("%q", prompt)
				}
				return
			}
			b := out.Tasks[1]
			if b.Status != spec.TaskFailed || b.StartedAt != 0 || b.Err == nil || b.Err.Code != c.code || out.Tasks[2].Status != spec.TaskSkipped || prompt != "" {
				t.Errorf("%+v, then %s", b, out.Tasks[2].Status)
			}
		})
	}
}

// S11: with memoryScope all a task is told what everybody left, each text cut, and has the marks of it; what it depends on is
// handed to it whole all the same.
func TestMemoryScope(t *testing.T) {
	p := plan(1, "a b c", "a>b", "b>c")
	p.SharedMemory = &spec.SharedMemory{}
	p.Tasks[2].MemoryScope = spec.MemoryAll
	var prompt string
	var marks []string
	_, err := (&orders{choose: first, world: func(e *core.Effect) core.Result {
		switch {
		case e.Kind == core.Judge:
			res := allowAll(e)
			if e.TaskID == "a" {
				res.Judged.Marks = []string{"secret"}
			}
			marks = e.Call.Situation.Marks
			return res
		case e.Kind == core.ToolCall:
			return core.Result{Tool: &spec.ToolResult{Text: "x"}}
		case e.Kind != core.ModelCall:
			return core.Result{}
		case e.TaskID == "c":
			prompt = e.Request.Messages[0].Text
			if e.Request.Turn == 1 {
				return tools(&spec.Usage{}, "look")
			}
		case e.TaskID == "a" && e.Request.Turn == 1:
			return tools(&spec.Usage{}, "read")
		case e.TaskID == "b":
			return text(strings.Repeat("é", 201), &spec.Usage{})
		}
		return text("word of "+e.TaskID, &spec.Usage{})
	}}).run(core.Input{Plan: p})
	if err != nil {
		t.Fatal(err)
	}
	want := "# Task: c\n\nwork\n\n## Context from prerequisite tasks\n\n### b (by b)\n" + strings.Repeat("é", 201) + "\n\n## Shared Team Memory\n\n### a\n- task:a:result: word of a\n\n### b\n- task:b:result: " + strings.Repeat("é", 197) + "…"
	if diff := cmp.Diff(want, prompt); diff != "" {
		t.Error(diff)
	}
	if !slices.Equal(marks, []string{"secret"}) {
		t.Errorf("%v", marks)
	}
}

// What others left between two attempts comes with its marks (N7).
func TestMarksOfTheMemoryAtAnotherAttempt(t *testing.T) {
	p := plan(2, "a b")
	p.SharedMemory = &spec.SharedMemory{}
	p.Tasks[1].MemoryScope, p.Tasks[1].MaxRetries, p.Tasks[1].RetryDelay, p.Tasks[1].RetryBackoff = spec.MemoryAll, 1, second, 2
	checked, calls := 0, 0
	every(t, 500, func() core.Input { calls = 0; return core.Input{Plan: p} }, func(e *core.Effect) core.Result {
		switch {
		case e.Kind == core.Judge:
			res := allowAll(e)
			if e.TaskID == "a" {
				res.Judged.Marks = []string{"secret"}
			} else {
				checked++
				if told := len(e.Call.Situation.Marks) > 0; told != (calls < 0) {
					t.Errorf("it was told %t and is marked %t", calls < 0, told)
				}
			}
			return res
		case e.Kind == core.ToolCall:
			return core.Result{Tool: &spec.ToolResult{Text: "x"}}
		case e.Kind != core.ModelCall:
			return core.Result{}
		case e.TaskID == "a" && e.Request.Turn == 1:
			return tools(&spec.Usage{}, "read")
		case e.TaskID == "a":
			return text("word of a", &spec.Usage{})
		}
		if calls == 0 {
			calls = 1
			return text("", &spec.Usage{})
		}
		if e.Request.Turn == 1 {
			if strings.Contains(e.Request.Messages[0].Text, "word of a") {
				calls = -1
			}
			return tools(&spec.Usage{}, "look")
		}
		return text("done", &spec.Usage{})
	}, func(*orders, *core.Outcome) {})
	if checked < 10 {
		t.Errorf("%d calls", checked)
	}
}

// A wait that the end of the run cuts short has not failed the task for good: the run was cancelled, and can go on.
func TestCancelledWhileItWaits(t *testing.T) {
	p := plan(1, "a b", "a>b")
	p.Tasks[0].MaxRetries, p.Tasks[0].RetryDelay, p.Tasks[0].RetryBackoff = 1, second, 2
	out, err := (&orders{choose: first, world: func(e *core.Effect) core.Result {
		switch e.Kind {
		case core.ModelCall:
			return core.Result{Err: &spec.ErrorInfo{Kind: "provider", Retryable: true}, Model: &core.ModelResult{Attempts: 1}}
		case core.Timer:
			return core.Result{Cancelled: e.Scope == core.ScopeRetry}
		}
		return core.Result{}
	}}).run(core.Input{Plan: p})
	if err != nil {
		t.Fatal(err)
	}
	if got := statuses(out)["a"]; out.Stop != core.StopCancelled || got != "failed error" || out.Tasks[0].Attempts != 1 {
		t.Errorf("stop %q, task %s after %d attempts", out.Stop, got, out.Tasks[0].Attempts)
	}
}

// The scheduler against a simple model, over random graphs and orders: nothing starts before what it depends on, what
// depends on a failure is skipped and nothing else, the cap holds, and everything else completes.
func TestRandomGraphs(t *testing.T) {
	for seed := range int64(400) {
		rnd := rand.New(rand.NewSource(seed))
		n := 1 + rnd.Intn(12)
		var names, edges []string
		for i := range n {
			names = append(names, fmt.Sprintf("t%d", i))
			for j := range i {
				if rnd.Intn(4) == 0 {
					edges = append(edges, fmt.Sprintf("t%d>t%d", j, i))
				}
			}
		}
		bad := map[string]bool{}
		for _, name := range names {
			bad[name] = rnd.Intn(6) == 0
		}
		limit := 1 + rnd.Intn(4)
		p := plan(limit, strings.Join(names, " "), edges...)
		for i := range p.Tasks {
			p.Tasks[i].Priority = spec.Priorities[rnd.Intn(4)]
		}
		o := &orders{choose: rnd.Intn, world: func(e *core.Effect) core.Result {
			if bad[e.TaskID] {
				return core.Result{Err: &spec.ErrorInfo{Kind: "provider"}, Model: &core.ModelResult{Attempts: 1}}
			}
			return text("done", &spec.Usage{})
		}}
		out, err := o.run(core.Input{Plan: p})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		ended := map[string]int64{}
		for i, got := range out.Tasks { // dependencies come before
			want := spec.TaskCompleted
			if bad[got.Task.ID] {
				want = spec.TaskFailed
			}
			for _, d := range p.Tasks[i].DependsOn {
				k := slices.Index(names, d)
				if out.Tasks[k].Status != spec.TaskCompleted {
					want = spec.TaskSkipped
				} else if got.StartedAt != 0 && got.StartedAt < ended[d] {
					t.Fatalf("seed %d: %s started before %s ended", seed, got.Task.ID, d)
				}
			}
			if ended[got.Task.ID] = got.EndedAt; got.Status != want {
				t.Fatalf("seed %d: %s is %s, want %s", seed, got.Task.ID, got.Status, want)
			}
		}
		if o.most[core.ModelCall] > limit {
			t.Fatalf("seed %d: %d at once", seed, o.most[core.ModelCall])
		}
	}
}

// What a task is told of the memory is bounded, and says how much more there is.
func TestMemoryIsBounded(t *testing.T) {
	names := make([]string, 0, 500)
	for i := range 500 {
		names = append(names, fmt.Sprintf("t%d", i))
	}
	p := plan(1, strings.Join(append(names, "last"), " "))
	p.SharedMemory = &spec.SharedMemory{}
	p.Tasks[500].MemoryScope, p.Tasks[500].Priority = spec.MemoryAll, "low"
	var prompt string
	_, err := (&orders{choose: first, world: func(e *core.Effect) core.Result {
		if e.Kind == core.ModelCall && e.TaskID == "last" {
			prompt = e.Request.Messages[0].Text
		}
		return text(strings.Repeat("x", 300), &spec.Usage{})
	}}).run(core.Input{Plan: p})
	if err != nil {
		t.Fatal(err)
	}
	told := strings.Count(prompt, ":result: ")
	if len(prompt) > 66<<10 || told < 200 || !strings.HasSuffix(prompt, fmt.Sprintf("[...and %d more]", 500-told)) {
		t.Errorf("%d bytes, %d told: …%s", len(prompt), told, prompt[len(prompt)-40:])
	}
}
