package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// parts walks what runs inside words. quoted says that single quotes mean nothing to bash here, though the parser takes
// them as quotes: in "${x:-'…'}", in here documents and in arithmetic.
func (w *walker) parts(list []syntax.WordPart, quoted bool) {
	for _, p := range list {
		switch p := p.(type) {
		case *syntax.SglQuoted:
			if quoted {
				w.unquoted(p, p.Value)
			}
		case *syntax.DblQuoted:
			w.parts(p.Parts, true)
		case *syntax.CmdSubst:
			w.facts.HasSubstitution = true
			w.stmts(p.Stmts, input{})
		case *syntax.ProcSubst:
			w.facts.HasSubstitution = true
			in := input{}
			if p.Op == syntax.CmdOut {
				in = input{kind: piped, remote: w.through}
			}
			w.stmts(p.Stmts, in)
		case *syntax.ParamExp:
			w.param(p, quoted)
		case *syntax.ArithmExp:
			w.arith(p.X)
		case *syntax.ExtGlob:
			w.extGlob(p)
		}
	}
}

// unquoted looks at text that the parser took as quoted and bash may not.
func (w *walker) unquoted(n syntax.Node, s string) {
	if !strings.ContainsAny(s, "$`\"}\\\n<>") {
		return
	}
	w.flag(n, Review, "unclear-quotes", "single quotes do not quote here, and what they hold may run")
	w.expansions(s, n)
}

// extGlob looks at a pattern such as @(a|b), whose inside the parser does not read.
func (w *walker) extGlob(g *syntax.ExtGlob) {
	w.flag(g, Review, "extended-pattern", "what an extended pattern holds is not read")
	if strings.ContainsAny(g.Pattern.Value, "$`") {
		w.expansions(g.Pattern.Value, g)
	}
}

func (w *walker) param(p *syntax.ParamExp, quoted bool) {
	if p.NestedParam != nil {
		w.parts([]syntax.WordPart{p.NestedParam}, quoted)
	}
	if p.Index != nil && !isAll(p.Index) {
		w.arith(p.Index)
	}
	if p.Slice != nil {
		w.arith(p.Slice.Offset)
		w.arith(p.Slice.Length)
	}
	if p.Repl != nil {
		w.optional(p.Repl.Orig, quoted)
		w.optional(p.Repl.With, quoted)
	}
	if p.Excl && p.Names == 0 && (p.Index == nil || !isAll(p.Index)) {
		w.flag(p, Review, "indirect", "the name of the variable comes from another variable")
	}
	e := p.Exp
	if e == nil {
		return
	}
	w.optional(e.Word, quoted)
	switch e.Op {
	case syntax.OtherParamOps:
		if e.Word == nil || e.Word.Lit() == "P" {
			w.flag(p, Review, "indirect", "the value of a variable is expanded as a prompt, which can run commands")
		}
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		w.variable(p.Param, false)
		w.assigned = append(w.assigned, p.Param.Value)
	}
}

func (w *walker) optional(n *syntax.Word, quoted bool) {
	if n != nil {
		w.parts(n.Parts, quoted)
	}
}

// isAll says that an index is [@] or [*].
func isAll(x syntax.ArithmExpr) bool {
	n, ok := x.(*syntax.Word)
	return ok && (n.Lit() == "@" || n.Lit() == "*")
}
