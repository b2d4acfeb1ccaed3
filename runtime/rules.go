package runtime

import (
	"cmp"
	"slices"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/spec"
)

// gates compiles the rules of every source. Those from above the team file come first, so that a name that is taken is
// a problem of the team's own rule.
func (c *compiler) gates() {
	g := spec.PlanGates{Default: spec.ActionAllow, Rules: []spec.PlanRule{}}
	s := sources{plan: &g, held: map[held]bool{}}
	for _, p := range c.above() {
		g.Declared = g.Declared || len(p.Policy.Rules) > 0
		s.document(&p, aboveSource(&p), "", p.Path)
	}
	if t := c.team.Gates; t != nil {
		g.Declared, g.Default = true, cmp.Or(t.Default, g.Default)
		if t.Shell != nil {
			g.Levels = t.Shell.Levels
		}
		s.declared(c.b, t, "team", "", "gates")
	}
	for i, a := range c.team.Agents {
		if a.Gates == nil {
			continue
		}
		g.Declared = true
		s.declared(c.b, a.Gates, "agent "+a.Name, a.Name, spec.Path("agents").Index(i).Key("gates"))
	}
	c.newNames(g.Rules, 0)
	c.replace(g.Rules)
	known := c.ruledTools(g.Rules)
	set, diags := policies.Compile(ruleSet(c.plan, g, known))
	if len(known) > len(c.catalog.Tools) { // what a rule looks at is not known: that was said
		diags = slices.DeleteFunc(diags, func(d spec.Diagnostic) bool { return d.Code == "gate-dead" || d.Code == "gate-untyped" })
	}
	c.diags = append(c.diags, diags...)
	if set != nil {
		g.Rules = set.Rules()
	}
	c.plan.Gates = g
	c.plan.Policies = c.policies()
}

// above gives the policies from above the team file by name, which is an order that no command line changes.
func (c *compiler) above() []spec.PolicyFile {
	return slices.SortedFunc(slices.Values(c.b.Above), func(a, b spec.PolicyFile) int { return cmp.Compare(a.Policy.Name, b.Policy.Name) })
}

// aboveSource is what a plan and a receipt call a policy from above.
func aboveSource(p *spec.PolicyFile) string { return "policy " + p.Policy.Name }

// sources gathers rules from where they are declared.
type sources struct {
	plan *spec.PlanGates
	held map[held]bool
}

// held is a document whose rules hold for an agent. Agent is empty: for all.
type held struct{ digest, agent string }

func (s *sources) declared(b *spec.Bundle, g *spec.Gates, source, agent string, at spec.Path) {
	for _, name := range g.Packs {
		if p, ok := b.Packs[name]; ok { // the loader has said which packs there are
			s.document(&p, "pack "+name, agent, p.Path)
		}
	}
	for i, r := range g.Rules {
		s.plan.Rules = append(s.plan.Rules, spec.PlanRule{Rule: r, Source: source, Agent: agent, Path: at.Key("rules").Index(i)})
	}
	for _, f := range g.Files {
		if p, ok := b.Policies[f]; ok { // the loader has said why it could not be read
			s.document(&p, "file "+f, agent, f)
		}
	}
}

// document adds the rules of a document. One that holds for the agent already is not added again: a text given above
// the team file and named in it too counts once, as given above.
func (s *sources) document(p *spec.PolicyFile, source, agent, doc string) {
	if p.Digest != "" && (s.held[held{p.Digest, ""}] || s.held[held{p.Digest, agent}]) {
		return
	}
	s.held[held{p.Digest, agent}] = true
	for i, r := range p.Policy.Rules {
		s.plan.Rules = append(s.plan.Rules, spec.PlanRule{Rule: r, Source: source, Agent: agent, Doc: doc, Path: spec.Path("rules").Index(i)})
	}
}

// newNames keeps a denial's rule name from meaning two rules. One rule of a document may hold for several agents. The
// names of the rules before from have been looked at.
func (c *compiler) newNames(rules []spec.PlanRule, from int) {
	first := map[string]*spec.PlanRule{}
	for i := range rules {
		r := &rules[i]
		before := first[r.Name]
		if before == nil {
			first[r.Name] = r
			continue
		}
		if i < from {
			continue
		}
		if r.Doc != "" && r.Doc == before.Doc && r.Path == before.Path {
			continue
		}
		d := c.diags.Errorf("rule-name-taken", r.Path.Key("name"), "rule %q is also declared by %s", r.Name, before.Source)
		d.File, d.Hint = r.Doc, "a denial names its rule, so names must differ"
	}
}

// replace drops rules of the team for the agents that say so, where the rule lets them.
func (c *compiler) replace(rules []spec.PlanRule) {
	for i, a := range c.team.Agents {
		if a.Gates == nil {
			continue
		}
		for j, name := range a.Gates.Replace {
			at := spec.Path("agents").Index(i).Key("gates").Key("replace").Index(j)
			k := slices.IndexFunc(rules, func(r spec.PlanRule) bool { return r.Name == name })
			switch {
			case k < 0:
				c.diags.Errorf("unknown-rule", at, "no rule is called %q", name).Hint = spec.DidYouMean(name, overridable(rules))
			case rules[k].Source != "team":
				c.diags.Errorf("not-overridable", at, "rule %q is of %s, and only the team's own rules can be overridable", name, rules[k].Source).Hint = "leave it out: no agent is without this rule"
			case !rules[k].Overridable:
				c.diags.Errorf("not-overridable", at, "rule %q is not overridable", name).Hint = "add overridable: true to the rule, if an agent may be without it"
			default:
				rules[k].ReplacedFor = append(rules[k].ReplacedFor, a.Name)
				slices.Sort(rules[k].ReplacedFor)
			}
		}
	}
}

func overridable(rules []spec.PlanRule) (names []string) {
	for _, r := range rules {
		if r.Source == "team" && r.Overridable {
			names = append(names, r.Name)
		}
	}
	return names
}

// policies lists the documents of rules: packs by name, files by path, then those from above by name.
func (c *compiler) policies() (out []spec.PlanPolicy) {
	for _, name := range sortedKeys(c.b.Packs) {
		out = append(out, spec.PlanPolicy{Name: name, Source: "pack " + name, Digest: c.b.Packs[name].Digest})
	}
	for _, path := range sortedKeys(c.b.Policies) {
		p := c.b.Policies[path]
		out = append(out, spec.PlanPolicy{Name: p.Policy.Name, Source: "file " + path, Digest: p.Digest})
	}
	for _, p := range c.above() {
		out = append(out, spec.PlanPolicy{Name: p.Policy.Name, Source: aboveSource(&p), Digest: p.Digest, Limits: p.Policy.Limits})
	}
	return out
}

// ruleSet is what rules are compiled against, from a team's plan or from a saved one alike.
func ruleSet(p *spec.Plan, g spec.PlanGates, known []spec.ToolInfo) policies.RuleSet {
	in := policies.RuleSet{Declared: g.Declared, Default: g.Default, Rules: g.Rules, Known: known, Levels: g.Levels}
	if p.Governance != nil {
		in.Roles = p.Governance.RequiredRoles
	}
	for _, a := range p.Agents {
		tools := make([]spec.ToolInfo, len(a.Tools))
		for i, t := range a.Tools {
			tools[i] = t.ToolInfo
		}
		in.Agents = append(in.Agents, policies.AgentTools{Name: a.Name, Tools: tools, MaxInputBytes: a.MaxToolInputBytes})
	}
	return in
}
