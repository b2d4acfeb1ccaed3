package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/runtime/journal"
	"github.com/open-multi-agent/oma/spec"
)

// crewOf is a crew whose approvals are these, and whose writer wants to run one command, with somebody at the terminal.
func crewOf(t *testing.T, approvals, command string) (o *office, team string) {
	t.Helper()
	o, team = newCrew(t)
	text := strings.Replace(waitingTeam, "{expires: 1h}", approvals, 1)
	tape := "apiVersion: oma/v1\nkind: Cassette\nagents:\n  writer:\n    - toolCalls: [{id: c1, name: bash, input: {command: " +
		strconv.QuoteToASCII(command) + "}}]\n    - text: done\n"
	if err := errors.Join(os.WriteFile(team, []byte(text), 0o600), os.WriteFile(filepath.Join(filepath.Dir(team), "tape.yaml"), []byte(tape), 0o600)); err != nil {
		t.Fatal(err)
	}
	o.terminal = true
	return o, team
}

// written is what the writer has written.
func written(t *testing.T, team string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(filepath.Dir(team), "work", "log"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b)
}

// N10: a run that keeps nothing cannot wait for others, so nobody is asked for a word that would not be enough.
func TestN10OneOfTwoWithoutStore(t *testing.T) {
	o, team := crewOf(t, "{quorum: 2}", "echo one >> log")
	o.stdin = "y\n"
	_, errs, code := o.oma("run", "--state", o.state, "--no-journal", team)
	r := o.receipt()
	if code == 6 || r.Status.Code == spec.StatusSuspended || strings.Contains(errs, promptBegins) || written(t, team) != "" {
		t.Fatalf("ends %d, %s\n%s", code, r.Status.Code, errs)
	}
	if d := r.Decisions[0]; d.GateOutcome != "error" || !strings.Contains(d.Reason, "[cannot-suspend]") || len(r.PendingApprovals) > 0 {
		t.Errorf("%+v", d)
	}
	o, team = crewOf(t, "{quorum: 1}", "echo one >> log")
	o.stdin = "y\n"
	if _, errs, code := o.oma("run", "--state", o.state, "--no-journal", team); code != 0 || written(t, team) != "one\n" {
		t.Errorf("one is enough: ends %d\n%s", code, errs)
	}
}

const promptBegins = "Run exactly this"

// N16: what is asked is shown whole, and what cannot be is not asked: the middle of it would be approved unread.
func TestN16AskedWholeOrNotAtAll(t *testing.T) {
	var pads, lines strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&pads, "\n# pad %d %s", i, strings.Repeat("x", 44))
	}
	for i := range 5000 {
		fmt.Fprintf(&lines, "\n# %d", i)
	}
	for name, c := range map[string]struct {
		command string
		flags   []string
		asked   bool
		code    int
	}{
		"a few screens":    {"echo one >> log" + pads.String(), nil, true, 0},
		"too long":         {"echo one >> log\n#" + strings.Repeat("\u200b", 30<<10), nil, false, 6},
		"too many lines":   {"echo one >> log" + lines.String(), nil, false, 6},
		"nowhere to wait":  {"echo one >> log" + lines.String(), []string{"--no-journal"}, false, 0},
		"what fits at all": {"echo one >> log", nil, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			o, team := crewOf(t, "{expires: 1h}", c.command)
			o.stdin = "y\n"
			_, errs, code := o.oma(append(append([]string{"run", "--state", o.state}, c.flags...), team)...)
			if code != c.code || strings.Contains(errs, promptBegins) != c.asked || (written(t, team) == "one\n") != c.asked {
				t.Fatalf("ends %d\n%.2000s", code, errs)
			}
			if !c.asked && !strings.Contains(errs, "more than can be shown here: over 256 KiB or 4000 lines") {
				t.Errorf("%.2000s", errs)
			}
			shown, _, _ := strings.Cut(errs, promptBegins)
			for line := range strings.Lines(c.command) {
				if c.asked && !strings.Contains(shown, strings.TrimSpace(line)) {
					t.Fatalf("%q is not shown", line)
				}
			}
			if tall := len(c.command) > 1000; c.asked && tall && !strings.Contains(shown, " lines are above, more than the screen has: scroll up") {
				t.Errorf("%.2000s", shown)
			}
			if c.flags != nil && o.receipt().Decisions[0].GateOutcome != "error" {
				t.Errorf("%+v", o.receipt().Decisions[0])
			}
		})
	}
}

// Whoever has said something is not asked again when the run goes on: it would not count.
func TestAskedOnce(t *testing.T) {
	o, team := crewOf(t, "{quorum: 2}", "echo one >> log")
	o.stdin = "y\n"
	o.ends(6, "1 of 2 approvals", "run", team)
	o.stdin = "n\n"
	if _, errs, code := o.oma("resume", "--state", o.state, "run_1"); code != 6 || strings.Contains(errs, promptBegins) {
		t.Errorf("ends %d\n%s", code, errs)
	}
	o.env["OMA_REVIEWER"], o.stdin = "TESS", "n\n"
	if _, errs, code := o.oma("resume", "--state", o.state, "run_1"); code != 6 || strings.Contains(errs, promptBegins) {
		t.Errorf("another spelling: ends %d\n%s", code, errs)
	}
	o.env["OMA_REVIEWER"], o.stdin = "bob", "y\n"
	o.ends(0, promptBegins+", as bob?", "resume", "run_1")
	if d := o.receipt().ApprovalDecisions[0]; written(t, team) != "one\n" || d.Decision != spec.ApprovalApproved || len(d.Votes) != 2 {
		t.Errorf("%+v", d)
	}
}

// A reason is text, and not more than a decision can hold.
func TestTypedReason(t *testing.T) {
	long := strings.Repeat("x", maxReasonBytes)
	for name, c := range map[string]struct{ typed, decision, reason, says string }{
		"no text":                {"caf\xe9 is closed\n", spec.ApprovalRejected, "caf\ufffd is closed", promptBegins},
		"too long":               {long + "x\nnot now\n", spec.ApprovalRejected, "not now", "the reason is longer than 16 KiB, and nothing is decided"},
		"too long, and then yes": {long + "x\ny\n", spec.ApprovalApproved, "", "the reason is longer than 16 KiB, and nothing is decided"},
		"all of it":              {long + "\n", spec.ApprovalRejected, long, promptBegins},
	} {
		t.Run(name, func(t *testing.T) {
			o, team := crewOf(t, "{expires: 1h}", "echo one >> log")
			o.stdin = c.typed
			o.ends(0, c.says, "run", team)
			d := o.receipt().ApprovalDecisions[0]
			if d.Decision != c.decision || d.Votes[0].Reason != c.reason || (written(t, team) != "") != (c.decision == spec.ApprovalApproved) {
				t.Errorf("%.300v", d)
			}
		})
	}
}

// N2: a row under a reviewer's name that does not count keeps them from nothing.
func TestN2ForgedRowSilencesNobody(t *testing.T) {
	key, public := pair(t, "bob")
	for name, decide := range map[string]func(o *office, id string){
		"here": func(o *office, id string) {
			o.ends(0, "approved", "approve", id, "--reviewer", "bob", "--key", key)
		},
		"elsewhere": func(o *office, id string) {
			request, decision := filepath.Join(t.TempDir(), "request.json"), filepath.Join(t.TempDir(), "decision.json")
			o.ends(0, "", "approvals", "export", id, "--out", request)
			o.away(0, "", "approve", request, "--reviewer", "bob", "--key", key, "--out", decision)
			o.ends(0, "approved", "approvals", "import", decision)
			o.ends(0, "approved", "approvals", "import", decision)
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t, "ann", &spec.PlanApprovals{Quorum: 1, Reviewers: []spec.Reviewer{{ID: "bob", PublicKey: public}}})
			r := o.ask("make release", time.Time{})
			s := o.store()
			forged := spec.ApprovalVote{Verdict: spec.VerdictReject, Reviewer: "bob"}
			if err := errors.Join(s.Decide(t.Context(), r.ID, r.RequestHash, forged, nil), s.Close()); err != nil {
				t.Fatal(err)
			}
			o.ends(0, "next: oma approve --state "+o.state+" "+r.ID+" --reviewer bob --key FILE", "approvals", "show", r.ID)
			decide(o, r.ID)
			o.ends(7, `was decided already: approved, at last by "bob"`, "reject", r.ID, "--reviewer", "bob", "--key", key)
			if got := o.saved(r.ID).Decisions; len(got) != 2 || got[1].Signature == nil {
				t.Errorf("%+v", got)
			}
		})
	}
}

// putSubject puts the plan, or a task, before people.
func (o *office) putSubject(scope, boundary, subject string) spec.ApprovalRequest {
	o.t.Helper()
	content, err := json.Marshal(spec.ApprovalContent{Kind: scope, Plan: "sha256:p", Subject: json.RawMessage(subject)})
	if err != nil {
		o.t.Fatal(err)
	}
	r, err := policies.NewApproval("run_1", scope, boundary, content)
	if err != nil {
		o.t.Fatal(err)
	}
	s := o.store()
	if err := errors.Join(s.Ask(o.t.Context(), r), s.Close()); err != nil {
		o.t.Fatal(err)
	}
	return r
}

// A plan and a task can be read, and nothing in them acts on the terminal or passes for another line.
func TestSubjectIsShown(t *testing.T) {
	o := newOffice(t, "ann", nil)
	for name, c := range map[string]struct {
		scope, subject string
		want           []string
	}{
		"plan": {spec.ScopePlan, `{"goal":"Ship it.\nagents    none\u001b[2J","mode":"governance","flags":["consequential-no-independence"],"consequential":true,
			"budgets":{"maxTokenBudget":5000,"maxCostBudget":0.5,"maxDurationMs":60000},
			"agents":[{"name":"reader","provider":"demo","model":"","tools":[]},{"name":"worker","provider":"demo","model":"small","tools":["bash","file_write"]}],
			"tasks":[{"id":"t1","title":"Read","assignee":"reader","role":"reader","dependsOn":[],"consequential":false},
				{"id":"t2","title":"Wr\u0456te\n  3       t3","assignee":"worker","role":"","dependsOn":["t1"],"consequential":true}]}`,
			[]string{"goal      Ship it.\n          agents    none\\u{1b}[2J\n", "mode      governance\n", "flags     consequential-no-independence\n",
				"ceilings  5000 tokens, 0.5 dollars, 60000 ms\n", "agents    2\n", "  1       reader; demo; tools: none\n",
				"  2       worker; small of demo; tools: bash, file_write\n", "tasks     2\n", "  1       t1: Read; reader, role reader\n",
				"  2       t2: Wr⟦і⟧te\\u{a}  3       t3; worker, consequential; after t1\n"}},
		"task": {spec.ScopeDispatch, `{"id":"t2","title":"Write","assignee":"worker","role":"writer","dependsOn":["t0","t1"],"consequential":true,
			"description":"Write one file.\nWith care\u202e.","tools":["file_write"],"provider":"demo","model":"small"}`,
			[]string{"title     Write\n", "by        worker, role writer, consequential\n", "after     t0, t1\n", "tools     file_write\n",
				"model     small of demo\n", "does      Write one file.\n          With care⟦\\u{202e}⟧.\n"}},
		"neither": {spec.ScopePlan, `{"goal":1}`, []string{`"subject":{"goal":1}`}},
	} {
		t.Run(name, func(t *testing.T) {
			shown := o.ends(0, "", "approvals", "show", o.putSubject(c.scope, name, c.subject).ID)
			for _, want := range c.want {
				if !strings.Contains(shown, want) {
					t.Errorf("%q is not shown:\n%s", want, shown)
				}
			}
		})
	}
}

// What is too long to be shown at once can be shown whole, and nobody is led to decide before.
func TestShowAll(t *testing.T) {
	o := newOffice(t, "ann", nil)
	r := o.ask("make release #"+strings.Repeat("x", 50<<10)+"the end", time.Time{})
	if _, errs, _ := o.oma("approvals", "show", "--state", o.state, r.ID); errs != "next: oma approvals show --all --state "+o.state+" "+r.ID+" | less\n" {
		t.Error(errs)
	}
	shown := o.ends(0, "next: oma approve", "approvals", "show", "--all", r.ID)
	if n := strings.Count(shown, strings.Repeat("x", 50<<10)); n != 2 {
		t.Errorf("it is shown %d times", n)
	}
}

// A run that nobody goes on with can be removed, with what it asks.
func TestPruneSuspended(t *testing.T) {
	o, team := newCrew(t)
	o.ends(6, "waits for a person", "run", team)
	id := o.receipt().PendingApprovals[0].RequestID
	o.now = o.now.Add(48 * time.Hour)
	for _, flags := range [][]string{{"--interrupted"}, {"--suspended", "--older-than", "49h"}} {
		if out := o.ends(0, "", append([]string{"runs", "prune", "--older-than", "1h"}, flags...)...); out != "" {
			t.Errorf("%v removes %s", flags, out)
		}
	}
	if out := o.ends(0, "", "runs", "prune", "--older-than", "1h", "--suspended"); out != "run_1\n" {
		t.Error(out)
	}
	o.ends(2, string(journal.ApprovalNotFound), "approvals", "show", id)
	if _, err := os.Stat(filepath.Join(o.state, "runs", "run_1")); !os.IsNotExist(err) {
		t.Errorf("its folder is left: %v", err)
	}
}
