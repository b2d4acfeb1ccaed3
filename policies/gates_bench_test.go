package policies

import (
	"context"
	"fmt"
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
	k := readRule(b, c, r)
	for _, name := range []string{"bash", "file_read"} {
		t := c.namedTool(r, name)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				k.check(&k.when, t)
			}
		})
	}
}

// BenchmarkOpen is what a compilation costs before the first rule. The first one in a process also builds CEL's own
// environment, which a benchmark cannot show.
func BenchmarkOpen(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		c := &compiler{set: &Set{}}
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

// BenchmarkDecideAfter is a judgement after many calls: by rules that do not ask for them, by one that does, and by one
// that asks for a mark. None may grow with what came before.
func BenchmarkDecideAfter(b *testing.B) {
	asking := team([]spec.ToolInfo{bash}, spec.Rule{When: `history.exists(c, c.toolName == "bash" && c.input.command == "x")`, Action: spec.ActionWarn})
	marked := team([]spec.ToolInfo{bash}, spec.Rule{Name: "sets", When: `input.command == "x"`, Action: spec.ActionWarn, Mark: "m"}, spec.Rule{When: `"m" in marks`})
	for _, bb := range []struct {
		name string
		in   RuleSet
	}{{"ten", tenRuleSet()}, {"history", asking}, {"marks", marked}} {
		s, ds := Compile(bb.in)
		if s == nil {
			b.Fatal(show(ds))
		}
		for _, n := range []int{0, 64, 10_000} {
			r := command("go test ./...")
			r.TaskID = "t1"
			for range n {
				r.History = append(r.History, spec.HistoryCall{ToolName: "bash", Input: []byte(`{"command":"go test ./..."}`)})
			}
			b.Run(fmt.Sprintf("%s/%d", bb.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if d := s.Decide(context.Background(), r); !d.Allowed() {
						b.Fatal(d)
					}
				}
			})
		}
	}
}

// BenchmarkDecideShell is what the facts of a usual command cost: once for any number of rules.
func BenchmarkDecideShell(b *testing.B) {
	for _, n := range []int{1, 10} {
		var rules []spec.Rule
		for i := range n {
			rules = append(rules, spec.Rule{Name: fmt.Sprint("r", i), When: `shell.risk == "high" || shell.commands.exists(c, c.name == "rm")`})
		}
		s, ds := Compile(team([]spec.ToolInfo{bash}, rules...))
		if s == nil {
			b.Fatal(show(ds))
		}
		r := command("git status && ls -la src | head -5")
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d := s.Decide(context.Background(), r); !d.Allowed() {
					b.Fatal(d)
				}
			}
		})
	}
}
