package servers

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/schemas"
	"github.com/open-multi-agent/oma/spec"
)

// MC-04: names fit every model's server, and are the same from run to run.
func TestMC04Names(t *testing.T) {
	for _, test := range []struct{ prefix, name, want string }{
		{"gh", "search/issues.list", "gh_search_issues_list"},
		{" gh ", "a", "gh_a"},
		{"", "plain-name_1", "plain-name_1"},
		{"s", "größe", "s_gr__e"},
		{"inventory-service-for-the-north-region", "find.items/by-category-and-supplier-name", "inventory-service-for-the-north-region_find_items_by-ca_dae5e12d"},
		{"s", strings.Repeat("x", 62), "s_" + strings.Repeat("x", 62)},
		{"s", strings.Repeat("x", 200), "s_" + strings.Repeat("x", 53) + "_" + "9b2e5164"},
	} {
		if got := toolName(test.prefix, test.name); got != test.want || len(got) > maxName {
			t.Errorf("toolName(%q, %q) = %q, want %q", test.prefix, test.name, got, test.want)
		}
	}
	long := strings.Repeat("x", 200)
	if toolName("s", long+"a") == toolName("s", long+"b") {
		t.Error("two long names become one")
	}
}

func TestOffer(t *testing.T) {
	tools := []spec.ServerTool{{Name: "a.b"}, {Name: "c", Description: strings.Repeat("ü", maxDescription+3)}, {Name: "d"}}
	offered, ds := Offer("srv", spec.MCPServer{NamePrefix: "p", Consequential: []string{"*"}, ReadOnly: []string{"c"}}, tools)
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	var got []spec.ToolInfo
	for _, o := range offered {
		got = append(got, o.ToolInfo)
	}
	any := json.RawMessage(`{"type":"object"}`)
	want := []spec.ToolInfo{
		{Name: "p_a_b", Description: "MCP tool: a.b", InputSchema: any, Consequential: true},
		{Name: "p_c", Description: strings.Repeat("ü", maxDescription) + "\n[... 3 characters left out]", InputSchema: any, ReadOnly: true},
		{Name: "p_d", Description: "MCP tool: d", InputSchema: any, Consequential: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
}

// What a server hints decides nothing.
func TestHintsAreNotBelieved(t *testing.T) {
	yes := true
	offered, _ := Offer("s", spec.MCPServer{}, []spec.ServerTool{{Name: "a", Hints: spec.ServerHints{ReadOnly: &yes, Destructive: &yes}}})
	if offered[0].ReadOnly || offered[0].Consequential {
		t.Errorf("got %+v", offered[0].ToolInfo)
	}
}

func TestOfferRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		s    spec.MCPServer
		want []string
	}{
		"collision":  {spec.MCPServer{}, []string{`mcp-name: tools "a.b" and "a/b" of MCP server "s" would both be called s_a_b`}},
		"both":       {spec.MCPServer{Consequential: []string{"c"}, ReadOnly: []string{"c"}}, []string{`mcp-effect: tool "c" of MCP server "s" is both consequential and readOnly`}},
		"unknown":    {spec.MCPServer{ReadOnly: []string{"s_c"}}, []string{`mcp-unknown-tool: MCP server "s" has no tool "s_c"`}},
		"every both": {spec.MCPServer{Consequential: []string{"*"}, ReadOnly: []string{"*"}}, []string{`mcp-effect: tool "c" of MCP server "s" is both consequential and readOnly`}},
	} {
		t.Run(name, func(t *testing.T) {
			tools := []spec.ServerTool{{Name: "c"}}
			if name == "collision" {
				tools = []spec.ServerTool{{Name: "a.b"}, {Name: "a/b"}}
			}
			_, ds := Offer("s", test.s, tools)
			var got []string
			for _, d := range ds {
				got = append(got, d.Code+": "+d.Message)
			}
			if diff := cmp.Diff(test.want, got); diff != "" || !ds.HasErrors(false) {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
}

// MC-01: definitions come along, and a reference is followed into the schema alone (N17).
func TestMC01Schemas(t *testing.T) {
	for name, test := range map[string]struct{ in, want, bad string }{
		"none":         {``, `{"type":"object"}`, ""},
		"type is set":  {`{"properties":{"z":{},"a":{}}}`, `{"type":"object","properties":{"z":{},"a":{}}}`, ""},
		"draft goes":   {`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`, `{"type":"object"}`, ""},
		"draft stays":  {`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"p":{"items":[{"type":"string"}]}}}`, `{"type":"object","$schema":"http://json-schema.org/draft-07/schema#","properties":{"p":{"items":[{"type":"string"}]}}}`, ""},
		"wrong type":   {`{"type":["object","null"]}`, `{"type":"object"}`, ""},
		"definitions":  {`{"type":"object","properties":{"p":{"$ref":"#/$defs/P"}},"$defs":{"P":{"type":"string"}}}`, `{"type":"object","properties":{"p":{"$ref":"#/$defs/P"}},"$defs":{"P":{"type":"string"}}}`, ""},
		"a tree":       {`{"properties":{"p":{"$ref":"#/$defs/P"}},"$defs":{"P":{"properties":{"next":{"$ref":"#/$defs/P"}}}}}`, `{"type":"object","properties":{"p":{"$ref":"#/$defs/P"}},"$defs":{"P":{"properties":{"next":{"$ref":"#/$defs/P"}}}}}`, ""},
		"no object":    {`true`, "", "it is no object"},
		"a file":       {`{"properties":{"p":{"$ref":"file:///etc/passwd"}}}`, "", `reference "file:///etc/passwd" is not local`},
		"an address":   {`{"properties":{"p":{"$ref":"http://127.0.0.1:1/x"}}}`, "", "is not local"},
		"no schema":    {`{"properties":3}`, "", "properties: "},
		"slow pattern": {`{"properties":{"p":{"pattern":"[a-z]{900}[a-z]{900}"}}}`, "", "steps"},
		"digits":       {`{"properties":{"p":{"maximum":18446744073709551615}}}`, "", "more digits than can be kept"},
		"too long":     {`{"title":"` + strings.Repeat("x", maxSchemaBytes) + `"}`, "", "it has 1048"},
	} {
		t.Run(name, func(t *testing.T) {
			offered, ds := Offer("s", spec.MCPServer{}, []spec.ServerTool{{Name: "a", InputSchema: json.RawMessage(test.in)}})
			if test.bad != "" {
				if len(offered) > 0 || len(ds) != 1 || ds.HasErrors(false) || !strings.Contains(ds[0].Message, test.bad) {
					t.Errorf("got %v, %v", offered, ds)
				}
				return
			}
			if len(offered) != 1 || string(offered[0].InputSchema) != test.want {
				t.Fatalf("got %s, %v", offered[0].InputSchema, ds)
			}
			if _, err := schemas.Compile(offered[0].InputSchema); err != nil {
				t.Error(err)
			}
		})
	}
	offered, ds := Offer("s", spec.MCPServer{}, []spec.ServerTool{{Name: "a", OutputSchema: json.RawMessage(`{"$ref":"file:///etc/passwd"}`)}})
	if len(offered) != 1 || offered[0].OutputSchema != nil || len(ds) != 1 || ds[0].Code != "mcp-output" {
		t.Errorf("got %v, %v", offered, ds)
	}
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func FuzzName(f *testing.F) {
	f.Add("gh", "search/issues")
	f.Add("", strings.Repeat("é", 100))
	f.Add(" ", "\xff\x00")
	f.Fuzz(func(t *testing.T, prefix, name string) {
		if name == "" {
			return // List gives none
		}
		got := toolName(prefix, name)
		if !plainName.MatchString(got) {
			t.Errorf("%q", got)
		}
		if again := toolName("", got); again != got {
			t.Errorf("a name that fits changes: %q, %q", got, again)
		}
	})
}
