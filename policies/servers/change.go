package servers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/open-multi-agent/oma/spec"
)

// The kinds of changes.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed"
)

// Change is a way in which a server's tools differ from those that were locked.
type Change struct {
	Kind   string        `json:"kind"`
	Server string        `json:"server"`
	Tool   string        `json:"tool"`
	Fields []FieldChange `json:"fields,omitempty"` // of a changed tool

	was, is spec.ServerTool
}

// FieldChange is a part of a tool with its digests. Empty: the tool has none.
type FieldChange struct {
	Field string `json:"field"` // description, inputSchema, outputSchema or annotations
	Was   string `json:"was,omitempty"`
	Is    string `json:"is,omitempty"`
}

// Differences gives the parts in which two descriptions of a tool differ.
func Differences(was, is *spec.ServerTool) ([]FieldChange, error) {
	before, err := partsOf(was)
	if err != nil {
		return nil, err
	}
	after, err := partsOf(is)
	if err != nil {
		return nil, err
	}
	var out []FieldChange
	for i, b := range before {
		if b.Is != after[i].Is {
			out = append(out, FieldChange{b.Field, b.Is, after[i].Is})
		}
	}
	return out, nil
}

// Compare holds what a server has against what was locked, by the tools' names. No changes mean that the lock holds.
func Compare(server string, locked, tools []spec.ServerTool) ([]Change, error) {
	before := map[string]spec.ServerTool{}
	for _, t := range locked {
		before[t.Name] = t
	}
	var out []Change
	for _, is := range tools {
		was, ok := before[is.Name]
		delete(before, is.Name)
		if !ok {
			out = append(out, Change{Kind: Added, Server: server, Tool: is.Name, is: is})
			continue
		}
		fields, err := Differences(&was, &is)
		if err != nil {
			return nil, fmt.Errorf("tool %q of MCP server %q: %w", is.Name, server, err)
		}
		if len(fields) > 0 {
			out = append(out, Change{Changed, server, is.Name, fields, was, is})
		}
	}
	for name, was := range before {
		out = append(out, Change{Kind: Removed, Server: server, Tool: name, was: was})
	}
	slices.SortFunc(out, func(a, b Change) int { return cmp.Compare(a.Tool, b.Tool) })
	return out, nil
}

// Diff shows changes to people: what a part was and what it is. A text of a server is quoted, since it may hold
// anything.
func Diff(changes []Change) string {
	var b strings.Builder
	for _, c := range changes {
		fmt.Fprintf(&b, "MCP server %q: tool %q %s\n", c.Server, c.Tool, c.Kind)
		for _, f := range c.Fields {
			fmt.Fprintf(&b, "  %s\n", f.Field)
			before, after := part(&c.was, f.Field), part(&c.is, f.Field)
			at := common(before, after)
			line(&b, '-', before, at, f.Was)
			line(&b, '+', after, at, f.Is)
		}
	}
	return b.String()
}

func part(t *spec.ServerTool, field string) string {
	switch field {
	case "description":
		return t.Description
	case "inputSchema":
		return string(t.InputSchema)
	case "outputSchema":
		return string(t.OutputSchema)
	}
	return t.Hints.String()
}

// shown is how much of a part one line of a diff has, in bytes, from a little before the place where it differs.
const shown, lead = 240, 40

// common gives where two texts begin to differ.
func common(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return i
}

func line(b *strings.Builder, sign byte, text string, at int, digest string) {
	if digest == "" {
		fmt.Fprintf(b, "  %c (none)\n", sign)
		return
	}
	head, tail := "", ""
	if from := at - lead; from > 0 && len(text) > shown {
		head, text = "…", strings.ToValidUTF8(text[from:], "")
	}
	if len(text) > shown {
		end := shown
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		tail, text = "…", text[:end]
	}
	fmt.Fprintf(b, "  %c %s%q%s (%s)\n", sign, head, text, tail, digest)
}
