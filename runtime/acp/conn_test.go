package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

// TestAC01 holds that lines that are no message are skipped, kept for the log, and not without end.
func TestAC01(t *testing.T) {
	var log []string
	a := agent(t, Options{Log: func(s string) { log = append(log, s) }}, script{
		banner: "Loading config...\n\n\x1b[33mwarn\x1b[0m\n{\"level\":\"info\"}\n{broken\n42\nnull",
		prompt: func(f *fake) { f.line("tick"); f.say("ok"); f.end(endTurn) }})
	r, err := a.Prompt(t.Context(), "go")
	if err != nil || r.Output != "ok" {
		t.Fatalf("%+v, %v", r, err)
	}
	a.Close()
	if len(log) != 7 || !strings.Contains(log[0], "Loading config") {
		t.Errorf("%d lines were logged: %q", len(log), log)
	}
	_, err = turnOf(t, Options{}, func(f *fake) {
		for range maxNoise + 1 {
			f.line("tick")
		}
	})
	if codeOf(t, err) != CodeProtocol {
		t.Errorf("endless noise ended with %v", err)
	}
	wantText(t, errNoise.Error(), fmt.Sprint(maxNoise))
	wantText(t, errLongLine.Error(), fmt.Sprint(maxLine>>20))
}

// TestAC05 holds that only version 1 of the protocol is spoken.
func TestAC05(t *testing.T) {
	for _, test := range []struct{ answer, code, want string }{
		{`"result":{"protocolVersion":99}`, CodeProtocol, "version 99, expected 1"},
		{`"result":{"protocolVersion":"1"}`, CodeProtocol, `version "1", expected 1`},
		{`"result":{"protocolVersion":null}`, CodeProtocol, "version null, expected 1"},
		{`"result":{}`, CodeProtocol, "no protocol version, expected 1"},
		{`"result":null`, CodeProtocol, "no protocol version, expected 1"},
		{`"result":[]`, CodeProtocol, "no protocol version, expected 1"},
		{`"error":{"code":-32603,"message":"no"}`, CodeAgent, "while it was greeted: no (code -32603)"},
		{`"error":"no"`, CodeAgent, "an error of unknown form"},
	} {
		t.Run(test.answer, func(t *testing.T) {
			opened := false
			s := script{initialize: test.answer, prompt: func(f *fake) { opened = true }}
			a := agent(t, Options{}, s)
			_, err := a.Prompt(t.Context(), "go")
			if codeOf(t, err) != test.code || opened {
				t.Fatalf("ended with %v, went on %v", err, opened)
			}
			wantText(t, err.Error(), test.want)
		})
	}
}

// TestSession holds what an agent must answer to be given prompts.
func TestSession(t *testing.T) {
	methods := `"result":{"protocolVersion":1,"authMethods":[{"id":"login","name":"x"},{"id":"api-key","name":"y"}]}`
	for _, test := range []struct{ name, initialize, session, code, want string }{
		{"wants signing in", methods, `"error":{"code":-32000,"message":"Authentication required"}`, CodeAuthentication, "login, api-key"},
		{"wants it and names no way", "", `"error":{"code":-32000,"message":"Authentication required"}`, CodeAuthentication, "names no way"},
		{"no id", "", `"result":{}`, CodeProtocol, "without an id"},
		{"an error", "", `"error":{"code":-32603,"message":"Internal error","data":{"details":"Query closed"}}`, CodeAgent, "Query closed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := agent(t, Options{}, script{initialize: test.initialize, session: test.session})
			_, err := a.Prompt(t.Context(), "go")
			if codeOf(t, err) != test.code {
				t.Fatalf("ended with %v", err)
			}
			wantText(t, err.Error(), test.want)
		})
	}
}

// TestAC06 holds that a line of more than 64 KiB is read whole.
func TestAC06(t *testing.T) {
	r, err := turnOf(t, Options{}, func(f *fake) { f.say(strings.Repeat("x", 2<<20)); f.say("end"); f.end(endTurn) })
	if err != nil || !strings.HasSuffix(r.Output, "xend") || !strings.Contains(r.Output, "bytes left out") {
		t.Errorf("output of %d bytes, %v", len(r.Output), err)
	}
}

// endless is a line without an end.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return copy(b, bytes.Repeat([]byte("x"), len(b))), nil }

func TestLongLine(t *testing.T) {
	if _, err := newLines(endless{}).next(); err != errLongLine {
		t.Errorf("reading ended with %v", err)
	}
}

// TestBurst holds that many updates come whole and in order to a slow listener, and that the agent's requests are answered
// meanwhile.
func TestBurst(t *testing.T) {
	const many = 6000
	synctest.Test(t, func(t *testing.T) {
		var got []string
		asked := time.Duration(-1)
		begun := time.Now()
		o := Options{
			Update: func(u Update) {
				if len(got) < 100 {
					time.Sleep(time.Second)
				}
				got = append(got, u.Text)
			},
			Permit: func(ctxt, Permission) Answer { asked = time.Since(begun); return Allow }}
		a := agent(t, o, script{prompt: func(f *fake) {
			for i := range many {
				f.say(fmt.Sprint(i, " "))
			}
			f.ask(rmCall, onceOptions)
			f.end(endTurn)
		}})
		r, err := a.Prompt(t.Context(), "go")
		if err != nil {
			t.Fatal(err)
		}
		var want strings.Builder
		for i := range many {
			fmt.Fprint(&want, i, " ")
		}
		if r.Output != want.String() || strings.Join(got, "") != want.String() {
			t.Errorf("lost or reordered: %d of %d bytes, told %d updates", len(r.Output), want.Len(), len(got))
		}
		if asked != 0 {
			t.Errorf("a request waited %v for the listener", asked)
		}
		a.Close()
	})
}

// TestBackpressure holds that what waits for a listener is bounded, and nothing of it lost; and that nobody is held up once
// it is thrown away.
func TestBackpressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, put, got := make(chan bool), 0, 0
		f := newFeed(func(u Update) { <-release; got += len(u.Text) }, 10*(updateCost+1000))
		go func() {
			for range 50 {
				f.put(Update{Text: strings.Repeat("x", 1000)})
				put++
			}
			f.finish()
		}()
		synctest.Wait()
		if put < 10 || put > 13 { // some wait, and one is with the listener
			t.Errorf("%d were put before the listener took one", put)
		}
		close(release)
		<-f.done
		if put != 50 || got != 50_000 {
			t.Errorf("%d were put, %d bytes came", put, got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		release, over := make(chan bool), make(chan bool)
		f := newFeed(func(Update) { <-release }, 0)
		go func() {
			for range 50 {
				f.put(Update{})
			}
			close(over)
		}()
		synctest.Wait()
		f.drop()
		<-over
		close(release)
		<-f.done
	})
}

// TestRequests holds how requests that cannot be served are answered, and that ids come back as they were.
func TestRequests(t *testing.T) {
	for _, test := range []struct{ send, want string }{
		{`{"id":1,"method":"weird/request","params":{}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method \"weird/request\" is not offered"}}`},
		{`{"id":"a","method":"terminal/create","params":{}}`, `{"jsonrpc":"2.0","id":"a","error":{"code":-32601,"message":"method \"terminal/create\" is not offered"}}`},
		{`{"id":1.5e0,"method":"fs/read_text_file"}`, `{"jsonrpc":"2.0","id":1.5e0,"error":{"code":-32601,"message":"method \"fs/read_text_file\" is not offered"}}`},
		{`{"id":null,"method":"x"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"method \"x\" is not offered"}}`},
		{`{"id":{"a":[1]},"method":"x"}`, `{"jsonrpc":"2.0","id":{"a":[1]},"error":{"code":-32601,"message":"method \"x\" is not offered"}}`},
		{`{"id":2,"method":7}`, `{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"not a request"}}`},
		{`{"id":3}`, `{"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"not a request"}}`},
		{`[{"id":4,"method":"x"}]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"several messages in one list are not understood"}}`},
		{`{"id":"` + strings.Repeat("x", maxID) + `","method":"x"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"not a request"}}`},
		{`{"id":5,"method":"session/request_permission","params":[]}`, `{"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"the parameters are not an object with a sessionId"}}`},
		{`{"id":6,"method":"session/request_permission","params":{"sessionId":"s9"}}`, `{"jsonrpc":"2.0","id":6,"error":{"code":-32602,"message":"session \"s9\" is not known"}}`},
	} {
		t.Run(test.send[:min(len(test.send), 60)], func(t *testing.T) {
			var got []byte
			_, err := turnOf(t, Options{}, func(f *fake) {
				f.line("%s", `{"id":999,"result":"of a request that was not made"}`)
				f.line("%s", `{"id":"x","error":null,"result":{}}`)
				f.line("%s", test.send)
				line, _ := f.in.next()
				got = slices.Clone(line)
				f.say("ok")
				f.end(endTurn)
			})
			if err != nil || string(got) != test.want {
				t.Errorf("answered %s (%v), want %s", got, err, test.want)
			}
		})
	}
}

// TestRequestBounds holds that requests are served at once, up to a bound, and an id that is open is not opened again.
func TestRequestBounds(t *testing.T) {
	var refused []string
	allowed := 0
	free := make(chan bool)
	_, err := turnOf(t, Options{Permit: func(ctxt, Permission) Answer { <-free; return Allow }}, func(f *fake) {
		send := func(id int) {
			f.line(`{"id":%d,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":%s,"options":%s}}`, id, rmCall, onceOptions)
		}
		refusal := func() {
			m := f.wait(func(m message) bool { return m.Error != nil })
			refused = append(refused, string(m.ID)+" "+string(m.Error))
		}
		send(0)
		send(0) // open already
		refusal()
		for id := 1; id < maxServing; id++ {
			send(id)
		}
		send(999) // one too many
		refusal()
		close(free)
		for range maxServing {
			if m := f.wait(func(message) bool { return true }); strings.Contains(string(m.Result), `"o1"`) {
				allowed++
			}
		}
		f.say("ok")
		f.end(endTurn)
	})
	want := []string{`0 {"code":-32600,"message":"a request with this id is still open"}`, `999 {"code":-32603,"message":"more than 32 requests at once"}`}
	if diff := cmp.Diff(want, refused); diff != "" || err != nil || allowed != maxServing {
		t.Errorf("%d allowed, %v; refused (-want +got):\n%s", allowed, err, diff)
	}
}

// TestLate holds that nothing is allowed after the prompt's end, nor told.
func TestLate(t *testing.T) {
	late := make(chan message, 1)
	told := 0
	n := 0
	a := agent(t, Options{Update: func(Update) { told++ }, Permit: func(ctxt, Permission) Answer { return Allow }}, script{prompt: func(f *fake) {
		if n++; n > 1 {
			f.end(endTurn)
			return
		}
		f.say("ok")
		f.end(endTurn)
		f.say("more")
		late <- f.ask(rmCall, onceOptions)
	}})
	r, err := a.Prompt(t.Context(), "go")
	if err != nil || r.Output != "ok" || told != 1 {
		t.Fatalf("%+v, %v, told %d", r, err, told)
	}
	if m := <-late; !strings.Contains(string(m.Error), "no prompt runs") {
		t.Errorf("answered %s %s", m.Result, m.Error)
	}
	over := newTurn(t.Context(), &Options{})
	over.settle()
	over.apply(&updateHead{Kind: "agent_message_chunk", Content: block{"text", "more"}}, nil)
	if got := over.end(); got.Output != "" || over.enter() {
		t.Errorf("a turn that was over took %+v", got)
	}
}

// TestOtherSession holds that updates of another session are no part of the turn.
func TestOtherSession(t *testing.T) {
	r, err := turnOf(t, Options{}, func(f *fake) {
		f.line("%s", `{"method":"session/update","params":{"sessionId":"s9","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"not mine"}}}}`)
		f.line("%s", `{"method":"session/update","params":{"sessionId":"s1","update":[]}}`)
		f.line("%s", `{"method":"session/update"}`)
		f.line("%s", `{"method":"_auth/status_update","params":{}}`)
		f.say("mine")
		f.end(endTurn)
	})
	if err != nil || r.Output != "mine" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestSystemPrompt holds that it comes once in a session.
func TestSystemPrompt(t *testing.T) {
	a := agent(t, Options{SystemPrompt: "You are a coder."}, script{prompt: func(f *fake) { f.say(f.text); f.end(endTurn) }})
	for _, want := range []string{"You are a coder.\n\ngo", "go"} {
		if r, err := a.Prompt(t.Context(), "go"); err != nil || r.Output != want {
			t.Errorf("the agent got %q, want %q (%v)", r.Output, want, err)
		}
	}
}

// TestGreeting holds what is offered: what the options name and nothing else.
func TestGreeting(t *testing.T) {
	for _, test := range []struct {
		offered []string
		want    string
	}{
		{nil, `{"fs":{"readTextFile":false,"writeTextFile":false}}`},
		{[]string{FS}, `{"fs":{"readTextFile":true,"writeTextFile":true}}`},
		{[]string{FS, Terminal}, `{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true}`},
	} {
		theirs, ours := io.Pipe()
		answers, agentOut := io.Pipe()
		o := &Options{Dir: "/work", Capabilities: test.offered, Door: func(ctxt, string, map[string]any) spec.ToolResult { return spec.ToolResult{} }}
		s := &session{o: o}
		s.conn = newConn(answers, ours, handler{notify: s.notify, serve: s.serve, remark: o.log})
		ctx, cancel := context.WithCancel(t.Context())
		go s.initialize(ctx)
		line, err := newLines(theirs).next()
		if err != nil {
			t.Fatal(err)
		}
		var hello struct {
			Params struct {
				Version      int `json:"protocolVersion"`
				Capabilities struct {
					Fs       map[string]bool `json:"fs"`
					Terminal bool            `json:"terminal,omitempty"`
				} `json:"clientCapabilities"`
			} `json:"params"`
		}
		if err := json.Unmarshal(line, &hello); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"readTextFile", "writeTextFile"} { // absent is false
			if hello.Params.Capabilities.Fs == nil {
				hello.Params.Capabilities.Fs = map[string]bool{}
			}
			hello.Params.Capabilities.Fs[name] = hello.Params.Capabilities.Fs[name]
		}
		got, _ := json.Marshal(hello.Params.Capabilities)
		if string(got) != test.want || hello.Params.Version != 1 {
			t.Errorf("offered %s in version %d, want %s", got, hello.Params.Version, test.want)
		}
		cancel()
		s.conn.end(errLocal)
		theirs.Close()
		agentOut.Close()
		s.conn.wait()
	}
}

// FuzzLines holds that whatever an agent sends, each request is answered once, nothing panics and the end is seen.
func FuzzLines(f *testing.F) {
	for _, seed := range []string{"", "\n\n", "{}", "[]", "null", "\xff\xfe", `{"id":1,"method":"x"}`, `{"id":1,"result":{}}`, `[{"id":1,"method":"x"}]`,
		`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}}}`,
		`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","rawInput":{"command":["sh","-c","x"]}}}}`,
		`{"id":{"a":1},"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"rawInput":{"command":["a"]}},"options":[{"optionId":"a","kind":"allow_once"}]}}`,
		`{"id":1,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"kind":"execute","title":"x"},"options":[]}}`,
		`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"usage_update","used":1e99,"cost":{"amount":1e-30,"currency":"USD"}}}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		requests := 0
		for in := newLines(bytes.NewReader(sent)); ; {
			line, err := in.next()
			if err != nil {
				break
			}
			if _, kind := parse(line); kind == request || kind == invalid || kind == batch {
				requests++
			}
		}
		o := &Options{Dir: "/work", Permission: AutoApprove}
		s := &session{o: o, id: "s"}
		s.turn = newTurn(t.Context(), o)
		theirs, fromAgent := io.Pipe()
		answers, toAgent := io.Pipe()
		s.conn = newConn(theirs, toAgent, handler{notify: s.notify, serve: s.serve, remark: o.log})
		go func() {
			fromAgent.Write(append(sent, '\n'))
			fromAgent.Write([]byte("\n")) // taken once everything before it was handled
			s.turn.settle()               // what is being answered stops waiting
		}()
		in := newLines(answers)
		for n := range requests {
			line, err := in.next()
			if err != nil || !json.Valid(line) {
				t.Fatalf("answer %d of %d is %q, %v", n+1, requests, line, err)
			}
		}
		fromAgent.Close()
		s.conn.wait()
		toAgent.Close()
		if line, err := in.next(); err == nil {
			t.Errorf("answered once more: %q", line)
		}
		s.turn.end()
		s.meter.take()
	})
}
