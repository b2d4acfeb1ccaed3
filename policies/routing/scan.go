package routing

import (
	"sort"
	"strings"
	"sync"
	"unicode"
)

// span is a part of a text, from start to before end, in characters. The zero value is none.
type span struct{ start, end int }

func (s span) none() bool { return s.end == 0 }

// marked is one alternative of one marker.
type marked struct {
	pattern, marker int
	text            []rune
}

// byFirst are the alternatives of all markers by the character they begin with, so that one pass over a text finds all.
var byFirst = sync.OnceValue(func() map[rune][]marked {
	all := map[rune][]marked{}
	for p, pattern := range patterns {
		for m, alternatives := range pattern.markers {
			for _, a := range alternatives {
				first := []rune(strings.TrimPrefix(a, "<"))[0]
				firsts := []rune{first}
				if first == '#' {
					firsts = []rune("0123456789")
				}
				for _, r := range firsts {
					all[r] = append(all[r], marked{p, m, []rune(a)})
				}
			}
		}
	}
	return all
})

// firstPattern gives the first pattern that a goal has, and the text that has it.
func firstPattern(goal string) (name, match string) {
	original := []rune(goal)
	text := make([]rune, len(original))
	for i, r := range original {
		text[i] = unicode.ToLower(r)
	}
	found := markers(text)
	for i, p := range patterns {
		if s := chain(text, found[i], p.gaps); !s.none() {
			return p.name, string(original[s.start:s.end])
		}
	}
	for _, shape := range shapes {
		if s := shape.find(text); !s.none() {
			return shape.name, string(original[s.start:s.end])
		}
	}
	return "", ""
}

// markers finds every place of every marker: by pattern, by marker, in the order of the text.
func markers(text []rune) [][][]span {
	found := make([][][]span, len(patterns))
	for i, p := range patterns {
		found[i] = make([][]span, len(p.markers))
	}
	first := byFirst()
	for i, r := range text {
		for _, m := range first[r] {
			if end := match(text, i, m.text); end >= 0 {
				places := &found[m.pattern][m.marker]
				*places = append(*places, span{i, end})
			}
		}
	}
	return found
}

// match gives where a marker that begins at i ends. -1: it does not begin there.
func match(text []rune, i int, marker []rune) int {
	for _, m := range marker {
		from := i
		switch m {
		case '<':
			if i > 0 && wordy(text[i-1]) {
				return -1
			}
			continue
		case '>':
			if i < len(text) && wordy(text[i]) {
				return -1
			}
			continue
		case ' ', '_':
			i = after(text, i, space)
		case '%':
			i = after(text, i, numeral)
		case '#':
			if i < len(text) && digit(text[i]) {
				i++
			}
		default:
			if i < len(text) && text[i] == m {
				i++
			}
		}
		if i == from && m != '_' {
			return -1
		}
	}
	return i
}

// after gives the first place from i on whose character is not of the kind.
func after(text []rune, i int, kind func(rune) bool) int {
	for i < len(text) && kind(text[i]) {
		i++
	}
	return i
}

func digit(r rune) bool { return '0' <= r && r <= '9' }

func numeral(r rune) bool {
	return digit(r) || strings.ContainsRune("一二三四五六七八九十", r)
}

// chain finds places of markers that follow each other with the gaps wanted. It works from the last marker back, keeping
// of each the places from which the rest follows. The nearest of those decides: one farther off has a longer gap, with
// more in it to end the line.
func chain(text []rune, places [][]span, gaps []gap) span {
	good := places[len(places)-1]
	for k := len(gaps) - 1; k >= 0 && len(good) > 0; k-- {
		var kept []span
		for _, s := range places[k] {
			from := s.end + gaps[k].least
			next := sort.Search(len(good), func(i int) bool { return good[i].start >= from })
			if next < len(good) && good[next].start <= s.end+gaps[k].most && gaps[k].spans(text[s.end:good[next].start]) {
				kept = append(kept, span{s.start, good[next].end})
			}
		}
		good = kept
	}
	if len(good) == 0 {
		return span{}
	}
	return good[0]
}

// spans says that nothing in a text ends the gap. The text is at most as long as the gap allows.
func (g gap) spans(text []rune) bool {
	for _, r := range text {
		if g.sentence && (r == '.' || r == '!' || r == '?' || r == '\n') || !g.sentence && endsLine(r) {
			return false
		}
	}
	return true
}

func endsLine(r rune) bool { return r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029' }
