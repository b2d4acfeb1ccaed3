package routing

import "unicode"

// Units estimates how much a goal says, whatever its script: a word of Latin letters and digits counts up to 4, a run of
// more than 32 of them its whole length (it is data, and must not pass as a word), a Chinese, Japanese or Korean
// character 2.25, anything else that is no space 1. The sum is rounded up.
func Units(goal string) int {
	quarters, run := 0, 0
	for _, r := range goal {
		if latin(r) {
			run++
			continue
		}
		quarters += runQuarters(run)
		run = 0
		switch {
		case cjk(r):
			quarters += 9
		case !space(r):
			quarters += 4
		}
	}
	quarters += runQuarters(run)
	return (quarters + 3) / 4
}

// runQuarters gives the cost of a run of Latin letters and digits, in quarters of a unit.
func runQuarters(n int) int {
	if n > 32 {
		return 4 * n
	}
	return 4 * min(n, 4)
}

func latin(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

// cjk says that a character is Han (with extension A and the compatibility block), kana or a Hangul syllable.
func cjk(r rune) bool {
	return 0x3400 <= r && r <= 0x4dbf || 0x4e00 <= r && r <= 0x9fff || 0xf900 <= r && r <= 0xfaff ||
		0x3040 <= r && r <= 0x30ff || 0xac00 <= r && r <= 0xd7af
}

// space also takes the byte order mark for one: it shows nothing.
func space(r rune) bool { return unicode.IsSpace(r) || r == 0xfeff }

// wordy says that a character belongs to a word that stands beside it. A combining mark does; what is Chinese, Japanese
// or Korean, from U+2E80 on, does not: a Latin word ends where it begins.
func wordy(r rune) bool {
	return r == '_' || latin(r) || 0x80 <= r && r < 0x2e80 && (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r))
}
