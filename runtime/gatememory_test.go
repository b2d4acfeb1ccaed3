package runtime

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/open-multi-agent/oma/spec"
)

// overhearing is a plan in which the second task is told of the first by the shared memory alone, and the third is given what
// the second came to.
func overhearing(t *testing.T) *spec.Plan {
	t.Helper()
	p := team(3, 1, spec.PlanRule{Rule: spec.Rule{Name: "mark", Tools: []string{"echo"}, When: "true", Action: "warn", Mark: "seen"}, Source: "team"})
	p.SharedMemory = &spec.SharedMemory{}
	p.Tasks[1].MemoryScope, p.Tasks[2].DependsOn = spec.MemoryAll, []string{"ta2"}
	p.Approvals = &spec.PlanApprovals{Quorum: 1, Dispatch: []spec.PlanRule{
		{Rule: spec.Rule{Name: "behind", When: `"seen" in marks`, Action: "warn", Reason: "marked"}, Source: "team"},
		{Rule: spec.Rule{Name: "third", When: `input.assignee == "a3"`, Action: "warn", Reason: "third"}, Source: "team"}}}
	p.Enforcement = enforcement(p)
	if err := SealPlan(p); err != nil {
		t.Fatal(err)
	}
	return p
}

// N7: marks that came by the shared memory are not on the receipt, nor by which task. An honest run passes by its log. Without
// one, what rules said that look at them cannot be held against anything, and does not pass.
func TestMarksThatCameByTheMemory(t *testing.T) {
	p := overhearing(t)
	got := evidenceOf(t, p, modelFunc(func(_ context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
		if req.Turn == 1 && req.AgentName != "a2" {
			return callTool("echo", `{"text":"x"}`), nil
		}
		return answerText("done"), nil
	}))
	gate := func(receipt []byte, log []byte) *GateVerdict {
		o := GateOptions{Plan: p, NoLog: log == nil, AllowNotApplicable: true, Known: []spec.ToolInfo{echo(nil).ToolInfo}}
		if log != nil {
			o.Log = bytes.NewReader(log)
		}
		return Gate(receipt, o)
	}
	if v := gate(got.receipt, got.log); !v.Pass {
		t.Errorf("%+v", v.Reasons)
	}
	if v := gate(got.receipt, nil); v.Pass {
		t.Error("it passes without its log")
	}
	for name, edit := range map[string]func(*spec.DecisionRecord){
		"a rule left out": func(d *spec.DecisionRecord) {
			d.Rules = slices.DeleteFunc(slices.Clone(d.Rules), func(o spec.RuleOutcome) bool { return o.Name == "third" })
		},
		"a rule twice": func(d *spec.DecisionRecord) { d.Rules = append(slices.Clone(d.Rules), d.Rules[0]) },
		"a rule of nobody's": func(d *spec.DecisionRecord) {
			d.Rules = append(slices.Clone(d.Rules), spec.RuleOutcome{Name: "x", Source: "team", Action: "warn"})
		},
		"a task of another kind": func(d *spec.DecisionRecord) { d.InputDigest = "sha256:0" },
	} {
		forged := forge(t, got.receipt, func(r *spec.Receipt) {
			edit(&r.Decisions[slices.IndexFunc(r.Decisions, func(d spec.DecisionRecord) bool { return d.Scope == spec.ScopeDispatch && d.TaskID == "ta3" })])
		})
		if v := gate(forged, got.log); v.Pass {
			t.Errorf("%s: it passes", name)
		}
	}
	// the log knows which marks there were
	forged := forge(t, got.receipt, func(r *spec.Receipt) {
		for i := range r.Decisions {
			d := &r.Decisions[i]
			d.Rules = slices.DeleteFunc(slices.Clone(d.Rules), func(o spec.RuleOutcome) bool { return o.Name == "behind" })
		}
	})
	if v := gate(forged, got.log); v.Pass {
		t.Error("a rule that the log has was left out, and it passes")
	}
}
