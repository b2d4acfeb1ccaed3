//go:build unix

package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/process"
	"github.com/open-multi-agent/oma/spec"
)

func TestBashOutputW3(t *testing.T) {
	b := newBox(t, map[string]string{"a": "x"})
	b.want(Bash, in{"command": "echo out"}, "out\n")
	b.want(Bash, in{"command": "echo err >&2"}, "err\n")
	b.want(Bash, in{"command": "echo out; echo err >&2"}, "out\n--- stderr ---\nerr\n")
	b.want(Bash, in{"command": "true"}, "(command completed with no output)")
	b.want(Bash, in{"command": "printf 'caf\\351'"}, "caf\uFFFD")
	b.want(Bash, in{"command": "cat; echo $?"}, "0\n") // no input to wait for
	for command, want := range map[string]string{
		"exit 3":                   "(command exited with code 3, no output)",
		"echo out; exit 3":         "out\n(exit code: 3)",
		"echo out; ls none":        "out\n--- stderr ---\n",
		"exit 124":                 "(command exited with code 124, no output)",
		"exit 130":                 "(command exited with code 130, no output)",
		"nosuchprogram":            "(exit code: 127)",
		"kill -9 $$":               "(died of signal 9, killed)\n(exit code: 137)",
		"echo part; kill -TERM $$": "part\n(died of signal 15, terminated)\n(exit code: 143)",
	} {
		b.wantError(Bash, in{"command": command}, want)
	}
}

func TestBashFolderD9(t *testing.T) {
	b := newBox(t, map[string]string{"sub/a": ""})
	b.want(Bash, in{"command": "pwd"}, b.dir+"\n")
	b.want(Bash, in{"command": "pwd; ls", "cwd": "sub"}, b.dir+"/sub\na\n")
	b.want(Bash, in{"command": "pwd", "cwd": b.dir + "/sub/"}, b.dir+"/sub\n")
	b.wantError(Bash, in{"command": "pwd", "cwd": "sub/a"}, `Not run: "sub/a" is not a folder.`)
	b.wantError(Bash, in{"command": "pwd", "cwd": "none"}, `Not run: "none" is not a folder.`)
}

// The file tools hold a folder, bash goes by its name. When they part, bash refuses.
func TestBashFolderMoved(t *testing.T) {
	b := newBox(t, map[string]string{"sub/a": "mine"})
	if err := os.Rename(b.dir, b.outer+"/moved"); err != nil {
		t.Fatal(err)
	}
	b.wantError(Bash, in{"command": "pwd"}, "the working directory was moved: no such file or directory")
	tree(t, b.dir, map[string]string{"sub/a": "imposter"})
	b.wantError(Bash, in{"command": "pwd"}, "the working directory was moved: another folder has taken its place")
	b.wantError(Bash, in{"command": "pwd", "cwd": "sub"}, "(exit code: 127)")
	b.want(FileRead, in{"path": "sub/a"}, "1\tmine")
}

func TestBashEnvironmentSE02(t *testing.T) {
	b := newBox(t, nil)
	t.Setenv("OPENAI_API_KEY", "sk-test")
	t.Setenv("BASH_ENV", "/nowhere")
	r := b.call(Bash, in{"command": "env | cut -d= -f1 | sort | tr '\\n' ' '"})
	if r.Text != "HOME PATH PWD SHLVL _ " {
		t.Errorf("got %q", r.Text)
	}
	b.want(Bash, in{"command": "echo $HOME; type -t ls"}, "/home/u\nfile\n")
}

// Relative entries of PATH would let an agent supply the shell itself.
func TestBashProgram(t *testing.T) {
	b := newBox(t, nil)
	tree(t, b.dir, map[string]string{"bash": "#!/bin/sh\necho imposter"})
	if err := os.Chmod(b.dir+"/bash", 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(b.dir)
	o := testOptions(b.dir)
	o.Env = func(name string) (string, bool) { return ".::" + os.Getenv("PATH"), name == "PATH" }
	b.tools = openWith(t, o)
	b.want(Bash, in{"command": "echo real"}, "real\n")
	o.ShellPath = b.dir + "/nobash"
	b.tools = openWith(t, o)
	b.wantError(Bash, in{"command": "echo"}, "Not run: bash did not start: no such file or directory.\n(exit code: 127)")
}

func TestBashRedacts(t *testing.T) {
	b := newBox(t, nil)
	o := testOptions(b.dir)
	o.Redact = func(s string) string { return strings.ReplaceAll(s, "hunter2", "[redacted]") }
	b.tools = openWith(t, o)
	b.want(Bash, in{"command": "echo hunter2; echo hunter2 >&2"}, "[redacted]\n--- stderr ---\n[redacted]\n")
}

func TestBashTimeoutW2(t *testing.T) {
	b := newBox(t, nil)
	start := time.Now()
	b.wantError(Bash, in{"command": "echo part; sleep 300 & sleep 300", "timeout": int64(100)},
		"part\n(killed at its time limit of 100 ms)\n(exit code: 124)")
	b.wantError(Bash, in{"command": "trap '' TERM INT; echo part; while :; do sleep 300; done", "timeout": int64(100)}, "part\n(killed")
	if d := time.Since(start); d > 20*time.Second {
		t.Error("took", d)
	}
}

func TestBashCancelW2(t *testing.T) {
	b := newBox(t, nil)
	for _, c := range []struct {
		end  error
		want string
	}{
		{context.Canceled, "part\n(killed: the call was cancelled)\n(exit code: 130)"},
		{context.DeadlineExceeded, "part\n(killed at the time limit of the call)\n(exit code: 124)"},
	} {
		ctx := &endable{Context: t.Context(), done: make(chan struct{}), err: c.end}
		go func() {
			for !exists(b.dir + "/started") {
				time.Sleep(time.Millisecond)
			}
			close(ctx.done)
		}()
		r := b.tools[Bash].Call(ctx, runtime.Invocation{Input: in{"command": "echo part; touch started; sleep 300"}})
		if !r.IsError || r.Text != c.want {
			t.Errorf("%q", r.Text)
		}
		os.Remove(b.dir + "/started")
	}
}

func exists(file string) bool { _, err := os.Lstat(file); return err == nil }

// endable is a context that ends when told, with the error told.
type endable struct {
	context.Context
	done chan struct{}
	err  error
}

func (e *endable) Done() <-chan struct{} { return e.done }

func (e *endable) Err() error {
	select {
	case <-e.done:
		return e.err
	default:
		return nil
	}
}

// SP-01: a call ends with its command, and what it left in the background ends too.
func TestBackgroundSP01(t *testing.T) {
	b := newBox(t, nil)
	for _, command := range []string{
		"sleep 300 & echo $! > pid; echo done",
		"(sleep 300 & echo $! > pid) ; echo done",
		"nohup sleep 300 >/dev/null 2>&1 & echo $! > pid; echo done",
	} {
		start := time.Now()
		b.want(Bash, in{"command": command}, "done\n")
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("%s: took %v", command, d)
		}
		text, err := os.ReadFile(b.dir + "/pid")
		if err != nil {
			t.Fatal(err)
		}
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		waitGone(t, pid)
	}
}

func waitGone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); alive(pid); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("process", pid, "lives on")
		}
	}
}

// alive also knows a zombie that nobody has collected, as in a container without an init.
func alive(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

// A process that left the group keeps the pipe open; the call returns all the same.
func TestDetachedChildSP01(t *testing.T) {
	b := newBox(t, nil)
	if r := b.call(Bash, in{"command": "type -t setsid"}); r.IsError {
		t.Skip("no setsid here")
	}
	start := time.Now()
	r := b.call(Bash, in{"command": "setsid sh -c 'echo $$ > pid; exec sleep 300' & while ! [ -s pid ]; do :; done; echo done"})
	if d := time.Since(start); r.IsError || r.Text != "done\n" || d > 10*time.Second {
		t.Errorf("%q after %v", r.Text, d)
	}
	text, err := os.ReadFile(b.dir + "/pid")
	if err != nil {
		t.Fatal(err)
	}
	if pid, _ := strconv.Atoi(strings.TrimSpace(string(text))); pid > 1 {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// SP-04: endless output is drained, counted, and not kept.
func TestEndlessOutputSP04(t *testing.T) {
	b := newBox(t, nil)
	r := b.call(Bash, in{"command": "echo first; yes | head -c 50000000; echo last"})
	if r.IsError || len(r.Text) > 2*keepBytes+100 || !strings.HasPrefix(r.Text, "first\ny\n") || !strings.HasSuffix(r.Text, "y\nlast\n") ||
		!strings.Contains(r.Text, " bytes left out ...]") {
		t.Error(r.IsError, len(r.Text))
	}
	r = b.call(Bash, in{"command": "yes", "timeout": int64(200)})
	if !r.IsError || len(r.Text) > 2*keepBytes+200 || !strings.HasSuffix(r.Text, "(exit code: 124)") {
		t.Error(r.IsError, len(r.Text))
	}
}

func TestEarlyCloseSP05(t *testing.T) {
	b := newBox(t, nil)
	b.want(Bash, in{"command": "yes | head -1"}, "y\n")
	b.want(Bash, in{"command": "seq 1 100000 | head -1"}, "1\n")
}

// Close ends what runs, and waits for it.
func TestCloseEndsBash(t *testing.T) {
	dir := tempDir(t)
	tools, closer, err := Open(testOptions(dir), []string{Bash})
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan spec.ToolResult)
	go func() {
		got <- tools[0].Call(t.Context(), runtime.Invocation{Input: in{"command": "touch started; sleep 300"}})
	}()
	for !exists(filepath.Join(dir, "started")) {
		time.Sleep(time.Millisecond)
	}
	go closer.Close()
	if r := <-got; !strings.Contains(r.Text, "(killed: the run has ended)\n(exit code: 130)") {
		t.Error(r.Text)
	}
}

// A pipe without a writer, a device, a socket: nothing blocks.
func TestSpecialFiles(t *testing.T) {
	b := newBox(t, map[string]string{"a": "needle", "tozero": "-> /dev/zero"})
	if err := syscall.Mkfifo(b.dir+"/fifo", 0o644); err != nil {
		t.Fatal(err)
	}
	const not = "it is a named pipe, not a regular file"
	b.wantError(FileRead, in{"path": "fifo"}, not)
	b.wantError(FileWrite, in{"path": "fifo", "content": "x"}, not)
	b.wantError(FileEdit, in{"path": "fifo", "old_string": "a", "new_string": "b"}, not)
	b.wantError(Grep, in{"pattern": "x", "path": "fifo"}, "it is a named pipe")
	b.want(Grep, in{"pattern": "needle"}, "a:1:needle\n(left out: 1 link)")
	b.want(Glob, in{"pattern": "*"}, "a\n(left out: 1 link)")
	b.wantError(FileRead, in{"path": "tozero"}, outsideText)
	o := testOptions(b.dir)
	o.Contained = false
	b.tools = openWith(t, o)
	b.wantError(FileRead, in{"path": "tozero"}, "it is a device, not a regular file")

	// The pipe takes the place of a file between the look and the open.
	root, err := os.OpenRoot(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := readRegular(root, "fifo", nil); err == nil || err.Error() != not {
		t.Error(err)
	}
}

// A second actor flips a folder between itself, a link out, and a link to .git. Nothing may land there.
func TestFlippedFolder(t *testing.T) {
	b := newBox(t, map[string]string{"x/a": "a", ".git/config": "c", "../out/keep": ""})
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			os.Symlink([]string{b.outer + "/out", "../out", ".git"}[i%3], b.dir+"/l")
			os.RemoveAll(b.dir + "/x")
			os.Rename(b.dir+"/l", b.dir+"/x")
			os.Remove(b.dir + "/x")
			os.Mkdir(b.dir+"/x", 0o755)
		}
	}()
	written, refused := 0, 0
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		if b.call(FileWrite, in{"path": "x/f.txt", "content": "z"}).IsError {
			refused++
		} else {
			written++
		}
		b.call(FileWrite, in{"path": "x/new/g.txt", "content": "z"})
		if r := b.call(FileRead, in{"path": "x/config"}); !r.IsError && r.Text != "1\tc" {
			t.Fatal(r.Text)
		}
	}
	close(stop)
	<-stopped
	for _, dir := range []string{b.outer + "/out", b.dir + "/.git"} {
		if e, err := os.ReadDir(dir); len(e) != 1 || err != nil {
			t.Errorf("%s holds %v, %v", dir, e, err)
		}
	}
	if written == 0 || refused == 0 {
		t.Errorf("no race happened: %d written, %d refused", written, refused)
	}
}

// A command too long for the system is refused in words, not cut.
func TestBashTooLong(t *testing.T) {
	b := newBox(t, nil)
	b.wantError(Bash, in{"command": "echo " + strings.Repeat("€", 65000)}, "Not run: bash did not start: argument list too long.\n(exit code: 127)")
	b.wantError(Bash, in{"command": "echo \x00"}, "Not run: bash did not start: invalid argument.\n(exit code: 127)")
}

// wall is an executor that starts something else, or nothing.
type wall struct {
	err  error
	ends []process.Outcome
}

func (w *wall) Wrap(c process.Command) (process.Command, func(process.Outcome), error) {
	if w.err != nil {
		return c, nil, w.err
	}
	c.Args = []string{"-c", fmt.Sprintf("echo 'behind the wall: %s %s'; %s", c.Args[0], c.Args[1], c.Args[1])}
	return c, func(o process.Outcome) { w.ends = append(w.ends, o) }, nil
}

// W4: what is started is the executor's to say. It hears once how that ended, and a command it refuses does not run.
func TestBashExecutorW4(t *testing.T) {
	w := &wall{}
	o := testOptions(tempDir(t))
	o.Executor = w
	tools := openWith(t, o)
	for command, want := range map[string]string{"exit 3": "behind the wall: -c exit 3\n(exit code: 3)", "kill -9 $$": "behind the wall: -c kill -9 $$\n(died of signal 9, killed)\n(exit code: 137)"} {
		w.ends = nil
		if r := call(tools, Bash, in{"command": command}); r.Text != want || len(w.ends) != 1 || w.ends[0].Reason != process.Exited {
			t.Errorf("%s: %q, %+v", command, r.Text, w.ends)
		}
	}
	w.ends = nil
	if r := call(tools, Bash, in{"command": "sleep 300", "timeout": 100}); !r.IsError || len(w.ends) != 1 || w.ends[0].Reason != process.TimedOut {
		t.Errorf("%q, %+v", r.Text, w.ends)
	}
	w.err, w.ends = errors.New("there is no wall"), nil
	if r := call(tools, Bash, in{"command": "touch " + o.Dir + "/started"}); r.Text != "Not run: there is no wall.\n(exit code: 127)" || !r.IsError || w.ends != nil {
		t.Errorf("%q, %+v", r.Text, w.ends)
	}
	if exists(o.Dir + "/started") {
		t.Error("a refused command ran")
	}
}
