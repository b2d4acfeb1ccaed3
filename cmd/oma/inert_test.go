//go:build linux && (amd64 || arm64)

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// programs are what this test binary can be started as: the program, and the program in a process that can start none
// and open no connection.
func programs() map[string]func() {
	return map[string]func(){"oma": main, "oma-locked": locked, "oma-control": tryLocked, "oma-killed": killed, "acp-agent": fakeACP, "acp-steps": stepsACP, "mcp-server": fakeMCP}
}

// noFilter is how a process ends whose kernel has no such filter.
const noFilter = 99

func locked() {
	lock()
	main()
}

// tryLocked tries what must be refused, and says what happened.
func tryLocked() {
	lock()
	_, dial := net.Dial("tcp", "127.0.0.1:1")
	udp, pipe := net.Dial("udp", "127.0.0.1:1")
	if udp != nil {
		udp.Close()
	}
	fmt.Println(errors.Is(exec.Command("true").Run(), unix.EPERM), errors.Is(dial, unix.EPERM), errors.Is(pipe, unix.EPERM))
	os.Exit(0)
}

// lock keeps this process, all of its threads, from starting a process and from having a socket.
func lock() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "no_new_privs:", err)
		os.Exit(noFilter)
	}
	filter := refusals()
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	if e != 0 {
		fmt.Fprintln(os.Stderr, "seccomp:", e)
		os.Exit(noFilter)
	}
}

// refusals is the filter, in the kernel's own instructions. struct seccomp_data has the call's number at 0, the
// architecture at 4 and the low half of the first argument at 16.
func refusals() []unix.SockFilter {
	arch, more := uint32(unix.AUDIT_ARCH_AARCH64), []uint32(nil)
	if runtime.GOARCH == "amd64" {
		arch, more = unix.AUDIT_ARCH_X86_64, []uint32{57, 58} // fork and vfork, which arm64 does not have
	}
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	give := func(what uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: what} }
	// jump skips so many instructions where the test holds, and where it does not.
	jump := func(test uint16, k uint32, holds, not uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, Jt: holds, Jf: not, K: k}
	}
	eperm, enosys, allow := give(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM)), give(unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS)), give(unix.SECCOMP_RET_ALLOW)
	out := []unix.SockFilter{load(4), jump(unix.BPF_JEQ, arch, 1, 0), eperm, load(0),
		jump(unix.BPF_JSET, 1<<30, 0, 1), eperm} // the other way of calling, of x32
	for _, nr := range append(more, unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_CONNECT, unix.SYS_IO_URING_SETUP) {
		out = append(out, jump(unix.BPF_JEQ, nr, 0, 1), eperm)
	}
	return append(out, jump(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1), enosys, // C libraries then use clone, for threads too
		jump(unix.BPF_JEQ, unix.SYS_CLONE, 0, 3), load(16), jump(unix.BPF_JSET, unix.CLONE_THREAD, 1, 0), eperm, allow)
}

// inertCommands are the verbs that promise to start no process, open no connection and read no secret.
var inertCommands = []string{
	"validate team.yaml org.yaml cases.yaml tape.yaml",
	"validate --strict -o json team.yaml",
	"plan team.yaml",
	"plan -o json --policy org.yaml team.yaml",
	"plan diff team.yaml team.yaml", "graph team.yaml", "graph --format svg team.yaml",
	"policy check team.yaml --agent shell --tool bash --input {\"command\":\"curl\"} --marks was-read",
	"policy check team.yaml --agent shell --tool file_read --input {\"path\":\"a\"} -o json",
	"policy explain team.yaml --agent shell --tool bash --input {\"command\":\"ls\"}",
	"policy check team.yaml --agent reviewer --tool own --input {}",
	"policy explain team.yaml --agent reviewer --tool ask --input {}",
	"policy classify --facts --team team.yaml rm",
	"policy classify -o json ls",
	"policy test team.yaml org.yaml cases.yaml",
	"policy show", "policy show read-only",
	"explain team.yaml", "explain team.yaml agents.shell", "explain --effective -o yaml team.yaml", "explain gate-dead",
	"schema Team", "schema", "version", "help policy",
}

// secrets are the variables that the team's keys come from, and some that a runner usually has.
var secrets = []string{"GATEWAY_KEY", "OPENAI_API_KEY", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY"}

const canary = "canary-4f1d9c"

func inertFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"team.yaml": inertTeam, "org.yaml": inertOrg, "cases.yaml": inertCases, "tape.yaml": inertTape} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// start runs this test binary under one of its names.
func start(t *testing.T, dir, name string, args ...string) (out string, code int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var both bytes.Buffer
	cmd := &exec.Cmd{Path: self, Args: append([]string{name}, args...), Dir: dir, Stdout: &both, Stderr: &both,
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir + "/home", "OMA_POLICY=org.yaml"}}
	for _, s := range secrets {
		cmd.Env = append(cmd.Env, s+"="+canary)
	}
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return both.String(), cmd.ProcessState.ExitCode()
}

// N3: what is promised to be inert does the same where no process can be started and no connection opened. The controls
// show that the lock holds: whoever needs one of the two fails under it.
func TestInertVerbsNeedNoProcessAndNoNetwork(t *testing.T) {
	dir := inertFolder(t)
	out, code := start(t, dir, "oma-control")
	if code == noFilter {
		t.Skipf("this kernel lets no process filter its system calls: %s", out)
	}
	if out != "true true true\n" {
		t.Fatalf("under the lock a process, a connection and a socket are refused: %q", out)
	}
	for _, line := range inertCommands {
		t.Run(line, func(t *testing.T) {
			args := strings.Fields(line)
			want, free := start(t, dir, "oma", args...)
			got, held := start(t, dir, "oma-locked", args...)
			if got != want || held != free {
				t.Errorf("ended %d and %d:\n%s\nfree:\n%s", held, free, got, want)
			}
			if free > 1 {
				t.Errorf("ended %d: %s", free, want)
			}
			if strings.Contains(want+got, canary) {
				t.Error("a secret is shown")
			}
		})
	}
	if out, code := start(t, dir, "oma-locked", "init", "new"); code != 0 {
		t.Errorf("init under the lock ended %d: %s", code, out)
	}
	run := []string{"run", "--receipt", "receipt.json", "--fail-on", "denied", "--no-journal", "--agent", "shell", "team.yaml"}
	if out, code := start(t, dir, "oma", run...); !strings.Contains(out, "tool says: worked") {
		t.Errorf("a run that starts a process ended %d:\n%s", code, out)
	}
	if out, code := start(t, dir, "oma-locked", run...); code == 0 || strings.Contains(out, "tool says: worked") {
		t.Errorf("a run that starts a process did so under the lock, and ended %d:\n%s", code, out)
	}
}

// readByInert are the variables that inert verbs may ask for. docs/cli.md has them.
var readByInert = []string{"GITHUB_ACTIONS", "HOME", "OMA_POLICY", "OMA_STATE", "XDG_STATE_HOME"}

// Inert verbs ask the environment for a few names, none of which is a secret's. The whole of it goes through one lookup.
func TestInertVerbsReadNoSecret(t *testing.T) {
	t.Chdir(inertFolder(t))
	for _, line := range inertCommands {
		t.Run(line, func(t *testing.T) {
			var out bytes.Buffer
			var asked []string
			a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &out, now: time.Now, newID: randomID,
				lookup: func(name string) (string, bool) {
					asked = append(asked, name)
					return map[string]string{"OMA_POLICY": "org.yaml", "HOME": "/home/x"}[name], name == "OMA_POLICY" || name == "HOME"
				}}
			if code := a.main(context.Background(), strings.Fields(line)); code > 1 {
				t.Errorf("ended %d: %s", code, &out)
			}
			for _, name := range asked {
				if !slices.Contains(readByInert, name) {
					t.Errorf("%s was read", name)
				}
			}
		})
	}
	// The test sees what is read: a run reads the key.
	var asked []string
	a := &app{stdin: strings.NewReader(""), stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}, now: time.Now, newID: randomID,
		lookup: func(name string) (string, bool) { asked = append(asked, name); return "", false }}
	a.main(context.Background(), []string{"run", "--state", t.TempDir(), "--agent", "reviewer", "team.yaml"})
	if !slices.Contains(asked, "GATEWAY_KEY") {
		t.Errorf("a run read %v, and not its key", asked)
	}
}

const (
	inertTeam = `apiVersion: oma/v1
kind: Team
name: inert
goal: Look.
providers:
  gateway: {kind: openai, baseURL: "https://llm.example.com/v1", apiKey: {env: GATEWAY_KEY}}
  tape: {kind: scripted, cassette: tape.yaml}
defaults: {cwd: .}
governance: {governanceIntent: required, requiredRoles: [shell, reviewer], requiredOrder: [shell, reviewer]}
agents:
  - {name: shell, provider: tape, systemPrompt: You work., tools: [file_read, bash]}
  - {name: reviewer, provider: gateway, model: small, systemPrompt: You review., tools: [file_read], gates: {packs: [read-only]},
    customTools: [own, ask], credentials: {TOKEN: {env: GITHUB_TOKEN}}}
customTools:
  own: {command: [curl, "https://example.com"], credentials: [TOKEN]}
  ask: {http: {url: "https://example.com/", headers: {Authorization: {credential: TOKEN}}}}
gates:
  rules:
    - name: reads
      tools: [file_read]
      when: |
        within(input.path, "private")
      action: warn
      mark: was-read
    - name: no-net
      tools: [bash]
      when: |
        shell.network && "was-read" in marks
      action: deny
      examples: {matches: [{input: {command: curl x}, marks: [was-read]}], ignores: [{input: {command: ls}}]}
`
	inertOrg = `apiVersion: oma/v1
kind: Policy
name: org
rules:
  - name: org-rule
    tools: [bash]
    when: |
      input.command == "never"
    action: deny
`
	inertCases = `apiVersion: oma/v1
kind: PolicyTest
team: team.yaml
cases:
  - {name: c, agentName: shell, toolName: file_read, input: {path: a}, expect: {action: allow}}
`
	inertTape = `apiVersion: oma/v1
kind: Cassette
agents:
  shell:
    - toolCalls: [{id: a, name: bash, input: {command: "echo worked"}}]
      usage: {input: 1, output: 1}
    - expect: {toolResult: {of: a, contains: worked}}
      text: "tool says: worked"
      usage: {input: 1, output: 1}
`
)
