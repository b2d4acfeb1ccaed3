package policies

import (
	"context"
	"testing"

	"github.com/open-multi-agent/oma/spec"
)

var tenRules = []string{
	`input.command.startsWith("rm")`,
	`toolName == "bash" && input.command.matches("^sudo ")`,
	`input.command.contains("--force")`,
	`has(input.cwd) && !within(input.cwd, "src")`,
	`toolName in ["bash", "file_edit"] && agentName == "b"`,
	`role == "reviewer"`,
	`consequential && taskId == ""`,
	`has(input.timeout) && input.timeout > 100000`,
	`input.?cwd.orValue(".").startsWith("/etc")`,
	`input.command.matches("(?i)\\b(dd|mkfs)\\b")`,
}

func tenRuleSet() RuleSet {
	var rules []spec.Rule
	for _, x := range tenRules {
		rules = append(rules, spec.Rule{When: x})
	}
	return team([]spec.ToolInfo{bash}, rules...)
}

func BenchmarkDecideTenRules(b *testing.B) {
	s, ds := Compile(tenRuleSet())
	if s == nil {
		b.Fatal(show(ds))
	}
	r := Request{ToolName: "bash", AgentName: "a", TaskID: "t1", RunID: "r1", Input: map[string]any{"command": "go test ./..."}}
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if d := s.Decide(ctx, r); !d.Allowed() {
			b.Fatal(d)
		}
	}
}

func BenchmarkDecideUntypedRule(b *testing.B) {
	s, ds := Compile(team([]spec.ToolInfo{bash}, spec.Rule{When: `dyn(input).command == "rm"`}))
	if s == nil {
		b.Fatal(show(ds))
	}
	r := Request{ToolName: "bash", AgentName: "a", Input: map[string]any{"command": "go test ./..."}}
	b.ReportAllocs()
	for b.Loop() {
		s.Decide(context.Background(), r)
	}
}

func BenchmarkCheckRuleForTool(b *testing.B) {
	c := openCompiler(b)
	r := &spec.PlanRule{Rule: spec.Rule{Name: "r", When: `toolName == "bash" && input.command.matches("^sudo ")`}}
	loose, iss := c.loose.Compile(r.When)
	if iss.Err() != nil {
		b.Fatal(iss.Err())
	}
	price := &pricing{limit: c.limit, steps: map[string]uint64{"^sudo ": 10}}
	for _, name := range []string{"bash", "file_read"} {
		t := c.namedTool(r, name)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.check(r, loose, t, price)
			}
		})
	}
}

// BenchmarkOpen is what a compilation costs before the first rule. The first one in a process also builds CEL's own
// environment, which a benchmark cannot show.
func BenchmarkOpen(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		c := &compiler{}
		if err := c.open(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompileTenRules(b *testing.B) {
	b.ReportAllocs()
	in := tenRuleSet()
	for b.Loop() {
		if s, ds := Compile(in); s == nil {
			b.Fatal(show(ds))
		}
	}
}

func BenchmarkCompileNoRules(b *testing.B) {
	b.ReportAllocs()
	in := team(everyTool())
	for b.Loop() {
		Compile(in)
	}
}
