//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

// killAt is a file in the folder a test starts the program in. It says after how many events the process is gone. A
// variable would not do: where bash is granted the program may start itself again, without most of them.
const killAt = "kill-at"

// killed is the program in a process that is killed as soon as it has shown so many events.
func killed() {
	text, err := os.ReadFile(killAt)
	if err != nil {
		panic(err)
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		panic(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	real := os.Stdout
	os.Stdout = w
	go func() {
		var seen bytes.Buffer
		for {
			b := make([]byte, 1)
			if _, err := r.Read(b); err != nil {
				return
			}
			if seen.Write(b); b[0] != '\n' {
				continue
			}
			io.Copy(real, &seen)
			if n--; n < 0 { // the first line is no event
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		}
	}()
	main()
}

const crashTeam = `apiVersion: oma/v1
kind: Team
name: crash
goal: Write it down.
providers: {demo: {kind: scripted, cassette: tape.yaml}}
defaults: {provider: demo, cwd: work}
agents:
  - {name: first, systemPrompt: p, tools: [bash, file_read]}
  - {name: second, systemPrompt: p, tools: [bash, file_read]}
governance: {governanceIntent: required, requiredRoles: [first, second], requiredOrder: [first, second]}
gates:
  rules:
    - {name: no-rm, tools: [bash], when: 'shell.risk == "high"', action: deny, reason: nothing is removed}
    - {name: seen, tools: [file_read], when: 'true', action: warn, mark: seen}
`

// crashTape lets each agent write a line of its own three times, read between and try what is denied.
func crashTape() string {
	var b strings.Builder
	b.WriteString("apiVersion: oma/v1\nkind: Cassette\nagents:\n")
	for _, agent := range []string{"first", "second"} {
		fmt.Fprintf(&b, "  %s:\n", agent)
		for turn := range 3 {
			fmt.Fprintf(&b, "    - toolCalls: [{id: a%[1]d, name: bash, input: {command: 'echo %[2]s-%[1]d >> log'}}, {id: b%[1]d, name: file_read, input: {path: note.txt}}, "+
				"{id: c%[1]d, name: bash, input: {command: rm note.txt}}]\n      usage: {input: 100, output: 10}\n", turn, agent)
		}
		b.WriteString("    - {text: done, usage: {input: 100, output: 10}}\n")
	}
	return b.String()
}

// attempt starts a command as a user would, and gives what it showed and how it ended.
func attempt(t *testing.T, dir, program string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir+"-home", "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func crashFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "team")
	if err := os.MkdirAll(filepath.Join(dir, "work"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"team.yaml": crashTeam, "tape.yaml": crashTape(), "work/note.txt": "a note\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// receiptFacts is what a receipt says whenever it was written, and in however many attempts.
func receiptFacts(t *testing.T, path string) map[string]any {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var r spec.Receipt
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	facts := map[string]any{"tokens": r.TotalTokens, "denied": r.Denied, "rules": r.Rules, "conclusion": r.GovernanceConclusion, "order": r.ExecutionOrder}
	for _, task := range r.Tasks {
		facts[task.ID] = fmt.Sprint(task.Status, task.StopReason, task.Turns, task.ModelCalls, task.Tokens, task.ToolCalls, task.OutputDigest)
	}
	return facts
}

// CK-01, CK-02: a run whose process is killed at any event goes on by itself. What has a result does not happen again,
// what may have happened happens again only if a person has looked and says so, and the receipt is the one of a run that
// nobody killed.
func TestKilledProcessGoesOn(t *testing.T) {
	oma, err := exec.LookPath("oma")
	if err != nil {
		t.Fatal(err)
	}
	plain := crashFolder(t)
	out, code := attempt(t, plain, oma, "run", "--state", plain+"-state", "--receipt", plain+"-receipt.json", "-o", "ndjson", "-q", "team.yaml")
	if code != 0 {
		t.Fatalf("ends %d\n%s", code, out)
	}
	want, events := receiptFacts(t, plain+"-receipt.json"), strings.Count(out, "\n")-2
	if events < 50 {
		t.Fatalf("%d events\n%s", events, out)
	}
	same, again, unsure := 0, 0, 0
	step, n := 1, rounds(t)
	if n == 0 { // a few: with the race detector every process takes a second to start
		step, n = 9, 1
	}
	for i := 0; i < (events-3)*n; i += step {
		k := 3 + i%(events-3)
		dir := crashFolder(t)
		if err := os.WriteFile(filepath.Join(dir, killAt), []byte(strconv.Itoa(k)), 0o600); err != nil {
			t.Fatal(err)
		}
		out, code := attempt(t, dir, "oma-killed", "run", "--state", dir+"-state", "--receipt", dir+"-receipt.json", "-o", "ndjson", "-q", "team.yaml")
		if code == 0 { // it was over before it was noticed
			continue
		}
		if code != -1 {
			t.Fatalf("at event %d: ends %d, and was to be killed\n%s", k, code, out)
		}
		runs, err := os.ReadDir(filepath.Join(dir+"-state", "runs"))
		if err != nil || len(runs) != 1 {
			t.Fatal(runs, err)
		}
		out, code = attempt(t, dir, oma, "resume", "--state", dir+"-state", "--receipt", dir+"-receipt.json", "-o", "ndjson", runs[0].Name())
		asked := ""
		if code == runtime.ExitSuspended {
			asked = look(t, dir, oma)
			out, code = attempt(t, dir, oma, "resume", "--state", dir+"-state", "--receipt", dir+"-receipt.json", "-o", "ndjson", runs[0].Name())
		}
		if code != 0 && !(code == 2 && strings.Contains(out, "the run has ended") && exists(dir+"-receipt.json")) {
			t.Fatalf("at event %d: resume ends %d\n%s", k, code, out)
		}
		written, err := os.ReadFile(filepath.Join(dir, "work", "log"))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Fields(string(written))
		if seen := map[string]bool{}; true {
			for _, l := range lines {
				if seen[l] {
					t.Fatalf("at event %d: %s was written twice", k, l)
				}
				seen[l] = true
			}
		}
		out2, code := attempt(t, dir, oma, "gate", "--team", "team.yaml", "--state", dir+"-state", "-o", "json", dir+"-receipt.json")
		if code != 0 {
			t.Fatalf("at event %d: the gate ends %d\n%s", k, code, out2)
		}
		if asked == "approve" {
			again++
		}
		if asked == "reject" || strings.Contains(out, `"repeated":`) {
			unsure++
			continue
		}
		if len(lines) != 6 {
			t.Fatalf("at event %d: %d lines: %v", k, len(lines), lines)
		}
		if diff := cmp.Diff(want, receiptFacts(t, dir+"-receipt.json")); diff != "" {
			t.Fatalf("at event %d:\n%s", k, diff)
		}
		same++
	}
	t.Logf("%d events: %d the same, %d of them with a call that a person let be made again, %d with something that had happened", events, same, again, unsure)
	if same < 5 && step == 1 {
		t.Errorf("only %d were compared", same)
	}
}

// look is a person who was asked whether a call is to be made again: they see whether it has written its line, and say so.
func look(t *testing.T, dir, oma string) string {
	t.Helper()
	out, _ := attempt(t, dir, oma, "approvals", "--state", dir+"-state", "-o", "json")
	var waiting struct {
		Approvals []struct {
			ID      string               `json:"id"`
			Content spec.ApprovalContent `json:"content"`
		} `json:"approvals"`
	}
	if err := json.Unmarshal([]byte(out), &waiting); err != nil || len(waiting.Approvals) != 1 || !waiting.Approvals[0].Content.Again {
		t.Fatalf("%v: nobody is asked about the one call in flight:\n%s", err, out)
	}
	var input struct{ Command string }
	if err := json.Unmarshal(waiting.Approvals[0].Content.Input, &input); err != nil {
		t.Fatal(err)
	}
	verdict := "approve"
	if log, _ := os.ReadFile(filepath.Join(dir, "work", "log")); strings.Contains(string(log), strings.Fields(input.Command)[1]) { // there may be none yet
		verdict = "reject"
	}
	if out, code := attempt(t, dir, oma, verdict, "--state", dir+"-state", "--reviewer", "somebody", waiting.Approvals[0].ID); code != 0 {
		t.Fatalf("%s ends %d\n%s", verdict, code, out)
	}
	return verdict
}

// rounds is how often a process is killed at each event; it never dies at quite the same moment. make crash asks for more,
// and make race for none: it kills at a few events alone.
func rounds(t *testing.T) int {
	text, set := os.LookupEnv("CRASH_ROUNDS")
	if !set {
		return 3
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("CRASH_ROUNDS=%s is no number of rounds", text)
	}
	return n
}
