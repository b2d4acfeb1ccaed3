package spec

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// Path names a place inside a document: agents[1].gates.rules[0].when. The zero value is the document itself.
type Path string

// Key gives the path of a member. A name that is no plain word is quoted: customTools["a.b"].
func (p Path) Key(name string) Path {
	if !plainKey(name) {
		return p + Path("["+strconv.Quote(name)+"]")
	}
	if p == "" {
		return Path(name)
	}
	return p + "." + Path(name)
}

// Join gives the path of what stands at q below p.
func (p Path) Join(q Path) Path {
	switch {
	case p == "":
		return q
	case q == "" || q[0] == '[':
		return p + q
	}
	return p + "." + q
}

// Index gives the path of an element.
func (p Path) Index(i int) Path { return p + Path("["+strconv.Itoa(i)+"]") }

func plainKey(s string) bool {
	if s == "" {
		return false
	}
	for i, r := range s {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || !(r == '-' || r >= '0' && r <= '9')) {
			return false
		}
	}
	return true
}

// Split gives the path's steps: a string for a member, an int for an element.
func (p Path) Split() []any {
	var steps []any
	s := string(p)
	for s != "" {
		switch {
		case s[0] == '.':
			s = s[1:]
		case strings.HasPrefix(s, `["`):
			q, err := strconv.QuotedPrefix(s[1:])
			if err != nil {
				return append(steps, s)
			}
			name, _ := strconv.Unquote(q)
			steps, s = append(steps, name), strings.TrimPrefix(s[1+len(q):], "]")
		case s[0] == '[':
			end := strings.IndexByte(s, ']')
			if end < 0 {
				return append(steps, s)
			}
			i, err := strconv.Atoi(s[1:end])
			if err != nil {
				return append(steps, s)
			}
			steps, s = append(steps, i), s[end+1:]
		default:
			end := strings.IndexAny(s, ".[")
			if end < 0 {
				end = len(s)
			}
			steps, s = append(steps, s[:end]), s[end:]
		}
	}
	return steps
}

// Severity says whether a diagnostic stops the work.
type Severity string

const (
	Error   Severity = "error"   // nothing runs
	Warning Severity = "warning" // an error under --strict
	Note    Severity = "note"    // information; never changes an exit code
)

// Pos is a place in a file: 1-based, columns in runes. The zero value means the place is not known.
type Pos struct {
	Line int `json:"line,omitempty"`
	Col  int `json:"col,omitempty"`
}

// Diagnostic is one problem in a user's file.
type Diagnostic struct {
	Code     string   `json:"code"` // a kebab word with a section in docs/checks.md, or a code of the reference
	Severity Severity `json:"severity"`
	File     string   `json:"file,omitempty"` // as the user named it; empty: the main document
	Path     Path     `json:"path,omitempty"`
	// OnKey points at the key of Path rather than at its value.
	OnKey bool `json:"-"`
	// At is a place inside the text of the value at Path (1-based, runes), such as a CEL error; zero: the value.
	At      Pos    `json:"-"`
	Pos     Pos    `json:"pos,omitzero"` // filled in by the loader
	Width   int    `json:"-"`            // how many runes the caret underlines; 0: one
	Snippet string `json:"snippet,omitempty"`
	Message string `json:"message"` // lower case, no full stop
	Hint    string `json:"hint,omitempty"`
}

// String gives the first line of a diagnostic, as a terminal shows it.
func (d Diagnostic) String() string {
	var b strings.Builder
	if d.File != "" {
		b.WriteString(d.File)
		if d.Pos.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", d.Pos.Line, d.Pos.Col)
		}
		b.WriteString(": ")
	}
	if d.Severity != Error && d.Severity != "" {
		b.WriteString(string(d.Severity) + ": ")
	}
	fmt.Fprintf(&b, "%s [%s]", d.Message, d.Code)
	return b.String()
}

// Diagnostics are all problems found in one pass.
type Diagnostics []Diagnostic

// Errorf adds an error at a path.
func (ds *Diagnostics) Errorf(code string, path Path, format string, args ...any) *Diagnostic {
	return ds.add(Error, code, path, format, args...)
}

// Warnf adds a warning at a path.
func (ds *Diagnostics) Warnf(code string, path Path, format string, args ...any) *Diagnostic {
	return ds.add(Warning, code, path, format, args...)
}

// Notef adds a note at a path.
func (ds *Diagnostics) Notef(code string, path Path, format string, args ...any) *Diagnostic {
	return ds.add(Note, code, path, format, args...)
}

// add gives a pointer for setting the optional fields; it is good until the next add.
func (ds *Diagnostics) add(s Severity, code string, path Path, format string, args ...any) *Diagnostic {
	*ds = append(*ds, Diagnostic{Code: code, Severity: s, Path: path, Message: fmt.Sprintf(format, args...)})
	return &(*ds)[len(*ds)-1]
}

// HasErrors says whether anything stops the work. Under strict, warnings do too.
func (ds Diagnostics) HasErrors(strict bool) bool {
	for _, d := range ds {
		if d.Severity == Error || d.Severity == "" || strict && d.Severity == Warning {
			return true
		}
	}
	return false
}

// Sort orders by file, place, code and message, and drops exact repetitions.
func (ds *Diagnostics) Sort() {
	all := *ds
	sort.SliceStable(all, func(i, j int) bool {
		a, b := all[i], all[j]
		switch {
		case a.File != b.File:
			return a.File < b.File
		case a.Pos.Line != b.Pos.Line:
			return a.Pos.Line < b.Pos.Line
		case a.Pos.Col != b.Pos.Col:
			return a.Pos.Col < b.Pos.Col
		case a.Code != b.Code:
			return a.Code < b.Code
		}
		return a.Message < b.Message
	})
	kept := all[:0]
	for _, d := range all {
		if n := len(kept); n == 0 || kept[n-1] != d {
			kept = append(kept, d)
		}
	}
	*ds = kept
}
