package shell_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/policies/shell"
)

var quotedCode = regexp.MustCompile("`([^`]+)`")

// section gives the rows of the tables under a heading of docs/shell-risk.md, as cells.
func section(t *testing.T, heading string) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "shell-risk.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("docs/shell-risk.md has no %q", heading)
	}
	body, _, _ := strings.Cut(after, "\n## ")
	for line := range strings.Lines(body) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "| `") {
			cells := strings.Split(strings.ReplaceAll(strings.Trim(line, "|"), `\|`, "\x00"), "|")
			for i := range cells {
				cells[i] = strings.ReplaceAll(cells[i], "\x00", "|")
			}
			rows = append(rows, cells)
		}
	}
	return rows
}

func codesIn(cell string) (out []string) {
	for _, m := range quotedCode.FindAllStringSubmatch(cell, -1) {
		out = append(out, m[1])
	}
	return out
}

// TestCodesInDocs holds the codes that the docs list against those in the source, both ways.
func TestCodesInDocs(t *testing.T) {
	var listed []string
	for _, row := range section(t, "Findings") {
		listed = append(listed, codesIn(row[0])...)
	}
	slices.Sort(listed)
	if diff := cmp.Diff(codesInSource(t), listed); diff != "" {
		t.Errorf("codes (-source +docs/shell-risk.md):\n%s", diff)
	}
	if diff := cmp.Diff(codesInSource(t), shell.Codes()); diff != "" {
		t.Errorf("codes (-source +Codes):\n%s", diff)
	}
}

// codesInSource finds what is given to flag, unread and unreadAt, and the codes in tables.
func codesInSource(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	add := func(x ast.Expr) {
		if lit, ok := x.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			code, _ := strconv.Unquote(lit.Value)
			codes = append(codes, code)
		}
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr: // the code is the last argument but one
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains([]string{"flag", "unread", "unreadAt"}, f.Sel.Name) {
					add(n.Args[len(n.Args)-2])
				}
			case *ast.CompositeLit:
				for _, x := range codesOf(n) {
					add(x)
				}
			}
			return true
		})
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// codesOf gives the codes in a value of one of our types: the field that holds one, by its name or place.
func codesOf(n *ast.CompositeLit) (out []ast.Expr) {
	var kind string
	elements := []ast.Expr{n}
	switch typ := n.Type.(type) {
	case *ast.Ident:
		kind = typ.Name
	case *ast.ArrayType: // whose elements name no type
		if id, ok := typ.Elt.(*ast.Ident); ok {
			kind, elements = id.Name, n.Elts
		}
	}
	field, place := "", -1
	switch kind {
	case "kind":
		place = 0
	case "Finding":
		field, place = "Code", 1
	case "reader":
		field = "code"
	case "wrapper":
		field = "findings"
	default:
		return nil
	}
	for _, e := range elements {
		lit, ok := e.(*ast.CompositeLit)
		if !ok {
			continue
		}
		for i, x := range lit.Elts {
			if pair, ok := x.(*ast.KeyValueExpr); !ok && i == place {
				out = append(out, x)
			} else if ok && pair.Key.(*ast.Ident).Name == field {
				out = append(out, pair.Value)
			}
		}
	}
	return out
}

// TestLevelsInDocs: what the docs name as safe, review and high is that.
func TestLevelsInDocs(t *testing.T) {
	examples := 0
	for _, row := range section(t, "Three levels") {
		for _, command := range codesIn(row[1]) {
			examples++
			if f := shell.Classify(command, nil); f.Risk != codesIn(row[0])[0] {
				t.Errorf("%q is %s (%s), and %s in the docs", command, f.Risk, f.Reason, codesIn(row[0])[0])
			}
		}
	}
	if examples < 30 {
		t.Errorf("%d examples were found", examples)
	}
}
