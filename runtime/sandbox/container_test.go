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

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/runtime/process"
	"github.com/open-multi-agent/oma/spec"
)

// docker stands in for the engine: it writes down what it is asked, runs the command in a session of its own as a daemon
// would, and goes on with it when it is killed. Files say that a container is not there yet when it is to be removed for
// the first time (late), or that it never can be (stuck).
const docker = `
dir=%[1]s
printf '%%s\n' "$@" > $dir/asked.$1.$(date +%%s%%N)
case $1 in
image) echo sha256:1234;;
run)
	while [ "$1" != --name ]; do shift; done
	name=$2
	while [ "$1" != --entrypoint ]; do shift; done
	printf '%%s\n' "$PATH" "$SECRET" "$TERM" > $dir/environment
	PATH=/bin:/usr/bin setsid sh -c 'echo $$ > $0; exec bash "$@"' $dir/$name "${@:4}" &
	wait $!; code=$?
	rm -f $dir/$name; exit $code;;
rm)
	PATH=/bin:/usr/bin
	if [ -e $dir/stuck ]; then echo 'Error response from daemon: it is stuck' >&2; exit 1; fi
	if [ -e $dir/late ] || [ ! -e $dir/$3 ]; then rm -f $dir/late; echo "Error response from daemon: No such container: $3" >&2; exit 1; fi
	kill -9 -$(cat $dir/$3) || exit 1
	rm $dir/$3; echo $3;;
esac
`

var pinned = "registry.example/tools@sha256:" + strings.Repeat("0a", 32)

// ship is a container executor with a stand-in for the engine.
type ship struct {
	*box
	notes string // the folder the engine writes in
}

func newShip(t *testing.T, o Options) *ship {
	t.Helper()
	notes := realPath(t.TempDir())
	o.Kind, o.Image, o.Name = Container, pinned, "oma-7-dev"
	env := fake(t, "docker", "PATH=/bin:/usr/bin:$PATH\n"+fmt.Sprintf(docker, notes))
	o.Env = func(name string) (string, bool) {
		if name == "DOCKER_HOST" {
			return "unix:///run/user/7/docker.sock", true
		}
		return env(name)
	}
	return &ship{newBox(t, o), notes}
}

// asked gives what the engine was asked for by a word, in order.
func (s *ship) asked(word string) (calls [][]string) {
	s.Helper()
	files, err := filepath.Glob(filepath.Join(s.notes, "asked."+word+".*"))
	if err != nil {
		s.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			s.Fatal(err)
		}
		calls = append(calls, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"))
	}
	return calls
}

// The command line is all there is to a container: nothing of it may change unseen.
func TestContainerCommand(t *testing.T) {
	extra := realPath(t.TempDir())
	s := newShip(t, Options{NoNetwork: true, Write: []string{extra}})
	c := process.Command{Program: "/bin/bash", Args: []string{"-c", "echo $((1+1)); pwd"}, Dir: s.dir + "/.",
		Env: []string{"HOME=/home/u", "PATH=/opt", "TERM=dumb", "TMPDIR=/var/tmp", "SECRET=s3cret", "SHELL=/bin/zsh"}}
	got, done, err := s.Wrap(c)
	if err != nil {
		t.Fatal(err)
	}
	o, err := process.Run(t.Context(), got, limits)
	done(o)
	if err != nil || o.Stdout.Text != "2\n/\n" || !o.Exit.OK() {
		t.Errorf("%+v, %v", o, err)
	}
	want := [][]string{{"run", "--rm", "--pull=never", "--name", "oma-7-dev-1", "--read-only", "--tmpfs", "/tmp:exec,mode=1777", "--cap-drop", "ALL",
		"--security-opt", "no-new-privileges", "--log-driver", "none", "--user", fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()), "--network", "none",
		"--mount", "type=bind,source=" + s.dir + ",target=" + s.dir, "--mount", "type=bind,source=" + extra + ",target=" + extra,
		"--workdir", s.dir, "--env", "HOME=/tmp", "--env", "TERM", "--env", "SECRET", "--entrypoint", "bash", pinned, "-c", "echo $((1+1)); pwd"}}
	if diff := cmp.Diff(want, s.asked("run")); diff != "" {
		t.Error(diff)
	}
	if calls := s.asked("rm"); calls != nil {
		t.Errorf("a container that ended was removed: %v", calls)
	}
	if diff := cmp.Diff([][]string{{"image", "inspect", "--format", "{{.Id}}", pinned}}, s.asked("image")); diff != "" {
		t.Error(diff)
	}
	if !slices.Contains(got.Env, "DOCKER_HOST=unix:///run/user/7/docker.sock") || !slices.Contains(got.Env, "SECRET=s3cret") || slices.Contains(got.Env, "PATH=/opt") {
		t.Errorf("%q", got.Env)
	}
	for _, p := range s.Held() {
		if p.Level != spec.Enforced {
			t.Errorf("%+v", p)
		}
	}
}

// W4: a killed docker leaves its container at work. It is removed by name, and what could not be is said at the end.
func TestContainerRemovedW4(t *testing.T) {
	for _, c := range []struct {
		name, note, script string
		want               process.Reason
		removals           int // with the one that Close asks for
		err                string
	}{
		{"time limit", "", "sleep %s & wait", process.TimedOut, 1, ""},
		{"cancelled", "", "sleep %s & wait", process.Cancelled, 1, ""},
		{"not there yet", "late", "sleep %s & wait", process.Cancelled, 2, ""},
		{"cannot be removed", "stuck", "sleep %s & wait", process.Cancelled, 2, "container oma-7-dev-1 may still run: Error response from daemon: it is stuck"},
		{"engine's failure", "", ": %s; exit 125", process.Exited, 2, ""},
		{"failed", "", ": %s; exit 3", process.Exited, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShip(t, Options{})
			if c.note != "" {
				s.write(filepath.Join(s.notes, c.note), "")
			}
			n := odd(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			l := process.Limits{Timeout: time.Minute}
			if c.want == process.TimedOut {
				l.Timeout = 400 * time.Millisecond
			} else if c.want == process.Cancelled {
				go func() {
					until(t, "the command runs", func() bool { return alive(t, "sleep\x00"+n) > 0 })
					cancel()
				}()
			}
			if o := s.run(ctx, fmt.Sprintf(c.script, n), l); o.Reason != c.want {
				t.Errorf("%+v", o)
			}
			if c.note == "" && c.want != process.Exited { // it was killed; the system takes it away in its own time
				until(t, "the container has ended with the call", func() bool { return alive(t, "sleep\x00"+n) == 0 })
			}
			err := s.Close()
			if c.err == "" && err != nil || c.err != "" && (err == nil || err.Error() != c.err) {
				t.Errorf("got %v, want %s", err, c.err)
			}
			if calls := s.asked("rm"); len(calls) != c.removals || len(calls) > 0 && !slices.Equal(calls[0], []string{"rm", "--force", "oma-7-dev-1"}) {
				t.Errorf("removals: %v", calls)
			}
			os.Remove(filepath.Join(s.notes, "stuck"))
			_, _ = s.Executor.(*contained).remove("oma-7-dev-1") // what the test itself left
			if c.want != process.Exited {
				until(t, "nothing is left", func() bool { return alive(t, "sleep\x00"+n) == 0 })
			}
		})
	}
}

// Names of containers do not repeat, and what cannot be said to the engine is not run.
func TestContainerRefuses(t *testing.T) {
	s := newShip(t, Options{})
	for i := range 3 {
		c, _, err := s.Wrap(process.Command{Program: "/bin/bash", Dir: s.dir})
		if err != nil || !slices.Contains(c.Args, fmt.Sprintf("oma-7-dev-%d", i+1)) {
			t.Errorf("%+v, %v", c, err)
		}
	}
	if _, _, err := s.Wrap(process.Command{Program: "/bin/bash", Dir: "/etc"}); err == nil || err.Error() != `folder "/etc" is not in the container` {
		t.Error(err)
	}
	dir := filepath.Join(realPath(t.TempDir()), "a,readonly=false")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	env, _ := s.Executor.(*contained)
	e, err := New(Options{Kind: Container, Dir: dir, Image: pinned, Name: "oma", Env: env.o.Env})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := e.Wrap(process.Command{Program: "/bin/bash", Dir: dir}); err == nil || err.Error() != fmt.Sprintf("folder %q cannot be named to docker", dir) {
		t.Error(err)
	}
}

// What podman does by itself and docker does not is switched off: /var/tmp and /run to write in, and ten seconds of waiting
// before a container is killed, which is as long as its removal may take.
func TestPodman(t *testing.T) {
	c := &contained{}
	args, err := c.walls("/usr/bin/podman", nil)
	if err != nil || slices.Contains(args, "keep-id") != (os.Getuid() != 0) {
		t.Error(args, err)
	}
	own := []string{"--read-only-tmpfs=false", "--stop-timeout", "0"}
	for _, arg := range own {
		if !slices.Contains(args, arg) {
			t.Errorf("podman is not told %s", arg)
		}
	}
	if args, err = c.walls("/usr/bin/docker", nil); err != nil || slices.Contains(args, own[0]) {
		t.Error(args, err)
	}
}

// A name without a digest can be given to another image.
func TestPinned(t *testing.T) {
	for image, want := range map[string]bool{pinned: true, "sha256:" + strings.Repeat("0", 64): true, "debian": false, "debian:12": false, "debian@sha256:12": false,
		"sha256:" + strings.Repeat("0", 64) + ":latest": false} {
		if IsPinned(image) != want {
			t.Error(image)
		}
		e, err := New(Options{Kind: Container, Dir: "/a", Image: image, Name: "oma"})
		if err != nil {
			t.Fatal(errors.Join(errors.New(image), err))
		}
		if l, mechanism := level(t, e, Pinned); (l == spec.Enforced) != want {
			t.Errorf("%s: %s, %s", image, l, mechanism)
		}
	}
}
