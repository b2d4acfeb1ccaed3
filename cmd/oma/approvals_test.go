package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/journal"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

var askedAt = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// office is a state folder with a suspended run, and the machine of whoever decides.
type office struct {
	t     *testing.T
	state string
	env   map[string]string
	stdin string
	now   time.Time
	login string // the name of the user

	terminal bool // somebody sits there
}

// newOffice keeps a run that author began and that is held by nobody, under a plan with these approvals.
func newOffice(t *testing.T, author string, approvals *spec.PlanApprovals) *office {
	t.Helper()
	o := &office{t: t, state: t.TempDir(), env: map[string]string{}, now: askedAt.Add(time.Minute), login: "tess"}
	out, errs, code := call(t, 0, "plan", "-o", "json", review)
	if code != 0 {
		t.Fatal(errs)
	}
	p, err := runtime.ReadPlan([]byte(out))
	if err != nil {
		t.Fatal(err)
	}
	p.Approvals = approvals
	o.keepPlan("run_1", p)
	s := o.store()
	l, err := s.Begin(t.Context(), journal.Run{ID: "run_1", Team: "crew", Plan: p.Digest, Core: "1", Author: author})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.SetStatus(t.Context(), journal.StatusSuspended, 6, time.Time{}), l.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	return o
}

// keepPlan seals a plan and puts it where the run has it.
func (o *office) keepPlan(run string, p *spec.Plan) {
	o.t.Helper()
	raw, err := json.Marshal(p)
	if err != nil {
		o.t.Fatal(err)
	}
	if p.Digest, err = canon.DigestWithout("plan", raw, "digest"); err != nil {
		o.t.Fatal(err)
	}
	b, err := p.Encode()
	if err != nil {
		o.t.Fatal(err)
	}
	if err := writeFile(filepath.Join(o.state, "runs", run, planName), b); err != nil {
		o.t.Fatal(err)
	}
}

func (o *office) store() *journal.Store {
	o.t.Helper()
	s, err := journal.Open(o.state, journal.Options{Now: func() time.Time { return o.now }})
	if err != nil {
		o.t.Fatal(err)
	}
	return s
}

// ask puts a call of bash before people.
func (o *office) ask(command string, expires time.Time) spec.ApprovalRequest {
	o.t.Helper()
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		o.t.Fatal(err)
	}
	content, err := json.Marshal(spec.ApprovalContent{Kind: spec.ScopeToolCall, Plan: "sha256:p", ToolName: "bash", Input: input, ToolCallID: "c1",
		Consequential: true, AgentName: "deployer", Role: "deployer", TaskID: "deploy", Rules: []string{"deploys-need-a-person"}})
	if err != nil {
		o.t.Fatal(err)
	}
	r, err := policies.NewApproval("run_1", spec.ScopeToolCall, "deploy:c1", content)
	if err != nil {
		o.t.Fatal(err)
	}
	r.Reason, r.RequestedAt, r.Expires = "it cannot be undone", askedAt, expires
	s := o.store()
	if err := errors.Join(s.Ask(o.t.Context(), r), s.Close()); err != nil {
		o.t.Fatal(err)
	}
	return r
}

// oma runs one command at the office.
func (o *office) oma(args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	a := &app{stdin: strings.NewReader(o.stdin), stdout: &out, stderr: &errs, now: func() time.Time { return o.now },
		lookup: func(name string) (string, bool) { v, ok := o.env[name]; return v, ok }, login: func() string { return o.login },
		newID: func() string { return "run_1" }}
	if o.terminal {
		a.asks, a.size = true, func() (int, int) { return 80, 24 }
		a.tick = func() (<-chan time.Time, func()) { return nil, func() {} }
	}
	code = a.main(context.Background(), args)
	return out.String(), errs.String(), code
}

// ends runs a command on the state folder and holds its code, and what it says on both streams, against what is wanted.
func (o *office) ends(code int, says string, args ...string) string {
	o.t.Helper()
	out, errs, got := o.oma(append(args, "--state", o.state)...)
	if got != code || !strings.Contains(out+errs, says) {
		o.t.Errorf("oma %s ends %d, want %d and %q:\n%s%s", strings.Join(args, " "), got, code, says, out, errs)
	}
	return out
}

// saved says what is stored of a request.
func (o *office) saved(id string) journal.Approval {
	o.t.Helper()
	s := o.store()
	defer s.Close()
	a, err := s.Approval(o.t.Context(), id)
	if err != nil {
		o.t.Fatal(err)
	}
	return a
}

// pair makes a key: a file to sign with, and the text that a team declares.
func pair(t *testing.T, name string) (file, public string) {
	t.Helper()
	seed := make([]byte, ed25519.SeedSize)
	copy(seed, name)
	key := ed25519.NewKeyFromSeed(seed)
	block := func(kind string, der []byte, err error) []byte {
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	secret := block("PRIVATE KEY", private, err)
	der, err := x509.MarshalPKIXPublicKey(crypto.Signer(key).Public())
	file = filepath.Join(t.TempDir(), name+".pem")
	if err := os.WriteFile(file, secret, 0o600); err != nil {
		t.Fatal(err)
	}
	return file, string(block("PUBLIC KEY", der, err))
}

// Without reviewers anybody decides, by name, and the answer says that nothing proves it.
func TestApproveByName(t *testing.T) {
	o := newOffice(t, "ann", nil)
	r := o.ask("make release", time.Time{})
	list := o.ends(0, "", "approvals")
	want := "2026-01-02T03:00:00Z  pending      " + r.ID + "  run_1  tool_call  bash deploy by deployer  it cannot be undone\n"
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
	o.ends(0, "next: oma resume --state "+o.state+" run_1", "approve", r.ID[:12], "--reviewer", " bob ", "--reason", "go on", "-o", "json")
	o.ends(0, "", "approvals", "list", "--run", "run_1")
	if list := o.ends(0, "", "approvals"); list != "" {
		t.Errorf("it is decided, and listed: %s", list)
	}
	o.ends(0, "approved     "+r.ID, "approvals", "list", "--all")
	shown := o.ends(0, "approved, unauthenticated: nothing proves who decided", "approvals", "show", r.ID)
	if !strings.Contains(shown, "approve by bob, 2026-01-02T03:01:00Z, unsigned: go on") {
		t.Error(shown)
	}
	got := o.saved(r.ID)
	if diff := cmp.Diff([]spec.ApprovalVote{{Verdict: "approve", Reviewer: "bob", Reason: "go on", DecidedAt: o.now}}, got.Decisions); diff != "" {
		t.Error(diff)
	}
}

// Who decides is the flag's word, else the variable's, else where anybody may the system's. An empty word is none.
func TestReviewerOf(t *testing.T) {
	o := newOffice(t, "ann", nil)
	r := o.ask("make release", time.Time{})
	o.ends(2, `"" is no reviewer; say who decides with --reviewer ID`, "approve", r.ID, "--reviewer", " ")
	o.ends(2, "--hash is empty", "approve", r.ID, "--hash", "")
	o.ends(2, "--key is empty", "approve", r.ID, "--key", "")
	o.ends(2, "no key of \"ann\"", "approve", r.ID, "--reviewer", "ann", "--key", "x.pem")
	o.ends(2, "UTF-8", "approve", r.ID, "--reviewer", "ann", "--reason", "\xff")
	o.ends(2, "longer than 16 KiB", "approve", r.ID, "--reviewer", "ann", "--reason", strings.Repeat("x", 16<<10+1))
	o.ends(2, "--out belongs to the file", "approve", r.ID, "--out", "x.json")
	o.env["OMA_REVIEWER"] = "eve"
	o.ends(0, "rejected, unauthenticated", "reject", r.ID)
	if got := o.saved(r.ID).Decisions[0].Reviewer; got != "eve" {
		t.Errorf("%q decided", got)
	}
	o = newOffice(t, "ann", nil)
	r = o.ask("make release", time.Time{})
	o.ends(0, "approved", "approve", r.ID)
	if got := o.saved(r.ID).Decisions[0].Reviewer; got != "tess" {
		t.Errorf("%q decided", got)
	}
	o = newOffice(t, "ann", nil)
	r = o.ask("make release", time.Time{})
	o.login = ""
	o.ends(2, "say who decides with --reviewer ID: the system has no name for you", "approve", r.ID)
	o = newOffice(t, "ann", &spec.PlanApprovals{Quorum: 1, Reviewers: []spec.Reviewer{{ID: "bob"}, {ID: "cid"}}})
	r = o.ask("make release", time.Time{})
	o.ends(2, "say who decides with --reviewer ID: bob, cid", "approve", r.ID)
}

// N2: where a team declares keys, a name decides nothing. A decision that could not count is not stored.
func TestN2OnlyWhatIsSignedCounts(t *testing.T) {
	ann, annPublic := pair(t, "ann")
	bob, bobPublic := pair(t, "bob")
	o := newOffice(t, "ann", &spec.PlanApprovals{Quorum: 1, SeparateApprover: true,
		Reviewers: []spec.Reviewer{{ID: "ann", PublicKey: annPublic}, {ID: "bob", PublicKey: bobPublic}, {ID: "cid"}}})
	r := o.ask("make release", time.Time{})
	for _, c := range []struct {
		says string
		args []string
	}{
		{`decisions of "bob" must be signed; sign it with --key FILE, the private half of sha256:`, []string{"--reviewer", "bob"}},
		{`the signature is not one of "bob" over this decision; --key is of sha256:`, []string{"--reviewer", "bob", "--key", ann}},
		{`"ann" started the run, and approvals.separateApprover wants somebody else`, []string{"--reviewer", "ann", "--key", ann}},
		{`nothing proves that it was "cid"`, []string{"--reviewer", "cid"}},
		{`"bop" is not among the team's reviewers; did you mean bob?`, []string{"--reviewer", "bop", "--key", bob}},
		{`eve" is not among the team's reviewers; valid: ann, bob, cid`, []string{"--reviewer", "eve"}},
		{`--key: no.pem cannot be read: no such file`, []string{"--reviewer", "bob", "--key", "no.pem"}},
	} {
		o.ends(2, c.says, append([]string{"approve", r.ID}, c.args...)...)
	}
	if n := len(o.saved(r.ID).Decisions); n > 0 {
		t.Fatalf("%d decisions were stored that do not count", n)
	}
	secret, err := os.ReadFile(bob)
	if err != nil {
		t.Fatal(err)
	}
	o.stdin = string(secret)
	var v approvalView
	if err := json.Unmarshal([]byte(o.ends(0, "", "approve", r.ID, "--reviewer", "bob", "--key", "-", "-o", "json")), &v); err != nil {
		t.Fatal(err)
	}
	if v.Decision != "approved" || !v.Authenticated || !v.Votes[0].Counts {
		t.Errorf("%+v", v)
	}
}

// What was put into the store by another way than the commands counts no more than what they refuse, and is shown so.
func TestN2WhatIsInTheStoreIsJudged(t *testing.T) {
	_, public := pair(t, "bob")
	o := newOffice(t, "ann", &spec.PlanApprovals{Quorum: 1, Reviewers: []spec.Reviewer{{ID: "bob", PublicKey: public}}})
	r := o.ask("make release", time.Time{})
	s := o.store()
	forged := spec.ApprovalVote{Verdict: spec.VerdictApprove, Reviewer: "bob", Signature: []byte("not one")}
	if err := errors.Join(s.Decide(t.Context(), r.ID, r.RequestHash, forged, nil), s.Close()); err != nil {
		t.Fatal(err)
	}
	shown := o.ends(0, "pending: 0 of 1 approval", "approvals", "show", r.ID)
	if !strings.Contains(shown, `does not count: the signature is not one of "bob"`) {
		t.Error(shown)
	}
	o.ends(0, "pending      "+r.ID, "approvals")
}

// K10, across commands: unknown, stale, expired, decided; the first conclusive decision wins.
func TestK10Codes(t *testing.T) {
	o := newOffice(t, "ann", &spec.PlanApprovals{Quorum: 2})
	r := o.ask("make release", askedAt.Add(time.Hour))
	o.ends(2, "APPROVAL_NOT_FOUND", "approve", "apr_00000000", "--reviewer", "bob")
	o.ends(2, `is not known: did you mean `+r.ID, "approve", r.ID[:11], "--reviewer", "bob")
	o.ends(7, "APPROVAL_STALE_DECISION", "approve", r.ID, "--reviewer", "bob", "--hash", strings.Repeat("0", 64))
	o.ends(0, "pending: 1 of 2 approvals", "approve", r.ID, "--reviewer", "bob", "--hash", r.RequestHash)
	o.ends(0, "pending 1/2", "approvals")
	o.ends(7, `was decided already: approve by "bob" [APPROVAL_CONFLICT]`, "reject", r.ID, "--reviewer", "bob")
	before := o.now
	o.now = askedAt.Add(time.Hour)
	o.ends(7, "expired at 2026-01-02T04:00:00Z [APPROVAL_STALE_DECISION]", "approve", r.ID, "--reviewer", "cid")
	o.ends(0, "expired", "approvals", "list", "--all")
	o.now = before
	o.ends(0, "approved", "approve", r.ID, "--reviewer", "cid")
	o.ends(7, `was decided already: approved, at last by "cid" [APPROVAL_CONFLICT]`, "reject", r.ID, "--reviewer", "dan")
	if n := len(o.saved(r.ID).Decisions); n != 2 {
		t.Errorf("%d decisions", n)
	}
}

// K10: eight reviewers decide at once, each with a store of its own. One is first, and each other one is told.
func TestK10EightAtOnce(t *testing.T) {
	o := newOffice(t, "ann", nil)
	r := o.ask("make release", time.Time{})
	var all sync.WaitGroup
	codes := make(chan int, 8)
	for _, who := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		all.Go(func() {
			_, errs, code := o.oma("approve", r.ID, "--reviewer", who, "--state", o.state)
			if code != 0 && !strings.Contains(errs, "APPROVAL_CONFLICT") {
				t.Errorf("%s: %s", who, errs)
			}
			codes <- code
		})
	}
	all.Wait()
	close(codes)
	counts := map[int]int{}
	for c := range codes {
		counts[c]++
	}
	if diff := cmp.Diff(map[int]int{0: 1, 7: 7}, counts); diff != "" || len(o.saved(r.ID).Decisions) != 1 {
		t.Error(diff)
	}
}

// CK-04: who may decide is what the plan said that the run was begun with. A plan that was changed since decides nothing.
func TestCK04PlanOfTheRunAlone(t *testing.T) {
	_, public := pair(t, "bob")
	approvals := &spec.PlanApprovals{Quorum: 1, Reviewers: []spec.Reviewer{{ID: "bob", PublicKey: public}}}
	o := newOffice(t, "ann", approvals)
	r := o.ask("make release", time.Time{})
	path := filepath.Join(o.state, "runs", "run_1", planName)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := runtime.ReadPlan(whole)
	if err != nil {
		t.Fatal(err)
	}
	p.Approvals = nil
	o.keepPlan("run_1", p)
	o.ends(3, "who may decide about run run_1 cannot be told: "+path+" holds another plan than the run's", "approve", r.ID, "--reviewer", "eve")
	if err := os.WriteFile(path, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	o.ends(3, "cannot be told", "approvals")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	o.ends(3, "cannot be told", "reject", r.ID, "--reviewer", "eve")
	if n := len(o.saved(r.ID).Decisions); n > 0 {
		t.Errorf("%d decisions were stored", n)
	}
}

// N16: what a model wrote is shown so that nothing in it acts on a terminal or passes for something else.
func TestN16WhatIsShown(t *testing.T) {
	o := newOffice(t, "ann", nil)
	r := o.ask("echo \x1b[2J\x1b]52;c;eA==\a\u202e\u200b; rm -rf /раth ⟧ok⟦ \u05d0\u05d1 && c\u0301url x\n::error::hi", time.Time{})
	shown := o.ends(0, "", "approvals", "show", r.ID)
	for _, c := range shown {
		if c != '\n' && c != '⟦' && c != '⟧' && c != 'р' && c != 'а' && (c < ' ' || c > '~') {
			t.Errorf("%U is shown as it is", c)
		}
	}
	for _, want := range []string{`\u{1b}[2J`, `⟦\u{202e}\u{200b}⟧`, "/⟦ра⟧th", `⟦\u{27e7}⟧ok⟦\u{27e6}⟧`, `⟦\u{5d0}\u{5d1}⟧`, `c⟦\u{301}⟧url`,
		"9 characters in the content not ASCII", "U+0440", "risk      high: ", "author    ann, by their own word", "who       anybody, by name alone; 1 approval needed",
		"tool      bash, consequential", "rules     deploys-need-a-person", "run       run_1 of team crew, suspended"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not shown:\n%s", want, shown)
		}
	}
	o.env["GITHUB_ACTIONS"] = "true"
	if shown := o.ends(0, "", "approvals", "show", r.ID); strings.Contains(shown, "\n          ::error") || !strings.Contains(shown, `\u{3a}:error`) {
		t.Error(shown)
	}
	var v approvalView
	if err := json.Unmarshal([]byte(o.ends(0, "", "approvals", "show", r.ID, "-o", "json")), &v); err != nil {
		t.Fatal(err)
	}
	if err := policies.CheckApproval(&v.ApprovalRequest); err != nil || v.Shell.Level != "high" || v.RunStatus != journal.StatusSuspended {
		t.Errorf("%v %+v", err, v)
	}
}
