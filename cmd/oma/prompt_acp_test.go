//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/open-multi-agent/oma/spec"
)

const askedTeam = `apiVersion: oma/v1
kind: Team
name: prompt
goal: Write it down.
agents: [{name: coder, cwd: work, backend: {kind: acp, command: acp-steps, args: [../steps], capabilities: [fs]}}]
governance: {governanceIntent: required, requiredRoles: [coder]}
gates:
  rules:
    - {name: a-person, tools: [file_write], when: 'input.path.startsWith("asked")', action: ask, reason: a person decides, mark: asked}
    - {name: never-after, tools: [file_write], when: 'input.path == "after" && "asked" in marks', action: deny, reason: somebody was asked}
    - {name: fetches, tools: [permission], when: 'has(input.command)', action: ask, reason: a person decides}
`

const askedSteps = `{"method":"fs/write_text_file","params":{"path":"asked-1","content":"one\n"}}
{"method":"fs/write_text_file","params":{"path":"after","content":"x"}}
{"method":"fs/write_text_file","params":{"path":"asked-2","content":"two\n"}}
{"method":"session/request_permission","params":{"toolCall":{"toolCallId":"t","title":"fetch it","kind":"execute","rawInput":{"command":"curl -o x https://example.com"}},"options":[{"optionId":"y","kind":"allow_once"},{"optionId":"n","kind":"reject_once"}]}}
`

// Whoever sits at the terminal is asked while the agent waits. What they say is on the receipt with their name, the gate
// counts it again, and the store knows nothing of it.
func TestAskedDuringAPrompt(t *testing.T) {
	m := seat(t, map[string]string{"team.yaml": askedTeam, "steps": askedSteps})
	if shown := m.wait("Run exactly this, as rae? "); !strings.Contains(shown, "asked-1") || !strings.Contains(shown, "a-person") {
		t.Errorf("shown:\n%s", shown)
	}
	m.say("y\n")
	if shown := m.wait("Run exactly this, as rae? "); !strings.Contains(shown, "asked-2") || !strings.Contains(shown, `denied file_write: Tool "file_write" denied by gate`) {
		t.Errorf("shown:\n%s", shown)
	}
	m.say("not twice\n")
	if shown := m.wait("Run exactly this, as rae? "); !strings.Contains(shown, "command   curl -o x https://example.com") || !strings.Contains(shown, "risk ") {
		t.Errorf("shown:\n%s", shown)
	}
	m.say("y\n")
	code, r, _ := m.ends()
	out := m.seen.String()
	if code != 0 || len(r.ApprovalDecisions) != 3 || len(r.PendingApprovals) != 0 {
		t.Fatalf("exit %d: %+v\n%s", code, r.ApprovalDecisions, out)
	}
	for i, want := range []string{spec.ApprovalApproved, spec.ApprovalRejected, spec.ApprovalApproved} {
		if a := r.ApprovalDecisions[i]; a.Decision != want || len(a.Votes) != 1 || a.Votes[0].Reviewer != "rae" || a.Scope != spec.ScopeToolCall {
			t.Errorf("%d: %+v", i, a)
		}
	}
	if d := r.Decisions; len(d) != 4 || d[0].Approval != spec.ApprovalApproved || d[1].Allowed() || d[2].Approval != spec.ApprovalRejected || d[3].ToolName != spec.PermissionTool {
		t.Errorf("%+v", d)
	}
	if !strings.Contains(out, "denied by a person: not twice") {
		t.Errorf("what the agent was told:\n%s", out)
	}
	if b, err := os.ReadFile(filepath.Join(m.cmd.Dir, "work/asked-1")); err != nil || string(b) != "one\n" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := os.Stat(filepath.Join(m.cmd.Dir, "work/asked-2")); err == nil {
		t.Error("it was written although a person had said no")
	}
	gateSays(t, m, true)

	// A person's answer that is another one in the log is found out.
	logs, err := filepath.Glob(m.cmd.Dir + "-state/runs/*/events.jsonl")
	if err != nil || len(logs) != 1 {
		t.Fatal(logs, err)
	}
	log, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(logs[0], bytes.Replace(log, []byte(`"decision":"reject"`), []byte(`"decision":"approve"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	gateSays(t, m, false)
}

// gateSays holds the receipt of a run against its team and its log.
func gateSays(t *testing.T, m *terminal, pass bool) {
	t.Helper()
	cmd := exec.Command(m.cmd.Path, "gate", "--state", m.cmd.Dir+"-state", "--team", "team.yaml", "../receipt.json")
	cmd.Dir, cmd.Env = m.cmd.Dir, m.cmd.Env
	if out, err := cmd.CombinedOutput(); (err == nil) != pass {
		t.Errorf("the gate: %v\n%s", err, out)
	}
}

// Where reviewers have keys, or more than one has to approve, nobody's word at the terminal is enough, and nobody is asked.
func TestNobodyHereIsEnough(t *testing.T) {
	_, public := pair(t, "rae")
	for name, approvals := range map[string]string{
		"two have to": "approvals: {quorum: 2}\n",
		"another one": "approvals: {reviewers: [{id: bob}]}\n",
		"a key's":     "approvals: {reviewers: [{id: rae, publicKey: " + strconv.Quote(public) + "}]}\n",
	} {
		m := seat(t, map[string]string{"team.yaml": askedTeam + approvals, "steps": askedSteps})
		code, r, _ := m.ends()
		out := m.seen.String()
		if code != 0 || len(r.ApprovalDecisions) != 0 || strings.Contains(out, "Run exactly this") || len(r.Decisions) != 4 || r.Decisions[0].GateOutcome != "error" {
			t.Errorf("%s: exit %d: %+v\n%s", name, code, r.Decisions, out)
		}
	}
}
