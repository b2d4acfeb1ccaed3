package plandiff

import (
	"maps"
	"slices"
	"strings"
)

// elementsOf are the elements of a list or an object, by name.
type elementsOf struct {
	names []string // in their order; of an object sorted
	of    map[string]any
}

// named tells elements apart by their names. ok is false where that cannot be done: two have one name, or one has none.
func named(p *part, v any) (e elementsOf, ok bool) {
	e.of = map[string]any{}
	switch v := v.(type) {
	case nil:
	case object:
		e.names, e.of = sortedKeys(v), v
	case []any:
		for _, x := range v {
			name := nameOf(p, x)
			if _, twice := e.of[name]; twice || name == "" {
				return e, false
			}
			e.names, e.of[name] = append(e.names, name), x
		}
	default:
		return e, false
	}
	for _, x := range e.of {
		if x == nil {
			return e, false // it would pass for one that is not there
		}
	}
	return e, true
}

// nameOf gives the name of an element of a list. Empty: it has none.
func nameOf(p *part, x any) string {
	if p.by == nil {
		s, _ := x.(string)
		return s
	}
	var words []string
	o, _ := x.(object)
	for _, key := range p.by {
		list, _ := texts(o[key])
		words = append(append(words, member(x, key)), list...)
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

// unnamed is an element, or nil where it is no more than its name.
func unnamed(e any, name string) any {
	if e == any(name) {
		return nil
	}
	return e
}

// in gives those names, in their order, that others has too.
func (e elementsOf) in(others elementsOf) (both []string) {
	for _, name := range e.names {
		if _, ok := others.of[name]; ok {
			both = append(both, name)
		}
	}
	return both
}

// member gives a text of an object. Empty: it has none.
func member(v any, name string) string {
	o, _ := v.(object)
	s, _ := o[name].(string)
	return s
}

// texts gives the texts of a list. ok is false for anything but a list of texts; no list is an empty one.
func texts(v any) (out []string, ok bool) {
	list, ok := v.([]any)
	if !ok {
		return nil, v == nil
	}
	for _, x := range list {
		s, ok := x.(string)
		if !ok {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}

// union gives the names of both, those of b where they stand and what only a has behind them.
func union(a, b []string) []string {
	seen := make(map[string]bool, len(b))
	for _, name := range b {
		seen[name] = true
	}
	out := slices.Clone(b)
	for _, name := range a {
		if !seen[name] {
			out = append(out, name)
		}
	}
	return out
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func sortedKeys(o object) []string { return slices.Sorted(maps.Keys(o)) }
