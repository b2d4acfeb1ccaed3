package openai

import (
	"errors"
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

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

func TestStatusErrors(t *testing.T) {
	cases := []struct {
		name   string
		status int
		body   string
		header []string

		code, message string
		retryable     bool
		after         time.Duration
	}{
		{name: "bad request", status: 400, body: `{"error":{"message":"bad","type":"invalid_request_error","code":null}}`, code: "invalid_request_error", message: "bad"},
		{name: "bad parameter", status: 400, body: `{"error":{"message":"Unknown parameter","type":"invalid_request_error","param":"tools[0].name"}}`, code: "invalid_request_error", message: "Unknown parameter (tools[0].name)"},
		{name: "unauthorised", status: 401, body: `{"error":{"message":"no key","code":"invalid_api_key"}}`, code: "invalid_api_key", message: "no key"},
		{name: "forbidden", status: 403, body: `{}`, message: "Forbidden"},
		{name: "unknown model", status: 404, body: `{"error":{"message":"model \"x\" not found","type":"api_error","param":null,"code":null}}`, code: "api_error", message: `model "x" not found`},
		{name: "timeout", status: 408, body: ``, message: "Request Timeout", retryable: true},
		{name: "conflict", status: 409, body: `{"message":"busy"}`, message: "busy", retryable: true},
		{name: "unprocessable", status: 422, body: `{"detail":[{"loc":["body"],"msg":"extra"}]}`, message: `[{"loc":["body"],"msg":"extra"}]`},
		{name: "rate limit", status: 429, body: `{"error":"slow down"}`, header: []string{"Retry-After", "3"}, message: "slow down", retryable: true, after: 3 * time.Second},
		{name: "quota used up", status: 429, body: `{"error":{"message":"pay","code":"insufficient_quota"}}`, code: "insufficient_quota", message: "pay"},
		{name: "server error", status: 500, body: `"oops"`, message: "oops", retryable: true},
		{name: "gateway page", status: 502, body: `<html><body>nginx</body></html>`, header: []string{"Content-Type", "text/html"}, message: "Bad Gateway (answer is text/html)", retryable: true},
		{name: "plain text", status: 503, body: "try later\n", header: []string{"Content-Type", "text/plain", "Retry-After-Ms", "1500"}, message: "try later", retryable: true, after: 1500 * time.Millisecond},
		{name: "number as code", status: 529, body: `{"error":{"message":"overloaded","code":529}}`, code: "529", message: "overloaded", retryable: true},
		{name: "cut JSON", status: 500, body: `{"error":{"mess`, message: "Internal Server Error", retryable: true},
		{name: "error in an error", status: 500, body: strings.Repeat(`{"error":`, 3000) + `1` + strings.Repeat(`}`, 3000), message: "Internal Server Error", retryable: true},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			modes(t, func(t *testing.T, stream bool) {
				s := serve(t, status(tc.status, tc.body, tc.header...))
				_, err := model(s, stream).Complete(t.Context(), ask())
				pe := providerError(t, err)
				want := spec.ErrorInfo{Kind: "provider", Provider: "local", Code: tc.code, Message: tc.message, Retryable: tc.retryable, HTTPStatus: tc.status}
				if diff := cmp.Diff(want, pe.Info); diff != "" {
					t.Errorf("info (-want +got):\n%s", diff)
				}
				if pe.RetryAfter != tc.after {
					t.Errorf("RetryAfter is %s, want %s", pe.RetryAfter, tc.after)
				}
				if s.count() != 1 {
					t.Errorf("%d requests, want 1: retries are not made here", s.count())
				}
			})
		})
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	cases := []struct {
		seconds, millis string
		want            time.Duration
	}{
		{"1", "", time.Second},
		{"86400", "", 24 * time.Hour},
		{"1.5", "", 1500 * time.Millisecond},
		{" 2 ", "", 2 * time.Second},
		{"-5", "", 0},
		{"abc", "", 0},
		{"", "", 0},
		{"0", "", 0},
		{"NaN", "", 0},
		{"-Inf", "", 0},
		{"Inf", "", 1 << 62},
		{"1e400", "", 1 << 62},
		{"99999999999999999999", "", 1 << 62},
		{"Mon, 04 May 2026 03:03:01 GMT", "", time.Minute},
		{"Mon, 04 May 2026 03:00:01 GMT", "", 0},
		{"7", "250", 250 * time.Millisecond},
		{"7", "-1", 7 * time.Second},
		{"7", "soon", 7 * time.Second},
	}
	for _, tc := range cases {
		h := http.Header{"Retry-After": {tc.seconds}, "Retry-After-Ms": {tc.millis}}
		if got := retryAfter(h, now); got != tc.want {
			t.Errorf("Retry-After %q, retry-after-ms %q: %s, want %s", tc.seconds, tc.millis, got, tc.want)
		}
	}
}

// TestBadAnswers are good statuses with something wrong behind them.
func TestBadAnswers(t *testing.T) {
	text := func(kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			io.WriteString(w, body)
		}
	}
	cut := func(kind, body string) http.HandlerFunc { // the connection ends in the middle of the body
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			io.WriteString(w, body)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	}
	half := delta(`"content":"The answer is"`, "")
	call := delta(`"tool_calls":[{"index":0,"id":"c1","function":{"name":"now","arguments":"{\"a\":"}}]`, "")
	cases := []struct {
		name      string
		handler   http.HandlerFunc
		modes     string // stream, whole or both
		code      string
		message   string // part of it
		retryable bool
		status    int
		used      *spec.Usage
	}{
		{name: "OA-08 closed without an end", handler: events(half), modes: "stream", code: codeIncomplete, message: "without a finish reason or end mark", retryable: true},
		{name: "OA-08 closed after a call", handler: events(delta(`"tool_calls":[{"index":0,"id":"c1","function":{"name":"now","arguments":"{}"}}]`, "")), modes: "stream", code: codeIncomplete, retryable: true},
		{name: "OA-08 connection torn", handler: cut("text/event-stream", "data: "+half+"\n\n"), modes: "stream", code: codeIncomplete, message: "broke off", retryable: true},
		{name: "OA-08 torn after usage", handler: cut("text/event-stream", "data: "+half+"\n\ndata: "+`{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}`+"\n\n"), modes: "stream", code: codeIncomplete, retryable: true, used: &spec.Usage{Input: 7, Output: 3}},
		{name: "OA-08 torn in the middle of a line", handler: cut("text/event-stream", "data: "+half[:30]), modes: "stream", code: codeIncomplete, retryable: true},
		{name: "OA-08 end mark in the middle of a call", handler: events(call, done), modes: "stream", code: codeIncomplete, message: "middle of a tool call", retryable: true},
		{name: "OA-08 whole answer torn", handler: cut("application/json", `{"choices":[{"mess`), modes: "whole", code: codeIncomplete, retryable: true},
		{name: "OA-08 whole answer cut", handler: text("application/json", `{"choices":[{"mess`), modes: "both", code: codeIncomplete, message: "in the middle of a JSON text", retryable: true},
		{name: "end mark alone", handler: events(done), modes: "stream", code: codeIncomplete, message: "neither text nor tool calls", retryable: true},
		{name: "no choices", handler: whole(`{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}`), modes: "both", code: codeIncomplete, retryable: true, used: &spec.Usage{Input: 7, Output: 3}},
		{name: "empty", handler: text("application/json", ""), modes: "both", code: codeIncomplete, message: "answer is empty", retryable: true},
		{name: "empty stream", handler: text("text/event-stream", "\n\n: ping\n\n"[:1]), modes: "both", code: codeIncomplete, message: "answer is empty", retryable: true},
		{name: "server gives up", handler: events(half, delta("", "error"), done), modes: "stream", code: codeIncomplete, message: `finish reason "error"`, retryable: true},
		{name: "page", handler: text("text/html", "<!doctype html><title>Sign in</title>"), modes: "both", code: codeBadResponse, message: `answer is text/html, want a chat completion; it begins with "<!doctype html>`},
		{name: "garbage", handler: text("text/plain", "hello there"), modes: "both", code: codeBadResponse, message: `it begins with "hello there"`},
		{name: "garbage called JSON", handler: text("application/json", "{nope}"), modes: "both", code: codeBadResponse, message: "not valid JSON"},
		{name: "garbage in a stream", handler: events(half, "{nope}", done), modes: "stream", code: codeBadResponse, message: "not valid JSON"},
		{name: "list", handler: text("application/json", "[1]"), modes: "both", code: codeBadResponse, message: `it begins with "[1]"`},
		{name: "content of the wrong type", handler: whole(`{"choices":[{"message":{"content":[{"type":"text"}]},"finish_reason":"stop"}]}`), modes: "both", code: codeBadResponse, message: "choices.message.content is a JSON array"},
		{name: "function_call", handler: whole(`{"choices":[{"message":{"function_call":{"name":"f","arguments":"{}"}},"finish_reason":"function_call"}]}`), modes: "both", code: codeBadResponse, message: "only tool_calls are supported"},
		{name: "unknown finish reason", handler: events(delta(`"content":"a"`, "tired"), done), modes: "stream", code: codeBadResponse, message: `finish reason is "tired", want stop`},
		{name: "OA-07 an unknown finish reason is not taken back by a stop", handler: events(delta(`"content":"a"`, "tired"), delta("", "stop"), done), modes: "stream", code: codeBadResponse, message: `finish reason is "tired", want stop`},
		{name: "giving up is not taken back by a stop", handler: events(half, delta("", "error"), delta("", "stop"), done), modes: "stream", code: codeIncomplete, message: `finish reason "error"`, retryable: true},
		{name: "a broken index", handler: events(delta(`"tool_calls":[{"index":1.5,"id":"c1","function":{"name":"f"}}]`, "stop"), done), modes: "stream", code: codeBadResponse, message: "choices.delta.tool_calls.index is a JSON number 1.5"},
		{name: "an index that is text", handler: events(delta(`"tool_calls":[{"index":"0","id":"c1","function":{"name":"f"}}]`, "stop"), done), modes: "stream", code: codeBadResponse, message: "choices.delta.tool_calls.index is a JSON string"},
		{name: "call without name", handler: events(delta(`"tool_calls":[{"index":0,"id":"c1","function":{"arguments":"{}"}}]`, "stop"), done), modes: "stream", code: codeBadResponse, message: "tool call 1 of the answer has no name"},
		{name: "error in a stream", handler: events(half, `{"error":{"message":"upstream broken","type":"server_error"}}`), modes: "stream", code: "server_error", message: "upstream broken", retryable: true},
		{name: "error in a stream with a status", handler: events(half, `{"error":{"message":"slow down","code":429}}`), modes: "stream", code: "429", retryable: true, status: 429},
		{name: "error in a stream that is final", handler: events(half, `{"error":{"message":"too long","code":"context_length_exceeded"}}`), modes: "stream", code: "context_length_exceeded"},
		{name: "error as an event", handler: text("text/event-stream", "event: error\ndata: {\"message\":\"boom\",\"code\":\"invalid_request\"}\n\n"), modes: "stream", code: "invalid_request", message: "boom"},
		{name: "error in place of an answer", handler: whole(`{"error":{"message":"no such model","code":404}}`), modes: "both", code: "404", message: "no such model", status: 404},
		{name: "too many calls", handler: events(manyCalls(maxToolCalls+1), done), modes: "stream", code: codeBadResponse, message: "more than 256 tool calls"},
		{name: "too long", handler: endless("application/json", `{"choices":[{"message":{"content":"`), modes: "whole", code: codeTooLarge, message: "answer is longer than 32 MiB"},
		{name: "too long a line", handler: endless("text/event-stream", `data: {"choices":[{"delta":{"content":"`), modes: "stream", code: codeTooLarge},
		{name: "too long a stream of nothing", handler: endless("text/event-stream", ": keep-alive\n\n"), modes: "stream", code: codeTooLarge},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			modes(t, func(t *testing.T, stream bool) {
				if mode := map[bool]string{true: "stream", false: "whole"}[stream]; tc.modes != "both" && tc.modes != mode {
					t.Skip("exists in the other mode")
				}
				resp, err := model(serve(t, tc.handler), stream).Complete(t.Context(), ask())
				if resp != nil {
					t.Errorf("answer %+v beside an error", resp)
				}
				pe := providerError(t, err)
				if pe.Info.Code != tc.code || pe.Info.Retryable != tc.retryable || pe.Info.HTTPStatus != tc.status {
					t.Errorf("code %q retryable %v status %d, want %q %v %d (%s)", pe.Info.Code, pe.Info.Retryable, pe.Info.HTTPStatus, tc.code, tc.retryable, tc.status, pe)
				}
				if !strings.Contains(pe.Info.Message, tc.message) {
					t.Errorf("message is %q, want %q", pe.Info.Message, tc.message)
				}
				if diff := cmp.Diff(tc.used, pe.Usage); diff != "" {
					t.Errorf("usage (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func manyCalls(n int) string {
	var calls []string
	for i := range n {
		calls = append(calls, fmt.Sprintf(`{"index":%d,"id":"c%d","function":{"name":"f"}}`, i, i))
	}
	return delta(`"tool_calls":[`+strings.Join(calls, ",")+`]`, "stop")
}

// endless repeats itself until the client goes away.
func endless(kind, begin string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		io.WriteString(w, begin)
		more := strings.Repeat("x", 1<<16)
		if strings.HasSuffix(begin, "\n") {
			more = strings.Repeat(begin, 1<<12)
		}
		for {
			if _, err := io.WriteString(w, more); err != nil {
				return
			}
		}
	}
}

func TestRedirectsAreRefused(t *testing.T) {
	for _, code := range []int{301, 302, 303, 307, 308} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			modes(t, func(t *testing.T, stream bool) {
				thief := serve(t, whole(answer(`"content":"a"`, "stop", "")))
				s := serve(t, status(code, "", "Location", thief.URL+"/v1/chat?key=secret-0000"))
				// A client that follows redirects on its own is put right.
				m := New(Options{Name: "local", BaseURL: s.URL, APIKey: "secret-0000", Stream: stream, HTTPClient: &http.Client{}})
				_, err := m.Complete(t.Context(), ask())
				pe := providerError(t, err)
				if pe.Info.Code != codeRedirect || pe.Info.Retryable || pe.Info.HTTPStatus != code {
					t.Errorf("error is %+v", pe.Info)
				}
				if want := "server redirects to " + thief.URL + "/v1/chat, which is refused"; !strings.HasPrefix(pe.Info.Message, want) {
					t.Errorf("message is %q, want %q", pe.Info.Message, want)
				}
				if thief.count() != 0 {
					t.Error("the redirect was followed")
				}
			})
		})
	}
}

// What an egress policy forbids is not asked and not tried again, and the error says so. A transport that somebody gives is no
// way around it.
func TestEgressIsHeld(t *testing.T) {
	s := serve(t, whole(answer(`"content":"a"`, "stop", "")))
	around := &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		t.Error("the given transport was used")
		return nil, io.EOF
	})}
	origins := []string{"https://llm.example.com"}
	for name, o := range map[string]Options{
		"another origin": {BaseURL: s.URL + "/v1", Egress: &spec.EgressPolicy{Allow: &origins}, HTTPClient: around},
		"offline":        {BaseURL: "http://user:pw-0000@192.0.2.1/v1?key=secret-0000", APIKey: "secret-0000", Egress: &spec.EgressPolicy{Offline: true}, HTTPClient: around},
	} {
		t.Run(name, func(t *testing.T) {
			o.Name = "local"
			_, err := New(o).Complete(t.Context(), ask())
			var pe *runtime.ProviderError
			if !errors.As(err, &pe) || pe.Info.Kind != "egress" || pe.Info.Code != "EGRESS_POLICY_DENIED" || pe.Info.Retryable || pe.Info.HTTPStatus != 0 {
				t.Fatalf("error is %+v", err)
			}
			if !strings.Contains(pe.Info.Message, "egressPolicy") || strings.Contains(pe.Info.Message, "0000") {
				t.Errorf("message is %q", pe.Info.Message)
			}
			if s.count() != 0 {
				t.Error("the server was asked")
			}
		})
	}
	resp, err := New(Options{Name: "local", BaseURL: s.URL + "/v1", Egress: &spec.EgressPolicy{Offline: true}}).Complete(t.Context(), ask())
	if err != nil || resp.Message.Text != "a" {
		t.Errorf("what is allowed gives %v, %v", resp, err)
	}
}

// A redirect is refused under a policy as without one, also where the policy would let its target be asked.
func TestEgressFollowsNoRedirect(t *testing.T) {
	there := serve(t, whole(answer(`"content":"a"`, "stop", "")))
	s := serve(t, status(307, "", "Location", there.URL+"/v1/chat/completions"))
	origins := []string{s.URL, there.URL}
	_, err := New(Options{Name: "local", BaseURL: s.URL, Egress: &spec.EgressPolicy{Offline: true, Allow: &origins}}).Complete(t.Context(), ask())
	if pe := providerError(t, err); pe.Info.Code != codeRedirect || there.count() != 0 {
		t.Errorf("error is %+v, and the target was asked %d times", pe.Info, there.count())
	}
}

func TestNoConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	_, err = New(Options{Name: "local", BaseURL: "http://" + address}).Complete(t.Context(), ask())
	pe := providerError(t, err)
	if pe.Info.Code != codeConnection || !pe.Info.Retryable || !strings.HasPrefix(pe.Info.Message, "cannot reach "+address+": dial tcp") {
		t.Errorf("error is %+v", pe.Info)
	}
}

func TestUntrustedCertificateIsFinal(t *testing.T) {
	s := httptest.NewUnstartedServer(whole(answer(`"content":"a"`, "stop", "")))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // it reports the handshake that is meant to fail
	s.StartTLS()
	defer s.Close()
	_, err := New(Options{Name: "local", BaseURL: s.URL}).Complete(t.Context(), ask())
	if pe := providerError(t, err); pe.Info.Code != codeConnection || pe.Info.Retryable {
		t.Errorf("error is %+v", pe.Info)
	}
}

func TestBadBaseURL(t *testing.T) {
	for _, base := range []string{"localhost:11434/v1", "ftp://host/v1", "http://", "http://a b/", "http://[::1", "/v1"} {
		_, err := New(Options{Name: "local", BaseURL: base}).Complete(t.Context(), ask())
		if pe := providerError(t, err); pe.Info.Code != codeBadRequest || pe.Info.Retryable || !strings.Contains(pe.Info.Message, "base URL") {
			t.Errorf("%s: error is %+v", base, pe.Info)
		}
	}
}

func TestSecretsStayOut(t *testing.T) {
	const key, password, query = "sk-test-0000000000000000", "pw-0000/x", "sk-test-0000"
	all := "bad key " + key + ", " + password + ", pw-0000%2Fx, ?key=" + query
	withSecrets := func(url string) string {
		return strings.Replace(url, "http://", "http://user:pw-0000%2Fx@", 1) + "/v1?key=" + query
	}
	refused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused.Close()
	page := func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, all) }
	cases := map[string]string{
		"SE-03 echoed in the body":    withSecrets(serve(t, status(401, `{"error":{"message":`+quoted(all)+`,"code":`+quoted(key)+`}}`)).URL),
		"SE-03 echoed as text":        withSecrets(serve(t, status(500, all, "Content-Type", "text/plain")).URL),
		"SE-03 echoed in a stream":    withSecrets(serve(t, events(`{"error":{"message":`+quoted(all)+`}}`)).URL),
		"SE-03 echoed in a page":      withSecrets(serve(t, page).URL),
		"SE-03 echoed in a redirect":  withSecrets(serve(t, status(302, "", "Location", "http://user:pw-0000%2Fx@other.invalid/"+key+"?key="+query)).URL),
		"SE-03 connection error":      withSecrets("http://" + refused.Addr().String()),
		"SE-03 after 1024 runes":      withSecrets(serve(t, status(401, `{"error":{"message":`+quoted(strings.Repeat("é", 1015)+all)+`}}`)).URL),
		"SE-03 address with no sense": "http://user:pw-0000%2Fx@ho st/?key=" + query,
	}
	for name, base := range cases {
		t.Run(name, func(t *testing.T) {
			m := New(Options{Name: "local", BaseURL: base, APIKey: key, Stream: true})
			_, err := m.Complete(t.Context(), ask())
			pe := providerError(t, err)
			shown := fmt.Sprintf("%v %+v %v %+v", err, pe.Info, m, m)
			for _, secret := range []string{"sk-test", "pw-0000"} {
				if strings.Contains(shown, secret) {
					t.Errorf("%q is shown: %s", secret, shown)
				}
			}
		})
	}
}

func TestShortKeysAreNoSecrets(t *testing.T) {
	m := New(Options{Name: "local", BaseURL: serve(t, status(400, `{"message":"exceeds x"}`)).URL, APIKey: "x"})
	_, err := m.Complete(t.Context(), ask())
	if pe := providerError(t, err); pe.Info.Message != "exceeds x" {
		t.Errorf("message is %q", pe.Info.Message)
	}
}
