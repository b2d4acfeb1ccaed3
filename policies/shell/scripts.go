package shell

import "strings"

// sed judges the script of sed, which can run commands and write files.
func (w *walker) sed(c *call) {
	o := options{values: "efl", longValues: " expression file line-length ", risky: "iI", riskyLong: " in-place "}
	s := o.scan(c.args())
	var script []string
	known := true
	for _, v := range s.values {
		switch {
		case v.option == "e" || v.option != "l" && strings.HasPrefix("expression", v.option):
			known = known && !v.word.dynamic
			script = append(script, v.word.text)
		case v.option == "f" || strings.HasPrefix("file", v.option):
			c.flag(Review, "runs-file", `"sed" runs a script that is not read here`)
		}
	}
	files := s.operands
	if len(script) == 0 && len(files) > 0 && !s.has("f", "file") {
		known = !files[0].dynamic
		script, files = append(script, files[0].text), files[1:]
	}
	text := strings.Join(script, "\n")
	switch {
	case s.risky != "":
		for _, x := range files {
			w.writes(x.path())
		}
		c.flag(Review, "writes-file", `"sed" with `+quote(s.risky)+" changes files")
	case !known:
		c.flag(Review, "dynamic-code", `"sed" runs a script that is not known before it runs`)
	case !(sedScript{s: text}).safe() || !(sedScript{s: text, brackets: true}).safe():
		c.flag(Review, "unsafe-script", "the script of sed runs commands, writes files or cannot be read")
	default:
		c.risks(s)
	}
}

// sedScript reads a script of sed. brackets says whether a delimiter inside [ ] is text, on which programs differ.
type sedScript struct {
	s        string
	brackets bool
}

// safe says that the script holds nothing but commands that are known to change only the output.
func (x sedScript) safe() bool {
	for {
		x.skip(" \t\n;}")
		if x.s == "" {
			return true
		}
		if !x.address() {
			return false
		}
		x.skip(" \t!")
		if x.s == "" || !x.command() {
			return false
		}
	}
}

func (x *sedScript) skip(set string) { x.s = strings.TrimLeft(x.s, set) }

func (x *sedScript) next() byte {
	if x.s == "" {
		return 0
	}
	c := x.s[0]
	x.s = x.s[1:]
	return c
}

// address reads what stands before a command.
func (x *sedScript) address() bool {
	for {
		x.skip(" \t,")
		if x.s == "" {
			return false
		}
		switch c := x.s[0]; {
		case c >= '0' && c <= '9' || c == '$' || c == '+' || c == '~':
			x.s = x.s[1:]
			x.skip("0123456789~")
		case c == '/', c == '\\':
			if x.next(); c == '\\' {
				c = x.next()
			}
			if !x.until(c) {
				return false
			}
			x.skip("IM")
		default:
			return true
		}
	}
}

// until reads to a delimiter.
func (x *sedScript) until(d byte) bool {
	if d == 0 || d == '\n' || d == '\\' || d >= 0x80 {
		return false
	}
	inside := false
	for i := 0; i < len(x.s); i++ {
		switch c := x.s[i]; {
		case c == '\n':
			return false
		case c == '\\' && !inside:
			i++
		case c == d && !inside:
			x.s = x.s[i+1:]
			return true
		case x.brackets && c == '[' && !inside:
			inside = true
			if i+1 < len(x.s) && x.s[i+1] == '^' {
				i++
			}
			if i+1 < len(x.s) && x.s[i+1] == ']' {
				i++
			}
		case c == ']':
			inside = false
		}
	}
	return false
}

func (x *sedScript) line() {
	if i := strings.IndexByte(x.s, '\n'); i >= 0 {
		x.s = x.s[i:]
	} else {
		x.s = ""
	}
}

// command reads one command.
func (x *sedScript) command() bool {
	switch c := x.next(); c {
	case '{':
		return true
	case '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F':
	case 'l', 'L', 'q', 'Q':
		x.skip(" \t0123456789")
	case '#', 'r', 'R':
		x.line()
	case 'b', 't', 'T', ':': // some programs end a label at the end of the line only: what they take for a label is read as commands
		if line, _, more := strings.Cut(x.s, "\n"); more && strings.HasSuffix(line, "\\") {
			return false // of which a text would reach into the next line
		}
		x.skip(" \t")
		x.s = x.s[min(len(x.s), max(0, strings.IndexAny(x.s+";", "; \t\n}"))):]
	case 'a', 'i', 'c':
		x.text()
	case 's':
		return x.substitute()
	case 'y':
		d := x.next()
		return x.until(d) && x.until(d)
	default: // e runs commands, w and W write files
		return false
	}
	return x.ended()
}

// ended says that nothing but a separator follows.
func (x *sedScript) ended() bool {
	x.skip(" \t")
	return x.s == "" || strings.IndexByte(";\n}#", x.s[0]) >= 0
}

// text reads the text of a, i and c: to the end of a line that does not end in a backslash.
func (x *sedScript) text() {
	for i := 0; i < len(x.s); i++ {
		switch x.s[i] {
		case '\\':
			i++
		case '\n':
			x.s = x.s[i:]
			return
		}
	}
	x.s = ""
}

func (x *sedScript) substitute() bool {
	d := x.next()
	if !x.until(d) {
		return false
	}
	plain := sedScript{s: x.s} // brackets mean nothing in a replacement
	if !plain.until(d) {
		return false
	}
	x.s = plain.s
	x.skip("gpiImM0123456789")
	return x.ended()
}

// awk is safe if its program has no way out: no command, file or pipe, and no code from elsewhere.
func (c *call) awk() {
	o := options{values: "Fv", first: true}
	s := o.scan(c.args())
	switch {
	case len(s.longs) > 0 || strings.Trim(s.shorts, "Fv") != "" || s.unknown != "":
		c.flag(Review, "unsafe-option", quote(c.name)+" has options that are not known to be safe")
	case len(s.operands) == 0 || s.operands[0].dynamic:
		c.flag(Review, "dynamic-code", quote(c.name)+" runs a program that is not known before it runs")
	case !awkReads(s.operands[0].text):
		c.flag(Review, "unsafe-script", "the program of awk may run commands, write files or load code")
	}
}

// awkReads says that a program holds nothing that could be a pipe, a file that is written, or code from elsewhere.
func awkReads(program string) bool {
	program = strings.NewReplacer("||", " ", ">=", " ").Replace(program) // operators whatever is around them
	return !strings.ContainsAny(program, "|@") && !strings.Contains(program, "system") && !strings.Contains(program, "getline") &&
		!(strings.Contains(program, ">") && strings.Contains(program, "print")) // a > without it compares
}
