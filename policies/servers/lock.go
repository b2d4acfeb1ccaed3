package servers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// NewLock makes a lock of what servers have, by their names in the team file.
func NewLock(servers map[string][]spec.ServerTool) (*spec.Lock, error) {
	l := &spec.Lock{Envelope: spec.Envelope{APIVersion: spec.APIVersion, Kind: spec.KindLock}, Servers: map[string]spec.LockedServer{}}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		s := spec.LockedServer{Tools: []spec.LockedTool{}}
		for _, t := range servers[name] {
			digest, err := Digest(&t)
			if err != nil {
				return nil, fmt.Errorf("tool %q of MCP server %q: %w", t.Name, name, err)
			}
			s.Tools = append(s.Tools, spec.LockedTool{ServerTool: t, Digest: digest})
		}
		slices.SortFunc(s.Tools, func(a, b spec.LockedTool) int { return strings.Compare(a.Name, b.Name) })
		l.Servers[name] = s
	}
	return l, Verify(l)
}

// Encode gives the file's text. Equal locks have equal texts.
func Encode(l *spec.Lock) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(l)
	return b.Bytes(), err
}

// Verify holds the digests of a lock against its tools, and the tools against their order. An error says that the lock
// was edited by hand.
func Verify(l *spec.Lock) error {
	for _, name := range slices.Sorted(maps.Keys(l.Servers)) {
		last := ""
		for _, t := range l.Servers[name].Tools {
			digest, err := Digest(&t.ServerTool)
			switch {
			case err != nil:
				return fmt.Errorf("tool %q of MCP server %q: %w", t.Name, name, err)
			case t.Name <= last:
				return fmt.Errorf("the tools of MCP server %q are not in order, each once: %q comes after %q", name, t.Name, last)
			case digest != t.Digest:
				return fmt.Errorf("tool %q of MCP server %q is not what was locked: expected digest %s, found %s", t.Name, name, digest, t.Digest)
			}
			last = t.Name
		}
	}
	return nil
}

// Tools gives tools without their digests.
func Tools(locked []spec.LockedTool) []spec.ServerTool {
	tools := make([]spec.ServerTool, len(locked))
	for i, t := range locked {
		tools[i] = t.ServerTool
	}
	return tools
}

// partsOf gives what makes a tool what it is, each part with a digest that spelling does not change. Empty: there is none.
func partsOf(t *spec.ServerTool) ([]FieldChange, error) {
	hints, err := json.Marshal(t.Hints)
	if err != nil {
		return nil, err
	}
	all := []FieldChange{{Field: "description"}, {Field: "inputSchema"}, {Field: "outputSchema"}, {Field: "annotations"}}
	if t.Description != "" {
		all[0].Is = canon.Digest("mcp-description", []byte(t.Description))
	}
	for i, raw := range [][]byte{t.InputSchema, t.OutputSchema, hints} {
		if len(raw) == 0 {
			continue
		}
		c, err := canon.Canonical(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", all[i+1].Field, err)
		}
		all[i+1].Is = canon.Digest("mcp-"+all[i+1].Field, c)
	}
	return all, nil
}

// Digest gives one digest of all parts of a tool, its name included.
func Digest(t *spec.ServerTool) (string, error) {
	all, err := partsOf(t)
	if err != nil {
		return "", err
	}
	words := []any{t.Name}
	for _, p := range all {
		words = append(words, p.Is)
	}
	return canon.DigestOf("mcp-tool", words)
}
