package redact

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Value gives a copy of a decoded JSON value without secrets. What a sensitive key holds is replaced whole, and so is
// the element after a sensitive flag in a list of arguments and the value of a {name, value} pair; all other text, keys
// included, goes through [Redactor.Text]. A value that is not of JSON's kinds is replaced. Two keys that read the same
// afterwards become one.
func (r *Redactor) Value(v any) any {
	switch t := v.(type) {
	case nil, bool:
		return v
	case string:
		return r.Text(t)
	case json.Number, int, int64, uint64, float64:
		if text := fmt.Sprint(t); r.Text(text) != text {
			return Mark
		}
		return v
	case []any:
		return r.list(t)
	case map[string]any:
		return r.object(t)
	case []string:
		out := make([]any, len(t))
		for i, s := range t {
			out[i] = s
		}
		return r.list(out)
	case map[string]string:
		out := make(map[string]any, len(t))
		for k, s := range t {
			out[k] = s
		}
		return r.object(out)
	}
	return Mark
}

func (r *Redactor) list(list []any) []any {
	out := make([]any, len(list))
	afterFlag := false
	for i, e := range list {
		s, isText := e.(string)
		isFlag := isText && strings.HasPrefix(s, "-")
		if afterFlag && !isFlag {
			e = Mark
		}
		out[i] = r.Value(e)
		afterFlag = isFlag && !strings.ContainsAny(s, "= ") && SensitiveKey(s)
	}
	return out
}

func (r *Redactor) object(object map[string]any) map[string]any {
	out := make(map[string]any, len(object))
	named := pairName(object)
	for _, k := range slices.Sorted(maps.Keys(object)) {
		v := object[k]
		text, _ := v.(string)
		name := k
		if named != "" && strings.EqualFold(k, "value") {
			name = named
		}
		if v != nil && SensitiveKey(name) && !folder(name, text) {
			v = Mark
		}
		out[r.Text(k)] = r.Value(v)
	}
	return out
}

// pairName gives the name in {name: X-Api-Key, value: …}, as headers and variables are often written.
func pairName(object map[string]any) string {
	for _, k := range [...]string{"name", "Name", "key", "Key"} {
		if name, ok := object[k].(string); ok {
			return name
		}
	}
	return ""
}
