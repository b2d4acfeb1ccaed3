package openai

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

// Codes for what no server has a code for.
const (
	codeBadRequest  = "BAD_REQUEST"  // the request could not be made
	codeConnection  = "CONNECTION"   // no response came
	codeRedirect    = "REDIRECT"     // refused: the key would go somewhere else
	codeIncomplete  = "INCOMPLETE"   // the answer began and did not end
	codeBadResponse = "BAD_RESPONSE" // the answer is no answer
	codeTooLarge    = "RESPONSE_TOO_LARGE"
	codeUnsupported = "UNSUPPORTED_TOOL_RESULT_CONTENT" // an attachment that the protocol cannot carry: nothing is sent
)

// failure is a ProviderError before it is given its provider's name and loses its secrets.
type failure struct {
	code, message string
	kind          string // empty: provider
	retryable     bool
	status        int // 0: not of the HTTP status
	retryAfter    time.Duration
}

func (f *failure) Error() string { return f.message }

// failf makes a failure that would only happen again.
func failf(code, format string, args ...any) *failure {
	return &failure{code: code, message: fmt.Sprintf(format, args...)}
}

func incompletef(format string, args ...any) *failure {
	f := failf(codeIncomplete, format, args...)
	f.retryable = true
	return f
}

// provider turns any error of this package into the one callers see. e and used may be nil.
func (m *Model) provider(err error, e *endpoint, used *spec.Usage) *runtime.ProviderError {
	var f *failure
	if !errors.As(err, &f) {
		f = failf(codeBadRequest, "%s", plain(err))
	}
	hide := func(s string) string { return s }
	if e != nil {
		hide = e.secrets.Replace
	}
	return &runtime.ProviderError{
		Info: spec.ErrorInfo{
			Kind:       cmp.Or(f.kind, "provider"),
			Code:       cut(hide(f.code), 64),
			Message:    cut(hide(strings.ToValidUTF8(f.message, "\uFFFD")), maxMessageRunes-1), // one for the ellipsis
			Retryable:  f.retryable,
			HTTPStatus: f.status,
			Provider:   m.opts.Name,
		},
		RetryAfter: f.retryAfter,
		Usage:      used,
	}
}

const maxMessageRunes = 1024

// connectionFailure explains a request that got no response. The address is named by its host alone.
func connectionFailure(host string, err error) error {
	var denied *runtime.EgressError
	if errors.As(err, &denied) {
		f := failf(runtime.CodeEgressDenied, "%s", denied.Why)
		f.kind = runtime.KindEgress
		return f
	}
	var transport *url.Error
	if !errors.As(err, &transport) { // the request was never sent
		return failf(codeBadRequest, "%v", err)
	}
	f := failf(codeConnection, "cannot reach %s: %s", host, plain(err))
	var untrusted *tls.CertificateVerificationError
	f.retryable = !errors.As(err, &untrusted)
	return f
}

// plain drops the address that net/http puts into its errors: it may hold a password or a key.
func plain(err error) string {
	var transport *url.Error
	if errors.As(err, &transport) {
		err = transport.Err
	}
	if errors.Is(err, io.EOF) {
		return "the server closed the connection"
	}
	return err.Error()
}

func redirectFailure(resp *http.Response) error {
	f := failf(codeRedirect, "server answers with a redirect, which is refused")
	if to, err := resp.Location(); err == nil {
		f.message = fmt.Sprintf("server redirects to %s://%s%s, which is refused; if that is right, make it the base URL",
			to.Scheme, to.Host, to.Path)
	}
	f.status = resp.StatusCode
	return f
}

// statusFailure reads what a server says about a status of 400 and above.
func statusFailure(resp *http.Response, now time.Time) error {
	body, _ := io.ReadAll(resp.Body) // bounded; a broken one is as good as none
	f := said(body)
	if f.message == "" {
		f.message = cmp.Or(http.StatusText(resp.StatusCode), "no message")
		if kind := mediaType(resp); len(body) > 0 && kind != "" && !isJSON(kind) {
			f.message += " (answer is " + kind + ")"
		}
	}
	f.status = resp.StatusCode
	f.retryAfter = retryAfter(resp.Header, now)
	switch s := resp.StatusCode; {
	case s == http.StatusTooManyRequests:
		f.retryable = f.code != "insufficient_quota" // nobody pays while we wait
	case s == http.StatusRequestTimeout, s == http.StatusConflict, s >= 500:
		f.retryable = true
	}
	return f
}

// reportedFailure is an error inside an answer that began with a good status. Mostly the server behind the server
// failed; what names the request itself would fail again.
func reportedFailure(raw []byte) error {
	f := said(raw)
	if f.message == "" {
		f.message = "server reports an error in the middle of the answer"
	}
	if status, err := strconv.Atoi(f.code); err == nil && status >= 400 && status < 600 {
		f.status = status
		f.retryable = status >= 500 || slices.Contains([]int{408, 409, 429}, status)
		return f
	}
	f.retryable = true
	for _, permanent := range []string{"invalid", "authentication", "permission", "not_found", "quota", "context_length", "content_filter"} {
		if strings.Contains(f.code, permanent) {
			f.retryable = false
		}
	}
	return f
}

// said finds code and message in the forms servers use: {"error":{…}}, {"error":"…"}, {"message":"…"},
// {"detail":"…"}, a bare string, plain text. HTML says nothing.
func said(raw []byte) *failure {
	raw = bytes.TrimSpace(raw)
	var outer struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(raw, &outer) == nil && len(outer.Error) > 0 && string(outer.Error) != "null" {
		raw = outer.Error
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return &failure{message: text}
	}
	var v struct {
		Message looseText       `json:"message"`
		Detail  json.RawMessage `json:"detail"`
		Type    looseText       `json:"type"`
		Param   looseText       `json:"param"` // what in the request is wrong
		Code    json.RawMessage `json:"code"`  // text or a number
	}
	if json.Unmarshal(raw, &v) != nil {
		if bytes.HasPrefix(raw, []byte("<")) || bytes.HasPrefix(raw, []byte("{")) {
			return &failure{}
		}
		return &failure{message: string(raw)}
	}
	f := &failure{message: string(v.Message), code: strings.Trim(string(v.Code), `"`)}
	if f.code == "" || f.code == "null" {
		f.code = string(v.Type)
	}
	if p := string(v.Param); p != "" && !strings.Contains(f.message, p) {
		f.message = strings.TrimSpace(f.message + " (" + p + ")")
	}
	if f.message == "" && len(v.Detail) > 0 {
		if json.Unmarshal(v.Detail, &f.message) != nil {
			f.message = string(v.Detail)
		}
	}
	return f
}

// refusesStreamOptions says whether a server complained about that option. It does so with 400, or with 422 where a
// framework checks requests against a fixed form.
func refusesStreamOptions(err error) bool {
	var f *failure
	return errors.As(err, &f) && (f.status == http.StatusBadRequest || f.status == http.StatusUnprocessableEntity) &&
		strings.Contains(f.message, "stream_options")
}

// retryAfter reads how long a server wants to be left alone: whole or broken seconds, or a date. Zero: nothing usable.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if d := duration(h.Get("Retry-After-Ms"), time.Millisecond); d > 0 {
		return d
	}
	text := h.Get("Retry-After")
	if date, err := http.ParseTime(text); err == nil {
		return max(date.Sub(now), 0)
	}
	return duration(text, time.Second)
}

func duration(text string, unit time.Duration) time.Duration {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	const longest = 1 << 62 // about 146 years; beyond it a Duration overflows
	switch {
	case n >= longest/float64(unit): // also where err says out of range
		return longest
	case err != nil || !(n > 0): // NaN is not above 0
		return 0
	}
	return time.Duration(n * float64(unit))
}

// secretsOf gives a replacer for every secret in the options, as written and as it looks inside an address.
func secretsOf(key string, base *url.URL) *strings.Replacer {
	secrets := []string{key}
	if password, ok := base.User.Password(); ok {
		secrets = append(secrets, password)
	} else if base.User != nil {
		secrets = append(secrets, base.User.Username()) // a token alone before the @
	}
	for _, values := range base.Query() {
		secrets = append(secrets, values...)
	}
	for _, s := range secrets[:len(secrets):len(secrets)] {
		secrets = append(secrets, url.QueryEscape(s), url.PathEscape(s))
	}
	// A secret that is part of another must not be replaced first: the rest of the longer one would stay.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, s := range secrets {
		if len(s) >= minSecretLen {
			pairs = append(pairs, s, "[redacted]")
		}
	}
	return strings.NewReplacer(pairs...)
}

// minSecretLen keeps a one-letter key, which local servers accept, from turning every message into nonsense.
const minSecretLen = 4
