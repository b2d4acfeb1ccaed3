package runtime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/spec"
)

// under holds the receipt against policies from above the team file: the run must have been under each of them, and what
// they limit must be so. Their rules judged the calls of the run; nothing here judges a call again. g is the declaration
// that the verdict is derived from.
func (v *GateVerdict) under(r *spec.Receipt, above []spec.PolicyFile, g *spec.Governance) {
	for _, p := range above {
		source := aboveSource(&p)
		v.Against = append(v.Against, source)
		if !slices.Contains(r.Policies, spec.NamedInput{Name: source, Digest: p.Digest}) {
			v.Bound, v.Yardstick = false, YardstickDiffers
			v.failHint("policy-missing", hintPolicy, "the run was not under policy %q of %s%s", p.Policy.Name, short(p.Digest), otherVersion(r, source))
			continue
		}
		if i := slices.IndexFunc(r.Decisions, ungated); i >= 0 && len(p.Policy.Rules) > 0 {
			v.broken(hintReceipt, "policy %q gates every call, and decision %d met no gate", p.Policy.Name, i+1)
		}
		for _, rule := range p.Policy.Rules {
			if !slices.ContainsFunc(r.Rules, func(t spec.RuleTotal) bool { return t.Name == rule.Name && t.Source == source }) {
				v.broken(hintReceipt, "the receipt lists policy %q and counts nothing of its rule %q", p.Policy.Name, rule.Name)
			}
		}
		v.aboveRules(r, source, p.Policy.Rules)
		if p.Policy.Limits != nil {
			v.limits(r, p.Policy, g)
		}
	}
}

// ungated says that no rule was asked about a call that came as far as the rules.
func ungated(d spec.DecisionRecord) bool { return d.Refused == "" && !d.Gated }

// otherVersion says that the run was under another policy of the same name.
func otherVersion(r *spec.Receipt, source string) string {
	for _, in := range r.Policies {
		if in.Name == source {
			return ", but under " + short(in.Digest) + " of the same name"
		}
	}
	return ""
}

// limits holds the facts of a receipt against the limits that leave a trace on it.
func (v *GateVerdict) limits(r *spec.Receipt, p *spec.Policy, g *spec.Governance) {
	l := p.Limits
	if plain(Narrow(r.Budgets.Effective, ceilings(l))) != plain(r.Budgets.Effective) {
		v.failHint("policy-budget", hintUnder, "the run had higher ceilings than policy %q allows", p.Name)
	}
	if len(l.RequiredRoles) > 0 && (g == nil || g.GovernanceIntent != spec.IntentRequired) {
		v.failHint("policy-roles", hintUnder, "policy %q requires the roles %s, and the run required none", p.Name, strings.Join(l.RequiredRoles, ", "))
	} else {
		for _, role := range l.RequiredRoles {
			if !slices.Contains(g.RequiredRoles, role) {
				v.failHint("policy-roles", hintUnder, "policy %q requires role %q, and the run did not", p.Name, role)
			}
		}
	}
	for _, control := range l.RequireEnforced {
		for _, agent := range working(r) {
			if !slices.ContainsFunc(r.Enforcement, func(c spec.Control) bool {
				return c.Agent == agent && c.Control == control && c.Level == spec.Enforced
			}) {
				v.failHint("policy-enforced", hintUnder, "policy %q requires control %s to be enforced, and for agent %q it was not", p.Name, control, agent)
			}
		}
	}
	if len(l.Reviewers) > 0 {
		v.voted(r, p)
	}
}

// voted holds what people decided against those who may decide by a policy: every signature is checked again. A team may
// ask for more approvals than the policy does, never for fewer.
func (v *GateVerdict) voted(r *spec.Receipt, p *spec.Policy) {
	l := p.Limits
	for _, a := range slices.Concat(r.ApprovalDecisions, r.PendingApprovals) {
		who := spec.PlanApprovals{Reviewers: l.Reviewers, Quorum: max(l.Quorum, leastQuorum(&a), 1), SeparateApprover: l.SeparateApprover}
		req := requestOf(r, &a)
		if plain(concludedAgain(&who, r.Author, &req, &a)) == plain(a) {
			continue
		}
		v.failHint("policy-reviewers", hintUnder, "request %s is said to be %s, and by the reviewers of policy %q it is not: %s", a.RequestID, a.Decision, p.Name,
			refused(&who, r.Author, &req, a.Votes))
	}
}

// refused says of the first vote that does not count why.
func refused(who *spec.PlanApprovals, author string, req *spec.ApprovalRequest, votes []spec.ApprovalVote) string {
	for i := range votes {
		name := votes[i].Reviewer
		if !slices.Contains(ids(who.Reviewers), name) {
			return fmt.Sprintf("%q is not among them", name)
		}
		if err := policies.VoteRefused(who, author, req, &votes[i]); err != nil {
			return err.Error()
		}
	}
	if n := len(votes); n < who.Quorum {
		return fmt.Sprintf("%d of the %d that must approve did", n, who.Quorum)
	}
	return "its votes say something else"
}

// leastQuorum is the lowest quorum by which a request can have come to what its record says.
func leastQuorum(a *spec.ApprovalRecord) int {
	n := 0
	for _, v := range a.Votes {
		if v.Verdict == spec.VerdictApprove {
			n++
		}
	}
	if a.Decision != spec.ApprovalApproved {
		n++ // they were not enough
	}
	return n
}

// working gives the agents that had a task, in the order of the tasks.
func working(r *spec.Receipt) (agents []string) {
	for _, t := range r.Work() {
		if !slices.Contains(agents, t.Assignee) {
			agents = append(agents, t.Assignee)
		}
	}
	return agents
}
