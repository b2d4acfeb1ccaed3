//go:build unix

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-multi-agent/oma/runtime/process"
	"github.com/open-multi-agent/oma/spec"
)

// attackWord makes this program one that commands of a sandbox run to get out.
const attackWord = "attack"

func TestMain(m *testing.M) {
	if code, mine := Helper(os.Args, os.Environ(), os.Stderr); mine {
		os.Exit(code)
	}
	if len(os.Args) > 2 && os.Args[1] == attackWord {
		if err := attacks[os.Args[2]](os.Args[3:]); err != nil {
			fmt.Println("refused:", err)
			os.Exit(1)
		}
		fmt.Println("done")
		os.Exit(0)
	}
	code := m.Run()
	if attacker != "" {
		os.RemoveAll(filepath.Dir(attacker))
	}
	os.Exit(code)
}

// attacker is this program where every sandbox sees it: some hide /tmp, where go test keeps it.
var attacker string

func copyAttacker(t testing.TB) {
	t.Helper()
	if attacker != "" {
		return
	}
	program, err := os.ReadFile(executable(t))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/var/tmp", "oma-attacker-")
	if err != nil {
		t.Fatal(err)
	}
	attacker = filepath.Join(dir, "attack")
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(attacker, program, 0o755)); err != nil {
		t.Fatal(err)
	}
}

func executable(t testing.TB) string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// box is an executor with a folder for its commands and one beside that is not theirs.
type box struct {
	testing.TB
	Executor
	dir, outside string
}

// newBox makes a box, or skips where the machine cannot have one. The folder outside is not in /tmp, which some kinds hide.
func newBox(t testing.TB, o Options) *box {
	t.Helper()
	outside, err := os.MkdirTemp("/var/tmp", "oma-sandbox-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(outside) })
	b := &box{TB: t, dir: realPath(t.TempDir()), outside: outside}
	for name, text := range map[string]string{"file": "theirs\n", "folder/file": "theirs\n"} {
		b.write(filepath.Join(outside, name), text)
	}
	o.Dir = b.dir
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	b.Executor, err = New(o)
	if err != nil {
		t.Fatal(err)
	}
	if why := b.Why(t.Context()); why != nil {
		absent(t, o.Kind, why)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// absent skips a test for what the machine does not have, or fails it where all of it must be there.
func absent(t testing.TB, what string, why error) {
	t.Helper()
	if os.Getenv("OMA_REAL_REQUIRED") != "" {
		t.Fatalf("this machine has no %s: %v", what, why)
	}
	t.Skipf("SKIPPED, this machine has no %s: %v", what, why)
}

func (b *box) write(path, text string) {
	b.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
}

func (b *box) run(ctx context.Context, script string, l process.Limits) process.Outcome {
	b.Helper()
	o, err := runIn(ctx, b.Executor, b.dir, script, l)
	if err != nil {
		b.Fatal(err)
	}
	return o
}

// runIn runs a script as builtin's bash would. $OUT and $SELF are at hand.
func runIn(ctx context.Context, e Executor, dir, script string, l process.Limits) (process.Outcome, error) {
	bash, err := process.Find("bash", "", os.Getenv("PATH"), "/bin")
	if err != nil {
		return process.Outcome{}, err
	}
	c, done, err := e.Wrap(process.Command{Program: bash, Args: []string{"-c", script}, Dir: dir, Env: process.Environment(os.LookupEnv, nil)})
	if err != nil {
		return process.Outcome{}, err
	}
	if l.Timeout == 0 {
		l.Timeout = 30 * time.Second
	}
	o, err := process.Run(ctx, c, l)
	done(o)
	return o, err
}

// try runs a script that is to fail. In it, $OUT is the folder outside, $US this process, and attack this program.
func (b *box) try(script string) process.Outcome {
	b.Helper()
	copyAttacker(b)
	return b.run(b.Context(), fmt.Sprintf("OUT=%s US=%d ATTACK='%s %s' GORACE=atexit_sleep_ms=0\nexport GORACE\nattack() { $ATTACK \"$@\"; }\n%s", b.outside, os.Getpid(), attacker, attackWord, script), limits)
}

// tree gives the names, modes and texts of the folder outside.
func (b *box) tree() (all []string) {
	b.Helper()
	err := filepath.Walk(b.outside, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		line := strings.TrimPrefix(path, b.outside) + " " + info.Mode().String()
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += " " + string(text)
		}
		all = append(all, line)
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return all
}

// untouched holds the folder outside against what it was.
func (b *box) untouched(after string) {
	b.Helper()
	want := []string{" drwx------", "/file -rw-r--r-- theirs\n", "/folder drwxr-xr-x", "/folder/file -rw-r--r-- theirs\n"}
	if got := b.tree(); !slices.Equal(got, want) {
		b.Fatalf("after %s: the folder outside is %q", after, got)
	}
}

// level gives how far a promise is kept, and by what.
func level(t *testing.T, e Executor, control string) (level, mechanism string) {
	t.Helper()
	for _, p := range e.Held() {
		if p.Control == control {
			return p.Level, p.Mechanism
		}
	}
	t.Fatalf("no promise about %s in %+v", control, e.Held())
	return "", ""
}

// alive counts the processes on the machine that have a text in their command line.
func alive(t testing.TB, text string) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Skip("SKIPPED: processes cannot be listed here")
	}
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && strings.Contains(string(line), text) && !strings.Contains(string(line), ".test\x00") {
			n++
		}
	}
	return n
}

// limits are those of most tests.
var limits process.Limits

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, `folder "": want an absolute path`},
		{Options{Dir: "a"}, `folder "a": want an absolute path`},
		{Options{Dir: "/a", Kind: Landlock, Write: []string{"b"}}, `folder "b": want an absolute path`},
		{Options{Dir: "/a", Kind: "jail"}, `there is no executor "jail": want one of local, landlock, bubblewrap, container`},
		{Options{Dir: "/a", Write: []string{"/b"}}, `kind local lets commands write everywhere: it takes no folders`},
		{Options{Dir: "/a", Kind: Landlock, Image: "x"}, `kind landlock takes no image`},
		{Options{Dir: "/a", Kind: Container}, `image "" is not the name of an image`},
		{Options{Dir: "/a", Kind: Container, Image: "--privileged"}, `image "--privileged" is not the name of an image`},
		{Options{Dir: "/a", Kind: Container, Image: "a b"}, `image "a b" is not the name of an image`},
		{Options{Dir: "/a", Kind: Container, Image: "debian", Name: "-x"}, `"-x" does not begin the name of a container: want letters, digits, ., _ and -`},
	} {
		if _, err := New(c.o); err == nil || err.Error() != c.want {
			t.Errorf("%+v: got %v, want %s", c.o, err, c.want)
		}
	}
}

// A local executor changes nothing and says that it holds nothing.
func TestLocal(t *testing.T) {
	b := newBox(t, Options{})
	if o := b.try(`echo "$PWD"; echo mine > $OUT/folder/../new && rm $OUT/new`); o.Stdout.Text != b.dir+"\n" || !o.Exit.OK() {
		t.Errorf("%+v", o)
	}
	for _, p := range b.Held() {
		if p.Level == spec.Enforced {
			t.Errorf("it holds %+v", p)
		}
	}
	e, err := New(Options{Dir: b.dir, NoNetwork: true})
	if err != nil {
		t.Fatal(err)
	}
	if why := e.Why(t.Context()); why == nil || why.Error() != "kind local cannot keep commands off the network" {
		t.Error(why)
	}
	if l, _ := level(t, e, Network); l != spec.NotEnforceable {
		t.Error(l)
	}
}

// Whoever lets commands run although nothing can be held gets that in writing.
func TestUnheld(t *testing.T) {
	e, err := New(Options{Kind: Bubblewrap, Dir: t.TempDir(), NoNetwork: true})
	if err != nil {
		t.Fatal(err)
	}
	why := e.Why(t.Context()) // no PATH is given, so that bwrap is never found
	if why == nil || why.Error() != `program "bwrap" is in no folder of PATH` {
		t.Fatal(why)
	}
	if _, _, err := e.Wrap(process.Command{Program: "/bin/true"}); err == nil {
		t.Error("a command would run without what was asked for")
	}
	u := Unheld(e, why)
	if len(u.Held()) != len(e.Held()) {
		t.Error(u.Held())
	}
	for _, p := range u.Held() {
		if want := `commands run as they would without a sandbox: program "bwrap" is in no folder of PATH`; p.Level != spec.NotEnforceable || p.Mechanism != want {
			t.Errorf("%+v", p)
		}
	}
	c := process.Command{Program: "/bin/true"}
	if got, _, err := u.Wrap(c); err != nil || got.Program != c.Program {
		t.Error(got, err)
	}
}
