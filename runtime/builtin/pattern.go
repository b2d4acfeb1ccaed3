package builtin

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// maxAlternatives bounds what the braces of one pattern stand for. They are written out before matching, because
// matching them in place takes time exponential in their number.
const maxAlternatives = 256

// pattern is a compiled glob. It ignores case.
type pattern struct{ alternatives []alternative }

type alternative struct {
	glob string // lower case, no braces
	base bool   // without /, it matches the last element
	top  bool   // written as an absolute path, it matches the name below the top
}

// compilePattern refuses patterns that name something outside, so that they cannot look like "nothing found".
func (w *workspace) compilePattern(text string) (*pattern, error) {
	if !doublestar.ValidatePattern(text) {
		return nil, fmt.Errorf("invalid pattern %q", text)
	}
	globs, err := expand(text)
	if err != nil {
		return nil, err
	}
	p := &pattern{}
	for _, g := range globs {
		a := alternative{glob: g}
		if path.IsAbs(g) || filepath.IsAbs(g) {
			if a.glob, a.top = w.belowTop(g); !a.top {
				return nil, fmt.Errorf("pattern %q is %w", text, ErrOutside)
			}
		}
		a.glob = strings.TrimPrefix(a.glob, "./")
		if !doublestar.ValidatePattern(a.glob) {
			return nil, fmt.Errorf("invalid pattern %q", text)
		}
		if slices.Contains(strings.Split(a.glob, "/"), "..") {
			return nil, fmt.Errorf("pattern %q is %w", text, ErrOutside)
		}
		a.glob = strings.ToLower(a.glob)
		a.base = !a.top && !strings.Contains(a.glob, "/")
		p.alternatives = append(p.alternatives, a)
	}
	return p, nil
}

// belowTop takes the top's own path off an absolute pattern.
func (w *workspace) belowTop(glob string) (string, bool) {
	tops := []string{w.base, w.real}
	if !w.contained {
		tops = []string{volume(w.real)}
	}
	for _, t := range tops {
		t = strings.TrimSuffix(filepath.ToSlash(t), "/") + "/"
		if rest, ok := strings.CutPrefix(glob, t); ok {
			return rest, true
		}
	}
	return "", false
}

// match judges a file by its path below the folder searched and by its name below the top.
func (p *pattern) match(rel, name string) bool {
	rel, name = strings.ToLower(rel), strings.ToLower(name)
	for _, a := range p.alternatives {
		subject := rel
		switch {
		case a.top:
			subject = name
		case a.base:
			subject = path.Base(rel)
		}
		if doublestar.MatchUnvalidated(a.glob, subject) {
			return true
		}
	}
	return false
}

// expand writes out the braces of a valid pattern, in order.
func expand(glob string) ([]string, error) {
	done, todo := []string{}, []string{glob}
	for len(todo) > 0 {
		g := todo[0]
		head, choices, tail := firstBraces(g)
		if choices == nil {
			done, todo = append(done, g), todo[1:]
			continue
		}
		var next []string
		for _, c := range choices {
			next = append(next, head+c+tail)
		}
		todo = append(next, todo[1:]...)
		if len(done)+len(todo) > maxAlternatives {
			return nil, fmt.Errorf("the braces of the pattern stand for more than %d patterns", maxAlternatives)
		}
	}
	return done, nil
}

// firstBraces splits at the first {…} outside escapes and classes. choices is nil if there is none.
func firstBraces(g string) (head string, choices []string, tail string) {
	open, depth, from, class := -1, 0, 0, false
	for i := 0; i < len(g); i++ {
		switch c := g[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '{':
			if depth++; depth == 1 {
				open, from = i, i+1
			}
		case c == ',' && depth == 1:
			choices, from = append(choices, g[from:i]), i+1
		case c == '}' && depth > 0:
			if depth--; depth == 0 {
				return g[:open], append(choices, g[from:i]), g[i+1:]
			}
		}
	}
	return g, nil, ""
}
