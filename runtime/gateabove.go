package runtime

import (
	"slices"
	"strings"

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
}

// working gives the agents that had a task, in the order of the tasks.
func working(r *spec.Receipt) (agents []string) {
	for _, t := range r.Tasks {
		if !slices.Contains(agents, t.Assignee) {
			agents = append(agents, t.Assignee)
		}
	}
	return agents
}
