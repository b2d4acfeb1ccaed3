package openai

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

// Options say where a model answers and how to ask it.
type Options struct {
	Name    string // of the provider, for errors
	BaseURL string // empty: that of OpenAI; a query in it goes with every request
	APIKey  string // empty: none is sent
	// Stream asks for answers as they are written. The result is the same either way.
	Stream bool
	// EchoReasoning sends the model's reasoning back inside a tool loop, for servers that insist on it.
	EchoReasoning bool
	// HTTPClient is copied; redirects are refused whatever it says. nil, or one without Transport: no proxy.
	HTTPClient *http.Client
	UserAgent  string // empty: the SDK's
	// Egress bounds where requests go. Under one, HTTPClient's Transport is not used: nobody could say what it does. nil: anywhere.
	Egress *spec.EgressPolicy
}

// Model is a runtime.Model over HTTP. It is safe for concurrent use.
type Model struct {
	opts    Options
	connect func() (*endpoint, error) // runs once
	// noStreamOptions is set once the server has refused stream_options.
	noStreamOptions atomic.Bool
	now             func() time.Time // for Retry-After dates
}

// endpoint is what the options come to.
type endpoint struct {
	chat     openai.ChatCompletionService
	host     string
	official bool // OpenAI's own server
	secrets  *strings.Replacer
}

// New gives a model. Nothing is connected or even parsed before the first Complete.
func New(o Options) *Model {
	m := &Model{opts: o, now: time.Now}
	m.connect = sync.OnceValues(m.dial)
	return m
}

func (m *Model) dial() (*endpoint, error) {
	base, err := url.Parse(cmp.Or(m.opts.BaseURL, runtime.OpenAIBaseURL))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		// The text is not quoted: an address that cannot be parsed may hide a password anywhere.
		return nil, failf(codeBadRequest, "base URL is not an http or https address with a host")
	}
	name := base.Hostname()
	e := &endpoint{
		host:     base.Host,
		official: name == "api.openai.com" || strings.HasSuffix(name, ".api.openai.com"),
		secrets:  secretsOf(m.opts.APIKey, base),
	}
	opts := []option.RequestOption{
		option.WithHTTPClient(m.client()),
		option.WithMaxRetries(0),
		option.WithMiddleware(plainBody, boundBody),
	}
	query := base.Query()
	base.RawQuery, base.Fragment = "", ""
	opts = append(opts, option.WithBaseURL(base.String()))
	for name, values := range query { // order does not matter: the SDK sorts
		for _, v := range values {
			opts = append(opts, option.WithQueryAdd(name, v))
		}
	}
	if m.opts.APIKey != "" {
		opts = append(opts, option.WithAPIKey(m.opts.APIKey))
	}
	if m.opts.UserAgent != "" {
		opts = append(opts, option.WithHeader("User-Agent", m.opts.UserAgent))
	}
	// Not NewClient, which lets OPENAI_* variables change the address, the key and the headers.
	e.chat = openai.NewChatCompletionService(opts...)
	return e, nil
}

func (m *Model) client() *http.Client {
	c := http.Client{}
	if m.opts.HTTPClient != nil {
		c = *m.opts.HTTPClient
	}
	if c.Transport == nil || m.opts.Egress != nil { // the default one takes its proxy from the environment
		c.Transport = runtime.ModelTransport(m.opts.Egress)
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// Complete answers one request. Its errors are ctx's own or a *runtime.ProviderError.
func (m *Model) Complete(ctx context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e, err := m.connect()
	if err != nil {
		return nil, m.provider(err, nil, nil)
	}
	c := &collector{turn: req.Turn}
	err = m.exchange(ctx, e, req, c)
	if err == nil {
		var resp *spec.ModelResponse
		if resp, err = c.response(); err == nil {
			return resp, nil
		}
	}
	if ctx.Err() == nil {
		return nil, m.provider(err, e, c.usage)
	}
	if c.usage == nil {
		return nil, ctx.Err()
	}
	// what was reported before the end was used all the same
	return nil, fmt.Errorf("%w: %w", ctx.Err(), m.provider(err, e, c.usage))
}

// exchange sends the request and collects the answer. It asks twice where stream_options is refused.
func (m *Model) exchange(ctx context.Context, e *endpoint, req *spec.ModelRequest, c *collector) error {
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	askUsage := m.opts.Stream && !m.noStreamOptions.Load()
	resp, err := m.post(ctx, e, req, askUsage)
	if askUsage && refusesStreamOptions(err) {
		m.noStreamOptions.Store(true)
		resp, err = m.post(ctx, e, req, false)
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if m.answersInEvents(resp) {
		return readEvents(ctx, hangUp, resp, c)
	}
	return readWhole(resp, c)
}

// post gives a response with status 2xx, whose body the caller closes.
func (m *Model) post(ctx context.Context, e *endpoint, req *spec.ModelRequest, askUsage bool) (*http.Response, error) {
	body, err := m.body(e, req, askUsage)
	if err != nil {
		return nil, err
	}
	// resp is also set where the SDK gives an error for the status; unread only where it gives none, and keeps the SDK
	// from decoding the answer.
	var resp, unread *http.Response
	_, err = e.chat.New(ctx, openai.ChatCompletionNewParams{}, option.WithRequestBody("application/json", body),
		option.WithResponseInto(&resp), option.WithResponseBodyInto(&unread))
	if resp == nil {
		return nil, connectionFailure(e.host, err)
	}
	switch {
	case resp.StatusCode >= 400: // err says less than the body does
		defer resp.Body.Close()
		return nil, statusFailure(resp, m.now())
	case err != nil:
		return nil, connectionFailure(e.host, err)
	case resp.StatusCode/100 != 2:
		defer resp.Body.Close()
		return nil, redirectFailure(resp)
	}
	return resp, nil
}

// answersInEvents goes by what the server says it sends, and where it does not say, by what it was asked for: some
// servers answer in one piece although asked to stream.
func (m *Model) answersInEvents(resp *http.Response) bool {
	switch kind := mediaType(resp); {
	case kind == "text/event-stream":
		return true
	case isJSON(kind):
		return false
	}
	return m.opts.Stream
}

func mediaType(resp *http.Response) string {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind
}

func isJSON(kind string) bool { return kind == "application/json" || strings.HasSuffix(kind, "+json") }

// The most that is read of one response. An error needs no more than its first words.
const (
	maxAnswerBytes = 32 << 20
	maxErrorBytes  = 64 << 10
)

// plainBody takes the SDK's wrapper off a request's body. net/http sends a body that it knows to be in memory together
// with the headers, and every other one after them, in a packet of its own.
func plainBody(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		req.Body = body
	}
	return next(req)
}

// boundBody bounds what is read of a response.
func boundBody(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	resp, err := next(req)
	if err != nil || resp == nil || resp.Body == nil {
		return resp, err
	}
	if resp.StatusCode >= 300 {
		resp.Body = &bounded{Reader: io.LimitReader(resp.Body, maxErrorBytes), Closer: resp.Body}
	} else {
		resp.Body = &bounded{Reader: &limitReader{r: resp.Body, left: maxAnswerBytes}, Closer: resp.Body}
	}
	return resp, nil
}

type bounded struct {
	io.Reader
	io.Closer
}

// limitReader gives an error where io.LimitReader would pretend that the text ended.
type limitReader struct {
	r    io.Reader
	left int
}

func (l *limitReader) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, failf(codeTooLarge, "answer is longer than %d MiB", maxAnswerBytes>>20)
	}
	n, err := l.r.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

var _ runtime.Model = (*Model)(nil)

// String names the provider, so that printing a Model never prints its key.
func (m *Model) String() string { return "openai " + m.opts.Name }
