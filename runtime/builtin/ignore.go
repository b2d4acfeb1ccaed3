package builtin

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// ignoreFile is one .gitignore file with those of the folders above it. Covered is what git describes: comments,
// negation, patterns for folders only, anchored patterns, *, ?, **, classes, escapes. Not covered: POSIX classes such as
// [[:alpha:]], .git/info/exclude, a user's own file, and files above the agent's folder. nil ignores nothing.
type ignoreFile struct {
	parent *ignoreFile
	dir    string // below the top; "." for the top
	rules  []ignoreRule
}

type ignoreRule struct {
	glob     string
	base     bool // matches the last element, in any folder below
	dirOnly  bool
	negation bool
}

// maxIgnoreFile is the largest .gitignore that is read, in bytes.
const maxIgnoreFile = 1 << 20

// ignored judges a file or folder by its name below the top. The nearest file that says something about it decides,
// and in it the last rule. Nothing below an ignored folder is ever asked about, so nothing there can be brought back.
func (f *ignoreFile) ignored(name string, isDir bool) bool {
	for ; f != nil; f = f.parent {
		rel := name
		if f.dir != "." {
			rel = strings.TrimPrefix(name, f.dir+"/")
		}
		for i := len(f.rules) - 1; i >= 0; i-- {
			r := f.rules[i]
			subject := rel
			if r.base {
				subject = path.Base(rel)
			}
			if (isDir || !r.dirOnly) && doublestar.MatchUnvalidated(r.glob, subject) {
				return !r.negation
			}
		}
	}
	return false
}

// noName is a name that no rule spells out.
const noName = "\x00no name\x00"

// lifted gives the rules that hold in a folder somebody named: none, if they leave out whatever it holds. To have a
// folder searched it is enough to name it, as for a file.
func (f *ignoreFile) lifted(name string) *ignoreFile {
	if f.ignored(path.Join(name, noName), false) {
		return nil
	}
	return f
}

// with adds the .gitignore of an open folder, if there is one. A link is not read, as git does.
func (f *ignoreFile) with(dir *os.Root, name string, buf *bytes.Buffer) *ignoreFile {
	info, err := dir.Lstat(".gitignore")
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxIgnoreFile {
		return f
	}
	data, err := readRegular(dir, ".gitignore", buf)
	if err != nil {
		return f
	}
	rules := parseIgnore(string(data))
	if len(rules) == 0 {
		return f
	}
	return &ignoreFile{parent: f, dir: name, rules: rules}
}

func parseIgnore(text string) []ignoreRule {
	var rules []ignoreRule
	for line := range strings.Lines(strings.TrimPrefix(text, "\uFEFF")) {
		if r, ok := parseIgnoreLine(strings.TrimRight(line, "\r\n")); ok {
			rules = append(rules, r)
		}
	}
	return rules
}

// literalBraces escapes braces, which are letters to git, and keeps what is escaped.
var literalBraces = strings.NewReplacer(`\\`, `\\`, `\{`, `\{`, `\}`, `\}`, `{`, `\{`, `}`, `\}`)

func parseIgnoreLine(line string) (r ignoreRule, ok bool) {
	if strings.HasPrefix(line, "#") {
		return r, false
	}
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	line, r.negation = strings.CutPrefix(line, "!")
	line, r.dirOnly = strings.CutSuffix(line, "/")
	r.base = !strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	line = literalBraces.Replace(line)
	// a/** is what is in a, but not a.
	if rest, found := strings.CutSuffix(line, "/**"); found {
		line = rest + "/**/*"
	}
	r.glob = line
	return r, line != "" && doublestar.ValidatePattern(line)
}

// skipped are folders that no search enters: histories, dependencies, results of builds.
func skipped(name string, t fs.FileMode) bool {
	switch name {
	case ".git":
		return true // a file too, in a worktree
	case ".svn", ".hg", "node_modules", ".next", "dist", "build":
		return t.IsDir()
	}
	return false
}
