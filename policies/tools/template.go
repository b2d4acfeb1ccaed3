package tools

import (
	"errors"
	"fmt"
	"strings"

	"github.com/open-multi-agent/oma/spec/canon"
)

// part is a piece of a template: literal text, or the name of an input property whose value stands in its place.
type part struct {
	text string
	name string // empty: text is meant
}

// parse reads a template. {name} stands for a value, {{ and }} for the braces themselves.
func parse(template string) ([]part, error) {
	var parts []part
	var text strings.Builder
	for rest := template; rest != ""; {
		i := strings.IndexAny(rest, "{}")
		if i < 0 {
			text.WriteString(rest)
			break
		}
		text.WriteString(rest[:i])
		rest = rest[i:]
		if strings.HasPrefix(rest, "{{") || strings.HasPrefix(rest, "}}") {
			text.WriteByte(rest[0])
			rest = rest[2:]
			continue
		}
		end := strings.IndexAny(rest[1:], "{}") + 1
		switch {
		case rest[0] == '}':
			return nil, errors.New("} closes nothing; write }} for a brace")
		case end == 0 || rest[end] == '{':
			return nil, errors.New("{ is not closed; write {{ for a brace")
		case end == 1:
			return nil, errors.New("{} names no property; write {{}} for braces")
		}
		if text.Len() > 0 {
			parts = append(parts, part{text: text.String()})
			text.Reset()
		}
		parts = append(parts, part{name: rest[1:end]})
		rest = rest[end+1:]
	}
	if text.Len() > 0 {
		parts = append(parts, part{text: text.String()})
	}
	return parts, nil
}

// value gives the text of an input property: text as it is, numbers and booleans as JSON has them.
func value(input map[string]any, name string) (string, error) {
	v, ok := input[name]
	if !ok {
		return "", fmt.Errorf("the input has no %q", name)
	}
	switch v := v.(type) {
	case string:
		return v, nil
	case bool, int64, float64:
		b, err := canon.Bytes(v)
		return string(b), err
	}
	return "", fmt.Errorf("the value of %q is no text, number or boolean", name)
}
