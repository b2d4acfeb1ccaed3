package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

// noteSource offers one tool that must not be called, and counts what was closed.
type noteSource struct {
	t      *testing.T
	closed int
}

func (s *noteSource) Open(context.Context, *spec.PlanAgent) ([]Tool, io.Closer, error) {
	normalise := func(input map[string]any) error {
		if input["text"] == "judge" {
			return fmt.Errorf("%q is %w", "judge", ErrProtected)
		}
		return nil
	}
	call := func(context.Context, Invocation) spec.ToolResult {
		s.t.Error("the tool was called")
		return spec.ToolResult{}
	}
	return []Tool{{ToolInfo: noteInfo, Normalise: normalise, Call: call}}, s, nil
}

func (s *noteSource) Close() error {
	s.closed++
	return nil
}

var noteInfo = spec.ToolInfo{Name: "note", InputSchema: spec.Schema(`{"type":"object","properties":{"text":{"type":"string","maxLength":20},
	"times":{"type":"integer","default":1}},"required":["text"],"additionalProperties":false}`)}

func checkPlan(rules ...spec.Rule) *spec.Plan {
	p := &spec.Plan{Governance: &spec.Governance{RequiredRoles: []string{"ann", "guest"}}, Agents: []spec.PlanAgent{{Name: "ann", Tools: []spec.Grant{{ToolInfo: noteInfo, GrantedBy: "tools"}}}, {Name: "bob"}},
		Tasks: []spec.PlanTask{{ID: "t1", Assignee: "ann", Role: "ann"}},
		Gates: spec.PlanGates{Declared: true, Default: spec.ActionAllow}}
	for _, r := range rules {
		p.Gates.Rules = append(p.Gates.Rules, spec.PlanRule{Rule: r, Source: "team"})
	}
	return p
}

func TestCheck(t *testing.T) {
	plan := checkPlan(spec.Rule{Name: "no-x", When: `input.text == "x"`, Action: spec.ActionDeny},
		spec.Rule{Name: "guests", When: `role == "guest" || taskId == "t9"`, Action: spec.ActionDeny})
	type verdict struct{ Action, Refused, Input, TaskID, Role string }
	for name, c := range map[string]struct {
		call CheckCall
		want verdict
	}{
		"may run, with the agent's own task and role": {CheckCall{ToolName: "note", Arguments: `{ "times":1e0, "text": "a" }`}, verdict{"allow", "", `{"text":"a","times":1}`, "t1", "ann"}},
		"a rule denies":              {CheckCall{ToolName: "note", Arguments: `{"text":"x"}`}, verdict{"deny", "", `{"text":"x","times":1}`, "t1", "ann"}},
		"the role that was given":    {CheckCall{ToolName: "note", Arguments: `{"text":"a"}`, Role: "guest"}, verdict{"deny", "", `{"text":"a","times":1}`, "t1", "guest"}},
		"the task that was given":    {CheckCall{ToolName: "note", Arguments: `{"text":"a"}`, TaskID: "t9"}, verdict{"deny", "", `{"text":"a","times":1}`, "t9", "ann"}},
		"an agent without a task":    {CheckCall{AgentName: "bob", ToolName: "note", Arguments: `{"text":"a"}`}, verdict{Refused: "not-granted"}},
		"a tool that is not granted": {CheckCall{ToolName: "bash", Arguments: `{}`}, verdict{Refused: "not-granted", TaskID: "t1", Role: "ann"}},
		"no JSON":                    {CheckCall{ToolName: "note", Arguments: `{`}, verdict{Refused: "invalid-input", TaskID: "t1", Role: "ann"}},
		"against the schema":         {CheckCall{ToolName: "note", Arguments: `{"text":1}`}, verdict{Refused: "invalid-input", TaskID: "t1", Role: "ann"}},
		"a protected path":           {CheckCall{ToolName: "note", Arguments: `{"text":"judge"}`}, verdict{Refused: "protected-path", TaskID: "t1", Role: "ann"}},
	} {
		t.Run(name, func(t *testing.T) {
			tools := &noteSource{t: t}
			if c.call.AgentName == "" {
				c.call.AgentName = "ann"
			}
			got, err := Check(t.Context(), plan, Options{Tools: tools, Known: []spec.ToolInfo{noteInfo}}, c.call)
			if err != nil {
				t.Fatal(err)
			}
			v := verdict{got.GateAction, got.Refused, string(got.Canonical), got.TaskID, got.Role}
			if diff := cmp.Diff(c.want, v); diff != "" {
				t.Errorf("(-want +got)\n%s\n%s", diff, got.Reason)
			}
			if want := map[string]int{"ann": 1}[c.call.AgentName]; tools.closed != want {
				t.Errorf("tools were closed %d times, want %d", tools.closed, want)
			}
		})
	}
}

func TestCheckJudgesNothingItCannot(t *testing.T) {
	call := CheckCall{AgentName: "eve", ToolName: "note", Arguments: `{"text":"a"}`}
	o := Options{Tools: &noteSource{t: t}, Known: []spec.ToolInfo{noteInfo}}
	if _, err := Check(t.Context(), checkPlan(), o, call); !errors.Is(err, ErrNoAgent) {
		t.Errorf("an agent the plan does not have gives %v", err)
	}
	call.AgentName = "ann"
	if _, err := Check(t.Context(), checkPlan(spec.Rule{Name: "r", When: `nonsense(`, Action: spec.ActionDeny}), o, call); !errors.Is(err, ErrStale) {
		t.Errorf("a rule that does not compile gives %v", err)
	}
}
