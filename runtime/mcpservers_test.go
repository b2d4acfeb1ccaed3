package runtime

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/policies/servers"
	"github.com/open-multi-agent/oma/spec"
)

// withServers is a pair of agents with two servers that were locked.
func withServers(t *testing.T) *spec.Bundle {
	t.Helper()
	lock, err := servers.NewLock(map[string][]spec.ServerTool{
		"fs":  {{Name: "read", InputSchema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)}, {Name: "write"}},
		"web": {{Name: "get", OutputSchema: json.RawMessage(`{"$ref":"file:///etc/passwd"}`)}, {Name: "bad", InputSchema: json.RawMessage(`{"$ref":"http://a.example/s"}`)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	b := pair()
	b.Lock = &spec.LockFile{File: spec.File{Path: spec.LockName, Digest: "sha256:lock"}, Lock: lock}
	b.Team.MCPServers = map[string]spec.MCPServer{"fs": {Command: "fs"}, "web": {URL: "https://web.example/mcp"}}
	b.Team.Agents[0].CustomTools, b.Team.Agents[1].Tools = []string{"fs/*"}, &[]string{"web_get"}
	return b
}

// What a server offered when it was locked is in the plan, in grants, and in what rules know.
func TestPlanOfServers(t *testing.T) {
	b := withServers(t)
	p := compiledPair(t, b)
	if !slices.Contains(p.Inputs, spec.PlanInput{Path: spec.LockName, Digest: "sha256:lock", Kind: spec.KindLock}) {
		t.Errorf("the lock is no input: %v", p.Inputs)
	}
	a, other := &p.Agents[0], &p.Agents[1]
	if got := ServersOf(p, a); !slices.Equal(got, []string{"fs"}) || !a.Starts(p) || other.Starts(p) {
		t.Errorf("%v, starts %t and %t", got, a.Starts(p), other.Starts(p))
	}
	if !a.Has("fs_read") || !a.Has("fs_write") || a.Has("web_get") || !other.Has("web_get") {
		t.Errorf("grants are %v and %v", a.Tools, other.Tools)
	}
	if name := serverTool(p, "fs_read"); name != "fs/read" || serverTool(p, "bash") != "" {
		t.Errorf("the server's own name is %q", name)
	}
	for _, c := range NotEnforced(p, "containment") {
		if c.Agent != a.Name || c.Level != spec.NotEnforceable || !strings.Contains(c.Mechanism, "MCP servers") {
			t.Errorf("the map says %+v", c)
		}
	}
	raw, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := ReadPlan(raw)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(serverTools(p), serverTools(back)); diff != "" || len(serverTools(back)) != 3 {
		t.Errorf("another catalog\n%s", diff)
	}
}

// Each problem has its code and its place.
func TestProblemsOfServers(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*spec.Bundle)
		want   string // CODE PATH
	}{
		"a schema that opens an address": {nil, "mcp-tool mcpServers.web"},
		"results that are not checked":   {nil, "mcp-output mcpServers.web"},
		"no lock":                        {func(b *spec.Bundle) { b.Lock = nil }, "mcp-not-locked agents[0].customTools[0]"},
		"a new server":                   {func(b *spec.Bundle) { b.Team.MCPServers["new"] = spec.MCPServer{Command: "a"} }, "mcp-not-locked mcpServers.new"},
		"an edited lock":                 {func(b *spec.Bundle) { b.Lock.Lock.Servers["fs"].Tools[0].Description = "other" }, "mcp-lock "},
		"one prefix for two": {func(b *spec.Bundle) {
			b.Lock.Lock.Servers["web"] = b.Lock.Lock.Servers["fs"]
			b.Team.MCPServers["web"] = spec.MCPServer{Command: "a", NamePrefix: "fs"}
		}, "mcp-name mcpServers.web"},
		"the name of a tool of the team's own": {func(b *spec.Bundle) {
			b.Team.CustomTools = map[string]spec.CustomTool{"fs_read": {Command: []string{"a"}}}
		}, "mcp-name mcpServers.fs"},
		"both effects":      {func(b *spec.Bundle) { b.Team.MCPServers["fs"] = effects("read", "read") }, "mcp-effect mcpServers.fs.readOnly"},
		"no such tool":      {func(b *spec.Bundle) { b.Team.MCPServers["fs"] = effects("reed", "read") }, "mcp-unknown-tool mcpServers.fs.consequential[0]"},
		"left out":          {func(b *spec.Bundle) { b.Team.Agents[0].MCPServers = &[]string{"web"} }, "mcp-server-not-listed agents[0].mcpServers"},
		"named for nothing": {func(b *spec.Bundle) { b.Team.Agents[0].MCPServers = &[]string{"fs", "web"} }, "mcp-unused agents[0].mcpServers[1]"},
		"no such server":    {func(b *spec.Bundle) { b.Team.Agents[0].MCPServers = &[]string{"fs", "wb"} }, "mcp-unknown-server agents[0].mcpServers[1]"},
		"nobody has it":     {func(b *spec.Bundle) { b.Team.Agents[1].Tools = nil }, "mcp-unused mcpServers.web"},
		"a credential that is missing": {func(b *spec.Bundle) {
			b.Team.MCPServers["fs"] = spec.MCPServer{Command: "a", Env: map[string]spec.Variable{"K": {Credential: "KEY"}}}
		}, "credential-missing agents[0]"},
		"a secret in an argument": {func(b *spec.Bundle) {
			b.Team.MCPServers["fs"] = spec.MCPServer{Command: "a", Args: []string{"--api-key=sk-abcdefghijklmnop"}}
		}, "mcp-server mcpServers.fs.args[0]"},
		"a secret in the address": {func(b *spec.Bundle) {
			b.Team.MCPServers["web"] = spec.MCPServer{URL: "https://web.example/mcp?token=abc"}
		}, "secret-in-url mcpServers.web.url"},
	} {
		b := withServers(t)
		if test.change != nil {
			test.change(b)
		}
		_, ds := compilePair(t, b)
		if !slices.ContainsFunc(ds, func(d spec.Diagnostic) bool { return d.Code+" "+string(d.Path) == test.want }) {
			t.Errorf("%s: want %s, got %v", name, test.want, ds)
		}
	}
}

func effects(consequential, readOnly string) spec.MCPServer {
	return spec.MCPServer{Command: "a", Consequential: []string{consequential}, ReadOnly: []string{readOnly}}
}

// Whoever asks servers what they offer needs no team that compiles, and no way around a policy from above.
func TestCheckServers(t *testing.T) {
	b := withServers(t)
	b.Lock = nil
	if ds := CheckServers(b); len(ds) > 0 {
		t.Errorf("nothing is wrong, and it says %v", ds)
	}
	b.Above = []spec.PolicyFile{policyOf("house", "d", &spec.Limits{Commands: &[]string{"other"}, Origins: &[]string{"https://other.example"}})}
	var got []string
	for _, d := range CheckServers(b) {
		got = append(got, d.Code+" "+string(d.Path))
	}
	if diff := cmp.Diff([]string{"policy-command mcpServers.fs.command", "policy-origin mcpServers.web.url"}, got); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
}
