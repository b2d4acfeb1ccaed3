//go:build real && unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/testdata/real/parts"
)

const containedTeam = `apiVersion: oma/v1
kind: Team
name: contained
goal: Try it.
providers: {demo: {kind: scripted, cassette: tape.yaml}}
defaults: {provider: demo, cwd: work, shellExecutor: {kind: container, image: "IMAGE", network: false}}
agents: [{name: a, systemPrompt: p, tools: [bash]}]
`

// ship is a folder with a team whose bash runs in containers of a real engine.
type ship struct {
	*parts.Engine
	t        *testing.T
	bin, dir string
}

func newShip(t *testing.T) *ship {
	s := &ship{Engine: parts.Podman(t), t: t, dir: t.TempDir()}
	s.bin = built(t)
	s.write("team.yaml", strings.ReplaceAll(containedTeam, "IMAGE", s.Image))
	return s
}

func (s *ship) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// command is oma with commands of bash that a model asks for one after the other.
func (s *ship) command(args []string, calls ...string) *exec.Cmd {
	s.t.Helper()
	tape := "apiVersion: oma/v1\nkind: Cassette\nagents:\n  a:\n"
	for i, call := range calls {
		tape += fmt.Sprintf("    - toolCalls: [{id: c%d, name: bash, input: %s}]\n", i, call)
	}
	s.write("tape.yaml", tape+"    - text: done\n")
	cmd := exec.Command(s.bin, append(args, "team.yaml")...)
	cmd.Dir, cmd.Env = s.dir, append([]string{"OMA_STATE=" + s.dir + "/../state"}, s.Env...)
	return cmd
}

// until waits for something, for 20 seconds at most.
func (s *ship) until(what string, is func() bool) {
	s.t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("waited in vain until %s", what)
		}
	}
}

// lives says whether a process of the machine sleeps for so many seconds: the commands of a container are among them.
func lives(seconds string) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && bytes.Equal(line, []byte("sleep\x00"+seconds+"\x00")) {
			return true
		}
	}
	return false
}

// A command in a container writes where it may and nowhere else, has no network, and what hangs is ended with its container.
func TestRealContainerRun(t *testing.T) {
	s := newShip(t)
	seconds := fmt.Sprint(1_000_000 + os.Getpid())
	cmd := s.command([]string{"run", "-o", "json"}, `{command: "echo inside > in.txt; pwd; id -u; ls /"}`, `{command: "echo out > ../out.txt; echo out > /etc/out.txt; exec 3<>/dev/tcp/127.0.0.1/80"}`,
		`{command: "sleep `+seconds+` & sleep `+seconds+`", timeout: 2000}`, `{command: "cat in.txt && echo still here"}`)
	var errs strings.Builder
	cmd.Stderr = &errs
	start := time.Now()
	out, err := cmd.Output()
	if err != nil || time.Since(start) > 15*time.Second {
		t.Fatalf("%v after %v\n%s", err, time.Since(start), &errs)
	}
	r := receiptOf(t, string(out))
	if calls := r.Tasks[0].ToolCalls; calls.Allowed != 4 || calls.Failed != 2 {
		t.Errorf("%+v", calls)
	}
	rows := map[string]string{}
	for _, c := range r.Enforcement {
		rows[c.Control] = c.Level + " " + c.Mechanism
	}
	for _, control := range []string{"containment", "network", "image"} {
		if !strings.HasPrefix(rows[control], spec.Enforced+" container: ") {
			t.Errorf("%s: %q", control, rows[control])
		}
	}
	info, err := os.Stat(filepath.Join(s.dir, "work/in.txt"))
	if err != nil || int(info.Sys().(*syscall.Stat_t).Uid) != os.Getuid() {
		t.Errorf("what it wrote: %v, %+v", err, info)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "out.txt")); err == nil {
		t.Error("it wrote outside")
	}
	events, err := os.ReadFile(filepath.Join(s.dir, "../state/runs", r.RunID, "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{filepath.Join(s.dir, "work"), "Read-only file system", "killed at its time limit of 2000 ms", "still here"} {
		if !strings.Contains(string(events), want) {
			t.Errorf("no result says %q", want)
		}
	}
	if lives(seconds) {
		t.Error("a command outlives its run")
	}
	if left := s.Containers(); left != "" {
		t.Errorf("left: %s", left)
	}
}

// W4: a run that is told to end leaves no process and no container. One that is killed leaves its container, and the line of
// the documentation removes it.
func TestRealContainerKilledRun(t *testing.T) {
	s := newShip(t)
	for i, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGKILL} {
		seconds := fmt.Sprint(2_000_000 + i*100_000 + os.Getpid())
		cmd := s.command([]string{"run", "--grace", "1s"}, `{command: "sleep `+seconds+`"}`)
		var said strings.Builder
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		s.until("the command runs", func() bool { return lives(seconds) })
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if sig != syscall.SIGKILL {
			if code := cmd.ProcessState.ExitCode(); code != 128+int(sig) {
				t.Errorf("%s: exit code %d\n%s", sig, code, &said)
			}
		} else {
			line := exec.Command("sh", "-c", "podman ps --quiet --filter name=^oma- | xargs --no-run-if-empty podman rm --force")
			line.Env = s.Env
			line.Env = append(line.Env, "PATH="+strings.TrimPrefix(s.Env[0], "PATH=")+":/usr/bin:/bin")
			if out, err := line.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		}
		// the engine takes down what it was told to after whoever told it has ended
		s.until("the command has ended", func() bool { return !lives(seconds) })
		s.until("no container is left", func() bool { return s.Containers() == "" })
	}
}
