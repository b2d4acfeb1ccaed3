package shell

import "strings"

// isShell says that a program runs shell text.
func isShell(name string) bool {
	switch strings.TrimRight(name, "0123456789.") {
	case "bash", "sh", "zsh", "dash", "ksh", "mksh", "ash", "rbash", "fish", "csh", "tcsh":
		return true
	}
	return false
}

// shell judges a shell: the text of -c is read again, everything else it runs is not known.
func (w *walker) shell(c *call) {
	args := c.args()
	text, i := false, 0
	for ; i < len(args); i++ {
		a := args[i]
		if !text && a.mayBeOption() {
			c.unknownCode()
			return
		}
		if a.dynamic || len(a.text) == 0 || a.text[0] != '-' && a.text[0] != '+' {
			break
		}
		if a.text == "-" || a.text == "--" {
			i++
			break
		}
		if long, ok := strings.CutPrefix(a.text, "--"); ok {
			if long == "version" || long == "help" {
				return
			}
			text = text || long == "command"
			if long == "rcfile" || long == "init-file" {
				i++
			}
			continue
		}
		text = text || a.text[0] == '-' && strings.Contains(a.text, "c")
		i += strings.Count(a.text, "o") + strings.Count(a.text, "O")
	}
	rest := args[min(i, len(args)):]
	switch {
	case text && len(rest) > 0:
		c.flag(Review, "starts-shell", quote(c.name)+" starts another shell")
		c.runs(rest[0], input{})
	case len(rest) == 0 || rest[0].literal("/dev/stdin") || hasFlag(args[:min(i, len(args))], 's'):
		c.standardInput()
	case c.fetched && isSubstitution(rest[0]):
		c.flag(High, "runs-download", quote(c.name)+" runs what was downloaded or decoded")
	default:
		c.flag(Review, "runs-file", quote(c.name)+" runs a script")
	}
}

func hasFlag(args []word, ch byte) bool {
	for _, a := range args {
		if !a.dynamic && len(a.text) > 1 && a.text[0] == '-' && a.text[1] != '-' && strings.IndexByte(a.text, ch) > 0 {
			return true
		}
	}
	return false
}

// standardInput judges a shell that runs what it reads.
func (c *call) standardInput() {
	switch c.in.kind {
	case piped:
		c.flag(High, "pipe-to-shell", quote(c.name)+" runs what comes through a pipe")
	case fromText:
		if c.in.remote {
			c.flag(High, "runs-download", quote(c.name)+" runs what was downloaded or decoded")
		}
		c.flag(Review, "starts-shell", quote(c.name)+" runs the text on its standard input")
		c.code = append(c.code, code{c.in.text, input{}})
	case fromFile:
		c.flag(Review, "runs-file", quote(c.name)+" runs a file")
	default:
		c.flag(Review, "starts-shell", quote(c.name)+" starts another shell")
	}
}

// isSubstitution says that a word is <(…).
func isSubstitution(x word) bool { return x.dynamic && strings.HasPrefix(x.text, "<(") }

// language is an interpreter: which options hold its program, so that it does not read one from standard input.
type language struct {
	code   string // short
	long   string // spaces around each
	values string // other short options with a value
}

func languageNamed(name string) (language, bool) {
	switch strings.TrimRight(name, "0123456789.") {
	case "python", "pypy":
		return language{code: "cm", values: "WX"}, true
	case "perl":
		return language{code: "eE", values: "IMm"}, true
	case "ruby":
		return language{code: "e", values: "IrEC"}, true
	case "node", "nodejs":
		return language{code: "ep", long: " --eval --print --check ", values: "rC"}, true
	case "pwsh", "powershell":
		return language{code: "cCeEf"}, true
	case "deno":
		return language{}, true
	case "php":
		return language{code: "rfBRFE", long: " --run --file ", values: "dc"}, true
	case "lua", "luajit":
		return language{code: "e", values: "l"}, true
	case "osascript":
		return language{code: "e", values: "l"}, true
	case "tclsh", "Rscript", "julia", "swift", "groovy", "scala", "ghci", "runghc", "guile", "racket", "gdb", "expect", "sqlite", "psql", "mysql":
		return language{code: "ecf", long: " --eval --command --file ", values: "dhpU"}, true
	}
	return language{}, false
}

// interpreter judges a program that runs code of another language, which is not read. False: the command is none.
func (w *walker) interpreter(c *call) bool {
	l, ok := languageNamed(c.name)
	if !ok {
		return false
	}
	if len(c.words) == 2 && (c.words[1].literal("--version") || c.words[1].literal("-V")) {
		return true
	}
	given, file := l.program(c.args())
	switch {
	case c.fetched && (given || isSubstitution(file)):
		c.flag(High, "runs-download", quote(c.name)+" runs what was downloaded or decoded")
	case !given && c.in.remote && (file.text == "" || file.literal("-") || file.literal("/dev/stdin")):
		c.flag(High, "runs-download", quote(c.name)+" runs what was downloaded or decoded")
	default:
		c.flag(Review, "runs-program", quote(c.name)+" runs a program that is not read here")
	}
	return true
}

// program says whether a program is given in an option, or else in which file. No text: on standard input.
func (l language) program(args []word) (given bool, file word) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		head, _ := a.path()
		switch {
		case len(head) < 2 || head[0] != '-':
			return false, a
		case head == "--" && i+1 < len(args):
			return false, args[i+1]
		case strings.HasPrefix(head, "--"):
			name, _, _ := strings.Cut(head, "=")
			if strings.Contains(l.long, " "+name+" ") {
				return true, word{}
			}
		case strings.ContainsAny(head, l.code) && l.code != "":
			return true, word{}
		case strings.IndexByte(l.values, head[len(head)-1]) >= 0 && len(head) == 2:
			i++
		}
	}
	return false, word{}
}

// xargs starts its command with words that it reads, which may be anything.
func (w *walker) xargs(c *call, given []value, rest []word) {
	if len(rest) == 0 {
		return // echo
	}
	mark := ""
	for _, v := range given {
		switch long := len(v.option) > 1 && strings.HasPrefix("replace", v.option); {
		case v.option == "I" || v.option == "J":
			mark = v.word.text
		case v.option == "i" || long:
			if mark = v.word.text; mark == "" {
				mark = "{}"
			}
		}
	}
	if name := strings.TrimRight(rest[0].text, "0123456789."); c.in.remote && (isShell(name) || rest[0].text == mark) {
		c.flag(High, "runs-download", `"xargs" runs what was downloaded or decoded`)
	}
	words := make([]word, len(rest), len(rest)+1)
	for i, x := range rest {
		if words[i] = x; mark != "" && !x.dynamic && strings.Contains(x.text, mark) {
			words[i] = holed(x, mark, true)
		}
	}
	if mark == "" {
		words = append(words, word{text: "…", dynamic: true, split: true})
	}
	c.starts(words)
}

// holed is a word in which a mark is replaced before it is used. anything: what replaces it may start with a dash.
func holed(x word, mark string, anything bool) word {
	head := x.text[:strings.Index(x.text, mark)]
	if head == "" && !anything {
		head = "./"
	}
	return word{text: x.text, head: head, dynamic: true, parts: x.parts}
}

// parallel starts its command with words after ::: or from its input; without one, what it reads are commands.
func (c *call) parallel(rest []word) {
	for i, x := range rest {
		if strings.HasPrefix(x.text, ":::") {
			rest = rest[:i]
			break
		}
	}
	if len(rest) == 0 {
		if c.in.kind == piped {
			c.flag(High, "pipe-to-shell", `"parallel" runs what comes through a pipe`)
		}
		return
	}
	c.starts(append(rest[:len(rest):len(rest)], word{text: "…", dynamic: true, split: true}))
}
