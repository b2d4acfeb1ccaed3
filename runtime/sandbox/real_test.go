//go:build real && unix

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/open-multi-agent/oma/runtime/process"
)

// The engine itself holds what its stand-in only writes down. OMA_REAL_IMAGE names an image with bash that is there.
func TestRealContainer(t *testing.T) {
	image := os.Getenv("OMA_REAL_IMAGE")
	if image == "" {
		absent(t, "container", errors.New("OMA_REAL_IMAGE names no image"))
	}
	b := newBox(t, Options{Kind: Container, Image: image, Name: fmt.Sprintf("oma-test-%d", os.Getpid()), NoNetwork: true})
	for _, script := range []string{"echo mine > $OUT/file", "echo mine > /etc/new", "mkdir -p $OUT && echo mine > $OUT/file", "mount -o remount,rw /",
		"exec 3<>/dev/tcp/1.1.1.1/53", "cat $OUT/file", "grep -q oma /proc/1/environ"} {
		if o := b.try(script); o.Exit.OK() {
			t.Errorf("%s: let through: %q", script, o.Stdout.Text)
		}
		b.untouched(script)
	}
	if o := b.try("set -e; echo mine > here; cat here; pwd; f=$(mktemp); echo x > $f; id -u"); o.Stdout.Text != fmt.Sprintf("mine\n%s\n%d\n", b.dir, os.Getuid()) || !o.Exit.OK() {
		t.Errorf("%s, %q, %q", o.Exit, o.Stdout.Text, o.Stderr.Text)
	}
	if o := b.run(t.Context(), "echo part; sleep 300", process.Limits{Timeout: 5 * time.Second}); o.Reason != process.TimedOut || o.Stdout.Text != "part\n" {
		t.Errorf("%+v", o)
	}
	ps, err := b.Executor.(*contained).engine("ps", "--all", "--quiet", "--filter", fmt.Sprintf("name=oma-test-%d-", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(ps.Program, ps.Args...)
	cmd.Env = ps.Env
	if left, err := cmd.CombinedOutput(); err != nil || len(left) > 0 {
		t.Errorf("left: %s, %v", left, err)
	}
}
