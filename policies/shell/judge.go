package shell

import (
	"strconv"
	"strings"
)

// judge says what a command is by itself, and what it starts. A command it says nothing about is safe.
func (w *walker) judge(c *call) {
	switch {
	case c.name == "" && c.words[0].dynamic && c.fetched:
		c.flag(High, "runs-download", "the name of the command was downloaded or decoded")
		return
	case c.name == "":
		c.flag(Review, "dynamic-command", "the command "+quote(c.words[0].text)+" is not known before it runs")
		return
	case w.spawning > 0 && contains(w.functions, c.name):
		c.flag(High, "fork-bomb", "the function "+quote(c.name)+" starts itself again and again")
		return
	}
	if talks(c) {
		w.facts.Network = true
		w.remote++
	} else if decodes(c) {
		w.remote++
	}
	if d, ok := destroys(c.name); ok {
		c.flag(High, d.code, quote(c.name)+" "+d.reason)
	}
	if !w.special(c) {
		w.tabled(c)
	}
	if len(c.own) == 0 && !c.standard {
		c.flag(Review, "unknown-path", quote(c.path)+" need not be the "+c.name+" of the system")
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// special judges the commands that take more than a row of a table. False: it is none of them.
func (w *walker) special(c *call) bool {
	switch {
	case isShell(c.name):
		w.shell(c)
	case w.interpreter(c):
	case w.wrapper(c):
	default:
		return w.tailored(c)
	}
	return true
}

// tailored judges the commands that have a function each. False: the command is none of them.
func (w *walker) tailored(c *call) bool {
	switch c.name {
	case "git":
		w.git(c)
	case "find":
		w.find(c)
	case "grep", "egrep", "fgrep":
		c.grep()
	case "rg":
		c.ripgrep()
	case "sed", "gsed":
		w.sed(c)
	case "awk", "gawk", "mawk", "nawk":
		c.awk()
	case "date":
		c.date()
	case "printf":
		c.printf()
	case "test", "[":
		w.testCommand(c)
	case "set":
		c.set()
	case "chmod":
		c.chmod()
	case "chown", "chgrp":
		c.chown()
	case "eval":
		w.eval(c)
	case ".", "source":
		w.sourced(c)
	case "trap", "alias":
		w.stored(c)
	case "npm", "yarn", "pnpm", "bun", "cargo", "gem", "twine", "poetry", "uv", "vsce":
		c.publish()
	case "tee":
		w.tee(c)
	default:
		return w.files(c)
	}
	return true
}

// tabled judges by the tables.
func (w *walker) tabled(c *call) {
	p, ok := readerNamed(c.name)
	if !ok {
		if len(c.own) == 0 {
			c.unknown()
		}
		return
	}
	if p.level != "" {
		c.flag(p.level, p.code, quote(c.name)+" "+p.reason)
	}
	c.reads(p)
}

// reads judges the arguments of a program that reads unless it is told otherwise.
func (c *call) reads(p *reader) {
	if p.risky == "" && p.riskyLong == "" && p.operands == 0 {
		return
	}
	s := p.scan(c.args())
	switch {
	case !p.bulk:
		c.risks(s)
	case s.risky != "":
		c.flag(Review, "recursive", quote(c.name)+" with "+quote(s.risky)+" reads whole trees")
	}
	if most := max(p.operands, 0); p.operands != 0 && (len(s.operands) > most || s.split && len(s.operands) > 0) {
		c.flag(Review, "writes", quote(c.name)+" with more than "+strconv.Itoa(most)+" operands "+p.reason)
	}
}

// risks reports options that end safety, and words that may be such.
func (c *call) risks(s scanned) {
	switch {
	case s.risky != "":
		c.flag(Review, "unsafe-option", quote(c.name)+" does more than read with "+quote(s.risky))
	case s.unknown != "":
		c.flag(Review, "dynamic-option", quote(c.name)+" may receive an option by "+quote(s.unknown)+", which is not known before it runs")
	}
}

// unknown reports a command that is in no table.
func (c *call) unknown() {
	if k, ok := changes(c.name); ok {
		c.flag(Review, k.code, quote(c.name)+" "+k.reason)
		return
	}
	if talks(c) {
		c.flag(Review, "network", quote(c.name)+" talks to the network")
		return
	}
	c.flag(Review, "unknown-command", quote(c.name)+" is not known to be safe")
}

// date sets the clock with -s, and with an operand that is no format.
func (c *call) date() {
	o := options{values: "dfrs", optional: "I", longValues: " date file reference set ", risky: "s", riskyLong: " set "}
	s := o.scan(c.args())
	c.risks(s)
	for _, x := range s.operands {
		if head, _ := x.path(); !strings.HasPrefix(head, "+") {
			c.flag(Review, "writes", quote(c.name)+" sets the clock")
			return
		}
	}
}

// printf sets variables with -v and %n.
func (c *call) printf() {
	s := options{risky: "v", first: true}.scan(c.args())
	c.risks(s)
	if len(s.operands) == 0 {
		return
	}
	for format := s.operands[0].text; ; {
		_, after, ok := strings.Cut(format, "%")
		if !ok {
			return
		}
		if format, ok = strings.CutPrefix(after, "%"); ok {
			continue
		}
		if strings.HasPrefix(strings.TrimLeft(after, "-+ #0123456789.*'hlLjzt"), "n") {
			c.flag(Review, "unsafe-option", `"printf" sets a variable with %n`)
			return
		}
	}
}

// testCommand judges [ ]: a test whether an element of an array is set evaluates its index.
func (w *walker) testCommand(c *call) {
	args := c.args()
	for i, a := range args {
		switch {
		case a.dynamic && a.split:
			c.flag(Review, "dynamic-option", quote(c.name)+" receives "+quote(a.text)+" without quotes, which may be any test")
			return
		case (a.literal("-v") || a.literal("-R") || a.mayBeOption()) && i+1 < len(args) && (args[i+1].dynamic || strings.ContainsAny(args[i+1].text, "[$`")):
			c.flag(Review, "evaluates-text", "an index is evaluated as arithmetic, which can run commands")
			w.expansions(args[i+1].skeleton(), c.node)
			return
		}
	}
}

// set is safe as far as it makes a script stricter.
func (c *call) set() {
	args := c.args()
	for i := 0; i < len(args); i++ {
		a := args[i]
		flags, ok := strings.CutPrefix(a.text, "-")
		if a.dynamic || !ok || flags == "" || strings.Trim(flags, "euoCf") != "" {
			c.flag(Review, "declares", `"set" changes how commands are read`)
			return
		}
		if !strings.HasSuffix(flags, "o") {
			continue
		}
		if i++; i < len(args) {
			switch args[i].text {
			case "pipefail", "errexit", "nounset", "noclobber", "noglob":
				continue
			}
		}
		c.flag(Review, "declares", `"set" changes how commands are read`)
		return
	}
}

// eval runs its words joined by spaces.
func (w *walker) eval(c *call) {
	parts := make([]string, 0, len(c.words))
	for _, a := range c.args() {
		parts = append(parts, a.skeleton())
	}
	c.code = append(c.code, code{strings.Join(parts, " "), c.in})
}

// sourced judges . and source: the shell runs a file.
func (w *walker) sourced(c *call) {
	args := c.args()
	if len(args) > 0 && c.fetched || len(args) > 0 && c.in.remote && args[0].literal("/dev/stdin") {
		c.flag(High, "runs-download", quote(c.name)+" runs what was downloaded or decoded")
		return
	}
	c.flag(Review, "runs-file", quote(c.name)+" runs a file in this shell")
}

// stored judges code that is kept for later: trap and alias.
func (w *walker) stored(c *call) {
	c.flag(Review, "stores-code", quote(c.name)+" keeps a command that runs later")
	for i, a := range c.args() {
		text := a.skeleton()
		if c.name == "alias" {
			_, value, ok := strings.Cut(text, "=")
			if !ok {
				continue
			}
			text = value
		} else if strings.HasPrefix(text, "-") {
			continue
		}
		c.code = append(c.code, code{text, input{}})
		if c.name == "trap" || i == 63 {
			return
		}
	}
}
