package core_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
)

// N7: marks go with the text. They are on the task that set them, on its next calls of the same turn too, and on every
// task that is given its output, however far; never on a task beside it.
func TestMarksFollowTheText(t *testing.T) {
	runs, seen := 0, map[string][]string{}
	every(t, 3000, func() core.Input { return core.Input{Plan: plan(2, "a b c d", "a>b", "b>c")} }, func(e *core.Effect) core.Result {
		switch {
		case e.Kind == core.Judge:
			seen[e.TaskID] = append(seen[e.TaskID], strings.Join(e.Call.Situation.Marks, " "))
			res := allowAll(e)
			if e.Call.Name == "secret" {
				res.Judged.Marks = []string{"m-" + e.TaskID}
			}
			return res
		case e.Kind == core.ToolCall:
			return core.Result{Tool: &spec.ToolResult{Text: "read"}}
		case e.Kind == core.ModelCall && e.Request.Turn == 1 && (e.TaskID == "a" || e.TaskID == "d"):
			return tools(&spec.Usage{}, "look", "secret", "look")
		case e.Kind == core.ModelCall && e.Request.Turn == 1:
			return tools(&spec.Usage{}, "look")
		}
		return text("done", &spec.Usage{})
	}, func(*orders, *core.Outcome) {
		runs++
		want := map[string][]string{"a": {"", "", "m-a"}, "b": {"m-a"}, "c": {"m-a"}, "d": {"", "", "m-d"}}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Fatal(diff)
		}
		clear(seen)
	})
	if runs < 10 {
		t.Errorf("%d orders", runs)
	}
}

// History is of one task: what was judged before, in the model's order, the last ones only, without what never reached
// the gate. What is left of a ceiling is what nobody used.
func TestSituationOfACall(t *testing.T) {
	p := plan(1, "a b", "a>b")
	p.Agents[0].MaxTurns, p.Agents[1].MaxTurns = 40, 40
	var got []spec.Situation
	n := 0
	world := func(e *core.Effect) core.Result {
		switch {
		case e.Kind == core.Judge:
			if e.TaskID == "a" {
				got = append(got, e.Call.Situation)
			} else if len(e.Call.Situation.History) != 0 {
				t.Errorf("the history of another task: %v", e.Call.Situation.History)
			}
			n++
			if n == 2 {
				return core.Result{Judged: &core.Judged{Decision: spec.Decision{Refused: "invalid-input"}}}
			}
			res := allowAll(e)
			res.Judged.Canonical = fmt.Appendf(nil, `{"n":%d}`, n)
			if n == 3 {
				res.Judged.GateAction = "deny"
			}
			return res
		case e.Kind == core.ToolCall:
			return core.Result{Tool: &spec.ToolResult{Text: "read"}}
		case e.Kind == core.ModelCall && e.TaskID == "a" && e.Request.Turn <= 25:
			return tools(&spec.Usage{Input: 2, Output: 1}, "x", "y", "z")
		case e.Kind == core.ModelCall && e.TaskID == "b" && e.Request.Turn == 1:
			return tools(&spec.Usage{}, "x")
		}
		return text("done", &spec.Usage{})
	}
	o := &orders{world: world, choose: func(int) int { return 0 }}
	if _, err := o.run(core.Input{Plan: p, Budgets: spec.Budgets{MaxTokenBudget: 1000}}); err != nil {
		t.Fatal(err)
	}
	if len(got) != 75 {
		t.Fatalf("%d calls", len(got))
	}
	at := func(i int) string {
		var b strings.Builder
		for _, c := range got[i].History {
			fmt.Fprintf(&b, "%s%s %s;", c.ToolName, c.Input, c.Action)
		}
		return b.String()
	}
	if want := `x{"n":1} allow;z{"n":3} deny;`; at(3) != want {
		t.Errorf("before call 4: %s, want %s", at(3), want)
	}
	last := got[74].History
	if len(last) != policies.MaxHistory || string(last[len(last)-1].Input) != `{"n":74}` || string(last[0].Input) != `{"n":11}` {
		t.Errorf("%d calls before the last, from %s to %s", len(last), last[0].Input, last[len(last)-1].Input)
	}
	if left := got[3].Budget; left == nil || left.Cost != nil || *left.Tokens != 1000-2*3 {
		t.Errorf("left before call 4: %+v", left)
	}
	if slices.ContainsFunc(got, func(s spec.Situation) bool { return len(s.Marks) > 0 }) {
		t.Error("marks that nobody set")
	}
}
