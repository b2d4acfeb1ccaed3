package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// edit changes members of a JSON file: each is a path and a JSON value.
func edit(t *testing.T, from, to string, members ...string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	v, err := decodeOne(b)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(members); i += 2 {
		value, err := decodeOne([]byte(members[i+1]))
		if err != nil || !put(v.(map[string]any), strings.Split(members[i], "."), value, false) {
			t.Fatal(members[i], err)
		}
	}
	if b, err = json.Marshal(v); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// away is a machine that keeps no runs: what it is asked about comes as files.
func (o *office) away(code int, says string, args ...string) {
	o.t.Helper()
	out, errs, got := o.oma(args...)
	if got != code || !strings.Contains(out+errs, says) {
		o.t.Errorf("oma %s ends %d, want %d and %q:\n%s%s", strings.Join(args, " "), got, code, says, out, errs)
	}
}

// N2: a request goes to another machine, is decided where the key is, and the decision comes back. The same one twice is
// one.
func TestN2DecidedElsewhere(t *testing.T) {
	bob, public := pair(t, "bob")
	o := newOffice(t, "ann", &spec.PlanApprovals{Quorum: 1, Reviewers: []spec.Reviewer{{ID: "bob", PublicKey: public}}})
	r := o.ask("make release <&>", askedAt.Add(time.Hour))
	dir := t.TempDir()
	request, decision := filepath.Join(dir, "request.json"), filepath.Join(dir, "decision.json")
	o.ends(0, "next: oma approvals show "+request, "approvals", "export", r.ID, "--out", request)
	for _, path := range []string{request} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fits(t, spec.KindApprovalRequest, b)
	}
	o.away(0, "pending: 0 of 1 approval", "approvals", "show", request)
	o.away(2, "must be signed", "approve", request, "--reviewer", "bob", "--out", decision)
	o.away(2, "would replace "+bob, "approve", request, "--reviewer", "bob", "--key", bob, "--out", bob)
	o.away(2, "--state belongs to an id", "approve", request, "--reviewer", "bob", "--state", dir)
	o.away(0, "next: oma approvals import decision.json", "approve", request, "--reviewer", "bob", "--key", bob, "--reason", "fine", "--out", decision)
	b, err := os.ReadFile(decision)
	if err != nil {
		t.Fatal(err)
	}
	fits(t, spec.KindApprovalDecision, b)
	o.now = o.now.Add(time.Minute)
	o.ends(0, r.ID+"  approved\n", "approvals", "import", decision)
	got := o.saved(r.ID)
	if len(got.Decisions) != 1 || got.Decisions[0].Reason != "fine" || !got.Decisions[0].DecidedAt.Equal(o.now) {
		t.Errorf("%+v", got.Decisions)
	}
	o.now = askedAt.Add(2 * time.Hour)
	o.ends(0, r.ID+"  approved\n", "approvals", "import", decision)
	o.stdin = string(b)
	o.ends(0, r.ID+"  approved\n", "approvals", "import", "-")
	o.ends(7, "was decided already", "approvals", "export", r.ID)
}

// N2: neither file is believed. What a decision is about, who may make it and until when is what the store and the plan
// of the run say.
func TestN2FilesAreNotBelieved(t *testing.T) {
	bob, public := pair(t, "bob")
	eve, evesPublic := pair(t, "eve")
	o := newOffice(t, "ann", &spec.PlanApprovals{Quorum: 1, Reviewers: []spec.Reviewer{{ID: "bob", PublicKey: public}}})
	r := o.ask("make release", askedAt.Add(time.Hour))
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	quote := func(text string) string { b, _ := json.Marshal(text); return string(b) }
	o.ends(0, "", "approvals", "export", r.ID, "--out", file("request.json"))

	// The request says other things than its hash, or asks for another run.
	for _, c := range []struct{ path, value, says string }{
		{"content.input.command", `"make clean"`, "the request has hash"}, {"boundary", `"x"`, "the request has hash"},
		{"runId", `"run_2"`, "id does not follow"}, {"id", `"apr_0"`, "id does not follow"}, {"kind", `"ApprovalDecision"`, "not a ApprovalRequest"},
		{"apiVersion", `"oma/v2"`, "not a ApprovalRequest of oma/v1"}, {"surprise", `1`, `unknown field "surprise"`}, {"expires", `"soon"`, "soon"},
		{"votes", `{}`, "votes: a object does not belong there"},
	} {
		edit(t, file("request.json"), file("edited.json"), c.path, c.value)
		o.away(2, c.says, "approve", file("edited.json"), "--reviewer", "bob", "--key", bob)
		o.away(2, c.says, "approvals", "show", file("edited.json"))
	}

	// The request names reviewers of its own, or another expiry: the decision that follows is refused where it comes back.
	edit(t, file("request.json"), file("widened.json"), "approvals.reviewers", `[{"id":"eve","publicKey":`+quote(evesPublic)+`}]`)
	o.away(0, "", "approve", file("widened.json"), "--reviewer", "eve", "--key", eve, "--out", file("by-eve.json"))
	o.ends(2, `"eve" is not among the team's reviewers`, "approvals", "import", file("by-eve.json"))
	edit(t, file("request.json"), file("longer.json"), "expires", `"2036-01-02T04:00:00Z"`)
	o.away(0, "", "approve", file("longer.json"), "--reviewer", "bob", "--key", bob, "--out", file("late.json"))
	o.ends(7, "APPROVAL_STALE_DECISION", "approvals", "import", file("late.json"))
	edit(t, file("late.json"), file("late.json"), "expires", `"2026-01-02T04:00:00Z"`)
	o.ends(2, "the signature is not one of", "approvals", "import", file("late.json"))

	// A decision that was changed on the way back, or is about something else.
	o.away(0, "", "reject", file("request.json"), "--reviewer", "bob", "--key", bob, "--out", file("no.json"))
	for _, c := range []struct {
		code              int
		path, value, says string
	}{
		{2, "decision", `"approve"`, "the signature is not one of"}, {2, "reason", `"of course"`, "the signature is not one of"},
		{2, "reviewer", `"bob "`, "is no reviewer"}, {2, "reviewer", `"eve"`, "not among the team's reviewers"}, {2, "decision", `"maybe"`, "neither approve nor reject"},
		{2, "signature", `""`, "must be signed"}, {2, "signature", `"%"`, "no decision that can be taken"}, {2, "requestId", `""`, "must be there"},
		{2, "requestId", `"apr_00000000"`, "APPROVAL_NOT_FOUND"}, {7, "requestHash", `"0"`, "APPROVAL_STALE_DECISION"}, {7, "runId", `"run_2"`, "APPROVAL_STALE_DECISION"},
		{7, "requestId", quote(r.ID[:20]), "APPROVAL_STALE_DECISION"}, {2, "kind", `"Receipt"`, "not a ApprovalDecision"},
	} {
		edit(t, file("no.json"), file("edited.json"), c.path, c.value)
		o.ends(c.code, c.says, "approvals", "import", file("edited.json"))
	}

	// In time on paper is not in time: when it was made is not signed.
	o.now = askedAt.Add(time.Hour)
	o.ends(7, "expired at", "approvals", "import", file("no.json"))
	o.away(7, "expired at", "approve", file("request.json"), "--reviewer", "bob", "--key", bob)
	if n := len(o.saved(r.ID).Decisions); n > 0 {
		t.Fatalf("%d decisions were stored", n)
	}
}

// No file makes the reader of requests panic, and what it takes is what its hash says, in the one form.
func FuzzApprovalRequest(f *testing.F) {
	r, err := policies.NewApproval("run_1", spec.ScopePlan, "plan", json.RawMessage(`{"kind":"plan"}`))
	if err != nil {
		f.Fatal(err)
	}
	file := spec.ApprovalRequestFile{Envelope: spec.Envelope{APIVersion: spec.APIVersion, Kind: spec.KindApprovalRequest}, ApprovalRequest: r, Team: "crew",
		Approvals: &spec.PlanApprovals{Quorum: 2, Reviewers: []spec.Reviewer{{ID: "bob", PublicKey: "x"}}}, Votes: []spec.ApprovalVote{{Verdict: "approve", Reviewer: "bob"}}}
	seed, err := json.Marshal(file)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte(`{"apiVersion":"oma/v1","kind":"ApprovalRequest"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := readRequest(b)
		if err != nil {
			return
		}
		if err := policies.CheckApproval(&r.ApprovalRequest); err != nil {
			t.Error(err)
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		back, err := readRequest(again)
		if diff := cmp.Diff(r, back); err != nil || diff != "" {
			t.Error(err, diff)
		}
		m := &matter{ApprovalRequestFile: *r}
		if v := m.view(askedAt); v.Approvals > len(m.Votes) || v.Decision == "" {
			t.Errorf("%+v", v)
		}
		if text := marked(string(r.Content)); ascii(string(r.Content)) != (text == string(r.Content)) {
			t.Errorf("%q is shown as %q", r.Content, text)
		}
	})
}

// No file makes the reader of decisions panic, and what it takes reads back as the same.
func FuzzApprovalDecision(f *testing.F) {
	seed, err := json.Marshal(spec.ApprovalDecisionFile{Envelope: spec.Envelope{APIVersion: spec.APIVersion, Kind: spec.KindApprovalDecision}, RequestID: "apr_1",
		RunID: "run_1", RequestHash: "h", Expires: askedAt, ApprovalVote: spec.ApprovalVote{Verdict: "reject", Reviewer: "bob", Signature: []byte{1}, DecidedAt: askedAt}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte(`{"apiVersion":"oma/v1","kind":"ApprovalDecision"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := readDecision(b)
		if err != nil {
			return
		}
		again, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if err := canon.Check(again); err != nil {
			t.Fatal(err)
		}
		back, err := readDecision(again)
		if diff := cmp.Diff(d, back); err != nil || diff != "" {
			t.Error(err, diff)
		}
	})
}
