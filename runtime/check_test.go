package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
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

// check judges one call.
func check(t *testing.T, plan *spec.Plan, o Options, c CheckCall) (*Checked, error) {
	t.Helper()
	k, err := NewChecker(plan, o)
	if err != nil {
		return nil, err
	}
	defer k.Close()
	return k.Check(t.Context(), c)
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
		"the task that was given":    {CheckCall{ToolName: "note", Arguments: `{"text":"a"}`, TaskID: "t9"}, verdict{"deny", "", `{"text":"a","times":1}`, "t9", ""}},
		"its own task, given":        {CheckCall{ToolName: "note", Arguments: `{"text":"a"}`, TaskID: "t1"}, verdict{"allow", "", `{"text":"a","times":1}`, "t1", "ann"}},
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
			got, err := check(t, plan, Options{Tools: tools, Known: []spec.ToolInfo{noteInfo}}, c.call)
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
	if _, err := check(t, checkPlan(), o, call); !errors.Is(err, ErrNoAgent) {
		t.Errorf("an agent the plan does not have gives %v", err)
	}
	call.AgentName = "ann"
	if _, err := check(t, checkPlan(spec.Rule{Name: "r", When: `nonsense(`, Action: spec.ActionDeny}), o, call); !errors.Is(err, ErrStale) {
		t.Errorf("a rule that does not compile gives %v", err)
	}
}

// An earlier call is what a run would have kept of it: decoded, shaped and checked by the same functions.
func TestCheckOverWhatCameBefore(t *testing.T) {
	plan := checkPlan(spec.Rule{Name: "once", When: `history.exists(c, c.toolName == "note" && c.input.times == 1 && c.action == "allow")`, Action: spec.ActionDeny},
		spec.Rule{Name: "set", When: `input.text == "read"`, Action: spec.ActionWarn, Mark: "tainted"},
		spec.Rule{Name: "tainted", When: `"tainted" in marks`, Action: spec.ActionDeny},
		spec.Rule{Name: "poor", When: `has(budget.tokens) && budget.tokens < 10`, Action: spec.ActionDeny})
	few, many := int64(9), int64(10)
	past := func(tool, input, action string) []spec.HistoryCall {
		return []spec.HistoryCall{{ToolName: tool, Input: []byte(input), Action: action}}
	}
	for name, c := range map[string]struct {
		before spec.Situation
		want   string // the rule that denies, or why there is no judgement
	}{
		"nothing":                       {spec.Situation{}, ""},
		"its default is filled in":      {spec.Situation{History: past("note", `{"text":"a"}`, "")}, "once"},
		"as a model would write it":     {spec.Situation{History: past("note", `{"times":1e0,"text":"a"}`, "allow")}, "once"},
		"another value":                 {spec.Situation{History: past("note", `{"text":"a","times":2}`, "")}, ""},
		"it was denied":                 {spec.Situation{History: past("note", `{"text":"a"}`, "deny")}, ""},
		"a mark":                        {spec.Situation{Marks: []string{"tainted"}}, "tainted"},
		"a budget":                      {spec.Situation{Budget: &spec.BudgetRemaining{Tokens: &few}}, "poor"},
		"enough of it":                  {spec.Situation{Budget: &spec.BudgetRemaining{Tokens: &many}}, ""},
		"a mark that nothing sets":      {spec.Situation{Marks: []string{"taintd"}}, `unknown mark "taintd": did you mean tainted?`},
		"a tool that there is not":      {spec.Situation{History: past("noet", `{}`, "")}, `history[0]: there is no tool "noet": did you mean note?`},
		"a tool that is not granted":    {spec.Situation{History: past("other", `{}`, "")}, `history[0]: tool "other" is not granted to agent "ann"`},
		"an input that does not fit":    {spec.Situation{History: past("note", `{"text":1}`, "")}, `history[0]: Invalid input for tool "note"`},
		"a call that was refused":       {spec.Situation{History: past("note", `{"text":"judge"}`, "")}, `history[0]: "judge" is protected`},
		"an action that there is not":   {spec.Situation{History: past("note", `{"text":"a"}`, "ask")}, `history[0]: action "ask" is not allow, deny or suspend`},
		"more than rules can see of it": {spec.Situation{History: make([]spec.HistoryCall, 65)}, "history[64]: there are 65 earlier calls"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := check(t, plan, Options{Tools: &noteSource{t: t}, Known: []spec.ToolInfo{noteInfo, {Name: "other"}}},
				CheckCall{AgentName: "ann", ToolName: "note", Arguments: `{"text":"a"}`, Situation: c.before})
			switch {
			case err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			case err == nil && got.Allowed() != (c.want == ""), err == nil && c.want != "" && got.Rules[0].Name != c.want:
				t.Errorf("got %+v, want %q", got.Decision, c.want)
			}
		})
	}
}

// Look asks every rule, also those that let the call pass.
func TestLook(t *testing.T) {
	plan := checkPlan(spec.Rule{Name: "no-x", When: `input.text == "x"`, Action: spec.ActionDeny},
		spec.Rule{Name: "breaks", When: `1 / (input.times - 1) > 0`, Action: spec.ActionWarn})
	k, err := NewChecker(plan, Options{Tools: &noteSource{t: t}, Known: []spec.ToolInfo{noteInfo}})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	look := func(arguments string) (out []string) {
		got, err := k.Look(t.Context(), CheckCall{AgentName: "ann", ToolName: "note", Arguments: arguments})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range got.Seen {
			out = append(out, fmt.Sprint(s.Rule.Name, " ", s.Outcome, " ", s.Values))
		}
		return out
	}
	want := []string{`no-x ignored [{input.text "a"}]`, `breaks error [{input.times 1}]`}
	if diff := cmp.Diff(want, look(`{"text":"a"}`)); diff != "" {
		t.Error(diff)
	}
	if got := look(`{}`); got != nil {
		t.Errorf("a call that was refused met rules: %v", got)
	}
}
