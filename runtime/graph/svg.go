package graph

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
)

// The measures of a drawing, in pixels.
const (
	boxWidth   = 228
	lineHeight = 17
	gapX       = 24
	gapY       = 44
	margin     = 24
	head       = 44 // of the text above
	perRow     = 6  // boxes side by side; a wider layer goes on below
	boxColumns = 29 // of text in a box
)

const style = `svg{--ink:#1f2328;--paper:#fff;color:var(--ink);background:var(--paper);font:12px ui-monospace,Menlo,Consolas,monospace}
@media(prefers-color-scheme:dark){svg{--ink:#e6edf3;--paper:#0d1117}}
text{fill:currentColor}.title{font-weight:bold}rect{fill:var(--paper);stroke:currentColor}
path{fill:none;stroke:currentColor;stroke-opacity:.55}marker path{fill:currentColor;stroke:none}
`

// svg draws the layers from top to bottom.
func svg(g *Graph, b *strings.Builder) {
	d := g.drawing()
	caption := g.summary()
	if len(g.asked) > 0 {
		caption += "; a person approves the plan: " + strings.Join(g.asked, ", ")
	}
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 %d %d" width="%d" height="%d">`+"\n", d.width, d.height, d.width, d.height)
	fmt.Fprintf(b, "<title>%s</title>\n<style>%s", xmlText("task graph of team "+g.team), style)
	for _, s := range styles {
		fmt.Fprintf(b, ".%s rect{%s}", s.class, s.css)
	}
	fmt.Fprintln(b, "</style>")
	fmt.Fprintln(b, `<defs><marker id="end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>`)
	fits := (d.width - 2*margin) / 8
	fmt.Fprintf(b, "<text class=\"title\" x=\"%d\" y=\"%d\">%s</text>\n", margin, margin, xmlText(clip("team "+g.team, fits)))
	fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\">%s</text>\n", margin, margin+lineHeight, xmlText(clip(caption, fits)))
	for i := range g.tasks {
		x, y := d.at(&g.tasks[i])
		for _, from := range g.tasks[i].after {
			u, v := d.at(&g.tasks[from])
			v += d.box
			fmt.Fprintf(b, "<path d=\"M%d %dC%d %d %d %d %d %d\" marker-end=\"url(#end)\"/>\n", u+boxWidth/2, v, u+boxWidth/2, v+gapY/2, x+boxWidth/2, y-gapY/2, x+boxWidth/2, y)
		}
	}
	for i := range g.tasks {
		d.task(b, &g.tasks[i])
	}
	fmt.Fprintln(b, "</svg>")
}

// drawing says where boxes are.
type drawing struct {
	width, height, box int
	tops               []int // of each layer
	indents            []int // of each layer of less than a row
}

func (g *Graph) drawing() drawing {
	d := drawing{}
	lines, most := 2, 1
	for i := range g.tasks {
		lines = max(lines, len(g.tasks[i].lines()))
	}
	for _, layer := range g.layers {
		most = max(most, min(len(layer), perRow))
	}
	d.box = lines*lineHeight + 14
	d.width = max(2*margin+most*(boxWidth+gapX)-gapX, 420)
	y := margin + head
	for _, layer := range g.layers {
		d.tops = append(d.tops, y)
		row := min(len(layer), perRow)
		d.indents = append(d.indents, (d.width-row*(boxWidth+gapX)+gapX)/2)
		y += (len(layer) + perRow - 1) / perRow * (d.box + gapY)
	}
	d.height = y
	return d
}

func (d *drawing) at(t *task) (x, y int) {
	return d.indents[t.layer] + t.column%perRow*(boxWidth+gapX), d.tops[t.layer] + t.column/perRow*(d.box+gapY)
}

func (d *drawing) task(b *strings.Builder, t *task) {
	x, y := d.at(t)
	classes := "task"
	if t.role != "" {
		classes += " required"
	}
	if c := t.class(); c != "" {
		classes += " " + c
	}
	lines := t.lines()
	fmt.Fprintf(b, "<g class=\"%s\"><title>%s</title><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\"/>", classes,
		xmlText(t.id+": "+strings.Join(lines, "; ")), x, y, boxWidth, d.box)
	for i, l := range lines {
		class := ""
		if i == 0 {
			class = ` class="title"`
		}
		fmt.Fprintf(b, "<text%s x=\"%d\" y=\"%d\">%s</text>", class, x+10, y+20+i*lineHeight, xmlText(clip(l, boxColumns)))
	}
	fmt.Fprintln(b, "</g>")
}

// xmlText writes text for an element. What XML has no room for becomes U+FFFD.
func xmlText(s string) string {
	var b bytes.Buffer
	xml.EscapeText(&b, []byte(s)) // a buffer takes everything
	return b.String()
}
