package policies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/open-multi-agent/oma/spec"
)

// finding is a problem inside one expression, before it is known which tools share it.
type finding struct {
	kind    string // the code without its prefix: type, syntax, enum, optional …
	name    string // the word to underline; empty: one character
	message string
	hint    string
	node    int64
	at      common.Location
	// object is where the field called name was missing. nil: the problem is another one.
	object *shape
	path   string // how the expression calls that object; empty: by no name
	past   bool   // it is about an earlier call
	mild   bool   // a warning, where others of its kind are errors
}

func startOf(a *ast.AST, id int64) common.Location { return a.SourceInfo().GetStartLocation(id) }

// explain turns CEL's issues into findings. root is the tree that was checked; nil: none, it did not parse.
func explain(iss *cel.Issues, p *provider, root ast.Expr, names []string) []finding {
	var out []finding
	for i, e := range iss.Errors() {
		if i == maxErrors {
			break
		}
		f := finding{kind: "type", node: e.ExprID, at: e.Location}
		switch msg := e.Message; {
		case strings.HasPrefix(msg, "Syntax error: "):
			f.kind, f.message = "syntax", syntaxText(msg)
			if strings.Contains(f.message, "unexpected '=") && !strings.Contains(f.message, "unexpected '=>") {
				f.hint = "write == to compare"
			}
			return append(out, f) // what follows comes of the first
		case strings.HasPrefix(msg, "undefined field '"):
			f.name = quoted(msg)
			f.object, f.path = p.missed[f.name], operandOf(root, e.ExprID)
			f.message = fmt.Sprintf("%s has no field %q", cmp.Or(f.path, "the value"), f.name)
		case strings.HasPrefix(msg, "undeclared reference to '"):
			undeclared(&f, quoted(msg), find(root, e.ExprID), names)
		case strings.HasPrefix(msg, "found no matching overload for '"):
			overload(&f, msg, find(root, e.ExprID))
		case strings.HasPrefix(msg, "expected type "):
			mistyped(&f, typeWords.Replace(msg))
		default:
			f.message = plainText(msg)
		}
		out = append(out, f)
	}
	return out
}

// parseAndCheck gives the checked expression, and its tree as it was parsed. nil: it did not parse.
func parseAndCheck(env *cel.Env, text string) (*cel.Ast, ast.Expr, *cel.Issues) {
	parsed, iss := env.Parse(text)
	if iss.Err() != nil {
		return nil, nil, iss
	}
	root := parsed.NativeRep().Expr()
	parsed, iss = env.Check(parsed)
	return parsed, root, iss
}

// quoted gives the first 'word' of a message.
func quoted(msg string) string {
	_, rest, _ := strings.Cut(msg, "'")
	word, _, _ := strings.Cut(rest, "'")
	return word
}

// syntaxText drops the parser's list of all tokens it could have taken.
func syntaxText(msg string) string {
	msg, _, _ = strings.Cut(msg, " expecting ")
	return plainText(syntaxWords.Replace(msg))
}

var syntaxWords = strings.NewReplacer("Syntax error", "syntax error", "mismatched input", "unexpected",
	"extraneous input", "unexpected", "no viable alternative at input", "unexpected",
	"token recognition error at:", "unexpected", "'= '", "'='", "'<EOF>'", "end of the expression")

func plainText(msg string) string {
	msg = strings.Join(strings.Fields(msg), " ")
	if r, n := utf8.DecodeRuneInString(msg); n == 1 && r >= 'A' && r <= 'Z' {
		msg = strings.ToLower(msg[:1]) + msg[1:]
	}
	return strings.TrimSuffix(msg, ".")
}

// methods are what may stand after a dot, with the macros among them, for hints.
var methods = []string{"all", "contains", "endsWith", "exists", "exists_one", "filter", "map", "matches", "orValue", "size", "startsWith"}

// undeclared explains a name that nobody knows. node is where it stands; nil: that is not known.
func undeclared(f *finding, name string, node ast.Expr, names []string) {
	f.name = name
	if node != nil && node.Kind() == ast.CallKind && node.AsCall().IsMemberFunction() {
		f.message, f.hint = fmt.Sprintf("unknown method %q", name), "methods are "+strings.Join(methods, ", ")
		if near := spec.Nearest(name, methods); near != "" {
			f.hint = fmt.Sprintf("did you mean %s?", near)
		}
		return
	}
	f.message = fmt.Sprintf("unknown name %q", name)
	if near := spec.Nearest(name, names); near != "" {
		f.hint = fmt.Sprintf("did you mean %s?", near)
		return
	}
	if slices.Contains(methods, name) {
		f.hint = fmt.Sprintf("write it after a dot: value.%s(…)", name)
		return
	}
	f.hint = "known names are " + strings.Join(names, ", ")
}

// mistyped explains "expected type 'a' but found 'b'".
func mistyped(f *finding, msg string) {
	want, found, ok := strings.Cut(strings.TrimPrefix(msg, "expected type "), " but found ")
	if !ok {
		f.message = plainText(msg)
		return
	}
	if want = strings.Trim(want, "'"); want == "boolean" {
		want, f.hint = "a boolean", "write a comparison"
	}
	f.message = fmt.Sprintf("gives %s, want %s", strings.Trim(found, "'"), want)
}

// overload explains an operator or function that does not take what it was given.
func overload(f *finding, msg string, node ast.Expr) {
	fn := quoted(msg)
	_, sig, _ := strings.Cut(msg, "applied to '")
	sig = strings.TrimSuffix(sig, "'")
	if i := strings.Index(sig, ".("); i >= 0 { // target.(arguments)
		sig = "(" + sig[:i] + ", " + sig[i+2:]
		sig = strings.Replace(sig, ", )", ")", 1)
	}
	sig = typeWords.Replace(sig)
	if op, ok := operators.FindReverse(fn); ok && op != "" {
		fn = op
	}
	f.name, f.message = fn, fmt.Sprintf("%s does not take %s", fn, sig)
	if strings.Contains(sig, "number") && strings.Contains(sig, "integer") {
		f.hint = "a number is compared with a number: write 5.0 instead of 5"
		if lit, ok := wholeLiteral(node); ok {
			f.hint = fmt.Sprintf("write %d.0", lit)
		}
	}
}

// typeWords says CEL's types in the words of JSON Schema.
var typeWords = strings.NewReplacer("wrapper(double)", "number or null", "wrapper(int)", "integer or null",
	"wrapper(string)", "string or null", "wrapper(bool)", "boolean or null",
	"double", "number", "int", "integer", "bool", "boolean")

func wholeLiteral(e ast.Expr) (int64, bool) {
	if e == nil || e.Kind() != ast.CallKind {
		return 0, false
	}
	for _, arg := range e.AsCall().Args() {
		for _, lit := range literals(arg) {
			if lit.Kind() != ast.LiteralKind {
				continue
			}
			if n, ok := lit.AsLiteral().(types.Int); ok {
				return int64(n), true
			}
		}
	}
	return 0, false
}

func find(root ast.Expr, id int64) (found ast.Expr) {
	if root == nil {
		return nil
	}
	walk(root, nil, func(e ast.Expr, _ []string) {
		if e.ID() == id {
			found = e
		}
	})
	return found
}

// operandOf gives the path of what a field was read from.
func operandOf(root ast.Expr, id int64) string {
	e := find(root, id)
	if e == nil {
		return ""
	}
	switch e.Kind() {
	case ast.SelectKind:
		p, _ := pathOf(e.AsSelect().Operand())
		return p
	case ast.CallKind:
		if c, ok := optionalRead(e); ok {
			p, _ := pathOf(c.Args()[0])
			return p
		}
	}
	return ""
}

// place gives where a finding is in the text of its expression, and how much to underline. CEL points at the dot of
// a field and at the bracket of a call; people want the word.
func (f finding) place(expr string) (spec.Pos, int) {
	lines := strings.Split(expr, "\n")
	line := min(max(f.at.Line(), 1), len(lines))
	text := []rune(lines[line-1])
	col := min(max(f.at.Column(), 0), len(text))
	name := []rune(f.name)
	if len(name) > 0 {
		for _, start := range []int{col, col - len(name)} {
			if i, ok := wordAt(text, start, name); ok {
				return spec.Pos{Line: line, Col: i + 1}, len(name)
			}
		}
	}
	return spec.Pos{Line: line, Col: max(min(col, len(text)-1), 0) + 1}, 0
}

// wordAt finds name at start, or behind what may stand between CEL's position and the word.
func wordAt(text []rune, start int, name []rune) (int, bool) {
	for i := max(start, 0); i+len(name) <= len(text); i++ {
		if slices.Equal(text[i:i+len(name)], name) {
			return i, true
		}
		if i >= start+maxWordGap {
			break
		}
	}
	return 0, false
}

// maxWordGap covers `has(input.` and the like.
const maxWordGap = 64
