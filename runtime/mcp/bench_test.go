package mcp

import (
	"bufio"
	"io"
	"os"
	"testing"
	"time"
)

// BenchmarkCall is a call over pipes of the system, within this process. x-echo is how many times as long it takes as a
// line that is written and comes back over such pipes.
func BenchmarkCall(b *testing.B) {
	theirs, ours, in, out := pipes(b)
	f := &fake{call: func(*fake, string, string, string) string { return `{"content":[{"type":"text","text":"ok"}]}` }}
	go f.serve(theirs, out)
	c := newClient("fake", Options{})
	if err := c.connect(b.Context(), newPipe(in, ours, c.skipped), revision); err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	echo := tool(b, c)
	bare := bareEcho(b, 20_000)
	b.ReportAllocs()
	for b.Loop() {
		if got := invoke(b.Context(), echo, `{"text":"x"}`); got.IsError {
			b.Fatal(got.Text)
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(bare), "x-echo")
}

// pipes gives both ends of a server's input and of its output.
func pipes(b *testing.B) (theirs, ours, in, out *os.File) {
	b.Helper()
	theirs, ours, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	in, out, err = os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		for _, f := range []*os.File{theirs, ours, in, out} {
			f.Close()
		}
	})
	return theirs, ours, in, out
}

// bareEcho gives the time of one line there and back.
func bareEcho(b *testing.B, rounds int) time.Duration {
	theirs, ours, in, out := pipes(b)
	go func() {
		lines := bufio.NewReader(theirs)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			if _, err := out.Write(line); err != nil {
				return
			}
		}
	}()
	lines := bufio.NewReader(in)
	started := time.Now()
	for range rounds {
		if _, err := io.WriteString(ours, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}`+"\n"); err != nil {
			b.Fatal(err)
		}
		if _, err := lines.ReadBytes('\n'); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(started) / time.Duration(rounds)
}
