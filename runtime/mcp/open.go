package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/open-multi-agent/oma/runtime/process"
	"github.com/open-multi-agent/oma/spec"
)

// Options say how one server is reached. Exactly one of Command and URL is set.
type Options struct {
	Command []string // a program and its arguments; it speaks on its standard streams
	Dir     string   // where it runs, absolute
	Env     []string // all of its environment, as NAME=VALUE; nil: none
	Path    string   // the folders in which a program without a slash is looked for, as PATH has them

	URL string // of a server that speaks streamable HTTP
	// Headers go with each request to URL's origin. They are the values themselves, not where to find them.
	Headers map[string]string
	// HTTP makes the requests. nil: connections of this client's own, without a proxy.
	HTTP http.RoundTripper

	RequestTimeout time.Duration // of connecting, of each page of a list and of each call; 0: 60s
	ClientName     string        // empty: oma
	Version        string        // of this program; empty: dev
	// Redact is applied to what a server gives and to what is said of its failures. nil: nothing is redacted.
	Redact func(string) string
	Log    hclog.Logger // nil: none
}

const (
	requestTimeout = 60 * time.Second
	// closeTime is how long a server may take over a farewell.
	closeTime = time.Second
	// killAfter is how long a server may take to end when its input ends, and as long again when it is asked to.
	killAfter = 500 * time.Millisecond
	// keepStderr is how much is kept of the start and of the end of what a server complains about, in bytes.
	keepStderr = 1 << 10
)

// The revision of the protocol that a connection begins with. The next one begins with another request, before which
// some servers give up; it is tried where a server knows no initialize.
const revision = "2025-11-25"

// Client is a connection to one server. It is safe for concurrent use.
type Client struct {
	name    string
	o       Options
	life    context.Context // of every request; ends with Close
	end     context.CancelFunc
	session *sdk.ClientSession // nil: never connected
	server  *process.Peer      // nil: not a program of ours
	stop    func()             // ends whatever is at the other end; may be called again
	noise   noise
	closing sync.Once

	changes atomic.Int64  // how often the server said that its tools have changed
	look    chan struct{} // has room for one: whoever put something in may use known and seen
	known   map[string]spec.LockedTool
	seen    int64 // what changes was when known was asked for
}

// Open connects to a server. name is what the team file calls it, and what every error calls it.
func Open(ctx context.Context, name string, o Options) (*Client, error) {
	if (len(o.Command) == 0) == (o.URL == "") {
		return nil, fmt.Errorf("MCP server %q: expected either a command or a url", name)
	}
	c, err := open(ctx, name, o, revision)
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && (e.Code == sdk.CodeUnsupportedProtocolVersion || e.Code == jsonrpc.CodeMethodNotFound) {
		return open(ctx, name, o, "") // the newest there is
	}
	return c, err
}

func open(ctx context.Context, name string, o Options, revision string) (*Client, error) {
	c := newClient(name, o)
	transport, err := c.transport()
	if err != nil {
		c.end()
		return nil, c.failure(ctx, "start", err)
	}
	if err := c.connect(ctx, transport, revision); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func newClient(name string, o Options) *Client {
	o.RequestTimeout = cmp.Or(o.RequestTimeout, requestTimeout)
	if o.Redact == nil {
		o.Redact = func(s string) string { return s }
	}
	if o.Log == nil {
		o.Log = hclog.NewNullLogger()
	}
	c := &Client{name: name, o: o, stop: func() {}, look: make(chan struct{}, 1)}
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// transport starts the server, or gets ready to ask it.
func (c *Client) transport() (sdk.Transport, error) {
	if c.o.URL != "" {
		d, err := newDoor(c.o)
		if err != nil {
			return nil, err
		}
		c.stop = d.cut
		return d.transport(c.o.URL), nil
	}
	program, err := process.Find(c.o.Command[0], c.o.Dir, c.o.Path)
	if err != nil {
		return nil, err
	}
	p, err := process.Start(process.Command{Program: program, Args: c.o.Command[1:], Dir: c.o.Dir, Env: c.o.Env}, keepStderr)
	if err != nil {
		return nil, err
	}
	c.server, c.stop = p, func() { p.Close(killAfter) }
	return newPipe(p.Stdout, p.Stdin, c.skipped), nil
}

// connect introduces both sides. Not every wait inside the SDK ends with ctx: what it waits for is then taken away, and
// nobody waits for it.
func (c *Client) connect(ctx context.Context, t sdk.Transport, revision string) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	client := sdk.NewClient(&sdk.Implementation{Name: cmp.Or(c.o.ClientName, "oma"), Version: cmp.Or(c.o.Version, "dev")}, &sdk.ClientOptions{
		Capabilities:           &sdk.ClientCapabilities{},
		ToolListChangedHandler: c.changed,
		MultiRoundTrip:         &sdk.MultiRoundTripOptions{Disabled: true},
	})
	client.AddReceivingMiddleware(c.refuse)
	type outcome struct {
		session *sdk.ClientSession
		err     error
	}
	done := make(chan outcome, 1)
	go func() {
		session, err := client.Connect(ctx, t, &sdk.ClientSessionOptions{ProtocolVersion: revision})
		done <- outcome{session, err}
	}()
	select {
	case o := <-done:
		if o.err != nil {
			return c.failure(ctx, "initialize", o.err)
		}
		c.session = o.session
		return nil
	case <-ctx.Done():
	}
	err := c.failure(ctx, "initialize", ctx.Err())
	c.stop()
	go func() {
		if o := <-done; o.err == nil {
			_ = o.session.Close()
		}
	}()
	return err
}

// changed notes that the server has other tools. The next call looks whether its own is the same.
func (c *Client) changed(context.Context, *sdk.ToolListChangedRequest) {
	c.changes.Add(1)
	c.o.Log.Debug("the server says that its tools have changed", "server", c.name)
}

// refuse answers what a server may ask of a client: it gets nothing here.
func (c *Client) refuse(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		switch method {
		case "sampling/createMessage", "elicitation/create", "roots/list":
			c.o.Log.Warn("refused what the server asked for", "server", c.name, "method", method)
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this client does not offer " + method}
		}
		return next(ctx, method, r)
	}
}

var (
	errNoAnswer = errors.New("no answer in time")
	errClosed   = errors.New("the connection was closed")
)

// bounded gives a context for one request. It ends after the time one may take, and when the client is closed.
func (c *Client) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	detach := context.AfterFunc(c.life, func() { cancel(errClosed) })
	ctx, release := context.WithTimeoutCause(ctx, c.o.RequestTimeout, errNoAnswer)
	return ctx, func() {
		detach()
		release()
		cancel(nil)
	}
}

// Close ends calls that are under way, the connection, and the server if it was started here. It may be called again.
func (c *Client) Close() error {
	c.closing.Do(func() {
		c.end()
		if c.session == nil {
			c.stop()
			return
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = c.session.Close() // a server that is gone already is no failure of ours
		}()
		limit := time.NewTimer(closeTime)
		defer limit.Stop()
		select {
		case <-done:
		case <-limit.C:
		}
		c.stop()
		<-done
	})
	return nil
}
