package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/open-multi-agent/oma/policies/servers"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

// fake is a server that speaks bytes, so that it may misbehave. What is nil is done as servers do.
type fake struct {
	list  func(f *fake, cursor string) string         // the result of tools/list
	call  func(f *fake, id, name, args string) string // the result of tools/call; empty: no answer
	greet func(f *fake) bool                          // false: initialize gets no answer

	mu    sync.Mutex
	out   io.Writer
	heard []string // every line
}

const echoTool = `{"name":"echo","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}`

// say writes a line as it is.
func (f *fake) say(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fmt.Fprintf(f.out, format+"\n", args...)
}

func (f *fake) answer(id, result string) { f.say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result) }

func (f *fake) lines() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.heard, "\n")
}

func (f *fake) serve(in io.Reader, out io.Writer) {
	f.out = out
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		f.mu.Lock()
		f.heard = append(f.heard, strings.TrimSpace(line))
		f.mu.Unlock()
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Cursor, Name string
				Arguments    json.RawMessage
			}
		}
		if json.Unmarshal([]byte(line), &m) != nil || m.ID == nil {
			continue
		}
		f.handle(string(m.ID), m.Method, m.Params.Cursor, m.Params.Name, string(m.Params.Arguments))
	}
}

func (f *fake) handle(id, method, cursor, name, args string) {
	switch method {
	case "initialize":
		if f.greet == nil || f.greet(f) {
			f.answer(id, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"fake","version":"1"}}`)
		}
	case "tools/list":
		if f.list == nil {
			f.answer(id, `{"tools":[`+echoTool+`]}`)
			return
		}
		f.answer(id, f.list(f, cursor))
	case "tools/call":
		if f.call == nil {
			f.answer(id, fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, name+" "+args))
			return
		}
		if result := f.call(f, id, name, args); result != "" {
			f.answer(id, result)
		}
	default:
		if method != "" {
			f.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}`, id)
		}
	}
}

// wire connects a client to a fake in this process.
func wire(t testing.TB, o Options, f *fake) (*Client, error) {
	t.Helper()
	return wireOf(t, o, f, maxMessageBytes)
}

// wireOf bounds messages to most bytes.
func wireOf(t testing.TB, o Options, f *fake, most int) (*Client, error) {
	t.Helper()
	theirs, ours := io.Pipe()
	in, out := io.Pipe()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		f.serve(theirs, out)
		out.Close()
	}()
	c := newClient("fake", o)
	c.stop = func() {
		theirs.Close()
		in.Close()
	}
	t.Cleanup(func() {
		c.Close()
		<-gone
	})
	p := newPipe(in, ours, c.skipped)
	p.most = most
	return c, c.connect(t.Context(), p, revision)
}

func wired(t testing.TB, o Options, f *fake) *Client {
	t.Helper()
	c, err := wire(t, o, f)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// tool lists and gives the only tool.
func tool(t testing.TB, c *Client) runtime.Tool {
	t.Helper()
	tools, ds, err := c.List(t.Context())
	if err != nil || len(ds) > 0 {
		t.Fatal(err, ds)
	}
	offered, ds := servers.Offer(c.name, spec.MCPServer{}, tools)
	if len(offered) != 1 || len(ds) > 0 {
		t.Fatalf("%d tools, %v", len(offered), ds)
	}
	return c.Tool(offered[0])
}

func invoke(ctx context.Context, tool runtime.Tool, args string) spec.ToolResult {
	return tool.Call(ctx, runtime.Invocation{Canonical: []byte(args)})
}
