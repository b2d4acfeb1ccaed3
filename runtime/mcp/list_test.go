package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/policies/servers"
	"github.com/open-multi-agent/oma/spec"
)

func namesOf(tools []spec.ServerTool) string {
	var names []string
	for _, t := range tools {
		names = append(names, t.Name)
	}
	return strings.Join(names, " ")
}

// MC-03: every page is read.
func TestMC03Pages(t *testing.T) {
	c := wired(t, Options{}, &fake{list: func(_ *fake, cursor string) string {
		if cursor == "" {
			return `{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"b","inputSchema":{"type":"object"}}],"nextCursor":"2"}`
		}
		return `{"tools":[{"name":"c","inputSchema":{"type":"object"}}]}`
	}})
	tools, ds, err := c.List(t.Context())
	if err != nil || len(ds) > 0 || namesOf(tools) != "a b c" {
		t.Fatal(namesOf(tools), ds, err)
	}
	// a name that no page offers is an error
	_, ds = servers.Offer("s", spec.MCPServer{Consequential: []string{"c", "cc"}}, tools)
	if len(ds) != 1 || ds[0].Path != "mcpServers.s.consequential[1]" || ds[0].Severity != spec.Error || ds[0].Message != `MCP server "s" has no tool "cc"` || ds[0].Hint != "did you mean c?" {
		t.Errorf("got %+v", ds)
	}
}

func TestListsWithoutEnd(t *testing.T) {
	one := func(n int) string { return fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"}}`, n) }
	for name, test := range map[string]struct {
		list func(n int) string
		want string
	}{
		"a circle":    {func(n int) string { return fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, n%3) }, `the cursor "1" comes again`},
		"empty pages": {func(n int) string { return fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, n) }, "there are more than 1000 pages"},
		"too many": {func(n int) string {
			return fmt.Sprintf(`{"tools":[%s],"nextCursor":"%d"}`, strings.Repeat(one(n)+",", 4000)+one(n), n)
		}, "there are more than 10000 tools"},
		"one page":      {func(n int) string { return `{"tools":[` + strings.Repeat("3,", maxTools) + `3]}` }, "there are more than 10000 tools"},
		"two of a name": {func(int) string { return `{"tools":[` + one(1) + `,` + one(1) + `]}` }, `lists two tools named "t1"`},
		"no list":       {func(int) string { return `{"tools":"none"}` }, "tools/list failed: the answer is no list of tools"},
		"no object":     {func(int) string { return `[1]` }, "tools/list failed: the answer is not what the protocol says"},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			c := wired(t, Options{}, &fake{list: func(*fake, string) string { n++; return test.list(n) }})
			_, _, err := c.List(t.Context())
			if err == nil || !strings.HasPrefix(err.Error(), `MCP server "fake": `) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A tool that cannot be used costs that tool alone. What the others say comes as it was written.
func TestBadToolsAreLeftOut(t *testing.T) {
	good := `{"name":"good","description":"\u00fc","inputSchema":{"type":"object","properties":{"z":{"maximum":9223372036854775807},"a":{}}},"annotations":{"readOnlyHint":true,"destructiveHint":false}}`
	c := wired(t, Options{}, &fake{list: func(*fake, string) string {
		return `{"tools":[` + strings.Join([]string{`null`, `3`, `{}`, `{"name":5}`, `{"name":"a","name":"b"}`, `{"name":"c","inputSchema":{"x":1,"x":2}}`,
			`{"name":"d","annotations":"none"}`, `{"name":"e","inputSchema":{"maximum":1e999}}`, good}, ",") + `]}`
	}})
	tools, ds, err := c.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	yes, no := true, false
	want := []spec.ServerTool{{Name: "good", Description: "ü", InputSchema: json.RawMessage(`{"type":"object","properties":{"z":{"maximum":9223372036854775807},"a":{}}}`),
		Hints: spec.ServerHints{ReadOnly: &yes, Destructive: &no}}}
	if diff := cmp.Diff(want, tools); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
	if len(ds) != 8 || ds.HasErrors(false) {
		t.Errorf("got %v", ds)
	}
	for i, d := range ds {
		if !strings.HasPrefix(d.Message, fmt.Sprintf(`tool %d of MCP server "fake" is left out: `, i+1)) || d.Path != "mcpServers.fake" {
			t.Errorf("got %s at %s", d.Message, d.Path)
		}
	}
}

// A server without tools has none, which is no failure.
func TestServerWithoutTools(t *testing.T) {
	f := &fake{}
	f.list = func(f *fake, _ string) string { return `{}` }
	tools, ds, err := wired(t, Options{}, f).List(t.Context())
	if len(tools) > 0 || len(ds) > 0 || err != nil {
		t.Error(tools, ds, err)
	}
}

func swapped(description string) string {
	return fmt.Sprintf(`{"tools":[{"name":"echo","description":%q,"inputSchema":{"type":"object","properties":{"a":{},"b":{}}}}]}`, description)
}

// A server may not swap a tool under a run: calls compare what was judged with what is there.
func TestSwappedTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := swapped("kind")
		f := &fake{list: func(*fake, string) string { return now },
			call: func(*fake, string, string, string) string { return `{"content":[{"type":"text","text":"ran"}]}` }}
		c := wired(t, Options{}, f)
		echo := tool(t, c)
		for _, step := range []struct{ list, want string }{
			{now, "ran"},
			{`{"tools":[{"inputSchema":{"properties":{"b":{},"a":{}},"type":"object"},"description":"kind","name":"echo"}]}`, "ran"}, // spelt in another way
			{swapped("evil"), `MCP tool "echo" failed: MCP server "fake" has changed its description since it was judged`},
			{`{"tools":[{"name":"echo","description":"kind","inputSchema":{"type":"object"}}]}`, `MCP tool "echo" failed: MCP server "fake" has changed its inputSchema since it was judged`},
			{`{"tools":[]}`, `MCP tool "echo" failed: MCP server "fake" has it no longer`},
			{`{"tools":7}`, `MCP tool "echo" failed: MCP server "fake": tools/list failed: the answer is no list of tools`},
			{swapped("kind"), "ran"},
		} {
			now = step.list
			f.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			synctest.Wait()
			if got := invoke(t.Context(), echo, `{}`); got.Text != step.want || got.IsError != (step.want != "ran") {
				t.Errorf("got  %s\nwant %s", got.Text, step.want)
			}
		}
		if n := strings.Count(f.lines(), "tools/list"); n != 8 {
			t.Errorf("listed %d times for 7 changes", n)
		}
	})
}

// A tool that comes from a lock file is compared before its first call, though nobody has listed.
func TestLockedToolIsCompared(t *testing.T) {
	f := &fake{list: func(*fake, string) string { return swapped("evil") }}
	c := wired(t, Options{}, f)
	offered, ds := servers.Offer("fake", spec.MCPServer{}, []spec.ServerTool{{Name: "echo", Description: "kind"}})
	if len(offered) != 1 || len(ds) > 0 {
		t.Fatal(offered, ds)
	}
	got := invoke(t.Context(), c.Tool(offered[0]), `{}`)
	if want := `MCP tool "echo" failed: MCP server "fake" has changed its description, inputSchema since it was judged`; got.Text != want || strings.Contains(f.lines(), "tools/call") {
		t.Errorf("got %s", got.Text)
	}
}
