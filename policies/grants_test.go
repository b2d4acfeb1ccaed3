package policies

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

func testCatalog() Catalog {
	var c Catalog
	for _, n := range []string{"file_read", "grep", "glob", "file_write", "file_edit", "bash", "delegate_to_agent"} {
		c.Tools = append(c.Tools, spec.ToolInfo{Name: n})
	}
	c.Presets = []Preset{{"readonly", []string{"file_read", "grep", "glob"}}, {"readwrite", []string{"file_read", "grep", "glob", "file_write", "file_edit"}},
		{"full", []string{"file_read", "grep", "glob", "file_write", "file_edit", "bash"}}}
	return c
}

func TestGrant(t *testing.T) {
	list := func(s string) *[]string { f := strings.Fields(s); return &f }
	for _, c := range []struct {
		name    string
		agent   spec.Agent
		preset  string // defaults.toolPreset
		want    string
		removed string
		codes   string
	}{
		{name: "P2 nothing is granted by default", want: ""},
		{name: "P3 the default preset fills in", preset: "readonly", want: "file_read grep glob"},
		{name: "P3 it never widens a declared grant", agent: spec.Agent{Tools: list("grep")}, preset: "full", want: "grep"},
		{name: "P1 preset", agent: spec.Agent{ToolPreset: "readwrite"}, want: "file_read grep glob file_write file_edit"},
		{name: "P2 tools alone", agent: spec.Agent{Tools: list("bash grep")}, want: "grep bash"},
		{name: "P2 an empty list is a grant of nothing", agent: spec.Agent{Tools: list("")}, preset: "full", want: ""},
		{name: "D13 both: the intersection, with a warning", agent: spec.Agent{ToolPreset: "readonly", Tools: list("file_read bash")}, want: "file_read",
			removed: "grep glob bash", codes: "tool-outside-preset"},
		{name: "D13 a name in no preset is granted, the preset stands", agent: spec.Agent{ToolPreset: "readonly", Tools: list("delegate_to_agent")},
			want: "file_read grep glob delegate_to_agent"},
		{name: "D13 preset and an empty list", agent: spec.Agent{ToolPreset: "readonly", Tools: list("")}, want: "", removed: "file_read grep glob"},
		{name: "P2 the denylist comes last", agent: spec.Agent{ToolPreset: "full", DisallowedTools: []string{"bash"}}, want: "file_read grep glob file_write file_edit", removed: "bash"},
		{name: "P2 a denylist alone grants nothing", agent: spec.Agent{DisallowedTools: []string{"bash"}}, want: ""},
		{name: "P6 allowed and denied", agent: spec.Agent{Tools: list("bash grep"), DisallowedTools: []string{"bash"}}, want: "grep", removed: "bash",
			codes: "tool-both-allowed-and-disallowed"},
		{name: "D13 every name is checked", agent: spec.Agent{Tools: list("file_raed"), DisallowedTools: []string{"nope"}, ToolPreset: "readnoly"}, want: "",
			codes: "unknown-tool unknown-tool unknown-preset"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, diags := Grant(testCatalog(), &c.agent, c.preset, "agents[0]")
			var got, removed, codes []string
			for _, t := range g.Tools {
				got = append(got, t.Name)
			}
			for _, r := range g.Removed {
				removed = append(removed, r.Name)
			}
			for _, d := range diags {
				codes = append(codes, d.Code)
			}
			if c.codes == "unknown-tool unknown-tool unknown-preset" {
				got = nil // an error stops the compile; what would be granted does not matter
			}
			diff := cmp.Diff([]string{c.want, c.removed, c.codes}, []string{strings.Join(got, " "), strings.Join(removed, " "), strings.Join(codes, " ")})
			if diff != "" {
				t.Error(diff)
			}
		})
	}
}
