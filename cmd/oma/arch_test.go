package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/open-multi-agent/oma"

type packageRow struct {
	name    string // below the module
	imports []string
	reason  string
}

// packages says what each package may import of this module, and why no more. Nothing else exists: a new package needs
// a row.
var packages = []packageRow{
	{"spec", nil, "documents depend on nothing, so that everything can depend on them"},
	{"spec/canon", nil, "digests of documents are computed without knowing what a document is"},
	{"spec/keys", nil, "keys are read one way, whatever they sign"},
	{"spec/redact", nil, "redaction works on text, whoever wrote it"},
	{"schemas", []string{"spec"}, "a schema describes documents and acts on none"},
	{"policies/library", nil, "packs are texts that the program carries; whoever reads documents reads them"},
	{"loader", []string{"policies/library", "schemas", "spec", "spec/canon"}, "the loader turns files and packs into documents and knows nothing of running them"},
	{"policies/shell", nil, "what a command line is follows from its text alone"},
	{"policies", []string{"policies/shell", "schemas", "spec", "spec/canon", "spec/keys"}, "judgement is pure: it must not reach what acts, or files"},
	{"policies/tools", []string{"spec", "spec/canon"}, "what a tool of the team's own would start or ask is judged before it can, from its text"},
	{"policies/routing", nil, "whether a goal needs several agents is read off its text, by no model"},
	{"policies/roster", []string{"spec"}, "who does a task follows from what the team file says of both"},
	{"runtime/core", []string{"policies", "spec", "spec/canon"}, "the core decides and asks for effects; it must not reach what makes them"},
	{"policies/servers", []string{"schemas", "spec", "spec/canon"}, "what a server offers is judged from a lock, and asks nobody"},
	{"runtime", []string{"policies", "policies/roster", "policies/routing", "policies/servers", "policies/tools", "runtime/core", "schemas", "spec", "spec/canon", "spec/keys", "spec/redact"}, "the runtime knows models and tools by their seams only, and no team file"},
	{"runtime/process", nil, "a child process is a program and its streams, whoever wants it"},
	{"runtime/builtin", []string{"runtime", "runtime/process", "spec"}, "a leaf: tools see the seams and no other leaf"},
	{"runtime/custom", []string{"policies/tools", "runtime", "runtime/process", "spec", "spec/canon"}, "a leaf: it runs what policies/tools has checked, and reads it the same way"},
	{"runtime/mcp", []string{"policies/servers", "runtime", "runtime/process", "spec", "spec/canon"}, "a leaf: it asks servers, and policies/servers says what their answers are"},
	{"runtime/external", []string{"policies/tools", "runtime/process", "spec"}, "a leaf: an agent's program gets a prompt and gives text"},
	{"runtime/sandbox", []string{"runtime/process", "spec"}, "a leaf: it says what is started, and process starts it"},
	{"runtime/acp", []string{"runtime/process", "spec"}, "a leaf: an external agent asks, and whoever holds the door answers"},
	{"runtime/openai", []string{"runtime", "spec"}, "a leaf: a model sees the seams and no other leaf"},
	{"runtime/scripted", []string{"runtime", "spec", "spec/canon", "spec/redact"}, "a leaf: a model sees the seams and no other leaf"},
	{"runtime/journal", []string{"policies", "runtime", "spec", "spec/canon"}, "a leaf: runs are stored by what the seam of the log says, and approvals by what their hash says"},
	{"runtime/attest", []string{"runtime", "spec", "spec/canon", "spec/keys"}, "a leaf: a signature is over bytes, whoever reads and writes the files"},
	{"runtime/graph", []string{"spec"}, "a leaf: a drawing is made from a plan and a receipt alone"},
	{"runtime/plandiff", []string{"spec", "spec/canon"}, "a leaf: two plans are compared by what they say, and nothing is compiled"},
	{"runtime/report", []string{"runtime", "spec"}, "a leaf: a page is made from a receipt or a verdict alone"},
	{"docs", nil, "pages are for people; the program carries one as text"},
	{"cmd/oma", []string{"docs", "loader", "policies", "policies/library", "policies/servers", "policies/shell", "policies/tools", "runtime", "runtime/acp", "runtime/attest", "runtime/builtin", "runtime/core", "runtime/custom",
		"runtime/external", "runtime/graph", "runtime/journal", "runtime/mcp", "runtime/openai", "runtime/plandiff", "runtime/process",
		"runtime/report", "runtime/sandbox", "runtime/scripted", "schemas", "spec", "spec/canon", "spec/keys", "spec/redact"}, "the command puts everything together"},
}

// modules says who may import what is not ours. Nothing else may be imported: a new dependency needs a row.
var modules = []struct {
	path    string
	imports []string // packages of this module
	tests   []string // packages that may also do so in tests; *: every one
	reason  string
}{
	{"gopkg.in/yaml.v3", []string{"loader"}, nil, "only the loader knows positions, tags and anchors"},
	{"github.com/google/cel-go", []string{"policies"}, nil, "only policies evaluate expressions"},
	{"github.com/openai/openai-go", []string{"runtime/openai"}, nil, "a vendor's types stay in the package of its wire format"},
	{"github.com/santhosh-tekuri/jsonschema", []string{"schemas"}, nil, "only schemas compile schemas, with no way to a file or an address"},
	{"mvdan.cc/sh", []string{"policies/shell"}, nil, "one package reads shell, so that one reading is judged"},
	{"github.com/go-json-experiment/json", []string{"spec/canon"}, nil, "there is one canonical form, made in one place"},
	{"github.com/bmatcuk/doublestar", []string{"policies", "runtime", "runtime/builtin"}, nil, "rules, limits and the glob tool match paths alike"},
	{"github.com/modelcontextprotocol/go-sdk", []string{"runtime/mcp"}, nil, "a protocol's types stay in the package that speaks it"},
	{"github.com/coder/acp-go-sdk", []string{"runtime/acp"}, nil, "a protocol's types stay in the package that speaks it"},
	{"github.com/hashicorp/go-hclog", []string{"cmd/oma", "runtime", "runtime/mcp"}, nil, "logs are commentary, injected into the runtime"},
	{"github.com/secure-systems-lab/go-securesystemslib/dsse", []string{"runtime/attest"}, nil, "one package signs, in the envelope that other verifiers read"},
	{"github.com/spf13/cobra", []string{"cmd/oma"}, nil, "only the command has a command line"},
	{"golang.org/x/sys", []string{"cmd/oma", "runtime/journal", "runtime/sandbox"}, nil, "the command closes its own process, the store locks files, and a helper gives up its rights"},
	{"github.com/landlock-lsm/go-landlock", []string{"runtime/sandbox"}, nil, "one package keeps commands in"},
	{"modernc.org/sqlite", []string{"runtime/journal"}, nil, "one package stores runs"},
	{"golang.org/x/term", []string{"cmd/oma"}, nil, "only the command knows of terminals"},
	{"golang.org/x/text", []string{"loader", "runtime/graph", "schemas"}, nil, "carets and drawings need the width of text, and schema errors their printer"},
	{"github.com/google/go-cmp", nil, []string{"*"}, "tests compare; a program decides"},
	{"github.com/creack/pty", nil, []string{"cmd/oma"}, "the prompt is tested at a terminal"},
	{"github.com/rogpeppe/go-internal/diff", []string{"runtime/plandiff"}, nil, "what has changed in a prompt is shown line by line, in time that no text can blow up"},
	{"github.com/rogpeppe/go-internal", nil, []string{"cmd/oma"}, "scripts test the command as people use it"},
}

// TestImports holds every import of every file against the two tables, whatever system the file is for.
func TestImports(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range sources(t) {
		row := slices.IndexFunc(packages, func(p packageRow) bool { return p.name == f.pkg })
		if row < 0 && !f.test { // a package of tests alone is part of nothing
			t.Errorf("%s/%s: package %s has no row in the table of packages: add one, with what it may import and why", f.pkg, filepath.Base(f.name), f.pkg)
			continue
		}
		seen[f.pkg] = true
		for _, imp := range f.ast.Imports {
			path, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			ours, isOurs := strings.CutPrefix(path, module+"/")
			first, _, _ := strings.Cut(path, "/")
			switch {
			case isOurs && f.test: // a test may use what its package must not know
			case isOurs:
				if !slices.Contains(packages[row].imports, ours) {
					t.Errorf("%s: %s must not import %s: %s", f.at(imp), f.pkg, ours, packages[row].reason)
				}
			case strings.Contains(first, "."):
				foreignImport(t, f, imp, path)
			}
		}
	}
	for _, p := range packages {
		if !seen[p.name] {
			t.Errorf("the table of packages has a row for %s, which does not exist", p.name)
		}
	}
}

func foreignImport(t *testing.T, f *source, imp *ast.ImportSpec, path string) {
	for _, m := range modules {
		if path != m.path && !strings.HasPrefix(path, m.path+"/") {
			continue
		}
		if !slices.Contains(m.imports, f.pkg) && !(f.test && (slices.Contains(m.tests, "*") || slices.Contains(m.tests, f.pkg))) {
			t.Errorf("%s: %s must not import %s: %s", f.at(imp), f.pkg, path, m.reason)
		}
		return
	}
	t.Errorf("%s: %s is in no row of the table of modules: add one, with who may import it and why", f.at(imp), path)
}

// TestCoreIsPure keeps the core single-threaded and without a world: which thread runs next must follow from the order
// of results alone, or a run cannot be told again from its log.
func TestCoreIsPure(t *testing.T) {
	banned := map[string]string{"context": "cancellation comes as a result", "log": "logs are the caller's", "math/rand": "chance comes as a result",
		"math/rand/v2": "chance comes as a result", "net": "the world is behind Flow", "net/http": "the world is behind Flow", "os": "the world is behind Flow",
		"os/exec": "the world is behind Flow", "io": "the world is behind Flow", "sync": "one thread runs at a time", "sync/atomic": "one thread runs at a time",
		"time": "the clock comes with results", "unsafe": "nothing here needs it", "crypto/rand": "chance comes as a result", "runtime": "the scheduler is Flow"}
	for _, f := range program(t, "runtime/core") {
		for _, imp := range f.ast.Imports {
			if path, _ := strconv.Unquote(imp.Path.Value); banned[path] != "" {
				t.Errorf("%s: the core must not import %s: %s", f.at(imp), path, banned[path])
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			what := ""
			switch n := n.(type) {
			case *ast.GoStmt:
				what = "start a goroutine"
			case *ast.SelectStmt:
				what = "select"
			case *ast.ChanType:
				what = "have a channel"
			case *ast.SendStmt:
				what = "send on a channel"
			case *ast.UnaryExpr:
				if n.Op == token.ARROW {
					what = "receive from a channel"
				}
			}
			if what != "" {
				t.Errorf("%s: the core must not %s: ask Flow for a thread or an effect", f.at(n), what)
			}
			return true
		})
	}
}

// TestNoInit keeps the start of the program free: no registry fills itself, and the order of files means nothing.
func TestNoInit(t *testing.T) {
	for _, f := range sources(t) {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s: init is not used: make the value where it is needed, or pass it in", f.at(fn))
			}
		}
	}
}

func TestOnePackageComment(t *testing.T) {
	comments := map[string][]string{}
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		in := comments[f.pkg]
		if f.ast.Doc != nil {
			in = append(in, filepath.Base(f.name))
		}
		comments[f.pkg] = in
	}
	for _, pkg := range slices.Sorted(maps.Keys(comments)) {
		if in := comments[pkg]; len(in) != 1 {
			t.Errorf("package %s has %d package comments %v, want one", pkg, len(in), in)
		}
	}
}

// TestSurroundings keeps the process's surroundings in the command: whoever reads them elsewhere cannot be given others.
func TestSurroundings(t *testing.T) {
	banned := []string{"Args", "Chdir", "Clearenv", "Environ", "Exit", "ExpandEnv", "Getenv", "Getwd", "LookupEnv", "Setenv", "Stderr", "Stdin", "Stdout",
		"Unsetenv", "UserCacheDir", "UserConfigDir", "UserHomeDir"}
	for _, f := range sources(t) {
		if f.pkg == "cmd/oma" || f.test {
			continue
		}
		for _, imp := range f.ast.Imports {
			if imp.Path.Value == `"flag"` {
				t.Errorf("%s: only cmd/oma has flags: pass the value in", f.at(imp))
			}
		}
		name := f.importName("os")
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && name != "" && isName(sel.X, name) && slices.Contains(banned, sel.Sel.Name) {
				t.Errorf("%s: only cmd/oma uses os.%s: pass the value in, or return an error", f.at(n), sel.Sel.Name)
			}
			return true
		})
	}
}

// TestOneDoor finds every place that calls a model or a tool: the guard alone does, with the two wrappers it calls
// through.
func TestOneDoor(t *testing.T) {
	doors := map[string][]string{
		"Call":     {"runtime/guard.go"},
		"Complete": {"runtime/retry.go", "runtime/scripted/recorder.go"},
	}
	used := map[string]bool{}
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		file := f.pkg + "/" + filepath.Base(f.name)
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || doors[sel.Sel.Name] == nil {
				return true
			}
			if used[file] = true; !slices.Contains(doors[sel.Sel.Name], file) {
				t.Errorf("%s: .%s( is called here: a governed action passes the guard in runtime/guard.go, which nothing may go around", f.at(n), sel.Sel.Name)
			}
			return true
		})
	}
	for _, method := range slices.Sorted(maps.Keys(doors)) {
		for _, file := range doors[method] {
			if !used[file] {
				t.Errorf("%s no longer calls .%s(: the test does not see the door any more", file, method)
			}
		}
	}
}

// source is one parsed file of this module.
type source struct {
	pkg  string // below the module
	name string
	test bool
	ast  *ast.File
	set  *token.FileSet
}

// at gives FILE:LINE, from the top of the module.
func (f *source) at(n ast.Node) string {
	return fmt.Sprintf("%s/%s:%d", f.pkg, filepath.Base(f.name), f.set.Position(n.Pos()).Line)
}

// importName gives the name a file has for a package. Empty: it does not import it.
func (f *source) importName(path string) string {
	for _, imp := range f.ast.Imports {
		if imp.Path.Value != strconv.Quote(path) {
			continue
		}
		if imp.Name != nil {
			return imp.Name.Name
		}
		return path
	}
	return ""
}

func isName(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

// program gives the files of one package, without its tests.
func program(t *testing.T, pkg string) []*source {
	all := slices.DeleteFunc(sources(t), func(f *source) bool { return f.pkg != pkg || f.test })
	if len(all) == 0 {
		t.Fatalf("package %s has no files", pkg)
	}
	return all
}

// sources gives every file of this module, also those for other systems and with build tags.
func sources(t *testing.T) []*source {
	t.Helper()
	files, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(files)
}

var parsed = sync.OnceValues(func() ([]*source, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,CgoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles", module+"/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, &stderr)
	}
	var files []*source
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p struct {
			ImportPath, Dir                                              string
			GoFiles, CgoFiles, IgnoredGoFiles, TestGoFiles, XTestGoFiles []string
		}
		if err := d.Decode(&p); err != nil {
			return nil, err
		}
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.IgnoredGoFiles, p.TestGoFiles, p.XTestGoFiles) {
			f := &source{pkg: strings.TrimPrefix(p.ImportPath, module+"/"), name: filepath.Join(p.Dir, name),
				test: strings.HasSuffix(name, "_test.go"), set: token.NewFileSet()}
			if f.ast, err = parser.ParseFile(f.set, f.name, nil, parser.ParseComments|parser.SkipObjectResolution); err != nil {
				return nil, err
			}
			files = append(files, f)
		}
	}
	return files, nil
})
