package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Pointer is a JSON Pointer (RFC 6901). The empty one points at the whole document.
type Pointer []string

// ParsePointer reads a JSON Pointer.
func ParsePointer(text string) (Pointer, error) {
	if text == "" {
		return nil, nil
	}
	if text[0] != '/' {
		return nil, fmt.Errorf("%q is no JSON Pointer: it begins with /, as in /data/0/name", text)
	}
	steps := strings.Split(text[1:], "/")
	for i, step := range steps {
		if rest := strings.NewReplacer("~0", "", "~1", "").Replace(step); strings.Contains(rest, "~") {
			return nil, fmt.Errorf("%q is no JSON Pointer: ~ is written ~0, and / in a name ~1", text)
		}
		steps[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
	}
	return steps, nil
}

// Find gives what the pointer points at in a valid JSON text, as it is written there.
func (p Pointer) Find(doc []byte) (json.RawMessage, error) {
	for i, step := range p {
		next, err := child(doc, step)
		if err != nil {
			return nil, fmt.Errorf("/%s: %w", strings.Join(p[:i+1], "/"), err)
		}
		doc = next
	}
	return doc, nil
}

func child(doc []byte, step string) (json.RawMessage, error) {
	var object map[string]json.RawMessage
	var list []json.RawMessage
	switch {
	case json.Unmarshal(doc, &object) == nil && object != nil:
		if v, ok := object[step]; ok {
			return v, nil
		}
		return nil, errors.New("there is no such member")
	case json.Unmarshal(doc, &list) == nil && list != nil:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(list) && strconv.Itoa(i) == step {
			return list[i], nil
		}
		return nil, fmt.Errorf("there is no such element among %d", len(list))
	}
	return nil, errors.New("it is below a value that has no members")
}
