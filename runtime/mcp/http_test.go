package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/open-multi-agent/oma/policies/servers"
	"github.com/open-multi-agent/oma/spec"
)

// web is a server over HTTP that answers with what a fake says to one message.
type web struct {
	fake
	stream bool // answer with events

	mu       sync.Mutex
	requests []*http.Request
}

func (w *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.requests = append(w.requests, r)
	w.mu.Unlock()
	if r.Method != http.MethodPost {
		rw.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	line, _ := io.ReadAll(r.Body)
	var out bytes.Buffer
	(&fake{list: w.list, call: w.call, greet: w.greet}).serve(bytes.NewReader(append(line, '\n')), &out)
	switch {
	case out.Len() == 0:
		rw.WriteHeader(http.StatusAccepted)
	case w.stream:
		rw.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		var pretty bytes.Buffer
		_ = json.Indent(&pretty, out.Bytes(), "", " ") // data of many lines
		fmt.Fprintf(rw, ": a comment\n\nevent: message\ndata: %s\n\n", strings.ReplaceAll(strings.TrimSpace(pretty.String()), "\n", "\ndata: "))
	default:
		rw.Header().Set("Content-Type", "application/json")
		_, _ = rw.Write(out.Bytes())
	}
}

func dialled(t *testing.T, o Options, h http.Handler) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	o.URL = s.URL + "/mcp"
	c, err := Open(t.Context(), "web", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Answers keep what was written, in one message or in events, and every request has the headers.
func TestHTTP(t *testing.T) {
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprintf("stream=%t", stream), func(t *testing.T) {
			w := &web{stream: stream}
			w.call = func(*fake, string, string, string) string {
				return `{"content":[{"type":"hologram"}],"structuredContent":{"n":12345678901234567890}}`
			}
			c := dialled(t, Options{Headers: map[string]string{"Authorization": "Bearer k", "accept": "x/y"}}, w)
			got := invoke(t.Context(), tool(t, c), `{}`)
			if want := "[hologram]\n{\"type\":\"hologram\"}\n{\"n\":12345678901234567890}"; got.IsError || got.Text != want {
				t.Errorf("got %+v", got)
			}
			for _, r := range w.requests {
				if r.Header.Get("Authorization") != "Bearer k" || r.Header.Get("Accept") == "x/y" {
					t.Errorf("%s with %v", r.Method, r.Header)
				}
			}
		})
	}
}

// A redirect to another origin is not followed, and no header goes there; one to another path is.
func TestHTTPRedirects(t *testing.T) {
	var stolen int
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen++ }))
	defer elsewhere.Close()
	mux := http.NewServeMux()
	mux.Handle("/away", http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	mux.Handle("/near", http.RedirectHandler("/mcp", http.StatusTemporaryRedirect))
	mux.Handle("/round", http.RedirectHandler("/round", http.StatusTemporaryRedirect))
	mux.Handle("/mcp", &web{})
	s := httptest.NewServer(mux)
	defer s.Close()
	for path, want := range map[string]string{"/away": "is not followed: it is another origin", "/round": "more than 5 redirects", "/near": "", "/none": "Not Found"} {
		c, err := Open(t.Context(), "web", Options{URL: s.URL + path, Headers: map[string]string{"Authorization": "Bearer hunter2"}})
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), `MCP server "web": initialize failed`)):
			t.Errorf("%s: %v", path, err)
		}
		if err == nil {
			c.Close()
		}
	}
	if stolen > 0 {
		t.Errorf("%d requests went elsewhere", stolen)
	}
}

// MC-05 over HTTP: whichever request a server leaves open, the wait ends, and so does Close.
func TestHTTPSilent(t *testing.T) {
	for _, method := range []string{"POST", "GET", "DELETE"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			w := &web{}
			over := make(chan struct{})
			h := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.Method == method {
					_, _ = io.ReadAll(r.Body) // the server sees that the client has gone only once it has read all
					select {
					case <-r.Context().Done():
					case <-over:
					}
					return
				}
				rw.Header().Set("Mcp-Session-Id", "1")
				w.ServeHTTP(rw, r)
			})
			s := httptest.NewServer(h)
			t.Cleanup(s.Close)
			t.Cleanup(func() { close(over) })
			started := time.Now()
			c, err := Open(t.Context(), "web", Options{URL: s.URL, RequestTimeout: 300 * time.Millisecond})
			switch {
			case method == "DELETE" && err != nil:
				t.Fatal(err)
			case method != "DELETE" && (err == nil || err.Error() != `MCP server "web": no answer to initialize within 300ms`):
				t.Errorf("got %v", err)
			}
			if err == nil {
				c.Close()
			}
			if took := time.Since(started); took > 5*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

// An answer without bound is not read to its end.
func TestHTTPLongAnswers(t *testing.T) {
	for _, kind := range []string{"application/json", "text/event-stream", "text/html"} {
		h := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", kind)
			if kind == "text/html" {
				rw.WriteHeader(http.StatusInternalServerError)
			}
			_, _ = io.WriteString(rw, `data: {"x":"`)
			chunk := bytes.Repeat([]byte("x"), 1<<20)
			for range 2 * maxMessageBytes / len(chunk) {
				if _, err := rw.Write(chunk); err != nil {
					return
				}
			}
		})
		s := httptest.NewServer(h)
		c, err := Open(t.Context(), "web", Options{URL: s.URL})
		if err == nil {
			c.Close()
			t.Errorf("%s: opened", kind)
		} else if !strings.HasPrefix(err.Error(), `MCP server "web": initialize failed: `) {
			t.Errorf("%s: %v", kind, err)
		}
		s.Close()
	}
}

// The SDK's own server, with a session, its stream and its notes of changes.
func TestHTTPChanges(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "sdk", Version: "1"}, nil)
	add := func(description string) {
		sdk.AddTool(server, &sdk.Tool{Name: "add", Description: description}, func(_ context.Context, _ *sdk.CallToolRequest, in struct{ A, B int }) (*sdk.CallToolResult, struct{ Sum int }, error) {
			return nil, struct{ Sum int }{in.A + in.B}, nil
		})
	}
	add("adds")
	c := dialled(t, Options{}, sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	adder := tool(t, c)
	got := invoke(t.Context(), adder, `{"A":2,"B":3}`)
	if got.Text != `{"Sum":5}` || string(got.Data) != `{"Sum":5}` || got.IsError {
		t.Errorf("got %+v", got)
	}
	if got := invoke(t.Context(), adder, `{"A":"two"}`); !got.IsError { // bad arguments come back as a result
		t.Errorf("got %+v", got)
	}
	add("adds, and more")
	for c.changes.Load() == 0 && t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if got := invoke(t.Context(), adder, `{"A":2,"B":3}`); got.Text != `MCP tool "add" failed: MCP server "web" has changed its description since it was judged` {
		t.Errorf("got %+v", got)
	}
}

// A server of the next revision alone knows no initialize; it is asked again in its own way.
func TestNextRevision(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "sdk", Version: "1"}, nil)
	server.AddTool(&sdk.Tool{Name: "t", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "next"}}}, nil
	})
	inner := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: true})
	h := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		if bytes.Contains(text, []byte(`"initialize"`)) {
			rw.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(rw, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no initialize"}}`)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
		inner.ServeHTTP(rw, r)
	})
	c := dialled(t, Options{}, h)
	if got := c.session.InitializeResult().ProtocolVersion; got <= revision {
		t.Errorf("speaks %s", got)
	}
	tools, _, err := c.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	offered, _ := servers.Offer("web", spec.MCPServer{}, tools)
	if got := invoke(t.Context(), c.Tool(offered[0]), `{}`); got.Text != "next" || got.IsError {
		t.Errorf("got %+v", got)
	}
}
