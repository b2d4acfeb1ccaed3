package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Bash evaluates the value of a variable that arithmetic reads as arithmetic again, and runs the substitutions in its
// indexes: x='a[$(rm b)]'; echo $((x)) runs rm. Names that the text gives a value which may not be a number are
// therefore not safe to read that way. Those it does not assign come from the environment, which is trusted.

// reading is a variable read as arithmetic.
type reading struct {
	name string
	node syntax.Node
	at   position
}

// arith walks an arithmetic expression. nil: there is none.
func (w *walker) arith(x syntax.ArithmExpr) {
	switch x := x.(type) {
	case *syntax.BinaryArithm:
		w.arith(x.X)
		w.arith(x.Y)
	case *syntax.UnaryArithm:
		w.arith(x.X)
	case *syntax.ParenArithm:
		w.arith(x.X)
	case *syntax.FlagsArithm:
		w.arith(x.X)
	case *syntax.Word:
		if x != nil {
			w.parts(x.Parts, true)
			w.operand(x)
		}
	}
}

// operand judges one word of arithmetic, after what runs inside it.
func (w *walker) operand(n *syntax.Word) {
	for _, p := range flat(n.Parts) {
		switch p := p.(type) {
		case *syntax.Lit:
			w.evaluate(n, p.Value)
		case *syntax.SglQuoted:
			w.evaluate(n, p.Value)
		case *syntax.ParamExp:
			if counts(p) || p.Param == nil {
				continue
			}
			if p.Exp != nil || p.Repl != nil || p.Excl {
				w.flag(n, Review, "evaluates-text", "the text of an expansion is evaluated as arithmetic, which can run commands")
				continue
			}
			w.evaluate(n, p.Param.Value)
		case *syntax.ArithmExp:
		default:
			w.flag(n, Review, "evaluates-text", "the output of a command is evaluated as arithmetic, which can run commands")
		}
	}
}

// evaluate notes names in arithmetic. An index inside quotes is code the parser has not read.
func (w *walker) evaluate(n *syntax.Word, s string) {
	if strings.ContainsAny(s, "[$`") && s != "[" && s != "]" {
		w.flag(n, Review, "evaluates-text", "text is evaluated as arithmetic, which can run commands")
		w.expansions(s, n)
		return
	}
	for name := range strings.FieldsFuncSeq(s, func(r rune) bool { return !nameByte(r) }) {
		if name[0] >= '0' && name[0] <= '9' {
			continue
		}
		if redirects(name) || loads(name) { // which arithmetic can only mean to set
			w.named(n, name, false)
		}
		if len(w.evaluated) < maxFacts {
			w.evaluated = append(w.evaluated, reading{name, n, w.place(n)})
		}
	}
}

func nameByte(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// arithmetic reports the first name that is read as arithmetic and may hold anything.
func (w *walker) arithmetic() {
	if len(w.evaluated) == 0 || len(w.assigned) == 0 {
		return
	}
	loose := make(map[string]bool, len(w.assigned))
	for _, name := range w.assigned {
		loose[name] = true
	}
	for i, r := range w.evaluated {
		if loose[r.name] || i == maxFacts-1 {
			w.add(Finding{Review, "evaluates-text", "the value of " + quote(r.name) + " is evaluated as arithmetic, which can run commands",
				r.at.line, r.at.column, r.name})
			return
		}
	}
}

// flat gives parts with double quotes taken off.
func flat(parts []syntax.WordPart) []syntax.WordPart {
	for i, p := range parts {
		if _, ok := p.(*syntax.DblQuoted); !ok {
			continue
		}
		out := parts[:i:i]
		for _, q := range parts[i:] {
			if d, ok := q.(*syntax.DblQuoted); ok {
				out = append(out, flat(d.Parts)...)
			} else {
				out = append(out, q)
			}
		}
		return out
	}
	return parts
}

// numbers says that words can only be whole numbers.
func (w *walker) numbers(list []*syntax.Word) bool {
	for _, n := range list {
		for _, p := range flat(n.Parts) {
			switch p := p.(type) {
			case *syntax.Lit:
				if strings.Trim(p.Value, "0123456789-{}.,") != "" {
					return false
				}
			case *syntax.ParamExp:
				if !counts(p) {
					return false
				}
			case *syntax.ArithmExp:
			default:
				return false
			}
		}
	}
	return true
}

// test walks the inside of [[ ]].
func (w *walker) test(x syntax.TestExpr) {
	switch x := x.(type) {
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			w.testNumber(x.X)
			w.testNumber(x.Y)
			return
		}
		w.test(x.X)
		w.test(x.Y)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar {
			if n, ok := x.X.(*syntax.Word); ok && !syntax.ValidName(n.Lit()) {
				w.flag(x, Review, "evaluates-text", "an index is evaluated as arithmetic, which can run commands")
				w.expansions(w.word(n).skeleton(), n)
			}
		}
		w.test(x.X)
	case *syntax.ParenTest:
		w.test(x.X)
	case *syntax.Word:
		for _, p := range x.Parts {
			if g, ok := p.(*syntax.ExtGlob); ok && !strings.ContainsAny(g.Pattern.Value, "$`<>\"'\\") {
				continue // known to [[ ]] with and without extglob
			}
			w.parts([]syntax.WordPart{p}, false)
		}
	}
}

func (w *walker) testNumber(x syntax.TestExpr) {
	n, ok := x.(*syntax.Word)
	if !ok {
		w.test(x)
		return
	}
	w.parts(n.Parts, false)
	w.operand(n)
}
