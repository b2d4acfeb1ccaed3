package spec

import "strings"

// DidYouMean gives a hint for a wrong name: the nearest valid one if it is near, else all of them. No valid names give
// no hint.
func DidYouMean(name string, valid []string) string {
	if best := Nearest(name, valid); best != "" {
		return "did you mean " + best + "?"
	}
	if len(valid) == 0 {
		return ""
	}
	return "valid: " + strings.Join(valid, ", ")
}

// Nearest gives the valid name closest to one that is not, or nothing. Case, - and _ do not count, at most a third of the
// letters may differ, and a name that begins another is near it. Ties go to the first.
func Nearest(name string, valid []string) string {
	got, best, least := folded(name), "", 0
	if got == "" {
		return ""
	}
	for _, v := range valid {
		want := folded(v)
		d := distance(got, want)
		if strings.HasPrefix(want, got) || strings.HasPrefix(got, want) && len(want) > 2 {
			d = 1
		}
		if d <= max(1, len(want)/3, len(got)/2) && (best == "" || d < least) {
			best, least = v, d
		}
	}
	return best
}

func folded(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(name))
}

// distance counts insertions, deletions, changes and swaps of neighbours. Long names are not compared.
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	if len(s) > 64 || len(t) > 64 {
		return 64
	}
	rows := [3][]int{make([]int, len(t)+1), make([]int, len(t)+1), make([]int, len(t)+1)}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := 1; i <= len(s); i++ {
		older, old, now := rows[(i+2)%3], rows[i%3], rows[(i+1)%3]
		now[0] = i
		for j := 1; j <= len(t); j++ {
			cost := 1
			if s[i-1] == t[j-1] {
				cost = 0
			}
			now[j] = min(old[j]+1, now[j-1]+1, old[j-1]+cost)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				now[j] = min(now[j], older[j-2]+1)
			}
		}
	}
	return rows[(len(s)+1)%3][len(t)]
}
