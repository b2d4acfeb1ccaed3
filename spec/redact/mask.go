package redact

import (
	"strings"
	"unicode/utf8"
)

// Mask puts a star for each character of a secret that shows by its own form or by its place in an address, so that
// what stands in columns stays in them. What follows a name such as token is left: in a message that name is often what
// the message is about.
func Mask(s string) string { return stars(s, patterns(s, rules{named: parameter})) }

// MaskLine does the same for one line of YAML or JSON. There the text after a key such as password is a secret too. A map, a
// list and an alias are none, so apiKey: {env: NAME} stays as it is.
func MaskLine(s string) string { return stars(s, patterns(s, rules{named: scalar})) }

func stars(s string, secrets []span) string {
	var b strings.Builder
	done := 0
	for _, p := range secrets {
		b.WriteString(s[done:p.start])
		b.WriteString(strings.Repeat("*", utf8.RuneCountInString(s[p.start:p.end])))
		done = p.end
	}
	return b.String() + s[done:]
}

// parameter finds the value of a parameter of an address.
func parameter(s string, i int) span {
	if s[i] != '=' || !keyBefore(s, i).query {
		return span{}
	}
	return keyed(s, i)
}

// scalar finds the value after a key of YAML or JSON if it is a text.
func scalar(s string, i int) span {
	if s[i] == '=' {
		return parameter(s, i)
	}
	p := keyed(s, i)
	if !p.empty() && s[p.start] == '&' { // an anchor stands before the value
		blanks := strings.IndexByte(s[p.start:], ' ')
		if blanks < 0 {
			return span{}
		}
		start := blank.skip(s, p.start+blanks)
		if start == len(s) {
			return span{}
		}
		p = value(s, start, start < p.end)
	}
	if p.empty() || !quote(s[p.start-1]) && strings.IndexByte("{[*|>", s[p.start]) >= 0 {
		return span{}
	}
	return p
}
