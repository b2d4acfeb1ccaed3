package policies

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
)

// shape is what a JSON Schema says of one place in a value: to the checker a type, to the linter words and optional
// members, to the estimate a size. Values stay what the decoder gave. A shape may contain itself.
type shape struct {
	typ *types.Type
	// size is the most runes of a string, items of a list or entries of a map.
	size uint64
	// words are the only values of a string. nil: any.
	words []string
	// elem is of list items, of map values or of undeclared members. On an object nil means that there are none.
	elem   *shape
	fields map[string]*shape
	names  []string // of fields, sorted
	// always has the fields that are in every valid value: required, or filled in from a default.
	always map[string]bool
}

// closed says that the fields are known to be all there are.
func (s *shape) closed() bool { return s.typ.Kind() == types.StructKind && s.elem == nil }

// at follows a path as the cost estimate writes it: member names, @items, @values. nil: the path leads nowhere known.
func (s *shape) at(path []string) *shape {
	for _, step := range path {
		if s == nil {
			return nil
		}
		if f, ok := s.fields[step]; ok {
			s = f
		} else {
			s = s.elem
		}
	}
	return s
}

// bound is the size, 0 where it is not known.
func (s *shape) bound() uint64 {
	if s == nil {
		return 0
	}
	return s.size
}

// maxSchemaDepth ends a recursion that passes through no object, such as a list of itself.
const maxSchemaDepth = 32

// schemaReader makes shapes from one JSON Schema. An object with properties is closed even where
// additionalProperties is left out, as it is in most schemas in the field: only so is a misspelt field an error.
type schemaReader struct {
	provider *provider
	root     any
	limit    uint64            // bytes of a whole value: bounds whatever has no bound of its own
	refs     map[string]*shape // by reference; an object's stands here before its fields do
}

// place is where in the schema the reader is.
type place struct {
	name  string // the type's name. It has a space in it, so that no rule can name or build the type
	depth int
	// bare says that defaults are not filled in here: canon.Shape follows no references.
	bare bool
}

func (p place) in(step string) place { p.name += step; p.depth++; return p }

func (r *schemaReader) shape(at place, schema any) (*shape, error) {
	s, ok := schema.(map[string]any)
	if !ok || at.depth > maxSchemaDepth {
		return r.dyn(), nil
	}
	if ref, ok := s["$ref"].(string); ok {
		return r.resolve(at, ref)
	}
	if combined(s) && s["properties"] == nil {
		return r.dyn(), nil // a union: the checker must not guess
	}
	kind, nullable := kindOf(s)
	out, err := r.kind(at, kind, s)
	if err != nil || !nullable {
		return out, err
	}
	switch out.typ.Kind() {
	case types.BoolKind, types.IntKind, types.DoubleKind, types.StringKind:
		out.typ = types.NewNullableType(out.typ)
		return out, nil
	}
	return r.dyn(), nil // CEL has no nullable objects and lists
}

func (r *schemaReader) dyn() *shape { return &shape{typ: types.DynType, size: r.limit} }

func (r *schemaReader) kind(at place, kind string, s map[string]any) (*shape, error) {
	switch kind {
	case "boolean":
		return &shape{typ: types.BoolType}, nil
	case "integer":
		return &shape{typ: types.IntType}, nil
	case "number":
		return &shape{typ: types.DoubleType}, nil
	case "string":
		return r.text(s), nil
	case "array":
		return r.list(at, s)
	case "object":
		return r.object(at, s)
	}
	return r.dyn(), nil
}

func (r *schemaReader) text(s map[string]any) *shape {
	out := &shape{typ: types.StringType, size: r.bound(s, "maxLength", r.limit), words: wordsOf(s)}
	if out.words != nil {
		out.size = 0
		for _, w := range out.words {
			out.size = max(out.size, uint64(len(w)))
		}
	}
	return out
}

func (r *schemaReader) list(at place, s map[string]any) (*shape, error) {
	items := s["items"]
	if s["prefixItems"] != nil {
		items = nil
	}
	elem, err := r.shape(at.in("[]"), items)
	if err != nil {
		return nil, err
	}
	return &shape{typ: types.NewListType(elem.typ), size: r.bound(s, "maxItems", r.limit/2), elem: elem}, nil
}

func (r *schemaReader) object(at place, s map[string]any) (*shape, error) {
	props, _ := s["properties"].(map[string]any)
	rest, err := r.undeclared(at, s)
	if err != nil {
		return nil, err
	}
	if len(props) == 0 && s["additionalProperties"] != false {
		if rest == nil {
			rest = r.dyn()
		}
		return &shape{typ: types.NewMapType(types.StringType, rest.typ), size: r.bound(s, "maxProperties", r.limit/4), elem: rest}, nil
	}
	out := r.provider.object(at.name, rest)
	return out, r.members(at, out, s, props)
}

// undeclared gives the shape of members that properties does not name. nil: there are none.
func (r *schemaReader) undeclared(at place, s map[string]any) (*shape, error) {
	if extra, ok := s["additionalProperties"].(map[string]any); ok {
		return r.shape(place{at.name + " member", at.depth + 1, true}, extra)
	}
	if s["patternProperties"] != nil || combined(s) {
		return r.dyn(), nil
	}
	return nil, nil
}

func (r *schemaReader) members(at place, out *shape, s, props map[string]any) error {
	required, _ := s["required"].([]any)
	for _, name := range sortedKeys(props) {
		f, err := r.shape(at.in("."+name), props[name])
		if err != nil {
			return err
		}
		prop, _ := props[name].(map[string]any)
		_, def := prop["default"]
		out.add(name, f, slices.Contains(required, any(name)) || def && !at.bare)
	}
	return nil
}

// add must be called in the order of names.
func (s *shape) add(name string, f *shape, always bool) {
	s.fields[name] = f
	s.names = append(s.names, name)
	if always {
		s.always[name] = true
	}
}

func (r *schemaReader) resolve(at place, ref string) (*shape, error) {
	if s, ok := r.refs[ref]; ok {
		return s, nil
	}
	target, err := pointer(r.root, ref)
	if err != nil {
		return nil, err
	}
	root, _, _ := strings.Cut(at.name, " ")
	to := place{root + " " + ref, at.depth + 1, true}
	if m, ok := target.(map[string]any); ok && m["properties"] != nil && m["$ref"] == nil {
		// An object may refer to itself. The provider gives the same shape again when its turn comes.
		if kind, nullable := kindOf(m); kind == "object" && !nullable {
			r.refs[ref] = r.provider.object(to.name, nil)
		}
	}
	s, err := r.shape(to, target)
	if err == nil {
		r.refs[ref] = s
	}
	return s, err
}

// pointer follows a reference into the schema itself.
func pointer(root any, ref string) (any, error) {
	if !strings.HasPrefix(ref, "#") {
		return nil, fmt.Errorf("reference %q is not local", ref)
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for _, step := range strings.Split(strings.TrimPrefix(ref[1:], "/"), "/") {
		if step == "" {
			continue
		}
		m, ok := root.(map[string]any)
		if !ok || m[unescape.Replace(step)] == nil {
			return nil, fmt.Errorf("reference %q points nowhere", ref)
		}
		root = m[unescape.Replace(step)]
	}
	return root, nil
}

func combined(s map[string]any) bool {
	for _, k := range []string{"oneOf", "anyOf", "allOf", "not", "if"} {
		if s[k] != nil {
			return true
		}
	}
	return false
}

// kindOf gives the one JSON type of a schema, or nothing for a union.
func kindOf(s map[string]any) (kind string, nullable bool) {
	switch t := s["type"].(type) {
	case string:
		return t, false
	case []any:
		for _, k := range t {
			switch {
			case k == "null":
				nullable = true
			case kind != "":
				return "", false
			default:
				kind, _ = k.(string)
			}
		}
		return kind, nullable
	}
	switch {
	case s["properties"] != nil:
		return "object", false
	case wordsOf(s) != nil:
		return "string", false
	}
	return "", false
}

// wordsOf gives the words of an enum or a const, if all of them are strings.
func wordsOf(s map[string]any) (words []string) {
	values, ok := s["enum"].([]any)
	if c, isConst := s["const"]; isConst {
		values, ok = []any{c}, true
	}
	if !ok {
		return nil
	}
	for _, v := range values {
		w, ok := v.(string)
		if !ok {
			return nil
		}
		words = append(words, w)
	}
	return words
}

func (r *schemaReader) bound(s map[string]any, key string, otherwise uint64) uint64 {
	switch n := s[key].(type) {
	case int64:
		if n >= 0 {
			return min(uint64(n), otherwise)
		}
	case float64:
		if n >= 0 && n < float64(otherwise) {
			return uint64(n)
		}
	}
	return otherwise
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
