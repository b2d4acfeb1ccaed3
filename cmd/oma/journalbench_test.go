package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// calls is how many calls of a tool a measured run makes, one a turn.
const calls = 200

// writeCalls writes a team whose model takes no time, and makes calls of one tool.
func writeCalls(b *testing.B, tool, input string) string {
	b.Helper()
	dir := b.TempDir()
	var tape strings.Builder
	fmt.Fprintf(&tape, "apiVersion: oma/v1\nkind: Cassette\nagents:\n  worker:\n")
	for i := range calls {
		fmt.Fprintf(&tape, "    - toolCalls: [{id: c%d, name: %s, input: %s}]\n      usage: {input: 100, output: 10}\n", i, tool, strings.ReplaceAll(input, "N", fmt.Sprint(i)))
	}
	tape.WriteString("    - {text: done, usage: {input: 100, output: 10}}\n")
	team := fmt.Sprintf(`apiVersion: oma/v1
kind: Team
name: calls
goal: Call.
providers: {demo: {kind: scripted, cassette: tape.yaml}}
defaults: {provider: demo, cwd: work, maxTurns: %d}
agents: [{name: worker, systemPrompt: p, tools: [%s]}]
governance: {governanceIntent: required, requiredRoles: [worker]}
`, calls+10, tool)
	for name, text := range map[string]string{"team.yaml": team, "tape.yaml": tape.String(), "work/note.txt": strings.Repeat("a line of it\n", 20)} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	return dir
}

// onlyPath is an environment that programs are found in, and nothing else.
func onlyPath(name string) (string, bool) {
	if name != "PATH" {
		return "", false
	}
	return os.LookupEnv(name)
}

// BenchmarkJournal is what the event log adds to a run of 200 calls by a model that takes no time: whole commands in this
// process, with the log and without it in turns, and the ratio of their medians. Calls that only read are flushed to the
// system, all others to disk.
func BenchmarkJournal(b *testing.B) {
	for _, c := range []struct{ name, tool, input string }{
		{"read", "file_read", `{path: note.txt}`},
		{"write", "file_write", `{path: outN.txt, content: a line}`},
		{"bash", "bash", `{command: "true"}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			dir := writeCalls(b, c.tool, c.input)
			run := func(flags ...string) time.Duration {
				var said strings.Builder
				a := &app{stdout: io.Discard, stderr: &said, lookup: onlyPath,
					now: time.Now, newID: randomID, login: func() string { return "" }, closed: true}
				started := time.Now()
				args := append([]string{"run", "-q", "--state", dir + "-state"}, flags...)
				if code := a.main(context.Background(), append(args, filepath.Join(dir, "team.yaml"))); code != 0 {
					b.Fatalf("%v ends %d: %s", args, code, said.String())
				}
				return time.Since(started)
			}
			run()
			run("--no-journal")
			var with, without []time.Duration
			for b.Loop() {
				with, without = append(with, run()), append(without, run("--no-journal"))
			}
			slices.Sort(with)
			slices.Sort(without)
			n := len(with)
			b.ReportMetric(float64(with[n/2])/float64(without[n/2]), "ratio")
			b.ReportMetric(float64(with[n/2].Microseconds()-without[n/2].Microseconds())/calls, "µs/call-added")
			b.ReportMetric(float64(with[n/2].Microseconds())/1000, "ms-with")
		})
	}
}
