package loader

import (
	"fmt"
	"strings"
	"testing"

	"github.com/open-multi-agent/oma/schemas"
	"github.com/open-multi-agent/oma/spec"
)

// Problems are not only shown but collected up to a bound, by each of those that look for them.
func TestCollectingStops(t *testing.T) {
	const many = 3 * maxProblems
	var wide schemas.Violation
	agents, keys := make([]any, many), map[string]any{"governanceIntent": "none"}
	for i := range many {
		key := fmt.Sprintf("key%d", i)
		wide.Want = append(wide.Want, key)
		agents[i], keys[key] = map[string]any{"name": "a", "cwd": "~/x"}, 1
	}
	wide.Keyword = "additionalProperties"
	for name, collect := range map[string]func(ds *spec.Diagnostics){
		"unknown keys":    func(ds *spec.Diagnostics) { explain(wide, ds) },
		"names":           func(ds *spec.Diagnostics) { structure(t, map[string]any{"agents": agents}, ds) },
		"governance none": func(ds *spec.Diagnostics) { structure(t, map[string]any{"governance": keys}, ds) },
	} {
		t.Run(name, func(t *testing.T) {
			var ds spec.Diagnostics
			collect(&ds)
			if len(ds) != maxProblems {
				t.Errorf("%d problems, want %d", len(ds), maxProblems)
			}
		})
	}
	d := newDocument("d", []byte("["+strings.Repeat("0x1,", many)+"]"))
	if ds := d.parse(); ds != nil {
		t.Fatal(text(ds))
	}
	if _, r := d.read(); len(r.ds) != maxProblems || len(r.bad) != maxProblems {
		t.Errorf("numbers: %d problems at %d places", len(r.ds), len(r.bad))
	}
}

func structure(t *testing.T, root map[string]any, ds *spec.Diagnostics) {
	t.Helper()
	d := newDocument("d", []byte("agents: []\n"))
	if more := d.parse(); more != nil {
		t.Fatal(text(more))
	}
	d.structure(root, ds)
}

// Maps that are merged twice, and those again, are refused as soon as they repeat too much, and a place behind them is
// found without asking each of them again for every way that leads to it.
func TestMergedTwice(t *testing.T) {
	var b strings.Builder
	b.WriteString(head + "x-a0: &a0 {}\n")
	for i := 1; i < 60; i++ {
		fmt.Fprintf(&b, "x-a%d: &a%d {<<: [*a%d, *a%d]}\n", i, i, i-1, i-1)
	}
	b.WriteString("agents: [{name: a, <<: [*a59, {cwd: ~/x}]}]\n")
	_, ds := Read("f", []byte(b.String()), "")
	got := map[string]spec.Pos{}
	for _, d := range ds {
		got[d.Code] = d.Pos
	}
	if got["alias-bomb"].Line == 0 || got["bad-path"] != (spec.Pos{Line: 64, Col: 37}) {
		t.Error(text(ds))
	}
}

// A figure is bounded so that sums of many stay within 64 bits.
func TestFigures(t *testing.T) {
	const turn = "apiVersion: oma/v1\nkind: Cassette\nagents: {a: [{text: hi, usage: {%s}}]}\n"
	for _, c := range []struct{ doc, figure, want string }{
		{turn, "input: 1099511627776, output: 1099511627776, cachedInput: 1099511627776, reasoning: 1099511627776", ""},
		{turn, "input: 1099511627777, output: 1", "input 1099511627777 is too large, want at most 1099511627776"},
		{turn, "input: 1, output: 9e18", "output 9e18 is too large, want at most 1099511627776"},
		{turn, "input: 5, output: 1, cachedInput: 6", "cachedInput 6 is more than input 5, which it is part of"},
		{turn, "input: 5, output: 1.0, reasoning: 2", "reasoning 2 is more than output 1.0, which it is part of"},
		{turn, "input: 5, output: 1, cachedInput: 1099511627777", "cachedInput 1099511627777 is too large, want at most 1099511627776"},
		{head + "agents: [{name: a, %s}]\n", "maxTurns: 100000, maxTokenBudget: 1125899906842624, maxOutputTokens: 1099511627776", ""},
		{head + "agents: [{name: a, %s}]\n", "maxTurns: 100001", "maxTurns 100001 is too large, want at most 100000"},
		{head + "agents: [{name: a, %s}]\n", "maxTokenBudget: 1125899906842625", "maxTokenBudget 1125899906842625 is too large, want at most 1125899906842624"},
		{head + "agents: [{name: a, %s}]\n", "maxOutputTokens: 1099511627777", "maxOutputTokens 1099511627777 is too large, want at most 1099511627776"},
		{head + "agents: [{name: a}]\ndefaults: {%s}\n", "maxTurns: 100001", "maxTurns 100001 is too large, want at most 100000"},
		{head + "agents: [{name: a}]\nbudgets: {%s}\n", "maxTokenBudget: 9223372036854775807", "maxTokenBudget 9223372036854775807 is too large, want at most 1125899906842624"},
		{head + "agents: [{name: a}]\nproviders: {p: {kind: ollama, models: {m: {%s}}}}\n", "inputPer1M: 1000000, contextWindow: 1099511627776", ""},
		{head + "agents: [{name: a}]\nproviders: {p: {kind: ollama, models: {m: {%s}}}}\n", "inputPer1M: 1000000.5", "inputPer1M 1000000.5 is too large, want at most 1000000"},
		{head + "agents: [{name: a}]\nproviders: {p: {kind: ollama, models: {m: {%s}}}}\n", "contextWindow: 1099511627777", "contextWindow 1099511627777 is too large, want at most 1099511627776"},
	} {
		t.Run(c.figure, func(t *testing.T) {
			_, ds := Read("f", fmt.Appendf(nil, c.doc, c.figure), "")
			got := ""
			for _, d := range ds {
				got += d.Message
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got != "" && ds[0].Code != "out-of-range" {
				t.Errorf("the code is %s", ds[0].Code)
			}
		})
	}
}
