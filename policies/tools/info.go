package tools

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// noInput is the schema of a tool that declares none.
const noInput = `{"type":"object","properties":{},"additionalProperties":false}`

// Info gives what a model and the rules are told of a tool.
func Info(name string, t *spec.CustomTool) spec.ToolInfo {
	info := spec.ToolInfo{Name: name, Description: cmp.Or(t.Description, fmt.Sprintf("Custom tool: %s", name)), InputSchema: t.InputSchema,
		OutputSchema: t.OutputSchema, Consequential: t.Consequential, Idempotent: t.Idempotent, MaxOutputChars: t.MaxOutputChars}
	if info.InputSchema == nil {
		info.InputSchema = spec.Schema(noInput)
	}
	return info
}

// Does says in a few words what a call of a tool does.
func Does(t *spec.CustomTool) string {
	if t.HTTP != nil {
		return cmp.Or(t.HTTP.Method, http.MethodGet) + " " + t.HTTP.URL
	}
	return "starts " + strings.Join(t.Command, " ")
}

// Needs gives the names of the credentials that a tool is given, in the order of the file and of the headers.
func Needs(t *spec.CustomTool) []string {
	names := slices.Clone(t.Credentials)
	if t.HTTP != nil {
		for _, header := range slices.Sorted(maps.Keys(t.HTTP.Headers)) {
			if name := t.HTTP.Headers[header].Credential; name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// Undeclared gives a function that takes members out of an input which its schema does not declare and which rules
// therefore cannot see: of objects with properties and with nothing that lets others in. The function changes its
// argument; it is safe for concurrent use.
func Undeclared(schema spec.Schema) (func(input map[string]any), error) {
	if len(schema) == 0 {
		return func(map[string]any) {}, nil
	}
	decoded, err := canon.Decode(schema)
	if err != nil {
		return nil, fmt.Errorf("schema is not valid JSON: %w", err)
	}
	return func(input map[string]any) { drop(decoded, input) }, nil
}

func drop(schema, v any) {
	s, ok := schema.(map[string]any)
	if !ok {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			drop(s["items"], e)
		}
	case map[string]any:
		props, _ := s["properties"].(map[string]any)
		closed := len(props) > 0 && !open(s)
		for name, e := range v {
			if p, ok := props[name]; ok {
				drop(p, e)
			} else if closed {
				delete(v, name)
			}
		}
	}
}

// open says that a schema lets members in which its properties do not name, with a word of what they are.
func open(s map[string]any) bool {
	if _, ok := s["additionalProperties"].(map[string]any); ok {
		return true
	}
	for _, k := range [...]string{"patternProperties", "oneOf", "anyOf", "allOf", "not", "if"} {
		if s[k] != nil {
			return true
		}
	}
	return false
}

// properties gives the declared properties of an input schema and those that every valid input has: required ones, and
// ones with a default, which is filled in.
func properties(schema spec.Schema) (props map[string]map[string]any, always map[string]bool) {
	var s struct {
		Properties map[string]json.RawMessage
		Required   []string
	}
	props, always = map[string]map[string]any{}, map[string]bool{}
	if json.Unmarshal(schema, &s) != nil {
		return props, always
	}
	for name, raw := range s.Properties {
		var p map[string]any
		_ = json.Unmarshal(raw, &p) // a schema that is no object says nothing of the type
		props[name] = p
		if _, ok := p["default"]; ok {
			always[name] = true
		}
	}
	for _, name := range s.Required {
		always[name] = true
	}
	return props, always
}
