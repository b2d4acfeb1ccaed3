package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// comments corrects what the parser takes for comments, where bash does not:
//
//   - Inside brackets, it takes a # after a quote or an expansion for a comment, as in (echo $x#; rm b). In bash it is a
//     character of the word.
//   - It lets a backslash at the end of a comment join the next line to the command before. In bash the comment ends.
//
// Both are found by putting other characters in the same places, which give the same tree if there is no comment.
func (w *walker) comments(src string, s surveyed, stmts []*syntax.Stmt, failed error) ([]*syntax.Stmt, error) {
	text := src
	if s.glued {
		if alt := unglued(text); w.differs(alt, stmts, failed) {
			text = alt
			stmts, failed = w.parse(text)
		}
	}
	if s.joined && w.differs(unjoined(text, "  "), stmts, failed) {
		text = unjoined(text, " \n")
		stmts, failed = w.parse(text)
	}
	if text != src {
		w.unreadAt(Review, "unclear-comment", "where a comment starts or ends is easily read in another way than bash does")
	}
	return stmts, failed
}

// differs says whether a text of the same length gives another tree.
func (w *walker) differs(text string, stmts []*syntax.Stmt, failed error) bool {
	again, err := w.parse(text)
	return (err == nil) != (failed == nil) || !slices.Equal(offsets(again), offsets(stmts))
}

// offsets tells trees apart by where their nodes start.
func offsets(stmts []*syntax.Stmt) []uint {
	var out []uint
	for _, s := range stmts {
		syntax.Walk(s, func(n syntax.Node) bool {
			if n != nil {
				out = append(out, n.Pos().Offset())
			}
			return true
		})
	}
	return out
}

// unjoined puts two other characters in place of each backslash at the end of a line that holds a #.
func unjoined(s, with string) string {
	lines := strings.SplitAfter(s, "\n")
	for i, l := range lines {
		if strings.HasSuffix(l, "\\\n") && strings.Contains(l, "#") {
			lines[i] = l[:len(l)-2] + with
		}
	}
	return strings.Join(lines, "")
}

// glued says whether text may end in a quote or an expansion.
func glued(before string) bool {
	if before == "" {
		return false
	}
	switch c := before[len(before)-1]; {
	case strings.IndexByte(")]}`'\"", c) >= 0:
		return true
	case strings.IndexByte("?@*!$-", c) >= 0:
		return len(before) > 1 && before[len(before)-2] == '$'
	}
	return strings.HasSuffix(strings.TrimRightFunc(before, nameByte), "$") && before[len(before)-1] != '$'
}

// unglued puts another character in place of each # that may follow a quote or an expansion.
func unglued(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c == '#' && glued(s[:i]) {
			b[i] = '%' // which also takes the place of # in an expansion
		}
	}
	return string(b)
}
