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
	"unicode"
	"unicode/utf8"

	"github.com/open-multi-agent/oma/spec"
)

const (
	// maxSteps bounds a compiled pattern and maxLine the bytes of a line it is matched against: together about half a
	// second for the worst pattern and line, which nothing can interrupt (5 ns per byte and step).
	maxSteps = 2000
	maxLine  = 64 << 10
	// maxLineShown is how much of a matching line is given, in runes.
	maxLineShown = 500
)

// search walks the part of the tree that a call names.
type search struct {
	walker
	t     *toolbox
	start string // the folder or file searched, below the top
	glob  *pattern
	notes []string
}

// run visits the files that the pattern matches. A path that is a file is visited whatever ignores it.
func (s *search) run(p *place, visit func(dir *os.Root, base, name string) error) error {
	s.start = p.name
	if !p.info.IsDir() {
		if !p.info.Mode().IsRegular() {
			return fmt.Errorf("it is %s", kind(p.info.Mode()))
		}
		s.start = path.Dir(p.name)
		if s.glob != nil && !s.glob.match(p.base, p.name) {
			return nil
		}
		return visit(p.dir, p.base, p.name)
	}
	if err := p.enter(); err != nil {
		return err
	}
	s.gitignore = true
	s.visit = func(dir *os.Root, e fs.DirEntry, name string) error {
		if !e.Type().IsRegular() || s.glob != nil && !s.glob.match(s.rel(name), name) {
			return nil
		}
		return visit(dir, e.Name(), name)
	}
	return s.walk(p.dir, p.name, s.above(p.name), 0)
}

// rel gives a name below the folder searched.
func (s *search) rel(name string) string {
	if s.start == "." {
		return name
	}
	return strings.TrimPrefix(name, s.start+"/")
}

// above collects the .gitignore files from the agent's folder down to the folder searched, without its own.
func (s *search) above(name string) *ignoreFile {
	var rules *ignoreFile
	home := s.t.home()
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
	if len(lines) == 0 {
		lines = []string{none}
	}
	return spec.ToolResult{Text: strings.ToValidUTF8(strings.Join(append(lines, s.notes...), "\n"), "\uFFFD")}
}

// begin resolves what both tools take: path and pattern.
func (t *toolbox) begin(ctx context.Context, shown, glob string) (*search, *place, error) {
	if err := t.open(false); err != nil {
		return nil, nil, err
	}
	s := &search{walker: walker{ctx: ctx}, t: t}
	if glob != "" {
		var err error
		if s.glob, err = t.compilePattern(glob); err != nil {
			return nil, nil, err
		}
	}
	if shown == "" {
		shown = "."
	}
	p, err := t.find(shown)
	if err != nil {
		return nil, nil, fmt.Errorf("%q: %w", shown, cause(err))
	}
	if p.info == nil {
		p.close()
		return nil, nil, fmt.Errorf("%q: no such file or directory", shown)
	}
	return s, p, nil
}

// listed gives a name for a line of text. One that holds a line end, or another control character, is quoted, so that
// it cannot pass for several lines.
func (t *toolbox) listed(name string) string {
	shown := t.display(name)
	if strings.ContainsFunc(shown, unicode.IsControl) {
		return strconv.Quote(shown)
	}
	return shown
}

func (t *toolbox) glob(ctx context.Context, in arguments) spec.ToolResult {
	s, p, err := t.begin(ctx, in.text("path"), in.text("pattern"))
	if err != nil {
		return failed("Cannot access path %v.", err)
	}
	defer p.close()
	var files []string
	most := in.number("maxFiles", 500)
	err = s.run(p, func(_ *os.Root, _, name string) error {
		if len(files) == most {
			s.note("listing capped at %d paths; narrow the pattern or the path to see the rest", most)
			return errStop
		}
		files = append(files, t.listed(name))
		return nil
	})
	if err != nil && err != errStop {
		return failed("Stopped listing %q: %v.", in.text("path"), err)
	}
	return s.result(files, "No files matched.")
}

func (t *toolbox) grep(ctx context.Context, in arguments) spec.ToolResult {
	re, err := compileRegexp(in.text("pattern"))
	if err != nil {
		return failed("Invalid regular expression: %v.", err)
	}
	s, p, err := t.begin(ctx, in.text("path"), in.text("glob"))
	if err != nil {
		return failed("Cannot search %v.", err)
	}
	defer p.close()
	g := &grepping{search: s, re: re, most: in.number("maxResults", 100)}
	g.literal, _ = re.LiteralPrefix()
	if err := s.run(p, g.file); err != nil && err != errStop {
		return failed("Stopped searching %q: %v.", in.text("path"), err)
	}
	if g.large > 0 {
		s.note("%d file%s over %d bytes not searched", g.large, plural(g.large), maxFile)
	}
	if g.cut > 0 {
		s.note("%d long line%s searched to byte %d only", g.cut, plural(g.cut), maxLine)
	}
	if g.binary && !p.info.IsDir() {
		s.note("%q is a binary file", in.text("path"))
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
	binary     bool
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
		g.binary = true
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
	if n%1024 == 0 || len(line) > 1024 {
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
