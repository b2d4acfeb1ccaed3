package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// shortValue is the length in runes below which a value is found only as a whole word.
const shortValue = 8

// values finds resolved values in one pass: a needle is tried only where its first two bytes stand. A nil values finds
// nothing.
type values struct {
	pairs   [1 << 16 / 64]uint64 // a bit for each pair of first bytes
	needles map[uint16][]needle  // by that pair, longest first
}

// needle is one form of a value.
type needle struct {
	text, name string
	word       bool // only as a whole word
	run        bool // base64: the whole run of base64 it stands in is secret
}

// hit is a place where a value stands.
type hit struct {
	span
	name string
}

func newValues(secrets []Secret) *values {
	v := &values{needles: map[uint16][]needle{}}
	seen := map[string]bool{}
	for _, s := range secrets {
		for _, n := range forms(s) {
			if !seen[n.text] && n.text != "" && !strings.Contains(Mark, n.text) {
				seen[n.text] = true
				v.add(n)
			}
		}
	}
	if len(seen) == 0 {
		return nil
	}
	for _, list := range v.needles {
		slices.SortStableFunc(list, func(a, b needle) int { return len(b.text) - len(a.text) })
	}
	return v
}

func (v *values) add(n needle) {
	if len(n.text) > 1 {
		v.put(pair(n.text, 0), n)
		return
	}
	for second := range 256 {
		v.put(uint16(n.text[0])<<8|uint16(second), n)
	}
}

func (v *values) put(p uint16, n needle) {
	v.pairs[p/64] |= 1 << (p % 64)
	v.needles[p] = append(v.needles[p], n)
}

// pair gives the two bytes at i; past the end is a zero.
func pair(s string, i int) uint16 {
	p := uint16(s[i]) << 8
	if i+1 < len(s) {
		p |= uint16(s[i+1])
	}
	return p
}

// find gives the hits in order. Hits that overlap become one, under the first one's name.
func (v *values) find(s string) []hit {
	if v == nil {
		return nil
	}
	var hits []hit
	for i := 0; i < len(s); i++ {
		p := pair(s, i)
		if v.pairs[p/64]&(1<<(p%64)) == 0 {
			continue
		}
		h, run := v.at(s, i, p)
		if h.empty() {
			continue
		}
		if run {
			i = h.end - 1
		}
		if n := len(hits); n > 0 && h.start < hits[n-1].end {
			hits[n-1].end = max(hits[n-1].end, h.end)
			continue
		}
		hits = append(hits, h)
	}
	return hits
}

func (v *values) at(s string, i int, p uint16) (h hit, run bool) {
	for _, n := range v.needles[p] {
		end := i + len(n.text)
		if !strings.HasPrefix(s[i:], n.text) || n.word && !wholeWord(s, i, end) {
			continue
		}
		if n.run {
			return hit{span{i - runBefore(s[:i]), end + runAfter(s[end:])}, n.name}, true
		}
		return hit{span{i, end}, n.name}, false
	}
	return hit{}, false
}

func wholeWord(s string, start, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:start])
	after, _ := utf8.DecodeRuneInString(s[end:])
	return !wordRune(before) && !wordRune(after)
}

func wordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

func runBefore(s string) int {
	n := 0
	for n < len(s) && base64Byte.has(s[len(s)-1-n]) {
		n++
	}
	return n
}

func runAfter(s string) int {
	n := 0
	for n < len(s) && (base64Byte.has(s[n]) || s[n] == '=') {
		n++
	}
	return n
}

// forms gives the ways in which a value may be written.
func forms(s Secret) []needle {
	v := strings.TrimSpace(s.Value)
	short := utf8.RuneCountInString(v) < shortValue
	var out []needle
	for _, text := range []string{v, jsonText(v, true), jsonText(v, false), url.QueryEscape(v), url.PathEscape(v),
		lowerHex(url.QueryEscape(v)), lowerHex(url.PathEscape(v))} {
		out = append(out, needle{text: text, name: s.Name, word: short})
	}
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if short {
			out = append(out, needle{text: enc.EncodeToString([]byte(v)), name: s.Name, word: true})
			continue
		}
		for shift := range 3 {
			out = append(out, needle{text: base64Core(enc, v, shift), name: s.Name, run: true})
		}
	}
	return out
}

// base64Core gives the part of a value's base64 that does not depend on what stands before and after the value, when
// it starts shift bytes into a group of three. So a value is found inside base64 of user:value too.
func base64Core(enc *base64.Encoding, v string, shift int) string {
	text := enc.EncodeToString(append(make([]byte, shift), v...))
	if (shift+len(v))%3 != 0 {
		text = text[:len(text)-1]
	}
	return text[(shift*8+5)/6:]
}

// jsonText gives a value as it stands between the quotes of a JSON string.
func jsonText(v string, html bool) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	if enc.Encode(v) != nil { // a string always encodes
		return ""
	}
	return strings.TrimSuffix(b.String()[1:], "\"\n")
}

// lowerHex writes %2F as %2f.
func lowerHex(s string) string {
	b := []byte(s)
	for i := range b {
		if b[i] == '%' && i+2 < len(b) {
			copy(b[i:i+3], bytes.ToLower(b[i:i+3]))
		}
	}
	return string(b)
}
