package docs_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/open-multi-agent/oma/loader"
	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/builtin"
	"github.com/open-multi-agent/oma/spec"
)

// catalog is what the command gives the compiler.
func catalog() policies.Catalog {
	c := policies.Catalog{Tools: builtin.Infos()}
	for _, name := range []string{"readonly", "readwrite", "full"} {
		c.Presets = append(c.Presets, policies.Preset{Name: name, Tools: builtin.Presets()[name]})
	}
	return c
}

// filesOf is the folder that names in samples are relative to.
const filesOf = "../testdata/ok"

// problems gives everything that validate would say of a document.
func problems(name, text string) spec.Diagnostics {
	loaded, ds := loader.Read(name, []byte(text), "")
	if loaded.Kind == spec.KindTeam {
		loaded, ds = loader.TeamBytes(name, filesOf, []byte(text))
	}
	var more spec.Diagnostics
	switch {
	case loaded.Bundle != nil:
		_, more = runtime.Compile(loaded.Bundle, runtime.CompileOptions{Catalog: catalog()})
	case loaded.Policy != nil:
		more = runtime.CheckPolicy(loaded.Policy.Policy, builtin.Infos())
	}
	loaded.Sources.Place(more)
	return append(ds, more...)
}

func rendered(t *testing.T, ds spec.Diagnostics) string {
	t.Helper()
	var b bytes.Buffer
	if err := loader.Render(&b, ds); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// whole says whether a block is a document by itself.
func whole(text string) bool {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			return strings.HasPrefix(line, "apiVersion:")
		}
	}
	return false
}

// rest is what a part of a team file is completed with: the keys that the part leaves out.
var rest = []struct{ key, text string }{
	{"apiVersion", "apiVersion: oma/v1\n"},
	{"kind", "kind: Team\n"},
	{"name", "name: sample\n"},
	{"goal", "goal: Review the change.\n"},
	{"defaults", "defaults: {provider: ollama, model: llama3.2, cwd: .}\n"},
	{"agents", `agents:
  - {name: reviewer, systemPrompt: You review., toolPreset: readonly, outputSchema: &verdict {type: object, required: [verdict], properties: {verdict: {enum: [approve, reject]}}}}
  - {name: security, systemPrompt: You look for ways in., toolPreset: full, outputSchema: *verdict}
`},
	{"governance", "governance: {governanceIntent: required, requiredRoles: [reviewer, security], requiredOrder: [reviewer, security]}\n"},
}

// completed makes a team of a part of one.
func completed(part string) string {
	text := part
	for _, r := range rest {
		ownTopology := r.key == "governance" && (has(part, "agents") || has(part, "mode"))
		if !has(part, r.key) && !ownTopology {
			text += r.text
		}
	}
	return text
}

func has(text, key string) bool {
	return strings.HasPrefix(text, key+":") || strings.Contains(text, "\n"+key+":")
}

// TestYAML holds every YAML block against the program: a document loads and compiles, and so does a part of a team file
// once the rest of a team is added. The samples of checks.md fail on purpose and have a test of their own.
func TestYAML(t *testing.T) {
	seen, skipped := 0, 0
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.lang != "yaml" || p.name == "docs/checks.md" {
				continue
			}
			if b.marker == notWhole {
				skipped++
				continue
			}
			seen++
			text := b.text
			if !whole(text) {
				text = completed(text)
			}
			if ds := problems(b.at, text); ds.HasErrors(true) {
				t.Errorf("%s: the block is not valid:\n%s", b.at, rendered(t, ds))
			}
		}
	}
	if seen == 0 || skipped > 7 {
		t.Errorf("%d blocks were looked at and %d skipped", seen, skipped)
	}
}

// TestGateWords holds the variables of gates.md against the compiler: it knows each of them for some tool.
func TestGateWords(t *testing.T) {
	words := firsts(rows(readPage(t, "gates.md").under(t, "Variables")))
	if len(words) < 12 {
		t.Errorf("section Variables lists %d words", len(words))
	}
	for _, w := range words {
		if w == "history" { // comparing all of it whole is too dear
			w = "size(history)"
		}
		text := completed("agents: [{name: a, systemPrompt: p, tools: [bash], cwd: .}]\n" +
			"gates: {rules: [{name: r, tools: [bash], action: warn, when: '" + w + " == " + w + "'}]}\n")
		if ds := problems(w, text); len(ds) > 0 {
			t.Errorf("word %s:\n%s", w, rendered(t, ds))
		}
	}
}

// TestExampleTeam keeps the sample of README.md at the size that fits on a screen.
func TestExampleTeam(t *testing.T) {
	p := readPage(t, "../README.md")
	i := slices.IndexFunc(p.blocks, func(b block) bool { return b.lang == "yaml" && whole(b.text) })
	if i < 0 {
		t.Fatal("README.md shows no team")
	}
	if n := strings.Count(p.blocks[i].text, "\n"); n > 25 {
		t.Errorf("the team in README.md has %d lines, want at most 25", n)
	}
	if n := len(p.lines); n > 80 {
		t.Errorf("README.md has %d lines, want at most 80", n)
	}
}
