package roster

import (
	"strings"
	"unicode"
)

// The least a keyword has, in runes. Scripts that are written without spaces between words have shorter ones.
const (
	minLatin = 4
	minCJK   = 2
)

// stop are words that say nothing of what a text is about.
var stop = map[string]bool{"about": true, "after": true, "also": true, "before": true, "from": true, "have": true, "into": true, "just": true, "must": true, "only": true,
	"over": true, "shall": true, "should": true, "some": true, "such": true, "than": true, "that": true, "their": true, "them": true, "then": true, "there": true,
	"these": true, "they": true, "this": true, "those": true, "very": true, "what": true, "when": true, "where": true, "which": true, "will": true, "with": true,
	"would": true, "your": true}

// keywords are the distinct words of a text, in lower case and in its order. Of a run of Chinese, Japanese or Korean they
// are each two characters that stand together: there is no dictionary here to find words by.
func keywords(text string) []string {
	var out []string
	seen := map[string]bool{}
	add := func(w string) {
		if !seen[w] && !stop[w] {
			seen[w] = true
			out = append(out, w)
		}
	}
	for _, w := range words(text) {
		switch r := []rune(w); {
		case !cjk(r[0]) && len(r) >= minLatin:
			add(w)
		case cjk(r[0]):
			for i := 0; i+minCJK <= len(r); i++ {
				add(string(r[i : i+minCJK]))
			}
		}
	}
	return out
}

// words splits a text, in lower case, into runs of letters and digits, each of one kind of script.
func words(text string) (out []string) {
	var b strings.Builder
	var kind bool
	flush := func() {
		if b.Len() > 0 {
			out = append(out, b.String())
			b.Reset()
		}
	}
	for _, r := range strings.ToLower(text) {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r):
			flush()
			continue
		case b.Len() > 0 && cjk(r) != kind:
			flush()
		}
		kind = cjk(r)
		b.WriteRune(r)
	}
	flush()
	return out
}

func cjk(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) || r == 'ー'
}
