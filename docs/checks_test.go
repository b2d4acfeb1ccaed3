package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/open-multi-agent/oma/spec"
)

var kebab = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)+$`)

// ofReference are codes that carry over letter for letter.
var ofReference = regexp.MustCompile(`^[A-Z]+(_[A-Z]+)+$`)

// reporters are the functions that take a diagnostic's code, by folder, and which argument it is.
var reporters = map[string]map[string]int{
	"loader":           {"Errorf": 0, "Warnf": 0, "Notef": 0, "problem": 0, "refuse": 2, "complain": 2, "report": 2, "abandon": 2},
	"policies":         {"Errorf": 0, "Warnf": 0, "Notef": 0, "fail": 0},
	"runtime":          {"Errorf": 0, "Warnf": 0, "Notef": 0},
	"cmd/oma":          {"Errorf": 0},
	"policies/tools":   {"Errorf": 0, "Warnf": 0},
	"policies/servers": {"Errorf": 0, "Warnf": 0},
	"runtime/mcp":      {"Warnf": 0},
}

// gateOnly are kinds of findings that only rules have: what a rule reads has a known type and a price.
var gateOnly = []string{"cost", "untyped", "history"}

// codes finds every diagnostic code in the source.
func codes(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	for dir, takes := range reporters {
		for _, f := range parsed(t, "../"+dir) {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if arg, ok := takes[called(n)]; ok && arg < len(n.Args) {
						add(found, n.Args[arg])
					}
				case *ast.KeyValueExpr: // finding{kind: "type"}
					if key, ok := n.Key.(*ast.Ident); ok && dir == "policies" && key.Name == "kind" {
						kind(found, n.Value)
					}
				case *ast.AssignStmt: // f.kind, f.message = "syntax", …
					for i, left := range n.Lhs {
						if sel, ok := left.(*ast.SelectorExpr); ok && dir == "policies" && sel.Sel.Name == "kind" && i < len(n.Rhs) {
							kind(found, n.Rhs[i])
						}
					}
				}
				return true
			})
		}
	}
	for _, name := range commandCodes(t) {
		found[name] = true
	}
	return slices.Sorted(maps.Keys(found))
}

func parsed(t *testing.T, dir string) (out []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(dir + "/*.go")
	if err != nil || len(names) == 0 {
		t.Fatalf("no source in %s: %v", dir, err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
	return out
}

// called gives the name of what is called. fmt has an Errorf too, which takes no code.
func called(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok && x.Name == "fmt" {
			return ""
		}
		return f.Sel.Name
	}
	return ""
}

func literal(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	s, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return s
}

func add(found map[string]bool, e ast.Expr) {
	if s := literal(e); kebab.MatchString(s) || ofReference.MatchString(s) {
		found[s] = true
	}
}

// kind adds the codes of one kind of finding, which rules and release requirements share.
func kind(found map[string]bool, e ast.Expr) {
	switch s := literal(e); {
	case s == "":
	case kebab.MatchString(s):
		found[s] = true
	default:
		found["gate-"+s] = true
		if !slices.Contains(gateOnly, s) {
			found["release-"+s] = true
		}
	}
}

var bracketed = regexp.MustCompile(`\[([a-z]+(?:-[a-z]+)+)\]\\?n?"`)

// commandCodes finds the codes that the command prints by itself.
func commandCodes(t *testing.T) (out []string) {
	t.Helper()
	err := filepath.WalkDir("../cmd/oma", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, m := range bracketed.FindAllStringSubmatch(string(raw), -1) {
			out = append(out, m[1])
		}
		return err
	})
	if err != nil || len(out) == 0 {
		t.Fatalf("no codes in the command: %v", err)
	}
	return out
}

// sections gives the codes that checks.md has a section for.
func sections(t *testing.T, p *page) (out []string) {
	t.Helper()
	for _, line := range p.prose() {
		if name, ok := strings.CutPrefix(line, "### "); ok {
			out = append(out, strings.Trim(name, "`"))
		}
	}
	return out
}

// TestEveryCode holds the sections of checks.md against the codes in the source, both ways.
func TestEveryCode(t *testing.T) {
	p := readPage(t, "checks.md")
	want, got := codes(t), sections(t, p)
	if len(want) < 60 {
		t.Fatalf("only %d codes were found in the source", len(want))
	}
	for _, c := range want {
		if !slices.Contains(got, c) {
			t.Errorf("checks.md has no section for %s", c)
		}
	}
	for i, c := range got {
		if !slices.Contains(want, c) {
			t.Errorf("checks.md has a section for %s, which nothing emits", c)
		}
		if slices.Contains(got[:i], c) {
			t.Errorf("checks.md has two sections for %s", c)
		}
	}
}

// TestSamples wants a proof in every section: a document that gives the code, or a fixture that does, or a word on why
// there is none. A sample gives no other code beside, so that nobody is led astray.
func TestSamples(t *testing.T) {
	p := readPage(t, "checks.md")
	sample := map[string]block{}
	for _, b := range p.blocks {
		if b.lang == "yaml" {
			sample[b.section] = b
		}
	}
	for _, c := range sections(t, p) {
		lines := strings.Join(p.under(t, c), "\n")
		b, ok := sample[c]
		switch {
		case ok:
			text := b.text
			if !whole(text) && b.marker != notWhole {
				text = completed(text)
			}
			if ds := problems(b.at, text); !only(ds, c) {
				t.Errorf("%s: the sample should give %s alone:\n%s", b.at, c, rendered(t, ds))
			}
		case strings.Contains(lines, "testdata/err/"):
			fixture := regexp.MustCompile(`\.\./testdata/err/([a-z0-9-]+)\.yaml`).FindStringSubmatch(lines)
			out, err := os.ReadFile("../testdata/err/" + fixture[1] + ".out")
			if err != nil || !strings.Contains(string(out), "["+c+"]") {
				t.Errorf("section %s: the fixture %s does not give it: %v", c, fixture[1], err)
			}
		case !strings.Contains(lines, "No sample: "):
			t.Errorf("section %s has neither a sample nor a fixture nor a word on why", c)
		}
	}
}

func only(ds spec.Diagnostics, code string) bool {
	return len(ds) > 0 && !slices.ContainsFunc(ds, func(d spec.Diagnostic) bool { return d.Code != code })
}
