package policies

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

func example(tool, input string) spec.CallExample {
	return spec.CallExample{ToolName: tool, AgentName: "a", Input: []byte(input)}
}

// seen writes conditions as "line:col text [true false]".
func seen(all []Condition) string {
	var b strings.Builder
	for _, c := range all {
		fmt.Fprintf(&b, "%d:%d %s", c.At.Line, c.At.Col, c.Text)
		if c.True {
			b.WriteString(" true")
		}
		if c.False {
			b.WriteString(" false")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestCoverTellsWhatEachConditionWas(t *testing.T) {
	matching := []spec.CallExample{example("bash", `{"command":"rm -rf x"}`)}
	ignored := []spec.CallExample{example("bash", `{"command":"ls"}`)}
	for _, c := range []struct{ name, when, want string }{
		{"one condition", `input.command.startsWith("rm")`, "1:1 input.command.startsWith(\"rm\") true false\n"},
		{"and leaves out what follows false", `input.command == "ls" && consequential`,
			"1:1 input.command == \"ls\" true false\n1:26 consequential true\n"},
		{"or leaves out what follows true", `input.command != "" || consequential`,
			"1:1 input.command != \"\" true\n1:24 consequential\n"},
		{"not, and a choice", `!(role == "reviewer") ? input.command.contains("-rf") : consequential`,
			"1:3 role == \"reviewer\" false\n1:25 input.command.contains(\"-rf\") true false\n1:57 consequential\n"},
		{"has, a function and a size", `has(input.timeout) || within(input.command, "x") || size(input.command) > 3`,
			"1:1 has(input.timeout) false\n1:23 within(input.command, \"x\") false\n1:53 size(input.command) > 3 true false\n"},
		{"a loop is one condition", "history.exists(c, c.toolName == \"bash\" || c.action == \"deny\") ||\n  input.command.startsWith(\"rm\")",
			"1:1 history.exists(c, c.toolName == \"bash\" || c.action == \"deny\") false\n2:3 input.command.startsWith(\"rm\") true false\n"},
		{"a list", `"rm" in [input.command, "cp"] || 'é' == input.command || toolName == "bash"`,
			"1:1 \"rm\" in [input.command, \"cp\"] false\n1:34 \"é\" == input.command false\n1:58 toolName == \"bash\" true\n"},
		{"nothing to try", `true`, ""},
		{"shell facts", `shell.risk == "high" && shell.commands.exists(c, c.name == "rm")`,
			""},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := team([]spec.ToolInfo{bash}, spec.Rule{When: c.when, Tools: []string{"bash"}, Examples: &spec.RuleExamples{Matches: matching, Ignores: ignored}})
			all, ds := Cover(t.Context(), in, nil)
			if len(all) != 1 {
				t.Fatalf("no coverage:\n%s", show(ds))
			}
			if all[0].Matches != 1 || all[0].Ignores != 1 {
				t.Errorf("%d matches and %d ignores", all[0].Matches, all[0].Ignores)
			}
			if c.name == "shell facts" { // which levels there are is for the classifier to say
				if len(all[0].Conditions) != 2 || !all[0].Conditions[0].False && !all[0].Conditions[0].True {
					t.Errorf("got %s", seen(all[0].Conditions))
				}
				return
			}
			if diff := cmp.Diff(c.want, seen(all[0].Conditions)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Examples of another tool, of another agent and of no tool at all are no calls that the rule looks at.
func TestCoverCountsOnlyCallsTheRuleLooksAt(t *testing.T) {
	rule := spec.Rule{When: `input.path == "a"`, Tools: []string{"file_read"}, Examples: &spec.RuleExamples{
		Ignores: []spec.CallExample{example("bash", `{"command":"a"}`), example("file_read", `[]`), example("nothing", `{}`)}}}
	all, _ := Cover(t.Context(), team(everyTool(), rule), []spec.CallExample{example("file_read", `{"path":"a"}`), example("file_edit", `{"path":"b","old_string":""}`)})
	if n := all[0].Ignores; n != 2 { // nobody has the third tool, so it was not tried
		t.Errorf("%d examples are counted, want 2", n)
	}
	if diff := cmp.Diff("1:1 input.path == \"a\" true\n", seen(all[0].Conditions)); diff != "" {
		t.Error(diff)
	}
}

func TestCoverOfRulesThatDoNotCompile(t *testing.T) {
	all, ds := Cover(t.Context(), team(everyTool(), spec.Rule{When: `input.pth == "a"`}), nil)
	if all != nil || !ds.HasErrors(false) {
		t.Errorf("got %v, %v", all, ds)
	}
}
