package loader

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

func glob(tb testing.TB, pattern string) []string {
	tb.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		tb.Fatalf("%s: %v, %d files", pattern, err, len(files))
	}
	return files
}

func cassette(turns ...spec.Turn) *spec.Cassette {
	return &spec.Cassette{
		Envelope: spec.Envelope{APIVersion: spec.APIVersion, Kind: spec.KindCassette},
		Agents:   map[string][]spec.Turn{"a": turns},
	}
}

// Text of every kind reads back as it was written.
func TestMarshalCassette(t *testing.T) {
	empty, wrong, yes := "", `{"path": `, true
	turns := []spec.Turn{
		{Usage: &spec.Usage{Input: 5, Output: spec.MaxTokens}, Delay: spec.Duration(1500), ToolCalls: []spec.CassetteCall{
			{ID: "c1", Name: "bash", Input: json.RawMessage(`{"z":1,"a":[null,1.50,"\ud83d\ude00",{"on":"off"}],"n":12345678901234567890e-3}`)},
			{ID: "c2", Name: "bash", Arguments: &empty},
			{ID: "010", Name: "true", Arguments: &wrong},
		}},
		{Expect: &spec.Expect{ToolResult: &spec.ExpectResult{Of: "c1", IsError: &yes}}, Finish: spec.FinishLength},
		{Error: &spec.TurnError{Status: 429, RetryAfter: spec.Duration(90e9)}},
	}
	for _, s := range []string{
		"plain", "yes", "null", "~", "010", "2026-01-02", "<<", "- a", "a: b", "!x", "#", "'", `"`, `\`, " lead", "trail ",
		"two\nlines", "\nlead", "end\n", "end\n\n", "  ind\n x\n", "tab\there", "\ttab\nx", "cr\r\nlf", "nul\x00", "\u0085\u2028\u2029\ufeff",
		"\u202e\u007f\u009f", "😀 é 日本", "%", "a #b\n c: d\n...\n---\n", strings.Repeat("word ", 100), "x\n \ny", " \n x", "\n", " ",
	} {
		turns = append(turns, spec.Turn{Text: s, Reasoning: s})
	}
	want := cassette(turns...)
	out, err := MarshalCassette(want)
	if err != nil {
		t.Fatal(err)
	}
	back, ds := Read("c", out, "")
	if len(ds) > 0 {
		t.Fatal(text(ds))
	}
	same := cmp.Transformer("value", func(r json.RawMessage) (v any) { _ = json.Unmarshal(r, &v); return v })
	if diff := cmp.Diff(want, back.Cassette.Cassette, same); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
}

func TestMarshalCassetteIsReadable(t *testing.T) {
	out, err := MarshalCassette(cassette(
		spec.Turn{Text: "one\ntwo\n", Usage: &spec.Usage{Input: 1, Output: 2}},
		spec.Turn{ToolCalls: []spec.CassetteCall{{ID: "c1", Name: "file_read", Input: json.RawMessage(`{"path":"a b"}`)}}},
	))
	if err != nil {
		t.Fatal(err)
	}
	want := `apiVersion: oma/v1
kind: Cassette
agents:
  a:
    - text: |
        one
        two
      usage:
        input: 1
        output: 2
    - toolCalls:
        - id: c1
          name: file_read
          input:
            path: "a b"
`
	if diff := cmp.Diff(want, string(out)); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
}

// What would not read back is an error when it is written, not when it is played.
func TestMarshalCassetteRefuses(t *testing.T) {
	for name, turn := range map[string]spec.Turn{
		"negative delay": {Delay: -1},
		"list as input":  {ToolCalls: []spec.CassetteCall{{ID: "c", Name: "t", Input: json.RawMessage(`[]`)}}},
		"no call id":     {ToolCalls: []spec.CassetteCall{{Name: "t"}}},
		"too large":      {Text: strings.Repeat("x", maxFile)},
	} {
		if out, err := MarshalCassette(cassette(turn)); err == nil {
			t.Errorf("%s: wrote %.80s", name, out)
		}
	}
}
