package runtime

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

// deniedBy runs one call under a rule and gives its decision and what the model was told.
func deniedBy(t *testing.T, arguments string, change func(*Options), rules ...spec.Rule) (spec.DecisionRecord, string) {
	t.Helper()
	var told string
	m := modelFunc(func(_ context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
		if req.Turn == 1 {
			return callTool("echo", arguments), nil
		}
		told = req.Messages[len(req.Messages)-1].Text
		return answerText("done"), nil
	})
	var all []spec.PlanRule
	for _, r := range rules {
		all = append(all, spec.PlanRule{Rule: r, Source: "team"})
	}
	tool := echo(func(context.Context, Invocation) spec.ToolResult { return spec.ToolResult{Text: "ran"} })
	res, err := run(t, team(1, 1, all...), m, toolMap{tool}, change)
	if err != nil {
		t.Fatal(err)
	}
	return res.Receipt.Decisions[0], told
}

// Q14: the receipt says what was asked, what was read and how to judge it again; the model gets the rule and its reason.
func TestADenialExplainsItself(t *testing.T) {
	rule := spec.Rule{Name: "quiet", When: `input.text.contains("it's") && size(history) == 0 && !("m" in marks)`, Action: "deny",
		ReasonExpression: `"too loud: " + input.text`, Annotate: map[string]string{"len": `string(size(input.text))`}}
	mark := spec.Rule{Name: "mark", When: `false || input.n == 8`, Action: "warn", Mark: "m"}
	d, told := deniedBy(t, `{"text":"it's $HOME"}`, func(o *Options) { o.Retrace = []string{"my team.yaml", "--policy", "org.yaml"} }, rule, mark)
	want := spec.RuleOutcome{Name: "quiet", Source: "team", Action: "deny", Outcome: "matched", When: rule.When, Reason: "too loud: it's $HOME",
		Annotations: []spec.Annotation{{Name: "len", Value: "10"}},
		Values:      []spec.ReadValue{{Path: "input.text", Value: `"it's $HOME"`}, {Path: "history", Value: "[]"}, {Path: "marks", Value: "[]"}}}
	if diff := cmp.Diff([]spec.RuleOutcome{want}, d.Rules); diff != "" {
		t.Error(diff)
	}
	if want := `Tool "echo" denied by gate: rule "quiet": too loud: it's $HOME`; told != want {
		t.Errorf("the model was told %q", told)
	}
	line := `oma policy check 'my team.yaml' --policy org.yaml --agent a1 --tool echo --input '{"n":7,"text":"it'\''s $HOME"}' --task ta1`
	if d.Reproduce != line {
		t.Errorf("got  %s\nwant %s", d.Reproduce, line)
	}
}

// Where nothing forbade the call and nothing permitted it, the line holds what the rules that did not permit it read.
func TestTheLineOfADenialByDefault(t *testing.T) {
	calls := 0
	m := modelFunc(func(_ context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
		if calls++; calls <= 2 {
			return callTool("echo", `{"text":"x"}`), nil
		}
		return answerText("done"), nil
	})
	p := team(1, 1, spec.PlanRule{Source: "team", Rule: spec.Rule{Name: "first", When: `size(history) == 0`, Action: "allow"}})
	p.Gates.Default = "deny"
	res, err := run(t, p, m, toolMap{echo(func(context.Context, Invocation) spec.ToolResult { return spec.ToolResult{Text: "ran"} })}, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := res.Receipt.Decisions
	if len(d) != 2 || !d[0].Allowed() || d[1].Allowed() || !strings.HasSuffix(d[1].Reproduce, ` --history '[{"toolName":"echo","input":{"n":7,"text":"x"},"action":"allow"}]'`) {
		t.Errorf("%+v", d)
	}
}

// A call that may run is recorded with its marks and annotations alone.
func TestAnAllowedCallHoldsNoValues(t *testing.T) {
	d, _ := deniedBy(t, `{"text":"x"}`, nil, spec.Rule{Name: "mark", When: `input.text == "x"`, Action: "warn", Mark: "m"})
	if !d.Allowed() || d.Reproduce != "" || d.Rules[0].Values != nil || d.Rules[0].When != "" || cmp.Diff([]string{"m"}, d.Marks) != "" {
		t.Errorf("%+v", d)
	}
}

// Nothing of a secret gets into the record, and a line that would hold one is left out.
func TestADenialHoldsNoSecret(t *testing.T) {
	hide := func(o *Options) {
		o.Redact = func(s string) string { return strings.ReplaceAll(s, "hunter2", "[redacted]") }
	}
	rule := spec.Rule{Name: "r", When: `input.text != ""`, Action: "deny", ReasonExpression: `"said " + input.text`, Annotate: map[string]string{"what": "input.text"}}
	d, told := deniedBy(t, `{"text":"hunter2"}`, hide, rule)
	if d.Reproduce != "" || d.Rules[0].Values[0].Value != `"[redacted]"` || d.Rules[0].Annotations[0].Value != "[redacted]" || d.Rules[0].Reason != "said [redacted]" {
		t.Errorf("%+v", d)
	}
	if strings.Contains(told+d.Reason, "hunter2") {
		t.Errorf("%s %s", told, d.Reason)
	}
	if d, _ := deniedBy(t, `{"text":"`+strings.Repeat("x", 90)+`"}`, nil, spec.Rule{Name: "r", When: `input.text != ""`, Action: "deny"}); d.Reproduce == "" {
		t.Error("no line for an everyday call")
	}
}
