package runtime

import (
	"testing"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
)

// D3: of an agent's tasks the last one counts for the release, and that is no matter of where it stands in the file.
func TestReleaseSeesTheLastTaskOfAnAgent(t *testing.T) {
	done := func(id, text string, deps ...string) core.TaskOutcome {
		return core.TaskOutcome{Task: spec.PlanTask{ID: id, Assignee: "a", DependsOn: deps}, Status: spec.TaskCompleted, Text: text}
	}
	for _, c := range []struct {
		name  string
		tasks []core.TaskOutcome
		want  string
	}{
		{"the last stands first", []core.TaskOutcome{done("final", "reject", "draft"), done("draft", "approve")}, "reject"},
		{"it stands last", []core.TaskOutcome{done("draft", "approve"), done("final", "reject", "draft")}, "reject"},
		{"neither depends on the other", []core.TaskOutcome{done("one", "approve"), done("two", "reject")}, "reject"},
		{"through another", []core.TaskOutcome{done("final", "reject", "between"), done("between", "?", "draft"), done("draft", "approve")}, "reject"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := results(&core.Outcome{Tasks: c.tasks})["a"].Text; got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
