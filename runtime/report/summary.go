package report

import (
	"fmt"
	"strings"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

const (
	maxSummary = 900 << 10 // bytes, of the 1 MiB that GitHub takes
	maxCell    = 1024      // characters, before escaping
	cutNote    = "\n> The summary was cut here. The verdict in JSON has everything.\n"
)

// page is Markdown in the making. It takes whole lines only, so that a cut leaves no element or table row open.
type page struct {
	b   strings.Builder
	cut bool
}

func (p *page) line(s string) {
	if p.cut = p.cut || p.b.Len()+len(s)+1+len(cutNote) > maxSummary; !p.cut {
		p.b.WriteString(s + "\n")
	}
}

func (p *page) row(cells ...string) {
	if p.cut {
		return
	}
	for i, c := range cells {
		cells[i] = code(c)
	}
	p.line("| " + strings.Join(cells, " | ") + " |")
}

func (p *page) table(title string, columns ...string) {
	if title != "" {
		p.line("\n### " + title)
	}
	p.line("\n| " + strings.Join(columns, " | ") + " |\n|" + strings.Repeat(" --- |", len(columns)))
}

// code shows foreign text as code, where Markdown has no links and GitHub no mentions. Every ASCII character that means
// something to Markdown, HTML or GitHub is written as a number.
func code(s string) string {
	s = line(s, maxCell)
	if s == "" {
		return ""
	}
	var b strings.Builder
	b.WriteString("<code>")
	for _, r := range s {
		if r > ' ' && r < 0x7f && !('0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z') {
			fmt.Fprintf(&b, "&#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	b.WriteString("</code>")
	return b.String()
}

func summary(v *runtime.GateVerdict) ([]byte, error) {
	var p page
	row := func(name, value string) { p.row(name, value) }
	p.line("## oma gate: " + passOrFail(v))
	p.table("", "", "")
	head(v, row)
	facts(v.Receipt, row)
	if len(v.Reasons) > 0 {
		p.line("\nNext: " + next(v) + ".")
		p.table("Reasons", "code", "message")
		for _, r := range v.Reasons {
			p.row(r.Code, r.Message)
		}
	}
	p.tasks(v.Receipt)
	if len(v.Release) > 0 {
		p.table("Release requirements", "requirement", "outcome", "reason")
		for _, q := range v.Release {
			p.row(q.Name, q.Outcome, q.Reason)
		}
	}
	if p.cut {
		p.b.WriteString(cutNote)
	}
	return []byte(p.b.String()), nil
}

func (p *page) tasks(r *spec.Receipt) {
	if r == nil || len(r.Tasks) == 0 {
		return
	}
	p.table("Tasks", "task", "agent", "status", "stopped", "tokens", "cost", "seconds", "denied")
	for _, t := range r.Work() {
		p.row(t.ID, t.Assignee, t.Status, string(t.StopReason), fmt.Sprint(t.Tokens.Total()), cost(t.Cost), seconds(t.DurationMs), fmt.Sprint(t.ToolCalls.Denied))
	}
}
