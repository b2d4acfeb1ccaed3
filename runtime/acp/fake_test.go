package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// fake is the other side: an agent that does what a script says. Scripts run in this process, or in one of their own.
type fake struct {
	script
	in  *lines
	out io.Writer
	mu  sync.Mutex

	id      json.RawMessage // of the prompt
	text    string          // of the prompt
	heard   []message       // what came while the script listened
	nextID  int
	session int
}

// script is one way to behave. Empty answers are those of an ordinary agent.
type script struct {
	banner     string // before anything else
	initialize string // the whole answer without its id, such as "result":{}; silent: none
	session    string // likewise
	prompt     func(f *fake)
}

const silent = "silent"

// line sends one line.
func (f *fake) line(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fmt.Fprintf(f.out, format+"\n", args...)
}

// update sends a session/update.
func (f *fake) update(json string) {
	f.line(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s%d","update":%s}}`, f.session, json)
}

func (f *fake) say(text string) {
	b, _ := json.Marshal(text)
	f.update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":` + string(b) + `}}`)
}

// end answers the prompt.
func (f *fake) end(result string) { f.line(`{"jsonrpc":"2.0","id":%s,"result":%s}`, f.id, result) }

const endTurn = `{"stopReason":"end_turn"}`

// request sends a request and waits for its answer, keeping what else comes.
func (f *fake) request(method, params string) message {
	f.nextID++
	id := fmt.Sprintf(`"q%d"`, f.nextID)
	f.line(`{"jsonrpc":"2.0","id":%s,"method":"%s","params":%s}`, id, method, params)
	return f.wait(func(m message) bool { return string(m.ID) == id })
}

// wait listens until a message comes that is wanted.
func (f *fake) wait(wanted func(message) bool) message {
	for {
		line, err := f.in.next()
		if err != nil {
			return message{method: "closed"}
		}
		m, _ := parse(slices.Clone(line))
		f.heard = append(f.heard, m)
		if wanted(m) {
			return m
		}
	}
}

func (f *fake) ask(call, options string) message {
	return f.request("session/request_permission", fmt.Sprintf(`{"sessionId":"s%d","toolCall":%s,"options":%s}`, f.session, call, options))
}

const (
	onceOptions = `[{"optionId":"o1","name":"Allow","kind":"allow_once"},{"optionId":"o2","name":"Reject","kind":"reject_once"}]`
	rmCall      = `{"toolCallId":"c1","title":"rm -rf build","kind":"execute","rawInput":{"command":"rm -rf build"}}`
)

// run serves until its input ends.
func (f *fake) run() {
	if f.banner != "" {
		f.line("%s", f.banner)
	}
	for {
		line, err := f.in.next()
		if err != nil {
			return
		}
		m, kind := parse(slices.Clone(line))
		switch {
		case kind != request:
		case m.method == "initialize":
			f.answer(m, f.initialize, `"result":{"protocolVersion":1,"agentCapabilities":{}}`)
		case m.method == "session/new":
			f.session++
			f.answer(m, f.script.session, fmt.Sprintf(`"result":{"sessionId":"s%d"}`, f.session))
		case m.method == "session/prompt":
			var p struct {
				Prompt []struct{ Text string } `json:"prompt"`
			}
			_ = json.Unmarshal(m.Params, &p)
			f.id, f.text = m.ID, p.Prompt[0].Text
			f.prompt(f)
		}
	}
}

func (f *fake) answer(m message, given, otherwise string) {
	if given == silent {
		return
	}
	if given == "" {
		given = otherwise
	}
	f.line(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, given)
}

// inProcess starts scripts on goroutines, one after the other; the last one goes on being started. It can be told how many
// were.
func inProcess(starts *int, scripts ...script) func(*Options) (*child, error) {
	return func(*Options) (*child, error) {
		s := scripts[min(*starts, len(scripts)-1)]
		*starts++
		toAgent, ours := io.Pipe()
		theirs, fromAgent := io.Pipe()
		f := &fake{script: s, in: newLines(toAgent), out: fromAgent}
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.run()
			fromAgent.Close()
			toAgent.Close()
		}()
		return &child{in: ours, out: theirs, done: done,
			exit:   func() string { <-done; return "exited with code 3" },
			stderr: func() string { return "" },
			close: func(grace time.Duration) {
				ours.Close()
				select {
				case <-done:
				case <-time.After(grace):
				}
				toAgent.CloseWithError(io.ErrClosedPipe)
				theirs.CloseWithError(io.ErrClosedPipe)
				<-done
			}}, nil
	}
}

// agent gives an agent that runs scripts in this process.
func agent(t testing.TB, o Options, scripts ...script) *Agent {
	a, _ := agentAndStarts(t, o, scripts...)
	return a
}

// agentAndStarts also gives how often it was started.
func agentAndStarts(t testing.TB, o Options, scripts ...script) (*Agent, *int) {
	t.Helper()
	o.Command, o.Dir = []string{"fake"}, "/work"
	a, starts := New(o), new(int)
	a.start = inProcess(starts, scripts...)
	t.Cleanup(func() { a.Close() })
	return a, starts
}

// turnOf runs one prompt against one script.
func turnOf(t *testing.T, o Options, prompt func(f *fake)) (*Reply, error) {
	t.Helper()
	a := agent(t, o, script{prompt: prompt})
	defer a.Close()
	return a.Prompt(t.Context(), "go")
}

// codeOf gives the code of an error.
func codeOf(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	e, ok := err.(*Error)
	if !ok {
		t.Fatalf("error %T is no *Error", err)
	}
	return e.Code
}

const fakeMode = "OMA_FAKE_AGENT"

func TestMain(m *testing.M) {
	if mode := os.Getenv(fakeMode); mode != "" {
		runFake(mode)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func runFake(mode string) {
	s, ok := programs()[mode]
	if !ok {
		fmt.Fprintf(os.Stderr, "no script %q\n", mode)
		os.Exit(99)
	}
	f := &fake{script: s, in: newLines(os.Stdin), out: os.Stdout}
	f.run()
}

// program gives an agent that runs a script as a program.
func program(t testing.TB, mode string, o Options) *Agent {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o.Command, o.Dir = []string{self}, t.TempDir()
	o.Env = append(o.Env, fakeMode+"="+mode, "PATH="+os.Getenv("PATH"))
	a := New(o)
	t.Cleanup(func() { a.Close() })
	return a
}

func wantText(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q does not say %q", text, p)
		}
	}
}

// ctxt keeps function literals on one line.
type ctxt = context.Context
