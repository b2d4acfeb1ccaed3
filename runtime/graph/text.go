package graph

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// columns is how wide a line of text may be.
const columns = 80

// text lists the layers, one task a line, with what it waits for below it.
func text(g *Graph, b *strings.Builder) {
	fmt.Fprintln(b, clip(fmt.Sprintf("team %s: %s", g.team, g.summary()), columns))
	if g.required {
		fmt.Fprintln(b, "* fills a required role")
	}
	listed(b, "before anything starts a person is asked by ", g.asked)
	for n, layer := range g.layers {
		fmt.Fprintf(b, "\nlayer %d\n", n+1)
		for _, i := range layer {
			g.tasks[i].text(g, b)
		}
	}
}

func (t *task) text(g *Graph, b *strings.Builder) {
	mark := " "
	if t.role != "" {
		mark = "*"
	}
	line := fmt.Sprintf("  %s %s  %s", mark, padded(t.id, 20), padded(t.agent, 16))
	if s := t.outcome(); s != "" {
		line += "  [" + s + "]"
	}
	if t.title != t.id {
		line += "  " + t.title
	}
	fmt.Fprintln(b, clip(strings.TrimRight(line, " "), columns))
	after := make([]string, 0, len(t.after))
	for _, i := range t.after {
		after = append(after, g.tasks[i].id)
	}
	listed(b, "      after ", after)
	listed(b, "      asks a person: ", t.asked)
}

// listed writes as many words of a list as a line has room for, and says how many more there are.
func listed(b *strings.Builder, head string, words []string) {
	if len(words) == 0 {
		return
	}
	const room = len(", and 10000 more")
	line, used := head, widthOf(head)
	for i, w := range words {
		if i > 0 {
			w = ", " + w
		}
		if n := widthOf(w); used+n > columns-room {
			if i == 0 {
				line, i = line+clip(w, columns-room-used), 1
			}
			if rest := len(words) - i; rest > 0 {
				line += fmt.Sprintf(", and %d more", rest)
			}
			break
		} else {
			line, used = line+w, used+n
		}
	}
	fmt.Fprintln(b, line)
}

func padded(s string, n int) string {
	if w := widthOf(s); w < n {
		return s + strings.Repeat(" ", n-w)
	}
	return s
}

// clip cuts a text to so many columns.
func clip(s string, n int) string {
	if widthOf(s) <= n {
		return s
	}
	used := 1 // of the sign that something was cut
	for i, r := range s {
		if used += runeWidth(r); used > n {
			return s[:i] + "…"
		}
	}
	return s
}

func widthOf(s string) (n int) {
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}
