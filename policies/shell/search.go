package shell

import (
	"path"
	"strings"
)

// Options of grep and rg with a value, as far as they decide which words are operands.
const (
	grepValues = " regexp file max-count context after-context before-context include exclude exclude-dir exclude-from label binary-files devices directories "
	rgValues   = " regexp file glob iglob type type-not type-add type-clear max-count context after-context before-context max-columns max-depth max-filesize threads" +
		" encoding engine replace sort sortr color colors context-separator field-context-separator field-match-separator path-separator ignore-file pre pre-glob hostname-bin" +
		" hyperlink-format regex-size-limit dfa-size-limit generate "
)

// grep is safe, but a recursive search without a path reads whatever is there.
func (c *call) grep() {
	o := options{values: "efmABCdD", longValues: grepValues}
	s := o.scan(c.args())
	recursive := strings.ContainsAny(s.shorts, "rR") || s.has("", "recursive") || s.has("", "dereference-recursive")
	for _, v := range s.values {
		recursive = recursive || (v.option == "d" || strings.HasPrefix("directories", v.option)) && v.word.literal("recurse")
	}
	if recursive && s.paths() == 0 {
		c.flag(Review, "recursive", quote(c.name)+" searches the whole tree: name a path")
	}
}

// paths counts the operands after the pattern.
func (s *scanned) paths() int {
	n := len(s.operands)
	if !strings.ContainsAny(s.shorts, "ef") && !contains(s.longs, "regexp") && !contains(s.longs, "file") && !contains(s.longs, "files") && !contains(s.longs, "type-list") {
		n--
	}
	return max(n, 0)
}

// ripgrep searches a tree unless it is given a path, and can run a program on each file.
func (c *call) ripgrep() {
	o := options{values: "efgtTmABCjMEdr", longValues: rgValues, risky: "z", riskyLong: " pre search-zip hostname-bin ", exact: true}
	s := o.scan(c.args())
	c.risks(s)
	switch {
	case len(s.operands) == 0 && (s.has("V", "") || contains(s.longs, "version") || contains(s.longs, "type-list")):
	case s.paths() == 0 && (s.has("", "files") || c.in.kind != piped && c.in.kind != fromText):
		c.flag(Review, "recursive", `"rg" searches the whole tree: name a path`)
	}
}

// find judges the actions of find.
func (w *walker) find(c *call) {
	args := c.args()
	roots := 0
	whole, depth := false, false
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a.dynamic {
			if i > 0 && findValue(args[i-1]) && !a.split && !mayDelete(a) {
				continue
			}
			if a.mayBeOption() {
				c.flag(Review, "dynamic-option", `"find" may receive an action by `+quote(a.text)+", which is not known before it runs")
			}
		}
		text, _ := a.path()
		if roots == i && text != "" && text[0] != '-' && text[0] != '(' && text[0] != '!' {
			roots++
			whole = whole || isTop(text)
			continue
		}
		if roots == i && findStart(text) {
			if roots++; text == "-D" {
				roots, i = roots+1, i+1
			}
			continue
		}
		switch text {
		case "-maxdepth":
			depth = true
		case "-delete":
			c.flag(High, "destructive", `"find -delete" removes files`)
		case "-fprint", "-fprint0", "-fprintf", "-fls":
			if i+1 < len(args) {
				c.writesTo(w, args[i+1], Review)
			}
		case "-execdir", "-okdir":
			c.flag(Review, "changes-directory", quote("find "+text)+" runs a command in other directories")
			i = c.findExec(args, i+1)
		case "-exec", "-ok":
			i = c.findExec(args, i+1)
		}
	}
	if whole && !depth {
		c.flag(Review, "recursive", `"find" goes through everything: name a folder, or use -maxdepth`)
	}
}

// isTop says that a tree is that of the whole machine or of a home directory.
func isTop(p string) bool {
	p = path.Clean(p)
	return p == "/" || strings.HasPrefix(p, "~") && !strings.Contains(p, "/")
}

// findStart says that an option stands before the starting points.
func findStart(text string) bool {
	return text == "-H" || text == "-L" || text == "-P" || text == "-D" || strings.HasPrefix(text, "-O")
}

// findValue says that a test takes the next word, whatever it is.
func findValue(a word) bool {
	switch a.text {
	case "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-lname", "-ilname", "-type", "-xtype", "-size", "-mtime", "-atime",
		"-ctime", "-mmin", "-amin", "-cmin", "-newer", "-anewer", "-cnewer", "-newermt", "-perm", "-user", "-group", "-uid", "-gid", "-maxdepth", "-mindepth", "-samefile",
		"-inum", "-links", "-fstype", "-regextype", "-printf":
		return !a.dynamic
	}
	return false
}

// mayDelete says that a pattern may become two names of files, of which the second is an action.
func mayDelete(a word) bool {
	match, err := path.Match(strings.NewReplacer(`"`, "", `'`, "").Replace(a.text), "-delete")
	return isPattern(a) && (match || err != nil)
}

// findExec notes the command from args[i] to its end, and gives the index of the last word.
func (c *call) findExec(args []word, i int) int {
	var words []word
	ends := false // a word before may be the ; that ends the command
	for ; i < len(args); i++ {
		a := args[i]
		if a.literal(";") || a.literal("+") && len(words) > 0 && words[len(words)-1].text == "{}" {
			break
		}
		if a.dynamic && (a.split || mayDelete(a)) || ends && strings.HasPrefix(a.text, "-") && !a.dynamic {
			c.flag(Review, "dynamic-option", `"find" may receive an action behind `+quote(args[i-1].text)+", which is not known before it runs")
		}
		ends = ends || a.dynamic && (a.head == "" || a.head == ";" || a.head == "+")
		if !a.dynamic && strings.Contains(a.text, "{}") {
			a = holed(a, "{}", false)
		}
		words = append(words, a)
	}
	c.starts(words)
	return i
}
