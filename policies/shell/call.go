package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// call is one simple command on its way to a verdict.
type call struct {
	node        syntax.Node // that it stands in
	words       []word      // the first is the command's
	assignments []string
	in          input
	fetched     bool // a substitution in its words talks to the network or decodes
	wrappers    int  // it was found behind

	name     string // base name of the program; empty: not known
	path     string
	standard bool // the name alone, or in a directory of the system

	own   []Finding // of this command by itself
	inner [][]word  // commands it starts
	code  []code    // texts it runs as shell
}

// code is a text that a command runs as shell.
type code struct {
	text string
	in   input
}

func (c *call) args() []word { return c.words[1:] }

// flag adds to what the command is by itself.
func (c *call) flag(level, code, reason string) {
	c.own = append(c.own, Finding{Level: level, Code: code, Reason: reason})
}

// starts notes a command that this one starts.
func (c *call) starts(words []word) { c.inner = append(c.inner, words) }

// runs notes a word that is run as shell.
func (c *call) runs(x word, in input) {
	if x.dynamic {
		c.unknownCode()
	}
	if text := x.skeleton(); text != hole {
		c.code = append(c.code, code{text, in})
	}
}

// unknownCode reports code that is not literal: high if it comes over the network or is decoded.
func (c *call) unknownCode() {
	if c.fetched {
		c.flag(High, "runs-download", quote(c.shown())+" runs what was downloaded or decoded")
		return
	}
	c.flag(Review, "dynamic-code", quote(c.shown())+" runs text that is not known before it runs")
}

func (c *call) shown() string {
	if c.name != "" {
		return c.name
	}
	return c.words[0].text
}

// run judges a command and everything it starts.
func (w *walker) run(c *call) {
	if c.wrappers > maxWrappers {
		w.flag(c.node, Review, "too-deep", "commands start commands too deep to be read")
		return
	}
	c.identify()
	w.record(c)
	w.judge(c)
	w.settle(c)
	w.inside(c)
}

// inside judges what a command starts.
func (w *walker) inside(c *call) {
	for _, words := range c.inner {
		if len(words) > 0 {
			w.run(&call{node: c.node, words: words, in: c.in, fetched: c.fetched, wrappers: c.wrappers + 1})
		}
	}
	for _, x := range c.code {
		w.nested(x.text, c.node, x.in)
	}
}

// identify finds the name of the program.
func (c *call) identify() {
	first := c.words[0]
	c.path = first.text
	if first.dynamic && !first.home {
		return
	}
	if first.home {
		c.path = first.head
	}
	c.name = c.path
	if i := strings.LastIndexByte(c.path, '/'); i >= 0 {
		c.name = c.path[i+1:]
		c.standard = standardDir(c.path[:i+1])
		return
	}
	c.standard = true
}

// standardDir says that programs in a directory are the system's.
func standardDir(dir string) bool {
	if !strings.HasPrefix(dir, "/") || strings.Contains(dir, "..") {
		return false
	}
	switch path.Clean(dir) {
	case "/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin":
		return true
	}
	return false
}

// record adds a call to the facts.
func (w *walker) record(c *call) {
	p := w.place(c.node)
	fact := Command{Name: c.name, Path: c.path, Args: make([]string, 0, len(c.words)-1), DynamicArgs: []int{}, Dynamic: c.words[0].dynamic,
		Assignments: c.assignments, Line: p.line, Column: p.column}
	if fact.Assignments == nil {
		fact.Assignments = []string{}
	}
	for i, a := range c.args() {
		fact.Args = append(fact.Args, a.text)
		if a.dynamic {
			fact.DynamicArgs, fact.Dynamic = append(fact.DynamicArgs, i), true
		}
	}
	w.command(fact)
}

func (w *walker) command(fact Command) {
	if len(w.facts.Commands) < maxFacts {
		w.facts.Commands = append(w.facts.Commands, fact)
		return
	}
	w.full(position{fact.Line, fact.Column}, "starts more commands", fact.Path)
}

// full says once that there is more than the facts list.
func (w *walker) full(at position, what, text string) {
	if !w.facts.Incomplete {
		w.facts.Incomplete = true
		w.add(Finding{Level: Review, Code: "too-many", Reason: "the command " + what + " than are listed", Line: at.line, Column: at.column, Text: clip(text, maxShown)})
	}
}

// settle reports what a command is by itself, or what a level says in its place.
func (w *walker) settle(c *call) {
	own := c.own
	if l, ok := w.level(c); ok && (l.Override || !slices.ContainsFunc(own, func(f Finding) bool { return f.Level == High })) {
		own = nil
		if l.Level != Safe {
			reason := l.Reason
			if reason == "" {
				reason = quote(strings.Join(l.Match, " ")) + " has level " + l.Level + " by gates.shell.levels"
			}
			own = []Finding{{Level: l.Level, Code: "level", Reason: reason}}
		}
	}
	if len(own) == 0 {
		return
	}
	p, text := w.place(c.node), clip(w.source(c.node), maxShown)
	for _, f := range own {
		f.Line, f.Column, f.Text = p.line, p.column, text
		w.add(f)
	}
}

// level gives the level that matches most words, of several the strictest.
func (w *walker) level(c *call) (best Level, ok bool) {
	if c.name == "" {
		return best, false
	}
	for _, l := range w.levels {
		if !c.matches(l.Match) {
			continue
		}
		if !ok || len(l.Match) > len(best.Match) || len(l.Match) == len(best.Match) && stricter(l, best) {
			best, ok = l, true
		}
	}
	return best, ok
}

func stricter(a, b Level) bool {
	return Worse(a.Level, b.Level) || a.Level == b.Level && b.Override && !a.Override
}

func (c *call) matches(match []string) bool {
	if len(match) == 0 || len(match) > len(c.words) {
		return false
	}
	if strings.Contains(match[0], "/") {
		if match[0] != c.path {
			return false
		}
	} else if !c.standard || match[0] != c.name {
		return false
	}
	for i, m := range match[1:] {
		if !c.words[i+1].literal(m) {
			return false
		}
	}
	return true
}

// quote shows words of the command in a reason.
func quote(s string) string { return `"` + clip(s, 40) + `"` }
