package acp

import (
	"io"
	"os/exec"
	"testing"
	"time"
)

// BenchmarkTurn is one prompt to an agent that answers at once, against one line to cat and back: what is left between
// them is this package and the agent's side of the protocol. The ratio is reported as x/pipe.
func BenchmarkTurn(b *testing.B) {
	a := program(b, "echo", Options{})
	if _, err := a.Prompt(b.Context(), "go"); err != nil { // the start is not measured
		b.Fatal(err)
	}
	pipe := pipeEcho(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.Prompt(b.Context(), "go"); err != nil {
			b.Fatal(err)
		}
	}
	if pipe > 0 {
		b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(pipe), "x/pipe")
	}
}

// pipeEcho gives the time of one line to cat and back.
func pipeEcho(b *testing.B) time.Duration {
	cmd := exec.Command("cat")
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
	defer cmd.Wait()
	defer in.Close()
	line, back := make([]byte, 200), make([]byte, 200)
	const rounds = 2000
	begun := time.Now()
	for range rounds {
		if _, err := in.Write(line); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(out, back); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(begun) / rounds
}

// BenchmarkUpdate is one piece of text, read, understood and kept.
func BenchmarkUpdate(b *testing.B) {
	o := &Options{Dir: "/work"}
	s := &session{o: o, id: "s"}
	s.turn = newTurn(b.Context(), o)
	c := &conn{handler: handler{notify: s.notify, serve: s.serve, remark: o.log}}
	line := []byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"twenty bytes of text"}}}}`)
	b.ReportAllocs()
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if err := c.handle(line); err != nil {
			b.Fatal(err)
		}
	}
}
