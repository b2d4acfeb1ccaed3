package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The limit a plan shows is the one that rules are held against.
func TestRuleCostLimit(t *testing.T) {
	team := filepath.Join(t.TempDir(), "team.yaml")
	text := `apiVersion: oma/v1
kind: Team
name: costly
goal: Look.
defaults: {provider: ollama, model: llama3.2, cwd: .}
agents: [{name: writer, systemPrompt: You write., tools: [file_write]}]
gates:
  rules:
    - name: no-private-keys
      tools: [file_write]
      action: deny
      when: |
        input.content.matches("BEGIN (RSA|EC|DSA|OPENSSH|PGP|ENCRYPTED|ANY) PRIVATE KEY( BLOCK)?-----[A-Za-z0-9+/=]{26}")
`
	if err := os.WriteFile(team, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, errs, code := call(t, 0, "validate", team)
	if want := fmt.Sprintf("at most %d are allowed", ruleCostLimit); code != 2 || !strings.Contains(errs, want) {
		t.Errorf("ended %d without %q:\n%s", code, want, errs)
	}
}

// A plan that nobody is to run is not written.
func TestUnaffordablePlanIsNotWritten(t *testing.T) {
	out := filepath.Join(t.TempDir(), "plan.json")
	_, errs, code := call(t, 0, "plan", "--fail-on", "unaffordable", "--out", out, review)
	if code != 7 || exists(out) || !strings.Contains(errs, `model "scripted" of provider "demo"`) {
		t.Errorf("ended %d, %s written: %v\n%s", code, out, exists(out), errs)
	}
	if strings.Contains(errs, "next:") {
		t.Errorf("it says what to run next:\n%s", errs)
	}
}

// A person sees where each agent's key goes, and each promise once.
func TestPlanText(t *testing.T) {
	out, _, _ := call(t, 0, "plan", review)
	for _, want := range []string{"\n  goal        ", "\n    asks the cassette cassettes/04-required-review.yaml\n", "callTimeout 10m0s  outputSchema yes",
		"\n  enforced for every agent: grants, gates, containment, budget, evidence, secrets\n", "&&\n    results.security", " of 10000000)"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
