package main

import (
	"context"
	"io"
	"testing"
	"time"
)

// BenchmarkCommand is what a command costs once the process runs and its tables are built.
func BenchmarkCommand(b *testing.B) {
	for _, args := range [][]string{{"--help"}, {"validate", review}, {"plan", review}} {
		b.Run(args[0], func(b *testing.B) {
			a := &app{stdout: io.Discard, stderr: io.Discard, lookup: func(string) (string, bool) { return "", false },
				now: time.Now, newID: func() string { return "run_bench" }}
			b.ReportAllocs()
			for b.Loop() {
				if code := a.main(context.Background(), args); code != 0 {
					b.Fatalf("it ends %d", code)
				}
			}
		})
	}
}
