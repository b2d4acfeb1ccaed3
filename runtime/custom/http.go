package custom

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/open-multi-agent/oma/policies/tools"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

// newClient makes a client that follows no redirect and keeps no cookie.
func newClient(transport http.RoundTripper) *http.Client {
	if transport == nil {
		transport = &http.Transport{ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: time.Minute,
			MaxResponseHeaderBytes: 256 << 10} // Proxy is nil: a variable must not lead a credential elsewhere
	}
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// exchange is a declared request.
type exchange struct {
	*tool
	address *tools.Address
	pointer tools.Pointer
	header  http.Header
	method  string
	sends   bool
}

func (t *tool) request() (func(context.Context, runtime.Invocation) spec.ToolResult, error) {
	h := t.spec.HTTP
	x := &exchange{tool: t, method: h.Method, sends: tools.Sends(h), header: http.Header{"Accept": {"application/json, text/*"}, "User-Agent": {"oma"}}}
	if x.method == "" {
		x.method = http.MethodGet
	}
	if x.sends {
		x.header.Set("Content-Type", "application/json")
	}
	var err error
	if x.address, err = tools.ParseAddress(h.URL); err != nil {
		return nil, err
	}
	if x.pointer, err = tools.ParsePointer(h.Response); err != nil {
		return nil, err
	}
	headers, err := tools.Resolve(h.Headers, t.Credentials)
	if err != nil {
		return nil, err
	}
	for name, text := range headers {
		if !tools.HeaderValue(text) { // it is a credential's: the others were checked
			return nil, fmt.Errorf("credential %q has a line end or another control character", h.Headers[name].Credential)
		}
		x.header.Set(name, text)
	}
	return x.call, nil
}

func (x *exchange) call(ctx context.Context, call runtime.Invocation) spec.ToolResult {
	inner, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	address, err := x.address.URL(call.Input)
	if err != nil {
		return x.failed("%v", err)
	}
	var body io.Reader
	if x.sends {
		body = bytes.NewReader(call.Canonical)
	}
	req, err := http.NewRequestWithContext(inner, x.method, address, body)
	if err != nil || req.URL.Scheme+"://"+req.URL.Host != x.address.Origin {
		return x.failed("no request to %s can be made of this input", x.address.Origin)
	}
	req.Header = x.header.Clone()
	resp, err := x.client.Do(req)
	if err != nil {
		return x.broken(ctx, inner, "there is no answer from "+x.address.Origin, err)
	}
	defer resp.Body.Close()
	text, cut, err := read(resp, x.most())
	var other *contentError
	switch bad := resp.StatusCode >= http.StatusMultipleChoices; {
	case errors.As(err, &other) && bad:
		return x.failed("%s", status(resp))
	case errors.As(err, &other):
		return x.failed("%v", err)
	case err != nil:
		return x.broken(ctx, inner, "the answer of "+x.address.Origin+" broke off", err)
	case bad:
		return x.failed("%s%s", status(resp), below(text))
	}
	return x.pick(text, cut)
}

// broken explains a request that came to no end.
func (x *exchange) broken(ctx, inner context.Context, what string, err error) spec.ToolResult {
	if inner.Err() != nil {
		return x.failed("%s", x.stopped(ctx))
	}
	var wrapped *url.Error // its text repeats the whole URL
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return x.failed("%s: %v", what, err)
}

// status says what a status means that is no answer.
func status(resp *http.Response) string {
	text := "HTTP " + resp.Status
	if to := resp.Header.Get("Location"); to != "" && resp.StatusCode < http.StatusBadRequest {
		text += fmt.Sprintf(": a redirect to %q, which is not followed", to)
	}
	return text
}

func below(text string) string {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	return "\n" + text
}

// pick gives what of an answer was asked for. cut says that its end is missing.
func (x *exchange) pick(text string, cut bool) spec.ToolResult {
	if len(x.pointer) == 0 {
		if cut && x.structured() {
			return x.failed("the answer has more than %d bytes", x.most())
		}
		if cut {
			text = whole(text) + fmt.Sprintf("\n[... the answer has more than %d bytes; the rest is left out ...]\n", x.most())
		}
		return x.answer(text)
	}
	if cut {
		return x.failed("the answer has more than %d bytes", x.most())
	}
	doc, err := oneValue(text)
	if err != nil {
		return x.failed("the answer is not one JSON value: %v", err)
	}
	found, err := x.pointer.Find(doc)
	if err != nil {
		return x.failed("the answer has nothing at %s: %v", x.spec.HTTP.Response, err)
	}
	return x.found(found)
}

// contentError is an answer that is no text.
type contentError struct{ what string }

func (e *contentError) Error() string { return "the answer is " + e.what + ", want text" }

// read takes an answer that is text, at most so many bytes of it. Without a type it is text if it reads as such.
func read(resp *http.Response, most int) (text string, cut bool, err error) {
	kind, params, typeErr := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	stated := resp.Header.Get("Content-Type") != ""
	switch charset := strings.ToLower(params["charset"]); {
	case stated && (typeErr != nil || !textual(kind)):
		return "", false, &contentError{fmt.Sprintf("of type %q", resp.Header.Get("Content-Type"))}
	case charset != "" && charset != "utf-8" && charset != "utf8" && charset != "us-ascii":
		return "", false, &contentError{fmt.Sprintf("in %q", charset)}
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, int64(most)+1))
	if err != nil {
		return "", false, err
	}
	if cut = len(b) > most; cut {
		b = b[:most]
	}
	if !stated && !utf8.Valid(b) {
		return "", false, &contentError{"of no stated type and no UTF-8"}
	}
	return string(b), cut, nil
}

// textual says whether a media type is text.
func textual(kind string) bool {
	switch kind {
	case "application/json", "application/xml", "application/x-ndjson", "application/jsonl", "application/json-seq", "application/yaml",
		"application/x-yaml", "application/toml", "application/javascript", "application/ecmascript", "application/graphql", "application/sql",
		"application/x-www-form-urlencoded", "application/x-sh":
		return true
	}
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") || strings.HasSuffix(kind, "+yaml")
}

// cutSlack is how far a cut moves to fall on a line end: half a line may be half a secret, which no pattern knows.
const cutSlack = 4096

// whole drops the half line at the end of a text that was cut.
func whole(text string) string {
	if i := strings.LastIndexByte(text, '\n'); i >= len(text)-cutSlack {
		return text[:i+1]
	}
	return text
}
