//go:build real

package openai

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/testdata/real/parts"
)

var weather = spec.ToolInfo{
	Name: "get_weather", Description: "the weather in a city",
	InputSchema: spec.Schema(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
}

var clock = spec.ToolInfo{Name: "get_time", InputSchema: spec.Schema(`{"type":"object","properties":{"zone":{"type":"string"}}}`)}

func user(model, text string, tools ...spec.ToolInfo) *spec.ModelRequest {
	return &spec.ModelRequest{Turn: 1, Model: model, System: "be brief", Tools: tools,
		Messages: []spec.Message{{Role: spec.RoleUser, Text: text}}}
}

// complete makes a call that must succeed.
func complete(t *testing.T, m *Model, req *spec.ModelRequest) *spec.ModelResponse {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	resp, err := m.Complete(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// listening gives a client that lets a test follow the bodies of answers as they arrive.
func listening(t *testing.T, hear func(p []byte)) *http.Client {
	wire := &http.Transport{}
	t.Cleanup(wire.CloseIdleConnections)
	return &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		resp, err := wire.RoundTrip(r)
		if err == nil {
			resp.Body = &overheard{resp.Body, hear}
		}
		return resp, err
	})}
}

// answered adds an answer and a result for each of its calls to the conversation.
func answered(req *spec.ModelRequest, msg spec.Message) *spec.ModelRequest {
	next := *req
	next.Turn++
	next.Messages = append(append([]spec.Message{}, req.Messages...), msg)
	for _, c := range msg.ToolCalls {
		next.Messages = append(next.Messages, spec.Message{Role: spec.RoleTool, ToolCallID: c.ID, ToolName: c.Name, Text: "3 degrees"})
	}
	return &next
}

func TestRealAimock(t *testing.T) {
	base := parts.Aimock(t, "testdata/real/aimock.json")
	modes(t, func(t *testing.T, stream bool) {
		m := New(Options{Name: "local", BaseURL: base, APIKey: "key-0000", Stream: stream})
		t.Run("text and usage", func(t *testing.T) {
			got := complete(t, m, user("gpt-4o", "hello"))
			want := &spec.ModelResponse{Message: spec.Message{Role: "assistant", Text: "Hello yourself."}, Finish: spec.FinishStop,
				Usage: &spec.Usage{Input: 9, Output: 3}, Model: "gpt-4o"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
		t.Run("a call and its result", func(t *testing.T) {
			req := user("gpt-4o", "one call", weather)
			got := complete(t, m, req)
			want := []spec.ToolCall{{ID: "call_w", Name: "get_weather", Arguments: `{"city":"Oslo"}`}}
			if diff := cmp.Diff(want, got.Message.ToolCalls); diff != "" || got.Finish != spec.FinishStop {
				t.Fatalf("finish %q, calls (-want +got):\n%s", got.Finish, diff)
			}
			if diff := cmp.Diff(&spec.Usage{Input: 120, Output: 30}, got.Usage); diff != "" {
				t.Errorf("usage (-want +got):\n%s", diff)
			}
			if last := complete(t, m, answered(req, got.Message)); last.Message.Text != "Done with the tools." {
				t.Errorf("answer is %q", last.Message.Text)
			}
		})
		t.Run("parallel calls", func(t *testing.T) {
			got := complete(t, m, user("gpt-4o", "two calls", weather, clock))
			want := []spec.ToolCall{{ID: "call_a", Name: "get_weather", Arguments: `{"city":"Bergen"}`}, {ID: "call_b", Name: "get_time", Arguments: `{"zone":"CET"}`}}
			if diff := cmp.Diff(want, got.Message.ToolCalls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
		t.Run("OA-05 reasoning", func(t *testing.T) {
			got := complete(t, m, user("deepseek-reasoner", "think"))
			if got.Message.Text != "42" || got.Message.Reasoning != "six times seven" {
				t.Errorf("answer is %+v", got.Message)
			}
		})
		t.Run("OA-07 length", func(t *testing.T) {
			if got := complete(t, m, user("gpt-4o", "long")); got.Finish != spec.FinishLength {
				t.Errorf("finish is %q", got.Finish)
			}
		})
		t.Run("503 every time", func(t *testing.T) {
			for range 3 {
				_, err := m.Complete(t.Context(), user("gpt-4o", "broken"))
				want := spec.ErrorInfo{Kind: "provider", Code: "server_error", Message: "upstream is down", Retryable: true, HTTPStatus: 503, Provider: "local"}
				if diff := cmp.Diff(want, providerError(t, err).Info); diff != "" {
					t.Errorf("info (-want +got):\n%s", diff)
				}
			}
		})
		t.Run("no such fixture", func(t *testing.T) {
			_, err := m.Complete(t.Context(), user("gpt-4o", "anything else"))
			if pe := providerError(t, err); pe.Info.HTTPStatus == 0 || pe.Info.Message == "" {
				t.Errorf("error is %+v", pe.Info)
			}
		})
	})
}

// TestRealAimockBusy has a server of its own: it counts requests.
func TestRealAimockBusy(t *testing.T) {
	m := New(Options{Name: "local", BaseURL: parts.Aimock(t, "testdata/real/aimock.json"), Stream: true})
	_, err := m.Complete(t.Context(), user("gpt-4o", "busy"))
	pe := providerError(t, err)
	if pe.Info.HTTPStatus != 429 || !pe.Info.Retryable || pe.Info.Message != "slow down" {
		t.Errorf("error is %+v", pe.Info)
	}
	if got := complete(t, m, user("gpt-4o", "busy")); got.Message.Text != "free again" {
		t.Errorf("answer is %q", got.Message.Text)
	}
}

func TestRealAimockTornStream(t *testing.T) {
	var heard strings.Builder
	m := New(Options{Name: "local", BaseURL: parts.Aimock(t, "testdata/real/aimock.json"), Stream: true,
		HTTPClient: listening(t, func(p []byte) { heard.Write(p) })})
	resp, err := m.Complete(t.Context(), user("gpt-4o", "torn"))
	pe := providerError(t, err)
	if resp != nil || pe.Info.Code != codeIncomplete || !pe.Info.Retryable {
		t.Errorf("OA-08 answer %+v, error %+v", resp, pe.Info)
	}
	if got := heard.String(); !strings.Contains(got, `"content":"one `) || strings.Contains(got, "[DONE]") {
		t.Errorf("heard %q, want the beginning alone", got)
	}
}

func TestRealAimockCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var heard strings.Builder
	m := New(Options{Name: "local", BaseURL: parts.Aimock(t, "testdata/real/aimock.json"), Stream: true,
		HTTPClient: listening(t, func(p []byte) {
			if heard.Write(p); strings.Contains(heard.String(), `"content":"one `) {
				cancel()
			}
		})})
	within(t, func() {
		resp, err := m.Complete(ctx, user("gpt-4o", "slow"))
		if resp != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("answer %+v, error %v, want context.Canceled alone", resp, err)
		}
	})
	if got := heard.String(); !strings.Contains(got, `"content":"one `) || strings.Contains(got, "[DONE]") {
		t.Errorf("heard %q, want the beginning alone", got)
	}
}

func TestRealOllama(t *testing.T) {
	base := parts.Ollama(t)
	modes(t, func(t *testing.T, stream bool) {
		m := New(Options{Name: "local", BaseURL: base, Stream: stream})
		t.Run("text and usage", func(t *testing.T) {
			got := complete(t, m, user("tiny", "hello"))
			if got.Message.Text != " The review found no defects." || got.Finish != spec.FinishStop || got.Model != "tiny" {
				t.Errorf("answer is %+v", got)
			}
			if got.Usage == nil || got.Usage.Input == 0 || got.Usage.Output != 7 {
				t.Errorf("usage is %+v", got.Usage)
			}
		})
		t.Run("a call and its result", func(t *testing.T) {
			req := user("tiny", "hello", weather)
			got := complete(t, m, req)
			calls := got.Message.ToolCalls
			if len(calls) != 1 || calls[0].Name != "get_weather" || calls[0].Arguments != `{"city":"Oslo"}` || calls[0].ID == "" || got.Finish != spec.FinishStop {
				t.Fatalf("answer is %+v", got)
			}
			if last := complete(t, m, answered(req, got.Message)); last.Message.Text != " Oslo has 3 degrees" {
				t.Errorf("answer is %q", last.Message.Text)
			}
		})
		t.Run("parallel calls", func(t *testing.T) {
			got := complete(t, m, user("tiny", "hello", weather, clock))
			calls := got.Message.ToolCalls
			if len(calls) != 2 || calls[0].ID == calls[1].ID {
				t.Fatalf("calls are %+v", calls)
			}
			calls[0].ID, calls[1].ID = "", ""
			want := []spec.ToolCall{{Name: "get_weather", Arguments: `{"city":"Bergen"}`}, {Name: "get_time", Arguments: `{"zone":"CET"}`}}
			if diff := cmp.Diff(want, calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
		t.Run("OA-07 length", func(t *testing.T) {
			req := user("tiny", "hello")
			req.MaxOutputTokens = 2
			got := complete(t, m, req)
			if got.Finish != spec.FinishLength || got.Message.Text != " The review" {
				t.Errorf("answer is %+v", got)
			}
		})
		t.Run("unknown model", func(t *testing.T) {
			_, err := m.Complete(t.Context(), user("nope", "hello"))
			pe := providerError(t, err)
			if pe.Info.HTTPStatus != 404 || pe.Info.Retryable || !strings.Contains(pe.Info.Message, `"nope" not found`) {
				t.Errorf("error is %+v", pe.Info)
			}
		})
	})
}
