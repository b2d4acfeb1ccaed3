package shell

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// ansi reads the inside of $'…'. It fails on an escape for the character 0, at which the shell ends the text, and on
// escapes that depend on the locale.
func ansi(s string) (string, bool) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, true
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			i++
			continue
		}
		n, ok := escape(&b, s[i+1:])
		if !ok {
			return "", false
		}
		i += 1 + n
	}
	return b.String(), true
}

// escape writes what an escape stands for, and gives how many bytes there are after its backslash.
func escape(b *strings.Builder, s string) (int, bool) {
	const from, to = `abeEfnrtv\'"?`, "\a\b\x1b\x1b\f\n\r\t\v\\'\"?"
	if i := strings.IndexByte(from, s[0]); i >= 0 {
		b.WriteByte(to[i])
		return 1, true
	}
	switch c := s[0]; {
	case c >= '0' && c <= '7':
		return number(b, s, 0, 3, 8)
	case c == 'x':
		return number(b, s, 1, 2, 16)
	case c == 'u':
		return number(b, s, 1, 4, 16)
	case c == 'U':
		return number(b, s, 1, 8, 16)
	case c == 'c':
		return 0, false
	}
	b.WriteByte('\\')
	b.WriteByte(s[0])
	return 1, true
}

func number(b *strings.Builder, s string, from, most, base int) (int, bool) {
	to := from
	for to < len(s) && to < from+most && strings.IndexByte("0123456789abcdefABCDEF"[:base+base/16*6], s[to]) >= 0 {
		to++
	}
	n, err := strconv.ParseUint(s[from:to], base, 32)
	switch {
	case err != nil || n == 0 || n > utf8.MaxRune || base == 8 && byte(n) == 0:
		return 0, false
	case base == 8 || s[0] == 'x':
		b.WriteByte(byte(n))
	case n >= 0x80: // what is written depends on the locale
		b.WriteRune(rune(n))
	default:
		b.WriteByte(byte(n))
	}
	return to, true
}
