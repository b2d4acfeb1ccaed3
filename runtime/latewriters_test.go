package runtime

import (
	"testing"

	"github.com/open-multi-agent/oma/spec"
)

// A change of a folder is explained by a task that may write there and has not ended for certain when the folder is looked
// at: the task itself, one beside it and one behind it, but none that it depends on, however far.
func TestLaterWriters(t *testing.T) {
	for _, c := range []struct {
		name   string
		writer string // the one task that may write
		want   bool
	}{
		{"long before it", "first", false},
		{"before it", "second", false},
		{"itself", "looked", true},
		{"behind it", "behind", true},
		{"beside it", "beside", true},
		{"nobody", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &spec.Plan{Agents: []spec.PlanAgent{{Name: "reads", Cwd: "w"}, {Name: "writes", Cwd: "w", Tools: []spec.Grant{{ToolInfo: spec.ToolInfo{Name: "x", Consequential: true}}}}}}
			for _, task := range []spec.PlanTask{{ID: "behind", DependsOn: []string{"looked"}}, {ID: "looked", DependsOn: []string{"second"}}, {ID: "beside"},
				{ID: "second", DependsOn: []string{"first", "first"}}, {ID: "first"}} {
				if task.Assignee = "reads"; task.ID == c.writer {
					task.Assignee = "writes"
				}
				p.Tasks = append(p.Tasks, task)
			}
			trees := []spec.Tree{{Before: "looked", Cwd: "w"}, {Before: "first", Cwd: "w", LaterWriter: true}, {Before: "looked", Cwd: "w"}}
			markWriters(p, trees)
			if trees[0].LaterWriter != c.want || trees[2].LaterWriter != c.want || trees[1].LaterWriter != (c.writer != "") {
				t.Errorf("%+v", trees)
			}
		})
	}
}
