package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// feed gives the standard input of a statement after one of its redirects, and walks what runs in its word.
func (w *walker) feed(r *syntax.Redirect, in input) input {
	before := w.remote
	if r.Op != syntax.Hdoc && r.Op != syntax.DashHdoc && !intoCommand(r.Word.Parts) {
		w.parts(r.Word.Parts, false)
	}
	remote := w.remote > before
	if r.N != nil && r.N.Value != "0" {
		return in
	}
	switch r.Op {
	case syntax.RdrIn, syntax.RdrInOut:
		in = input{kind: fromFile, remote: remote}
		if len(r.Word.Parts) == 1 {
			if _, ok := r.Word.Parts[0].(*syntax.ProcSubst); ok {
				in.kind = piped
			}
		}
	case syntax.DplIn:
		in = input{kind: fromFile}
	case syntax.WordHdoc:
		in = input{kind: fromText, remote: remote, text: w.word(r.Word).skeleton()}
	case syntax.Hdoc, syntax.DashHdoc:
		if r.Hdoc == nil {
			return in
		}
		if quotedDelimiter(r.Word) {
			return input{kind: fromText, text: literals(r.Hdoc)}
		}
		w.parts(r.Hdoc.Parts, true)
		x := word{dynamic: true, parts: []syntax.WordPart{&syntax.DblQuoted{Parts: r.Hdoc.Parts}}}
		in = input{kind: fromText, remote: w.remote > before, text: x.skeleton()}
	}
	return in
}

// quotedDelimiter says that nothing is expanded in a here document.
func quotedDelimiter(n *syntax.Word) bool {
	for _, p := range n.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok || strings.IndexByte(lit.Value, '\\') >= 0 {
			return true
		}
	}
	return false
}

func literals(n *syntax.Word) string {
	var b strings.Builder
	for _, p := range n.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			b.WriteString(lit.Value)
		}
	}
	return b.String()
}

// intoCommand says that a redirect's target is a command, as in > >(…).
func intoCommand(parts []syntax.WordPart) bool {
	if len(parts) != 1 {
		return false
	}
	p, ok := parts[0].(*syntax.ProcSubst)
	return ok && p.Op == syntax.CmdOut
}

// redirect records and judges one redirect.
func (w *walker) redirect(r *syntax.Redirect) {
	fact := Redirect{Op: r.Op.String()}
	if r.N != nil {
		fact.FD = r.N.Value
		w.named(r, strings.Trim(r.N.Value, "{}"), false) // {name}> sets a variable
	}
	if r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc {
		fact.Target, fact.Known = literals(r.Word), true
		w.addRedirect(fact)
		return
	}
	target := w.word(r.Word)
	if !target.dynamic {
		fact.Target, fact.Known = target.text, true
	}
	w.addRedirect(fact)
	switch r.Op {
	case syntax.WordHdoc:
	case syntax.DplIn, syntax.DplOut:
		if t := strings.TrimSuffix(target.text, "-"); !target.dynamic && strings.Trim(t, "0123456789") == "" {
			return // a descriptor, or closing one
		}
		w.output(r, target)
	case syntax.RdrIn:
		if p, _ := target.path(); socket(p) {
			w.socket(r)
		}
	default:
		w.output(r, target)
	}
}

func (w *walker) addRedirect(r Redirect) {
	if len(w.facts.Redirects) < maxFacts {
		w.facts.Redirects = append(w.facts.Redirects, r)
		return
	}
	w.full(position{1, 1}, "has more redirects", r.Target)
}

// output judges a redirect that writes.
func (w *walker) output(r *syntax.Redirect, target word) {
	if intoCommand(target.parts) {
		w.parts(target.parts, false)
		return
	}
	p, known := target.path()
	switch kind := placeOf(p, known); {
	case socket(p):
		w.socket(r)
	case kind == harmless:
	case kind == system:
		w.writes(p, known)
		w.flag(r, High, "system-path", "the redirect writes to the system path "+quote(p))
	case kind == startup:
		w.writes(p, known)
		w.flag(r, High, "trusted-path", "the redirect writes to "+quote(p)+", which grants access or runs by itself")
	case !known:
		w.flag(r, Review, "writes-file", "the redirect writes to a file that is not known before it runs")
	default:
		w.writes(p, known)
		w.flag(r, Review, "writes-file", "the redirect writes to "+quote(p))
	}
}

func (w *walker) socket(r *syntax.Redirect) {
	w.facts.Network = true
	w.remote++
	w.flag(r, High, "network", "the redirect opens a network connection")
}

// writes notes a path that is written.
func (w *walker) writes(p string, known bool) {
	switch {
	case !known || p == "":
	case len(w.facts.Writes) < maxFacts:
		w.facts.Writes = append(w.facts.Writes, p)
	default:
		w.full(position{1, 1}, "writes more files", p)
	}
}

// socket says whether bash takes a redirect's path for an address.
func socket(p string) bool {
	return strings.HasPrefix(p, "/dev/tcp/") || strings.HasPrefix(p, "/dev/udp/")
}
