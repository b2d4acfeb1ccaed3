//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/open-multi-agent/oma/spec"
)

const promptTeam = `apiVersion: oma/v1
kind: Team
name: prompt
goal: Write it down.
providers: {demo: {kind: scripted, cassette: tape.yaml}}
agents:
  - {name: writer, provider: demo, systemPrompt: p, tools: [bash], cwd: work}
gates:
  rules:
    - {name: a-person, when: 'input.command.contains("log")', action: ask, reason: a person decides}
    - {name: somebody-else, when: 'input.command.contains("later")', action: suspend, reason: somebody else decides}
`

// terminal is a program at a pseudo-terminal, and whoever sits there.
type terminal struct {
	t    *testing.T
	pty  *os.File
	cmd  *exec.Cmd
	seen strings.Builder
	last int // what was seen up to here was waited for
}

// sit starts a run of the team with a model that asks for the commands, all in one turn, and then says that it is done.
func sit(t *testing.T, commands ...string) *terminal {
	t.Helper()
	tape := "apiVersion: oma/v1\nkind: Cassette\nagents:\n  writer:\n    - toolCalls:\n"
	for i, c := range commands {
		tape += fmt.Sprintf("        - {id: c%d, name: bash, input: {command: %s}}\n", i, strconv.QuoteToASCII(c))
	}
	tape += "    - text: done\n"
	return seat(t, map[string]string{"team.yaml": promptTeam, "tape.yaml": tape})
}

// seat starts a run of the team among the files.
func seat(t *testing.T, files map[string]string) *terminal {
	t.Helper()
	oma, err := exec.LookPath("oma")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "team")
	if err := os.MkdirAll(filepath.Join(dir, "work"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(oma, "run", "--state", dir+"-state", "--receipt", "../receipt.json", "--author", "amy", "team.yaml")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir + "-home", "NO_COLOR=1", "TERM=xterm", "OMA_REVIEWER=rae"}
	p, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 200})
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { p.Close(); cmd.Process.Kill() })
	if err := p.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Log("a program that hangs is not noticed here:", err)
	}
	return &terminal{t: t, pty: p, cmd: cmd}
}

// wait reads on until a text is shown, and gives what was shown before it.
func (m *terminal) wait(text string) string {
	m.t.Helper()
	b := make([]byte, 4096)
	for {
		shown := m.seen.String()[m.last:]
		if before, _, found := strings.Cut(shown, text); found {
			m.last += len(before) + len(text)
			return before
		}
		n, err := m.pty.Read(b)
		m.seen.Write(b[:n])
		if n == 0 && err != nil {
			m.t.Fatalf("%q never came: %v\n%s", text, err, m.seen.String())
		}
	}
}

func (m *terminal) say(line string) {
	m.t.Helper()
	if _, err := m.pty.WriteString(line); err != nil {
		m.t.Fatal(err)
	}
}

// ends reads to the end, and gives the exit code, the receipt, and what was written.
func (m *terminal) ends() (int, spec.Receipt, string) {
	m.t.Helper()
	b := make([]byte, 4096)
	for {
		n, err := m.pty.Read(b)
		m.seen.Write(b[:n])
		if err != nil { // at the end a pseudo-terminal gives EIO
			break
		}
	}
	var exit *exec.ExitError
	if err := m.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		m.t.Fatal(err)
	}
	var r spec.Receipt
	raw, err := os.ReadFile(filepath.Join(m.cmd.Dir, "../receipt.json"))
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		m.t.Fatalf("%v\n%s", err, m.seen.String())
	}
	log, err := os.ReadFile(filepath.Join(m.cmd.Dir, "work/log"))
	if err != nil && !os.IsNotExist(err) {
		m.t.Fatal(err)
	}
	return m.cmd.ProcessState.ExitCode(), r, string(log)
}

const promptText = "Run exactly this, as rae? y, n, or why not: "

// Whoever sits at the terminal sees the exact call, which rules ask, and what the shell would do; what they type is on the
// receipt, and is nobody's signature.
func TestPrompt(t *testing.T) {
	for name, c := range map[string]struct {
		typed, decision, reason, log string
	}{
		"yes":         {"y\n", spec.ApprovalApproved, "", "one\n"},
		"YES":         {"  YES \n", spec.ApprovalApproved, "", "one\n"},
		"no":          {"n\n", spec.ApprovalRejected, "", ""},
		"why not":     {"yes, but not on a Friday\n", spec.ApprovalRejected, "yes, but not on a Friday", ""},
		"nothing yet": {"\n\ny\n", spec.ApprovalApproved, "", "one\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := sit(t, "echo one >> log")
			shown := m.wait(promptText)
			for _, want := range []string{"echo one >> log", "a-person", "a person decides", "bash", "writer"} {
				if !strings.Contains(shown, want) {
					t.Errorf("%q is not shown:\n%s", want, shown)
				}
			}
			m.say(c.typed)
			code, r, log := m.ends()
			if code != 0 || r.Status.Code != "ok" || log != c.log || len(r.ApprovalDecisions) != 1 {
				t.Fatalf("exit %d, %+v, log %q, %+v\n%s", code, r.Status, log, r.ApprovalDecisions, m.seen.String())
			}
			d := r.ApprovalDecisions[0]
			if d.Decision != c.decision || d.Authenticated || len(d.Votes) != 1 || d.Votes[0].Reviewer != "rae" || d.Votes[0].Reason != c.reason {
				t.Errorf("%+v", d)
			}
			if r.Author != "amy" {
				t.Errorf("author %q", r.Author)
			}
		})
	}
}

// What was typed before the question could be seen answers nothing.
func TestPromptTypedAhead(t *testing.T) {
	m := sit(t, "sleep 1; true", "echo one >> log", "echo two >> log")
	m.say("y\ny\ny\n")
	m.wait(promptText)
	m.say("not this\n")
	m.wait(promptText)
	m.say("y\n")
	code, r, log := m.ends()
	if code != 0 || log != "two\n" || r.ApprovalDecisions[0].Votes[0].Reason != "not this" {
		t.Errorf("exit %d, log %q, %+v\n%s", code, log, r.ApprovalDecisions, m.seen.String())
	}
}

// An end of input and an interruption are no answer: the request waits, and nothing ran.
func TestPromptWithoutAnswer(t *testing.T) {
	for name, typed := range map[string]string{"end of input": "\x04", "Ctrl-C": "\x03"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := sit(t, "echo one >> log")
			m.wait(promptText)
			m.say(typed)
			code, r, log := m.ends()
			if code != 6 || r.Status.Code != "suspended" || log != "" || r.Denied != 0 || len(r.ApprovalDecisions) != 0 || len(r.PendingApprovals) != 1 {
				t.Errorf("exit %d, %+v, log %q, %d denied\n%s", code, r.Status, log, r.Denied, m.seen.String())
			}
			if !strings.Contains(m.seen.String(), "next: oma resume --state ") {
				t.Error(m.seen.String())
			}
		})
	}
}

// A rule that wants somebody else asks nobody here.
func TestPromptSuspendAsksNobody(t *testing.T) {
	m := sit(t, "echo later")
	if code, r, _ := m.ends(); code != 6 || len(r.PendingApprovals) != 1 || strings.Contains(m.seen.String(), promptText) {
		t.Errorf("exit %d\n%s", code, m.seen.String())
	}
}

// No byte of a call reaches the terminal that could move its cursor or repaint the question.
func TestPromptEscapes(t *testing.T) {
	m := sit(t, "echo log # \x1b[2J\x1b[1;1H\r\u202e all is well \u2028 \u0085 \u200b")
	shown := m.wait(promptText)
	for _, bad := range []string{"\x1b[2J", "\x1b[1;1H", "\u202e", "\u2028", "\u0085", "\u200b"} {
		if strings.Contains(shown, bad) {
			t.Errorf("%q is shown as it is", bad)
		}
	}
	m.say("n\n")
	m.ends()
}

// Somebody else decides while the question stands there. Their word was first, and whoever sits here is told.
func TestPromptTooLate(t *testing.T) {
	m := sit(t, "echo one >> log")
	m.wait(promptText)
	state := m.cmd.Dir + "-state"
	other := func(args ...string) string {
		t.Helper()
		c := exec.Command(m.cmd.Path, append(args, "--state", state)...)
		c.Env = []string{"HOME=" + m.cmd.Dir + "-home"}
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return string(out)
	}
	var list approvalList
	if err := json.Unmarshal([]byte(other("approvals", "-o", "json")), &list); err != nil || len(list.Approvals) != 1 {
		t.Fatalf("%v, %+v", err, list)
	}
	other("reject", list.Approvals[0].ID, "--reviewer", "bob", "--reason", "not here")
	m.say("y\n")
	code, r, log := m.ends()
	if code != 0 || log != "" || r.ApprovalDecisions[0].Decision != spec.ApprovalRejected || r.ApprovalDecisions[0].Votes[0].Reviewer != "bob" {
		t.Errorf("exit %d, log %q, %+v", code, log, r.ApprovalDecisions)
	}
	if !strings.Contains(m.seen.String(), `was decided already: reject by "bob" [APPROVAL_CONFLICT]`) {
		t.Error(m.seen.String())
	}
}
