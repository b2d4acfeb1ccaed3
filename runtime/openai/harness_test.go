package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

// server answers with one handler and keeps the bodies it was sent.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
	headers  []http.Header
}

func serve(t testing.TB, h http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.requests = append(s.requests, string(body))
		s.headers = append(s.headers, r.Header.Clone())
		s.mu.Unlock()
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) sent(t *testing.T, n int) map[string]any {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if n >= len(s.requests) {
		t.Fatalf("%d requests were made, want number %d", len(s.requests), n+1)
	}
	var v map[string]any
	if err := json.Unmarshal([]byte(s.requests[n]), &v); err != nil {
		t.Fatalf("request %d is no JSON: %v", n+1, err)
	}
	return v
}

func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

// events answers with a stream, each event flushed on its own. It adds no end mark.
func events(data ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for _, d := range data {
			fmt.Fprintf(w, "data: %s\n\n", d)
			w.(http.Flusher).Flush()
		}
	}
}

func whole(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, body)
	}
}

func status(code int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		io.WriteString(w, body)
	}
}

// delta is an event with one choice; finish empty: null.
func delta(fields, finish string) string {
	return fmt.Sprintf(`{"model":"m-1","choices":[{"index":0,"delta":{%s},"finish_reason":%s}]}`, fields, orNull(finish))
}

func answer(fields, finish, rest string) string {
	return fmt.Sprintf(`{"model":"m-1","choices":[{"index":0,"message":{"role":"assistant",%s},"finish_reason":%s}]%s}`, fields, orNull(finish), rest)
}

func orNull(s string) string {
	if s == "" {
		return "null"
	}
	return `"` + s + `"`
}

func model(s *server, stream bool) *Model {
	return New(Options{Name: "local", BaseURL: s.URL + "/v1", Stream: stream, UserAgent: "oma/test"})
}

func ask() *spec.ModelRequest {
	return &spec.ModelRequest{Turn: 3, Model: "m", Messages: []spec.Message{{Role: spec.RoleUser, Text: "hello"}}}
}

func providerError(t *testing.T, err error) *runtime.ProviderError {
	t.Helper()
	var pe *runtime.ProviderError
	if !errors.As(err, &pe) {
		t.Fatalf("error is %T %v, want *runtime.ProviderError", err, err)
	}
	if pe.Info.Kind != "provider" || pe.Info.Provider != "local" {
		t.Errorf("error is of kind %q, provider %q", pe.Info.Kind, pe.Info.Provider)
	}
	if n := len([]rune(pe.Info.Message)); n > 1024 {
		t.Errorf("message has %d runes, want at most 1024", n)
	}
	return pe
}

func modes(t *testing.T, f func(t *testing.T, stream bool)) {
	t.Run("stream", func(t *testing.T) { f(t, true) })
	t.Run("whole", func(t *testing.T) { f(t, false) })
}

// within fails a test whose call does not come back. It is far above what any call takes.
func within(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("call does not come back")
	}
}

func quoted(s string) string { b, _ := json.Marshal(s); return strings.TrimSpace(string(b)) }
