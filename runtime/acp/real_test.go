//go:build real

package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/testdata/real/parts"
)

// prompted runs one prompt that must complete.
func prompted(t *testing.T, a *Agent, text string) *Reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := a.Prompt(ctx, text)
	if err != nil {
		t.Fatalf("%v\n%+v", err, r)
	}
	return r
}

// logged gives the agent's remarks to a failed test.
func logged(t *testing.T, o Options) Options {
	var mu sync.Mutex
	var lines []string
	o.Log = func(s string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, s)
	}
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		if t.Failed() {
			t.Logf("remarks:\n%s", strings.Join(lines, "\n"))
		}
	})
	return o
}

// TestRealLibrary meets an agent on the protocol's official library.
func TestRealLibrary(t *testing.T) {
	library := parts.Installed(t, "node_modules/@agentclientprotocol/sdk/dist/v1/stable/acp.js")
	script, err := filepath.Abs("../../testdata/real/acp/agent.mjs")
	if err != nil {
		t.Fatal(err)
	}
	start := func(t *testing.T, o Options) *Agent {
		o = logged(t, o)
		o.Name, o.Command, o.Dir, o.Env = "small", []string{"node", script, library}, t.TempDir(), []string{"PATH=" + os.Getenv("PATH")}
		a := New(o)
		t.Cleanup(func() { a.Close() })
		return a
	}
	t.Run("a turn", func(t *testing.T) {
		r := prompted(t, start(t, Options{SystemPrompt: "Be brief."}), "hello")
		want := &Reply{Stop: spec.StopCompleted, AgentStop: "end_turn", Output: "Hello yourself.", Thoughts: "They greet me.",
			Plan:  json.RawMessage(`{"entries":[{"content":"greet","priority":"high","status":"in_progress"}],"sessionUpdate":"plan"}`),
			Usage: &spec.Usage{Input: 12, Output: 4}, UsageFrom: FromResult}
		if diff := cmp.Diff(want, r); diff != "" {
			t.Errorf("reply (-want +got):\n%s", diff)
		}
	})
	for _, allow := range []Answer{Allow, Deny} {
		t.Run(fmt.Sprintf("permission %v", allow), func(t *testing.T) {
			var judged Permission
			r := prompted(t, start(t, Options{Permit: func(_ context.Context, p Permission) Answer { judged = p; return allow }}), "remove")
			want := Permission{CallID: "t1", Title: "rm -rf build", Kind: "execute", OptionKinds: []string{"allow_once", "reject_once"}, Command: "rm -rf build"}
			if diff := cmp.Diff(want, judged); diff != "" {
				t.Errorf("judged (-want +got):\n%s", diff)
			}
			option, status := `{"outcome":"selected","optionId":"stop"}`, "failed"
			if allow {
				option, status = `{"outcome":"selected","optionId":"proceed"}`, "completed"
			}
			var got, wanted any
			if json.Unmarshal([]byte(r.Output), &got) != nil || json.Unmarshal([]byte(option), &wanted) != nil || !cmp.Equal(got, wanted) {
				t.Errorf("the agent was answered %s, want %s", r.Output, option)
			}
			if r.ToolCalls[0].Status != status || r.Usage.Input != 12 || r.UsageFrom != FromContext || r.Cost.String() != "0.5" {
				t.Errorf("call %+v, usage %+v from %s, cost %v", r.ToolCalls, r.Usage, r.UsageFrom, r.Cost)
			}
		})
	}
	t.Run("files and a terminal", func(t *testing.T) {
		var calls []string
		o := Options{Capabilities: []string{FS, Terminal}, Door: func(_ context.Context, tool string, in map[string]any) spec.ToolResult {
			b, _ := json.Marshal(in)
			calls = append(calls, tool+" "+string(b))
			return map[string]spec.ToolResult{"file_read": {Text: "1\tabc"}, "file_write": {Text: "Created"}, "bash": {Text: "bad\n(exit code: 2)", IsError: true}}[tool]
		}}
		r := prompted(t, start(t, o), "files")
		want := []string{`file_read {"path":"/in.txt"}`, `file_write {"content":"ABC\n","path":"/out.txt"}`, `bash {"command":"make test","timeout":600000}`}
		if diff := cmp.Diff(want, calls); diff != "" || r.Output != "2 bad\n(exit code: 2)" {
			t.Errorf("output %q, calls (-want +got):\n%s", r.Output, diff)
		}
	})
	t.Run("nothing that was not offered", func(t *testing.T) {
		_, err := start(t, Options{}).Prompt(t.Context(), "files")
		if codeOf(t, err) != CodeAgent {
			t.Fatalf("ended with %v", err)
		}
		wantText(t, err.Error(), "fs/read_text_file")
	})
	t.Run("cancelling, and going on", func(t *testing.T) {
		a := start(t, Options{})
		prompted(t, a, "hello")
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if r, err := a.Prompt(ctx, "wait"); codeOf(t, err) != CodeTimeout || r.AgentStop != "cancelled" {
			t.Errorf("ended with %v, the agent said %q", err, r.AgentStop)
		}
		if r := prompted(t, a, "hello"); r.Restarted {
			t.Error("the agent was started again")
		}
	})
	t.Run("a burst", func(t *testing.T) {
		if r := prompted(t, start(t, Options{Update: func(Update) {}}), "burst"); r.Output != strings.Repeat("x", 6000) {
			t.Errorf("%d of 6000", len(r.Output))
		}
	})
	t.Run("a failure", func(t *testing.T) {
		_, err := start(t, Options{}).Prompt(t.Context(), "fail")
		if codeOf(t, err) != CodeAgent || err.(*Error).RPC.Code != codeInternal {
			t.Fatalf("ended with %v", err)
		}
		wantText(t, err.Error(), "no model")
	})
}

// coder is a coding agent of others, with its model replaced by fixtures.
type coder struct {
	// prepare writes its configuration and gives its command and environment.
	prepare func(t *testing.T, dir, model string) (command, env []string)
	usage   spec.Usage // of the first turn, and who reported it
	from    string
	cost    string // of the first turn, in dollars. Empty: it reports none
	// refusedStop is what a turn comes to in which a permission was refused.
	refusedStop spec.StopReason
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func opencode(t *testing.T, dir, model string) (command, env []string) {
	program := parts.Large(t, "node_modules/opencode-linux-x64/bin/opencode")
	write(t, filepath.Join(dir, "opencode.json"), fmt.Sprintf(`{"$schema":"https://opencode.ai/config.json","model":"mock/m",
		"provider":{"mock":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":%q,"apiKey":"k"},"models":{"m":{"cost":{"input":1,"output":2},"limit":{"context":200000,"output":8000}}}}},
		"permission":{"edit":"ask","bash":"ask"}}`, model))
	home := t.TempDir()
	return []string{program, "acp"}, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_DATA_HOME=" + home + "/data", "XDG_CONFIG_HOME=" + home + "/config",
		"XDG_CACHE_HOME=" + home + "/cache", "XDG_STATE_HOME=" + home + "/state", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1"}
}

func codex(t *testing.T, _, model string) (command, env []string) {
	program := parts.Large(t, "node_modules/@zed-industries/codex-acp-linux-x64/bin/codex-acp")
	home := t.TempDir()
	write(t, filepath.Join(home, "config.toml"), fmt.Sprintf(`model = "gpt-5"
model_provider = "mock"
approval_policy = "untrusted"
sandbox_mode = "danger-full-access"
[model_providers.mock]
name = "mock"
base_url = %q
env_key = "MOCK_KEY"
wire_api = "responses"
`, model))
	return []string{program}, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "CODEX_HOME=" + home, "MOCK_KEY=k"}
}

// TestRealAgents meets coding agents that people use.
func TestRealAgents(t *testing.T) {
	for name, c := range map[string]coder{
		"opencode": {opencode, spec.Usage{Input: 1000, Output: 6}, FromResult, "0.001012", spec.StopCompleted},
		"codex":    {codex, spec.Usage{Input: 1006}, FromContext, "", spec.StopCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			command, env := c.prepare(t, dir, parts.Aimock(t, "testdata/real/acp/model.json"))
			made := filepath.Join(dir, "made.txt")
			var judged []Permission
			answer := Deny
			a := New(logged(t, Options{Name: name, Command: command, Dir: dir, Env: env,
				Permit: func(_ context.Context, p Permission) Answer { judged = append(judged, p); return answer }}))
			defer a.Close()

			r := prompted(t, a, "hello")
			if !strings.HasSuffix(r.Output, "Hello from the model.") { // a warning may stand before it
				t.Errorf("output %q", r.Output)
			}
			cost := ""
			if r.Cost != nil {
				cost = r.Cost.String()
			}
			if diff := cmp.Diff(&c.usage, r.Usage); diff != "" || r.UsageFrom != c.from || cost != c.cost {
				t.Errorf("from %q, cost %q; usage (-want +got):\n%s", r.UsageFrom, cost, diff)
			}

			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r, err := a.Prompt(ctx, "make a file")
			if _, missing := os.Stat(made); r.Stop != c.refusedStop || missing == nil || len(judged) != 1 || judged[0].Command != "echo made > made.txt" || judged[0].Kind != "execute" {
				t.Fatalf("refused: stop %q, %v, judged %+v, file %v", r.Stop, err, judged, missing)
			}
			answer = Allow
			r = prompted(t, a, "make a file")
			if _, err := os.Stat(made); err != nil || !r.Decisions[0].Allowed || r.Decisions[0].Answer != "allow_once" || r.Restarted {
				t.Errorf("allowed: %v, %+v", err, r)
			}
			if n := len(r.ToolCalls); n != 1 || r.ToolCalls[0].Status != "completed" {
				t.Errorf("calls %+v", r.ToolCalls)
			}

			r, err = a.Prompt(ctx, "explode")
			if codeOf(t, err) != CodeAgent || !strings.Contains(err.Error(), "bad request xyz") {
				t.Errorf("an error of the model ended with %v, %+v", err, r)
			}

			short, stop := context.WithTimeout(t.Context(), 3*time.Second)
			defer stop()
			if r, err := a.Prompt(short, "slowly"); codeOf(t, err) != CodeTimeout || r.AgentStop != "cancelled" {
				t.Errorf("cancelling ended with %v, the agent said %q", err, r.AgentStop)
			}
			a.Close()
			if _, err := a.Prompt(t.Context(), "hello"); codeOf(t, err) != CodeGone {
				t.Errorf("a prompt after Close ended with %v", err)
			}
		})
	}
}
