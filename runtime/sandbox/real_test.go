//go:build real && unix

package sandbox

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/open-multi-agent/oma/runtime/process"
	"github.com/open-multi-agent/oma/testdata/real/parts"
)

// The engine itself holds what its stand-in only writes down.
func TestRealContainer(t *testing.T) {
	engine := parts.Podman(t)
	b := newBox(t, Options{Kind: Container, Image: engine.Image, Name: fmt.Sprintf("oma-test-%d", os.Getpid()), NoNetwork: true, Env: lookup(engine.Env)})
	for _, script := range []string{"echo mine > $OUT/file", "echo mine > /etc/new", "mkdir -p $OUT && echo mine > $OUT/file", "mount -o remount,rw /",
		"exec 3<>/dev/tcp/1.1.1.1/53", "cat $OUT/file", "grep -q oma /proc/1/environ", "echo mine > /var/tmp/new", "echo mine > /run/new"} {
		if o := b.try(script); o.Exit.OK() {
			t.Errorf("%s: let through: %q", script, o.Stdout.Text)
		}
		b.untouched(script)
	}
	if o := b.try("set -e; echo mine > here; cat here; pwd; f=$(mktemp); echo x > $f; id -u"); o.Stdout.Text != fmt.Sprintf("mine\n%s\n%d\n", b.dir, os.Getuid()) || !o.Exit.OK() {
		t.Errorf("%s, %q, %q", o.Exit, o.Stdout.Text, o.Stderr.Text)
	}
	if o := b.try("exit 3"); o.Exit.Code != 3 {
		t.Errorf("%s, %q", o.Exit, o.Stderr.Text)
	}
	n := odd(t)
	for script, out := range map[string]string{"echo part; sleep " + n: "part\n", "trap '' TERM; setsid sleep " + n + " & echo part; wait": "part\n"} {
		start := time.Now()
		if o := b.run(t.Context(), script, process.Limits{Timeout: 3 * time.Second}); o.Reason != process.TimedOut || o.Stdout.Text != out {
			t.Errorf("%s: %+v", script, o)
		}
		if took := time.Since(start); took > 3*time.Second+probeTime/2 {
			t.Errorf("%s: ended after %v", script, took)
		}
		if alive(t, "sleep\x00"+n) > 0 {
			t.Errorf("%s: the command outlives its call", script)
		}
	}
	if left := engine.Containers(); left != "" {
		t.Errorf("left: %s", left)
	}
}

// An image that is not there is named before anything runs, and none is fetched.
func TestRealContainerWithoutImage(t *testing.T) {
	engine := parts.Podman(t)
	e, err := New(Options{Kind: Container, Dir: t.TempDir(), Image: "localhost/nowhere:1", Name: "oma-test", Env: lookup(engine.Env)})
	if err != nil {
		t.Fatal(err)
	}
	const want = `image "localhost/nowhere:1" is not on this machine, and none is fetched: podman pull it before`
	if why := e.Why(t.Context()); why == nil || why.Error() != want {
		t.Errorf("got  %v\nwant %s", why, want)
	}
}

func lookup(env []string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, v := range env {
			if n, value, _ := strings.Cut(v, "="); n == name {
				return value, true
			}
		}
		return "", false
	}
}
