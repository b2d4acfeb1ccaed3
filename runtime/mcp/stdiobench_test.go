//go:build unix

package mcp

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// BenchmarkStdio is a call of a server that is a process of its own. x-bare is how many times as long it takes as a line with
// the same call to the same program and the line that comes back, which nobody reads as anything.
func BenchmarkStdio(b *testing.B) {
	o := program(b, "behaves")
	c, err := Open(b.Context(), "s", o)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	echo := tool(b, c)
	roundTrip := bareServer(b, o)
	var bare, ours time.Duration
	for b.Loop() {
		start := time.Now()
		roundTrip()
		middle := time.Now()
		if got := invoke(b.Context(), echo, `{"text":"x"}`); got.IsError {
			b.Fatal(got.Text)
		}
		bare, ours = bare+middle.Sub(start), ours+time.Since(middle)
	}
	b.ReportMetric(float64(ours)/float64(bare), "x-bare")
	b.ReportMetric(float64((ours-bare).Nanoseconds())/float64(b.N)/1000, "µs-more")
}

// bareServer starts a server and gives one round trip to it.
func bareServer(b *testing.B, o Options) func() {
	b.Helper()
	cmd := &exec.Cmd{Path: o.Command[0], Env: o.Env, Dir: o.Dir, Stderr: os.Stderr}
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
	return func() {
		id++
		if _, err := io.WriteString(in, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}`+"\n", id)); err != nil {
			b.Fatal(err)
		}
		if _, err := lines.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
}
