//go:build unix

package process

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"testing"
	"time"
)

// BenchmarkRun says how much a run costs over a bare start and wait of the same program.
func BenchmarkRun(b *testing.B) {
	file, err := exec.LookPath("true")
	if err != nil {
		b.Skip(err)
	}
	input := bytes.Repeat([]byte("x"), 1000)
	for name, l := range map[string]Limits{"silent": {}, "input": {Input: input, Timeout: time.Minute}} {
		b.Run(name, func(b *testing.B) {
			var bare, ours time.Duration
			for b.Loop() {
				start := time.Now()
				if err := (&exec.Cmd{Path: file, Env: []string{}}).Run(); err != nil {
					b.Fatal(err)
				}
				middle := time.Now()
				if o, err := Run(b.Context(), Command{Program: file}, l); err != nil || !o.Exit.OK() {
					b.Fatal(o, err)
				}
				bare, ours = bare+middle.Sub(start), ours+time.Since(middle)
			}
			b.ReportMetric(float64(ours)/float64(bare), "x-bare")
		})
	}
}

// BenchmarkPeerLine is one line there and back.
func BenchmarkPeerLine(b *testing.B) {
	file, err := exec.LookPath("cat")
	if err != nil {
		b.Skip(err)
	}
	p, err := Start(Command{Program: file}, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close(0)
	out := bufio.NewReader(p.Stdout)
	for b.Loop() {
		fmt.Fprintln(p.Stdin, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		if _, err := out.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOutput is what it costs to drain a stream, most of which is not kept.
func BenchmarkOutput(b *testing.B) {
	c := Command{Program: "/bin/sh", Args: []string{"-c", "head -c 50000000 /dev/zero"}}
	b.SetBytes(50_000_000)
	for b.Loop() {
		if o, err := Run(b.Context(), c, Limits{}); err != nil || o.Stdout.Total != 50_000_000 {
			b.Fatal(o.Stdout.Total, err)
		}
	}
}
