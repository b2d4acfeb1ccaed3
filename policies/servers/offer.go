package servers

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/open-multi-agent/oma/spec"
)

// Offered is a server's tool as a team may grant it.
type Offered struct {
	spec.ToolInfo
	Tool spec.ServerTool // as the server describes it
}

const (
	// maxDescription is how much of a description a model is shown, in runes.
	maxDescription = 8192
	// maxSchemaBytes bounds a schema. Models are sent all schemas at each turn.
	maxSchemaBytes = 1 << 20
)

// Offer makes tools of what a server has, whether the server said so or a lock file does, in the same order. name and s
// are the server in the team file. Of the diagnostics, errors are names in the team file that the server lacks and tools
// that would get one name; a tool whose schema cannot be used is left out with a warning.
func Offer(name string, s spec.MCPServer, tools []spec.ServerTool) ([]Offered, spec.Diagnostics) {
	o := offer{server: name, at: spec.Path("mcpServers").Key(name), tools: tools, named: map[string]string{}}
	consequential := o.marks("consequential", s.Consequential)
	readOnly := o.marks("readOnly", s.ReadOnly)
	var out []Offered
	for _, t := range tools {
		info := spec.ToolInfo{Name: toolName(cmp.Or(s.NamePrefix, name), t.Name), Description: description(t)}
		if other, ok := o.named[info.Name]; ok {
			o.ds.Errorf("mcp-name", o.at, "tools %q and %q of MCP server %q would both be called %s", other, t.Name, name, info.Name)
			continue
		}
		o.named[info.Name] = t.Name
		info.Consequential, info.ReadOnly = o.effect(t.Name, consequential, readOnly)
		var err error
		if info.InputSchema, err = inputSchema(t.InputSchema); err != nil {
			o.ds.Warnf("mcp-tool", o.at, "tool %q of MCP server %q is left out: its inputSchema cannot be used: %s", t.Name, name, err)
			continue
		}
		if info.OutputSchema, err = outputSchema(t.OutputSchema); err != nil {
			o.ds.Warnf("mcp-output", o.at, "results of tool %q of MCP server %q are not checked: its outputSchema cannot be used: %s", t.Name, name, err)
		}
		out = append(out, Offered{info, t})
	}
	return out, o.ds
}

type offer struct {
	server string
	at     spec.Path
	tools  []spec.ServerTool
	named  map[string]string // the server's name by the name that is given here
	ds     spec.Diagnostics
}

// every stands for all tools that are not named.
const every = "*"

// marks checks the names of one list of the team file.
func (o *offer) marks(key string, names []string) map[string]bool {
	marked := map[string]bool{}
	for i, n := range names {
		marked[n] = true
		if n != every && !slices.ContainsFunc(o.tools, func(t spec.ServerTool) bool { return t.Name == n }) {
			valid := make([]string, len(o.tools))
			for i, t := range o.tools {
				valid[i] = t.Name
			}
			o.ds.Errorf("mcp-unknown-tool", o.at.Key(key).Index(i), "MCP server %q has no tool %q", o.server, n).Hint = spec.DidYouMean(n, valid)
		}
	}
	return marked
}

// effect says what the team file says of a tool. A name goes before *. Both at once cannot be meant.
func (o *offer) effect(tool string, consequential, readOnly map[string]bool) (changes, reads bool) {
	changes, reads = consequential[tool], readOnly[tool]
	if !changes && !reads {
		changes, reads = consequential[every], readOnly[every]
	}
	if changes && reads {
		o.ds.Errorf("mcp-effect", o.at.Key("readOnly"), "tool %q of MCP server %q is both consequential and readOnly", tool, o.server)
	}
	return changes, reads
}

func description(t spec.ServerTool) string {
	d := cmp.Or(t.Description, "MCP tool: "+t.Name)
	n := utf8.RuneCountInString(d)
	if n <= maxDescription {
		return d
	}
	return fmt.Sprintf("%s\n[... %d characters left out]", string([]rune(d)[:maxDescription]), n-maxDescription)
}
