package custom

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

const itemSchema = `{"type":"object","required":["id"],"properties":{"id":{"type":"string"},"q":{"type":"string","default":"d e"}}}`

// get is an http tool; change changes its request.
func get(url string, change ...func(*spec.CustomTool)) spec.CustomTool {
	c := spec.CustomTool{InputSchema: spec.Schema(itemSchema), HTTP: &spec.HTTPTool{URL: url}}
	for _, f := range change {
		f(&c)
	}
	return c
}

func method(m string) func(*spec.CustomTool) { return func(c *spec.CustomTool) { c.HTTP.Method = m } }

func response(p string) func(*spec.CustomTool) {
	return func(c *spec.CustomTool) { c.HTTP.Response = p }
}

func TestRequest(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintf(w, "%s %s %s\n", r.Method, r.RequestURI, body)
		for _, name := range []string{"Accept", "Authorization", "Content-Type", "Cookie", "User-Agent", "X-A"} {
			if v := r.Header.Get(name); v != "" {
				fmt.Fprintf(w, "%s: %s\n", name, v)
			}
		}
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
	}))
	defer s.Close()
	headers := func(c *spec.CustomTool) {
		c.HTTP.Headers = map[string]spec.Variable{"authorization": {Credential: "OTHER", Prefix: "Bearer "}, "X-A": {Value: "{id}"}, "User-Agent": {Value: "u"}}
	}
	const common = "Accept: application/json, text/*\nUser-Agent: oma\n"
	const withBody = "Accept: application/json, text/*\nContent-Type: application/json\nUser-Agent: oma\n"
	for _, c := range []struct {
		tool spec.CustomTool
		want string
	}{
		{get(s.URL + "/items/{id}?q={q}"), "GET /items/a%2Fb%3F?q=x+%26y \n" + common},
		{get(s.URL+"/items", method("POST")), "POST /items {\"id\":\"a/b?\",\"q\":\"x &y\"}\n" + withBody},
		{get(s.URL+"/items", method("PUT"), func(c *spec.CustomTool) { c.HTTP.Body = "none" }), "PUT /items \n" + common},
		{get(s.URL+"/items/{id}", method("DELETE")), "DELETE /items/a%2Fb%3F \n" + common},
		{get(s.URL, headers), "GET / \nAccept: application/json, text/*\nAuthorization: Bearer other\nUser-Agent: u\nX-A: {id}\n"},
	} {
		tool := open1(t, testOptions(t), c.tool)
		for range 2 { // no cookie comes back
			if diff := cmp.Diff(okText(c.want), invoke(t, t.Context(), tool, `{"id":"a/b?","q":"x &y"}`)); diff != "" {
				t.Error(diff)
			}
		}
	}
	tool := open1(t, testOptions(t), get(s.URL+"/a/{id}/b"))
	for input, want := range map[string]string{
		`{"id":".."}`: `a path segment would be "..", which changes the path`,
		`{"id":""}`:   "a path segment would be empty, which changes the path",
	} {
		if diff := cmp.Diff(bad(want), invoke(t, t.Context(), tool, input)); diff != "" {
			t.Error(diff)
		}
	}
}

// answers serves what a path says.
func answers(t *testing.T) *httptest.Server {
	write := func(kind, body string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{kind}
			if kind == "" {
				w.Header()["Content-Type"] = nil
			}
			io.WriteString(w, body)
		}
	}
	status := func(code int, kind, body string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Location", "https://elsewhere.example/hunter2")
			w.WriteHeader(code)
			io.WriteString(w, body)
		}
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write(bytes.Repeat([]byte("yes\n"), 10<<20/4))
	z.Close()
	mux := http.NewServeMux()
	for path, h := range map[string]func(http.ResponseWriter, *http.Request){
		"/text": write("text/plain; charset=UTF-8", "a hunter2 caf\xe9"), "/json": write("application/json", `{"data":{"items":[{"n":"one"},{"n":2.50}]},"a":"b"}`),
		"/problem": write("application/problem+json", `{"a":1}`), "/untyped": write("", "plain"), "/untypedbytes": write("", "\xff\xfe"), "/empty": write("text/plain", ""),
		"/png": write("image/png", "\x89PNG"), "/octets": write("application/octet-stream", "x"), "/latin": write("text/html; charset=ISO-8859-1", "caf\xe9"), "/strange": write("text/", "x"),
		"/rich": write("application/json", `{"r":{"data":1,"modelOutput":"one"}}`), "/big": write("text/plain", strings.Repeat("yes\n", 10<<20/4)),
		"/zip": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(zipped.Bytes())
		},
		"/404": status(404, "application/json", `{"error":"no hunter2"}`), "/500": status(500, "image/png", "x"), "/503": status(503, "text/plain", " "), "/302": status(302, "text/html", "moved"),
		"/304": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) }, "/204": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) },
		"/hang": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"/stall": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			io.WriteString(w, "part")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
		"/cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.Header().Set("Content-Type", "text/plain")
			io.WriteString(w, "part")
		},
	} {
		mux.HandleFunc(path, h)
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func TestAnswer(t *testing.T) {
	s := answers(t)
	short := func(c *spec.CustomTool) { c.Timeout = spec.Duration(200 * time.Millisecond) }
	for _, c := range []struct {
		tool spec.CustomTool
		want spec.ToolResult
	}{
		{get("/text"), okText("a [redacted] caf\uFFFD")},
		{get("/json"), okText(`{"data":{"items":[{"n":"one"},{"n":2.50}]},"a":"b"}`)},
		{get("/json", kind("json")), both(`{"data":{"items":[{"n":"one"},{"n":2.50}]},"a":"b"}`)},
		{get("/json", response("/data/items/1")), both(`{"n":2.50}`)},
		{get("/json", response("/data/items/0/n")), spec.ToolResult{Text: "one", Data: json.RawMessage(`"one"`)}},
		{get("/json", response("/data/items/0/n"), kind("json")), both(`"one"`)},
		{get("/json", response("/data/x")), bad("the answer has nothing at /data/x: /data/x: there is no such member")},
		{get("/text", response("/data")), bad("the answer is not one JSON value: not valid JSON at byte 0: invalid character 'a' at start of value")},
		{get("/text", kind("json")), bad("its output is not one JSON value: not valid JSON at byte 0: invalid character 'a' at start of value")},
		{get("/rich", response("/r"), kind("rich")), spec.ToolResult{Text: "one", Data: json.RawMessage("1"), Chosen: true}},
		{get("/problem"), okText(`{"a":1}`)},
		{get("/untyped"), okText("plain")},
		{get("/empty"), okText("(no output)")},
		{get("/204"), okText("(no output)")},
		{get("/untypedbytes"), bad("the answer is of no stated type and no UTF-8, want text")},
		{get("/png"), bad(`the answer is of type "image/png", want text`)},
		{get("/octets"), bad(`the answer is of type "application/octet-stream", want text`)},
		{get("/latin"), bad(`the answer is in "iso-8859-1", want text`)},
		{get("/strange"), bad(`the answer is of type "text/", want text`)},
		{get("/404"), bad("HTTP 404 Not Found\n" + `{"error":"no [redacted]"}`)},
		{get("/500"), bad("HTTP 500 Internal Server Error")},
		{get("/503"), bad("HTTP 503 Service Unavailable")},
		{get("/302"), bad(`HTTP 302 Found: a redirect to "https://elsewhere.example/[redacted]", which is not followed` + "\nmoved")},
		{get("/304"), bad("HTTP 304 Not Modified")},
		{get("/big", kind("json")), bad("the answer has more than 8388608 bytes")},
		{get("/big", response("/x")), bad("the answer has more than 8388608 bytes")},
		{get("/hang", short), bad("it took longer than its time limit of 200ms")},
		{get("/stall", short), bad("it took longer than its time limit of 200ms")},
		{get("/cut"), bad("the answer of ORIGIN broke off: unexpected EOF")},
	} {
		c.tool.HTTP.URL = s.URL + c.tool.HTTP.URL
		c.want.Text = strings.ReplaceAll(c.want.Text, "ORIGIN", s.URL)
		if diff := cmp.Diff(c.want, invoke(t, t.Context(), open1(t, testOptions(t), c.tool), `{"id":""}`)); diff != "" {
			t.Errorf("%s\n%s", c.tool.HTTP.URL, diff)
		}
	}
	for _, path := range []string{"/big", "/zip"} { // a small answer may unpack to a large one
		got := invoke(t, t.Context(), open1(t, testOptions(t), get(s.URL+path)), `{"id":""}`)
		if got.IsError || len(got.Text) > maxAnswer+100 || !strings.HasSuffix(got.Text, "yes\n\n[... the answer has more than 8388608 bytes; the rest is left out ...]\n") {
			t.Error(path, got.IsError, len(got.Text))
		}
	}
}

func TestRequestCancelled(t *testing.T) {
	tool := open1(t, testOptions(t), get(answers(t).URL+"/hang"))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	if diff := cmp.Diff(bad("the call was cancelled"), invoke(t, ctx, tool, `{"id":""}`)); diff != "" {
		t.Error(diff)
	}
}

// The credential goes nowhere but to the origin: no proxy of the environment, no server with a certificate that is not
// trusted, and nobody who listens no more.
func TestNowhereElse(t *testing.T) {
	asked := make(chan string, 10)
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Method + " " + r.RequestURI }))
	defer proxy.Close()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked <- "served" }))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + l.Addr().String()
	l.Close()
	for url, want := range map[string]string{
		secure.URL:               "certificate signed by unknown authority",
		closed:                   "connection refused",
		"http://no-host.invalid": "there is no answer from http://no-host.invalid: ",
	} {
		got := invoke(t, t.Context(), open1(t, testOptions(t), get(url+"/x?q={id}", func(c *spec.CustomTool) {
			c.HTTP.Headers = map[string]spec.Variable{"A": {Credential: "KEY"}}
		})), `{"id":"hunter2"}`)
		if !got.IsError || !strings.Contains(got.Text, want) || strings.Contains(got.Text, "hunter2") {
			t.Error(url, got.Text)
		}
	}
	select {
	case what := <-asked:
		t.Error("a request went elsewhere:", what)
	default:
	}
}

func BenchmarkRequest(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"data":{"items":[1,2,3]}}`)
	}))
	defer s.Close()
	tool := open1(b, testOptions(b), get(s.URL+"/items/{id}", response("/data/items")))
	for b.Loop() {
		if r := invoke(b, b.Context(), tool, `{"id":"x"}`); r.IsError {
			b.Fatal(r.Text)
		}
	}
}
