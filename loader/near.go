package loader

import (
	"fmt"
	"strings"
)

// suggest is the hint for a name that is not known: the one that was probably meant, else all there are.
func suggest(name string, valid []string) string {
	if near := nearest(name, valid); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "known here: " + strings.Join(valid, ", ")
}

// nearest gives the valid name closest to one that is not, or "". Case, - and _ do not count, and a name that begins
// another is near it.
func nearest(name string, valid []string) string {
	plain := strings.NewReplacer("-", "", "_", "", " ", "")
	fold := func(s string) string { return strings.ToLower(plain.Replace(s)) }
	got, best, bound := fold(name), "", 0
	if len(got) < 2 || len(got) > 64 {
		return ""
	}
	bound = max(1, len(got)/2)
	for _, v := range valid {
		want := fold(v)
		d := distance(got, want)
		if strings.HasPrefix(want, got) || strings.HasPrefix(got, want) && len(want) > 2 {
			d = 1
		}
		if d <= bound && (best == "" || d < bound) {
			best, bound = v, d
		}
	}
	return best
}

// distance counts the letters to insert, delete, replace or swap with their neighbour.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := range x {
		row[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}
