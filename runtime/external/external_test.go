//go:build unix

package external

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

// enough is longer than any of these may take on a busy machine.
const enough = 20 * time.Second

// coder is a backend named coder that runs a script; change changes its options.
func coder(t testing.TB, script string, change ...func(*Options)) *Process {
	t.Helper()
	o := Options{Name: "coder", Dir: t.TempDir(), Grace: 100 * time.Millisecond, Backend: spec.Backend{Kind: "process", Command: "sh", Args: []string{"-c", script, "sh"}}}
	mark := o.Dir
	o.Env = func(name string) (string, bool) {
		v, ok := map[string]string{"PATH": os.Getenv("PATH"), "HOME": "/home/u", "OPENAI_API_KEY": "sk-test", "TMP": mark}[name]
		return v, ok
	}
	o.Redact = func(s string) string { return strings.ReplaceAll(s, "hunter2", "[redacted]") }
	for _, c := range change {
		c(&o)
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
		for end := time.Now().Add(enough); left(mark); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("a process was left behind")
			}
		}
	})
	return p
}

// left says whether a process lives whose environment has the mark. Where there is no /proc it can see none.
func left(mark string) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		if env, err := os.ReadFile(file); err == nil && bytes.Contains(env, []byte("TMP="+mark)) {
			return true
		}
	}
	return false
}

func input(kind string) func(*Options) { return func(o *Options) { o.Backend.Input = kind } }

// got is what of a reply and an error can be compared.
type got struct {
	Text string
	Err  spec.ErrorInfo
}

func prompt(t *testing.T, ctx context.Context, p *Process, text string) got {
	t.Helper()
	start := time.Now()
	r, err := p.Prompt(ctx, text)
	if d := time.Since(start); d > enough {
		t.Errorf("took %v", d)
	}
	g := got{Text: r.Text}
	if err != nil {
		g.Err = err.(*Error).Info
	}
	return g
}

func TestPromptX2(t *testing.T) {
	system := func(o *Options) { o.SystemPrompt = "\n Be brief. \n" }
	for _, c := range []struct {
		name   string
		p      *Process
		prompt string
		want   string
	}{
		{"stdin", coder(t, `cat; echo "[$#]"`, system), "  do it\n", "Be brief.\n\ndo it[0]\n"},
		{"argument", coder(t, `cat; printf '%s|' "$@"`, system, input("argument"), func(o *Options) { o.Backend.Args = append(o.Backend.Args, "a b") }), "do 'it'; exit 9", "a b|Be brief.\n\ndo 'it'; exit 9|"},
		{"none", coder(t, `cat; echo "[$#]"`, system, input("none")), "do it", "[0]\n"},
		{"none, empty", coder(t, "echo fixed", input("none")), "", "fixed\n"},
		{"no system prompt", coder(t, "cat"), "do it", "do it"},
		{"no prompt", coder(t, "cat", system), "", "Be brief."},
	} {
		if diff := cmp.Diff(got{Text: c.want}, prompt(t, t.Context(), c.p, c.prompt)); diff != "" {
			t.Errorf("%s\n%s", c.name, diff)
		}
	}
	for _, kind := range []string{"", "stdin", "argument"} {
		want := got{Err: spec.ErrorInfo{Kind: "validation", Message: `process backend "coder" received an empty prompt`}}
		if diff := cmp.Diff(want, prompt(t, t.Context(), coder(t, "touch started", input(kind)), " \n")); diff != "" {
			t.Errorf("%s\n%s", kind, diff)
		}
	}
}

func TestOutcomeX3(t *testing.T) {
	fail := func(kind string, retryable bool, message string) spec.ErrorInfo {
		return spec.ErrorInfo{Kind: kind, Retryable: retryable, Message: `process backend "coder" ` + message}
	}
	limit := func(o *Options) { o.Backend.Timeout = spec.Duration(200 * time.Millisecond) }
	for _, c := range []struct {
		name string
		p    *Process
		want got
	}{
		{"stderr is dropped", coder(t, "echo out; echo hunter2 >&2"), got{Text: "out\n"}},
		{"nothing is an answer", coder(t, "exit 0"), got{}},
		{"an answer is no message", coder(t, "echo hunter2"), got{Text: "hunter2\n"}},
		{"exit code", coder(t, "echo part; exit 3"), got{"part\n", fail("provider", true, "exited with code 3")}},
		{"exit code and stderr", coder(t, "echo ' key hunter2 ' >&2; exit 3"), got{"", fail("provider", true, "exited with code 3: key [redacted]")}},
		{"hangs", coder(t, "echo part; echo why >&2; sleep 300", limit), got{"part\n", fail("timeout", true, "did not end within its time limit of 200ms: why")}},
		{"no program", coder(t, "", func(o *Options) { o.Backend.Command = "no-such-program" }), got{"", fail("validation", false, `cannot be started: program "no-such-program" is in no folder of PATH`)}},
		{"no folder", coder(t, "", func(o *Options) { o.Dir = "/no-such-folder" }), got{"", fail("provider", false, `cannot be started: there is no folder "/no-such-folder" to start in`)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, prompt(t, t.Context(), c.p, strings.Repeat("x", 1<<20))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An answer of the greatest length comes whole.
func TestLongAnswer(t *testing.T) {
	g := prompt(t, t.Context(), coder(t, fmt.Sprintf("yes | head -c %d", maxAnswer)), "x")
	if len(g.Text) != maxAnswer || strings.Trim(g.Text, "y\n") != "" || g.Err != (spec.ErrorInfo{}) {
		t.Error(len(g.Text), g.Err)
	}
}

// SP-04: of endless complaints the end is shown, within the length of a message.
func TestLongStderrSP04(t *testing.T) {
	g := prompt(t, t.Context(), coder(t, "yes | head -c 20000000 >&2; echo é last >&2; exit 1"), "x")
	if n := len([]rune(g.Err.Message)); n > maxMessage || !strings.HasPrefix(g.Err.Message, `process backend "coder" exited with code 1: …`) || !strings.HasSuffix(g.Err.Message, "y\né last") {
		t.Error(n, g.Err.Message)
	}
}

// SP-02: a prompt too long for an argument is refused in words, for good.
func TestLongPromptSP02(t *testing.T) {
	g := prompt(t, t.Context(), coder(t, "true", input("argument")), strings.Repeat("x", 6<<20))
	if g.Err.Kind != "validation" || g.Err.Retryable || !strings.Contains(g.Err.Message, "6291456 bytes") && !strings.Contains(g.Err.Message, "arguments and variables") || !strings.HasSuffix(g.Err.Message, "hand the text over on standard input (input: stdin)") {
		t.Errorf("%+v", g.Err)
	}
	if g := prompt(t, t.Context(), coder(t, "wc -c | tr -d ' '"), strings.Repeat("x", 6<<20)); g.Text != "6291456\n" {
		t.Errorf("%+v", g)
	}
}

func TestCancelledKeepsPart(t *testing.T) {
	for end, want := range map[error]spec.ErrorInfo{
		context.Canceled:         {Kind: "cancellation", Message: `process backend "coder" was cancelled`},
		context.DeadlineExceeded: {Kind: "timeout", Message: `process backend "coder" did not end within the time limit of its agent`},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if end == context.Canceled {
			ctx, cancel = context.WithCancel(t.Context())
			time.AfterFunc(300*time.Millisecond, cancel)
		}
		g := prompt(t, ctx, coder(t, "echo part; sleep 300"), "x")
		cancel()
		if diff := cmp.Diff(got{"part\n", want}, g); diff != "" {
			t.Error(diff)
		}
	}
	p := coder(t, "touch started")
	p.Close()
	if g := prompt(t, t.Context(), p, "x"); g.Err.Message != `process backend "coder" was not started: the run has ended` || g.Err.Kind != "cancellation" {
		t.Errorf("%+v", g)
	}
}

// SE-02: the program has what programs need and what is declared.
func TestEnvironmentSE02(t *testing.T) {
	p := coder(t, `env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= -e ^PATH= -e ^TMP= | sort`, func(o *Options) {
		o.Backend.Env = map[string]spec.Variable{"MODE": {Value: "fast"}, "TOKEN": {Credential: "KEY", Prefix: "t-"}}
		o.Credentials = map[string]string{"KEY": "hunter2", "OTHER": "x"}
	})
	if diff := cmp.Diff(got{Text: "HOME=/home/u\nMODE=fast\nTOKEN=t-hunter2\n"}, prompt(t, t.Context(), p, "x")); diff != "" {
		t.Error(diff)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		backend spec.Backend
		want    string
	}{
		{spec.Backend{Kind: "acp"}, `process backend "coder": kind is "acp", want process`},
		{spec.Backend{Kind: "process", Input: "stdn"}, `process backend "coder": input "stdn" is not known: did you mean stdin?`},
		{spec.Backend{Kind: "process", Env: map[string]spec.Variable{"A": {Credential: "KEY"}}}, `process backend "coder": env.A: the agent has no credential "KEY"`},
	} {
		if _, err := New(Options{Name: "coder", Backend: c.backend}); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

func BenchmarkPrompt(b *testing.B) {
	p := coder(b, "cat", func(o *Options) { o.Backend.Command, o.Backend.Args = "cat", nil })
	text := strings.Repeat("a line of a prompt\n", 500)
	for b.Loop() {
		if r, err := p.Prompt(b.Context(), text); err != nil || len(r.Text) != len(text)-1 {
			b.Fatal(r, err)
		}
	}
}
