//go:build unix

package external

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

// Whatever a program does to its pipes and to whoever waits for it, the prompt ends with a reason of its own, and nothing of the
// program is left.
func TestFaults(t *testing.T) {
	const short = 300 * time.Millisecond
	prompted := strings.Repeat("x", 1<<20) // more than any pipe holds
	provider := func(retryable bool, message string) spec.ErrorInfo {
		return spec.ErrorInfo{Kind: "provider", Retryable: retryable, Message: `process backend "coder" ` + message}
	}
	tookLong := spec.ErrorInfo{Kind: "timeout", Retryable: true, Message: `process backend "coder" did not end within its time limit of 300ms`}
	complained := tookLong
	complained.Message += ": …"
	tooMuch := provider(false, "wrote more than 16777216 bytes, which is the longest answer")
	for _, c := range []struct {
		name, script string
		limit        time.Duration
		want         got // of messages: up to what a flood left of them
	}{
		{"dies before it reads", "exit 3", enough, got{"", provider(true, "exited with code 3")}},
		{"dies while it reads", "head -c 10 >/dev/null; kill -9 $$", enough, got{"", provider(true, "died of signal 9, killed")}},
		{"dies while it answers", "cat >/dev/null; printf half; kill -9 $$", enough, got{"half", provider(true, "died of signal 9, killed")}},
		{"dies after its answer", "cat >/dev/null; echo all; exit 4", enough, got{"all\n", provider(true, "exited with code 4")}},
		{"hangs", "echo part; sleep 300", short, got{"part\n", tookLong}},
		{"hangs with its streams closed", "exec 0<&- 1>&- 2>&-; sleep 300", short, got{"", tookLong}},
		{"SP-04 floods stdout", "yes | head -c 20000000", enough, got{"", tooMuch}},
		{"SP-04 floods stdout for ever", "yes", enough, got{"", tooMuch}},
		{"SP-04 floods stderr", "yes | head -c 20000000 >&2; echo done", enough, got{Text: "done\n"}},
		{"SP-04 floods stderr for ever", "yes >&2", short, got{"", complained}},
		{"SP-03 closes its input", "exec 0<&-; sleep 0.1; echo on", enough, got{Text: "on\n"}},
		{"SP-01 leaves a grandchild with the pipes", "(sleep 300 &); echo done", enough, got{Text: "done\n"}},
		{"SP-01 leaves a grandchild with the input", "exec 3<&0; sleep 300 <&3 & echo done", enough, got{Text: "done\n"}},
		{"ignores SIGTERM", "trap '' TERM; while :; do sleep 0.01; done", short, got{"", tookLong}},
		{"has a child that ignores SIGTERM", "(trap '' TERM; while :; do sleep 0.01; done) & wait", short, got{"", tookLong}},
		{"writes what is no UTF-8", `printf 'caf\351'`, enough, got{Text: "caf\uFFFD"}},
		{"complains in what is no UTF-8", `printf 'caf\351' >&2; exit 1`, enough, got{"", provider(true, "exited with code 1: caf\uFFFD")}},
		{"SP-03 does not read", "sleep 0.1; echo on", enough, got{Text: "on\n"}},
		{"does not read and hangs", "sleep 300", short, got{"", tookLong}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var mark string
			p := coder(t, c.script, func(o *Options) { o.Backend.Timeout, mark = spec.Duration(c.limit), o.Dir })
			g := prompt(t, t.Context(), p, prompted)
			if i := strings.Index(g.Err.Message, "…"); i >= 0 {
				g.Err.Message = g.Err.Message[:i+len("…")]
			}
			if diff := cmp.Diff(c.want, g); diff != "" {
				t.Error(diff)
			}
			for end := time.Now().Add(enough); left(mark); time.Sleep(time.Millisecond) { // before anything is closed
				if time.Now().After(end) {
					t.Fatal("a process was left behind")
				}
			}
		})
	}
}
