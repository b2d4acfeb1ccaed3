//go:build unix

package mcp

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fakeVar makes the test binary a server that misbehaves as its value says.
const fakeVar = "OMA_MCP_FAKE"

func TestMain(m *testing.M) {
	if how := os.Getenv(fakeVar); how != "" {
		misbehave(how)
		return
	}
	os.Exit(m.Run())
}

// program is the test binary as a server.
func program(t testing.TB, how string) Options {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Options{Command: []string{self}, Dir: t.TempDir(), Env: []string{fakeVar + "=" + how, "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"}}
}

// misbehave is a server in a process of its own.
func misbehave(how string) {
	f := &fake{}
	switch how {
	case "conformance client":
		if err := conform(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case "dies at once":
		fmt.Fprintln(os.Stderr, "no config found, token=hunter2")
		os.Exit(3)
	case "dies in a call":
		f.call = func(*fake, string, string, string) string {
			fmt.Fprintln(os.Stderr, "out of luck")
			os.Exit(4)
			return ""
		}
	case "closes its output":
		f.call = func(*fake, string, string, string) string {
			os.Stdout.Close()
			time.Sleep(time.Hour)
			return ""
		}
	case "has children", "ends before its children":
		child := exec.Command("sleep", "600")
		child.Stdout = os.Stdout // holds the pipe
		if err := child.Start(); err != nil {
			os.Exit(9)
		}
		if err := os.WriteFile("child", []byte(strconv.Itoa(child.Process.Pid)), 0o600); err != nil {
			os.Exit(9)
		}
		if how == "ends before its children" {
			f.call = func(*fake, string, string, string) string { os.Exit(5); return "" }
		}
	case "will not end":
		signal.Ignore(syscall.SIGTERM)
		f.serve(os.Stdin, os.Stdout)
		time.Sleep(time.Hour)
	default:
		if fault := faults[how]; fault != nil {
			fault(f)
		}
	}
	f.serve(os.Stdin, os.Stdout)
}

// gone waits until a process is no more. The kernel ends it in its own time after the signal.
func gone(t *testing.T, pid int) {
	t.Helper()
	for range 1000 {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if strings.Contains(string(stat), ") Z ") || syscall.Kill(pid, 0) != nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("process %d still runs", pid)
}

func TestOpenFails(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "plain")
	if err := os.WriteFile(script, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		o    Options
		want string
	}{
		"neither":         {Options{}, `MCP server "s": expected either a command or a url`},
		"both":            {Options{Command: []string{"x"}, URL: "http://h"}, `MCP server "s": expected either a command or a url`},
		"no such program": {Options{Command: []string{"no-such-program"}}, `MCP server "s": start failed: program "no-such-program" is in no folder of PATH`},
		"no program":      {Options{Command: []string{script}}, "is not executable"},
		"no address":      {Options{URL: "file:///etc/passwd"}, "expected a url of http or https"},
		"a user":          {Options{URL: "http://me:hunter2@h/"}, "without a user"},
		"dies at once":    {program(t, "dies at once"), `MCP server "s": initialize failed: the server exited with code 3; stderr: "no config found, token=[gone]"`},
	} {
		t.Run(name, func(t *testing.T) {
			test.o.Redact = func(s string) string { return strings.ReplaceAll(s, "hunter2", "[gone]") }
			c, err := Open(t.Context(), "s", test.o)
			if err == nil {
				c.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got  %s\nwant %s", err, test.want)
			}
		})
	}
}

// MC-05: a server that never answers is given up, named, and gone afterwards.
func TestMC05SilentProgram(t *testing.T) {
	o := Options{Command: []string{"sh", "-c", "echo $$ > pid; exec sleep 600"}, Dir: t.TempDir(), Path: os.Getenv("PATH"), Env: []string{"PATH=" + os.Getenv("PATH")}, RequestTimeout: 300 * time.Millisecond}
	_, err := Open(t.Context(), "slow", o)
	if err == nil || err.Error() != `MCP server "slow": no answer to initialize within 300ms` {
		t.Fatalf("got %v", err)
	}
	raw, err := os.ReadFile(filepath.Join(o.Dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	gone(t, pid)
}

func TestServerThatDies(t *testing.T) {
	for how, want := range map[string]string{
		"dies in a call":           `MCP server "s": tools/call failed: the server exited with code 4; stderr: "out of luck"`,
		"closes its output":        `MCP server "s": tools/call failed: the server has closed its output and still runs`,
		"ends before its children": `MCP server "s": tools/call failed: the server exited with code 5`,
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			c, err := Open(t.Context(), "s", program(t, how))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			offered := tool(t, c)
			for range 2 { // the second call finds the connection broken
				got := invoke(t.Context(), offered, `{}`)
				if !got.IsError || got.Text != `MCP tool "echo" failed: `+want {
					t.Errorf("got  %s\nwant %s", got.Text, want)
				}
			}
		})
	}
}

// Nothing that a server started is left, whether it ends when asked or not.
func TestNothingIsLeft(t *testing.T) {
	for _, how := range []string{"has children", "will not end"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			o := program(t, how)
			c, err := Open(t.Context(), "s", o)
			if err != nil {
				t.Fatal(err)
			}
			tool(t, c)
			started := time.Now()
			c.Close()
			if took := time.Since(started); took > 4*time.Second {
				t.Errorf("closing took %s", took)
			}
			if !c.server.Exit().OK() != (how == "will not end") {
				t.Errorf("the server %s", c.server.Exit())
			}
			if raw, err := os.ReadFile(filepath.Join(o.Dir, "child")); err == nil {
				pid, _ := strconv.Atoi(string(raw))
				gone(t, pid)
			} else if how == "has children" {
				t.Error(err)
			}
		})
	}
}
