//go:build unix

package process

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

func peer(t *testing.T, script string) (*Peer, *bufio.Reader, Command) {
	t.Helper()
	c := shell(t, script)
	p, err := Start(c, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close(0)
		gone(t, c)
	})
	return p, bufio.NewReader(p.Stdout), c
}

func TestPeerTalks(t *testing.T) {
	p, out, _ := peer(t, "echo ready >&2; while read line; do echo got $line; done; echo bye; exit 5")
	for i := range 100 {
		fmt.Fprintf(p.Stdin, "%d\n", i)
		if line, err := out.ReadString('\n'); err != nil || line != fmt.Sprintf("got %d\n", i) {
			t.Fatalf("%q, %v", line, err)
		}
	}
	select {
	case <-p.Done():
		t.Fatal("the peer has ended:", p.Exit())
	default:
	}
	p.Stdin.Close()
	if rest, err := io.ReadAll(out); err != nil || string(rest) != "bye\n" {
		t.Errorf("%q, %v", rest, err)
	}
	if e := p.Exit(); e.Code != 5 || p.Stderr().Text != "ready\n" {
		t.Error(e, p.Stderr())
	}
	if e := p.Close(enough); e.Code != 5 {
		t.Error(e)
	}
}

func TestPeerFaults(t *testing.T) {
	for _, c := range []struct {
		name, script string
		grace        time.Duration
		want         string
	}{
		{"ends when its input does", "cat >/dev/null; exit 7", enough, "exited with code 7"},
		{"ends when it is asked to", "trap 'exit 8' TERM; echo up; while :; do sleep 0.01; done", 200 * time.Millisecond, "exited with code 8"},
		{"ignores everything", "trap '' TERM; echo up; while :; do sleep 0.01; done", 100 * time.Millisecond, "died of signal 9, killed"},
		{"gets no grace", "trap 'exit 8' TERM; echo up; while :; do sleep 0.01; done", 0, "died of signal 9, killed"},
		{"has died long ago", "exit 9", enough, "exited with code 9"},
		{"leaves a child", "sleep 300 & exit 9", enough, "exited with code 9"},
		{"floods stderr", "yes >&2", 0, "died of signal 9, killed"},
		{"floods stdout, unread", "echo up; yes", 0, "died of signal 9, killed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, out, _ := peer(t, c.script)
			if strings.Contains(c.script, "echo up") {
				if line, err := out.ReadString('\n'); line != "up\n" {
					t.Fatal(line, err)
				}
			}
			if c.want == "exited with code 9" {
				<-p.Done()
			}
			start := time.Now()
			if e := p.Close(c.grace); e.String() != c.want {
				t.Error(e)
			}
			if d := time.Since(start); d > enough {
				t.Errorf("took %v", d)
			}
			if n := len(p.Stderr().Text); n > 3*keepPeerStderr {
				t.Errorf("kept %d bytes", n)
			}
			if _, err := p.Stdin.Write([]byte("x")); err == nil {
				t.Error("wrote to a peer that was closed")
			}
			if _, err := io.Copy(io.Discard, out); err != nil {
				t.Error(err)
			}
		})
	}
}

// A reader that waits is let go when the peer ends, even where a process outside the group holds the pipe.
func TestPeerDetachedSP01(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("no setsid here")
	}
	c := shell(t, "setsid sleep 300 & sleep 0.1; echo last")
	p, err := Start(c, 0)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if all, err := io.ReadAll(p.Stdout); err != nil || string(all) != "last\n" || time.Since(start) > enough {
		t.Errorf("%q, %v", all, err)
	}
	p.Close(0)
	for _, pid := range marked([]byte(c.Env[1])) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// A writer to a peer that does not read is let go when the peer ends.
func TestPeerStuckWriter(t *testing.T) {
	p, _, _ := peer(t, "exec sleep 300")
	wrote := make(chan error)
	go func() {
		_, err := p.Stdin.Write(bytes.Repeat([]byte("x"), 1<<20))
		wrote <- err
	}()
	go p.Close(0)
	if err := <-wrote; err == nil {
		t.Error("a megabyte went where nobody reads")
	}
}
