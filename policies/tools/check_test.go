package tools

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

func TestCheckSchemas(t *testing.T) {
	const noObject = "inputSchema the input of a tool is an object, and inputSchema does not say so [custom-tool-schema]"
	const noText = "outputSchema no answer fits: outputSchema does not take text, and that is what the output is [custom-tool]"
	lost := `inputSchema.required "b" is required and not declared, so it would be dropped from every input [custom-tool-schema]`
	for text, want := range map[string][]string{
		`"inputSchema":{"path":{"type":"string"}}`:                                                            {noObject},
		`"inputSchema":{"type":"string"}`:                                                                     {noObject},
		`"inputSchema":{"type":["object"]}`:                                                                   {noObject},
		`"inputSchema":{"type":"object"}`:                                                                     nil,
		`"inputSchema":{"type":"object","required":["b"]}`:                                                    nil, // nothing is declared, so nothing is dropped
		`"inputSchema":{"type":"object","required":["b"],"properties":{"a":{}}}`:                              {lost},
		`"inputSchema":{"type":"object","required":["b"],"properties":{"a":{}}},"passUndeclared":true`:        nil,
		`"inputSchema":{"type":"object","required":["b"],"properties":{"a":{}},"patternProperties":{"b":{}}}`: nil,
		`"outputSchema":{"type":"object"}`:                                                                    {noText},
		`"outputSchema":{"type":["array","null"]}`:                                                            {noText},
		`"outputSchema":{"type":["string","null"]}`:                                                           nil,
		`"outputSchema":{"maxLength":9}`:                                                                      nil,
		`"outputSchema":{"type":"object"},"output":"json"`:                                                    nil,
		`"outputSchema":{"type":"object"},"output":"rich"`:                                                    nil,
	} {
		var tool spec.CustomTool
		if err := json.Unmarshal([]byte(`{"command":["p"],`+text+`}`), &tool); err != nil {
			t.Fatal(text, err)
		}
		if diff := cmp.Diff(want, show(Check(&tool))); diff != "" {
			t.Errorf("%s\n%s", text, diff)
		}
	}
	part := &spec.CustomTool{HTTP: &spec.HTTPTool{URL: "https://h/", Response: "/a"}, OutputSchema: spec.Schema(`{"type":"object"}`)}
	if got := show(Check(part)); got != nil { // a part that is no text is checked as what it is
		t.Error(got)
	}
	bare := &spec.CustomTool{Command: []string{"p", "x={q}"}}
	if diff := cmp.Diff([]string{"command[1] {q} is no property: the tool has no inputSchema [custom-tool-placeholder]"}, show(Check(bare))); diff != "" {
		t.Error(diff)
	}
}

func TestDoesAndNeeds(t *testing.T) {
	command := &spec.CustomTool{Command: []string{"tools/x", "--", "{q}"}, Credentials: []string{"B", "A"}}
	request := &spec.CustomTool{HTTP: &spec.HTTPTool{URL: "https://h/{q}", Headers: map[string]spec.Variable{"X": {Credential: "K"}, "A": {Credential: "L"}, "B": {Value: "v"}, "Y": {Credential: "K"}}}}
	got := []any{Does(command), Needs(command), Does(request), Needs(request)}
	if diff := cmp.Diff([]any{"starts tools/x -- {q}", []string{"B", "A"}, "GET https://h/{q}", []string{"L", "K"}}, got); diff != "" {
		t.Error(diff)
	}
}
