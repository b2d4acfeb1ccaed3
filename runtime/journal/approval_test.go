package journal

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func ask(t testing.TB, s *Store, run, boundary, content string) Approval {
	t.Helper()
	a, err := NewApproval(run, "tool_call", boundary, json.RawMessage(content))
	if err != nil {
		t.Fatal(err)
	}
	a.Reason, a.RequestedAt = "why", epoch
	if err := s.Ask(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	return a
}

// K7: hash and id follow from the request alone, whatever order its members have.
func TestK7HashAndID(t *testing.T) {
	a, err := NewApproval("run-1", "tool_call", "t1:c1", json.RawMessage(`{"b": 1, "a": "x"}`))
	if err != nil {
		t.Fatal(err)
	}
	// printf '%s' '{"boundary":"t1:c1","content":{"a":"x","b":1},"scope":"tool_call"}' | sha256sum
	const hash = "c933d1c8c9fb55e2ae7985e16e7ae50770c7308292ddde05efd23ab255c12d24"
	if a.RequestHash != hash {
		t.Errorf("hash %s", a.RequestHash)
	}
	if !strings.HasPrefix(a.ID, "apr_") || len(a.ID) != 36 {
		t.Errorf("id %q", a.ID)
	}
	b, err := NewApproval("run-1", "tool_call", "t1:c1", json.RawMessage(`{"a":"x","b":1}`))
	if diff := cmp.Diff(a, b); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for _, content := range []string{``, `{`, `{"a":1,"a":2}`, `1 2`} {
		if _, err := NewApproval("r", "plan", "b", json.RawMessage(content)); !errors.Is(err, ApprovalInvalid) {
			t.Errorf("%q is content: %v", content, err)
		}
	}
}

// K9: the same request again is one request; another one under its id is refused.
func TestK9AskIsIdempotent(t *testing.T) {
	ctx := t.Context()
	s := open(t, t.TempDir())
	begin(t, s, "r1")
	begin(t, s, "r2")
	a := ask(t, s, "r1", "t:1", `{"x":1}`)
	again := a
	again.Reason, again.Content = "another reason", json.RawMessage(`{ "x": 1 }`)
	if err := s.Ask(ctx, again); err != nil {
		t.Errorf("the same again: %v", err)
	}
	other, err := NewApproval("r1", "tool_call", "t:1", json.RawMessage(`{"x":2}`))
	if err != nil {
		t.Fatal(err)
	}
	other.ID = a.ID
	if err := s.Ask(ctx, other); !errors.Is(err, ApprovalConflict) {
		t.Errorf("other content: %v", err)
	}
	moved := a
	moved.RunID = "r2"
	if err := s.Ask(ctx, moved); !errors.Is(err, ApprovalConflict) {
		t.Errorf("another run: %v", err)
	}
	forged := other
	forged.ID, forged.RequestHash = "apr_x", a.RequestHash
	if err := s.Ask(ctx, forged); !errors.Is(err, ApprovalInvalid) {
		t.Errorf("a hash of something else: %v", err)
	}
	lost := other
	lost.ID, lost.RunID = "apr_y", "r3"
	if err := s.Ask(ctx, lost); !errors.Is(err, ErrUnknown) {
		t.Errorf("an unknown run: %v", err)
	}
	got, err := s.Approval(ctx, a.ID)
	if diff := cmp.Diff(a, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

// K10, with more than one reviewer: each has one decision, and the first counts.
func TestK10Decide(t *testing.T) {
	ctx := t.Context()
	s := open(t, t.TempDir())
	begin(t, s, "r1")
	a := ask(t, s, "r1", "t:1", `{"x":1}`)
	late := a
	late.ID, late.Expires = "apr_late", epoch
	if err := s.Ask(ctx, late); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, id, hash string
		d              Decision
		want           error
	}{
		{"unknown", "apr_0", a.RequestHash, Decision{Verdict: Approve, Reviewer: "ann"}, ApprovalNotFound},
		{"another request", a.ID, "0", Decision{Verdict: Approve, Reviewer: "ann"}, ApprovalStale},
		{"no verb", a.ID, a.RequestHash, Decision{Verdict: "approved", Reviewer: "ann"}, ApprovalInvalid},
		{"nobody", a.ID, a.RequestHash, Decision{Verdict: Approve, Reviewer: " \t"}, ApprovalInvalid},
		{"no text", a.ID, a.RequestHash, Decision{Verdict: Approve, Reviewer: "\xff"}, ApprovalInvalid},
		{"too late", "apr_late", a.RequestHash, Decision{Verdict: Approve, Reviewer: "ann"}, ApprovalStale},
		{"first", a.ID, a.RequestHash, Decision{Verdict: Approve, Reviewer: " ann ", Reason: "fine", Signature: []byte{1, 2}}, nil},
		{"again", a.ID, a.RequestHash, Decision{Verdict: Approve, Reviewer: "ann"}, ApprovalConflict},
		{"the other way", a.ID, a.RequestHash, Decision{Verdict: Reject, Reviewer: "ann"}, ApprovalConflict},
		{"second reviewer", a.ID, a.RequestHash, Decision{Verdict: Reject, Reviewer: "bob", DecidedAt: epoch.Add(time.Second)}, nil},
	} {
		if err := s.Decide(ctx, c.id, c.hash, c.d); !errors.Is(err, c.want) || (c.want == nil) != (err == nil) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	got, err := s.Approval(ctx, a.ID)
	want := a
	want.Decisions = []Decision{{Approve, "ann", "fine", []byte{1, 2}, epoch}, {Reject, "bob", "", nil, epoch.Add(time.Second)}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for _, c := range []struct {
		f    ApprovalFilter
		want int
	}{{ApprovalFilter{}, 2}, {ApprovalFilter{Pending: true}, 1}, {ApprovalFilter{RunID: "r1", Pending: true}, 1}, {ApprovalFilter{RunID: "r2"}, 0}} {
		if all, err := s.Approvals(ctx, c.f); err != nil || len(all) != c.want {
			t.Errorf("%+v: %d approvals, want %d: %v", c.f, len(all), c.want, err)
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
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := t.Context()
			s := open(t, t.TempDir())
			begin(t, s, "r1")
			begin(t, s, "r2")
			before, a, after := ask(t, s, "r1", "t:0", `{}`), ask(t, s, "r1", "t:1", `{"x":1}`), ask(t, s, "r1", "t:2", `{}`)
			for _, reviewer := range []string{"ann", "bob", "cid"} {
				if err := s.Decide(ctx, a.ID, a.RequestHash, Decision{Verdict: Reject, Reviewer: reviewer}); err != nil {
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
			if err := s.Ask(ctx, a); !errors.Is(err, ApprovalIntegrity) {
				t.Errorf("asked again: %v", err)
			}
			if err := s.Decide(ctx, a.ID, a.RequestHash, Decision{Verdict: Approve, Reviewer: "dan"}); !errors.Is(err, ApprovalIntegrity) {
				t.Errorf("decided: %v", err)
			}
			rest, err := s.Approvals(ctx, ApprovalFilter{})
			if diff := cmp.Diff([]Approval{before, after}, rest); diff != "" || !errors.Is(err, ApprovalIntegrity) {
				t.Error(err, diff)
			}
		})
	}
}
