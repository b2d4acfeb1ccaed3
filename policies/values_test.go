package policies

import (
	"fmt"
	"strings"
	"testing"

	"github.com/open-multi-agent/oma/spec"
)

// A loop goes over a map in the order of its keys, however deep it lies and however it is reached.
func TestMapsHaveAnOrder(t *testing.T) {
	f := map[string]any{}
	for i := range 12 {
		f[fmt.Sprint("k", 11-i)] = map[string]any{"z": int64(1), "y": int64(2), "x": int64(3)}
	}
	tool := toolInfo("free", `{"type":"object","required":["f"],"properties":{
		"f":{"type":"object","maxProperties":20,"additionalProperties":{"type":"object","maxProperties":20,"additionalProperties":{"type":"integer"}}}}}`)
	s := mustCompile(t, team([]spec.ToolInfo{tool}, spec.Rule{When: "true", Action: "warn", Annotate: map[string]string{
		"keys": `input.f.map(k, k)[2]`, "nested": `input.f["k3"].map(k, k)[0]`,
		"in a list": `input.f.map(k, input.f[k].map(m, m)[0])[11]`, "earlier": `string(history.map(c, c.input.f.map(k, k)[0])[0])`}}))
	r := Request{ToolName: "free", AgentName: "a", Input: map[string]any{"f": f}, Situation: spec.Situation{History: []spec.HistoryCall{
		{ToolName: "free", Input: []byte(`{"f":{"c":{},"b":{},"a":{}}}`)}}}}
	for range 20 {
		got := ""
		for _, a := range s.Decide(t.Context(), r).Rules[0].Annotations {
			got += a.Name + "=" + a.Value + a.Error + " "
		}
		if want := "earlier=a in a list=x keys=k10 nested=x "; got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
}

// What a rule adds to the record is masked whole, then cut: no part of a secret is left where it crosses the end.
func TestNoPartOfASecret(t *testing.T) {
	const secret = `sk-"very\long"-hunter2`
	s := mustCompile(t, team([]spec.ToolInfo{bash}, spec.Rule{Name: "r", When: `input.command != "" && input != dyn(1)`,
		ReasonExpression: `input.command`, Annotate: map[string]string{"a": `input.command`}}))
	for pad := 0; pad < 530; pad++ {
		r := command(strings.Repeat("é", pad) + secret + strings.Repeat("é", 600))
		r.Mask = func(s string) string { return strings.ReplaceAll(s, secret, "***") }
		d := s.Decide(t.Context(), r)
		s.Explain(t.Context(), r, &d)
		out := d.Rules[0]
		all := d.Reason + out.Reason + out.Annotations[0].Value
		for _, v := range out.Values {
			all += v.Value
		}
		if strings.Contains(all, "sk-") || strings.Contains(all, "very") {
			t.Fatalf("behind %d characters: %s", pad, all)
		}
		if len(out.Values) != 2 || len(out.Annotations) != 1 {
			t.Fatalf("%+v", out)
		}
	}
}

// What is shown of a value is bounded, however large the value is, and looks like the JSON it begins.
func TestShow(t *testing.T) {
	vars := variables{request: &Request{}}
	for _, c := range []struct {
		value any
		want  string
	}{
		{"a\u202e\n", `"a` + "\u202e" + `\n"`}, {int64(3), "3"}, {2.5, "2.5"}, {nil, "null"}, {true, "true"}, {[]any{}, "[]"},
		{map[string]any{"b": []any{"x", int64(1)}, "a": map[string]any{}}, `{"a":{},"b":["x",1]}`},
	} {
		if got := vars.show(newRegistry(t).NativeToValue(c.value)); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	many := make([]any, 1_000_000)
	got := vars.show(newRegistry(t).NativeToValue(many))
	if n := len([]rune(got)); n != maxValueRunes+1 || !strings.HasPrefix(got, "[null,null,") {
		t.Errorf("%d runes: %.40s", n, got)
	}
}

func newRegistry(t *testing.T) adapter {
	t.Helper()
	p, err := newProvider()
	if err != nil {
		t.Fatal(err)
	}
	return adapter{p.Registry}
}
