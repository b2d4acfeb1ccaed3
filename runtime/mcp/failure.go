package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// failure is an error that names the server and says what is known of it. Its cause can be looked for.
type failure struct {
	text  string
	cause error
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.cause }

// lastWords is how long to wait for the exit status of a server that has closed its output.
const lastWords = time.Second

// failure says why a request did not succeed.
func (c *Client) failure(ctx context.Context, method string, err error) error {
	text := fmt.Sprintf("MCP server %q: %s", c.name, c.reason(ctx, method, err))
	if c.server != nil {
		if tail := strings.TrimSpace(c.server.Stderr().Text); tail != "" {
			text += "; stderr: " + strconv.Quote(strings.ToValidUTF8(tail, "\uFFFD"))
		}
	}
	return &failure{c.o.Redact(text + c.noise.String()), err}
}

func (c *Client) reason(ctx context.Context, method string, err error) string {
	cause := context.Cause(ctx)
	switch {
	case cause == errNoAnswer:
		return fmt.Sprintf("no answer to %s within %s", method, c.o.RequestTimeout)
	case cause != nil:
		return fmt.Sprintf("%s was stopped: %s", method, cause)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrClosedPipe), errors.Is(err, sdk.ErrConnectionClosed):
		return method + " failed: " + c.ended(err)
	}
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return method + " failed: the answer is not what the protocol says"
	}
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && e.Message != notSent {
		return fmt.Sprintf("%s failed: %s (error %d)", method, shortened(e.Message, maxMessage), e.Code)
	}
	text := strings.TrimPrefix(err.Error(), fmt.Sprintf("calling %q: ", method))
	text = strings.TrimPrefix(text, fmt.Sprintf("sending %q: ", method))
	return fmt.Sprintf("%s failed: %s", method, shortened(strings.TrimPrefix(text, notSent+": "), maxMessage))
}

// notSent marks an error of the SDK's own that looks like a server's.
const notSent = "rejected by transport"

// ended says what became of a server that answers no more.
func (c *Client) ended(err error) string {
	if c.server != nil {
		limit := time.NewTimer(lastWords)
		defer limit.Stop()
		select {
		case <-c.server.Done():
			return "the server " + c.server.Exit().String()
		case <-limit.C:
			if errors.Is(err, io.ErrClosedPipe) {
				return "the server has closed its input and still runs"
			}
			return "the server has closed its output and still runs"
		}
	}
	if _, why, ok := strings.Cut(err.Error(), ": client is closing: "); ok { // why the connection broke, at an earlier call
		return "the connection is broken: " + shortened(why, maxMessage)
	}
	return "the connection is broken"
}

// maxMessage bounds what is repeated of a server's own words, in bytes.
const maxMessage = 1000

func shortened(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

// noise counts what came on a server's output and was no message. The zero value is ready.
type noise struct {
	mu    sync.Mutex
	lines int
	first string
}

// maxNoise is how much of one line is kept and shown, in bytes.
const maxNoise = 200

// add says whether the line is the first.
func (n *noise) add(line []byte) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lines++; n.lines > 1 {
		return false
	}
	n.first = strings.ToValidUTF8(shortened(string(line[:min(len(line), 2*maxNoise)]), maxNoise), "\uFFFD")
	return true
}

// String gives words to put behind an error. Empty: there was none.
func (n *noise) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch n.lines {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("; a line of its output was no message: %q", n.first)
	}
	return fmt.Sprintf("; %d lines of its output were no messages, the first: %q", n.lines, n.first)
}

// skipped notes a line that is no message. Some servers greet, or log, on the stream of messages.
func (c *Client) skipped(line []byte) {
	if c.noise.add(line) {
		c.o.Log.Warn("skipped output of the server that is no message", "server", c.name, "line", c.o.Redact(c.noise.first))
	}
}
