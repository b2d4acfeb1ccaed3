package scripted_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/scripted"
	"github.com/open-multi-agent/oma/spec"
)

func ptr[T any](v T) *T { return &v }

// ask makes a request of an agent in a task and gives the answer's text, or the error's.
func ask(t *testing.T, m runtime.Model, agent, task string, messages ...spec.Message) string {
	t.Helper()
	resp, err := m.Complete(t.Context(), &spec.ModelRequest{AgentName: agent, TaskTitle: task, Model: "m", Messages: messages})
	if err != nil {
		return err.Error()
	}
	return resp.Message.Text
}

func result(id, text string, isError bool) spec.Message {
	return spec.Message{Role: spec.RoleTool, ToolCallID: id, ToolName: "file_read", Text: text, IsError: isError}
}

func texts(list ...string) []spec.Turn {
	var turns []spec.Turn
	for _, s := range list {
		turns = append(turns, spec.Turn{Text: s})
	}
	return turns
}

func TestAnswerIsTheTurn(t *testing.T) {
	usage := &spec.Usage{Input: 420, CachedInput: 1, Output: 31, Reasoning: 2}
	m := scripted.New(&spec.Cassette{Agents: map[string][]spec.Turn{"a": {
		{Text: "hi", Reasoning: "hm", Usage: usage, Model: "m-1", Finish: spec.FinishLength, ToolCalls: []spec.CassetteCall{
			{ID: "c1", Name: "t", Input: json.RawMessage("{ \"b\": 1,\n \"a\": 2 }")},
			{ID: "c2", Name: "t", Arguments: ptr("{ not json")}, {ID: "c3", Name: "t"},
		}}, {},
	}}}, "c.yaml", nil)
	got, err := m.Complete(t.Context(), &spec.ModelRequest{AgentName: "a"})
	if err != nil {
		t.Fatal(err)
	}
	want := &spec.ModelResponse{Finish: spec.FinishLength, Usage: usage, Model: "m-1",
		Message: spec.Message{Role: "assistant", Text: "hi", Reasoning: "hm", ToolCalls: []spec.ToolCall{
			{ID: "c1", Name: "t", Arguments: `{"b":1,"a":2}`}, {ID: "c2", Name: "t", Arguments: "{ not json"}, {ID: "c3", Name: "t", Arguments: "{}"},
		}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got, err = m.Complete(t.Context(), &spec.ModelRequest{AgentName: "a"})
	empty := &spec.ModelResponse{Message: spec.Message{Role: "assistant"}, Finish: spec.FinishStop}
	if diff := cmp.Diff(empty, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// Answer 33: turns are keyed by task title, then by agent.
func TestTurnsByTaskThenAgent(t *testing.T) {
	m := scripted.New(&spec.Cassette{
		Agents: map[string][]spec.Turn{"a": texts("a1", "a2"), "b": texts("b1")},
		Tasks:  map[string][]spec.Turn{"T": texts("t1", "t2"), "U": texts("u1")},
	}, "c.yaml", nil)
	var got []string
	for _, q := range [][2]string{{"a", "other"}, {"a", "T"}, {"b", "T"}, {"a", ""}, {"b", "x"}, {"z", "U"}} {
		got = append(got, ask(t, m, q[0], q[1]))
	}
	if diff := cmp.Diff([]string{"a1", "t1", "t2", "a2", "b1", "u1"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if errs := m.Unused(nil); errs != nil {
		t.Errorf("unused: %v", errs)
	}
}

func TestMismatchNamesThePlace(t *testing.T) {
	base := spec.ModelRequest{AgentName: "reviewer", TaskTitle: "Review", Model: "m", System: "s"}
	digest := scripted.RequestDigest(&base, "")
	for name, c := range map[string]struct {
		turn     spec.Turn
		change   func(*spec.ModelRequest)
		messages []spec.Message
		want     string
	}{
		"no such agent": {change: func(r *spec.ModelRequest) { r.AgentName = "coder" },
			want: `cassette c.yaml: no turns for agent "coder" or task "Review": expected agent "idle", agent "reviewer"`},
		"no turn left": {change: func(r *spec.ModelRequest) { r.AgentName = "idle" },
			want: `cassette c.yaml:7: agents.idle: no turn left: expected at most 0 requests, found another one from agent "idle" in task "Review"`},
		"prompt": {turn: spec.Turn{Request: digest}, change: func(r *spec.ModelRequest) { r.System = "other" },
			want: `cassette c.yaml:7: agents.reviewer[0].request: the request is not the recorded one: system prompt changed: expected ` + digest[23:35] + `…, found `},
		"grants and model": {turn: spec.Turn{Request: digest}, change: func(r *spec.ModelRequest) { r.Model, r.Tools = "n", []spec.ToolInfo{{Name: "bash"}} },
			want: `the request is not the recorded one: agent, task or model and tools changed: expected ` + digest[7:19] + `…, found `},
		"no digest": {turn: spec.Turn{Request: "?"}, want: `agent, task or model and system prompt and tools and messages changed: expected ?, found ` + digest[7:19]},
		"no result": {turn: spec.Turn{Expect: &spec.Expect{ToolResult: &spec.ExpectResult{Of: "c1"}}},
			want: `cassette c.yaml:7: agents.reviewer[0].expect.toolResult: expected a result of call "c1", found no result at all`},
		"other results": {turn: spec.Turn{Expect: &spec.Expect{ToolResult: &spec.ExpectResult{Of: "c1"}}},
			messages: []spec.Message{result("c2", "", false), result("c3", "", false)},
			want:     `expected a result of call "c1", found results of "c2", "c3"`},
		"result text": {turn: spec.Turn{Expect: &spec.Expect{ToolResult: &spec.ExpectResult{Of: "c1", Contains: "oma"}}},
			messages: []spec.Message{result("c1", strings.Repeat("é", 500), false)},
			want:     `expected a result of call "c1" that contains "oma", found "` + strings.Repeat("é", 120) + `" and more`},
		"result error": {turn: spec.Turn{Expect: &spec.Expect{ToolResult: &spec.ExpectResult{Of: "c1", IsError: ptr(false)}}},
			messages: []spec.Message{result("c1", "denied", true)},
			want:     `expected isError false of the result of call "c1", found true: "denied"`},
		"no picture": {turn: spec.Turn{Expect: &spec.Expect{ToolResult: &spec.ExpectResult{Of: "c1", Image: "image/png"}}},
			messages: []spec.Message{result("c1", "[image: image/png; inline data]", false)},
			want:     `expected a result of call "c1" with the image image/png attached, found none`},
		"another file": {turn: spec.Turn{Expect: &spec.Expect{ToolResult: &spec.ExpectResult{Of: "c1", Image: "image/png", File: "image/png"}}},
			messages: []spec.Message{attached(result("c1", "", false))},
			want:     `expected a result of call "c1" with the file image/png attached, found [image: image/png; inline data]`},
		"a picture without its bytes": {turn: spec.Turn{Expect: &spec.Expect{ToolResult: &spec.ExpectResult{Of: "c1", Image: "image/png"}}},
			messages: []spec.Message{{Role: spec.RoleTool, ToolCallID: "c1", Attachments: []spec.Attachment{{Type: "image", MediaType: "image/png", Digest: "sha256:1"}}}},
			want:     `with the image image/png attached, found [image: image/png; inline data] without its bytes`},
		"last message": {turn: spec.Turn{Expect: &spec.Expect{Contains: "yes"}},
			messages: []spec.Message{{Role: "user", Text: "no"}},
			want:     `cassette c.yaml:7: agents.reviewer[0].expect.contains: expected a last message that contains "yes", found "no"`},
	} {
		t.Run(name, func(t *testing.T) {
			m := scripted.New(&spec.Cassette{Agents: map[string][]spec.Turn{"reviewer": {c.turn}, "idle": {}}}, "c.yaml",
				func(p spec.Path) string { return "c.yaml:7" })
			req := base
			req.Messages = c.messages
			if c.change != nil {
				c.change(&req)
			}
			_, err := m.Complete(t.Context(), &req)
			if !errors.Is(err, runtime.ErrCassette) || !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("error %q\nwant %q", err, c.want)
			}
			if got := len(m.Unused(nil)); got != 1 {
				t.Errorf("%d turns left, want 1: a refused turn is not played", got)
			}
		})
	}
}

func TestExpectationsThatHold(t *testing.T) {
	m := scripted.New(&spec.Cassette{Agents: map[string][]spec.Turn{"a": {{Text: "ok", Expect: &spec.Expect{Contains: "last",
		ToolResult: &spec.ExpectResult{Of: "c1", Contains: "oma", IsError: ptr(true)}}}}}}, "c.yaml", nil)
	if got := ask(t, m, "a", "T", result("c1", "old", false), result("c1", "oma", true), result("c2", "the last", false)); got != "ok" {
		t.Error(got)
	}
}

func TestExpectedAttachments(t *testing.T) {
	turn := spec.Turn{Text: "ok", Expect: &spec.Expect{ToolResult: &spec.ExpectResult{Of: "c1", Image: "image/png", File: "text/csv"}}}
	m := scripted.New(&spec.Cassette{Agents: map[string][]spec.Turn{"a": {turn}}}, "c.yaml", nil)
	both := attached(result("c1", "", false))
	both.Attachments = append(both.Attachments, spec.Attachment{Type: "file", MediaType: "text/csv", Filename: "f", URL: "https://h/f"})
	if got := ask(t, m, "a", "T", both); got != "ok" {
		t.Error(got)
	}
}

func TestExactCassetteNoticesOtherResults(t *testing.T) {
	recorded := &spec.ModelRequest{AgentName: "a", TaskTitle: "T", Model: "m", Messages: []spec.Message{result("c1", "12:00", false)}}
	for match, want := range map[string]string{"": "1", "shape": "1", "exact": "messages changed"} {
		turn := spec.Turn{Text: "1", Request: scripted.RequestDigest(recorded, match)}
		c := &spec.Cassette{Match: match, Agents: map[string][]spec.Turn{"a": {turn, turn}}}
		m := scripted.New(c, "c.yaml", nil)
		if got := ask(t, m, "a", "T", result("c1", "13:00", false)); !strings.Contains(got, want) {
			t.Errorf("match %q, other result: %q, want %q", match, got, want)
		}
		if got := ask(t, m, "a", "T", result("c1", "12:00", false)); got != "1" {
			t.Errorf("match %q, same result: %q", match, got)
		}
	}
}

func TestUnused(t *testing.T) {
	m := scripted.New(&spec.Cassette{Agents: map[string][]spec.Turn{"b": texts("1"), "a": texts("1", "2")},
		Tasks: map[string][]spec.Turn{"a task": texts("1")}}, "c.yaml", nil)
	ask(t, m, "a", "")
	var got []string
	for _, err := range m.Unused(nil) {
		if !errors.Is(err, runtime.ErrCassette) {
			t.Errorf("%v does not wrap ErrCassette", err)
		}
		got = append(got, err.Error())
	}
	want := []string{"cassette c.yaml: agents.a[1]: turn was never played", "cassette c.yaml: agents.b[0]: turn was never played",
		`cassette c.yaml: tasks["a task"][0]: turn was never played`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNilCassetteRefuses(t *testing.T) {
	want := `cassette c.yaml: no turns for agent "a" or task "T": expected none, the cassette is empty`
	if got := ask(t, scripted.New(nil, "c.yaml", nil), "a", "T"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFaults(t *testing.T) {
	for status, want := range map[int]spec.ErrorInfo{
		0:   {Message: "the connection broke", Retryable: true},
		400: {Message: "bad request"},
		401: {Message: "unauthorized"},
		408: {Message: "request timeout", Retryable: true},
		409: {Message: "conflict", Retryable: true},
		429: {Message: "too many requests", Retryable: true},
		500: {Message: "internal server error", Retryable: true},
		503: {Message: "service unavailable", Retryable: true},
	} {
		want.Kind, want.Provider, want.HTTPStatus = "provider", "scripted", status
		m := scripted.New(&spec.Cassette{Agents: map[string][]spec.Turn{"a": {
			{Error: &spec.TurnError{Status: status, RetryAfter: spec.Duration(time.Second)}, Usage: &spec.Usage{Input: 3}}, {Text: "then"}}}}, "c.yaml", nil)
		_, err := m.Complete(t.Context(), &spec.ModelRequest{AgentName: "a"})
		var pe *runtime.ProviderError
		if !errors.As(err, &pe) {
			t.Fatalf("%d: %v is no provider error", status, err)
		}
		if diff := cmp.Diff(&runtime.ProviderError{Info: want, RetryAfter: time.Second, Usage: &spec.Usage{Input: 3}}, pe); diff != "" {
			t.Errorf("%d (-want +got):\n%s", status, diff)
		}
		if got := ask(t, m, "a", ""); got != "then" {
			t.Errorf("%d: a retry played %q", status, got)
		}
	}
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := scripted.New(&spec.Cassette{Agents: map[string][]spec.Turn{"a": {{Text: "late", Delay: spec.Duration(time.Hour)}}}}, "c.yaml", nil)
		start := time.Now()
		if got := ask(t, m, "a", ""); got != "late" || time.Since(start) != time.Hour {
			t.Errorf("%q after %s", got, time.Since(start))
		}
	})
}

func TestCancelledDelayReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := scripted.New(&spec.Cassette{Agents: map[string][]spec.Turn{"a": {{Delay: spec.Duration(time.Hour)}, {Text: "next"}}}}, "c.yaml", nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		if got, err := m.Complete(ctx, &spec.ModelRequest{AgentName: "a"}); got != nil || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
			t.Errorf("answer %+v, error %v after %s", got, err, time.Since(start))
		}
		if got, err := m.Complete(ctx, &spec.ModelRequest{AgentName: "a"}); got != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ended context: answer %+v, error %v", got, err)
		}
		if got := ask(t, m, "a", ""); got != "next" {
			t.Errorf("an ended context took a turn: %q", got)
		}
	})
}

func TestConcurrentTasksKeepTheirOrder(t *testing.T) {
	const tasks, turns = 8, 50
	c := &spec.Cassette{Tasks: map[string][]spec.Turn{}}
	for k := range tasks {
		for i := range turns {
			name := fmt.Sprint("T", k)
			c.Tasks[name] = append(c.Tasks[name], spec.Turn{Text: fmt.Sprint(name, "/", i)})
		}
	}
	m := scripted.New(c, "c.yaml", nil)
	var wg sync.WaitGroup
	for k := range tasks {
		wg.Go(func() {
			for i := range turns {
				name := fmt.Sprint("T", k)
				if got, want := ask(t, m, "a", name), fmt.Sprint(name, "/", i); got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			}
		})
	}
	wg.Wait()
	if errs := m.Unused(nil); len(errs) != 0 {
		t.Error(errs)
	}
}

// conversation is a request after n tool calls.
func conversation(n int) *spec.ModelRequest {
	req := &spec.ModelRequest{AgentName: "a", TaskTitle: "T", Model: "m", System: strings.Repeat("You review code. ", 50),
		Messages: []spec.Message{{Role: "user", Text: strings.Repeat("Look at the diff. ", 50)}},
		Tools:    []spec.ToolInfo{{Name: "file_read", InputSchema: spec.Schema(`{"type":"object","properties":{"path":{"type":"string"}}}`)}}}
	for i := range n {
		id := fmt.Sprint("c", i)
		req.Messages = append(req.Messages,
			spec.Message{Role: "assistant", ToolCalls: []spec.ToolCall{{ID: id, Name: "file_read", Arguments: `{"path":"README.md"}`}}},
			result(id, strings.Repeat("some text of a file ", 200), false))
	}
	return req
}

func BenchmarkComplete(b *testing.B) {
	req := conversation(20)
	turn := spec.Turn{Text: "ok", Request: scripted.RequestDigest(req, "")}
	c := &spec.Cassette{Agents: map[string][]spec.Turn{"a": {turn}}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := scripted.New(c, "c.yaml", nil).Complete(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRequestDigest(b *testing.B) {
	for _, match := range []string{"shape", "exact"} {
		for _, n := range []int{1, 100} {
			req := conversation(n)
			b.Run(fmt.Sprint(match, "/", n), func(b *testing.B) {
				for b.Loop() {
					scripted.RequestDigest(req, match)
				}
			})
		}
	}
}

// A turn that an earlier attempt has had the answer of is neither played again nor left over.
func TestSkip(t *testing.T) {
	m := scripted.New(&spec.Cassette{Agents: map[string][]spec.Turn{"a": {{Text: "one"}, {Text: "two"}, {Text: "three"}}}}, "c.yaml", nil)
	req := &spec.ModelRequest{AgentName: "a"}
	m.Skip(req, 2)
	m.Skip(&spec.ModelRequest{AgentName: "nobody"}, 1)
	if r, err := m.Complete(t.Context(), req); err != nil || r.Message.Text != "three" {
		t.Errorf("%+v, %v", r, err)
	}
	if errs := m.Unused(nil); len(errs) > 0 {
		t.Error(errs)
	}
}
