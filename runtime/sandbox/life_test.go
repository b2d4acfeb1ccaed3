//go:build unix

package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/builtin"
	"github.com/open-multi-agent/oma/runtime/process"
)

var realKinds = []string{Landlock, Bubblewrap}

// odd gives a number of seconds that no other process sleeps, to know it by.
func odd(t testing.TB) string {
	return fmt.Sprintf("300.%d%d", os.Getpid(), time.Now().UnixNano()%1_000_000)
}

// until waits for something that comes, a little later than what it follows from.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never came to be that", what)
		}
	}
}

// W4: a time limit, a cancelled call and an end of its own leave no process, whatever they started.
func TestNothingLeftW4(t *testing.T) {
	for _, kind := range realKinds {
		t.Run(kind, func(t *testing.T) {
			b := newBox(t, Options{Kind: kind})
			for _, script := range []string{"sleep %s", "sleep %s & wait", "(sleep %s & exec sleep 1000) & wait", "trap '' TERM HUP INT; sleep %s & wait"} {
				n := odd(t)
				o := b.run(t.Context(), fmt.Sprintf("echo part; "+script, n), process.Limits{Timeout: 200 * time.Millisecond})
				if o.Reason != process.TimedOut || o.Stdout.Text != "part\n" {
					t.Errorf("%s: %+v", script, o)
				}
				until(t, "nothing is left of "+script, func() bool { return alive(t, n) == 0 })
			}
			n := odd(t)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				until(t, "the command runs", func() bool { return alive(t, n) > 0 })
				cancel()
			}()
			if o := b.run(ctx, "sleep "+n+" & wait", limits); o.Reason != process.Cancelled {
				t.Errorf("%+v", o)
			}
			until(t, "nothing is left after a cancelled call", func() bool { return alive(t, n) == 0 })
			if o := b.run(t.Context(), "sleep "+n+" > /dev/null 2>&1 & echo done", limits); o.Stdout.Text != "done\n" || !o.Exit.OK() {
				t.Errorf("%+v", o)
			}
			until(t, "nothing is left in the background", func() bool { return alive(t, n) == 0 })
		})
	}
}

// A process that moved to a session of its own ends with bubblewrap's namespace. The promises tell the kinds apart.
func TestSessionOfItsOwn(t *testing.T) {
	for kind, stays := range map[string]bool{Local: true, Landlock: true, Bubblewrap: false} {
		b := newBox(t, Options{Kind: kind})
		n := odd(t)
		o := b.run(t.Context(), "setsid bash -c 'echo $$ > pid; exec sleep "+n+" > /dev/null 2>&1' & until test -s pid; do :; done; echo done", limits)
		if o.Stdout.Text != "done\n" {
			t.Errorf("%s: %+v", kind, o)
		}
		if stays {
			if alive(t, n) == 0 {
				t.Errorf("%s: it ended, and the promise is too small", kind)
			}
			if err := exec.Command("bash", "-c", "kill -9 $(cat "+b.dir+"/pid)").Run(); err != nil {
				t.Error(err)
			}
		}
		until(t, "nothing is left of "+kind, func() bool { return alive(t, n) == 0 })
		if l, mechanism := level(t, b, Processes); (l == "enforced") == stays {
			t.Errorf("%s: %s: %s", kind, l, mechanism)
		}
	}
}

// A command ends with a program that was killed with no chance to end it. The program is this test, run once more.
func TestDiesWithUs(t *testing.T) {
	const kind, folder, number = "OMA_TEST_SANDBOX_KIND", "OMA_TEST_SANDBOX_FOLDER", "OMA_TEST_SANDBOX_NUMBER"
	if kind := os.Getenv(kind); kind != "" {
		e, err := New(Options{Kind: kind, Dir: os.Getenv(folder), Env: os.LookupEnv})
		if err != nil {
			t.Fatal(err)
		}
		o, err := runIn(t.Context(), e, os.Getenv(folder), "exec sleep "+os.Getenv(number), process.Limits{Timeout: time.Minute})
		t.Fatalf("the command ended: %+v, %v", o, err)
	}
	for _, k := range realKinds {
		t.Run(k, func(t *testing.T) {
			b := newBox(t, Options{Kind: k})
			n := odd(t)
			cmd := exec.Command(executable(t), "-test.run=^TestDiesWithUs$")
			cmd.Env = append(os.Environ(), kind+"="+k, folder+"="+b.dir, number+"="+n, "TMPDIR="+b.dir)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			until(t, "the command runs", func() bool { return alive(t, "sleep\x00"+n) > 0 })
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // it was killed
			until(t, "nothing is left", func() bool { return alive(t, n) == 0 })
		})
	}
}

// Temporary files go with the run, also those in folders that their owner may not write.
func TestTemporaryFiles(t *testing.T) {
	parent := realPath(t.TempDir())
	b := newBox(t, Options{Kind: Landlock, Env: func(name string) (string, bool) {
		if name == "TMPDIR" {
			return parent, true
		}
		return os.LookupEnv(name)
	}})
	if o := b.try(`set -e; case "$TMPDIR" in ` + parent + `/oma-*) ;; *) exit 1; esac; mkdir $TMPDIR/d; echo x > $TMPDIR/d/f; chmod 500 $TMPDIR/d`); !o.Exit.OK() {
		t.Errorf("%s, %q", o.Exit, o.Stderr.Text)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}

// fake puts a program in a PATH of its own.
func fake(t *testing.T, name, script string) (env func(string) (string, bool)) {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "oma-fake-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/bash\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return func(name string) (string, bool) {
		if name == "PATH" {
			return ".:" + dir, true
		}
		return "", false
	}
}

// What an executor's program does wrong is an error before the first command, and a failed command after.
func TestFaults(t *testing.T) {
	image := "debian@sha256:" + strings.Repeat("a", 64)
	for _, c := range []struct{ name, kind, program, script, why, ran string }{
		{"dies", Bubblewrap, "bwrap", "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1", "bwrap cannot be used: bwrap: setting up uid map: Permission denied", "exited with code 1"},
		{"killed", Bubblewrap, "bwrap", "kill -9 $$", "bwrap cannot be used: died of signal 9, killed", "died of signal 9, killed"},
		{"hangs", Bubblewrap, "bwrap", "exec /bin/sleep 1000", "bwrap cannot be used: no answer: context deadline exceeded", "died of signal 9, killed"},
		{"missing", Bubblewrap, "other", "", `program "bwrap" is in no folder of PATH`, ""},
		{"dies", Container, "docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1", "docker cannot be used: Cannot connect to the Docker daemon", "exited with code 1"},
		{"hangs", Container, "docker", "exec /bin/sleep 1000", "docker cannot be used: no answer: context deadline exceeded", "died of signal 9, killed"},
		{"says nothing", Container, "docker", "exit 0", fmt.Sprintf("image %q is not on this machine, and none is fetched: docker pull it before", image), "exited with code 0"},
		{"no image", Container, "docker", "echo 'Error: No such image: debian' >&2; exit 1", fmt.Sprintf("image %q is not on this machine, and none is fetched: docker pull it before", image), "exited with code 1"},
		{"no image", Container, "podman", "echo 'Error: inspecting object: debian: image not known' >&2; exit 125", fmt.Sprintf("image %q is not on this machine, and none is fetched: podman pull it before", image), "exited with code 125"},
		{"missing", Container, "other", "", `program "docker" is in no folder of PATH, and program "podman" is in no folder of PATH`, ""},
	} {
		t.Run(c.kind+" "+c.program+" "+c.name, func(t *testing.T) {
			o := Options{Kind: c.kind, Dir: realPath(t.TempDir()), Env: fake(t, c.program, c.script)}
			if c.kind == Container {
				o.Image, o.Name = image, "oma-run"
			}
			e, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			if why := e.Why(ctx); why == nil || why.Error() != c.why {
				t.Errorf("got %v, want %s", why, c.why)
			}
			if c.name == "hangs" && c.kind == Container {
				return // its removal hangs too, for as long as it may
			}
			got, err := runIn(t.Context(), e, o.Dir, "true", process.Limits{Timeout: 300 * time.Millisecond})
			if c.ran == "" {
				if err == nil || err.Error() != c.why {
					t.Errorf("got %v, want %s", err, c.why)
				}
				return
			}
			if err != nil || got.Exit.String() != c.ran || got.Reason == process.TimedOut != (c.name == "hangs") {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// The walls are put around the folders that were there when they were first looked at, and around no others.
func TestFolders(t *testing.T) {
	top := realPath(t.TempDir())
	for _, dir := range []string{"a/inner", "b", "c"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"a/etc": "/etc", "link": "b", "root": "/", "file": "/etc/passwd"} {
		if err := os.Symlink(to, filepath.Join(top, link)); err != nil {
			t.Fatal(err)
		}
	}
	in := func(names ...string) (out []string) {
		for _, name := range names {
			out = append(out, filepath.Join(top, name))
		}
		return out
	}
	for _, c := range []struct {
		names []string
		want  []string
		err   string
	}{
		{[]string{"a"}, []string{"a"}, ""},
		{[]string{"a", "a/inner", "a/etc", "a"}, []string{"a"}, ""}, // a link there is the agent's own, and is not followed
		{[]string{"a/inner", "a"}, []string{"a/inner", "a"}, ""},
		{[]string{"b", "c", "c", "c/none"}, []string{"b", "c"}, ""},
		{[]string{"link", "c"}, []string{"b", "c"}, ""},
		{[]string{"none"}, nil, fmt.Sprintf("folder %q: no such file or directory", top+"/none")},
		{[]string{"a", "file"}, nil, fmt.Sprintf("%q is not a folder", top+"/file")},
		{[]string{"a", "root"}, nil, fmt.Sprintf("folder %q is the whole machine: nothing would be held", top+"/root")},
	} {
		names := in(c.names...)
		got, err := newArea(names[0], names[1:]).now()
		if c.err != "" && (err == nil || err.Error() != c.err) || c.err == "" && (err != nil || strings.Join(got, " ") != strings.Join(in(c.want...), " ")) {
			t.Errorf("%v: %v, %v", c.names, got, err)
		}
	}
	a := newArea(in("b")[0], in("c"))
	if _, err := a.now(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(top+"/c", top+"/moved"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.now(); err == nil || err.Error() != fmt.Sprintf("folder %q: no such file or directory", top+"/c") {
		t.Error(err)
	}
	if err := os.Symlink("/etc", top+"/c"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.now(); err == nil || err.Error() != fmt.Sprintf("folder %q was moved: another folder has taken its place", top+"/c") {
		t.Error(err)
	}
}

// Evidence is held where nothing that judges lies in reach, by any name.
func TestEvidence(t *testing.T) {
	top := realPath(t.TempDir())
	for _, dir := range []string{"work", "team", "other"} {
		if err := os.Mkdir(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("work", top+"/link"); err != nil {
		t.Fatal(err)
	}
	for protected, reached := range map[string]bool{"team": false, "team/oma.yaml": false, "work/oma.yaml": true, "link/new/receipt.json": true, "work": true, ".": true, "worker": false,
		"other/receipt.json": true} {
		e, err := New(Options{Kind: Bubblewrap, Dir: top + "/work", Write: []string{top + "/other"}, Protected: []string{top + "/team", filepath.Join(top, protected)}})
		if err != nil {
			t.Fatal(err)
		}
		l, mechanism := level(t, e, Evidence)
		if want := map[bool]string{true: "not-enforceable", false: "enforced"}[reached]; l != want || reached != (mechanism == filepath.Base(filepath.Join(top, protected))+" lies where commands may write") {
			t.Errorf("%s: %s, %s", protected, l, mechanism)
		}
	}
}

// The walls must not be put up by a program that commands can write.
func TestProgramWithin(t *testing.T) {
	env := fake(t, "bwrap", "")
	path, _ := env("PATH")
	dir := strings.TrimPrefix(path, ".:")
	e, err := New(Options{Kind: Bubblewrap, Dir: dir, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%s/bwrap lies in %s, which commands may write", dir, dir)
	if why := e.Why(t.Context()); why == nil || why.Error() != want {
		t.Error(why)
	}
	if _, err := runIn(t.Context(), e, dir, "true", limits); err == nil || err.Error() != want {
		t.Error(err)
	}
}

// The tool bash runs behind the walls, from its own folder, and says of one that cannot be put up why it did not run.
func TestBash(t *testing.T) {
	for _, kind := range realKinds {
		b := newBox(t, Options{Kind: kind})
		tools, closer, err := builtin.Open(builtin.Options{Dir: b.dir, Contained: true, Env: os.LookupEnv, Executor: b.Executor}, []string{builtin.Bash})
		if err != nil {
			t.Fatal(err)
		}
		defer closer.Close()
		for command, want := range map[string]string{
			"echo x > new; cat new; pwd":         "x\n" + b.dir + "\n",
			"cd " + b.outside + "; echo x > new": "bash: line 1: new: ",
			"exit 3":                             "(command exited with code 3, no output)",
		} {
			if got := tools[0].Call(t.Context(), runtime.Invocation{Input: map[string]any{"command": command}}); !strings.Contains(got.Text, want) {
				t.Errorf("%s: %s: %q", kind, command, got.Text)
			}
		}
		b.untouched("the tool")
	}
	dir := realPath(t.TempDir())
	e, err := New(Options{Kind: Bubblewrap, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	tools, closer, err := builtin.Open(builtin.Options{Dir: dir, Contained: true, Env: os.LookupEnv, Executor: e}, []string{builtin.Bash})
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	got := tools[0].Call(t.Context(), runtime.Invocation{Input: map[string]any{"command": "touch started"}})
	if want := "Not run: program \"bwrap\" is in no folder of PATH.\n(exit code: 127)"; got.Text != want || !got.IsError {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(dir + "/started"); err == nil {
		t.Error("it ran without walls")
	}
}

// BenchmarkCommand says how much a command costs over one that runs as it is.
func BenchmarkCommand(b *testing.B) {
	for _, kind := range realKinds {
		b.Run(kind, func(b *testing.B) {
			box := newBox(b, Options{Kind: kind, NoNetwork: true})
			var bare, ours time.Duration
			for b.Loop() {
				start := time.Now()
				if o, err := runIn(b.Context(), local{}, box.dir, "true", limits); err != nil || !o.Exit.OK() {
					b.Fatal(o, err)
				}
				middle := time.Now()
				if o := box.run(b.Context(), "true", limits); !o.Exit.OK() {
					b.Fatal(o)
				}
				bare, ours = bare+middle.Sub(start), ours+time.Since(middle)
			}
			b.ReportMetric(float64(ours)/float64(bare), "x-local")
			b.ReportMetric(float64((ours-bare).Milliseconds())/float64(b.N), "ms-more")
		})
	}
}

// BenchmarkBash is a call of the tool bash. x-bare is how many times as long it takes as a bare start of the same bash.
func BenchmarkBash(b *testing.B) {
	bash, err := builtin.FindBash(os.LookupEnv)
	if err != nil {
		b.Skip(err)
	}
	for _, kind := range append([]string{Local}, realKinds...) {
		b.Run(kind, func(b *testing.B) {
			box := newBox(b, Options{Kind: kind})
			tools, closer, err := builtin.Open(builtin.Options{Dir: box.dir, Contained: true, Env: os.LookupEnv, Executor: box.Executor}, []string{builtin.Bash})
			if err != nil {
				b.Fatal(err)
			}
			defer closer.Close()
			var bare, ours time.Duration
			for b.Loop() {
				start := time.Now()
				cmd := &exec.Cmd{Path: bash, Args: []string{bash, "-c", "true"}, Dir: box.dir, Env: process.Environment(os.LookupEnv, nil)}
				if _, err := cmd.Output(); err != nil {
					b.Fatal(err)
				}
				middle := time.Now()
				if r := tools[0].Call(b.Context(), runtime.Invocation{Input: map[string]any{"command": "true"}}); r.IsError {
					b.Fatal(r.Text)
				}
				bare, ours = bare+middle.Sub(start), ours+time.Since(middle)
			}
			b.ReportMetric(float64(ours)/float64(bare), "x-bare")
			b.ReportMetric(float64((ours-bare).Microseconds())/float64(b.N)/1000, "ms-more")
		})
	}
}
