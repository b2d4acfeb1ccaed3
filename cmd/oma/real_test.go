//go:build real

package main

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/testdata/real/parts"
)

const reviewTeam = `apiVersion: oma/v1
kind: Team
name: real-review
goal: Review this change before release.
providers:
  server:
    kind: openai
    baseURL: BASE
    apiKey: {env: REAL_KEY}
    models: {m: {inputPer1M: 1, outputPer1M: 2}}
defaults: {provider: server, model: m, cwd: ., toolPreset: readonly}
agents:
  - name: reviewer
    systemPrompt: You are the reviewer.
    outputSchema: &v {type: object, required: [verdict], properties: {verdict: {enum: [approve, reject]}}}
  - {name: security, systemPrompt: You are the security expert., outputSchema: *v}
governance: {governanceIntent: required, requiredRoles: [reviewer, security], requiredOrder: [reviewer, security]}
budgets: {maxTokenBudget: 20000, maxCostBudget: 0.05, maxDuration: 1m}
gates:
  rules:
    - name: no-secrets
      tools: [file_read]
      when: |
        input.path.contains("secret")
      action: deny
      reason: not for reviewers
release:
  require:
    - name: both-approve
      that: |
        results.reviewer.structured.verdict == "approve" && results.security.structured.verdict == "approve"
      reason: not approved
`

// built builds the binary.
func built(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "oma")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// binary builds the binary and gives a function that runs it in a folder.
func binary(t *testing.T) func(env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	bin := built(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"src/main.go": "package main\n\nfunc main() {}\n", "secret.env": "KEY=1\n"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	state := t.TempDir()
	return func(env []string, args ...string) (string, string, int) {
		t.Helper()
		if len(args) > 0 && strings.HasPrefix(args[len(args)-1], "apiVersion") {
			if err := os.WriteFile(filepath.Join(dir, "team.yaml"), []byte(args[len(args)-1]), 0o644); err != nil {
				t.Fatal(err)
			}
			args[len(args)-1] = "team.yaml"
		}
		cmd := exec.Command(bin, args...)
		cmd.Dir, cmd.Env = dir, append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "OMA_STATE=" + state}, env...)
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		cmd.Run()
		return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
	}
}

func receiptOf(t *testing.T, text string) *spec.Receipt {
	t.Helper()
	var r spec.Receipt
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&r); err != nil && err != io.EOF {
		t.Fatalf("%v in %q", err, text)
	}
	return &r
}

func TestRealReview(t *testing.T) {
	team := strings.ReplaceAll(reviewTeam, "BASE", parts.Aimock(t, "testdata/real/aimock-team.json"))
	oma := binary(t)
	const key = "sk-real-0123456789abcdef"
	out, errs, code := oma([]string{"REAL_KEY=" + key}, "run", "-o", "json", "--receipt", "receipt.json", "--record", "recorded.yaml", team)
	if code != 0 {
		t.Fatalf("ended %d\n%s", code, errs)
	}
	r := receiptOf(t, out)
	if r.GovernanceConclusion != spec.Satisfied || r.ReleaseConclusion != spec.Satisfied || r.Denied != 1 {
		t.Errorf("governance %s, release %s, denied %d", r.GovernanceConclusion, r.ReleaseConclusion, r.Denied)
	}
	if want := (spec.Usage{Input: 990, Output: 86}); r.TotalTokens != want || r.Cost.String() != "0.001162" {
		t.Errorf("tokens %+v, cost $%s", r.TotalTokens, r.Cost)
	}
	if strings.Contains(out+errs, key) {
		t.Error("the key is in the output")
	}
	if _, errs, code := oma(nil, "gate", "--no-log", "--team", "team.yaml", "receipt.json"); code != 0 {
		t.Errorf("gate ended %d\n%s", code, errs)
	}
	// what was recorded plays without the server, and gives the same
	played := strings.NewReplacer("    kind: openai\n", "    kind: scripted\n    cassette: recorded.yaml\n", "    apiKey: {env: REAL_KEY}\n", "").Replace(team)
	i := strings.Index(played, "    baseURL")
	played = played[:i] + played[i+strings.Index(played[i:], "\n")+1:]
	out, errs, code = oma(nil, "run", "-o", "json", played)
	if code != 0 {
		t.Fatalf("the recording ended %d\n%s", code, errs)
	}
	if again := receiptOf(t, out); again.TotalTokens != r.TotalTokens || again.GovernanceConclusion != spec.Satisfied || again.Denied != 1 {
		t.Errorf("the recording gives %+v, %s, %d denied", again.TotalTokens, again.GovernanceConclusion, again.Denied)
	}
}

func TestRealServerThatIsNotThere(t *testing.T) {
	oma := binary(t)
	team := strings.ReplaceAll(reviewTeam, "BASE", "http://127.0.0.1:9/v1")
	out, errs, code := oma([]string{"REAL_KEY=sk-real-0123456789abcdef"}, "run", "-o", "json", strings.Replace(team, "    apiKey", "    maxRetries: 0\n    apiKey", 1))
	r := receiptOf(t, out)
	if code != 3 || r.Status.Code != spec.StatusError || r.ErrorInfo.Kind != "provider" || r.GovernanceConclusion != spec.Unsatisfied {
		t.Errorf("ended %d, %+v, %+v, %s", code, r.Status, r.ErrorInfo, r.GovernanceConclusion)
	}
	if strings.Contains(out+errs, "sk-real") {
		t.Error("SE-03: a key is in the output")
	}
}

// A real engine with a model that has been taught one conversation: it asks for a tool it was not granted, is told so,
// and answers.
func TestRealEngine(t *testing.T) {
	oma := binary(t)
	team := `apiVersion: oma/v1
kind: Team
name: engine
goal: What is the weather in Oslo?
providers:
  local: {kind: ollama, baseURL: ` + parts.Ollama(t) + `}
agents:
  - {name: a, provider: local, model: tiny, toolPreset: readonly, cwd: ., maxTurns: 3, maxOutputTokens: 40, callTimeout: 1m}
budgets: {maxTokenBudget: 20000}
`
	out, errs, code := oma(nil, "run", "-o", "json", team)
	r := receiptOf(t, out)
	if len(r.Tasks) != 1 || r.Tasks[0].ModelCalls == 0 || r.TotalTokens.Input == 0 || r.TotalTokens.Output == 0 {
		t.Fatalf("ended %d\n%s%s", code, out, errs)
	}
	if (code == 0) != r.Success || len(r.Unmetered) != 0 {
		t.Errorf("ended %d, success %v, unmetered %v", code, r.Success, r.Unmetered)
	}
}
