package runtime

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/spec"
)

func keyFor(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

// somebody gives a reviewer whose key a seed decides.
func somebody(t testing.TB, id string, seed byte) spec.Reviewer {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(keyFor(seed).Public())
	if err != nil {
		t.Fatal(err)
	}
	return spec.Reviewer{ID: id, PublicKey: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))}
}

func deciding(name string, quorum int, separate bool, who ...spec.Reviewer) spec.PolicyFile {
	return policyOf(name, "d "+name, &spec.Limits{Reviewers: who, Quorum: quorum, SeparateApprover: separate})
}

// foundErrors gives code, place and text of what is an error.
func foundErrors(ds spec.Diagnostics) (out []string) {
	for _, d := range ds {
		if d.Severity == spec.Error {
			out = append(out, strings.TrimSpace(d.File+" "+string(d.Path)+" "+d.Message+" ["+d.Code+"]"))
		}
	}
	return out
}

// N3: who may decide under policies from above, whatever the team file says, and never more than each policy lets.
func TestN3WhoDecides(t *testing.T) {
	ann, bob, cid, eve := somebody(t, "ann", 1), somebody(t, "bob", 2), somebody(t, "cid", 3), somebody(t, "eve", 9)
	other, bare, broken := somebody(t, "ann", 9), spec.Reviewer{ID: "ann"}, spec.Reviewer{ID: "ann", PublicKey: "none"}
	list := func(r ...spec.Reviewer) []spec.Reviewer { return r }
	for _, c := range []struct {
		name  string
		team  *spec.Approvals
		above []spec.PolicyFile
		want  *spec.PlanApprovals // nil: it does not compile
		why   []string
	}{
		{"nobody says anything", nil, []spec.PolicyFile{policyOf("org", "d", &spec.Limits{MaxTokenBudget: 90_000})}, nil, nil},
		{"the team is silent", nil, []spec.PolicyFile{deciding("org", 2, true, ann, bob)},
			&spec.PlanApprovals{Reviewers: list(ann, bob), Quorum: 2, SeparateApprover: true}, nil},
		{"the team names nobody", &spec.Approvals{Quorum: 2, Expires: spec.Duration(time.Hour)}, []spec.PolicyFile{deciding("org", 0, false, ann, bob)},
			&spec.PlanApprovals{Reviewers: list(ann, bob), Quorum: 2, Expires: spec.Duration(time.Hour)}, nil},
		{"the team's list is empty", &spec.Approvals{Reviewers: list()}, []spec.PolicyFile{deciding("org", 0, false, ann)},
			&spec.PlanApprovals{Reviewers: list(ann), Quorum: 1}, nil},
		{"the team wants signatures", &spec.Approvals{SeparateApprover: true}, []spec.PolicyFile{deciding("org", 0, false, ann)},
			&spec.PlanApprovals{Reviewers: list(ann), Quorum: 1, SeparateApprover: true}, nil},
		{"the team names some", &spec.Approvals{Reviewers: list(bob)}, []spec.PolicyFile{deciding("org", 1, true, ann, bob)},
			&spec.PlanApprovals{Reviewers: list(bob), Quorum: 1, SeparateApprover: true}, nil},
		{"the higher quorum is the policy's", &spec.Approvals{Reviewers: list(ann, bob), Quorum: 1}, []spec.PolicyFile{deciding("org", 2, false, ann, bob)},
			&spec.PlanApprovals{Reviewers: list(ann, bob), Quorum: 2}, nil},
		{"several policies", nil, []spec.PolicyFile{deciding("b", 1, true, cid, bob), deciding("a", 2, false, ann, bob, cid)},
			&spec.PlanApprovals{Reviewers: list(bob, cid), Quorum: 2, SeparateApprover: true}, nil},
		{"a policy that names nobody narrows nothing", nil, []spec.PolicyFile{deciding("a", 1, false, ann), policyOf("b", "d", nil, deny("r"))},
			&spec.PlanApprovals{Reviewers: list(ann), Quorum: 1}, nil},

		{"the author of the team", &spec.Approvals{Reviewers: list(eve)}, []spec.PolicyFile{deciding("org", 0, false, ann, bob)}, nil,
			[]string{`approvals.reviewers[0] reviewer "eve" is not among the reviewers of policy "org" (limits.reviewers) [policy-reviewers]`}},
		{"beside one who may", &spec.Approvals{Reviewers: list(ann, eve)}, []spec.PolicyFile{deciding("org", 0, false, ann, bob)}, nil,
			[]string{`approvals.reviewers[1] reviewer "eve" is not among the reviewers of policy "org" (limits.reviewers) [policy-reviewers]`}},
		{"under another's name", &spec.Approvals{Reviewers: list(other)}, []spec.PolicyFile{deciding("org", 0, false, ann)}, nil,
			[]string{`approvals.reviewers[0] reviewer "ann" has the key ` + short(keyOf(&other)) + `, and not ` + short(keyOf(&ann)) + `, the one of policy "org" (limits.reviewers) [policy-reviewers]`}},
		{"without a key", &spec.Approvals{Reviewers: list(bare)}, []spec.PolicyFile{deciding("org", 0, false, ann)}, nil,
			[]string{`approvals.reviewers[0] reviewer "ann" has no key, and not the one of policy "org" (limits.reviewers) [policy-reviewers]`}},
		{"of one policy alone", &spec.Approvals{Reviewers: list(ann)}, []spec.PolicyFile{deciding("a", 0, false, ann, bob), deciding("b", 0, false, bob)}, nil,
			[]string{`approvals.reviewers[0] reviewer "ann" is not among the reviewers of policy "b" (limits.reviewers) [policy-reviewers]`}},
		{"fewer than the policy wants", &spec.Approvals{Reviewers: list(ann)}, []spec.PolicyFile{deciding("org", 2, false, ann, bob)}, nil,
			[]string{`approvals.reviewers policy "org" wants 2 approvals, and only 1 can decide (limits.quorum) [policy-reviewers]`}},
		{"more than there are", &spec.Approvals{Quorum: 3}, []spec.PolicyFile{deciding("org", 2, false, ann, bob)}, nil,
			[]string{`approvals.quorum quorum is 3, and only 2 can decide, so nothing could ever be approved [approval-quorum]`}},
		{"nobody in common", nil, []spec.PolicyFile{deciding("a", 0, false, ann), deciding("b", 0, false, bob)}, nil,
			[]string{`b limits.reviewers policies "a" and "b" have no reviewer in common, so nobody could decide [policy-reviewers]`}},
		{"one name and two keys in common", nil, []spec.PolicyFile{deciding("a", 0, false, ann), deciding("b", 0, false, other)}, nil,
			[]string{`b limits.reviewers policies "a" and "b" have no reviewer in common, so nobody could decide [policy-reviewers]`}},
		{"too few in common", nil, []spec.PolicyFile{deciding("a", 2, false, ann, bob), deciding("b", 0, false, bob, cid)}, nil,
			[]string{`a limits.quorum policy "a" wants 2 approvals, and only 1 can decide (limits.quorum) [policy-reviewers]`}},

		{"a policy's name without a key", nil, []spec.PolicyFile{deciding("org", 0, false, bare)}, nil,
			[]string{`org limits.reviewers[0] "ann" has no key, and a name alone proves nothing [bad-limit]`}},
		{"a policy's key that is none", nil, []spec.PolicyFile{deciding("org", 0, false, broken)}, nil,
			[]string{`org limits.reviewers[0].publicKey the key of reviewer "ann" cannot be used: this is no PEM file: want one block PUBLIC KEY [approval-key]`}},
		{"a policy's quorum of nobody", nil, []spec.PolicyFile{deciding("org", 3, false, ann, bob)}, nil,
			[]string{`org limits.quorum quorum is 3, and only 2 can decide, so nothing could ever be approved [approval-quorum]`}},
		{"a quorum of anybody", nil, []spec.PolicyFile{deciding("org", 2, true)}, nil,
			[]string{`org limits.quorum "quorum" stands beside no reviewers, and a team can make up as many as it wants [bad-limit]`,
				`org limits.separateApprover "separateApprover" stands beside no reviewers, and a team can make up as many as it wants [bad-limit]`}},
	} {
		b := pair()
		b.Team.Approvals, b.Above = c.team, c.above
		p, ds := compilePair(t, b)
		if diff := cmp.Diff(c.why, foundErrors(ds)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if (p == nil) != (c.why != nil) {
			t.Fatalf("%s: plan %v", c.name, p)
		}
		if p != nil {
			if diff := cmp.Diff(c.want, p.Approvals); diff != "" {
				t.Errorf("%s: %s", c.name, diff)
			}
		}
	}
}

// N3: that a saved plan was compiled under a policy is its own word, also about who decides.
func TestN3SavedPlanWhoDecides(t *testing.T) {
	ann, bob, eve := somebody(t, "ann", 1), somebody(t, "bob", 2), somebody(t, "eve", 9)
	given := deciding("org", 2, true, ann, bob)
	for _, c := range []struct {
		name   string
		change func(*spec.Plan)
		want   string // the first reason
	}{
		{"as it was compiled", func(*spec.Plan) {}, ""},
		{"nobody", func(p *spec.Plan) { p.Approvals = nil }, `policy "org" says who may decide, and the plan lets anybody (limits.reviewers)`},
		{"anybody", func(p *spec.Plan) { p.Approvals.Reviewers = nil }, `policy "org" says who may decide, and the plan lets anybody (limits.reviewers)`},
		{"another one", func(p *spec.Plan) { p.Approvals.Reviewers = []spec.Reviewer{ann, bob, eve} }, `reviewer "eve" is not among the reviewers of policy "org" (limits.reviewers)`},
		{"one", func(p *spec.Plan) { p.Approvals.Quorum = 1 }, `policy "org" wants 2 approvals, and the plan takes 1 (limits.quorum)`},
		{"the author", func(p *spec.Plan) { p.Approvals.SeparateApprover = false },
			`policy "org" takes no decision of whoever starts the run, and the plan does (limits.separateApprover)`},
	} {
		b := pair()
		b.Above = []spec.PolicyFile{given}
		p := compiledPair(t, b)
		c.change(p)
		got := strings.Join(NotUnder(p, b.Above, []spec.ToolInfo{tool("look", false), tool("change", true)}), "\n")
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// N3: a receipt is held against the policy's own reviewers. That a team wanted more approvals than the policy is no reason.
func TestN3ReceiptWhoDecided(t *testing.T) {
	ann, bob, cid := somebody(t, "ann", 1), somebody(t, "bob", 2), somebody(t, "cid", 3)
	req, err := policies.NewApproval("run", spec.ScopeToolCall, "t/1", []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	req.Expires = at.Add(time.Hour)
	vote := func(verdict, who string, seed byte) spec.ApprovalVote {
		v := spec.ApprovalVote{Verdict: verdict, Reviewer: who, DecidedAt: at}
		text, err := policies.ApprovalText(&req, &v)
		if err != nil {
			t.Fatal(err)
		}
		v.Signature = ed25519.Sign(keyFor(seed), text)
		return v
	}
	yes := func(who string, seed byte) spec.ApprovalVote { return vote(spec.VerdictApprove, who, seed) }
	no := func(who string, seed byte) spec.ApprovalVote { return vote(spec.VerdictReject, who, seed) }
	bare := yes("ann", 1)
	bare.Signature = nil
	one, two, apart := deciding("org", 0, false, ann, bob), deciding("org", 2, false, ann, bob, cid), deciding("org", 0, true, ann, bob)
	votes := func(v ...spec.ApprovalVote) []spec.ApprovalVote { return v }
	for _, c := range []struct {
		name     string
		policy   spec.PolicyFile
		decision string
		votes    []spec.ApprovalVote
		why      string // empty: it passes
	}{
		{"approved", one, spec.ApprovalApproved, votes(yes("ann", 1)), ""},
		{"approved by more than the policy wants", one, spec.ApprovalApproved, votes(yes("ann", 1), yes("bob", 2)), ""},
		{"waits for more than the policy wants", one, spec.ApprovalPending, votes(yes("ann", 1)), ""},
		{"rejected after an approval", one, spec.ApprovalRejected, votes(yes("ann", 1), no("bob", 2)), ""},
		{"expired after an approval", one, spec.ApprovalExpired, votes(yes("ann", 1)), ""},
		{"waits for everybody", one, spec.ApprovalPending, nil, ""},
		{"approved by two", two, spec.ApprovalApproved, votes(yes("ann", 1), yes("cid", 3)), ""},
		{"approved by one", two, spec.ApprovalApproved, votes(yes("ann", 1)), "1 of the 2 that must approve did"},
		{"approved twice by one", two, spec.ApprovalApproved, votes(yes("ann", 1), yes("ann", 1)), "its votes say something else"},
		{"by somebody else", one, spec.ApprovalApproved, votes(yes("eve", 9)), `"eve" is not among them`},
		{"by somebody else too", one, spec.ApprovalApproved, votes(yes("ann", 1), yes("eve", 9)), `"eve" is not among them`},
		{"under a name", one, spec.ApprovalApproved, votes(yes("ann", 9)), `the signature is not one of "ann" over this decision`},
		{"by a name alone", one, spec.ApprovalApproved, votes(bare), `decisions of "ann" must be signed`},
		{"by nobody", one, spec.ApprovalApproved, nil, "0 of the 1 that must approve did"},
		{"rejected by somebody else", one, spec.ApprovalRejected, votes(no("eve", 9)), `"eve" is not among them`},
		{"waits with a vote of somebody else", one, spec.ApprovalPending, votes(yes("eve", 9)), `"eve" is not among them`},
		{"by the author", apart, spec.ApprovalApproved, votes(yes("bob", 2)), `"bob" started the run, and approvals.separateApprover wants somebody else`},
		{"by the author, who may", one, spec.ApprovalApproved, votes(yes("bob", 2)), ""},
	} {
		rec := spec.ApprovalRecord{RequestID: req.ID, Scope: req.Scope, Boundary: req.Boundary, RequestHash: req.RequestHash, Expires: req.Expires,
			TaskID: "t", Decision: c.decision, Votes: c.votes, Authenticated: len(c.votes) > 0}
		r := &spec.Receipt{RunID: "run", Author: "bob", Policies: []spec.NamedInput{{Name: "policy org", Digest: "d org"}}}
		if c.decision == spec.ApprovalPending {
			r.PendingApprovals = []spec.ApprovalRecord{rec}
		} else {
			r.ApprovalDecisions = []spec.ApprovalRecord{rec}
		}
		v := emptyVerdict()
		v.under(r, []spec.PolicyFile{c.policy}, nil)
		var got []string
		for _, reason := range v.Reasons {
			got = append(got, reason.Code+": "+reason.Message)
		}
		var want []string
		if c.why != "" {
			want = []string{"policy-reviewers: request " + req.ID + " is said to be " + c.decision + `, and by the reviewers of policy "org" it is not: ` + c.why}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}
