package mcp

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// MC-05: the wait for a greeting and for a call ends at the time that is given, and when the caller's ends.
func TestMC05SilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		_, err := wire(t, Options{}, &fake{greet: func(*fake) bool { return false }})
		if err == nil || err.Error() != `MCP server "fake": no answer to initialize within 1m0s` || time.Since(started) != time.Minute {
			t.Errorf("got %v after %s", err, time.Since(started))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := &fake{call: func(*fake, string, string, string) string { return "" }}
		c := wired(t, Options{RequestTimeout: 7 * time.Second}, f)
		echo := tool(t, c)
		got := invoke(t.Context(), echo, `{}`)
		if want := `MCP tool "echo" failed: MCP server "fake": no answer to tools/call within 7s`; !got.IsError || got.Text != want {
			t.Errorf("got %+v", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		got = invoke(ctx, echo, `{}`)
		if want := `MCP tool "echo" failed: MCP server "fake": tools/call was stopped: context canceled`; !got.IsError || got.Text != want {
			t.Errorf("got %+v", got)
		}
		synctest.Wait()
		if n := strings.Count(f.lines(), `"notifications/cancelled"`); n != 2 {
			t.Errorf("M5: the server was told of %d of 2 cancelled calls", n)
		}
	})
}

// A call that is under way ends with the client, and a second Close does nothing.
func TestCloseDuringCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		called := make(chan struct{})
		c := wired(t, Options{}, &fake{call: func(*fake, string, string, string) string { close(called); return "" }})
		echo := tool(t, c)
		go func() {
			<-called
			c.Close()
			c.Close()
		}()
		got := invoke(t.Context(), echo, `{}`)
		if !got.IsError || !strings.Contains(got.Text, "the connection was closed") {
			t.Errorf("got %+v", got)
		}
	})
}

// A server that reads nothing costs a call its time and no more; Close does not wait for it.
func TestServerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		theirs, ours := io.Pipe()
		in, out := io.Pipe()
		defer out.Close()
		c := newClient("deaf", Options{})
		c.stop = func() { theirs.Close(); in.Close() }
		err := c.connect(t.Context(), newPipe(in, ours, c.skipped), revision)
		if err == nil || err.Error() != `MCP server "deaf": no answer to initialize within 1m0s` {
			t.Errorf("got %v", err)
		}
		c.Close()
	})
}

// What is no message is skipped, and said where something fails.
func TestNoise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{greet: func(f *fake) bool {
			f.say("Server starting on port 1 ...")
			f.say(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":`)
			f.say(`[{"jsonrpc":"2.0","method":"notifications/message"}]`)
			f.say(`{"level":"info","msg":"a log in JSON"}`)
			f.say("\x00\xff")
			f.say("")
			return true
		}, call: func(*fake, string, string, string) string { return "" }}
		c := wired(t, Options{RequestTimeout: time.Second}, f)
		got := invoke(t.Context(), tool(t, c), `{}`)
		want := `MCP tool "echo" failed: MCP server "fake": no answer to tools/call within 1s; 5 lines of its output were no messages, the first: "Server starting on port 1 ..."`
		if got.Text != want {
			t.Errorf("got %s", got.Text)
		}
	})
}

// Thousands of notifications at once lose no answer.
func TestFlood(t *testing.T) {
	flood := func(f *fake) {
		for i := range 5000 {
			f.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"x","progress":%d}}`, i)
			f.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%d"}}`, i)
		}
	}
	f := &fake{call: func(f *fake, id, name, args string) string {
		flood(f)
		f.answer(id, `{"content":[{"type":"text","text":"through"}]}`)
		flood(f) // the last may come after the result
		return ""
	}}
	c := wired(t, Options{}, f)
	echo := tool(t, c)
	for range 2 {
		if got := invoke(t.Context(), echo, `{}`); got.IsError || got.Text != "through" {
			t.Errorf("got %+v", got)
		}
	}
}

// A server gets nothing from its client: what it asks for is refused, and its call goes on.
func TestNothingIsOffered(t *testing.T) {
	asked := []string{"sampling/createMessage", "elicitation/create", "roots/list", "no/such"}
	synctest.Test(t, func(t *testing.T) {
		f := &fake{call: func(f *fake, id, name, args string) string {
			for i, method := range asked {
				params := map[string]string{"sampling/createMessage": `{"maxTokens":1,"messages":[]}`, "elicitation/create": `{"message":"m","requestedSchema":{"type":"object","properties":{}}}`}[method]
				if params == "" {
					params = "{}"
				}
				f.say(`{"jsonrpc":"2.0","id":"ask%d","method":%q,"params":%s}`, i, method, params)
			}
			return `{"content":[]}`
		}}
		c := wired(t, Options{}, f)
		if got := invoke(t.Context(), tool(t, c), `{}`); got.IsError {
			t.Errorf("got %+v", got)
		}
		synctest.Wait() // answers follow in their own time
		heard := f.lines()
		for i, method := range asked {
			if !strings.Contains(heard, fmt.Sprintf(`"id":"ask%d","error":{"code":-32601`, i)) {
				t.Errorf("%s was not refused: %s", method, heard)
			}
		}
		if !strings.Contains(heard, `"capabilities":{}`) {
			t.Errorf("a capability is declared: %s", heard)
		}
	})
}

// A server that asks without end and reads no answer does not fill the memory.
func TestAsksWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{call: func(f *fake, id, name, args string) string {
			for i := range 2 * maxAsked { // while it does so, it does not read
				f.say(`{"jsonrpc":"2.0","id":"a%d","method":"roots/list"}`, i)
			}
			return `{"content":[]}`
		}}
		c := wired(t, Options{}, f)
		got := invoke(t.Context(), tool(t, c), `{}`)
		if want := `MCP tool "echo" failed: MCP server "fake": tools/call failed: the server asks more than 1000 things at once`; got.Text != want {
			t.Errorf("got %s", got.Text)
		}
	})
}
