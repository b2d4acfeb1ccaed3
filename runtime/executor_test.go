package runtime

import (
	"slices"
	"strings"
	"testing"

	"github.com/open-multi-agent/oma/spec"
)

// What bash is kept in keeps in nothing else: the map tells the weakest of all that an agent's tools can do.
func TestWallsHoldBashAlone(t *testing.T) {
	level := func(change func(*spec.Plan, *spec.PlanAgent)) string {
		p := &spec.Plan{Agents: []spec.PlanAgent{{Name: "a", Cwd: "work", Tools: []spec.Grant{{ToolInfo: spec.ToolInfo{Name: "bash"}}},
			ShellExecutor: &spec.ShellExecutor{Kind: "bubblewrap"}}}}
		change(p, &p.Agents[0])
		for _, c := range enforcement(p) {
			if c.Control == "containment" {
				return c.Level
			}
		}
		return ""
	}
	no := false
	for name, c := range map[string]struct {
		change func(*spec.Plan, *spec.PlanAgent)
		want   string
	}{
		"bash":                         {func(*spec.Plan, *spec.PlanAgent) {}, spec.Enforced},
		"landlock":                     {func(_ *spec.Plan, a *spec.PlanAgent) { a.ShellExecutor.Kind = "landlock" }, spec.Observed},
		"a folder of others":           {func(_ *spec.Plan, a *spec.PlanAgent) { a.ShellExecutor.Write = []string{"cache", "/abs/../../x"} }, spec.Observed},
		"a folder of the team's alone": {func(_ *spec.Plan, a *spec.PlanAgent) { a.ShellExecutor.Write = []string{"cache/../out"} }, spec.Enforced},
		"a folder above":               {func(_ *spec.Plan, a *spec.PlanAgent) { a.ShellExecutor.Write = []string{"x/../.."} }, spec.Observed},
		"not required":                 {func(_ *spec.Plan, a *spec.PlanAgent) { a.ShellExecutor.Required = &no }, spec.NotEnforceable},
		"file tools anywhere":          {func(_ *spec.Plan, a *spec.PlanAgent) { a.Containment = "none" }, spec.NotEnforceable},
		"a command beside": {func(p *spec.Plan, a *spec.PlanAgent) {
			p.CustomTools = map[string]spec.CustomTool{"esc": {Command: []string{"sh"}}}
			a.Tools = append(a.Tools, spec.Grant{ToolInfo: spec.ToolInfo{Name: "esc"}})
		}, spec.NotEnforceable},
	} {
		if got := level(c.change); got != c.want {
			t.Errorf("%s: containment %s, want %s", name, got, c.want)
		}
	}
}

// Only the machine knows where folders really lie: a receipt may say less than its plan of what bash is kept in, never more, and
// of nothing else.
func TestReceiptKeepsToItsMap(t *testing.T) {
	p := &spec.Plan{Agents: []spec.PlanAgent{{Name: "a", ShellExecutor: &spec.ShellExecutor{Kind: "landlock"}}, {Name: "b"}},
		Enforcement: []spec.Control{{Agent: "a", Control: "evidence", Level: spec.Observed}, {Agent: "b", Control: "evidence", Level: spec.Observed}}}
	for name, c := range map[string]struct {
		edit func([]spec.Control) []spec.Control
		want bool
	}{
		"the same":           {func(c []spec.Control) []spec.Control { return c }, true},
		"another mechanism":  {func(c []spec.Control) []spec.Control { c[1].Mechanism = "x"; return c }, true},
		"less":               {func(c []spec.Control) []spec.Control { c[0].Level = spec.NotEnforceable; return c }, true},
		"more":               {func(c []spec.Control) []spec.Control { c[0].Level = spec.Enforced; return c }, false},
		"no level":           {func(c []spec.Control) []spec.Control { c[0].Level = ""; return c }, false},
		"less without walls": {func(c []spec.Control) []spec.Control { c[1].Level = spec.NotEnforceable; return c }, false},
		"of another agent":   {func(c []spec.Control) []spec.Control { c[0].Agent = "b"; return c }, false},
		"another control":    {func(c []spec.Control) []spec.Control { c[0].Control = "containment"; return c }, false},
		"one left out":       {func(c []spec.Control) []spec.Control { return c[:1] }, false},
	} {
		if got := keptTo(p, c.edit(slices.Clone(p.Enforcement))); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Where a policy bounds the programs that a team may start, the team does not decide what they load.
func TestWhatDecidesAProgram(t *testing.T) {
	p := &spec.Plan{Agents: []spec.PlanAgent{{Name: "a", Backend: &spec.Backend{Kind: "process", Command: "git", Env: map[string]spec.Variable{
		"PATH": {Value: "/x"}, "LD_PRELOAD": {Value: "/x"}, "MODE": {Value: "x"}}}}}}
	b := bounds{plan: p}
	b.hold(&spec.Policy{Name: "org", Limits: &spec.Limits{Commands: &[]string{"git"}}})
	var got []string
	for _, d := range b.diags {
		got = append(got, d.Code+" "+d.Message)
	}
	if text := strings.Join(got, "\n"); len(got) != 2 || !strings.Contains(text, "LD_PRELOAD") || !strings.Contains(text, "PATH") {
		t.Errorf("%q", got)
	}
}
