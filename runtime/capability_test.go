package runtime

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

// What can permit a call is what the judgement itself takes: a rule of the team, of this agent, that is not replaced.
func TestCapabilityOf(t *testing.T) {
	tool := func(name string) spec.ToolInfo { return spec.ToolInfo{Name: name, Consequential: name == "bash"} }
	rule := func(name, source, agent, action string, not ...string) spec.PlanRule {
		return spec.PlanRule{Rule: spec.Rule{Name: name, Action: action}, Source: source, Agent: agent, ReplacedFor: not,
			AppliesTo: []spec.RuleCost{{Tool: "bash", Cost: 7}}}
	}
	plan := &spec.Plan{Agents: []spec.PlanAgent{{Name: "ann", Provider: "p", Tools: []spec.Grant{{ToolInfo: tool("bash"), GrantedBy: "tools"}, {ToolInfo: tool("grep"), GrantedBy: "tools"}},
		Removed: []spec.Removal{{Name: "glob", RemovedBy: "disallowedTools"}}}, {Name: "bob"}},
		Providers: map[string]spec.PlanProvider{"p": {Provider: spec.Provider{Kind: "ollama"}}},
		Tasks:     []spec.PlanTask{{ID: "t", Assignee: "ann", Role: "ann"}},
		Gates: spec.PlanGates{Declared: true, Default: spec.ActionDeny, Rules: []spec.PlanRule{rule("ours", "team", "", "allow"), rule("pack", "pack p", "", "allow"),
			rule("hers", "agent ann", "ann", "allow"), rule("his", "agent bob", "bob", "deny"), rule("gone", "team", "", "allow", "ann"), rule("no", "policy o", "", "deny"),
			{Rule: spec.Rule{Name: "always", Action: "warn"}, Source: "team", AppliesTo: []spec.RuleCost{{Tool: "bash"}}},
			{Rule: spec.Rule{Name: "elsewhere", Action: "warn", Tools: []string{"gr*"}}, Source: "team", ReplacedFor: []string{"ann"}}}},
		Enforcement: []spec.Control{{Agent: "ann", Control: "gates"}, {Agent: "bob", Control: "gates"}}}
	c := CapabilityOf(plan, "ann", []spec.ToolInfo{tool("bash"), tool("grep"), tool("glob"), tool("file_read")})
	var got []string
	for _, a := range c.Tools {
		got = append(got, fmt.Sprint(a.Name, " ", a.Granted, " ", a.By, " ", a.Default, " ", a.Permits))
	}
	want := []string{"bash true tools deny [rule ours rule hers]", "grep true tools deny []", "glob false removed by disallowedTools  []", "file_read false nothing grants it  []",
		"delegate_to_agent false nothing grants it  []"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var rules []string
	for _, r := range c.Tools[0].Rules {
		rules = append(rules, fmt.Sprint(r.Name, r.Cost, r.Replaced))
	}
	if diff := cmp.Diff([]string{"ours7 false", "pack7 false", "hers7 false", "gone7 true", "no7 false", "always0 false"}, rules); diff != "" {
		t.Error(diff)
	}
	if got := c.Tools[1].Rules; len(got) != 2 || got[1].Name != "elsewhere" || !got[1].Replaced {
		t.Errorf("grep: %+v", got)
	}
	if c.Cwd != spec.DefaultCwd || c.Containment != "cwd" || len(c.Enforcement) != 1 || len(c.Tasks) != 1 || c.Kind != "ollama" {
		t.Errorf("got %+v", c)
	}
	if CapabilityOf(plan, "eve", nil) != nil {
		t.Error("an agent that there is not has a view")
	}
	plan.Gates.Declared = false
	if a := CapabilityOf(plan, "ann", []spec.ToolInfo{tool("bash")}).Tools[0]; a.Default != "ungated" || len(a.Rules) != 0 {
		t.Errorf("without gates: %+v", a)
	}
}
