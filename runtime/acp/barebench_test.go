package acp

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// BenchmarkTurnBare is one prompt to an agent that answers at once. x-bare is how many times as long it takes as the same lines
// to the same program and what comes back, which nobody reads as anything.
func BenchmarkTurnBare(b *testing.B) {
	a := program(b, "echo", Options{})
	if _, err := a.Prompt(b.Context(), "go"); err != nil { // the start is not measured
		b.Fatal(err)
	}
	prompt := bareAgent(b)
	var bare, ours time.Duration
	for b.Loop() {
		start := time.Now()
		prompt()
		middle := time.Now()
		if _, err := a.Prompt(b.Context(), "go"); err != nil {
			b.Fatal(err)
		}
		bare, ours = bare+middle.Sub(start), ours+time.Since(middle)
	}
	b.ReportMetric(float64(ours)/float64(bare), "x-bare")
	b.ReportMetric(float64((ours-bare).Nanoseconds())/float64(b.N)/1000, "µs-more")
}

// bareAgent starts an agent, opens a session and gives one turn of it.
func bareAgent(b *testing.B) func() {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := &exec.Cmd{Path: self, Env: []string{fakeMode + "=echo", "PATH=" + os.Getenv("PATH")}}
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			b.Error(err)
		}
	})
	lines, id := bufio.NewReader(out), 0
	request := func(method, params string) []byte {
		id++
		if _, err := io.WriteString(in, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params)); err != nil {
			b.Fatal(err)
		}
		for answer := []byte(fmt.Sprintf(`"id":%d,`, id)); ; {
			line, err := lines.ReadSlice('\n')
			if err != nil {
				b.Fatal(err)
			}
			if bytes.Contains(line, answer) {
				return line
			}
		}
	}
	request("initialize", `{"protocolVersion":1,"clientCapabilities":{}}`)
	session := sessionOf(request("session/new", `{"cwd":"/","mcpServers":[]}`))
	if session == "" {
		b.Fatal("no session")
	}
	turn := fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"go"}]}`, session)
	return func() { request("session/prompt", turn) }
}

// sessionOf takes the id of a session out of an answer.
func sessionOf(line []byte) string {
	_, rest, _ := bytes.Cut(line, []byte(`"sessionId":"`))
	id, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(id)
}
