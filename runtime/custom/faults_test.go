//go:build unix

package custom

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

// Whatever a command does to its pipes and to whoever waits for it, the call ends with a reason of its own, and nothing of the
// command is left.
func TestFaults(t *testing.T) {
	const short = 300 * time.Millisecond
	input, err := json.Marshal(map[string]string{"q": strings.Repeat("x", 1<<20)}) // more than any pipe holds
	if err != nil {
		t.Fatal(err)
	}
	tookLong := "it took longer than its time limit of 300ms"
	for _, c := range []struct {
		name, script, output string
		limit                time.Duration
		want                 spec.ToolResult // of texts: as shortened has them
	}{
		{"dies before it reads", "exit 3", "", enough, bad("it exited with code 3")},
		{"dies while it reads", "head -c 10 >/dev/null; kill -9 $$", "", enough, bad("it died of signal 9, killed")},
		{"dies while it answers", "cat >/dev/null; printf half; kill -9 $$", "", enough, bad("it died of signal 9, killed\n--- stdout ---\nhalf")},
		{"dies after its answer", "cat >/dev/null; echo all; exit 4", "", enough, bad("it exited with code 4\n--- stdout ---\nall")},
		{"hangs", "echo part; echo why >&2; sleep 300", "", short, bad(tookLong + "\n--- stderr ---\nwhy")},
		{"hangs with its streams closed", "exec 0<&- 1>&- 2>&-; sleep 300", "", short, bad(tookLong)},
		{"SP-04 floods stdout", "yes | head -c 20000000", "", enough, okText("y\ny\ny\n…")},
		{"SP-04 floods stdout for ever", "yes", "", short, bad(tookLong)},
		{"SP-04 floods stdout with JSON", "yes", "json", enough, bad("it wrote more than 8388608 bytes")},
		{"SP-04 floods stderr", "yes | head -c 20000000 >&2; echo done", "", enough, okText("done\n")},
		{"SP-04 floods stderr for ever", "yes >&2", "", short, bad(tookLong + "\n--- stderr ---\n…")},
		{"SP-03 closes its input", "exec 0<&-; sleep 0.1; echo on", "", enough, okText("on\n")},
		{"SP-01 leaves a grandchild with the pipes", "(sleep 300 &); echo done", "", enough, okText("done\n")},
		{"SP-01 leaves a grandchild with the input", "exec 3<&0; sleep 300 <&3 & echo done", "", enough, okText("done\n")},
		{"ignores SIGTERM", "trap '' TERM; while :; do sleep 0.01; done", "", short, bad(tookLong)},
		{"has a child that ignores SIGTERM", "(trap '' TERM; while :; do sleep 0.01; done) & wait", "", short, bad(tookLong)},
		{"writes what is no UTF-8", `printf 'caf\351'`, "", enough, okText("caf\uFFFD")},
		{"writes JSON that is no UTF-8", `printf '"caf\351"'`, "json", enough, bad("its output is not one JSON value: not valid JSON at byte 4: invalid UTF-8")},
		{"SP-03 does not read", "sleep 0.1; echo on", "", enough, okText("on\n")},
		{"does not read and hangs", "sleep 300", "", short, bad(tookLong)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := testOptions(t)
			tool := open1(t, o, spec.CustomTool{Command: []string{"sh", "-c", c.script}, Output: c.output,
				Timeout: spec.Duration(c.limit), InputSchema: spec.Schema(`{"type":"object","properties":{"q":{"type":"string"}}}`)})
			got := invoke(t, t.Context(), tool, string(input))
			if len(got.Text) > 2<<20 {
				t.Errorf("kept %d bytes", len(got.Text))
			}
			got.Text = shortened(got.Text)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			for end := time.Now().Add(enough); left(o.Dir); time.Sleep(time.Millisecond) { // before anything is closed
				if time.Now().After(end) {
					t.Fatal("a process was left behind")
				}
			}
		})
	}
}

// shortened is a text up to where something is left out of it, or to the third line of a flood.
func shortened(text string) string {
	const flood = "y\ny\ny\n"
	if head, _, cut := strings.Cut(text, "…"); cut {
		return head + "…"
	}
	if head, _, cut := strings.Cut(text, flood); cut {
		return head + flood + "…"
	}
	return text
}
