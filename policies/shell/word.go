package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// word is one word as a command receives it: quotes removed, braces expanded.
type word struct {
	text    string // its value; its source text if it is dynamic
	head    string // what a dynamic word is known to start with
	dynamic bool   // a variable, a substitution, a file name pattern
	split   bool   // becomes none, one or several words
	home    bool   // dynamic only because it starts with $HOME: head is the whole of it, with ~ for $HOME
	parts   []syntax.WordPart
}

// literal says that the word is exactly s.
func (w word) literal(s string) bool { return !w.dynamic && w.text == s }

// path is the word as a file name: the whole of it if known is true, or else its start.
func (w word) path() (p string, known bool) {
	if w.dynamic {
		return w.head, w.home
	}
	return w.text, true
}

// mayBeOption says that nobody knows whether the word starts with a dash.
func (w word) mayBeOption() bool {
	return w.dynamic && !w.home && (w.split || w.head == "" || w.head[0] == '-')
}

// words expands the braces of words and removes their quotes.
func (w *walker) words(list []*syntax.Word) []word {
	out := make([]word, 0, len(list))
	for _, n := range list {
		if !hasBraces(n.Parts) {
			out = append(out, w.word(n))
			continue
		}
		raw := w.source(n)
		b := bracer{left: maxBraceWords * 16}
		copied := syntax.Word{Parts: n.Parts} // which loses its position
		syntax.SplitBraces(&copied)
		alts := b.expand(copied.Parts)
		if b.left < 0 || len(alts) > maxBraceWords {
			out = append(out, word{text: raw, dynamic: true, split: true, parts: n.Parts})
			continue
		}
		for _, parts := range alts {
			out = append(out, resolve(parts, raw))
		}
	}
	return out
}

// word removes the quotes of one word that has no braces to expand.
func (w *walker) word(n *syntax.Word) word {
	if len(n.Parts) == 1 {
		if lit, ok := n.Parts[0].(*syntax.Lit); ok && !strings.ContainsAny(lit.Value, `\*?[{~`) {
			return word{text: lit.Value, parts: n.Parts}
		}
	}
	return resolve(n.Parts, w.source(n))
}

func hasBraces(parts []syntax.WordPart) bool {
	for _, p := range parts {
		if lit, ok := p.(*syntax.Lit); ok && strings.IndexByte(lit.Value, '{') >= 0 {
			return true
		}
	}
	return false
}

// bracer expands braces as far as its budget of parts goes.
type bracer struct{ left int }

func (b *bracer) expand(parts []syntax.WordPart) [][]syntax.WordPart {
	out := [][]syntax.WordPart{nil}
	for _, p := range parts {
		brace, ok := p.(*syntax.BraceExp)
		if !ok || brace.Sequence {
			if b.left -= len(out); b.left < 0 {
				return nil
			}
			for i := range out {
				out[i] = append(out[i], p)
			}
			continue
		}
		var alts [][]syntax.WordPart
		for _, e := range brace.Elems {
			alts = append(alts, b.expand(e.Parts)...)
		}
		out = b.product(out, alts)
		if b.left < 0 {
			return nil
		}
	}
	return out
}

func (b *bracer) product(heads, tails [][]syntax.WordPart) [][]syntax.WordPart {
	var out [][]syntax.WordPart
	for _, h := range heads {
		for _, t := range tails {
			if b.left -= len(h) + len(t) + 1; b.left < 0 {
				return nil
			}
			out = append(out, append(h[:len(h):len(h)], t...))
		}
	}
	return out
}

// resolve removes quotes. raw is the source text.
func resolve(parts []syntax.WordPart, raw string) word {
	r := resolver{}
	for i, p := range parts {
		r.part(p, i == 0, false)
	}
	text := r.b.String()
	if !r.dynamic {
		return word{text: text, parts: parts}
	}
	if r.cut < 0 {
		return word{text: raw, head: text, dynamic: true, home: true, parts: parts}
	}
	return word{text: raw, head: text[:r.cut], dynamic: true, split: r.split, parts: parts}
}

type resolver struct {
	b       strings.Builder
	dynamic bool
	split   bool
	cut     int // length of the known start of a dynamic word; -1: all of it
}

// unknown ends the known start.
func (r *resolver) unknown(split bool) {
	if !r.dynamic || r.cut < 0 {
		r.cut = r.b.Len()
	}
	r.dynamic = true
	r.split = r.split || split
}

func (r *resolver) part(p syntax.WordPart, first, quoted bool) {
	switch p := p.(type) {
	case *syntax.Lit:
		if quoted {
			r.quoted(p.Value)
		} else {
			r.unquoted(p.Value)
		}
	case *syntax.SglQuoted:
		if !p.Dollar {
			r.b.WriteString(p.Value)
		} else if s, ok := ansi(p.Value); ok {
			r.b.WriteString(s)
		} else {
			r.unknown(false)
		}
	case *syntax.DblQuoted:
		for i, q := range p.Parts {
			r.part(q, first && i == 0, true)
		}
	case *syntax.ParamExp:
		if first && isName(p, "HOME") && !r.dynamic {
			r.dynamic, r.cut = true, -1
			r.b.WriteByte('~')
			return
		}
		r.unknown(!counts(p) && (!quoted || several(p)))
	case *syntax.ProcSubst:
		r.b.WriteString("/dev/fd/")
		r.unknown(false)
	case *syntax.ArithmExp, *syntax.ExtGlob:
		r.unknown(false)
	default: // command substitutions, sequences of braces
		r.unknown(!quoted)
	}
}

// unquoted adds text outside quotes, where a backslash quotes one character and patterns match file names.
func (r *resolver) unquoted(s string) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			if i++; i < len(s) && s[i] != '\n' {
				r.b.WriteByte(s[i])
			}
		case '*', '?':
			r.unknown(false)
			r.b.WriteByte(c)
		case '[':
			if strings.IndexByte(s[i:], ']') > 0 || i == len(s)-1 && i > 0 {
				r.unknown(false)
			}
			r.b.WriteByte(c)
		default:
			r.b.WriteByte(c)
		}
	}
}

// quoted adds text in double quotes, where a backslash quotes four characters.
func (r *resolver) quoted(s string) {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			switch s[i+1] {
			case '\\', '"', '$', '`':
				i++
			case '\n':
				i++
				continue
			}
		}
		r.b.WriteByte(s[i])
	}
}

// plain says that an expansion is $name or ${name}.
func plain(p *syntax.ParamExp) bool {
	return p.Param != nil && !p.Excl && !p.Length && !p.Width && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil
}

func isName(p *syntax.ParamExp, name string) bool { return plain(p) && p.Param.Value == name }

// counts says that an expansion is always a number.
func counts(p *syntax.ParamExp) bool {
	if p.Param == nil || p.Excl {
		return false
	}
	switch {
	case p.Length:
		return true
	case plain(p):
		return p.Param.Value == "#" || p.Param.Value == "?" || p.Param.Value == "$" || p.Param.Value == "!"
	}
	return false
}

// several says that an expansion gives several words even in double quotes.
func several(p *syntax.ParamExp) bool {
	if p.Param == nil || p.Param.Value == "@" || p.Names != 0 {
		return true
	}
	word, ok := p.Index.(*syntax.Word)
	return ok && word.Lit() == "@" || p.Exp != nil
}

// hole stands in a skeleton for what is not known.
const hole = "${_}"

// skeleton is the text of a word with the parts that are not literal replaced by a parameter: what a shell that is given
// the word would read, as far as it is known.
func (x word) skeleton() string {
	if !x.dynamic {
		return x.text
	}
	var b strings.Builder
	skeletonParts(&b, x.parts)
	return b.String()
}

func skeletonParts(b *strings.Builder, parts []syntax.WordPart) {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit, *syntax.SglQuoted:
			r := resolver{}
			r.part(p, false, false)
			b.WriteString(r.b.String())
		case *syntax.DblQuoted:
			for _, q := range p.Parts {
				if lit, ok := q.(*syntax.Lit); ok {
					r := resolver{}
					r.quoted(lit.Value)
					b.WriteString(r.b.String())
				} else {
					skeletonParts(b, []syntax.WordPart{q})
				}
			}
		default:
			b.WriteString(hole)
		}
	}
}
