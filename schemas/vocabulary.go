package schemas

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

// keyword is what a member of a schema holds.
type keyword struct {
	asks  bool  // a value can fail it
	below below // where schemas stand in its value
}

type below int

const (
	nowhere below = iota // it is data: a member of it is no keyword
	itself               // it is a schema, or a list of schemas
	members              // each member is a schema, and their names are free
)

// vocabulary holds the keywords of the drafts 6 to 2020-12.
func vocabulary() map[string]keyword {
	all := map[string]keyword{}
	add := func(k keyword, names string) {
		for _, n := range strings.Fields(names) {
			all[n] = k
		}
	}
	add(keyword{false, nowhere}, `$schema $id id $anchor $dynamicAnchor $recursiveAnchor $vocabulary $comment title description
		default examples deprecated readOnly writeOnly contentEncoding contentMediaType`)
	add(keyword{false, itself}, "contentSchema")
	add(keyword{false, members}, "$defs definitions")
	add(keyword{true, nowhere}, `$ref $dynamicRef $recursiveRef type enum const multipleOf maximum exclusiveMaximum minimum
		exclusiveMinimum maxLength minLength pattern format maxItems minItems uniqueItems maxContains minContains
		maxProperties minProperties required dependentRequired`)
	add(keyword{true, itself}, `items prefixItems additionalItems contains additionalProperties propertyNames unevaluatedItems
		unevaluatedProperties allOf anyOf oneOf not if then else`)
	add(keyword{true, members}, "properties patternProperties dependentSchemas dependencies")
	return all
}

// Keywords gives every keyword of JSON Schema, sorted.
func Keywords() []string { return slices.Sorted(maps.Keys(vocabulary())) }

// Lint finds what a validator passes over and an author did not mean. unknown are the places, below at, where something
// stands for a keyword that is none: it asks for nothing. Names that begin with x- are nobody's mistake. idle: no
// keyword of the schema asks for anything, so that every value fits. What is no JSON has neither.
func Lint(s spec.Schema, at spec.Path) (unknown []spec.Path, idle bool) {
	var v any
	if json.Unmarshal(s, &v) != nil {
		return nil, false
	}
	l := linter{known: vocabulary()}
	l.schema(v, at)
	top, isMap := v.(map[string]any)
	idle = isMap && len(l.unknown) == 0 // one thing at a time: an unknown keyword was meant to ask for something
	for name := range top {
		idle = idle && !l.known[name].asks
	}
	return l.unknown, idle
}

type linter struct {
	known   map[string]keyword
	unknown []spec.Path
}

func (l *linter) schema(v any, at spec.Path) {
	switch v := v.(type) {
	case []any:
		for i, x := range v {
			l.schema(x, at.Index(i))
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			l.member(name, v[name], at.Key(name))
		}
	}
}

func (l *linter) member(name string, v any, at spec.Path) {
	k, ok := l.known[name]
	switch {
	case strings.HasPrefix(name, "x-"):
	case !ok:
		l.unknown = append(l.unknown, at)
	case k.below == itself:
		l.schema(v, at)
	case k.below == members:
		m, _ := v.(map[string]any)
		for _, n := range slices.Sorted(maps.Keys(m)) {
			l.schema(m[n], at.Key(n))
		}
	}
}
