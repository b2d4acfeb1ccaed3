package graph

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

// escape is what a caller gives: nothing it lets through is a control character.
func escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r != '\n' && (unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r)) {
			fmt.Fprintf(&b, `\u{%x}`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// planOf makes a plan of lines: an id, then what it depends on.
func planOf(lines ...string) *spec.Plan {
	p := &spec.Plan{Team: spec.PlanTeam{Name: "sample"}, Agents: []spec.PlanAgent{{Name: "ann"}}}
	for _, l := range lines {
		words := strings.Fields(l)
		p.Tasks = append(p.Tasks, spec.PlanTask{ID: words[0], Title: "do " + words[0], Assignee: "ann", DependsOn: words[1:]})
	}
	return p
}

func drawn(t testing.TB, p *spec.Plan, o Options, format string) string {
	t.Helper()
	o.Escape = escape
	g, err := New(p, o)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := g.Draw(&b, format); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestLayers(t *testing.T) {
	for _, c := range []struct {
		name string
		plan *spec.Plan
		want []string
	}{
		{"nothing", planOf(), nil},
		{"one", planOf("a"), []string{"a"}},
		{"a chain, told backwards", planOf("c b", "b a", "a"), []string{"a", "b", "c"}},
		{"a diamond", planOf("a", "b a", "c a", "d b c"), []string{"a", "b c", "d"}},
		{"the longest way counts", planOf("a", "b a", "c a b", "d a c"), []string{"a", "b", "c", "d"}},
		{"a fan", planOf("a", "b a", "c a", "d a"), []string{"a", "b c d"}},
		{"two parts", planOf("a", "b", "c a", "d b"), []string{"a b", "c d"}},
		{"near what it waits for", planOf("a", "b", "c b", "d a"), []string{"a b", "d c"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := New(c.plan, Options{Escape: escape})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, layer := range g.layers {
				var ids []string
				for _, i := range layer {
					ids = append(ids, g.tasks[i].id)
				}
				got = append(got, strings.Join(ids, " "))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNoGraph(t *testing.T) {
	for _, c := range []struct {
		plan *spec.Plan
		want string
	}{
		{planOf("a a"), `task "a" waits for itself: its dependencies come back to it, or to another task that does`},
		{planOf("x", "a c", "b a", "c b"), `task "a" waits for itself: its dependencies come back to it, or to another task that does`},
		{planOf("a", "a"), `two tasks have the id "a"`},
		{planOf("a b"), `task "a" depends on "b", which is no task`},
	} {
		if _, err := New(c.plan, Options{Escape: escape}); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

func diamond() (*spec.Plan, Options) {
	p := planOf("plan", "write plan", "test plan", "review write test")
	p.Tasks[3].Role, p.Tasks[3].Assignee = "rex", "rex"
	p.Agents = append(p.Agents, spec.PlanAgent{Name: "rex", Tools: []spec.Grant{{ToolInfo: spec.ToolInfo{Name: "bash"}}}})
	ask := func(name, agent string, free ...string) spec.PlanRule {
		return spec.PlanRule{Rule: spec.Rule{Name: name, Action: spec.ActionSuspend}, Agent: agent, ReplacedFor: free, AppliesTo: []spec.RuleCost{{Tool: "bash"}}}
	}
	p.Gates.Rules = []spec.PlanRule{ask("no-push", ""), ask("of-ann", "ann"), ask("not-for-rex", "", "rex")}
	r := &spec.Receipt{Tasks: []spec.TaskRecord{{ID: "plan", Status: spec.TaskCompleted, StopReason: spec.StopCompleted}, {ID: "write", Status: spec.TaskFailed, StopReason: spec.StopMaxTurns}, {ID: "review", Status: spec.TaskSkipped}}}
	return p, Options{Receipt: r, PlanRules: []string{"look"}, TaskRules: map[string][]string{"test": {"start"}}}
}

func TestFormats(t *testing.T) {
	p, o := diamond()
	for format, want := range map[string]string{
		"text": `team sample: 4 tasks in 3 layers, 4 dependencies
* fills a required role
before anything starts a person is asked by look

layer 1
    plan                  ann               [completed]  do plan

layer 2
    write                 ann               [failed: max_turns]  do write
      after plan
    test                  ann               [pending]  do test
      after plan
      asks a person: start

layer 3
  * review                rex               [skipped]  do review
      after write, test
      asks a person: no-push
`,
		"mermaid": `flowchart TD
  plan{{"a person approves the plan<br/>look"}}
  t0["do plan<br/>ann<br/>completed"]
  t1["do write<br/>ann<br/>failed#58; max#95;turns"]
  t2["do test<br/>ann<br/>asks a person#58; start<br/>pending"]
  t3["do review<br/>rex (required)<br/>asks a person#58; no#45;push<br/>skipped"]
  plan --> t0
  t0 --> t1
  t0 --> t2
  t1 --> t3
  t2 --> t3
  classDef required stroke-width:3px
  class t3 required
  classDef completed stroke:#2da44e
  class t0 completed
  classDef failed stroke:#e5534b
  class t1 failed
  classDef skipped stroke:#848d97,stroke-dasharray:4
  class t3 skipped
  classDef pending stroke:#848d97
  class t2 pending
`,
		"dot": `digraph "sample" {
  bgcolor=transparent;
  node [shape=box, fontname="sans-serif"];
  plan [shape=hexagon, label="a person approves the plan\nlook"];
  t0 [label="do plan\nann\ncompleted", color="#2da44e"];
  t1 [label="do write\nann\nfailed: max_turns", color="#e5534b"];
  t2 [label="do test\nann\nasks a person: start\npending", color="#848d97"];
  t3 [label="do review\nrex (required)\nasks a person: no-push\nskipped", penwidth=3, color="#848d97", style=dashed];
  plan -> t0;
  t0 -> t1;
  t0 -> t2;
  t1 -> t3;
  t2 -> t3;
}
`,
	} {
		if diff := cmp.Diff(want, drawn(t, p, o, format)); diff != "" {
			t.Errorf("%s: %s", format, diff)
		}
	}
	svg := drawn(t, p, o, "svg")
	for _, want := range []string{`<g class="task required skipped">`, `<g class="task failed">`, "prefers-color-scheme:dark", ">do review</text>", ">rex (required)</text>"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the SVG has no %s", want)
		}
	}
	if n := strings.Count(svg, "<path d=\"M"); n != 4+1 {
		t.Errorf("the SVG has %d lines and heads of arrows, want 5", n)
	}
	g, err := New(p, Options{Escape: escape})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Draw(io.Discard, "svgz"); err == nil || !strings.Contains(err.Error(), "svg") {
		t.Errorf("another format: %v", err)
	}
}

var hostile = []string{"", " ", "\x1b[31mred\a", "a\nb -> c;", `"]; evil [label="x`, `\"; x`, `end \`, "\\N\\G", "<script>alert(1)</script>", "</title><a href='http://x'>", "&lt;&#60;", "]]>", "`**x**`",
	"\"`x`\"", "#quot;#60;", "ﬂ°°60¶ß", "%%{init: {}}%%", "click t0 href \"javascript:x\"", "\u202ex", "\ufffe\uffff\xff", "日本語の題名がここにあります", strings.Repeat("long ", 500), "\t|x|", "a\u0301\u0301", "subgraph end"}

// N16: whatever a title is, a drawing has the nodes and edges of the plan and nothing else.
func TestN16HostileTexts(t *testing.T) {
	for _, s := range hostile {
		hold(t, s)
	}
}

func FuzzHostileTexts(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	f.Fuzz(hold)
}

var (
	mermaidLine = regexp.MustCompile(`^(flowchart TD|  plan\{\{"[^"` + "`" + `&;]*(#\d+;[^"` + "`" + `&;]*)*"\}\}|  t\d+\["[^"` + "`" + `&;\\]*(#\d+;[^"` + "`" + `&;\\]*)*"\]|  (plan|t\d+) --> t\d+|  classDef \w+ [-\w:,#]+|  class [t\d,]+ \w+)$`)
	dotLine     = regexp.MustCompile(`^(digraph "([^"\\&]|\\["\\]|&amp;)*" \{|  bgcolor=transparent;|  node \[shape=box, fontname="sans-serif"\];|  (plan|t\d+) \[(shape=hexagon, )?label="([^"\\&]|\\["\\n]|&amp;)*"(, [a-z]+=("#[0-9a-f]+"|\w+))*\];|  (plan|t\d+) -> t\d+;|\})$`)
)

func hold(t *testing.T, s string) {
	p := planOf("a", "b a", "c a")
	for i := range p.Tasks {
		p.Tasks[i].Title, p.Tasks[i].Assignee, p.Tasks[i].Role = s, s, s
	}
	p.Tasks[2].ID, p.Team.Name = "c"+s, s
	o := Options{PlanRules: []string{s}, TaskRules: map[string][]string{"b": {s, s}}, Receipt: &spec.Receipt{Tasks: []spec.TaskRecord{{ID: "b", Status: s, StopReason: spec.StopReason(s)}}}}
	for _, format := range Formats() {
		out := drawn(t, p, o, format)
		if i := strings.IndexFunc(out, func(r rune) bool { return r != '\n' && (unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r)) }); i >= 0 {
			t.Errorf("%s of %q has a control character at %d", format, s, i)
		}
		for line := range strings.Lines(out) {
			line = strings.TrimSuffix(line, "\n")
			switch {
			case format == "text" && widthOf(line) > columns:
				t.Errorf("%q: a line of %d columns: %s", s, widthOf(line), line)
			case format == "mermaid" && !mermaidLine.MatchString(line), format == "dot" && !dotLine.MatchString(line):
				t.Errorf("%s of %q has the line %s", format, s, line)
			}
		}
		if format == "svg" {
			if got, want := elements(t, out), []string{"defs", "g", "marker", "path", "rect", "style", "svg", "text", "title"}; !slices.Equal(got, want) {
				t.Errorf("svg of %q has the elements %v, want %v", s, got, want)
			}
		}
	}
}

// elements gives the names of an SVG's elements. It fails the test where the SVG is no XML, or has a namespace or an
// attribute that could fetch or run something.
func elements(t *testing.T, svg string) (names []string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the SVG is no XML: %v\n%s", err, svg)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		names = append(names, start.Name.Local)
		for _, a := range start.Attr {
			if strings.HasPrefix(a.Name.Local, "on") || strings.Contains(a.Name.Local, "href") || strings.Contains(a.Value, "url(") && a.Value != "url(#end)" {
				t.Errorf("an attribute %s=%q", a.Name.Local, a.Value)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func large(n, width int) *spec.Plan {
	p := &spec.Plan{Team: spec.PlanTeam{Name: "large"}}
	for i := range n {
		t := spec.PlanTask{ID: fmt.Sprintf("task-%d", i), Title: fmt.Sprintf("Task %d", i), Assignee: "ann"}
		for d := max(0, i-width); d < i && i > 0 && len(t.DependsOn) < 3; d += max(1, width/3) {
			t.DependsOn = append(t.DependsOn, fmt.Sprintf("task-%d", d))
		}
		p.Tasks = append(p.Tasks, t)
	}
	return p
}

// A drawing is the same each time.
func TestTheSameBytes(t *testing.T) {
	for _, format := range Formats() {
		if one, two := drawn(t, large(300, 30), Options{}, format), drawn(t, large(300, 30), Options{}, format); one != two {
			t.Errorf("%s differs from one time to the next", format)
		}
	}
}

func BenchmarkDraw(b *testing.B) {
	for _, width := range []int{1, 300, 10000} {
		for _, format := range Formats() {
			b.Run(fmt.Sprintf("%s/10000 tasks, width %d", format, width), func(b *testing.B) {
				p := large(10000, width)
				for b.Loop() {
					drawn(b, p, Options{}, format)
				}
			})
		}
	}
}
