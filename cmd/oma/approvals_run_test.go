package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/open-multi-agent/oma/runtime/journal"
	"github.com/open-multi-agent/oma/spec"
)

const waitingTeam = `apiVersion: oma/v1
kind: Team
name: crew
goal: Write it down.
providers: {demo: {kind: scripted, cassette: tape.yaml}}
agents: [{name: writer, provider: demo, systemPrompt: p, tools: [bash], cwd: work}]
gates: {rules: [{name: a-person, tools: [bash], action: ask, when: 'shell.risk != "safe"'}]}
approvals: {expires: 1h}
`

const waitingTape = `apiVersion: oma/v1
kind: Cassette
agents:
  writer:
    - toolCalls: [{id: c1, name: bash, input: {command: echo one >> log}}]
    - {expect: {toolResult: {of: c1, isError: true, contains: nobody decided in time}}, text: it was not written}
`

// newCrew is an office where nothing ran yet, and the team that will.
func newCrew(t *testing.T) (o *office, team string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"team.yaml": waitingTeam, "tape.yaml": waitingTape, "work/empty": ""} {
		if err := writeFile(filepath.Join(dir, name), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"PATH": os.Getenv("PATH"), "HOME": t.TempDir()}
	return &office{t: t, state: t.TempDir(), env: env, now: askedAt, login: "tess"}, filepath.Join(dir, "team.yaml")
}

// receipt reads what the run left.
func (o *office) receipt() (r spec.Receipt) {
	o.t.Helper()
	b, err := os.ReadFile(filepath.Join(o.state, "runs", "run_1", "receipt.json"))
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		o.t.Fatal(err)
	}
	return r
}

// A request that nobody decided in time takes no decision any more, and the run goes on as after a refusal. It is the clock
// of the machine with the store that counts, and the last moment is out of time.
func TestExpiredRequest(t *testing.T) {
	o, team := newCrew(t)
	o.ends(6, "waits for a person", "run", team)
	id := o.receipt().PendingApprovals[0].RequestID
	request, decision := filepath.Join(t.TempDir(), "request.json"), filepath.Join(t.TempDir(), "decision.json")
	o.ends(0, "expires   2026-01-02T04:00:00Z", "approvals", "show", id)
	o.ends(0, "", "approvals", "export", id, "--out", request)
	o.away(0, "", "approve", request, "--out", decision)

	o.now = askedAt.Add(time.Hour)
	o.ends(7, "expired at 2026-01-02T04:00:00Z [APPROVAL_STALE_DECISION]", "approve", id)
	o.ends(7, "expired at", "reject", id)
	o.ends(7, "expired at", "approvals", "import", decision)
	o.ends(7, "expired at", "approvals", "export", id)
	o.away(7, "expired at", "approve", request)
	o.ends(0, "nothing waits for a person", "approvals")
	o.ends(0, "expired      "+id, "approvals", "--all")
	if out := o.ends(0, "1 denied", "resume", "run_1"); out != "it was not written\n" {
		t.Error(out)
	}
	r := o.receipt()
	if got := r.ApprovalDecisions[0]; got.Decision != spec.ApprovalExpired || got.Votes != nil || len(r.PendingApprovals) > 0 {
		t.Errorf("%+v", r.ApprovalDecisions)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(team), "work", "log")); !os.IsNotExist(err) {
		t.Errorf("it was written: %v", err)
	}
}

// CI-02: a job, and whoever says --no-input, is asked nothing, although somebody could answer.
func TestUnattended(t *testing.T) {
	for name, c := range map[string]struct {
		env, flag       string
		terminal, asked bool
	}{"a job": {"CI", "--strict", true, false}, "told so": {"", "--no-input", true, false}, "no terminal": {"", "--strict", false, false},
		"somebody is there": {"", "--strict", true, true}} {
		t.Run(name, func(t *testing.T) {
			o, team := newCrew(t)
			o.env[c.env], o.stdin, o.terminal = "true", "y\n", c.terminal
			_, errs, code := o.oma("run", "--state", o.state, c.flag, team)
			if (code == 6) == c.asked || strings.Contains(errs, "Run exactly this") != c.asked || strings.Contains(errs, "next: oma resume") == c.asked {
				t.Errorf("ends %d\n%s", code, errs)
			}
			if waits := len(o.receipt().PendingApprovals); (waits == 0) != c.asked {
				t.Errorf("%d wait", waits)
			}
		})
	}
}

// A run that has ended waits for nobody.
func TestEndedRunIsNotDecided(t *testing.T) {
	o := newOffice(t, "ann", nil)
	r := o.ask("make release", time.Time{})
	s := o.store()
	l, err := s.Continue(t.Context(), "run_1")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.SetStatus(t.Context(), journal.StatusEnded, 1, o.now), l.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	o.ends(7, "is of run run_1, which has ended", "approve", r.ID, "--reviewer", "bob")
	if out := o.ends(0, "", "approvals"); out != "" {
		t.Error(out)
	}
	o.ends(0, "pending: 0 of 1 approval, and the run has ended", "approvals", "show", r.ID)
}

// A request is listed and found in whichever folder of this user it is, as a run is. One that cannot be read keeps the
// others from nothing.
func TestRequestIsFoundBesideTheOwnFolder(t *testing.T) {
	o := newOffice(t, "ann", nil)
	r := o.ask("make release", time.Time{})
	home := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(home, "oma", "broken", "runs"), 0o700),
		os.WriteFile(filepath.Join(home, "oma", "broken", "oma.db"), []byte("no database"), 0o600),
		os.Rename(o.state, filepath.Join(home, "oma", "elsewhere"))); err != nil {
		t.Fatal(err)
	}
	o.env["XDG_STATE_HOME"] = home
	o.away(0, "next: oma approvals show "+r.ID, "approvals")
	o.away(0, "oma: what waits in "+filepath.Join(home, "oma", "broken")+" cannot be told: ", "approvals")
	o.away(0, "next: oma resume run_1", "approve", r.ID, "--reviewer", "bob")
	o.away(0, "nothing waits for a person; --all lists what was decided", "approvals")
	o.away(2, "APPROVAL_NOT_FOUND", "approvals", "show", "apr_000000000", "--state", filepath.Join(home, "oma", "elsewhere"))
	o.away(2, "APPROVAL_NOT_FOUND]; oma approvals lists what waits", "approvals", "show", "apr_000000000")
	o.away(2, "run_1 is a run: oma approvals --run run_1 lists what it asks", "approve", "run_1")
	o.env["XDG_STATE_HOME"] = t.TempDir()
	o.away(2, "no runs are kept in", "approvals")
}
