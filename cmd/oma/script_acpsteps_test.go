package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// step is a line of a file that an agent of the tests follows. What is given of it is done, in the order of the fields.
type step struct {
	Wait   string          // for a file
	Make   string          // a file
	Tell   json.RawMessage // an update
	Method string          // of a request to its client, with Params; sessionId is added
	Params map[string]any
	Times  int  // how often it is made, one after another; the last answer is told. 0: once
	Burst  int  // how often it is made at once, before any answer is read; how many were errors is told. 0: once
	Late   bool // it is made once the prompt was answered
	Cost   json.Number
	Silent bool   // the turn reports no tokens
	Stop   string // how the turn ends
}

// steps is an agent that speaks the Agent Client Protocol and does what a file says.
type steps struct {
	in       *bufio.Scanner
	all      []step
	requests int
	terminal string // the last one that was made
}

func (a *steps) send(m map[string]any) {
	m["jsonrpc"] = "2.0"
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(b))
}

type acpMessage struct {
	ID     any             `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

func (a *steps) next() (m acpMessage) {
	if !a.in.Scan() {
		os.Exit(0)
	}
	if err := json.Unmarshal(a.in.Bytes(), &m); err != nil {
		panic(err)
	}
	return m
}

// stepsACP is that agent as a program. The first argument names the file, of JSON lines.
func stepsACP() {
	raw, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	a := &steps{in: bufio.NewScanner(os.Stdin)}
	a.in.Buffer(nil, 64<<20)
	for line := range strings.Lines(string(raw)) {
		var s step
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			panic(err)
		}
		a.all = append(a.all, s)
	}
	for {
		switch m := a.next(); m.Method {
		case "initialize":
			a.send(map[string]any{"id": m.ID, "result": map[string]any{"protocolVersion": 1, "agentCapabilities": map[string]any{}}})
		case "session/new":
			a.send(map[string]any{"id": m.ID, "result": map[string]any{"sessionId": "s"}})
		case "session/prompt":
			a.prompt(m.ID)
		}
	}
}

// prompt answers with what came of each request, one a line.
func (a *steps) prompt(id any) {
	stop, usage := "end_turn", map[string]any{"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}
	var said []string
	for _, s := range a.all {
		if s.Silent {
			usage = nil
		}
		if s.Stop != "" {
			stop = s.Stop
		}
		if !s.Late {
			said = append(said, a.do(&s)...)
		}
	}
	a.update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": cmp.Or(strings.Join(said, "\n"), "nothing")}})
	a.send(map[string]any{"id": id, "result": map[string]any{"stopReason": stop, "usage": usage}})
	for _, s := range a.all {
		if s.Late {
			fmt.Fprintln(os.Stderr, a.do(&s))
		}
	}
}

func (a *steps) update(u any) {
	a.send(map[string]any{"method": "session/update", "params": map[string]any{"sessionId": "s", "update": u}})
}

func (a *steps) do(s *step) (said []string) {
	for s.Wait != "" {
		if _, err := os.Stat(s.Wait); err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if s.Make != "" {
		if err := os.WriteFile(s.Make, nil, 0o600); err != nil {
			panic(err)
		}
	}
	if s.Tell != nil {
		a.update(s.Tell)
	}
	if s.Cost != "" {
		a.update(map[string]any{"sessionUpdate": "usage_update", "used": 0, "size": 1000, "cost": map[string]any{"amount": s.Cost, "currency": "USD"}})
	}
	if s.Method == "" {
		return said
	}
	params := map[string]any{"sessionId": "s"}
	for k, v := range s.Params {
		if v == "LAST" {
			v = a.terminal
		}
		params[k] = v
	}
	for range max(s.Times, 1) {
		said = a.ask(s, params)
	}
	return said
}

// ask makes a request as often as it is to be made at once.
func (a *steps) ask(s *step, params map[string]any) (said []string) {
	wanted := map[any]bool{}
	for range max(s.Burst, 1) {
		a.requests++
		id := fmt.Sprintf("r%d", a.requests)
		wanted[id] = true
		a.send(map[string]any{"id": id, "method": s.Method, "params": params})
	}
	errors := 0
	for len(wanted) > 0 {
		m := a.next()
		if m.Method != "" || !wanted[m.ID] {
			continue
		}
		delete(wanted, m.ID)
		var made struct{ TerminalID string }
		if json.Unmarshal(m.Result, &made) == nil && made.TerminalID != "" {
			a.terminal = made.TerminalID
		}
		if m.Error != nil {
			errors++
			said = append(said, "error "+m.Error.Message)
		} else {
			said = append(said, string(m.Result))
		}
	}
	if s.Burst > 0 {
		return []string{fmt.Sprintf("%d of %d were refused", errors, s.Burst)}
	}
	return said
}
