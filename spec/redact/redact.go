package redact

import (
	"slices"
	"strings"
)

// Mark stands where a secret stood.
const Mark = "[redacted]"

// passes is how often a text is looked at again after something was taken out of it, since what remains may read
// differently. One changing pass and one that finds nothing more is the rule.
const passes = 4

// Secret is a value the program resolved, with the name it is known by.
type Secret struct{ Name, Value string }

// Redactor takes secrets out of text. It is immutable and safe for concurrent use. A nil Redactor and a zero one know
// the patterns and no values.
type Redactor struct{ known *values }

// New makes a Redactor that also knows the given values. White space around a value does not count, and an empty value
// is none. A value of fewer than eight runes is replaced only where it stands as a whole word: taken out everywhere,
// a value such as "on" would leave no text. A value that is part of [Mark] cannot be hidden and is ignored.
func New(secrets ...Secret) *Redactor { return &Redactor{newValues(secrets)} }

// Text replaces each secret by [Mark]. To apply it again changes nothing. A text that has not settled after a few
// passes, which only text made for the purpose does, is withheld whole.
func (r *Redactor) Text(s string) string {
	for range passes {
		out := replace(s, r.find(s))
		if out == s {
			return s
		}
		s = out
	}
	return Mark
}

// References replaces resolved values, and nothing else, by ${secret:NAME}, for records that must otherwise keep their
// text. An encoded form of a value is replaced too and does not come back as it was.
func (r *Redactor) References(s string) string {
	var b strings.Builder
	done := 0
	for _, h := range r.values().find(s) {
		b.WriteString(s[done:h.start])
		b.WriteString("${secret:" + h.name + "}")
		done = h.end
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

func (r *Redactor) values() *values {
	if r == nil {
		return nil
	}
	return r.known
}

// find gives the places of all secrets, in order and apart from each other.
func (r *Redactor) find(s string) []span {
	found := patterns(s, rules{named: keyed, flags: true})
	hits := r.values().find(s)
	if len(hits) == 0 {
		return found
	}
	for _, h := range hits {
		found = append(found, h.span)
	}
	slices.SortFunc(found, func(a, b span) int { return a.start - b.start })
	joined := found[:1]
	for _, next := range found[1:] {
		joined = join(joined, next)
	}
	return joined
}

// span is a part of a text, in bytes.
type span struct{ start, end int }

func (p span) empty() bool { return p.start >= p.end }

// join adds a span to ordered ones. Spans that touch become one.
func join(spans []span, next span) []span {
	if n := len(spans); n > 0 && next.start <= spans[n-1].end {
		spans[n-1].end = max(spans[n-1].end, next.end)
		return spans
	}
	return append(spans, next)
}

func replace(s string, spans []span) string {
	if len(spans) == 0 {
		return s
	}
	var b strings.Builder
	done := 0
	for _, p := range spans {
		b.WriteString(s[done:p.start])
		b.WriteString(Mark)
		done = p.end
	}
	b.WriteString(s[done:])
	return b.String()
}
