package shell

import (
	"mvdan.cc/sh/v3/syntax"
)

// walker goes through one command and everything inside it.
type walker struct {
	facts  *Facts
	levels []Level
	parser *syntax.Parser

	src   string    // what is being walked
	outer *position // of the command that src was given to as text. nil: src is the command asked about

	texts    int // shells inside shells, now
	reparsed int // bytes, in all
	nesting  int // statements inside statements, now
	dropped  int // findings there was no room for
	last     Finding

	remote    int      // network commands and decoders met so far
	through   bool     // what >( ) reads now comes through one
	lines     []int    // where lines start, if they are so long that the parser does not count columns
	spawning  int      // pipelines and background statements we are in
	functions []string // whose bodies we are in

	evaluated []reading // names read as arithmetic
	assigned  []string  // names whose value may not be a number
}

// input is what a command reads on its standard input.
type input struct {
	kind   inputKind
	remote bool   // it comes through a network command or a decoder
	text   string // of a here document or string, as far as it is known
}

type inputKind uint8

const (
	inherited inputKind = iota // none: oma runs bash with standard input closed
	piped
	fromFile
	fromText
)

// stmts walks statements that share their standard input.
func (w *walker) stmts(list []*syntax.Stmt, in input) {
	for _, s := range list {
		w.stmt(s, in)
	}
}

func (w *walker) stmt(s *syntax.Stmt, in input) {
	if w.nesting++; w.nesting > maxNesting {
		w.nesting--
		w.flag(s, Review, "too-deep", "the command nests too deep to be read")
		return
	}
	defer func() { w.nesting-- }()
	if s.Background || s.Coprocess || s.Disown {
		w.facts.Background = true
		w.spawning++
		defer func() { w.spawning-- }()
	}
	before := w.remote
	for _, r := range s.Redirs {
		in = w.feed(r, in)
	}
	if s.Cmd != nil {
		w.compound(s.Cmd, in)
	}
	for _, r := range s.Redirs {
		w.through = in.remote || w.remote > before
		w.redirect(r)
	}
}

// compound walks any command.
func (w *walker) compound(c syntax.Command, in input) {
	switch c := c.(type) {
	case *syntax.CallExpr:
		w.simple(c, in)
	case *syntax.BinaryCmd:
		w.binary(c, in)
	case *syntax.Block:
		w.stmts(c.Stmts, in)
	case *syntax.Subshell:
		w.stmts(c.Stmts, in)
	case *syntax.IfClause:
		for ; c != nil; c = c.Else {
			w.stmts(c.Cond, in)
			w.stmts(c.Then, in)
		}
	case *syntax.WhileClause:
		w.stmts(c.Cond, in)
		w.stmts(c.Do, in)
	case *syntax.ForClause:
		w.loop(c.Loop)
		w.stmts(c.Do, in)
	case *syntax.CaseClause:
		w.choice(c, in)
	case *syntax.FuncDecl:
		w.function(c, in)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			w.stmt(c.Stmt, in)
		}
	case *syntax.CoprocClause:
		w.facts.Background = true
		if c.Name != nil { // it is an array of descriptors
			w.named(c, c.Name.Lit(), false)
		}
		w.stmt(c.Stmt, input{kind: piped, remote: in.remote})
	case *syntax.ArithmCmd:
		w.arith(c.X)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			w.arith(x)
		}
	case *syntax.TestClause:
		w.test(c.X)
	case *syntax.DeclClause:
		w.declare(c)
	default:
		w.flag(c, Review, "unparsed", "the command has a form that is not known")
	}
}

func (w *walker) choice(c *syntax.CaseClause, in input) {
	w.parts(c.Word.Parts, false)
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			w.parts(p.Parts, false)
		}
		w.stmts(item.Stmts, in)
	}
}

// binary walks pipelines and lists, of any length: they are trees as deep as they are long.
func (w *walker) binary(c *syntax.BinaryCmd, in input) {
	pipe := c.Op == syntax.Pipe || c.Op == syntax.PipeAll
	var list []*syntax.Stmt // to come, last first
	list = append(list, c.Y, c.X)
	before := w.remote
	if pipe {
		w.spawning++
		defer func() { w.spawning-- }()
	}
	for first := true; len(list) > 0; {
		s := list[len(list)-1]
		list = list[:len(list)-1]
		if b, ok := s.Cmd.(*syntax.BinaryCmd); ok && len(s.Redirs) == 0 && !s.Background && (b.Op == syntax.Pipe || b.Op == syntax.PipeAll) == pipe {
			list = append(list, b.Y, b.X)
			continue
		}
		if pipe && !first {
			in = input{kind: piped, remote: in.remote || w.remote > before}
		}
		w.stmt(s, in)
		first = false
	}
}

func (w *walker) loop(l syntax.Loop) {
	switch l := l.(type) {
	case *syntax.WordIter:
		for _, item := range l.Items {
			w.parts(item.Parts, false)
		}
		if !w.numbers(l.Items) {
			w.assigned = append(w.assigned, l.Name.Value)
		}
		w.variable(l.Name, false)
	case *syntax.CStyleLoop:
		for _, x := range []syntax.ArithmExpr{l.Init, l.Cond, l.Post} {
			w.arith(x)
		}
	}
}

// function walks a body whether or not it is called. A function can take the name of any command, so that text with one
// is not safe.
func (w *walker) function(f *syntax.FuncDecl, in input) {
	name := ""
	if f.Name != nil {
		name = f.Name.Value
	}
	w.flag(f, Review, "defines-function", "the name "+quote(name)+" is given another meaning")
	w.functions = append(w.functions, name)
	outside := w.spawning
	w.spawning = 0
	w.stmt(f.Body, in)
	w.spawning = outside
	w.functions = w.functions[:len(w.functions)-1]
}

// simple walks a simple command: what is substituted in its words first, since that runs first.
func (w *walker) simple(n *syntax.CallExpr, in input) {
	before := w.remote
	w.through = in.remote
	for _, a := range n.Assigns {
		w.assign(a, len(n.Args) > 0)
	}
	for _, a := range n.Args {
		w.parts(a.Parts, false)
	}
	if len(n.Args) == 0 {
		return
	}
	if g, ok := n.Args[0].Parts[0].(*syntax.ExtGlob); ok { // unless extglob is on, !(a) negates a subshell
		w.nested(g.Pattern.Value, g, in)
	}
	c := &call{node: n, in: in, words: w.words(n.Args), fetched: w.remote > before}
	for _, a := range n.Assigns {
		c.assignments = append(c.assignments, a.Name.Value)
	}
	w.run(c)
}
