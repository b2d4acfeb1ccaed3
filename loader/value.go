package loader

import (
	"fmt"

	"gopkg.in/yaml.v3"

	"github.com/open-multi-agent/oma/spec"
)

const (
	// maxProblems bounds what is collected for one document; far fewer are shown.
	maxProblems = 1000
	// maxDepth bounds nesting. A team file needs about ten.
	maxDepth = 100
)

// place is the way from the root to a value. nil is the root. Paths are only made for problems.
type place struct {
	up    *place
	key   string
	index int // -1: key
}

func (p *place) at(key string) *place { return &place{p, key, -1} }
func (p *place) element(i int) *place { return &place{p, "", i} }
func (p *place) path() (path spec.Path) {
	if p == nil {
		return ""
	}
	if p.index >= 0 {
		return p.up.path().Index(p.index)
	}
	return p.up.path().Key(p.key)
}

// reader turns nodes into JSON values: map[string]any, []any, string, bool, json.Number and nil.
type reader struct {
	doc *document
	ds  spec.Diagnostics
	// bad holds the places that were refused; what the schema says of them is of no interest.
	bad    map[spec.Path]bool
	open   map[*yaml.Node]bool // anchors that are being expanded
	outer  *yaml.Node          // the alias that stands outside all others
	depth  int
	copied int // bytes that aliases have repeated
}

func (d *document) read() (any, *reader) {
	r := &reader{doc: d, bad: map[spec.Path]bool{}, open: map[*yaml.Node]bool{}}
	return r.value(d.root, nil), r
}

// refuse reports a value that cannot be read.
func (r *reader) refuse(n *yaml.Node, at *place, code, format string, args ...any) *spec.Diagnostic {
	if len(r.ds) < maxProblems { // else nothing is asked any more
		r.bad[at.path()] = true
	}
	return r.complain(n, at, code, format, args...)
}

// complain reports a problem once: inside an alias it was reported where the anchor stands. The result may be given a
// hint.
func (r *reader) complain(n *yaml.Node, at *place, code, format string, args ...any) *spec.Diagnostic {
	if len(r.open) > 0 || len(r.ds) >= maxProblems {
		return new(spec.Diagnostic)
	}
	return r.report(n, at, code, format, args...)
}

func (r *reader) report(n *yaml.Node, at *place, code, format string, args ...any) *spec.Diagnostic {
	d := r.ds.Errorf(code, at.path(), format, args...)
	d.Pos, d.Width = r.doc.span(n)
	return d
}

// abandon reports what makes the whole document unreadable.
func (r *reader) abandon(n *yaml.Node, at *place, code, format string, args ...any) {
	if !r.bad[""] {
		r.report(n, at, code, format, args...)
	}
	r.bad[""] = true
}

func (r *reader) value(n *yaml.Node, at *place) any {
	if r.depth++; r.depth > maxDepth {
		r.abandon(n, at, "too-deep", "more than %d levels of nesting", maxDepth)
		r.depth--
		return nil
	}
	defer func() { r.depth-- }()
	if n.Kind == yaml.AliasNode {
		return r.alias(n, func(target *yaml.Node) any { return r.value(target, at) })
	}
	if !r.repeat(n) {
		return nil
	}
	if tag := r.foreignTag(n); tag != "" {
		r.bad[at.path()] = true
		r.tagged(n, at, tag)
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		r.mapping(n, at, m)
		return m
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, c := range n.Content {
			list[i] = r.value(c, at.element(i))
		}
		return list
	}
	return r.scalar(n, at)
}

// alias expands an alias, but neither into itself nor without end.
func (r *reader) alias(n *yaml.Node, expand func(*yaml.Node) any) any {
	if r.open[n.Alias] {
		r.abandon(n, nil, "alias-cycle", "alias %q stands inside its own anchor", "*"+n.Value)
		return nil
	}
	if len(r.open) == 0 {
		r.outer = n
	}
	r.open[n.Alias] = true
	defer delete(r.open, n.Alias)
	return expand(n.Alias)
}

// repeat counts what aliases repeat: as much as a file may hold, and 16 bytes a node for its bookkeeping.
func (r *reader) repeat(n *yaml.Node) bool {
	if len(r.open) == 0 {
		return true
	}
	if r.copied > maxFile {
		return false
	}
	if r.copied += len(n.Value) + 16; r.copied > maxFile {
		r.abandon(r.outer, nil, "alias-bomb", "aliases repeat more than %d MiB", maxFile>>20)
		return false
	}
	return true
}

// mapping adds the members of a map to into. A key that is already there beats a merged one.
func (r *reader) mapping(n *yaml.Node, at *place, into map[string]any) {
	lines := make(map[string]int, len(n.Content)/2)
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		name, ok := r.key(k, at)
		if !ok {
			continue
		}
		if line := lines[name]; line > 0 {
			r.complain(k, at.at(name), "duplicate-key", "key %q is already set on line %d", name, line)
			continue
		}
		lines[name] = k.Line
		if isMerge(k) {
			merges = append(merges, v)
			continue
		}
		into[name] = r.value(v, at.at(name))
	}
	for _, v := range merges {
		r.merge(v, at, into)
	}
}

func isMerge(k *yaml.Node) bool { return k.Kind == yaml.ScalarNode && k.ShortTag() == "!!merge" }

func (r *reader) merge(v *yaml.Node, at *place, into map[string]any) {
	switch {
	case v.Kind == yaml.AliasNode:
		r.alias(v, func(target *yaml.Node) any { r.merge(target, at, into); return nil })
	case v.Kind == yaml.SequenceNode:
		for _, c := range v.Content {
			r.merge(c, at, into)
		}
	case v.Kind == yaml.MappingNode && r.repeat(v):
		m := map[string]any{}
		r.mapping(v, at, m)
		for k, x := range m {
			if _, ok := into[k]; !ok {
				into[k] = x
			}
		}
	case v.Kind == yaml.ScalarNode:
		r.refuse(v, at.at("<<"), "bad-merge", "<< takes a map or a list of maps, got %s", quote(v.Value))
	}
}

// key gives the text of a key.
func (r *reader) key(k *yaml.Node, at *place) (string, bool) {
	if k.Kind == yaml.AliasNode {
		k = k.Alias
	}
	if tag := r.foreignTag(k); tag != "" {
		r.tagged(k, at, tag)
		return "", false
	}
	if k.Kind != yaml.ScalarNode {
		r.complain(k, at, "key-not-text", "a key is a list or a map, want text")
		return "", false
	}
	if tag := k.ShortTag(); tag != "!!str" && tag != "!!merge" {
		if k.Value == "" {
			r.complain(k, at, "key-not-text", "a key is missing before the colon")
			return "", false
		}
		r.complain(k, at, "key-not-text", "key %s is not text", k.Value).Hint = fmt.Sprintf("write %q", k.Value)
		return "", false
	}
	return k.Value, true
}
