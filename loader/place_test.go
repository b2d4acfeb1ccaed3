package loader

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

// N14: a place inside an expression is found in the file for every style in which YAML keeps the text; else the value
// itself is pointed at and the expression shown below.
func TestInside(t *testing.T) {
	const doc = "apiVersion: oma/v1\nkind: Policy\nname: p\nrules:\n"
	for name, test := range map[string]struct {
		when  string // the lines of the value, behind "when: "
		found bool
	}{
		"plain":             {"input.comand == 1", true},
		"single quotes":     {"'input.comand == 1'", true},
		"double quotes":     {`"input.comand == 1"`, true},
		"escape behind":     {`"input.comand == \"x\""`, true},
		"escape before":     {`"input.p == \"x\" && input.comand == 1"`, false},
		"doubled before":    {`'input.p == ''x'' && input.comand == 1'`, false},
		"literal":           {"|\n      a &&\n      input.comand == 1", true},
		"literal, blank":    {"|-\n\n      a &&\n        input.comand == 1", true},
		"literal, indented": {"|2+\n       a &&\n       input.comand == 1\n\n", true},
		"anchor":            {"&x input.comand == 1", true},
		"anchor, literal":   {"&x |\n      input.comand == 1", true},
		"tag, own line":     {"!!str &x # note\n      input.comand == 1", true},
		"wide":              {"'\"日本é\" == input.comand'", true},
		"folded":            {">\n      a &&\n      input.comand == 1", false},
		"plain, two lines":  {"a &&\n      input.comand == 1", false},
		"plain, first line": {"input.comand == 1 &&\n      b", true},
	} {
		t.Run(name, func(t *testing.T) {
			src := doc + "  - name: r\n    action: deny\n    when: " + test.when + "\n"
			l, ds := Read("p.yaml", []byte(src), spec.KindPolicy)
			if len(ds) > 0 {
				t.Fatal(text(ds))
			}
			when := l.Policy.Policy.Rules[0].When
			i := strings.Index(when, "comand")
			line := strings.Count(when[:i], "\n") + 1
			col := utf8.RuneCountInString(when[strings.LastIndex(when[:i], "\n")+1:i]) + 1
			ds = nil
			ds.Errorf("gate-type", "rules[0].when", "no field").At = spec.Pos{Line: line, Col: col}
			ds[0].Width = 6
			l.Sources.Place(ds)
			at := []rune(strings.Split(src, "\n")[ds[0].Pos.Line-1])[ds[0].Pos.Col-1:]
			if got := strings.HasPrefix(string(at), "comand"); got != test.found {
				t.Errorf("points at %q\n%s", string(at), text(ds))
			}
			if !strings.Contains(text(ds), "comand") {
				t.Errorf("the expression is not shown\n%s", text(ds))
			}
		})
	}
}

// Diagnostics of later stages, whole, for the main document and for one it names.
func TestPlace(t *testing.T) {
	l, ds := Team("../testdata/ok/release-review.yaml")
	if len(ds) > 0 {
		t.Fatal(text(ds))
	}
	ds = nil
	d := ds.Errorf("gate-type", "gates.rules[0].when", `input has no field "pth"`)
	d.At, d.Width, d.Hint = spec.Pos{Line: 1, Col: 9}, 4, "file_read takes path"
	ds.Errorf("unknown-role", "governance.requiredRoles[1]", `no agent "security"`)
	ds.Warnf("no-price", "providers.gateway.models.small", "no price").OnKey = true
	ds.Errorf("missing", "governance.requiredOrder", "no order")
	d = ds.Notef("folded", "rules[0].when", "always")
	d.File = "policies/release.yaml"
	ds.Errorf("alias", "agents[1].outputSchema.required[0]", "behind an alias")
	l.Sources.Place(ds)
	l.Sources.Place(ds) // changes nothing
	want := `../testdata/ok/release-review.yaml:55:17: input has no field "pth" [gate-type]
55 |         !input.?path.orValue(".").startsWith("src/")
   |                 ^~~~
   hint: file_read takes path
../testdata/ok/release-review.yaml:44:29: no agent "security" [unknown-role]
44 |   requiredRoles: [reviewer, security]
   |                             ^~~~~~~~
../testdata/ok/release-review.yaml:17:7: warning: no price [no-price]
17 |       small: {inputPer1M: 0.25, cachedInputPer1M: 0.025, outputPer1M: 2.00, contextWindow: 200000}
   |       ^~~~~
../testdata/ok/release-review.yaml:42:1: no order [missing]
42 | governance:
   | ^~~~~~~~~~
../testdata/ok/policies/release.yaml:7:11: note: always [folded]
7 |     when: "true"
  |           ^~~~~~
../testdata/ok/release-review.yaml:29:18: behind an alias [alias]
29 |       required: [verdict]
   |                  ^~~~~~~
`
	if diff := cmp.Diff(want, text(ds)); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
}

func TestExcerpt(t *testing.T) {
	for name, test := range map[string]struct {
		line       string
		col, width int
		want       string
	}{
		"tab":        {"\ta: b", 5, 1, "1 | \ta: b\n  | \t   ^"},
		"wide":       {"日本: b", 5, 1, "1 | 日本: b\n  |       ^"},
		"wide under": {"a: 日本", 4, 2, "1 | a: 日本\n  |    ^~~~"},
		"mark":       {"e\u0301: b", 5, 1, "1 | e\u0301: b\n  |    ^"},
		"direction":  {"a\u202eb: c", 3, 1, "1 | a\\u{202e}b: c\n  |          ^"},
		"behind":     {"a:", 3, 9, "1 | a:\n  |   ^"},
		"far behind": {"a:", 30, 1, "1 | a:\n  |   ^"},
		"empty":      {"", 1, 1, "1 |\n  | ^"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, excerpt("1", test.line, test.col, test.width)); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
}

// FuzzRead: loading never panics, gives either a document or problems, and every place exists in the file.
func FuzzRead(f *testing.F) {
	for _, pattern := range []string{"../testdata/ok/*.*", "../testdata/err/*.yaml"} {
		for _, file := range glob(f, pattern) {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Add([]byte("a: &x\n  ! b\n? ! c\n: *x\n<<: [*x, {a: b}]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		doc := newDocument("fuzz", data)
		kind := ""
		value, ds := doc.load(&kind)
		if (value == nil) != ds.HasErrors(false) {
			t.Fatalf("value %v and problems\n%s", value, text(ds))
		}
		if kind == spec.KindTeam {
			_, more := TeamBytes("fuzz", "nowhere", data)
			ds = append(ds, more...)
		}
		ds.Errorf("any", "agents[0].gates.rules[0].when", "x").At = spec.Pos{Line: 2, Col: 3}
		ds.Errorf("any", "x-a[1].b", "x").OnKey = true
		s := newSources()
		s.docs[""] = doc
		s.Place(ds)
		for _, d := range ds {
			if d.Pos.Line == 0 {
				continue
			}
			if d.Pos.Line > len(doc.lines) || d.Pos.Col < 1 || d.Pos.Col > utf8.RuneCountInString(doc.lines[d.Pos.Line-1])+1 {
				t.Errorf("%d:%d is not in the file: %s", d.Pos.Line, d.Pos.Col, d)
			}
		}
		_ = text(ds)
	})
}

// The bars of a snippet stand below each other, however long the line's number is, also those of a folded value.
func TestFrameIsStraight(t *testing.T) {
	for _, line := range []int{1, 9, 10, 99, 100, 1234} {
		d := &document{lines: make([]string, line)}
		d.lines[line-1] = "  when: >"
		got := d.snippet(spec.Pos{Line: line, Col: 3}, 4) + inner("a = b\n", spec.Pos{Line: 1, Col: 3}, line)
		n := strconv.Itoa(line)
		blank := strings.Repeat(" ", len(n))
		want := n + " |   when: >\n" + blank + " |   ^~~~\n" + blank + " | a = b\n" + blank + " |   ^"
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("line %d: want -, got +\n%s", line, diff)
		}
	}
}
