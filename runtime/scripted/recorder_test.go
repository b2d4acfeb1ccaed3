package scripted_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/scripted"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/redact"
)

// modelFunc is a model for one test.
type modelFunc func(ctx context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error)

func (f modelFunc) Complete(ctx context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
	return f(ctx, req)
}

// queue answers with the given answers or errors, in order.
func queue(answers ...any) modelFunc {
	return func(context.Context, *spec.ModelRequest) (*spec.ModelResponse, error) {
		next := answers[0]
		answers = answers[1:]
		if err, ok := next.(error); ok {
			return nil, err
		}
		return next.(*spec.ModelResponse), nil
	}
}

func says(text string, calls ...spec.ToolCall) *spec.ModelResponse {
	return &spec.ModelResponse{Message: spec.Message{Role: "assistant", Text: text, ToolCalls: calls}, Finish: spec.FinishStop,
		Usage: &spec.Usage{Input: 10, Output: 2}, Model: "m-1"}
}

const secret = "hunter2hunter2"

// review drives one task like an agent loop: three attempts of turn one, a tool call whose result is read, an answer
// that the next task is handed. It gives every answer and error it saw.
func review(t *testing.T, m runtime.Model, clock string) []any {
	t.Helper()
	var seen []any
	complete := func(req *spec.ModelRequest) *spec.ModelResponse {
		resp, err := m.Complete(t.Context(), req)
		var pe *runtime.ProviderError
		if errors.As(err, &pe) {
			seen = append(seen, []any{pe.Info.HTTPStatus, pe.Info.Message, pe.Info.Retryable, pe.RetryAfter, pe.Usage})
		} else if err != nil {
			t.Fatal(err)
		} else {
			seen = append(seen, resp)
		}
		return resp
	}
	req := &spec.ModelRequest{AgentName: "a", TaskTitle: "Review", Model: "m", System: "password: " + secret,
		Messages: []spec.Message{{Role: "user", Text: "review it"}}}
	complete(req)
	complete(req)
	resp := complete(req)
	req.Messages = append(req.Messages, resp.Message)
	for _, c := range resp.Message.ToolCalls {
		req.Messages = append(req.Messages, result(c.ID, "it is "+clock, false))
	}
	resp = complete(req)
	complete(&spec.ModelRequest{AgentName: "b", TaskTitle: "Sum up", Model: "m",
		Messages: []spec.Message{{Role: "user", Text: "sum up: " + resp.Message.Text}}})
	return seen
}

func TestRecordingPlaysAgain(t *testing.T) {
	live := queue(
		&runtime.ProviderError{Info: spec.ErrorInfo{HTTPStatus: 429, Message: "slow down", Retryable: true}, RetryAfter: time.Second, Usage: &spec.Usage{Input: 1}},
		&runtime.ProviderError{Info: spec.ErrorInfo{HTTPStatus: 200, Message: "stream broke", Retryable: true}},
		says("", spec.ToolCall{ID: "c1", Name: "bash", Arguments: `{"command": "login ` + secret + `", "n": 5.0, "password": "x"}`},
			spec.ToolCall{ID: "c2", Name: "bash", Arguments: `{"z":1,"a":"<b>"}`}, spec.ToolCall{ID: "c3", Name: "bash", Arguments: `{"a":`},
			spec.ToolCall{ID: "c4", Name: "bash"}),
		says("the password is "+secret), says("done"))
	r := scripted.NewRecorder(redact.New(redact.Secret{Name: "S", Value: secret}).Text)
	recorded := review(t, r.Model(live), "12:00")
	var written bytes.Buffer
	enc := json.NewEncoder(&written)
	enc.SetEscapeHTML(false) // keeps the text of inputs
	if err := enc.Encode(r.Cassette("review")); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(written.String(), secret) {
		t.Errorf("the cassette holds a secret: %s", written.String())
	}
	var c spec.Cassette
	if err := json.Unmarshal(written.Bytes(), &c); err != nil {
		t.Fatal(err)
	}
	m := scripted.New(&c, "review.yaml", nil)
	played := review(t, m, "13:37")

	calls := recorded[2].(*spec.ModelResponse).Message.ToolCalls
	calls[0].Arguments = `{"command":"login [redacted]","n":5,"password":"[redacted]"}`
	recorded[3].(*spec.ModelResponse).Message.Text = "the password is [redacted]"
	recorded[1].([]any)[0] = 0 // a broken answer with status 200 is played as a broken connection
	if diff := cmp.Diff(recorded, played); diff != "" {
		t.Errorf("recorded against played (-want +got):\n%s", diff)
	}
	if errs := m.Unused(nil); errs != nil {
		t.Error(errs)
	}
}

func TestCassetteOfARecording(t *testing.T) {
	r := scripted.NewRecorder(nil)
	m := r.Model(queue(says("1", spec.ToolCall{ID: "c", Name: "t", Arguments: `{"b":1,"a":2}`}, spec.ToolCall{ID: "d", Name: "t", Arguments: `{ }`}),
		errors.New("dial tcp: token=abc")))
	ask(t, m, "a", "T")
	ask(t, m, "a", "T")
	digest := scripted.RequestDigest(&spec.ModelRequest{AgentName: "a", TaskTitle: "T", Model: "m"}, "")
	want := &spec.Cassette{Envelope: spec.Envelope{APIVersion: "oma/v1", Kind: "Cassette"}, Name: "n",
		Agents: map[string][]spec.Turn{"a": {
			{Request: digest, Text: "1", Usage: &spec.Usage{Input: 10, Output: 2}, Model: "m-1", ToolCalls: []spec.CassetteCall{
				{ID: "c", Name: "t", Input: json.RawMessage(`{"b":1,"a":2}`)}, {ID: "d", Name: "t", Arguments: ptr(`{ }`)}}},
			{Request: digest, Error: &spec.TurnError{Message: "dial tcp: token=[redacted]"}},
		}}}
	if diff := cmp.Diff(want, r.Cassette("n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Answer 33, from the other side: where turns are put is where they are looked for.
func TestTasksOfOneAgentAreRecordedApart(t *testing.T) {
	n := 0
	r := scripted.NewRecorder(nil)
	counting := r.Model(modelFunc(func(context.Context, *spec.ModelRequest) (*spec.ModelResponse, error) {
		n++
		return says(fmt.Sprint(n)), nil
	}))
	other := r.Model(modelFunc(func(context.Context, *spec.ModelRequest) (*spec.ModelResponse, error) { return says("other"), nil }))
	requests := [][2]string{{"a", "T"}, {"b", "T"}, {"c", "V"}, {"a", "U"}, {"a", "T"}, {"d", ""}, {"d", "W"}, {"d", ""}}
	var recorded []string
	for _, q := range requests {
		recorded = append(recorded, ask(t, counting, q[0], q[1]))
	}
	recorded = append(recorded, ask(t, other, "e", "X"))
	c := r.Cassette("")
	got := map[string][]string{}
	for name, turns := range c.Agents {
		for _, turn := range turns {
			got["agent "+name] = append(got["agent "+name], turn.Text)
		}
	}
	for name, turns := range c.Tasks {
		for _, turn := range turns {
			got["task "+name] = append(got["task "+name], turn.Text)
		}
	}
	want := map[string][]string{"task T": {"1", "2", "5"}, "task U": {"4"}, "agent c": {"3"}, "agent d": {"6", "8"}, "task W": {"7"}, "agent e": {"other"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	m := scripted.New(c, "c.yaml", nil)
	var played []string
	for _, q := range append(requests, [2]string{"e", "X"}) {
		played = append(played, ask(t, m, q[0], q[1]))
	}
	if diff := cmp.Diff(recorded, played); diff != "" {
		t.Errorf("recorded against played (-want +got):\n%s", diff)
	}
}

func TestEndedAndRefusedCallsAreNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := scripted.NewRecorder(nil)
		m := r.Model(modelFunc(func(ctx context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
			if req.TaskTitle == "refused" {
				return nil, fmt.Errorf("%w c.yaml: no", runtime.ErrCassette)
			}
			<-ctx.Done()
			return nil, &runtime.ProviderError{Info: spec.ErrorInfo{Message: ctx.Err().Error()}}
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, first := m.Complete(ctx, &spec.ModelRequest{AgentName: "a"})
		_, second := m.Complete(t.Context(), &spec.ModelRequest{AgentName: "a", TaskTitle: "refused"})
		if first == nil || !errors.Is(second, runtime.ErrCassette) {
			t.Errorf("errors %v, %v", first, second)
		}
		if c := r.Cassette(""); c.Agents != nil || c.Tasks != nil {
			t.Errorf("recorded %v %v", c.Agents, c.Tasks)
		}
	})
}
