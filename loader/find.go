package loader

import (
	"gopkg.in/yaml.v3"

	"github.com/open-multi-agent/oma/spec"
)

// member is a value and the key it stands under. key is nil for the root and for elements.
type member struct{ key, value *yaml.Node }

// finder follows paths. It keeps the members of the maps it has passed: there may be a thousand places to find in a map
// of half a million keys.
type finder map[*yaml.Node]members

// members says where in its content a map has its keys.
type members struct {
	own    map[string]int
	merges []int
}

func (f finder) members(n *yaml.Node) members {
	m, ok := f[n]
	if ok {
		return m
	}
	m.own = make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := target(n.Content[i])
		if k.Kind != yaml.ScalarNode {
			continue
		}
		if isMerge(k) {
			m.merges = append(m.merges, i)
		} else if _, twice := m.own[k.Value]; !twice {
			m.own[k.Value] = i
		}
	}
	f[n] = m
	return m
}

// find follows a path from a document's root as far as it goes.
func (f finder) find(root *yaml.Node, p spec.Path) member {
	at := member{value: root}
	for _, step := range p.Split() {
		n := target(at.value)
		switch s := step.(type) {
		case int:
			if n.Kind != yaml.SequenceNode || s < 0 || s >= len(n.Content) {
				return at
			}
			at = member{value: n.Content[s]}
		case string:
			if n.Kind != yaml.MappingNode {
				return at
			}
			next, ok := f.lookUp(n, s, map[*yaml.Node]bool{})
			if !ok {
				return at
			}
			at = next
		}
	}
	if at.value.Kind == yaml.AliasNode && at.value.Alias.Kind == yaml.ScalarNode {
		at.value = at.value.Alias
	}
	return at
}

func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// lookUp finds a member of a map: its own first, then those of merged maps in their order. A map that was merged twice,
// or into itself, is asked once.
func (f finder) lookUp(n *yaml.Node, name string, asked map[*yaml.Node]bool) (member, bool) {
	n = target(n)
	if asked[n] {
		return member{}, false
	}
	asked[n] = true
	switch n.Kind {
	case yaml.SequenceNode:
		for _, c := range n.Content {
			if m, ok := f.lookUp(c, name, asked); ok {
				return m, true
			}
		}
	case yaml.MappingNode:
		all := f.members(n)
		if i, ok := all.own[name]; ok {
			return member{n.Content[i], n.Content[i+1]}, true
		}
		for _, i := range all.merges {
			if m, ok := f.lookUp(n.Content[i+1], name, asked); ok {
				return m, true
			}
		}
	}
	return member{}, false
}
