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

// SERVER/* stands for all of a server's tools where no grant is needed or one is taken away, and grants none.
func TestGrantOfServers(t *testing.T) {
	cat := testCatalog()
	for _, n := range []string{"fs_read", "fs_write", "web_get"} {
		cat.Tools = append(cat.Tools, spec.ToolInfo{Name: n})
	}
	cat.Servers = []Preset{{"fs", []string{"fs_read", "fs_write"}}, {"web", []string{"web_get"}}}
	list := func(s string) *[]string { f := strings.Fields(s); return &f }
	for _, c := range []struct {
		name               string
		agent              spec.Agent
		want, codes, hints string
	}{
		{name: "registering is no grant"},
		{name: "all of a server", agent: spec.Agent{CustomTools: []string{"fs/*"}}, want: "fs_read:customTools fs/*, fs_write:customTools fs/*"},
		{name: "but one", agent: spec.Agent{CustomTools: []string{"fs/*"}, DisallowedTools: []string{"fs_write"}}, want: "fs_read:customTools fs/*"},
		{name: "one by name, all besides", agent: spec.Agent{CustomTools: []string{"fs_read", "fs/*"}}, want: "fs_read:customTools, fs_write:customTools fs/*"},
		{name: "a grant by name", agent: spec.Agent{ToolPreset: "readonly", Tools: list("web_get")}, want: "file_read:toolPreset readonly, grep:toolPreset readonly, glob:toolPreset readonly, web_get:tools"},
		{name: "a server taken away", agent: spec.Agent{Tools: list("grep web_get"), DisallowedTools: []string{"web/*"}}, want: "grep:tools", codes: "tool-both-allowed-and-disallowed"},
		{name: "no grant of a server", agent: spec.Agent{Tools: list("fs/*")}, codes: "unknown-tool", hints: "customTools"},
		{name: "no such server", agent: spec.Agent{CustomTools: []string{"fz/*"}}, codes: "unknown-tool", hints: "did you mean fs?"},
	} {
		g, ds := Grant(cat, &c.agent, "", "agents[0]")
		var got, codes, hints []string
		for _, t := range g.Tools {
			got = append(got, t.Name+":"+t.GrantedBy)
		}
		for _, d := range ds {
			codes, hints = append(codes, d.Code), append(hints, d.Hint)
		}
		if diff := cmp.Diff([]string{c.want, c.codes}, []string{strings.Join(got, ", "), strings.Join(codes, " ")}); diff != "" || !strings.Contains(strings.Join(hints, " "), c.hints) {
			t.Errorf("%s: %v\n%s", c.name, hints, diff)
		}
	}
}
