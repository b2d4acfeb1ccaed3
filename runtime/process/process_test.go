//go:build unix

package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// enough is longer than any of these may take on a busy machine, and far shorter than what they would hang for.
const enough = 20 * time.Second

// shell is a command of the system's shell in a folder of its own. Whatever it starts carries the test's mark.
func shell(t testing.TB, script string) Command {
	t.Helper()
	dir := t.TempDir()
	return Command{Program: "/bin/sh", Args: []string{"-c", script}, Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH"), "OMA_TEST_MARK=" + dir}}
}

// gone waits until no process carries the command's mark. Where there is no /proc it can see nothing.
func gone(t *testing.T, c Command) {
	t.Helper()
	mark := []byte(c.Env[len(c.Env)-1])
	for end := time.Now().Add(enough); ; time.Sleep(time.Millisecond) {
		alive := marked(mark)
		if len(alive) == 0 {
			return
		}
		if time.Now().After(end) {
			for _, pid := range alive {
				syscall.Kill(pid, syscall.SIGKILL)
			}
			t.Fatalf("left behind: %v", alive)
		}
	}
}

// marked gives the processes that carry a mark. A zombie has no environment any more.
func marked(mark []byte) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		if env, err := os.ReadFile(file); err == nil && bytes.Contains(env, mark) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestFaults(t *testing.T) {
	megabyte := bytes.Repeat([]byte("x"), 1<<20)
	for _, c := range []struct {
		name, script string
		limits       Limits
		want         Outcome // of texts: as they are, cut at 20 bytes
	}{
		{"SP-03 reads nothing", "true", Limits{Input: megabyte}, Outcome{}},
		{"SP-03 reads a part", "head -c 10; exit 0", Limits{Input: megabyte}, Outcome{Stdout: Output{Text: "xxxxxxxxxx", Total: 10}}},
		{"dies before reading", "exit 3", Limits{Input: megabyte}, Outcome{Exit: Exit{Code: 3}}},
		{"dies while reading", "head -c 10 >/dev/null; kill -9 $$", Limits{Input: megabyte}, Outcome{Exit: Exit{Code: 137, Signal: 9}}},
		{"dies after reading", "wc -c | tr -d ' '; exit 4", Limits{Input: megabyte}, Outcome{Stdout: Output{Text: "1048576\n", Total: 8}, Exit: Exit{Code: 4}}},
		{"closes its input and goes on", "exec 0<&-; echo on", Limits{Input: megabyte}, Outcome{Stdout: Output{Text: "on\n", Total: 3}}},
		{"has no input to wait for", "cat; echo $?", Limits{}, Outcome{Stdout: Output{Text: "0\n", Total: 2}}},
		{"has an empty input", "cat; echo $?", Limits{Input: []byte{}}, Outcome{Stdout: Output{Text: "0\n", Total: 2}}},
		{"hangs", "echo part; sleep 300", Limits{Timeout: 100 * time.Millisecond},
			Outcome{Stdout: Output{Text: "part\n", Total: 5}, Exit: Exit{Code: 137, Signal: 9}, Reason: TimedOut}},
		{"hangs and does not read", "echo part; sleep 300", Limits{Input: megabyte, Timeout: 100 * time.Millisecond},
			Outcome{Stdout: Output{Text: "part\n", Total: 5}, Exit: Exit{Code: 137, Signal: 9}, Reason: TimedOut}},
		{"heeds SIGTERM", "exec 2>/dev/null; trap 'echo bye; exit 0' TERM; while :; do sleep 0.01; done", Limits{Timeout: 300 * time.Millisecond, Grace: enough},
			Outcome{Stdout: Output{Text: "bye\n", Total: 4}, Reason: TimedOut}},
		{"ignores SIGTERM", "trap '' TERM; while :; do sleep 0.01; done", Limits{Timeout: 100 * time.Millisecond, Grace: 100 * time.Millisecond},
			Outcome{Exit: Exit{Code: 137, Signal: 9}, Reason: TimedOut}},
		{"its child heeds SIGTERM later", "exec 2>/dev/null; (trap 'sleep 0.1; echo bye; exit' TERM; while :; do sleep 0.01; done) & wait", Limits{Timeout: 300 * time.Millisecond, Grace: enough},
			Outcome{Stdout: Output{Text: "bye\n", Total: 4}, Exit: Exit{Code: 143, Signal: 15}, Reason: TimedOut}},
		{"its child ignores SIGTERM", "(trap '' TERM; while :; do sleep 0.01; done) & wait", Limits{Timeout: 300 * time.Millisecond, Grace: 100 * time.Millisecond},
			Outcome{Exit: Exit{Code: 143, Signal: 15}, Reason: TimedOut}},
		{"floods stdout", "yes", Limits{MaxStdout: 1000}, Outcome{Reason: Flooded}},
		{"writes all that it may", "yes | head -c 1000", Limits{MaxStdout: 1000}, Outcome{Stdout: Output{Text: "y\ny\ny\ny\ny\ny\ny\ny\ny\ny\n", Total: 1000}}},
		{"is over before its flood is seen", "yes | head -c 1001", Limits{MaxStdout: 1000}, Outcome{Reason: Flooded}},
		{"writes what is no UTF-8", `printf 'caf\351'`, Limits{}, Outcome{Stdout: Output{Text: "caf\xe9", Total: 4}}},
		{"SP-01 leaves a child with the pipe", "sleep 300 & echo done", Limits{}, Outcome{Stdout: Output{Text: "done\n", Total: 5}}},
		{"SP-01 leaves a grandchild", "(sleep 300 &) ; echo done", Limits{}, Outcome{Stdout: Output{Text: "done\n", Total: 5}}},
		{"SP-01 leaves a child with the input", "exec 3<&0; sleep 300 <&3 & echo done", Limits{Input: megabyte}, Outcome{Stdout: Output{Text: "done\n", Total: 5}}},
		{"SP-05 stops a writer", "yes | head -1", Limits{}, Outcome{Stdout: Output{Text: "y\n", Total: 2}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			command, start := shell(t, c.script), time.Now()
			got, err := Run(t.Context(), command, c.limits)
			if err != nil {
				t.Fatal(err)
			}
			if c.want.Reason == Flooded {
				got.Stdout, got.Exit = Output{}, Exit{}
			}
			got.Stdout.Text, got.Exit.signal = got.Stdout.Text[:min(20, len(got.Stdout.Text))], ""
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(Exit{})); diff != "" {
				t.Error(diff)
			}
			if d := time.Since(start); d > enough {
				t.Errorf("took %v", d)
			}
			gone(t, command)
		})
	}
}

// SP-04: memory stays bounded, whichever stream is flooded, and what is missing is counted.
func TestFloodSP04(t *testing.T) {
	got, err := Run(t.Context(), shell(t, "yes | head -c 20000000; yes | head -c 20000000 >&2"), Limits{Keep: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []Output{got.Stdout, got.Stderr} {
		if s.Total != 20_000_000 || s.Missing != 19_980_002 || len(s.Text) > 20_100 || !strings.Contains(s.Text, "\n[... 19980002 bytes left out ...]\n") {
			t.Error(s.Total, s.Missing, len(s.Text))
		}
	}
	if got, err = Run(t.Context(), shell(t, "yes >&2"), Limits{Keep: 1000, Timeout: 100 * time.Millisecond}); err != nil || got.Reason != TimedOut || len(got.Stderr.Text) > 2100 {
		t.Error(err, got.Reason, len(got.Stderr.Text))
	}
}

// A process that left the group keeps every pipe; the call returns all the same.
func TestDetachedSP01(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("no setsid here")
	}
	c := shell(t, "exec 3<&0; setsid sleep 300 <&3 & sleep 0.1; echo done")
	start := time.Now()
	got, err := Run(t.Context(), c, Limits{Input: bytes.Repeat([]byte("x"), 1<<20)})
	if d := time.Since(start); err != nil || got.Stdout.Text != "done\n" || !got.Exit.OK() || d > enough {
		t.Errorf("%+v, %v after %v", got, err, d)
	}
	for _, pid := range marked([]byte(c.Env[1])) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

func TestContextEnds(t *testing.T) {
	for _, c := range []struct {
		context func() (context.Context, context.CancelFunc)
		want    Reason
	}{
		{func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(t.Context(), 100*time.Millisecond)
		}, Deadline},
		{func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(100*time.Millisecond, cancel)
			return ctx, cancel
		}, Cancelled},
	} {
		ctx, cancel := c.context()
		command := shell(t, "echo part; sleep 300")
		got, err := Run(ctx, command, Limits{Grace: enough})
		if err != nil || got.Reason != c.want || got.Stdout.Text != "part\n" || got.Exit.Signal != 15 {
			t.Errorf("want %v: %+v, %v", c.want, got, err)
		}
		gone(t, command)
		cancel()
		command = shell(t, "touch started")
		if got, err := Run(ctx, command, Limits{}); err != nil || got.Reason != c.want {
			t.Errorf("%+v, %v", got, err)
		}
		if _, err := os.Stat(command.Dir + "/started"); err == nil {
			t.Error("a command started after its context had ended")
		}
	}
}

func TestRunnerCloses(t *testing.T) {
	var r Runner
	c := shell(t, "touch started; sleep 300")
	got := make(chan Outcome)
	go func() {
		o, _ := r.Run(context.Background(), c, Limits{})
		got <- o
	}()
	for _, err := os.Stat(c.Dir + "/started"); err != nil; _, err = os.Stat(c.Dir + "/started") {
		time.Sleep(time.Millisecond)
	}
	go r.Close()
	if o := <-got; o.Reason != Closed {
		t.Errorf("%+v", o)
	}
	gone(t, c)
	r.Close()
	if _, err := r.Run(t.Context(), c, Limits{}); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	var unused Runner
	unused.Close()
	if _, err := unused.Run(t.Context(), c, Limits{}); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// SP-02: a text too long for one argument is refused in words that name both figures and the way out.
func TestTooLongSP02(t *testing.T) {
	one, all := argumentLimits()
	c := shell(t, "")
	if one > 0 {
		c.Args = []string{"-c", "true", strings.Repeat("x", one)}
		if got, err := Run(t.Context(), c, Limits{}); err != nil || !got.Exit.OK() {
			t.Error("an argument of the greatest size:", err, got.Exit)
		}
		c.Args = []string{"-c", "true", strings.Repeat("x", one+70_000)}
		_, err := Run(t.Context(), c, Limits{})
		want := fmt.Sprintf("argument 3 has %d bytes, and this system takes at most %d: hand the text over on standard input", one+70_000, one)
		if err == nil || err.Error() != want || !errors.Is(err, syscall.E2BIG) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
	c.Args = []string{"-c", "true"}
	for range all/100_000 + 1 {
		c.Args = append(c.Args, strings.Repeat("x", 100_000))
	}
	_, err := Start(c, 0)
	var long *TooLongError
	if !errors.As(err, &long) || long.Argument != 0 || long.Limit != all || long.Size <= all || !strings.HasPrefix(err.Error(), "the arguments and variables have ") {
		t.Error(err)
	}
}

func TestDoesNotStart(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/script", []byte("echo"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		command Command
		want    string
	}{
		{Command{Program: dir + "/none"}, "no such file or directory"},
		{Command{Program: "/bin/sh", Dir: dir + "/none"}, fmt.Sprintf("there is no folder %q to start in", dir+"/none")},
		{Command{Program: "/bin/sh", Dir: dir + "/script"}, fmt.Sprintf("there is no folder %q to start in", dir+"/script")},
		{Command{Program: dir + "/script"}, "exec format error: a script needs a first line such as #!/bin/sh"},
		{Command{Program: dir}, "permission denied"},
		{Command{Program: "/bin/sh", Args: []string{"\x00"}}, "invalid argument"},
	} {
		if _, err := Run(t.Context(), c.command, Limits{Input: []byte("x")}); err == nil || err.Error() != c.want {
			t.Errorf("%+v: got %v, want %s", c.command, err, c.want)
		}
		if _, err := Start(c.command, 0); err == nil || err.Error() != c.want {
			t.Errorf("%+v: got %v, want %s", c.command, err, c.want)
		}
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"tool": 0o755, "data": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for _, c := range []struct{ name, base, path, want, err string }{
		{"tool", "", "/none:" + dir, dir + "/tool", ""},
		{"./tool", dir, "", dir + "/tool", ""},
		{"../" + filepath.Base(dir) + "/tool", dir, "", dir + "/tool", ""},
		{dir + "/tool", "/none", "", dir + "/tool", ""},
		{"tool", "", ".::", "", `program "tool" is in no folder of PATH`},
		{"data", "", dir, "", `program "data" is in no folder of PATH`},
		{"", "", dir, "", `program "" is in no folder of PATH`},
		{"./tool", "", "", "", `program "tool": want an absolute path`},
		{"./data", dir, "", "", fmt.Sprintf("program %q is not executable", dir+"/data")},
		{"./none", dir, "", "", fmt.Sprintf("program %q: no such file or directory", dir+"/none")},
		{"./.", dir, "", "", fmt.Sprintf("program %q is not a file", dir)},
	} {
		got, err := Find(c.name, c.base, c.path)
		if c.err != "" && (err == nil || err.Error() != c.err) || c.err == "" && (err != nil || got != c.want) {
			t.Errorf("%q below %q: %q, %v, want %q %s", c.name, c.base, got, err, c.want, c.err)
		}
	}
}

// SE-02: a child has what programs need, what is declared, and no key.
func TestEnvironmentSE02(t *testing.T) {
	all := map[string]string{"OPENAI_API_KEY": "sk-test", "PATH": "/bin", "HOME": "/home/u", "LANG": "C", "TMPDIR": "/t"}
	env := func(name string) (string, bool) { v, ok := all[name]; return v, ok }
	want := []string{"LANG=C", "PATH=/bin", "TMPDIR=/t", "A=1", "HOME=/other", "Z="}
	got := Environment(env, map[string]string{"Z": "", "HOME": "/other", "A": "1"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := Environment(nil, nil); got == nil || len(got) != 0 {
		t.Errorf("%#v", got)
	}
	if v := Variable(append(got, "A=2"), "A") + Variable(got, "B"); v != "2" {
		t.Error(v)
	}
	t.Setenv("OMA_TEST_SECRET", "sk-test")
	for _, list := range [][]string{nil, {"A=1"}} {
		c := Command{Program: "/usr/bin/env", Env: list}
		if o, err := Run(t.Context(), c, Limits{}); err != nil || o.Stdout.Text != strings.Join(append(list, ""), "\n") {
			t.Errorf("%q, %v", o.Stdout.Text, err)
		}
	}
}

func TestExitInWords(t *testing.T) {
	for script, want := range map[string]string{"exit 3": "exited with code 3", "true": "exited with code 0", "kill -9 $$": "died of signal 9, killed"} {
		if o, err := Run(t.Context(), shell(t, script), Limits{}); err != nil || o.Exit.String() != want {
			t.Errorf("%s: %s, %v", script, o.Exit, err)
		}
	}
	if e := exitOf(io.ErrUnexpectedEOF); e.OK() || e.String() != "ended in a way that could not be seen: unexpected EOF" {
		t.Error(e)
	}
}
