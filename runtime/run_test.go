package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

// modelFunc is a Model made of a function.
type modelFunc func(ctx context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error)

func (f modelFunc) Complete(ctx context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
	return f(ctx, req)
}

// toolMap offers the same tools to every agent.
type toolMap []Tool

func (m toolMap) Open(context.Context, *spec.PlanAgent) ([]Tool, io.Closer, error) {
	return m, io.NopCloser(nil), nil
}

const echoSchema = `{"type":"object","additionalProperties":false,"required":["text"],"properties":{"text":{"type":"string","maxLength":100},"n":{"type":"integer","default":7}}}`

func echo(call func(context.Context, Invocation) spec.ToolResult) Tool {
	return Tool{ToolInfo: spec.ToolInfo{Name: "echo", InputSchema: spec.Schema(echoSchema)}, Call: call}
}

func answerText(s string) *spec.ModelResponse {
	return &spec.ModelResponse{Message: spec.Message{Text: s}, Finish: spec.FinishStop, Usage: &spec.Usage{Input: 10, Output: 5}}
}

func callTool(name, arguments string) *spec.ModelResponse {
	r := answerText("")
	r.Message.ToolCalls = []spec.ToolCall{{ID: "c1", Name: name, Arguments: arguments}}
	return r
}

// team is a minimal plan: n agents, one independent task each, all with the tool echo.
func team(n, concurrency int, rules ...spec.PlanRule) *spec.Plan {
	p := &spec.Plan{Envelope: spec.Envelope{APIVersion: spec.APIVersion, Kind: spec.KindPlan}, Scheduling: spec.Scheduling{MaxConcurrency: concurrency},
		Providers: map[string]spec.PlanProvider{"p": {Provider: spec.Provider{Kind: "scripted"}}},
		Gates:     spec.PlanGates{Declared: rules != nil, Default: "allow", Rules: rules}}
	for i := range n {
		name := fmt.Sprintf("a%d", i+1)
		p.Agents = append(p.Agents, spec.PlanAgent{Name: name, Provider: "p", Model: "m", MaxTurns: 4, MaxToolConcurrency: 4, MaxToolInputBytes: 1000,
			Tools: []spec.Grant{{ToolInfo: echo(nil).ToolInfo}}})
		p.Tasks = append(p.Tasks, spec.PlanTask{ID: "t" + name, Title: name, Description: "do it", Assignee: name, Status: spec.TaskPending})
	}
	return p
}

func run(t testing.TB, p *spec.Plan, m Model, tools toolMap, change func(*Options)) (*Result, error) {
	t.Helper()
	o := Options{RunID: "run_test", Models: func(string) (Model, error) { return m, nil }, Tools: tools, Known: []spec.ToolInfo{echo(nil).ToolInfo}}
	if change != nil {
		change(&o)
	}
	r, err := New(p, o)
	if err != nil {
		t.Fatal(err)
	}
	return r.Run(context.Background())
}

// Whatever goes wrong at the door ends in a refusal with its own reason, and the tool is not called.
func TestTheDoorFailsClosed(t *testing.T) {
	rule := func(when, action string) []spec.PlanRule {
		return []spec.PlanRule{{Rule: spec.Rule{Name: "r", Tools: []string{"echo"}, When: when, Action: action, Reason: "because"}, Source: "team"}}
	}
	for _, c := range []struct {
		name      string
		rules     []spec.PlanRule
		tool      string
		arguments string
		normalise func(map[string]any) error
		refused   string
		outcome   string
		told      string
	}{
		{name: "ungranted", tool: "bash", arguments: `{}`, refused: "not-granted", told: "not granted to this agent"},
		{name: "not JSON", tool: "echo", arguments: `{"text":`, refused: "invalid-input", told: "not valid JSON"},
		{name: "SH-18 list for text", tool: "echo", arguments: `{"text":["ls","-l"]}`, refused: "invalid-input", told: "text: got a list, want text"},
		{name: "SH-18 null", tool: "echo", arguments: `{"text":null}`, refused: "invalid-input", told: "want text"},
		{name: "SH-18 missing", tool: "echo", arguments: ``, refused: "invalid-input", told: `missing "text"`},
		{name: "N11 duplicate name", tool: "echo", arguments: `{"text":"a","text":"b"}`, refused: "invalid-input", told: "duplicate"},
		{name: "N11 another letter case", tool: "echo", arguments: `{"text":"a","Text":"b"}`, refused: "invalid-input", told: `unknown "Text"`},
		{name: "N11 broken UTF-8", tool: "echo", arguments: "{\"text\":\"\xff\"}", refused: "invalid-input", told: "UTF-8"},
		{name: "N11 digits lost", tool: "echo", arguments: `{"text":"a","n":9007199254740993.5}`, refused: "invalid-input", told: "digits"},
		{name: "N8 too long", tool: "echo", arguments: `{"text":"` + strings.Repeat("x", 1000) + `"}`, refused: "invalid-input", told: "over 1000 bytes"},
		{name: "protected", tool: "echo", arguments: `{"text":"a"}`, normalise: func(map[string]any) error { return fmt.Errorf("x is %w", ErrProtected) }, refused: "protected-path", told: "protected"},
		{name: "denied by a rule", tool: "echo", arguments: `{"text":"a"}`, rules: rule(`input.text == "a"`, "deny"), outcome: "decided", told: "because"},
		{name: "CE-01 rule breaks", tool: "echo", arguments: `{"text":"a"}`, rules: rule(`[1, 2][input.n] == 1`, "deny"), outcome: "error", told: "could not be evaluated"},
		{name: "D20 ask with no log", tool: "echo", arguments: `{"text":"a"}`, rules: rule(`true`, "ask"), outcome: "error", told: "cannot-suspend"},
		{name: "D20 suspend with no log", tool: "echo", arguments: `{"text":"a"}`, rules: rule(`true`, "suspend"), outcome: "error", told: "cannot-suspend"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var told string
			m := modelFunc(func(_ context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
				if req.Turn == 1 {
					return callTool(c.tool, c.arguments), nil
				}
				told = req.Messages[len(req.Messages)-1].Text
				return answerText("done"), nil
			})
			tool := echo(func(context.Context, Invocation) spec.ToolResult {
				t.Error("the tool was called")
				return spec.ToolResult{}
			})
			tool.Normalise = c.normalise
			res, err := run(t, team(1, 1, c.rules...), m, toolMap{tool}, nil)
			if err != nil {
				t.Fatal(err)
			}
			d := res.Receipt.Decisions[0]
			if d.Allowed() || d.Refused != c.refused || d.GateOutcome != c.outcome {
				t.Errorf("decision %+v", d)
			}
			if !strings.Contains(told, c.told) {
				t.Errorf("the model was told %q, want %q in it", told, c.told)
			}
			if res.Receipt.Denied != 1 || !res.Receipt.Success {
				t.Errorf("denied %d, success %v", res.Receipt.Denied, res.Receipt.Success)
			}
		})
	}
}

// What was judged is what runs: the canonical value, with defaults, whatever text the model sent.
func TestN11TheJudgedValueRuns(t *testing.T) {
	var got Invocation
	tool := echo(func(_ context.Context, in Invocation) spec.ToolResult {
		got = in
		return spec.ToolResult{Text: "ok"}
	})
	m := modelFunc(func(_ context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
		if req.Turn == 1 {
			return callTool("echo", " { \"text\" : \"\\u0061\" } "), nil
		}
		return answerText("done"), nil
	})
	res, err := run(t, team(1, 1), m, toolMap{tool}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"text": "a", "n": int64(7)}, got.Input); diff != "" {
		t.Error(diff)
	}
	if string(got.Canonical) != `{"n":7,"text":"a"}` {
		t.Errorf("canonical %s", got.Canonical)
	}
	if d := res.Receipt.Decisions[0]; d.Gated || !d.Allowed() || d.InputDigest == "" {
		t.Errorf("%+v", d)
	}
}

func TestAToolThatPanicsIsAResult(t *testing.T) {
	m := modelFunc(func(_ context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
		if req.Turn == 1 {
			return callTool("echo", `{"text":"a"}`), nil
		}
		return answerText(req.Messages[len(req.Messages)-1].Text), nil
	})
	res, err := run(t, team(1, 1), m, toolMap{echo(func(context.Context, Invocation) spec.ToolResult { panic("oops") })}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := res.Outputs[0].Text; got != `Tool "echo" broke: oops` {
		t.Error(got)
	}
}

func TestProviderFailureLeavesAReceipt(t *testing.T) {
	m := modelFunc(func(context.Context, *spec.ModelRequest) (*spec.ModelResponse, error) {
		return nil, &ProviderError{Info: spec.ErrorInfo{Kind: "provider", Message: "down", HTTPStatus: 401, Provider: "p"}}
	})
	res, err := run(t, team(1, 1), m, nil, func(o *Options) { o.Tools = toolMap{echo(nil)} })
	if err != nil {
		t.Fatal(err)
	}
	r := res.Receipt
	if diff := cmp.Diff([]int{ExitBroken, ExitFailed}, r.ExitCodes); diff != "" || r.Status.Code != spec.StatusError || r.ErrorInfo.HTTPStatus != 401 {
		t.Errorf("%v %+v %+v", r.ExitCodes, r.Status, r.ErrorInfo)
	}
	if _, err := ReadReceipt(res.Bytes); err != nil {
		t.Error(err)
	}
}

// A run returns soon after its context ends or its time is up, whatever it waits for.
func TestCancellation(t *testing.T) {
	hang := modelFunc(func(ctx context.Context, _ *spec.ModelRequest) (*spec.ModelResponse, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	slowTool := echo(func(ctx context.Context, _ Invocation) spec.ToolResult {
		<-ctx.Done()
		return spec.ToolResult{IsError: true, Text: "stopped"}
	})
	callsTool := modelFunc(func(_ context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
		return callTool("echo", `{"text":"a"}`), nil
	})
	for _, c := range []struct {
		name   string
		model  Model
		change func(*spec.Plan, *Options, context.CancelFunc)
		status string
		reason spec.StopReason
		code   int
	}{
		{"callTimeout", hang, func(p *spec.Plan, _ *Options, _ context.CancelFunc) {
			p.Agents[0].CallTimeout = spec.Duration(time.Second)
		}, spec.StatusTimeout, spec.StopTimeout, ExitBroken},
		{"agent timeout", callsTool, func(p *spec.Plan, _ *Options, _ context.CancelFunc) {
			p.Agents[0].Timeout = spec.Duration(time.Second)
		}, spec.StatusTimeout, spec.StopTimeout, 1},
		{"maxDuration", hang, func(p *spec.Plan, _ *Options, _ context.CancelFunc) {
			p.Budgets.MaxDuration = spec.Duration(time.Second)
		}, spec.StatusBudget, spec.StopBudget, 5},
		{"killed", callsTool, func(_ *spec.Plan, _ *Options, cancel context.CancelFunc) {
			time.AfterFunc(time.Second, cancel)
		}, spec.StatusCancelled, spec.StopCancelled, 130},
		{"drained before the grace ends", hang, func(_ *spec.Plan, o *Options, cancel context.CancelFunc) {
			drain := make(chan struct{})
			o.Drain = drain
			time.AfterFunc(time.Second, func() { close(drain) })
			time.AfterFunc(2*time.Second, cancel)
		}, spec.StatusCancelled, spec.StopCancelled, 130},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := team(1, 1)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				o := Options{RunID: "r", Models: func(string) (Model, error) { return c.model, nil }, Tools: toolMap{slowTool},
					Known: []spec.ToolInfo{slowTool.ToolInfo}, Interrupted: func() int { return ExitInterrupted }}
				c.change(p, &o, cancel)
				r, err := New(p, o)
				if err != nil {
					t.Fatal(err)
				}
				started := time.Now()
				res, err := r.Run(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(started); took > 2*time.Second {
					t.Errorf("took %s", took)
				}
				rec := res.Receipt
				if rec.Status.Code != c.status || rec.Tasks[0].StopReason != c.reason || rec.ExitCodes[0] != c.code {
					t.Errorf("status %s, stop reason %s, codes %v", rec.Status.Code, rec.Tasks[0].StopReason, rec.ExitCodes)
				}
			})
		})
	}
}

// A drain lets a call in flight end, keeps its result, and starts nothing after it.
func TestDrainKeepsWhatWasInFlight(t *testing.T) {
	drain := make(chan struct{})
	var calls atomic.Int32
	m := modelFunc(func(context.Context, *spec.ModelRequest) (*spec.ModelResponse, error) {
		if calls.Add(1) == 1 {
			close(drain)
		}
		return callTool("echo", `{"text":"a"}`), nil
	})
	tool := echo(func(context.Context, Invocation) spec.ToolResult {
		t.Error("a tool was started after the drain")
		return spec.ToolResult{}
	})
	res, err := run(t, team(3, 1), m, toolMap{tool}, func(o *Options) { o.Drain = drain; o.Interrupted = func() int { return ExitTerminated } })
	if err != nil {
		t.Fatal(err)
	}
	r := res.Receipt
	if calls.Load() != 1 || r.TotalTokens.Total() != 15 || r.ExitCodes[0] != ExitTerminated {
		t.Errorf("%d calls, %d tokens, %v", calls.Load(), r.TotalTokens.Total(), r.ExitCodes)
	}
	if r.Tasks[1].Status != spec.TaskSkipped || r.Tasks[2].Status != spec.TaskSkipped {
		t.Errorf("%s, %s", r.Tasks[1].Status, r.Tasks[2].Status)
	}
}

// brokenJournal fails at one append.
type brokenJournal struct {
	left   int
	closed bool
}

func (j *brokenJournal) Append([]byte) error {
	if j.left--; j.left < 0 {
		return errors.New("no space left on device")
	}
	return nil
}

func (j *brokenJournal) Flush() error { return nil }

func (j *brokenJournal) Close() error { j.closed = true; return nil }

// A log that fails anywhere ends the run: nothing is done that could not be recorded, and the receipt says why.
func TestAFailingLogEndsTheRunWherever(t *testing.T) {
	m := modelFunc(func(_ context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
		if req.Turn == 1 {
			return callTool("echo", `{"text":"a"}`), nil
		}
		return answerText("done"), nil
	})
	for n := 0; ; n++ {
		j := &brokenJournal{left: n}
		tool := echo(func(context.Context, Invocation) spec.ToolResult {
			if j.left < 0 {
				t.Error("a tool was started after the log had failed")
			}
			return spec.ToolResult{Text: "ok"}
		})
		res, err := run(t, team(2, 1), m, toolMap{tool}, func(o *Options) { o.Journal = j })
		if err != nil {
			t.Fatalf("after %d records: %v", n, err)
		}
		r := res.Receipt
		if r.Success {
			if n < 20 || r.Evidence.Journal.Events != int64(n) {
				t.Errorf("the run passed with room for %d records, and has %d", n, r.Evidence.Journal.Events)
			}
			return
		}
		if !j.closed || !res.Stopped || r.ExitCodes[0] != ExitBroken || r.ErrorInfo.Kind != "store" || r.Evidence.Journal.Events != int64(n) {
			t.Fatalf("after %d records: closed %v, %v, %+v, %d events", n, j.closed, r.ExitCodes, r.ErrorInfo, r.Evidence.Journal.Events)
		}
		if _, err := ReadReceipt(res.Bytes); err != nil {
			t.Fatal(err)
		}
	}
}

// The log is a chain: any damage to it is found, at its line.
func TestVerifyLog(t *testing.T) {
	j := &memory{}
	m := modelFunc(func(context.Context, *spec.ModelRequest) (*spec.ModelResponse, error) { return answerText("done"), nil })
	res, err := run(t, team(2, 1), m, toolMap{echo(nil)}, func(o *Options) { o.Journal = j })
	if err != nil {
		t.Fatal(err)
	}
	log := append(bytes.Join(j.records, []byte("\n")), '\n')
	ref, err := VerifyLog(bytes.NewReader(log), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(res.Receipt.Evidence.Journal, ref); diff != "" {
		t.Error(diff)
	}
	lines := bytes.SplitAfter(log, []byte("\n"))
	for name, damaged := range map[string][]byte{
		"a line cut out":    bytes.Join(append(append([][]byte{}, lines[:3]...), lines[4:]...), nil),
		"two lines swapped": bytes.Join(append(append([][]byte{}, lines[0], lines[2], lines[1]), lines[3:]...), nil),
		"cut short":         log[:len(log)-3],
		"edited":            bytes.Replace(log, []byte(`"completed"`), []byte(`"failed"`), 1),
	} {
		got, err := VerifyLog(bytes.NewReader(damaged), nil)
		if err == nil && got == ref {
			t.Errorf("%s: not found", name)
		}
	}
}

func TestNarrowNeverWidens(t *testing.T) {
	usd := func(s string) *spec.USD { v, _ := spec.ParseUSD(s); return &v }
	got := Narrow(spec.Budgets{MaxTokenBudget: 100, MaxCostBudget: usd("1")}, spec.Budgets{MaxTokenBudget: 200, MaxCostBudget: usd("0.5"), MaxDuration: 5})
	if diff := cmp.Diff(spec.Budgets{MaxTokenBudget: 100, MaxCostBudget: usd("0.5"), MaxDuration: 5}, got); diff != "" {
		t.Error(diff)
	}
}

// BenchmarkRun is a whole run without a server: the cost of one task, one turn and one call.
func BenchmarkRun(b *testing.B) {
	done := modelFunc(func(context.Context, *spec.ModelRequest) (*spec.ModelResponse, error) { return answerText("done"), nil })
	for _, n := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprintf("tasks=%d", n), func(b *testing.B) {
			p := team(n, 50)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := run(b, p, done, toolMap{echo(nil)}, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/task")
		})
	}
	for _, n := range []int{50, 200, 800} {
		b.Run(fmt.Sprintf("calls=%d", n), func(b *testing.B) {
			p := team(1, 1)
			p.Agents[0].MaxTurns = n + 1
			m := modelFunc(func(_ context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
				if req.Turn <= n {
					return callTool("echo", `{"text":"a"}`), nil
				}
				return answerText("done"), nil
			})
			tool := echo(func(context.Context, Invocation) spec.ToolResult { return spec.ToolResult{Text: "ok"} })
			b.ReportAllocs()
			for b.Loop() {
				if _, err := run(b, p, m, toolMap{tool}, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/call")
		})
	}
	for _, n := range []int{50, 200, 800} {
		b.Run(fmt.Sprintf("chain=%d", n), func(b *testing.B) {
			p := team(n, 5)
			for i := 1; i < n; i++ {
				p.Tasks[i].DependsOn = []string{p.Tasks[i-1].ID}
			}
			for b.Loop() {
				if _, err := run(b, p, done, toolMap{echo(nil)}, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/task")
		})
	}
}

// A resolved secret that a tool finds somewhere does not go to the model's provider.
func TestD11ToolResultsHoldNoResolvedSecret(t *testing.T) {
	const key = "sk-live-0123456789"
	var told string
	m := modelFunc(func(_ context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
		if req.Turn == 1 {
			return callTool("echo", `{"text":"a"}`), nil
		}
		told = req.Messages[len(req.Messages)-1].Text
		return answerText("done"), nil
	})
	tool := echo(func(context.Context, Invocation) spec.ToolResult { return spec.ToolResult{Text: "KEY=" + key} })
	j := &memory{}
	hide := func(s string) string { return strings.ReplaceAll(s, key, "${secret:server}") }
	res, err := run(t, team(1, 1), m, toolMap{tool}, func(o *Options) { o.Reference, o.Redact, o.Journal = hide, hide, j })
	if err != nil {
		t.Fatal(err)
	}
	if told != "KEY=${secret:server}" {
		t.Errorf("the model was told %q", told)
	}
	if all := string(bytes.Join(j.records, nil)) + string(res.Bytes); strings.Contains(all, key) {
		t.Error("the key is in the log or the receipt")
	}
}

// The task that timed out is the one whose error stands on the receipt, and a signal is not hidden by it.
func TestStatusOfSeveralFailures(t *testing.T) {
	m := modelFunc(func(ctx context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
		if req.AgentName == "a1" {
			return nil, &ProviderError{Info: spec.ErrorInfo{Kind: "provider", Message: "bad request", HTTPStatus: 400, Provider: "p"}}
		}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	synctest.Test(t, func(t *testing.T) {
		p := team(3, 1)
		p.Agents[1].CallTimeout = spec.Duration(time.Second)
		drain := make(chan struct{})
		time.AfterFunc(500*time.Millisecond, func() { close(drain) })
		res, err := run(t, p, m, toolMap{echo(nil)}, func(o *Options) { o.Drain = drain; o.Interrupted = func() int { return ExitInterrupted } })
		if err != nil {
			t.Fatal(err)
		}
		r := res.Receipt
		if r.Status.Code != spec.StatusTimeout || !strings.HasPrefix(r.Status.Message, "a2: ") || r.ErrorInfo.Code != "LLM_CALL_TIMEOUT" {
			t.Errorf("%+v %+v", r.Status, r.ErrorInfo)
		}
		if diff := cmp.Diff([]int{ExitBroken, ExitInterrupted, ExitFailed}, r.ExitCodes); diff != "" {
			t.Error(diff)
		}
	})
}

// A drain ends the wait for another attempt: nothing new is started.
func TestDrainEndsRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drain := make(chan struct{})
		calls := 0
		m := modelFunc(func(context.Context, *spec.ModelRequest) (*spec.ModelResponse, error) {
			calls++
			return nil, &ProviderError{Info: spec.ErrorInfo{Kind: "provider", Message: "busy", HTTPStatus: 429, Retryable: true}, RetryAfter: 20 * time.Second}
		})
		time.AfterFunc(time.Second, func() { close(drain) })
		started := time.Now()
		res, err := run(t, team(1, 1), m, toolMap{echo(nil)}, func(o *Options) { o.Drain = drain; o.Interrupted = func() int { return ExitInterrupted } })
		if err != nil {
			t.Fatal(err)
		}
		if calls != 1 || time.Since(started) > 2*time.Second || res.Receipt.ExitCodes[0] != ExitInterrupted || res.Receipt.TotalTokens.Total() != 0 {
			t.Errorf("%d calls in %s, %v, %d tokens", calls, time.Since(started), res.Receipt.ExitCodes, res.Receipt.TotalTokens.Total())
		}
	})
}

// R2, R3: what a model or a server wrote stands on the receipt masked and cut.
func TestNothingAModelWroteLeaksIntoTheReceipt(t *testing.T) {
	const secret = "ghp_0000000000000000000000000000000000"
	p := team(1, 1)
	p.Agents[0].OutputSchema = spec.Schema(`{"type":"object","properties":{"v":{"enum":["yes","no"]}}}`)
	m := modelFunc(func(_ context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
		if req.Turn == 1 {
			r := callTool(secret, `{}`)
			r.Message.ToolCalls[0].ID = "id-" + secret + strings.Repeat("x", 500)
			return r, nil
		}
		return answerText(`{"v": "` + secret + `"}`), nil
	})
	hide := func(s string) string { return strings.ReplaceAll(s, secret, "[redacted]") }
	res, err := run(t, p, m, toolMap{echo(nil)}, func(o *Options) { o.Redact = hide })
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(res.Bytes), secret) {
		t.Errorf("%s", res.Bytes)
	}
	d := res.Receipt.Decisions[0]
	if d.ToolName != "[redacted]" || len([]rune(d.ToolCallID)) > 128 || res.Receipt.Tasks[0].ErrorInfo.Code != "STRUCTURED_OUTPUT_VALIDATION_FAILED" {
		t.Errorf("%+v, %+v", d, res.Receipt.Tasks[0].ErrorInfo)
	}
}

// A figure that a server made up does not move a ceiling: it counts as not reported.
func TestUsageThatNobodyBelieves(t *testing.T) {
	for _, u := range []spec.Usage{{Input: 1<<63 - 1, Output: 1}, {Input: -5, Output: 10}, {Input: 10, Output: 1 << 41}, {CachedInput: -1}} {
		m := modelFunc(func(context.Context, *spec.ModelRequest) (*spec.ModelResponse, error) {
			r := answerText("done")
			r.Usage = &u
			return r, nil
		})
		p := team(2, 1)
		p.Budgets.MaxTokenBudget = 100000
		res, err := run(t, p, m, toolMap{echo(nil)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := res.Receipt
		if r.Success || r.Budgets.Exhausted != "unmetered" || r.TotalTokens.Total() <= 0 || r.TotalTokens.Total() > 100000 || len(r.Unmetered) == 0 {
			t.Errorf("%+v: success %v, exhausted %q, %d tokens", u, r.Success, r.Budgets.Exhausted, r.TotalTokens.Total())
		}
	}
}

// A key that is also an everyday word hides that word in what others wrote, and nowhere in the log's own words.
func TestKeysThatAreWords(t *testing.T) {
	for _, key := range []string{"1", `"`, "completed", "model", "input", "sha256", "echo", "a1"} {
		hide := func(s string) string { return strings.ReplaceAll(s, key, "${secret:p}") }
		m := modelFunc(func(_ context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
			if req.Turn == 1 {
				return callTool("echo", `{"text":"completed model input 1"}`), nil
			}
			return answerText(`completed "model" input sha256`), nil
		})
		tool := echo(func(_ context.Context, in Invocation) spec.ToolResult {
			return spec.ToolResult{Text: "completed " + string(in.Canonical)}
		})
		p := team(1, 1)
		if err := SealPlan(p); err != nil {
			t.Fatal(err)
		}
		j := &memory{}
		res, err := run(t, p, m, toolMap{tool}, func(o *Options) { o.Journal, o.Reference = j, hide })
		if err != nil {
			t.Fatal(err)
		}
		log := append(bytes.Join(j.records, []byte("\n")), '\n')
		v := Gate(res.Bytes, GateOptions{Plan: p, Log: bytes.NewReader(log), AllowNotApplicable: true})
		if !v.Pass || v.Integrity != IntegrityChain {
			t.Errorf("key %q: %v", key, v.Reasons)
		}
		if strings.Contains(string(log), "completed model input 1") && key != "a1" && key != "sha256" && key != "echo" && key != `"` {
			t.Errorf("key %q stands in the log", key)
		}
	}
}
