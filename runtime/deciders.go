package runtime

import (
	"fmt"
	"slices"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/keys"
)

// deciders are who may decide by all policies from above together. The zero value bounds nothing.
type deciders struct {
	reviewers []spec.Reviewer // whom every policy names that names any, by id and key; nil: none does
	quorum    int
	separate  bool
	// Whose word the last one on each was. nil: nobody's.
	names, counts, separates *spec.PolicyFile
}

// decidersOf narrows from policy to policy. apart is one that leaves nobody of those before it; nil: there is none.
func decidersOf(above []spec.PolicyFile) (d deciders, apart *spec.PolicyFile) {
	for i := range above {
		p := &above[i]
		l := p.Policy.Limits
		if l == nil || len(l.Reviewers) == 0 {
			continue
		}
		left := l.Reviewers
		if d.names != nil {
			left = common(d.reviewers, l.Reviewers)
		}
		if len(left) == 0 {
			return deciders{names: d.names}, p
		}
		if d.names == nil || len(left) < len(d.reviewers) {
			d.reviewers, d.names = left, p
		}
		if l.Quorum > d.quorum {
			d.quorum, d.counts = l.Quorum, p
		}
		if l.SeparateApprover && !d.separate {
			d.separate, d.separates = true, p
		}
	}
	return d, nil
}

// common gives the reviewers of one list that are in another.
func common(some, others []spec.Reviewer) (both []spec.Reviewer) {
	for _, r := range some {
		if why, _ := outside(&r, others); why == "" {
			both = append(both, r)
		}
	}
	return both
}

// outside says why a reviewer is none of others, and what to write. Empty: id and key are those of one.
func outside(r *spec.Reviewer, others []spec.Reviewer) (why, hint string) {
	i := slices.IndexFunc(others, func(o spec.Reviewer) bool { return o.ID == r.ID })
	if i < 0 {
		return "is not among the reviewers", spec.DidYouMean(r.ID, ids(others))
	}
	got, want := keyOf(r), keyOf(&others[i])
	switch {
	case r.PublicKey == "":
		why = "has no key, and not the one"
	case got == "":
		why = "has a key that cannot be read, and not the one"
	case got != want:
		why = fmt.Sprintf("has the key %s, and not %s, the one", short(got), short(want))
	default:
		return "", ""
	}
	return why, "write publicKey as the policy has it"
}

// keyOf gives the id of a reviewer's key. Empty: it cannot be read, so it is nobody's.
func keyOf(r *spec.Reviewer) string {
	key, err := keys.ReadPublic([]byte(r.PublicKey))
	if err != nil {
		return ""
	}
	return key.ID()
}

// deciders asks those policies whose limits can be met; the others have problems of their own.
func (c *compiler) deciders() deciders {
	above := slices.DeleteFunc(c.above(), func(p spec.PolicyFile) bool { return peopleProblems(p.Policy.Limits) != nil })
	d, apart := decidersOf(above)
	if apart != nil {
		diag := c.diags.Errorf("policy-reviewers", "limits.reviewers", "policies %q and %q have no reviewer in common, so nobody could decide", d.names.Policy.Name, apart.Policy.Name)
		diag.File, diag.Hint = apart.Path, "name somebody in both, by the same id and publicKey"
	}
	return d
}

// reachable refuses a policy's quorum that those who are left cannot reach.
func (c *compiler) reachable(d *deciders, a *spec.Approvals) {
	n := len(a.Reviewers)
	if d.quorum <= n || a.Quorum > n { // there is another finding about the team's own
		return
	}
	diag := c.diags.Errorf("policy-reviewers", "approvals.reviewers", "policy %q wants %d approvals, and only %d can decide (limits.quorum)", d.counts.Policy.Name, d.quorum, n)
	diag.Hint = "name more of the policy's reviewers, or none: all of them decide then"
	if c.team.Approvals == nil || len(c.team.Approvals.Reviewers) == 0 {
		diag.File, diag.Path, diag.Hint = d.counts.Path, "limits.quorum", "let the policies have more reviewers in common, or lower the quorum"
	}
}

// people asks that nobody decides but those whom a policy names, and no fewer of them than it wants. A compiled team has
// the policy's where it names none, or a problem with that already.
func (b *bounds) people(p *spec.Policy) {
	l, a, at := p.Limits, b.plan.Approvals, spec.Path("approvals")
	if len(l.Reviewers) == 0 || b.team != nil && (a == nil || len(a.Reviewers) == 0) {
		return
	}
	if a == nil || len(a.Reviewers) == 0 {
		b.diags.Errorf("policy-reviewers", at, "policy %q says who may decide, and the plan lets anybody (limits.reviewers)", p.Name)
		return
	}
	for i := range a.Reviewers {
		r := &a.Reviewers[i]
		if why, hint := outside(r, l.Reviewers); why != "" {
			b.diags.Errorf("policy-reviewers", at.Key("reviewers").Index(i), "reviewer %q %s of policy %q (limits.reviewers)", r.ID, why, p.Name).Hint = hint + "; without reviewers all of the policy's decide"
		}
	}
	if a.Quorum < l.Quorum {
		b.diags.Errorf("policy-reviewers", at.Key("quorum"), "policy %q wants %d approvals, and the plan takes %d (limits.quorum)", p.Name, l.Quorum, a.Quorum)
	}
	if l.SeparateApprover && !a.SeparateApprover {
		b.diags.Errorf("policy-reviewers", at.Key("separateApprover"), "policy %q takes no decision of whoever starts the run, and the plan does (limits.separateApprover)", p.Name)
	}
}

func ids(reviewers []spec.Reviewer) (out []string) {
	for _, r := range reviewers {
		out = append(out, r.ID)
	}
	return out
}

// peopleProblems finds what would keep a policy's reviewers from ever deciding, or prove nothing. nil limits have none.
func peopleProblems(l *spec.Limits) (ds spec.Diagnostics) {
	const at = spec.Path("limits")
	switch {
	case l == nil:
		return nil
	case len(l.Reviewers) > 0:
		for i, r := range l.Reviewers {
			if r.PublicKey == "" {
				ds.Errorf("bad-limit", at.Key("reviewers").Index(i), "%q has no key, and a name alone proves nothing", r.ID).Hint = "add publicKey"
			}
		}
		if ds != nil {
			return ds
		}
		return policies.CheckReviewers(&spec.Approvals{Reviewers: l.Reviewers, Quorum: l.Quorum, SeparateApprover: l.SeparateApprover}, at)
	}
	alone := func(key string) {
		d := ds.Errorf("bad-limit", at.Key(key), "%q stands beside no reviewers, and a team can make up as many as it wants", key)
		d.OnKey, d.Hint = true, "add reviewers with a publicKey each, or leave it out"
	}
	if l.Quorum > 0 {
		alone("quorum")
	}
	if l.SeparateApprover {
		alone("separateApprover")
	}
	return ds
}
