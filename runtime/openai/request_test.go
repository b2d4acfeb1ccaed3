package openai

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

func fine(w http.ResponseWriter, r *http.Request) {
	events(delta(`"content":"a"`, "stop"), done)(w, r)
}

func TestRequest(t *testing.T) {
	cold := 0.0
	req := &spec.ModelRequest{
		Turn: 2, Model: "m", System: "be brief", MaxOutputTokens: 100, Temperature: &cold,
		Messages: []spec.Message{
			{Role: spec.RoleUser, Text: "go"},
			{Role: spec.RoleAssistant, Reasoning: "hm", ToolCalls: []spec.ToolCall{{ID: "c1", Name: "now"}, {ID: "c2", Name: "now", Arguments: " null "}, {ID: "c3", Name: "add", Arguments: `{"a":1}`}}},
			{Role: spec.RoleTool, ToolCallID: "c1", ToolName: "now", Text: "12:00"},
			{Role: spec.RoleTool, ToolCallID: "c2", ToolName: "now", Text: "", IsError: true},
			{Role: spec.RoleAssistant, Text: ""},
			{Role: spec.RoleAssistant, Text: "both", ToolCalls: []spec.ToolCall{{ID: "c4", Name: "now", Arguments: "{"}}},
		},
		Tools: []spec.ToolInfo{
			{Name: "add", Description: "adds", InputSchema: spec.Schema(`{"type":"object","properties":{"z":{"const":12345678901234567890},"a":{}}}`)},
			{Name: "now"},
		},
	}
	s := serve(t, fine)
	m := New(Options{Name: "local", BaseURL: s.URL + "/v1/?api-version=1", APIKey: "key-0000", Stream: true, UserAgent: "oma/test"})
	if _, err := m.Complete(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	call := func(id, name, args string) string {
		return fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}`, id, name, args)
	}
	want := `{"model":"m","stream":true,"stream_options":{"include_usage":true},"max_tokens":100,"temperature":0,
		"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"go"},
		{"role":"assistant","tool_calls":[` + call("c1", "now", "{}") + "," + call("c2", "now", "{}") + "," + call("c3", "add", `{"a":1}`) + `]},
		{"role":"tool","tool_call_id":"c1","content":"12:00"},{"role":"tool","tool_call_id":"c2","content":""},
		{"role":"assistant","content":""},
		{"role":"assistant","content":"both","tool_calls":[` + call("c4", "now", "{") + `]}],
		"tools":[{"type":"function","function":{"name":"add","description":"adds","parameters":{"type":"object","properties":{"z":{"const":12345678901234567890},"a":{}}}}},
		{"type":"function","function":{"name":"now","parameters":{"type":"object","properties":{}}}}]}`
	var wanted map[string]any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted, s.sent(t, 0)); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if !strings.Contains(s.requests[0], `{"z":{"const":12345678901234567890},"a":{}}`) {
		t.Errorf("schema is not sent as written: %s", s.requests[0])
	}
	h := s.headers[0]
	if h.Get("Authorization") != "Bearer key-0000" || h.Get("User-Agent") != "oma/test" {
		t.Errorf("headers are %v", h)
	}
}

func TestRequestOfWholeAnswer(t *testing.T) {
	s := serve(t, whole(answer(`"content":"a"`, "stop", "")))
	if _, err := model(s, false).Complete(t.Context(), ask()); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"model": "m", "messages": []any{map[string]any{"role": "user", "content": "hello"}}}
	if diff := cmp.Diff(want, s.sent(t, 0)); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if a, ok := s.headers[0]["Authorization"]; ok {
		t.Errorf("without a key, Authorization is %q", a)
	}
}

func TestSameRequestSameBytes(t *testing.T) {
	s := serve(t, fine)
	m := model(s, true)
	for range 5 {
		if _, err := m.Complete(t.Context(), ask()); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range s.requests[1:] {
		if r != s.requests[0] {
			t.Errorf("request differs:\n%s\n%s", s.requests[0], r)
		}
	}
}

// TestEnvironmentIsNotRead: the SDK's own client takes address, key, organisation and headers from these.
func TestEnvironmentIsNotRead(t *testing.T) {
	thief := serve(t, fine)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "OPENAI_BASE_URL"} {
		t.Setenv(name, thief.URL)
	}
	t.Setenv("OPENAI_API_KEY", "from-env")
	t.Setenv("OPENAI_ADMIN_KEY", "from-env")
	t.Setenv("OPENAI_ORG_ID", "from-env")
	t.Setenv("OPENAI_PROJECT_ID", "from-env")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Custom: from-env")
	s := serve(t, fine)
	if _, err := model(s, true).Complete(t.Context(), ask()); err != nil {
		t.Fatal(err)
	}
	if all := fmt.Sprint(s.headers[0]); strings.Contains(all, "from-env") {
		t.Errorf("headers are %s", all)
	}
	if thief.count() != 0 {
		t.Error("the environment moved the request")
	}
	for _, given := range []*http.Client{nil, {}} { // a loopback address would not go through a proxy anyway
		if New(Options{HTTPClient: given}).client().Transport.(*http.Transport).Proxy != nil {
			t.Error("the client has a proxy")
		}
	}
}

func TestOutputLimitNames(t *testing.T) {
	for host, name := range map[string]string{
		"https://api.openai.com/v1":     "max_completion_tokens",
		"https://eu.api.openai.com/v1":  "max_completion_tokens",
		"https://api.openai.com.evil/v": "max_tokens",
		"http://127.0.0.1:11434/v1":     "max_tokens",
	} {
		var got map[string]any
		catch := roundTrip(func(r *http.Request) (*http.Response, error) {
			err := json.NewDecoder(r.Body).Decode(&got)
			rec := httptest.NewRecorder()
			whole(answer(`"content":"a"`, "stop", ""))(rec, r)
			return rec.Result(), err
		})
		req := ask()
		req.MaxOutputTokens = 7
		m := New(Options{Name: "local", BaseURL: host, HTTPClient: &http.Client{Transport: catch}})
		if _, err := m.Complete(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		delete(got, "model")
		delete(got, "messages")
		if diff := cmp.Diff(map[string]any{name: 7.0}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", host, diff)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestEchoReasoning(t *testing.T) {
	calls := []spec.ToolCall{{ID: "c", Name: "now", Arguments: "{}"}}
	result := spec.Message{Role: spec.RoleTool, ToolCallID: "c", Text: "12:00"}
	req := &spec.ModelRequest{Model: "m", Messages: []spec.Message{
		{Role: spec.RoleUser, Text: "one"},
		{Role: spec.RoleAssistant, Reasoning: "old", ToolCalls: calls}, result,
		{Role: spec.RoleAssistant, Reasoning: "older answer", Text: "done"},
		{Role: spec.RoleUser, Text: "two"},
		{Role: spec.RoleAssistant, Reasoning: "first", ToolCalls: calls}, result,
		{Role: spec.RoleAssistant, ToolCalls: calls}, result,
		{Role: spec.RoleAssistant, Reasoning: "second", Text: "so", ToolCalls: calls}, result,
	}}
	for _, echo := range []bool{true, false} {
		t.Run(fmt.Sprint(echo), func(t *testing.T) {
			s := serve(t, fine)
			m := New(Options{Name: "local", BaseURL: s.URL, EchoReasoning: echo, Stream: true})
			if _, err := m.Complete(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			var got []any
			for _, msg := range s.sent(t, 0)["messages"].([]any) {
				got = append(got, msg.(map[string]any)["reasoning_content"])
			}
			want := make([]any, len(req.Messages))
			if echo {
				want[5], want[9] = "first", "second"
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("OA-05 reasoning_content (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStreamOptionsRefused(t *testing.T) {
	for code, refusal := range map[int]string{
		400: `{"error":{"message":"Unknown parameter","param":"stream_options"}}`,
		422: `{"detail":[{"loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}`,
	} {
		s := serve(t, nil)
		s.Config.Handler = wrap(s, func(w http.ResponseWriter, r *http.Request, body string) {
			if strings.Contains(body, "stream_options") {
				status(code, refusal)(w, r)
				return
			}
			fine(w, r)
		})
		m := model(s, true)
		for range 2 {
			if _, err := m.Complete(t.Context(), ask()); err != nil {
				t.Fatal(err)
			}
		}
		if s.count() != 3 { // refused, then twice without
			t.Errorf("%d: %d requests, want 3", code, s.count())
		}
	}
}

func TestStreamOptionsRefusedForGood(t *testing.T) {
	s := serve(t, status(400, `{"error":{"message":"stream_options? no"}}`))
	_, err := model(s, true).Complete(t.Context(), ask())
	if pe := providerError(t, err); s.count() != 2 || pe.Info.HTTPStatus != 400 {
		t.Errorf("%d requests and %v, want 2 and HTTP 400", s.count(), err)
	}
}

func wrap(s *server, h func(http.ResponseWriter, *http.Request, string)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.requests = append(s.requests, string(b))
		s.mu.Unlock()
		h(w, r, string(b))
	})
}

func TestBadToolSchema(t *testing.T) {
	s := serve(t, fine)
	req := ask()
	req.Tools = []spec.ToolInfo{{Name: "add", InputSchema: spec.Schema(`{`)}}
	_, err := model(s, true).Complete(t.Context(), req)
	if pe := providerError(t, err); pe.Info.Code != codeBadRequest || pe.Info.Retryable || s.count() != 0 {
		t.Errorf("error is %+v after %d requests", pe.Info, s.count())
	}
}

// TestConnectionsAreReused: a streamed turn must leave its connection usable, or every turn pays for a new handshake.
func TestConnectionsAreReused(t *testing.T) {
	modes(t, func(t *testing.T, stream bool) {
		h := http.HandlerFunc(fine)
		if !stream {
			h = whole(answer(`"content":"a"`, "stop", ""))
		}
		var opened atomic.Int32
		s := httptest.NewUnstartedServer(h)
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				opened.Add(1)
			}
		}
		s.Start()
		defer s.Close()
		m := New(Options{Name: "local", BaseURL: s.URL, Stream: stream})
		for range 5 {
			if _, err := m.Complete(t.Context(), ask()); err != nil {
				t.Fatal(err)
			}
		}
		if n := opened.Load(); n != 1 {
			t.Errorf("5 turns opened %d connections, want 1", n)
		}
	})
}

// untilEnd says whether a body was read to its end, which is what frees a connection.
type untilEnd struct {
	io.Reader
	reached bool
}

func (u *untilEnd) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	u.reached = u.reached || err == io.EOF
	return n, err
}

func (u *untilEnd) Close() error { return nil }

func TestStreamIsReadToItsEnd(t *testing.T) {
	rec := httptest.NewRecorder()
	fine(rec, nil)
	body := &untilEnd{Reader: rec.Body} // gives the end in a read of its own, after the end mark
	m := New(Options{Name: "local", Stream: true, HTTPClient: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: rec.Header(), Body: body}, nil
	})}})
	if _, err := m.Complete(t.Context(), ask()); err != nil || !body.reached {
		t.Errorf("error %v, end reached: %v", err, body.reached)
	}
}

func TestDrainGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		began := time.Now()
		drain(r, func() { w.CloseWithError(io.ErrClosedPipe) })
		if d := time.Since(began); d != drainTime {
			t.Errorf("waited %s, want %s", d, drainTime)
		}
	})
}

func TestServerThatHoldsOnAfterTheEndMark(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fine(w, r)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	within(t, func() {
		got, err := model(s, true).Complete(t.Context(), ask())
		if err != nil || got.Message.Text != "a" {
			t.Errorf("answer %+v, error %v", got, err)
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	s := serve(t, fine)
	m := model(s, true)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if got, err := m.Complete(t.Context(), ask()); err != nil || got.Message.Text != "a" {
				t.Errorf("answer %+v, error %v", got, err)
			}
		})
	}
	wg.Wait()
}
