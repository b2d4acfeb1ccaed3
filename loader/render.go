package loader

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"github.com/open-multi-agent/oma/spec"
)

const (
	// MaxShown is how many diagnostics Render prints.
	MaxShown = 100
	// window is how many runes of a line longer than twice that are shown on each side of the place.
	window = 80
)

// Render writes diagnostics for people: for each a line with place, message and code, the line of the file with a
// caret below, and a hint. Beyond MaxShown it only says how many more there are.
func Render(w io.Writer, ds spec.Diagnostics) error {
	out := bufio.NewWriter(w)
	for i, d := range ds {
		if i == MaxShown {
			fmt.Fprintf(out, "%d more problems are not shown\n", len(ds)-MaxShown)
			break
		}
		out.WriteString(visible(d.String()) + "\n")
		if d.Snippet != "" {
			out.WriteString(d.Snippet + "\n")
		}
		if d.Hint != "" {
			out.WriteString("   hint: " + visible(d.Hint) + "\n")
		}
	}
	return out.Flush()
}

// snippet is the line of a place behind its number, and a caret below. Both are without a final line end.
func (d *document) snippet(at spec.Pos, runes int) string {
	text, col := d.near(at)
	return excerpt(strconv.Itoa(at.Line), text, col, runes)
}

// inner shows the line of a text that stands elsewhere in another form, such as an expression that YAML has folded. It
// continues the frame of that other line.
func inner(text string, at spec.Pos, line int) string {
	lines := strings.Split(text, "\n")
	if at.Line < 1 || at.Line > len(lines) {
		return ""
	}
	return "\n" + excerpt(strings.Repeat(" ", len(strconv.Itoa(line))), lines[at.Line-1], at.Col, 1)
}

func excerpt(gutter, line string, col, runes int) string {
	text := []rune(line)
	col = min(max(col, 1), len(text)+1)
	from, to := 0, len(text)
	if to > 2*window {
		from, to = max(0, col-1-window), min(to, col-1+window)
	}
	var shown, caret strings.Builder
	if from > 0 {
		shown.WriteString("…")
		caret.WriteString(" ")
	}
	pad := 0 // columns of the underlined text
	for i := from; i < to; i++ {
		s, columns := glyph(text[i])
		shown.WriteString(s)
		switch {
		case i < col-1 && text[i] == '\t':
			caret.WriteByte('\t') // the terminal decides how wide it is
		case i < col-1:
			caret.WriteString(strings.Repeat(" ", columns))
		case i < col-1+runes:
			pad += columns
		}
	}
	if to < len(text) {
		shown.WriteString("…")
	}
	blank := strings.Repeat(" ", len(gutter))
	return strings.TrimRight(gutter+" | "+shown.String(), " \t") + "\n" +
		blank + " | " + caret.String() + "^" + strings.Repeat("~", max(0, pad-1))
}

// glyph gives how a rune is shown and how many columns that takes. Characters that would move the cursor or change
// the direction of text are spelled out.
func glyph(r rune) (string, int) {
	switch {
	case r == '\t':
		return "\t", 1
	case unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r):
		s := fmt.Sprintf(`\u{%x}`, r)
		return s, len(s)
	case unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r):
		return string(r), 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return string(r), 2
	}
	return string(r), 1
}

func visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		shown, _ := glyph(r)
		b.WriteString(shown)
	}
	return b.String()
}
