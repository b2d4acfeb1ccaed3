package shell

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// MaxBytes is the longest command that is read. A longer one is for review at least.
const MaxBytes = 64 << 10

// What one classification may cost, whatever the text.
const (
	maxReparsed   = 256 << 10 // of all texts given to bash -c, eval and the like
	maxTexts      = 8         // levels of bash -c inside bash -c
	maxNesting    = 256       // statements inside statements
	maxWrappers   = 16        // timeout nice nohup …
	maxFindings   = 64
	maxFacts      = 1024 // commands, redirects and writes, each
	maxBraceWords = 256  // of one word
	maxShown      = 120  // bytes of a command in a finding
)

// Classify reads a command as bash would and says what it does. It takes any text, and its time and memory are bounded.
// Levels stand for what is built in, where they match; see [Level]. It is safe for concurrent use.
func Classify(command string, levels []Level) Facts {
	f := Facts{Risk: Safe, Findings: []Finding{}, Commands: []Command{}, Redirects: []Redirect{}, Writes: []string{}}
	w := &walker{facts: &f, levels: levels, src: command}
	w.classify(command)
	w.finish()
	return f
}

func (w *walker) classify(command string) {
	defer func() {
		if p := recover(); p != nil { // the parser's or ours: what was not read is not safe
			w.unread("unparsed", fmt.Sprintf("the command cannot be read: %v", p))
		}
	}()
	switch {
	case strings.TrimSpace(command) == "":
		w.unreadAt(Review, "empty", "the command is empty")
	case len(command) > MaxBytes:
		w.unread("too-long", fmt.Sprintf("the command has %d bytes, of which at most %d are read", len(command), MaxBytes))
	default:
		w.text(command, input{})
		w.arithmetic()
	}
}

// text walks one text of shell: the command, or what is given to bash -c and the like.
func (w *walker) text(src string, in input) {
	s := survey(src)
	if !utf8.ValidString(src) {
		s.odd = "bytes that are no characters"
	}
	if s.odd != "" {
		src = visible(src)
		w.src = src
	}
	if s.odd != "" {
		w.unreadAt(Review, "odd-characters", "the command holds "+s.odd+", which a reader does not see as the shell does")
	}
	if s.deep {
		w.unread("too-deep", "the command nests too deep to be read")
		return
	}
	if w.parser == nil {
		w.parser = syntax.NewParser(syntax.Variant(syntax.LangBash))
	}
	stmts, failed := w.parse(src)
	if s.glued || s.joined {
		stmts, failed = w.comments(src, s, stmts, failed)
	}
	if len(stmts) == 0 && failed == nil {
		w.unreadAt(Review, "empty", "the command is empty")
	}
	w.stmts(stmts, in)
	if failed != nil {
		w.unread("unparsed", "the command is not valid bash: "+failed.Error())
	}
}

// visible puts a ? in place of each byte that the parser refuses or leaves out and bash takes as any other.
func visible(s string) string {
	b := []byte(s)
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 || r == 0 || r == '\r' {
			b[i] = '?'
		}
		i += n
	}
	return string(b)
}

// parse gives the statements before the first error.
func (w *walker) parse(src string) (stmts []*syntax.Stmt, failed error) {
	for stmt, err := range w.parser.StmtsSeq(strings.NewReader(src)) {
		switch {
		case failed != nil: // the parser goes on after some errors, even if the loop is left
		case err != nil:
			failed = err
		default:
			stmts = append(stmts, stmt)
		}
	}
	return stmts, failed
}

// nested walks a text that a command runs as shell.
func (w *walker) nested(src string, at syntax.Node, in input) {
	if w.texts++; w.texts > maxTexts {
		w.texts--
		w.flag(at, Review, "too-deep", fmt.Sprintf("shells are started inside shells more than %d levels deep", maxTexts))
		return
	}
	defer func() { w.texts-- }()
	if w.reparsed += len(src); w.reparsed > maxReparsed {
		w.flag(at, Review, "too-long", fmt.Sprintf("the texts given to shells have more than %d bytes together", maxReparsed))
		return
	}
	place, text := w.place(at), w.src
	defer func(outer *position) { w.outer, w.src = outer, text }(w.outer)
	w.outer, w.src = &place, src
	w.text(src, in)
}

// expansions walks what runs in a text that is expanded as if in double quotes.
func (w *walker) expansions(src string, at syntax.Node) {
	if w.reparsed += len(src); w.reparsed > maxReparsed || survey(src).deep {
		w.flag(at, Review, "too-long", "the texts that are expanded cannot be read")
		return
	}
	doc, err := w.parser.Document(strings.NewReader(src))
	if err != nil {
		w.flag(at, Review, "unparsed", "text that is expanded is not valid bash: "+err.Error())
		return
	}
	place, text := w.place(at), w.src
	defer func(outer *position) { w.outer, w.src = outer, text }(w.outer)
	w.outer, w.src = &place, src
	if w.nesting++; w.nesting < maxNesting && doc != nil {
		w.parts(doc.Parts, true)
	}
	w.nesting--
}

// position is where a finding or command is.
type position struct{ line, column int }

// place gives the position of a node in the command that was asked about.
func (w *walker) place(n syntax.Node) position {
	if w.outer != nil {
		return *w.outer
	}
	pos := n.Pos()
	p := position{int(pos.Line()), int(pos.Col())}
	if p.column == 0 && pos.IsValid() { // the parser counts no further than 16383 columns
		p.column = w.column(int(pos.Offset()))
	}
	return p
}

// column counts from the start of the line.
func (w *walker) column(offset int) int {
	if w.lines == nil {
		w.lines = append(w.lines, 0)
		for i, c := range []byte(w.src) {
			if c == '\n' {
				w.lines = append(w.lines, i+1)
			}
		}
	}
	i, found := slices.BinarySearch(w.lines, offset)
	if !found {
		i--
	}
	return offset - w.lines[i] + 1
}

// source is the text of a node.
func (w *walker) source(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(w.src) || from > to {
		return ""
	}
	return w.src[from:to]
}

func (w *walker) flag(n syntax.Node, level, code, reason string) {
	p := w.place(n)
	w.add(Finding{level, code, reason, p.line, p.column, clip(w.source(n), maxShown)})
}

// unread reports that the text, or its rest, is not known.
func (w *walker) unread(code, reason string) {
	w.facts.ParseError = true
	w.unreadAt(Review, code, reason)
}

func (w *walker) unreadAt(level, code, reason string) {
	p := position{1, 1}
	if w.outer != nil {
		p = *w.outer
	}
	w.add(Finding{level, code, reason, p.line, p.column, clip(w.src, maxShown)})
}

func (w *walker) add(f Finding) {
	if Worse(f.Level, w.facts.Risk) {
		w.facts.Risk = f.Level
	}
	if len(w.facts.Findings) < maxFindings-1 {
		w.facts.Findings = append(w.facts.Findings, f)
		return
	}
	if i := w.spare(f); i >= 0 {
		spared := w.facts.Findings[i]
		w.facts.Findings = append(slices.Delete(w.facts.Findings, i, i+1), f)
		f = spared
	}
	if w.dropped++; w.dropped == 1 || Worse(f.Level, w.last.Level) {
		w.last = f
	}
}

// spare gives the index of a listed finding that makes room for the first of a code and level: the last that is not the
// only one of its own. -1: there is none, or f is not the first. So no code is missing, however many findings there are.
func (w *walker) spare(f Finding) int {
	same := func(a Finding) func(Finding) bool {
		return func(b Finding) bool { return a.Code == b.Code && a.Level == b.Level }
	}
	list := w.facts.Findings
	if slices.ContainsFunc(list, same(f)) {
		return -1
	}
	for i := len(list) - 1; i > 0; i-- {
		if slices.ContainsFunc(list[:i], same(list[i])) {
			return i
		}
	}
	return -1
}

// finish adds the worst of the findings there was no room for, and the reason.
func (w *walker) finish() {
	f := w.facts
	if w.dropped > 0 {
		if w.dropped > 1 {
			w.last.Reason += fmt.Sprintf("; %d more findings are not listed", w.dropped-1)
		}
		f.Findings = append(f.Findings, w.last)
	}
	i := slices.IndexFunc(f.Findings, func(x Finding) bool { return x.Level == f.Risk })
	if i < 0 {
		f.Reason = "every command only reads"
		return
	}
	f.Reason = f.Findings[i].Reason
}

// clip cuts text to n bytes, between characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}
