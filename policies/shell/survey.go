package shell

import "strings"

// What a text may hold before it is parsed. The parser calls itself for every bracket and for some keywords, and a stack
// that overflows cannot be recovered from: 2048 of the costliest, "((", take 16 MB of stack.
const (
	maxOpen  = 256  // brackets open at one place
	maxTotal = 2048 // brackets and keywords in all: a closing bracket may be in quotes, and then closes nothing
)

type surveyed struct {
	deep bool
	odd  string // characters that are not what they look like; empty: none
	// Where the parser may take more or less for a comment than bash does; see comments.
	glued  bool // a # may follow a quote or an expansion
	joined bool // a line with a # ends in a backslash
}

// survey looks at a text before it is parsed. It knows nothing of quotes.
func survey(s string) surveyed {
	var found surveyed
	open, total, word := 0, 0, 0
	wide, hash := false, false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '(' || c == '{' || c == '[' || c == '`':
			total++
			if open++; open > maxOpen && c != '`' || total > maxTotal {
				found.deep = true
			}
		case c == ')' || c == '}' || c == ']':
			open = max(open-1, 0)
		case c == '#':
			hash = true
			found.glued = found.glued || glued(s[:i])
			continue
		case c == '\n':
			found.joined = found.joined || hash && s[i-1] == '\\'
			hash = false
		case c == '\t' || c == ' ' || c == ';':
		case c < ' ' || c == 0x7f:
			found.odd = "a control character"
		case c >= 0x80:
			wide = true
			continue
		default:
			continue
		}
		if nests(s[word:i]) {
			total++
		}
		word = i + 1
	}
	if wide && found.odd == "" && strings.ContainsFunc(s, misleads) {
		found.odd = "a character that changes the direction of text or has no width"
	}
	return found
}

// nests says whether the parser calls itself for a word.
func nests(word string) bool {
	switch word {
	case "if", "elif", "while", "until", "for", "select", "case", "function", "coproc", "time", "!":
		return true
	}
	return false
}

func misleads(r rune) bool {
	return r >= 0x200B && r <= 0x200F || r >= 0x202A && r <= 0x202E || r >= 0x2060 && r <= 0x2069 || r == 0xFEFF || r >= 0x80 && r < 0xA0
}
