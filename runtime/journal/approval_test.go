package journal

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/spec"
)

func request(t testing.TB, run, boundary, content string) spec.ApprovalRequest {
	t.Helper()
	r, err := policies.NewApproval(run, spec.ScopeToolCall, boundary, json.RawMessage(content))
	if err != nil {
		t.Fatal(err)
	}
	r.Reason, r.RequestedAt = "why", epoch
	return r
}

func ask(t testing.TB, s *Store, run, boundary, content string) Approval {
	t.Helper()
	r := request(t, run, boundary, content)
	if err := s.Ask(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return Approval{ApprovalRequest: r}
}

// never counts whatever is said, and says that nothing has come of it.
func never(a *Approval) spec.ApprovalRecord {
	return spec.ApprovalRecord{Decision: spec.ApprovalPending, Votes: a.Decisions}
}

// under says what comes of a request where a team declares this.
func under(p *spec.PlanApprovals) Conclude {
	return func(a *Approval) spec.ApprovalRecord {
		return policies.ConcludeApproval(p, "", &a.ApprovalRequest, a.Decisions, epoch)
	}
}

func vote(verdict, reviewer string) spec.ApprovalVote {
	return spec.ApprovalVote{Verdict: verdict, Reviewer: reviewer}
}

// K9: the same request again is one request; another one under its id is refused.
func TestK9AskIsIdempotent(t *testing.T) {
	ctx := t.Context()
	s := open(t, t.TempDir())
	begin(t, s, "r1")
	begin(t, s, "r2")
	a := ask(t, s, "r1", "t:1", `{"x":1}`)
	again := a.ApprovalRequest
	again.Reason, again.Content, again.RequestedAt = "another reason", json.RawMessage(`{ "x": 1 }`), epoch.Add(time.Hour)
	if err := s.Ask(ctx, again); err != nil {
		t.Errorf("the same again: %v", err)
	}
	other := request(t, "r1", "t:1", `{"x":2}`)
	other.ID = a.ID
	moved := a.ApprovalRequest
	moved.RunID = "r2"
	forged := request(t, "r1", "t:1", `{"x":2}`)
	forged.RequestHash = a.RequestHash
	renamed := request(t, "r1", "t:1", `{"x":3}`)
	renamed.ID = "apr_0"
	broken := request(t, "r1", "t:1", `{"x":4}`)
	broken.Content = json.RawMessage(`{"x":4,"x":5}`)
	for _, c := range []struct {
		name string
		r    spec.ApprovalRequest
		want error
	}{
		{"other content", other, ApprovalConflict}, {"another run", moved, ApprovalConflict}, {"a hash of something else", forged, ApprovalInvalid},
		{"an id of something else", renamed, ApprovalInvalid}, {"no JSON", broken, ApprovalInvalid},
		{"an unknown run", request(t, "r3", "t:1", `{}`), ErrUnknown},
	} {
		if err := s.Ask(ctx, c.r); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	all, err := s.Approvals(ctx, ApprovalFilter{})
	if diff := cmp.Diff([]Approval{a}, all); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

// What a reviewer signs is what is read back: times lose what a store does not keep when a request is asked.
func TestTimesAreWholeMilliseconds(t *testing.T) {
	s := open(t, t.TempDir())
	begin(t, s, "r1")
	r := request(t, "r1", "t:1", `{}`)
	fine := time.Date(2026, 5, 2, 1, 2, 3, 4_005_006, time.FixedZone("elsewhere", 3600))
	r.RequestedAt, r.Expires = fine, fine
	v := vote(spec.VerdictApprove, "ann")
	v.DecidedAt = fine.Add(-time.Minute)
	if err := errors.Join(s.Ask(t.Context(), r), s.Decide(t.Context(), r.ID, r.RequestHash, v, nil)); err != nil {
		t.Fatal(err)
	}
	got, err := s.Approval(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := fine.UTC().Truncate(time.Millisecond)
	if got.RequestedAt != want || got.Expires != want || got.Decisions[0].DecidedAt != want.Add(-time.Minute) {
		t.Errorf("asked %v until %v, decided %v", got.RequestedAt, got.Expires, got.Decisions[0].DecidedAt)
	}
}

// K10: unknown, stale and invalid decisions are refused, and so is every one after the one that concluded.
func TestK10Decide(t *testing.T) {
	ctx := t.Context()
	s := open(t, t.TempDir())
	begin(t, s, "r1")
	a := ask(t, s, "r1", "t:1", `{"x":1}`)
	late, later := request(t, "r1", "t:2", `{}`), request(t, "r1", "t:3", `{}`)
	late.Expires, later.Expires = epoch, epoch.Add(time.Second)
	if err := errors.Join(s.Ask(ctx, late), s.Ask(ctx, later)); err != nil {
		t.Fatal(err)
	}
	two := func(a *Approval) spec.ApprovalRecord {
		is := never(a)
		if len(a.Decisions) >= 2 {
			is.Decision = spec.ApprovalRejected
		}
		return is
	}
	full := spec.ApprovalVote{Verdict: spec.VerdictApprove, Reviewer: "ann", Reason: " fine ", Signature: []byte{1, 2}}
	second := spec.ApprovalVote{Verdict: spec.VerdictReject, Reviewer: "bob", DecidedAt: epoch.Add(time.Second)}
	for _, c := range []struct {
		name, id, hash string
		v              spec.ApprovalVote
		conclude       Conclude
		want           error
	}{
		{"unknown", "apr_0", a.RequestHash, vote("approve", "ann"), nil, ApprovalNotFound},
		{"another request", a.ID, "0", vote("approve", "ann"), nil, ApprovalStale},
		{"no verb", a.ID, a.RequestHash, vote("approved", "ann"), nil, ApprovalInvalid},
		{"nobody", a.ID, a.RequestHash, vote("approve", ""), nil, ApprovalInvalid},
		{"space around", a.ID, a.RequestHash, vote("approve", "ann "), nil, ApprovalInvalid},
		{"no text", a.ID, a.RequestHash, vote("approve", "\xff"), nil, ApprovalInvalid},
		{"too late", late.ID, late.RequestHash, vote("approve", "ann"), nil, ApprovalStale},
		{"by its own word too late", later.ID, later.RequestHash, second, nil, ApprovalStale},
		{"concluded otherwise", a.ID, a.RequestHash, vote("approve", "ann"), func(*Approval) spec.ApprovalRecord { return spec.ApprovalRecord{Decision: spec.ApprovalApproved} }, ApprovalConflict},
		{"first", a.ID, a.RequestHash, full, two, nil},
		{"again", a.ID, a.RequestHash, full, two, ApprovalConflict},
		{"the other way", a.ID, a.RequestHash, vote("reject", "ann"), two, ApprovalConflict},
		{"any concludes", a.ID, a.RequestHash, vote("reject", "bob"), nil, ApprovalConflict},
		{"second reviewer", a.ID, a.RequestHash, second, two, nil},
		{"third reviewer", a.ID, a.RequestHash, vote("approve", "cid"), two, ApprovalConflict},
	} {
		if err := s.Decide(ctx, c.id, c.hash, c.v, c.conclude); !errors.Is(err, c.want) || (c.want == nil) != (err == nil) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	want := a
	full.DecidedAt = epoch
	want.Decisions = []spec.ApprovalVote{full, second}
	got, err := s.Approval(ctx, a.ID)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for run, want := range map[string]int{"": 3, "r1": 3, "r2": 0} {
		if all, err := s.Approvals(ctx, ApprovalFilter{RunID: run}); err != nil || len(all) != want {
			t.Errorf("of run %q: %d approvals, want %d: %v", run, len(all), want, err)
		}
	}
}

// What does not count keeps nobody from being heard: a row under a reviewer's name without their signature. What counts
// does, under whichever spelling of the name.
func TestOnlyWhatCountsConflicts(t *testing.T) {
	ctx := t.Context()
	s := open(t, t.TempDir())
	begin(t, s, "r1")
	a := ask(t, s, "r1", "t:1", `{}`)
	anybody := under(&spec.PlanApprovals{Quorum: 2})
	ann, bob := under(&spec.PlanApprovals{Quorum: 2, Reviewers: []spec.Reviewer{{ID: "ann"}}}), under(&spec.PlanApprovals{Quorum: 2, Reviewers: []spec.Reviewer{{ID: "bob"}}})
	for _, c := range []struct {
		name, reviewer string
		conclude       Conclude
		want           string
	}{
		{"does not count later", "ann", ann, ""},
		{"another one", "bob", bob, ""},
		{"the first does not count", "bob", bob, `was decided already: approve by "bob" [APPROVAL_CONFLICT]`},
		{"neither counts", "bob", under(&spec.PlanApprovals{Quorum: 2, Reviewers: []spec.Reviewer{{ID: "cid"}}}), `would not count this decision of "bob" [APPROVAL_CONFLICT]`},
		{"decided by now", "cid", anybody, `was decided already: approve by "bob" [APPROVAL_CONFLICT]`},
		{"another spelling", "ANN", under(&spec.PlanApprovals{Quorum: 3}), `would not count this decision of "ANN" [APPROVAL_CONFLICT]`},
		{"a third", "cid", under(&spec.PlanApprovals{Quorum: 3}), ""},
	} {
		err := s.Decide(ctx, a.ID, a.RequestHash, vote(spec.VerdictApprove, c.reviewer), c.conclude)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	// The same name twice, the first one without the signature.
	b := ask(t, s, "r1", "t:2", `{}`)
	signed := func(a *Approval) spec.ApprovalRecord {
		is := spec.ApprovalRecord{Decision: spec.ApprovalPending}
		for _, v := range a.Decisions {
			if v.Signature != nil {
				is.Votes = append(is.Votes, v)
			}
		}
		return is
	}
	real := vote(spec.VerdictApprove, "ann")
	real.Signature = []byte{1}
	if err := errors.Join(s.Decide(ctx, b.ID, b.RequestHash, vote(spec.VerdictReject, "ann"), nil), s.Decide(ctx, b.ID, b.RequestHash, real, signed)); err != nil {
		t.Fatal(err)
	}
	if err := s.Decide(ctx, b.ID, b.RequestHash, real, signed); !errors.Is(err, ApprovalConflict) {
		t.Errorf("said again: %v", err)
	}
	if got, err := s.Approval(ctx, b.ID); err != nil || len(got.Decisions) != 2 {
		t.Errorf("%d decisions are stored, %v", len(got.Decisions), err)
	}
}

// An id can be shortened as long as it says which one is meant, and a wrong one is an error that says what may have been.
func TestApprovalID(t *testing.T) {
	s := open(t, t.TempDir())
	begin(t, s, "r1")
	a := ask(t, s, "r1", "t:1", `{}`)
	ask(t, s, "r1", "t:2", `{}`)
	typo := strings.Replace(a.ID, a.ID[20:21], "x", 1)
	for _, c := range []struct{ text, want string }{
		{a.ID, ""}, {a.ID[:12], ""}, {a.ID[:20], ""},
		{a.ID[:11], "is not known: did you mean " + a.ID}, {"apr_", "is not known: did you mean"}, {"", "is not known ["},
		{typo, "is not known: did you mean " + a.ID + "?"}, {"apr_zzzzzzzzzzzz", "is not known ["},
	} {
		id, err := s.ApprovalID(t.Context(), c.text)
		switch {
		case c.want == "" && (err != nil || id != a.ID):
			t.Errorf("%q: %q %v", c.text, id, err)
		case c.want != "" && (!errors.Is(err, ApprovalNotFound) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

// A row that is not what was asked or decided is an integrity error, and the others can still be read.
func TestK10DamagedRows(t *testing.T) {
	for _, c := range []struct{ name, trigger, change string }{
		{"content", "approvals_fixed", `UPDATE approvals SET content = CAST('{"x":9}' AS BLOB) WHERE id = ?`},
		{"no JSON", "approvals_fixed", `UPDATE approvals SET content = x'00' WHERE id = ?`},
		{"reason", "approvals_fixed", `UPDATE approvals SET reason = 'please' WHERE id = ?`},
		{"expiry", "approvals_fixed", `UPDATE approvals SET expires = 99999999999999 WHERE id = ?`},
		{"run", "approvals_fixed", `UPDATE approvals SET run = 2 WHERE id = ?`},
		{"verdict", "decisions_fixed", `UPDATE decisions SET verdict = 'approve' WHERE approval = ? AND reviewer = 'bob'`},
		{"reviewer", "decisions_fixed", `UPDATE decisions SET reviewer = 'eve' WHERE approval = ? AND reviewer = 'bob'`},
		{"signature", "decisions_fixed", `UPDATE decisions SET signature = x'01' WHERE approval = ? AND reviewer = 'bob'`},
		{"moment", "decisions_fixed", `UPDATE decisions SET decided_at = 1 WHERE approval = ? AND reviewer = 'bob'`},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := t.Context()
			s := open(t, t.TempDir())
			begin(t, s, "r1")
			begin(t, s, "r2")
			before, a, after := ask(t, s, "r1", "t:0", `{}`), ask(t, s, "r1", "t:1", `{"x":1}`), ask(t, s, "r1", "t:2", `{}`)
			for _, reviewer := range []string{"ann", "bob", "cid"} {
				if err := s.Decide(ctx, a.ID, a.RequestHash, vote(spec.VerdictReject, reviewer), never); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.db.Exec(`DROP TRIGGER ` + c.trigger); err != nil {
				t.Fatal(err)
			}
			if _, err := s.db.Exec(c.change, a.ID); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Approval(ctx, a.ID); !errors.Is(err, ApprovalIntegrity) {
				t.Errorf("read: %v", err)
			}
			if err := s.Ask(ctx, a.ApprovalRequest); !errors.Is(err, ApprovalIntegrity) {
				t.Errorf("asked again: %v", err)
			}
			if err := s.Decide(ctx, a.ID, a.RequestHash, vote(spec.VerdictApprove, "dan"), never); !errors.Is(err, ApprovalIntegrity) {
				t.Errorf("decided: %v", err)
			}
			rest, err := s.Approvals(ctx, ApprovalFilter{})
			if diff := cmp.Diff([]Approval{before, after}, rest); diff != "" || !errors.Is(err, ApprovalIntegrity) {
				t.Error(err, diff)
			}
		})
	}
}
