package graph

import (
	"fmt"
	"strings"
	"unicode"
)

// mermaid writes a flowchart. Nodes have numbers for names, so that nothing but labels comes from outside.
func mermaid(g *Graph, b *strings.Builder) {
	fmt.Fprintln(b, "flowchart TD")
	if len(g.asked) > 0 {
		fmt.Fprintf(b, "  plan{{\"%s\"}}\n", mermaidLabel(g.planLines()))
	}
	for i := range g.tasks {
		fmt.Fprintf(b, "  t%d[\"%s\"]\n", i, mermaidLabel(g.tasks[i].lines()))
	}
	for i := range g.tasks {
		for _, d := range g.tasks[i].after {
			fmt.Fprintf(b, "  t%d --> t%d\n", d, i)
		}
		if len(g.asked) > 0 && len(g.tasks[i].after) == 0 {
			fmt.Fprintf(b, "  plan --> t%d\n", i)
		}
	}
	styled := map[string][]string{}
	for i := range g.tasks {
		if g.tasks[i].role != "" {
			styled["required"] = append(styled["required"], fmt.Sprintf("t%d", i))
		}
		if c := g.tasks[i].class(); c != "" {
			styled[c] = append(styled[c], fmt.Sprintf("t%d", i))
		}
	}
	for _, s := range styles {
		if of := styled[s.class]; of != nil {
			fmt.Fprintf(b, "  classDef %s %s\n  class %s %s\n", s.class, s.mermaid, strings.Join(of, ","), s.class)
		}
	}
}

// planLines are what stands in the node before all others.
func (g *Graph) planLines() []string {
	return []string{"a person approves the plan", strings.Join(g.asked, ", ")}
}

// styles are the looks of tasks, the weaker first. No state is told by its colour alone.
var styles = []struct{ class, mermaid, dot, css string }{
	{"required", "stroke-width:3px", "penwidth=3", "stroke-width:3"},
	{"completed", "stroke:#2da44e", `color="#2da44e"`, "stroke:#2da44e"},
	{"failed", "stroke:#e5534b", `color="#e5534b"`, "stroke:#e5534b"},
	{"in_progress", "stroke:#bf8700", `color="#bf8700"`, "stroke:#bf8700"},
	{"skipped", "stroke:#848d97,stroke-dasharray:4", `color="#848d97", style=dashed`, "stroke:#848d97;stroke-dasharray:4"},
	{"pending", "stroke:#848d97", `color="#848d97"`, "stroke:#848d97"},
}

// mermaidLabel writes letters, digits and a little more as they are and all else by number: labels are read as Markdown
// and as HTML.
func mermaidLabel(lines []string) string {
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			b.WriteString("<br/>")
		}
		for _, r := range clip(l, labelColumns) {
			if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune(" ,()", r) {
				b.WriteRune(r)
			} else {
				fmt.Fprintf(&b, "#%d;", r)
			}
		}
	}
	return b.String()
}

// labelColumns is how wide a label may be that draws itself.
const labelColumns = 60

// dot writes a graph for Graphviz.
func dot(g *Graph, b *strings.Builder) {
	fmt.Fprintf(b, "digraph \"%s\" {\n", dotText(g.team))
	fmt.Fprintln(b, "  bgcolor=transparent;")
	fmt.Fprintln(b, `  node [shape=box, fontname="sans-serif"];`)
	if len(g.asked) > 0 {
		fmt.Fprintf(b, "  plan [shape=hexagon, label=\"%s\"];\n", dotLabel(g.planLines()))
	}
	for i := range g.tasks {
		t := &g.tasks[i]
		style := ""
		for _, s := range styles {
			if s.class == "required" && t.role != "" || s.class == t.class() {
				style += ", " + s.dot
			}
		}
		fmt.Fprintf(b, "  t%d [label=\"%s\"%s];\n", i, dotLabel(t.lines()), style)
	}
	for i := range g.tasks {
		for _, d := range g.tasks[i].after {
			fmt.Fprintf(b, "  t%d -> t%d;\n", d, i)
		}
		if len(g.asked) > 0 && len(g.tasks[i].after) == 0 {
			fmt.Fprintf(b, "  plan -> t%d;\n", i)
		}
	}
	fmt.Fprintln(b, "}")
}

func dotLabel(lines []string) string {
	var out []string
	for _, l := range lines {
		out = append(out, dotText(clip(l, labelColumns)))
	}
	return strings.Join(out, `\n`)
}

// dotText writes text between quotes. A backslash has a meaning of its own in a label, and so has an ampersand.
func dotText(s string) string { return dotEscapes.Replace(s) }

var dotEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "&", "&amp;")
