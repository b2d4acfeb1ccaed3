package runtime

import (
	"maps"
	"slices"

	"github.com/open-multi-agent/oma/spec"
)

// withoutExamples gives a bundle whose rules have none, so that it compiles where only they do not hold.
func withoutExamples(b *spec.Bundle) *spec.Bundle {
	out, team := *b, *b.Team
	out.Team = &team
	team.Gates = bareGates(team.Gates)
	if a := team.Approvals; a != nil {
		bare := *a
		bare.Plan, bare.Dispatch = bareRules(a.Plan), bareRules(a.Dispatch)
		team.Approvals = &bare
	}
	team.Agents = slices.Clone(team.Agents)
	for i := range team.Agents {
		team.Agents[i].Gates = bareGates(team.Agents[i].Gates)
	}
	out.Policies, out.Packs, out.Above = maps.Clone(b.Policies), maps.Clone(b.Packs), slices.Clone(b.Above)
	for name, p := range out.Policies {
		out.Policies[name] = bareFile(p)
	}
	for name, p := range out.Packs {
		out.Packs[name] = bareFile(p)
	}
	for i, p := range out.Above {
		out.Above[i] = bareFile(p)
	}
	return &out
}

func bareGates(g *spec.Gates) *spec.Gates {
	if g == nil {
		return nil
	}
	out := *g
	out.Rules = bareRules(g.Rules)
	return &out
}

func bareFile(f spec.PolicyFile) spec.PolicyFile {
	p := *f.Policy
	p.Rules = bareRules(p.Rules)
	f.Policy = &p
	return f
}

func bareRules(rules []spec.Rule) []spec.Rule {
	out := slices.Clone(rules)
	for i := range out {
		out[i].Examples = nil
	}
	return out
}

// withExamples gives compiled rules the examples that they are written with.
func withExamples(b *spec.Bundle, rules []spec.PlanRule) []spec.PlanRule {
	type place struct {
		doc string
		at  spec.Path
	}
	written := map[place]*spec.RuleExamples{}
	note := func(doc string, at spec.Path, rules []spec.Rule) {
		for i, r := range rules {
			written[place{doc, at.Index(i)}] = r.Examples
		}
	}
	if g := b.Team.Gates; g != nil {
		note("", "gates.rules", g.Rules)
	}
	if a := b.Team.Approvals; a != nil {
		note("", "approvals.plan", a.Plan)
		note("", "approvals.dispatch", a.Dispatch)
	}
	for i, a := range b.Team.Agents {
		if a.Gates != nil {
			note("", spec.Path("agents").Index(i).Key("gates").Key("rules"), a.Gates.Rules)
		}
	}
	for name, p := range b.Policies {
		note(name, "rules", p.Policy.Rules)
	}
	for _, p := range b.Packs {
		note(p.Path, "rules", p.Policy.Rules)
	}
	for _, p := range b.Above {
		note(p.Path, "rules", p.Policy.Rules)
	}
	out := slices.Clone(rules)
	for i := range out {
		out[i].Examples = written[place{out[i].Doc, out[i].Path}]
	}
	return out
}
