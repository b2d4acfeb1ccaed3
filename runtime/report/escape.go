package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape shows text that a model, a tool or a server wrote: control and format characters other than newline and tab
// become \u{…}, so that they cannot move the cursor, colour the screen or turn text around. What is no UTF-8 becomes
// U+FFFD.
func Escape(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, hidden) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if hidden(r) {
			b.WriteString(braced(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// EscapeLog is [Escape] for a stream that a CI system may read. It also breaks what gives an order there: a :: at the
// start of a line, and ##[ or ##name[ anywhere in one.
func EscapeLog(s string) string { return disarm(Escape(s), braced) }

func hidden(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029')
}

// unseen characters are skipped when a runner compares text by the rules of a language, so :: with one of them in
// between still is ::.
func unseen(r rune) bool {
	return unicode.Is(unicode.M, r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

func braced(r rune) string { return fmt.Sprintf(`\u{%x}`, r) }

// disarm writes one character of every command differently.
func disarm(s string, as func(rune) string) string {
	if !strings.ContainsAny(s, ":#") {
		return s
	}
	var b strings.Builder
	start, hashes := true, 0
	for i, r := range s {
		command := r == ':' && start && strings.HasPrefix(strings.TrimLeftFunc(s[i+1:], unseen), ":") || r == '[' && hashes > 1
		if command {
			b.WriteString(as(r))
		} else {
			b.WriteRune(r)
		}
		start = r == '\n' || start && (unicode.IsSpace(r) || unseen(r))
		switch name := r < utf8.RuneSelf && unicode.IsLetter(r); {
		case r == '#':
			hashes++
		case !unseen(r) && !(name && hashes > 1):
			hashes = 0
		}
	}
	return b.String()
}

// line makes one line of at most n characters, before escaping, out of text.
func line(s string, n int) string {
	return disarm(strings.Join(strings.Fields(Escape(clip(s, n))), " "), braced)
}

func clip(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}
