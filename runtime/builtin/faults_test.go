//go:build unix

package builtin

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

// Whatever a command does to its pipes and to whoever waits for it, the call ends with a reason of its own, and nothing of the
// command is left. There is no input that it could read or leave.
func TestBashFaults(t *testing.T) {
	const short, enough = 300, 20_000 // in ms
	killed := func(said string) spec.ToolResult {
		return spec.ToolResult{Text: said + "(killed at its time limit of 300 ms)\n(exit code: 124)", IsError: true}
	}
	ok := func(text string) spec.ToolResult { return spec.ToolResult{Text: text} }
	bad := func(text string) spec.ToolResult { return spec.ToolResult{Text: text, IsError: true} }
	for _, c := range []struct {
		name, command string
		limit         int64
		want          spec.ToolResult // of a flood: its first lines, and what follows it
	}{
		{"dies at once", "exit 3", enough, bad("(command exited with code 3, no output)")},
		{"dies of a signal", "kill -9 $$", enough, bad("(died of signal 9, killed)\n(exit code: 137)")},
		{"dies while it answers", "printf half; kill -9 $$", enough, bad("half\n(died of signal 9, killed)\n(exit code: 137)")},
		{"dies after its answer", "echo all; exit 4", enough, bad("all\n(exit code: 4)")},
		{"W2 hangs", "echo part; sleep 300", short, killed("part\n")},
		{"hangs with its streams closed", "exec 0<&- 1>&- 2>&-; sleep 300", short, killed("")},
		{"SP-04 floods stdout", "yes | head -c 20000000; echo done", enough, ok("y\ny\ny\n…done\n")},
		{"SP-04 floods stdout for ever", "yes", short, killed("y\ny\ny\n…")},
		{"SP-04 floods stderr", "yes | head -c 20000000 >&2; echo done", enough, ok("done\n--- stderr ---\ny\ny\ny\n…")},
		{"SP-04 floods stderr for ever", "yes >&2", short, killed("y\ny\ny\n…")},
		{"closes its input", "exec 0<&-; echo on", enough, ok("on\n")},
		{"reads what it is not given", "cat; echo $?", enough, ok("0\n")},
		{"SP-01 leaves a grandchild with the pipes", "(sleep 300 &); echo done", enough, ok("done\n")},
		{"ignores SIGTERM", "trap '' TERM INT HUP; while :; do sleep 0.01; done", short, killed("")},
		{"has a child that ignores SIGTERM", "(trap '' TERM; while :; do sleep 0.01; done) & wait", short, killed("")},
		{"writes what is no UTF-8", `printf 'caf\351'`, enough, ok("caf\uFFFD")},
		{"writes a zero byte", `printf 'a\0b'`, enough, ok("a\x00b")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := tempDir(t)
			o := testOptions(dir)
			plain := o.Env
			o.Env = func(name string) (string, bool) {
				if name == "TMP" {
					return dir, true
				}
				return plain(name)
			}
			start := time.Now()
			got := call(openWith(t, o), Bash, map[string]any{"command": c.command, "timeout": c.limit})
			if took := time.Since(start); took > enough*time.Millisecond {
				t.Errorf("took %v", took)
			}
			if len(got.Text) > 4*keepBytes+500 {
				t.Errorf("kept %d bytes", len(got.Text))
			}
			got.Text = unflooded(got.Text)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			for end := time.Now().Add(enough * time.Millisecond); marked("TMP=" + dir); time.Sleep(time.Millisecond) { // before anything is closed
				if time.Now().After(end) {
					t.Fatal("a process was left behind")
				}
			}
		})
	}
}

// unflooded leaves the first lines of a flood, and what comes after it.
func unflooded(text string) string {
	const flood = "y\ny\ny\n"
	i := strings.Index(text, flood)
	if i < 0 {
		return text
	}
	return text[:i] + flood + "…" + strings.TrimLeft(text[strings.LastIndex(text, "y\n")+len("y\n"):], "y\n")
}

// marked says whether a process lives whose environment has a text. Where there is no /proc it can see none.
func marked(text string) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		if env, err := os.ReadFile(file); err == nil && bytes.Contains(env, []byte(text)) {
			return true
		}
	}
	return false
}
