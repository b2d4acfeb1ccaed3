package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/open-multi-agent/oma/spec"
)

const (
	// searchTime is how long one search may take. What it found by then is given, and that it is not all.
	searchTime = 30 * time.Second
	// maxSteps bounds a compiled pattern and maxLine the bytes of a line it is matched against: together about a third
	// of a second for the worst pattern and line, which nothing can interrupt (5 ns per byte and step).
	maxSteps = 1000
	maxLine  = 64 << 10
	// askEvery is how many bytes are matched before the context is asked again, if no line is longer.
	askEvery = 4 << 10
	// maxLineShown is how much of a matching line is given, in runes.
	maxLineShown = 500
)

// search walks the part of the tree that a call names. The caller closes it.
type search struct {
	walker
	t       *toolbox
	caller  context.Context // the walker's own ends with it or at the time limit
	cancel  context.CancelFunc
	at      *place
	start   string // the folder or file searched, below the top
	glob    *pattern
	omitted omitted
	notes   []string
}

func (s *search) close() {
	s.cancel()
	s.at.close()
}

// run visits the files that the pattern matches. What a path names is searched whatever ignores it.
func (s *search) run(visit func(dir *os.Root, base, name string) error) error {
	p := s.at
	s.start = p.name
	if !p.info.IsDir() {
		if !p.info.Mode().IsRegular() {
			return fmt.Errorf("it is %s", kind(p.info.Mode()))
		}
		s.start = path.Dir(p.name)
		if !s.wanted(p.name) {
			return nil
		}
		return s.outcome(visit(p.dir, p.base, p.name))
	}
	if err := p.enter(); err != nil {
		return err
	}
	s.gitignore = true
	s.omit = func(e fs.DirEntry, name string, why reason) {
		if e.IsDir() || s.wanted(name) {
			s.omitted.add(e, why)
		}
	}
	s.visit = func(dir *os.Root, e fs.DirEntry, name string) error {
		switch {
		case !s.wanted(name):
		case e.Type().IsRegular():
			return visit(dir, e.Name(), name)
		case e.Type()&fs.ModeSymlink != 0:
			s.omitted.links++
		}
		return nil
	}
	return s.outcome(s.through(p.dir, p.name, s.rules(), 0))
}

// outcome takes the ends of a search that are no errors: one its visitor wanted, and the time limit.
func (s *search) outcome(err error) error {
	switch {
	case err == errStop:
		return nil
	case errors.Is(err, context.DeadlineExceeded) && s.caller.Err() == nil:
		s.note("incomplete: stopped at the time limit of %v; narrow the pattern or the path", s.t.searchTime)
		return nil
	}
	return err
}

// wanted judges a file by its name below the top.
func (s *search) wanted(name string) bool { return s.glob == nil || s.glob.match(s.rel(name), name) }

// rel gives a name below the folder searched.
func (s *search) rel(name string) string {
	if s.start == "." {
		return name
	}
	return strings.TrimPrefix(name, s.start+"/")
}

// rules gives the .gitignore rules that hold in the folder searched: its own, and those of the folders from the agent's
// down to it. Rules that ignore a folder that was named, or one it lies in, hold neither there nor below.
func (s *search) rules() *ignoreFile {
	p, home := s.at, s.t.home()
	if p.name == home {
		return (*ignoreFile)(nil).with(p.dir, p.name, &s.buf)
	}
	return s.above(home).lifted(p.name).with(p.dir, p.name, &s.buf).lifted(p.name)
}

// above collects the rules from the agent's folder down to the folder searched, without its own.
func (s *search) above(home string) *ignoreFile {
	var rules *ignoreFile
	name := s.at.name
	for dir := home; dir != name; {
		rest, ok := strings.CutPrefix(name, dir+"/")
		if dir == "." {
			rest, ok = name, true
		}
		if !ok {
			return nil // not below the agent's folder
		}
		if sub, err := s.t.top.OpenRoot(dir); err == nil {
			rules = rules.with(sub, dir, &s.buf)
			sub.Close()
		}
		next, _, _ := strings.Cut(rest, "/")
		dir = path.Join(dir, next)
		if rules.ignored(dir, true) {
			rules = nil
		}
	}
	return rules
}

func (s *search) note(format string, args ...any) {
	s.notes = append(s.notes, "("+fmt.Sprintf(format, args...)+")")
}

// result joins the lines, or none, and says what was left out.
func (s *search) result(lines []string, none string) spec.ToolResult {
	if s.unreadable > 0 {
		s.note("%d could not be read", s.unreadable)
	}
	if s.tooDeep > 0 {
		s.note("%d folder%s deeper than %d levels not searched", s.tooDeep, plural(s.tooDeep), maxDepth)
	}
	if s.tooMany > 0 {
		s.note("%d folder%s with more than %d entries not searched", s.tooMany, plural(s.tooMany), maxEntries)
	}
	if omitted := s.omitted.String(); omitted != "" {
		s.note("left out: %s", omitted)
	}
	if len(lines) == 0 {
		lines = []string{none}
	}
	return spec.ToolResult{Text: strings.ToValidUTF8(strings.Join(append(lines, s.notes...), "\n"), "\uFFFD")}
}

// begin resolves what both tools take: path and pattern.
func (t *toolbox) begin(ctx context.Context, shown, glob string) (*search, error) {
	if err := t.open(false); err != nil {
		return nil, err
	}
	s := &search{t: t, caller: ctx}
	if glob != "" {
		var err error
		if s.glob, err = t.compilePattern(glob); err != nil {
			return nil, err
		}
	}
	if shown == "" {
		shown = "."
	}
	var err error
	if s.at, err = t.find(shown); err != nil {
		return nil, fmt.Errorf("%q: %w", shown, cause(err))
	}
	if s.at.info == nil {
		s.at.close()
		return nil, fmt.Errorf("%q: no such file or directory", shown)
	}
	s.ctx, s.cancel = context.WithTimeout(ctx, t.searchTime)
	return s, nil
}

// listed gives a name for a line of text. One that could pass for something else is quoted: it is not valid UTF-8,
// holds a line end, or something that is not seen or turns what is around it, or begins like a quoted name or a note.
func (t *toolbox) listed(name string) string {
	shown := t.display(name)
	unseen := func(r rune) bool { return !unicode.IsPrint(r) }
	if !utf8.ValidString(shown) || strings.ContainsFunc(shown, unseen) || shown[0] == '"' || shown[0] == '(' {
		return strconv.Quote(shown)
	}
	return shown
}

func (t *toolbox) glob(ctx context.Context, in arguments) spec.ToolResult {
	s, err := t.begin(ctx, in.text("path"), in.text("pattern"))
	if err != nil {
		return failed("Cannot access path %v.", err)
	}
	defer s.close()
	var files []string
	most := in.number("maxFiles", 500)
	err = s.run(func(_ *os.Root, _, name string) error {
		if len(files) == most {
			s.note("listing capped at %d paths; narrow the pattern or the path to see the rest", most)
			return errStop
		}
		files = append(files, t.listed(name))
		return nil
	})
	if err != nil {
		return failed("Stopped listing %q: %v.", in.text("path"), err)
	}
	return s.result(files, "No files matched.")
}

func (t *toolbox) grep(ctx context.Context, in arguments) spec.ToolResult {
	re, err := compileRegexp(in.text("pattern"))
	if err != nil {
		return failed("Invalid regular expression: %v.", err)
	}
	s, err := t.begin(ctx, in.text("path"), in.text("glob"))
	if err != nil {
		return failed("Cannot search %v.", err)
	}
	defer s.close()
	g := &grepping{search: s, re: re, most: in.number("maxResults", 100)}
	g.literal, _ = re.LiteralPrefix()
	if err := s.run(g.file); err != nil {
		return failed("Stopped searching %q: %v.", in.text("path"), err)
	}
	if g.large > 0 {
		s.note("%d file%s over %d bytes not searched", g.large, plural(g.large), maxFile)
	}
	if g.cut > 0 {
		s.note("%d long line%s searched to byte %d only", g.cut, plural(g.cut), maxLine)
	}
	if s.omitted.binary > 0 && !s.at.info.IsDir() {
		s.note("%q is a binary file", in.text("path"))
		s.omitted.binary = 0
	}
	return s.result(g.lines, "No matches found.")
}

func compileRegexp(text string) (*regexp.Regexp, error) {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, plainRegexpError(err)
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, plainRegexpError(err)
	}
	if len(prog.Inst) > maxSteps {
		return nil, fmt.Errorf("it compiles to %d steps, over the limit of %d", len(prog.Inst), maxSteps)
	}
	return regexp.Compile(text)
}

func plainRegexpError(err error) error {
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		return fmt.Errorf("%s: %q", e.Code, e.Expr)
	}
	return err
}

// grepping collects the matching lines of one call.
type grepping struct {
	*search
	re      *regexp.Regexp
	literal string // what every match starts with; a file without it is passed over
	most    int
	lines   []string

	large, cut int
	unasked    int // bytes matched since the context was asked
}

func (g *grepping) file(dir *os.Root, base, name string) error {
	data, err := readRegular(dir, base, &g.buf)
	if _, large := errors.AsType[tooLarge](err); large {
		g.large++
		return nil
	}
	if err != nil {
		g.unreadable++
		return nil
	}
	if isBinary(data) {
		g.omitted.binary++
		return nil
	}
	if !bytes.Contains(data, []byte(g.literal)) {
		return nil
	}
	for n := 1; len(data) > 0; n++ {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		if err := g.line(bytes.TrimSuffix(line, []byte("\r")), name, n); err != nil {
			return err
		}
	}
	return nil
}

func (g *grepping) line(line []byte, name string, n int) error {
	if g.unasked += len(line) + 1; g.unasked >= askEvery {
		g.unasked = 0
		if err := g.ctx.Err(); err != nil {
			return err
		}
	}
	if len(line) > maxLine {
		g.cut++
		line = line[:maxLine]
	}
	if !g.re.Match(line) {
		return nil
	}
	if len(g.lines) == g.most {
		g.note("results capped at %d; narrow the pattern, path or glob to see the rest", g.most)
		return errStop
	}
	g.lines = append(g.lines, fmt.Sprintf("%s:%d:%s", g.t.listed(name), n, shortened(line)))
	return nil
}

// shortened gives the start of a long line and says so.
func shortened(line []byte) string {
	if utf8.RuneCount(line) <= maxLineShown {
		return string(line)
	}
	end := 0
	for range maxLineShown {
		_, size := utf8.DecodeRune(line[end:])
		end += size
	}
	return string(line[:end]) + " … (line cut)"
}
