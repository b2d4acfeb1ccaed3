package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/open-multi-agent/oma/spec"
)

// attacks are what a shell alone cannot try. nil: it was let through.
var attacks = map[string]func(args []string) error{
	"ptrace": func(args []string) error {
		pid, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		return unix.PtraceAttach(pid)
	},
	"mount": func(args []string) error { return unix.Mount(args[0], args[1], "", unix.MS_BIND, "") },
	"remount": func(args []string) error {
		return unix.Mount("", args[0], "", unix.MS_REMOUNT|unix.MS_BIND, "")
	},
	"setns": func(args []string) error {
		fd, err := unix.Open(args[0], unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		return unix.Setns(fd, 0)
	},
	// disk makes a device of the one that a folder is on, to write on it past all folders. It does not write.
	"disk": func(args []string) error {
		var st unix.Stat_t
		if err := unix.Stat(args[0], &st); err != nil {
			return err
		}
		if err := unix.Mknod("disk", unix.S_IFBLK|0o600, int(st.Dev)); err != nil {
			return err
		}
		fd, err := unix.Open("disk", unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	},
	"dial": func(args []string) error {
		c, err := net.DialTimeout(args[0], args[1], 5*time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := c.Write([]byte("got out")); err != nil || args[0] != "udp" {
			return err
		}
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		_, err = c.Read(make([]byte, 8)) // that it was sent says nothing
		return err
	},
	"mptcp": func(args []string) error {
		d := &net.Dialer{Timeout: 5 * time.Second}
		d.SetMultipathTCP(true)
		c, err := d.Dial("tcp", args[0])
		if err != nil {
			return err
		}
		return c.Close()
	},
	"utime": func(args []string) error { return unix.Utimes(args[0], make([]unix.Timeval, 2)) },
}

// writes are ways to change files that are not a command's to change. Without a sandbox they all do.
var writes = []string{
	`echo mine > $OUT/new`, `echo mine > $OUT/file`, `echo mine >> $OUT/file`, `: > $OUT/file`, `truncate -s 0 $OUT/file`,
	`rm -f $OUT/file`, `rm -rf $OUT/folder`, `mkdir $OUT/new`, `mkfifo $OUT/new`, `ln -s file $OUT/new`,
	`cp /etc/hostname $OUT/new`, `dd if=/dev/zero of=$OUT/file bs=1 count=3 conv=notrunc`,
	// links
	`ln -s $OUT links; echo mine > links/file`, `ln -s $OUT/new dangling; echo mine > dangling`,
	`ln $OUT/file hard && echo mine > hard`, `echo mine > here; ln here $OUT/new`,
	// names
	`echo mine > here; mv here $OUT/file`, `mv $OUT/file there && echo mine > there`, `mv $OUT/folder $OUT/moved`, `mv $OUT/file $OUT/new`,
	// by other ways to the same folder
	`echo mine > /proc/self/root$OUT/file`, `echo mine > /proc/self/cwd/../../../..$OUT/file`, `echo mine > /proc/$US/root$OUT/file`,
	`exec 7< $OUT/file; echo mine > /proc/self/fd/7`,
	`exec 7< $OUT; echo mine > /proc/self/fd/7/file`, `setsid -w bash -c "echo mine > $OUT/file"`,
}

// breakouts are ways to become one who may. Most do nothing to a user who is not root, sandbox or not.
var breakouts = []string{
	// with the rights of root, real or in a user namespace of its own
	`attack mount . $OUT && echo mine > $OUT/file`, `attack mount $OUT . ; cd . ; echo mine > file && grep -q theirs $OUT/file && false`,
	`attack remount / && echo mine > $OUT/file`, `unshare -Urm bash -c "mount -o remount,rw,bind / && echo mine > $OUT/file"`,
	`unshare -Urm bash -c "mount --bind $OUT . && echo mine > ./file; echo mine > $OUT/file"`, `unshare -Ur bash -c "echo mine > $OUT/file"`,
	`unshare -Um $ATTACK remount / && echo mine > $OUT/file`, `unshare -Um $ATTACK mount . $OUT`, `unshare -Um $ATTACK setns /proc/1/ns/mnt`,
	`umount -l / && echo mine > $OUT/file`, `attack setns /proc/$US/ns/mnt && echo mine > $OUT/file`, `attack setns /proc/1/ns/mnt`,
	`attack disk $OUT`, `nsenter -t 1 -m bash -c "echo mine > $OUT/file"`, `sudo -n bash -c "echo mine > $OUT/file"`,
	`chroot / bash -c "echo mine > $OUT/file"`, `echo mine > /proc/$PPID/root$OUT/file`, `echo mine > /proc/1/root$OUT/file`, `setpriv --reuid 65534 --clear-groups bash -c "echo mine > $OUT/new"`,
	// into the kernel: what is opened so would be written by root without any capability
	`: >> /proc/sys/kernel/core_pattern`, `: >> /proc/sysrq-trigger`,
	// into other processes
	`attack ptrace $US`, `cat /proc/$US/environ`, `cat /proc/$PPID/environ | grep -q OMA_TEST`, `echo mine > /proc/$US/mem`, `ls -l /proc/$US/fd/`,
	`kill -0 $US`, `kill -CONT $US`,
}

// Nothing that is tried changes a file outside, or gets at this process.
func TestNoWayOut(t *testing.T) {
	t.Setenv("OMA_TEST_KEY", "sk-test")
	for _, kind := range []string{Landlock, Bubblewrap} {
		t.Run(kind, func(t *testing.T) {
			b := newBox(t, Options{Kind: kind})
			b.untouched("nothing")
			for _, script := range slices.Concat(writes, breakouts) {
				if kind == Landlock && landlockVersion() < 6 && strings.HasPrefix(script, "kill") {
					continue // signals are bounded from version 6 on
				}
				o := b.try(script + " || exit 77")
				if o.Exit.Code != 77 {
					t.Errorf("%s: let through: %s, %q, %q", script, o.Exit, o.Stdout.Text, o.Stderr.Text)
				}
				b.untouched(script)
			}
		})
	}
}

// The writes are not refused by chance: without a sandbox each of them changes something.
func TestWritesDoWrite(t *testing.T) {
	for _, script := range writes {
		b := newBox(t, Options{})
		before := b.tree()
		if o := b.try(script); slices.Equal(b.tree(), before) {
			t.Errorf("%s: %s, %q: nothing was changed", script, o.Exit, o.Stderr.Text)
		}
	}
}

// What is asked for works: reading everywhere, writing in the declared folders and between them, temporary files, pipes
// with names, devices that are nobody's.
func TestWorksInside(t *testing.T) {
	for _, kind := range []string{Landlock, Bubblewrap} {
		t.Run(kind, func(t *testing.T) {
			extra := realPath(t.TempDir())
			b := newBox(t, Options{Kind: kind, Write: []string{extra}})
			for _, script := range []string{
				`grep -q theirs $OUT/file`, `test -r /etc/passwd`, `ls / > /dev/null`, `cat $OUT/folder/file > copy`,
				`mkdir -p a/b; echo x > a/b/c; mv a/b/c d; ln d e; ln -s d f; rm -r a d e f`,
				`echo x > ` + extra + `/file; mv ` + extra + `/file here; mv here ` + extra + `/back; rm ` + extra + `/back`,
				`f=$(mktemp); echo x > "$f"; test -s "$f"; rm "$f"`, `test -w "$TMPDIR"`, `mkfifo pipe; echo x > pipe & read -r x < pipe; rm pipe; test $x = x`,
				`cat <(echo x) > /dev/null`, `echo x > /proc/self/fd/2; echo x > /proc/self/fd/1`, `head -c 8 /dev/urandom > /dev/null; head -c 8 /dev/zero > r`,
				`sleep 300 & kill $!; wait $! || test $? = 143`, `yes | head -1`, `test ! -t 0`, `exec 3<>/dev/null`, `cat <<< here > /dev/null`,
			} {
				if o := b.try("set -e\n" + script); !o.Exit.OK() {
					t.Errorf("%s: %s, %q, %q", script, o.Exit, o.Stdout.Text, o.Stderr.Text)
				}
			}
			for script, want := range map[string]string{"pwd": b.dir + "\n", "exit 3": "", `cat; echo $?`: "0\n", `echo "$HOME"`: os.Getenv("HOME") + "\n", `kill -9 $$`: ""} {
				o := b.try(script)
				code := map[string]int{"exit 3": 3, "kill -9 $$": 137}[script]
				if o.Stdout.Text != want || o.Exit.Code != code {
					t.Errorf("%s: %s, %q, %q", script, o.Exit, o.Stdout.Text, o.Stderr.Text)
				}
			}
			b.untouched("work inside")
		})
	}
}

// A folder below the agent's is a fine place to start.
func TestStartsBelow(t *testing.T) {
	for _, kind := range []string{Landlock, Bubblewrap} {
		t.Run(kind, func(t *testing.T) {
			b := newBox(t, Options{Kind: kind})
			b.write(b.dir+"/sub/file", "x")
			if o, err := runIn(t.Context(), b, b.dir+"/sub", "pwd; ls; echo > ../up", limits); err != nil || o.Stdout.Text != b.dir+"/sub\nfile\n" || !o.Exit.OK() {
				t.Errorf("%+v, %v", o, err)
			}
			if o, err := runIn(t.Context(), b, b.outside, "pwd; cat file; ! echo > file", limits); err != nil || o.Stdout.Text != b.outside+"\ntheirs\n" || !o.Exit.OK() {
				t.Errorf("%+v, %v", o, err)
			}
		})
	}
}

// No network: a listener of this machine hears nothing. What landlock lets through is what its promise says.
func TestNetwork(t *testing.T) {
	tcp, udp, unixSocket, abstract := listen(t)
	for _, kind := range []string{Landlock, Bubblewrap} {
		for _, off := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, off %v", kind, off), func(t *testing.T) {
				b := newBox(t, Options{Kind: kind, NoNetwork: off})
				for script, passes := range map[string]bool{
					"attack dial tcp " + tcp:                  !off,
					"exec 3<>/dev/tcp/127.0.0.1/" + port(tcp): !off,
					"attack dial udp " + udp:                  !off || kind == Landlock && landlockVersion() < landlockUDP,
					"attack mptcp " + tcp:                     !off || kind == Landlock && hasMPTCP(),
					"attack dial unix " + unixSocket:          kind == Bubblewrap || landlockVersion() < landlockUnix,
					"attack dial unix " + abstract:            kind == Bubblewrap && !off || kind == Landlock && landlockVersion() < 6,
				} {
					if o := b.try(script); o.Exit.OK() != passes {
						t.Errorf("%s: want %v: %s, %q, %q", script, passes, o.Exit, o.Stdout.Text, o.Stderr.Text)
					}
				}
				open := kind == Landlock && landlockVersion() < landlockUnix // to whoever writes where a service may
				for _, control := range []string{Containment, Evidence} {
					if l, mechanism := level(t, b, control); (l == spec.Enforced) == open {
						t.Errorf("%s: %s", l, mechanism)
					}
				}
				if !off {
					return
				}
				got, mechanism := level(t, b, Network)
				want := map[string]string{Landlock: spec.Observed, Bubblewrap: spec.Enforced}[kind]
				if got != want {
					t.Errorf("%s: %s", got, mechanism)
				}
			})
		}
	}
}

// hasMPTCP says whether Multipath TCP is there at all: without it, Go opens TCP in its place.
func hasMPTCP() bool {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

func listen(t *testing.T) (tcp, udp, path, abstract string) {
	dir, err := os.MkdirTemp("/var/tmp", "oma-sockets-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path, abstract = filepath.Join(dir, "socket"), fmt.Sprintf("@oma-test-%d", os.Getpid())
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for i, at := range []string{path, abstract, "127.0.0.1:0"} {
		l, err := net.Listen([]string{"unix", "unix", "tcp"}[i], at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		tcp = l.Addr().String()
	}
	p, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	go func() {
		for buf := make([]byte, 64); ; {
			n, from, err := p.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = p.WriteTo(buf[:n], from)
		}
	}()
	return tcp, p.LocalAddr().String(), path, abstract
}

func port(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

// What landlock does not know is said: modes and times of files outside. bubblewrap holds them.
func TestModesOutside(t *testing.T) {
	for kind, passes := range map[string]bool{Landlock: true, Bubblewrap: false} {
		b := newBox(t, Options{Kind: kind})
		for _, script := range []string{"chmod 600 $OUT/file", "attack utime $OUT/file"} {
			if o := b.try(script); o.Exit.OK() != passes {
				t.Errorf("%s: %s: %s, %q", kind, script, o.Exit, o.Stderr.Text)
			}
		}
		if _, mechanism := level(t, b, Containment); strings.Contains(mechanism, "modes, owners and times of others can be changed") != passes {
			t.Errorf("%s: %s", kind, mechanism)
		}
	}
}

// N5: no command sees the environment of the program or of what started it, whoever runs it. landlock leaves command
// lines to be seen, bubblewrap nothing.
func TestSecretsN5(t *testing.T) {
	t.Setenv("OMA_TEST_KEY", "sk-test")
	const look = `for f in /proc/[0-9]*/environ; do cat $f 2>/dev/null; done | grep -ac "sk-tes[t]"`
	for kind, others := range map[string]bool{Landlock: true, Bubblewrap: false} {
		b := newBox(t, Options{Kind: kind})
		if o := b.try(look); strings.TrimSpace(o.Stdout.Text) != "0" {
			t.Errorf("%s: %q, %q", kind, o.Stdout.Text, o.Stderr.Text)
		}
		if o := b.try(`cat /proc/$US/cmdline | tr '\0' ' '`); strings.Contains(o.Stdout.Text, os.Args[0]) != others {
			t.Errorf("%s: %q, %q", kind, o.Stdout.Text, o.Stderr.Text)
		}
	}
	self, err := os.ReadFile("/proc/self/environ")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(self, []byte("sk-test")) {
		t.Error("a variable that is set later is not in the environment that others see")
	}
}

// A helper that is asked for more than it can hold, or for nonsense, starts nothing.
func TestHelperRefuses(t *testing.T) {
	if v := landlockVersion(); v < landlockFiles {
		t.Skip("SKIPPED:", tooOld(v, false))
	}
	dir := realPath(t.TempDir())
	if err := os.Symlink("/", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		``:               "unexpected end of JSON input",
		`{}`:             fmt.Sprintf("landlock has version %d here, and version 0 was promised", landlockVersion()),
		`{"version":99}`: fmt.Sprintf("landlock has version %d here, and version 99 was promised", landlockVersion()),
		`{"version":3,"folders":["` + dir + `/link/etc"]}`: "too many levels of symbolic links",
		`{"version":3,"folders":["` + dir + `/none"]}`:     "no such file or directory",
	} {
		b := &box{TB: t, Executor: local{}, dir: dir, outside: dir}
		o := b.run(t.Context(), fmt.Sprintf("exec %s %s '%s' /bin/echo started", executable(t), helperWord, text), limits)
		if o.Exit.Code != notRun || o.Stdout.Text != "" || !strings.Contains(o.Stderr.Text, want) || !strings.HasPrefix(o.Stderr.Text, "Not run: the sandbox could not be put up: ") {
			t.Errorf("%s: %s, %q, %q", text, o.Exit, o.Stdout.Text, o.Stderr.Text)
		}
	}
	if _, mine := Helper([]string{"oma", "run", helperWord}, nil, nil); mine {
		t.Error("any command line is a helper's")
	}
}

// Kernels before those that can hold what is asked for are refused with what they lack.
func TestTooOld(t *testing.T) {
	for _, c := range []struct {
		version int
		off     bool
		want    string
	}{
		{0, false, "this kernel does not offer landlock: it came with Linux 5.13 and must be among the security modules that the kernel starts"},
		{2, false, "landlock has version 2 here, and version 3 (Linux 6.2) is needed: before it, files can be emptied everywhere"},
		{3, false, ""},
		{3, true, "landlock has version 3 here, and version 4 (Linux 6.7) is needed to refuse connections"},
		{4, true, ""},
	} {
		if err := errors.Join(tooOld(c.version, c.off)); (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
