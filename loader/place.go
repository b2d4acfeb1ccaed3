package loader

import (
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/open-multi-agent/oma/spec"
)

// Sources holds the documents that were read, to find places in them. It does not change after loading.
type Sources struct {
	docs map[string]*document // by path as written; "" is the main document
}

func newSources() *Sources { return &Sources{docs: map[string]*document{}} }

// Place fills in the file name, position and snippet of diagnostics that were made from a path. File is the empty
// string for the main document, else the path as written in it. Where the path does not exist, such as that of a
// missing key, the nearest place around it is taken. Diagnostics of unknown files stay as they are.
func (s *Sources) Place(ds spec.Diagnostics) {
	f := finder{}
	for i := range ds {
		d := &ds[i]
		doc := s.docs[d.File]
		if doc == nil {
			continue
		}
		d.File = doc.name
		at := d.At
		exact := true
		if d.Pos.Line == 0 && doc.root != nil {
			d.Pos, d.Width, exact = doc.locate(d, f)
		}
		if d.Snippet == "" && d.Pos.Line > 0 {
			d.Snippet = doc.snippet(d.Pos, d.Width)
			if !exact {
				d.Snippet += inner(f.find(doc.root, d.Path).value.Value, at, d.Pos.Line)
			}
		}
	}
}

// locate gives the place of a diagnostic and how many runes to underline. exact is false where the text has no place
// of its own for a position inside a value.
func (d *document) locate(x *spec.Diagnostic, f finder) (pos spec.Pos, width int, exact bool) {
	found := f.find(d.root, x.Path)
	n := found.value
	if found.key != nil && (x.OnKey || blockOrNothing(n)) {
		n = found.key
	} else if x.At.Line > 0 && n.Kind == yaml.ScalarNode {
		if pos, ok := d.inside(n, x.At); ok {
			return pos, x.Width, true
		}
		pos, _ := d.span(n)
		return pos, 1, false
	}
	pos, width = d.span(n)
	if x.Width > 0 {
		width = x.Width
	}
	return pos, width, true
}

// blockOrNothing says that a value has no text of its own to point at: a block or a key with nothing after it.
func blockOrNothing(n *yaml.Node) bool {
	if n.Kind == yaml.ScalarNode {
		return n.Value == "" && n.Style == 0
	}
	return n.Kind != yaml.AliasNode && n.Style&yaml.FlowStyle == 0
}

// line gives a line, 1-based, or nothing.
func (d *document) line(i int) string {
	if i < 1 || i > len(d.lines) {
		return ""
	}
	return d.lines[i-1]
}

// content gives where a node's own text begins, behind its anchor and tag, and that line's text from there on.
func (d *document) content(n *yaml.Node) (spec.Pos, string) {
	pos := nodePos(n)
	rest := d.from(pos.Line, pos.Col)
	for n.Kind != yaml.AliasNode {
		isAnchor := n.Anchor != "" && strings.HasPrefix(rest, "&"+n.Anchor)
		isTag := n.Style&yaml.TaggedStyle != 0 && strings.HasPrefix(rest, "!")
		if !isAnchor && !isTag {
			break
		}
		end := strings.IndexAny(rest, " \t")
		if end < 0 {
			end = len(rest)
		}
		blank := rest[end:]
		next := strings.TrimLeft(blank, " \t")
		pos.Col += utf8.RuneCountInString(rest[:end]) + len(blank) - len(next)
		for rest = next; (rest == "" || rest[0] == '#') && pos.Line < len(d.lines); {
			line := d.line(pos.Line + 1)
			rest = strings.TrimLeft(line, " \t")
			pos = spec.Pos{Line: pos.Line + 1, Col: len(line) - len(rest) + 1}
		}
	}
	return pos, rest
}

// properties gives the text at a node, behind its anchor.
func (d *document) properties(n *yaml.Node) string {
	_, rest := d.content(n)
	return rest
}

func dropRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[i:]
		}
		n--
	}
	return ""
}

// span gives a node's place and how many runes of it are on its first line.
func (d *document) span(n *yaml.Node) (spec.Pos, int) {
	pos, rest := d.content(n)
	width := 1
	switch {
	case n.Kind == yaml.AliasNode:
		width = utf8.RuneCountInString(n.Value) + 1
	case n.Kind != yaml.ScalarNode:
	case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 && rest != "":
		if end := closing(rest); end > 0 {
			width = utf8.RuneCountInString(rest[:end])
		}
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 && strings.HasPrefix(rest, n.Value):
		width = utf8.RuneCountInString(n.Value)
	}
	return pos, max(width, 1)
}

// closing gives the index behind the quote that closes the one at the start, or 0.
func closing(s string) int {
	q := s[0]
	for i := 1; i < len(s); i++ {
		switch {
		case q == '"' && s[i] == '\\':
			i++
		case s[i] == q && q == '\'' && i+1 < len(s) && s[i+1] == q:
			i++
		case s[i] == q:
			return i + 1
		}
	}
	return 0
}

// inside maps a place in a scalar's decoded text to the file. Literal blocks, and plain and quoted text on one line
// before its first escape, hold the decoded text as it is. Folded text does not.
func (d *document) inside(n *yaml.Node, at spec.Pos) (spec.Pos, bool) {
	text := strings.Split(n.Value, "\n")
	if at.Line > len(text) {
		return spec.Pos{}, false
	}
	want := text[at.Line-1]
	head := want[:len(want)-len(dropRunes(want, at.Col-1))]
	start, rest := d.content(n)
	if rest == "" {
		return spec.Pos{}, false
	}
	switch {
	case n.Style&yaml.FoldedStyle != 0:
		return spec.Pos{}, false
	case n.Style&yaml.LiteralStyle != 0:
		line := d.line(start.Line + at.Line)
		indent := len(line) - len(want)
		if indent < 0 || line[indent:] != want || strings.Trim(line[:indent], " ") != "" {
			return spec.Pos{}, false
		}
		return spec.Pos{Line: start.Line + at.Line, Col: indent + utf8.RuneCountInString(head) + 1}, true
	case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
		start.Col++
		rest = rest[1:]
	}
	if at.Line > 1 || !strings.HasPrefix(rest, head) {
		return spec.Pos{}, false
	}
	return spec.Pos{Line: start.Line, Col: start.Col + utf8.RuneCountInString(head)}, true
}
