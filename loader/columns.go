package loader

import "github.com/open-multi-agent/oma/spec"

// stride is how many runes lie between two marks of a line. It is above window, so that what [document.near] gives is
// cut where the whole line would be.
const stride = 128

// marks holds, by line number, the bytes at which every stride-th rune of a long line begins. The parser gives columns
// in runes: to count them from the start of the line for each value would take the square of the line's length, and a
// document that a program has written is often one line.
type marks map[int][]int

func newMarks(lines []string) marks {
	all := marks{}
	for i, line := range lines {
		if len(line) <= stride {
			continue
		}
		at := make([]int, 0, len(line)/stride+1)
		runes := 0
		for b := range line {
			if runes%stride == 0 {
				at = append(at, b)
			}
			runes++
		}
		all[i+1] = at
	}
	return all
}

// nearest gives the last mark at or before a column: its byte, and how many runes the column is behind it.
func (m marks) nearest(line, col int) (at, behind int) {
	if len(m[line]) == 0 {
		return 0, col - 1
	}
	i := min((col-1)/stride, len(m[line])-1)
	return m[line][i], col - 1 - i*stride
}

// from gives the text of a line from a column on, or nothing behind its end.
func (d *document) from(line, col int) string {
	at, behind := d.marks.nearest(line, col)
	return dropRunes(d.line(line)[at:], behind)
}

// near gives the part of a long line around a place, with at least a stride on both sides where the line has that, and
// the place's column in it.
func (d *document) near(at spec.Pos) (text string, col int) {
	text, m := d.line(at.Line), d.marks[at.Line]
	i := min((at.Col-1)/stride, len(m)-1)
	if i >= 0 && i+2 < len(m) {
		text = text[:m[i+2]]
	}
	if i < 2 {
		return text, at.Col
	}
	return text[m[i-2]:], at.Col - (i-2)*stride
}
