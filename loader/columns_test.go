package loader

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/open-multi-agent/oma/spec"
)

// lines of every length around a stride, of runes of every size.
func longLines() map[string]string {
	all := map[string]string{}
	for _, n := range []int{0, 1, stride - 1, stride, stride + 1, 2*window + 1, 2*stride - 1, 2 * stride, 2*stride + 4, 3*stride + 1, 1000} {
		all[fmt.Sprintf("ascii %d", n)] = strings.Repeat("a", n)
		all[fmt.Sprintf("mixed %d", n)] = string([]rune(strings.Repeat("aé日😀", n))[:n])
	}
	return all
}

// The text from any column is what counting from the start of the line gives, and never takes more than a stride.
func TestFrom(t *testing.T) {
	for name, line := range longLines() {
		t.Run(name, func(t *testing.T) {
			d := newDocument("d", []byte("first\n"+line))
			runes := utf8.RuneCountInString(line)
			for col := 1; col <= runes+2; col++ {
				if got, want := d.from(2, col), dropRunes(line, col-1); got != want {
					t.Fatalf("from column %d: %d bytes, want %d", col, len(got), len(want))
				}
				if _, behind := d.marks.nearest(2, col); behind > stride+1 {
					t.Fatalf("column %d is counted from %d runes before it", col, behind)
				}
			}
		})
	}
	if d := newDocument("d", nil); d.from(7, 3) != "" {
		t.Error("a line that is not there has text")
	}
}

// What is shown around a place does not depend on the rest of the line.
func TestNear(t *testing.T) {
	for name, line := range longLines() {
		t.Run(name, func(t *testing.T) {
			d := newDocument("d", []byte(line))
			for col := 1; col <= utf8.RuneCountInString(line)+2; col++ {
				got := d.snippet(spec.Pos{Line: 1, Col: col}, 3)
				if diff := cmp.Diff(excerpt("1", line, col, 3), got); diff != "" {
					t.Fatalf("column %d: want -, got +\n%s", col, diff)
				}
				if text, _ := d.near(spec.Pos{Line: 1, Col: col}); utf8.RuneCountInString(text) > 5*stride {
					t.Fatalf("column %d: %d runes are looked at", col, utf8.RuneCountInString(text))
				}
			}
		})
	}
}

// generated gives a team of about a megabyte, as a program writes it: on one line, and indented.
func generated(t testing.TB) (one, indented []byte) {
	t.Helper()
	agents := make([]any, 4000)
	for i := range agents {
		agents[i] = map[string]any{"name": fmt.Sprintf("agent%d", i), "systemPrompt": strings.Repeat("word ", 40), "tools": []string{"grep", "glob"}}
	}
	one, err := json.Marshal(map[string]any{"apiVersion": "oma/v1", "kind": "Team", "name": "t", "agents": agents})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, one, "", "  "); err != nil || len(one) < 1<<20 {
		t.Fatalf("%d bytes, %v", len(one), err)
	}
	return one, b.Bytes()
}

// A document on one line costs about what it costs indented: the place of a value is found from near it, not from the
// start of the line. The work is counted in runes passed over.
func TestOneLine(t *testing.T) {
	one, indented := generated(t)
	work := func(data []byte) (runes, nodes int) {
		d := newDocument("d", data)
		if ds := d.parse(); ds != nil {
			t.Fatal(text(ds))
		}
		var walk func(n *yaml.Node)
		walk = func(n *yaml.Node) {
			_, behind := d.marks.nearest(n.Line, n.Column)
			runes, nodes = runes+behind, nodes+1
			for _, c := range n.Content {
				walk(c)
			}
		}
		walk(d.root)
		return runes, nodes
	}
	runes, nodes := work(one)
	least, same := work(indented)
	if nodes != same || nodes < 30000 {
		t.Fatalf("%d and %d nodes", nodes, same)
	}
	if runes > nodes*stride || runes > 20*least {
		t.Errorf("%d runes are passed over for %d values, %d when indented", runes, nodes, least)
	}
	a, ds := Read("one", one, "")
	b, more := Read("indented", indented, "")
	if len(ds)+len(more) > 0 {
		t.Fatal(text(append(ds, more...)))
	}
	if diff := cmp.Diff(a.Bundle.Team, b.Bundle.Team); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkGenerated(b *testing.B) {
	one, indented := generated(b)
	wrong := bytes.ReplaceAll(one, []byte(`"tools"`), []byte(`"tolos"`))
	for _, c := range []struct {
		name     string
		data     []byte
		problems int
	}{{"one line", one, 0}, {"indented", indented, 0}, {"one line of problems", wrong, maxProblems}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, ds := Read("t", c.data, ""); len(ds) != c.problems {
					b.Fatalf("%d problems", len(ds))
				}
			}
		})
	}
}
