package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// marked shows text that somebody decides by so that no character in it passes for another one: ⟦ ⟧ are around all that is
// not ASCII, and what cannot be seen there, or would move what stands beside it, is \u{…}.
func marked(text string) string {
	if ascii(text) {
		return text
	}
	var b strings.Builder
	inside := false
	for _, r := range text {
		if foreignRune := r >= utf8.RuneSelf; foreignRune != inside {
			b.WriteString(map[bool]string{true: "⟦", false: "⟧"}[foreignRune])
			inside = foreignRune
		}
		if r >= utf8.RuneSelf && !plainly(r) {
			fmt.Fprintf(&b, `\u{%x}`, r)
		} else {
			b.WriteRune(r)
		}
	}
	if inside {
		b.WriteString("⟧")
	}
	return b.String()
}

// The bytes of one text that are shown where nobody wants to see all.
const (
	shownBytes = 32 << 10
	noLimit    = math.MaxInt
)

// shortened marks a text of which at most so many bytes are shown, and says where it leaves out the rest: nothing that was
// marked says so.
func shortened(text string, most int) string {
	if len(text) <= most {
		return marked(text)
	}
	head := strings.ToValidUTF8(text[:most*3/4], "")
	tail := strings.ToValidUTF8(text[len(text)-most/4:], "")
	return fmt.Sprintf("%s\n… %d bytes are not shown here: --all shows them …\n%s", marked(head), len(text)-len(head)-len(tail), marked(tail))
}

// plainly says that a character can be seen and stays in its place.
func plainly(r rune) bool {
	switch {
	case r == '⟦', r == '⟧', !unicode.IsPrint(r), unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.M):
		return false
	case r >= 0x590 && r <= 0x8ff, r >= 0xfb1d && r <= 0xfdff, r >= 0xfe70 && r <= 0xfeff, r >= 0x10800 && r <= 0x10fff, r >= 0x1e800 && r <= 0x1efff:
		return false // blocks of scripts that run from right to left (Unicode, DerivedBidiClass)
	}
	return true
}

// foreign lists what of a text is not ASCII. Empty: nothing is.
func foreign(text string) string {
	const most = 20 // enough to see what is going on
	var seen []string
	n := 0
	for _, r := range text {
		if r < utf8.RuneSelf {
			continue
		}
		n++
		if code := fmt.Sprintf("U+%04X", r); !slices.Contains(seen, code) {
			seen = append(seen, code)
		}
	}
	if n == 0 {
		return ""
	}
	if len(seen) > most {
		seen = append(seen[:most], "…")
	}
	return fmt.Sprintf("%s in the content not ASCII, between ⟦ and ⟧: %s", counted(n, "character"), strings.Join(seen, " "))
}

func ascii(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}
