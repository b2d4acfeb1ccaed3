//go:build real

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/testdata/real/parts"
)

// decisionsOf gives what was decided, a line for each.
func decisionsOf(r *spec.Receipt) string {
	var b strings.Builder
	for _, d := range r.Decisions {
		fmt.Fprintln(&b, d.ToolName, d.Allowed(), d.Refused, d.GateAction)
	}
	return b.String()
}

// An agent on the protocol's official library, under the gates.
func TestRealServedAgent(t *testing.T) {
	library := parts.Installed(t, "node_modules/@agentclientprotocol/sdk/dist/v1/stable/acp.js")
	script, err := filepath.Abs("../../testdata/real/acp/agent.mjs")
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "in.txt"), []byte("one\ntwo\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	oma := binary(t)
	team := fmt.Sprintf(`apiVersion: oma/v1
kind: Team
name: served
goal: served
budgets: {maxTokenBudget: 20000, maxCostBudget: 1}
agents:
  - {name: coder, cwd: %q, backend: {kind: acp, command: node, args: [%q, %q], capabilities: [fs, terminal], timeout: 1m}}
governance: {governanceIntent: required, requiredRoles: [coder]}
gates:
  default: deny
  rules:
    - {name: files, tools: [file_read, file_write], when: 'input.path in ["in.txt", "deep/out.txt"]', action: allow}
    - {name: shell, tools: [bash], when: 'shell.commands.exists(c, c.name == "sh")', action: allow}
`, work, script, library)
	out, errs, code := oma(nil, "run", "-o", "json", "--receipt", "receipt.json", team)
	r := receiptOf(t, out)
	if code != 0 || r.Cost == nil || r.Cost.String() != "0.300000000001" || r.TotalTokens.Total() != 12 {
		t.Fatalf("ended %d, cost %v, %+v\n%s%s", code, r.Cost, r.TotalTokens, errs, out)
	}
	if said, errs, _ := oma(nil, "run", "team.yaml"); said != "two refused 3 it's|a b|$HOME| n\n" {
		t.Errorf("the agent says %q\n%s", said, errs)
	}
	want := "file_read true  allow\nfile_write true  allow\nfile_write false invalid-input \nbash true  allow\npermission false  deny\n"
	if got := decisionsOf(r); got != want {
		t.Errorf("decided\n%swant\n%s", got, want)
	}
	if b, err := os.ReadFile(filepath.Join(work, "deep/out.txt")); err != nil || string(b) != "TWO\n" {
		t.Errorf("written %q, %v", b, err)
	}
	if out, errs, code := oma(nil, "gate", "--team", "team.yaml", "receipt.json"); code != 0 || !strings.Contains(out, "integrity    chain") {
		t.Errorf("the gate ended %d\n%s%s", code, out, errs)
	}
}

// Coding agents that people use, under the gates: their models are fixtures.
func TestRealAgentsUnderGates(t *testing.T) {
	model := parts.Aimock(t, "testdata/real/acp/model.json")
	for name, program := range map[string]string{"opencode": "node_modules/opencode-linux-x64/bin/opencode",
		"codex": "node_modules/@zed-industries/codex-acp-linux-x64/bin/codex-acp"} {
		t.Run(name, func(t *testing.T) {
			program := parts.Large(t, program)
			work, home := t.TempDir(), t.TempDir()
			env, args := configured(t, name, work, home, model)
			oma := binary(t)
			for _, allow := range []bool{false, true} {
				action := map[bool]string{false: "deny", true: "allow"}[allow]
				team := fmt.Sprintf(`apiVersion: oma/v1
kind: Team
name: coder
goal: make a file
agents:
  - {name: coder, cwd: %q, backend: {kind: acp, command: %q, args: %s, capabilities: [fs, terminal], timeout: 2m, env: %s}}
governance: {governanceIntent: required, requiredRoles: [coder]}
gates:
  rules:
    - {name: echo, tools: [permission], when: 'has(input.command) && input.command == "echo made > made.txt"', action: %s}
`, work, program, args, env, action)
				out, errs, _ := oma(nil, "run", "-o", "json", "--receipt", "receipt-"+action+".json", team)
				r := receiptOf(t, out)
				if got, want := decisionsOf(r), fmt.Sprintf("permission %v  %s\n", allow, action); got != want {
					t.Fatalf("decided\n%swant\n%s\n%s", got, want, errs)
				}
				if _, err := os.Stat(filepath.Join(work, "made.txt")); (err == nil) != allow {
					t.Errorf("%s: the file: %v", action, err)
				}
				if out, errs, _ := oma(nil, "gate", "--team", "team.yaml", "receipt-"+action+".json"); !strings.Contains(out, "integrity    chain") {
					t.Errorf("the gate\n%s%s", out, errs)
				}
				if allow && !r.Success {
					t.Errorf("%+v\n%s", r.Status, errs)
				}
			}
		})
	}
}

// configured writes what an agent wants to know, and gives its environment and arguments as a team file has them.
func configured(t *testing.T, name, work, home, model string) (env, args string) {
	t.Helper()
	path, text := filepath.Join(work, "opencode.json"), fmt.Sprintf(`{"$schema":"https://opencode.ai/config.json","model":"mock/m",
		"provider":{"mock":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":%q,"apiKey":"k"},"models":{"m":{"cost":{"input":1,"output":2},"limit":{"context":200000,"output":8000}}}}},
		"permission":{"edit":"ask","bash":"ask"}}`, model)
	env = fmt.Sprintf("{HOME: %q, XDG_DATA_HOME: %[1]q, XDG_CONFIG_HOME: %[1]q, XDG_CACHE_HOME: %[1]q, XDG_STATE_HOME: %[1]q, OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1'}", home)
	args = "[acp]"
	if name == "codex" {
		path, text = filepath.Join(home, "config.toml"), fmt.Sprintf("model = \"gpt-5\"\nmodel_provider = \"mock\"\napproval_policy = \"untrusted\"\nsandbox_mode = \"danger-full-access\"\n"+
			"[model_providers.mock]\nname = \"mock\"\nbase_url = %q\nenv_key = \"MOCK_KEY\"\nwire_api = \"responses\"\n", model)
		env, args = fmt.Sprintf("{HOME: %q, CODEX_HOME: %[1]q, MOCK_KEY: k}", home), "[]"
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return env, args
}
