package loader

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

const head = "apiVersion: oma/v1\nkind: Team\nname: t\n"

func text(ds spec.Diagnostics) string {
	var b bytes.Buffer
	_ = Render(&b, ds)
	return b.String()
}

func team(t *testing.T, yaml string) *spec.Team {
	t.Helper()
	l, ds := TeamBytes("team.yaml", t.TempDir(), []byte(yaml))
	if len(ds) > 0 {
		t.Fatal(text(ds))
	}
	return l.Bundle.Team
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A bundle has every file once, by the name as written, with its cleaned path and the digest of its text.
func TestBundle(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/teams/team.yaml", head+`
providers: {demo: {kind: scripted, cassette: ./c.yaml}}
gates: {files: [../shared/p.yaml]}
agents:
  - {name: a, systemPromptFile: prompts/../a.md}
  - {name: b, systemPromptFile: a.md, gates: {files: [../shared/p.yaml]}}
`)
	write(t, dir+"/teams/a.md", "\uFEFFyou are a\r\n")
	write(t, dir+"/teams/c.yaml", "apiVersion: oma/v1\nkind: Cassette\nagents: {a: [{text: hi}]}\n")
	policy := "apiVersion: oma/v1\nkind: Policy\nname: p\nrules: [{name: r, when: 'true', action: warn}]\n"
	write(t, dir+"/shared/p.yaml", policy)
	l, ds := Team(dir + "/teams/team.yaml")
	if len(ds) > 0 {
		t.Fatal(text(ds))
	}
	prompt := spec.File{Path: "a.md", Digest: canon.Text("file", []byte("you are a\n")), Text: "you are a\n"}
	b := l.Bundle
	if diff := cmp.Diff(map[string]spec.File{"prompts/../a.md": prompt, "a.md": prompt}, b.Prompts); diff != "" {
		t.Errorf("prompts: want -, got +\n%s", diff)
	}
	want := map[string]spec.PolicyFile{"../shared/p.yaml": {
		File: spec.File{Path: "../shared/p.yaml", Digest: canon.Text("file", []byte(policy)), Text: policy},
		Policy: &spec.Policy{
			Envelope: spec.Envelope{APIVersion: "oma/v1", Kind: "Policy"}, Name: "p",
			Rules: []spec.Rule{{Name: "r", When: "true", Action: "warn"}},
		},
	}}
	if diff := cmp.Diff(want, b.Policies); diff != "" {
		t.Errorf("policies: want -, got +\n%s", diff)
	}
	if c := b.Cassettes["./c.yaml"]; c.Path != "c.yaml" || c.Cassette.Agents["a"][0].Text != "hi" {
		t.Errorf("cassette: %+v", c)
	}
	if b.TeamFile.Path != "team.yaml" || !strings.HasPrefix(b.TeamFile.Digest, "sha256:") {
		t.Errorf("team file: %+v", b.TeamFile)
	}
}

// Files that are missing leave an empty entry, so that a compiler can go on looking for problems.
func TestBundleWithMissingFiles(t *testing.T) {
	l, ds := TeamBytes("team.yaml", t.TempDir(), []byte(head+`
providers: {demo: {kind: scripted, cassette: c.yaml}}
gates: {files: [p.yaml]}
agents: [{name: a, systemPromptFile: a.md}]
`))
	if len(ds) != 3 {
		t.Fatalf("want three problems, got\n%s", text(ds))
	}
	if l.Bundle == nil || l.Bundle.Policies["p.yaml"].Policy == nil || l.Bundle.Cassettes["c.yaml"].Cassette == nil {
		t.Errorf("bundle: %+v", l.Bundle)
	}
	if got, want := l.Bundle.Prompts["a.md"], (spec.File{Path: "a.md"}); got != want {
		t.Errorf("prompt: %+v", got)
	}
}

// What cannot be read is refused at once, for its own reason.
func TestReadingFiles(t *testing.T) {
	dir := t.TempDir()
	fifo := dir + "/fifo"
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	write(t, dir+"/secret.yaml", head)
	if err := os.Chmod(dir+"/secret.yaml", 0); err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/large.yaml", strings.Repeat("#\n", maxFile/2)+"#")
	write(t, dir+"/limit.yaml", head+"agents: [{name: a}]\n"+strings.Repeat("#\n", maxFile/2-64))
	if err := os.Symlink("loop", dir+"/loop"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"fifo": "file-not-regular", ".": "file-not-regular", "nowhere.yaml": "file-missing", "large.yaml": "file-too-large",
		"limit.yaml": "", "loop": "file-unreadable", "fifo/x": "file-unreadable", "secret.yaml": "file-unreadable",
	} {
		t.Run(name, func(t *testing.T) {
			if name == "secret.yaml" && os.Getuid() == 0 {
				t.Skip("root reads everything")
			}
			l, ds := Team(filepath.Join(dir, name))
			if l.Sources == nil {
				t.Error("no sources")
			}
			got := ""
			if len(ds) > 0 {
				got = ds[0].Code
			}
			if got != want {
				t.Errorf("want %q, got %q", want, text(ds))
			}
		})
	}
	if _, ds := Read("-", bytes.Repeat([]byte("#"), maxFile+1), ""); len(ds) != 1 || ds[0].Code != "file-too-large" {
		t.Errorf("bytes: %s", text(ds))
	}
}

// YM-03: words that other readers take for true, false or nothing stay words.
func TestWords(t *testing.T) {
	got := team(t, head+"description: off\ngoal: ~x\nagents: [{name: on, description: no, model: y, provider: 'null', systemPrompt: Null-ish}]\n")
	a := got.Agents[0]
	if diff := cmp.Diff([]string{"off", "~x", "on", "no", "y", "null", "Null-ish"},
		[]string{got.Description, got.Goal, a.Name, a.Description, a.Model, a.Provider, a.SystemPrompt}); diff != "" {
		t.Error(diff)
	}
}

// YM-02: nothing expands while loading.
func TestDollars(t *testing.T) {
	const want = `costs $5, hash $2y$10$abc, price $$, $${NAME} ${inputs.x} ends with $`
	if got := team(t, head+"goal: "+fmt.Sprintf("%q", want)+"\nagents: [{name: a}]\n").Goal; got != want {
		t.Errorf("got %s", got)
	}
}

// YM-05: a byte-order mark, CRLF and a missing line end change neither text nor digest.
func TestWindows(t *testing.T) {
	unix := head + "goal: |\n  one\n  two\nagents: [{name: a}]\n"
	dos := "\uFEFF" + strings.ReplaceAll(unix, "\n", "\r\n")
	a, ds := Read("u", []byte(unix), "")
	b, more := Read("d", []byte(dos), "")
	if len(ds)+len(more) > 0 {
		t.Fatal(text(append(ds, more...)))
	}
	if diff := cmp.Diff(a.Bundle.Team, b.Bundle.Team); diff != "" {
		t.Error(diff)
	}
	if a.Bundle.TeamFile.Digest != b.Bundle.TeamFile.Digest || b.Bundle.Team.Goal != "one\ntwo\n" {
		t.Errorf("%+v", b.Bundle)
	}
	if got := team(t, strings.TrimSuffix(unix, "\n")); got.Goal != "one\ntwo\n" {
		t.Errorf("without the last line end: %q", got.Goal)
	}
}

// The exact text of a price counts, whole numbers may be written as 5.0, and an explicit nothing differs from none.
func TestNumbers(t *testing.T) {
	got := team(t, head+`
providers: {p: {kind: ollama, maxRetries: 0, models: {m: {inputPer1M: 0.025, outputPer1M: 1.000000000001, cachedInputPer1M: 0, contextWindow: 2e5}}}}
budgets: {maxCostBudget: 2.00}
agents:
  - {name: a, maxTurns: 5.0, temperature: 0.0, tools: [], compressToolResults: true}
  - {name: b, compressToolResults: 800}
`)
	m := got.Providers["p"].Models["m"]
	if *m.InputPer1M != spec.Dollar/40 || *m.OutputPer1M != spec.Dollar+1 || *m.CachedInputPer1M != 0 || m.ContextWindow != 200000 {
		t.Errorf("prices: %v %v %v %d", *m.InputPer1M, *m.OutputPer1M, *m.CachedInputPer1M, m.ContextWindow)
	}
	a, b := got.Agents[0], got.Agents[1]
	if *got.Budgets.MaxCostBudget != 2*spec.Dollar || a.MaxTurns != 5 || *a.Temperature != 0 || *got.Providers["p"].MaxRetries != 0 {
		t.Errorf("budget %v, turns %d", *got.Budgets.MaxCostBudget, a.MaxTurns)
	}
	if a.Tools == nil || len(*a.Tools) != 0 || b.Tools != nil || *a.CompressToolResults != 500 || *b.CompressToolResults != 800 {
		t.Errorf("tools %v %v, compress %v %v", a.Tools, b.Tools, a.CompressToolResults, b.CompressToolResults)
	}
}

// Explicit keys beat merged ones wherever << stands, and of several merged maps the first wins.
func TestMerge(t *testing.T) {
	l, ds := Any("../testdata/ok/merge-keys.yml")
	if len(ds) > 0 {
		t.Fatal(text(ds))
	}
	one, two := l.Bundle.Team.Agents[0], l.Bundle.Team.Agents[1]
	if one.Provider != "local" || one.MaxTurns != 5 || *one.Temperature != 0 {
		t.Errorf("one: %+v", one)
	}
	if two.MaxTurns != 7 || *two.Temperature != 0.2 {
		t.Errorf("two: %+v", two)
	}
}

// N14: true and false are expressions where an expression stands, and nowhere else.
func TestBareExpressions(t *testing.T) {
	l, ds := Any("../testdata/ok/release-review.yaml")
	if len(ds) > 0 {
		t.Fatal(text(ds))
	}
	if got := l.Bundle.Team.Agents[1].Gates.Rules[0].When; got != "true" {
		t.Errorf("when: %q", got)
	}
	l, ds = Read("p", []byte("apiVersion: oma/v1\nkind: Policy\nname: p\nrules: [{name: r, when: True, action: deny, examples: {matches: [{toolName: t, input: {when: true}}]}}]\n"), "")
	if len(ds) > 0 {
		t.Fatal(text(ds))
	}
	r := l.Policy.Policy.Rules[0]
	if r.When != "true" || string(r.Examples.Matches[0].Input) != `{"when":true}` {
		t.Errorf("%q %s", r.When, r.Examples.Matches[0].Input)
	}
}

// Escapes that only JSON has keep their meaning.
func TestJSON(t *testing.T) {
	l, ds := Any("../testdata/ok/plain.json")
	if len(ds) > 0 {
		t.Fatal(text(ds))
	}
	if got := l.Bundle.Team; got.Name != "from JSON 😀" || got.Providers["local"].BaseURL != "http://localhost:11434" {
		t.Errorf("%+v", got)
	}
	l, _ = Read("j", []byte(`{"apiVersion":"oma/v1","kind":"Team","name":"\\ud83d\\ude00 \\/","agents":[{"name":"a"}]}`), "")
	if got := l.Bundle.Team.Name; got != `\ud83d\ude00 \/` {
		t.Errorf("escaped backslashes: %s", got)
	}
}

// Nesting, repetition and the number of problems are bounded.
func TestBounds(t *testing.T) {
	start := time.Now()
	for name, doc := range map[string]string{
		"too-deep":    head + "x-a: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "\n",
		"number-form": head + "budgets: {maxCostBudget: 1e99999999}\nagents: [{name: a}]\n",
		"unknown-key": head + "agents:\n" + strings.Repeat("  - {name: a, b: c}\n", 2*maxProblems),
		"alias-bomb":  head + "x-a: &a " + strings.Repeat("y", 1<<20) + "\nx-b: [*a, *a, *a, *a, *a]\nagents: [{name: a}]\n",
	} {
		_, ds := Read("f", []byte(doc), "")
		if len(ds) == 0 || len(ds) > 2*maxProblems+1 || !strings.Contains(text(ds), "["+name+"]") {
			t.Errorf("%s: %d problems", name, len(ds))
		}
		if got := strings.Count(text(ds), "["); got > 8*MaxShown {
			t.Errorf("%s: %d lines", name, got)
		}
	}
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("took %s", d)
	}
}

func TestRenderCountsTheRest(t *testing.T) {
	ds := make(spec.Diagnostics, MaxShown+7)
	for i := range ds {
		ds[i] = spec.Diagnostic{Code: "c", Message: "m"}
	}
	lines := strings.Split(strings.TrimSpace(text(ds)), "\n")
	if len(lines) != MaxShown+1 || lines[MaxShown] != "7 more problems are not shown" {
		t.Errorf("%d lines, last %q", len(lines), lines[len(lines)-1])
	}
}

func BenchmarkTeam(b *testing.B) {
	data, err := os.ReadFile("../testdata/ok/release-review.yaml")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, ds := TeamBytes("t.yaml", "../testdata/ok", data); len(ds) > 0 {
			b.Fatal(text(ds))
		}
	}
}
