package shell

import "strings"

// writesTo judges a path that a command writes. level is that of a path of the system, or of keys and startup files.
func (c *call) writesTo(w *walker, x word, level string) {
	p, known := x.path()
	switch placeOf(p, known) {
	case harmless:
		return
	case system:
		c.flag(level, "system-path", quote(c.name)+" writes to the system path "+quote(p))
	case startup:
		c.flag(level, "trusted-path", quote(c.name)+" writes to "+quote(p)+", which grants access or runs by itself")
	default:
		c.flag(Review, "writes-file", quote(c.name)+" writes to "+quote(x.text))
	}
	w.writes(p, known)
}

// tee writes its operands as a redirect does.
func (w *walker) tee(c *call) {
	s := options{}.scan(c.args())
	for _, x := range s.operands {
		if x.dynamic && strings.HasPrefix(x.text, ">(") {
			continue // a command, which is judged as such
		}
		c.writesTo(w, x, High)
	}
}

// files judges commands that change files, and notes the paths they write. False: the command is none of them.
func (w *walker) files(c *call) bool {
	o := options{}
	switch c.name {
	case "cp", "mv", "ln", "install":
		o = options{values: "tSmgoZ", longValues: " target-directory suffix mode owner group "}
	case "mkdir", "touch", "truncate", "mkfifo":
		o = options{values: "mdrst", longValues: " mode date reference size time "}
	case "curl":
		o = options{values: "AbcCdDeEFhHKmoPQrTtuUwxXyYz", longValues: " output cookie-jar dump-header ", exact: true}
	case "wget":
		o = options{values: "OoaiBtTwQPUSlADIXeY", longValues: " output-document output-file directory-prefix ", exact: true}
	case "sort", "tree", "shuf":
		o = options{values: "oktTSLPIH", longValues: " output "}
	case "dd":
		for _, a := range c.args() {
			if p, ok := strings.CutPrefix(a.text, "of="); ok && !a.dynamic {
				w.writes(p, true)
			}
		}
		return false
	default:
		return false
	}
	s := o.scan(c.args())
	targets := s.targets(c.name)
	if c.name == "sort" || c.name == "tree" || c.name == "shuf" {
		for _, x := range targets {
			w.writes(x.path())
		}
		return false
	}
	if len(targets) == 0 {
		c.unknown()
	}
	for _, x := range targets {
		if !x.literal("-") {
			c.writesTo(w, x, Review)
		}
	}
	if talks(c) && len(targets) > 0 {
		c.unknown()
	}
	return true
}

// targets gives the words that name what is written.
func (s *scanned) targets(name string) []word {
	var out []word
	for _, v := range s.values {
		switch v.option {
		case "t", "target-directory":
			if name == "cp" || name == "mv" || name == "ln" || name == "install" {
				return []word{v.word}
			}
		case "o", "output", "O", "output-document", "c", "cookie-jar", "D", "dump-header", "output-file":
			if name != "install" && (name != "wget" || v.option != "c" && v.option != "D") {
				out = append(out, v.word)
			}
		}
	}
	n := len(s.operands)
	switch name {
	case "cp", "mv", "ln", "install":
		out = append(out, s.operands[max(n-1, 0):]...)
	case "mkdir", "touch", "truncate", "mkfifo":
		out = append(out, s.operands...)
	}
	return out
}

// chmod is high where it opens files to everybody or changes a whole tree.
func (c *call) chmod() {
	for _, a := range c.args() {
		if recursive(a) {
			c.flag(High, "permissions", `"chmod" changes a whole tree`)
			return
		}
	}
	for _, a := range c.args() {
		if strings.HasPrefix(a.text, "-") && !a.dynamic && (a.text == "--" || strings.Trim(a.text, "-rwxXst") != "") {
			continue // an option
		}
		if !a.dynamic && opens(a.text) {
			c.flag(High, "permissions", `"chmod `+clip(a.text, 20)+`" opens files to everybody`)
			return
		}
		break
	}
	c.flag(Review, "permissions", `"chmod" changes permissions`)
}

func recursive(a word) bool {
	if a.dynamic || len(a.text) < 2 || a.text[0] != '-' {
		return false
	}
	if long, ok := strings.CutPrefix(a.text, "--"); ok {
		return len(long) > 2 && strings.HasPrefix("recursive", long) // --re is also --reference
	}
	return strings.Contains(a.text, "R")
}

// opens says that a mode lets everybody write.
func opens(mode string) bool {
	if mode != "" && strings.Trim(mode, "01234567") == "" {
		return (mode[len(mode)-1]-'0')&2 != 0
	}
	for _, clause := range strings.Split(mode, ",") {
		who := strings.TrimRight(clause, "rwxXst+=")
		if strings.ContainsAny(who, "ao") && strings.Trim(who, "ugoa") == "" && strings.Contains(clause[len(who):], "w") {
			return true
		}
	}
	return false
}

func (c *call) chown() {
	for _, a := range c.args() {
		if recursive(a) {
			c.flag(High, "permissions", quote(c.name)+" changes a whole tree")
			return
		}
	}
	c.flag(Review, "permissions", quote(c.name)+" changes who owns files")
}
