//go:build real

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/open-multi-agent/oma/testdata/real/parts"
)

// The reference servers are locked, listed and called as people do it. Rules over their tools are typed by their schemas.
func TestRealMCPServers(t *testing.T) {
	files, everything := parts.MCPServer(t, "server-filesystem"), parts.MCPServer(t, "server-everything")
	run := binary(t)
	team := fmt.Sprintf(`apiVersion: oma/v1
kind: Team
name: real-mcp
goal: Look.
defaults: {provider: ollama, model: none}
mcpServers:
  files: {command: %s, args: [%q, .], readOnly: [read_text_file], consequential: ["*"]}
  every: {command: %s, args: [%q, stdio]}
  far: {url: %q}
agents:
  - {name: a, systemPrompt: p, tools: [files_read_text_file, far_echo], customTools: [every/*]}
gates:
  rules:
    - {name: no-keys, tools: [files_read_text_file], when: 'input.path.endsWith(".env")', action: deny, reason: not for you}
`, files[0], files[1], everything[0], everything[1], parts.MCPEverything(t))
	if out, errs, code := run(nil, "validate", team); code != 2 || !strings.Contains(errs, "[mcp-not-locked]") {
		t.Fatalf("before the lock: %d %s%s", code, out, errs)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"mcp", "lock", team}, 0, "of 3 servers"},
		{[]string{"mcp", "lock", "--check", team}, 0, "oma.lock: holds"},
		{[]string{"validate", "--strict", team}, 0, "valid"},
		{[]string{"mcp", "list", team}, 0, "files_read_text_file"},
		{[]string{"mcp", "call", "--agent", "a", "--input", `{"path":"src/main.go"}`, "team.yaml", "files_read_text_file"}, 0, "package main"},
		{[]string{"mcp", "call", "--agent", "a", "--input", `{"path":"secret.env"}`, "team.yaml", "files_read_text_file"}, 1, "no-keys (team) matched deny"},
		{[]string{"mcp", "call", "--agent", "a", "--input", `{"path":"/etc/passwd"}`, "team.yaml", "files_read_text_file"}, 1, "Access denied"},
		{[]string{"mcp", "call", "--agent", "a", "--input", `{"a":2,"b":3}`, "team.yaml", "every_get-sum"}, 0, "5"},
		{[]string{"mcp", "call", "--agent", "a", "--input", `{"message":"hi"}`, "team.yaml", "far_echo"}, 0, "Echo: hi"},
		{[]string{"mcp", "call", "--agent", "a", "--input", `{}`, "team.yaml", "files_write_file"}, 1, "not-granted"},
	} {
		if out, errs, code := run(nil, c.args...); code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("oma %s: %d\n%s%s", strings.Join(c.args[:2], " "), code, out, errs)
		}
	}
}
