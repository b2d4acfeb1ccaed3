package schemas

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/open-multi-agent/oma/spec"
)

func newRegexp(expr string) (jsonschema.Regexp, error) { return regexp.Compile(expr) }

func violation(doc any, e *jsonschema.ValidationError) Violation {
	v := Violation{}
	v.Path, v.Got = locate(doc, e.InstanceLocation)
	if kw := e.ErrorKind.KeywordPath(); len(kw) > 0 {
		v.Keyword = kw[0]
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		v.Want = k.Missing
		v.Message = fmt.Sprintf("missing %s", list(k.Missing))
	case *kind.AdditionalProperties:
		v.Want = k.Properties
		slices.Sort(v.Want)
		v.Message = fmt.Sprintf("unknown %s", list(v.Want))
	case *kind.Enum:
		for _, w := range k.Want {
			v.Want = append(v.Want, fmt.Sprint(w))
		}
		v.Message = fmt.Sprintf("%s is not one of %s", shown(k.Got), strings.Join(v.Want, ", "))
	case *kind.Const:
		v.Want = []string{fmt.Sprint(k.Want)}
		v.Message = fmt.Sprintf("%s is not %s", shown(k.Got), shown(k.Want))
	case *kind.Type:
		v.Want = k.Want
		v.Message = fmt.Sprintf("got %s, want %s", named(k.Got), either(k.Want))
	case *kind.Pattern:
		v.Want = []string{k.Want}
		v.Message = fmt.Sprintf("%s does not match %s", shown(k.Got), k.Want)
	case *kind.Not:
		v.Keyword = "not"
		v.Message = fmt.Sprintf("%s is not allowed here", shown(v.Got))
	case *kind.Minimum:
		v.Message = fmt.Sprintf("%s is too small, want at least %s", shown(v.Got), decimal(k.Want))
	case *kind.ExclusiveMinimum:
		v.Message = fmt.Sprintf("%s is too small, want more than %s", shown(v.Got), decimal(k.Want))
	case *kind.Maximum:
		v.Message = fmt.Sprintf("%s is too large, want at most %s", shown(v.Got), decimal(k.Want))
	case *kind.MinLength:
		v.Message = fmt.Sprintf("%s is too short, want at least %d characters", shown(v.Got), k.Want)
	case *kind.MinItems:
		v.Message = fmt.Sprintf("has %d entries, want at least %d", k.Got, k.Want)
	case *kind.MinProperties:
		v.Message = fmt.Sprintf("has %d keys, want at least %d", k.Got, k.Want)
	case *kind.UniqueItems:
		v.Path = v.Path.Index(k.Duplicates[1])
		v.Got = v.Got.([]any)[k.Duplicates[1]]
		v.Message = fmt.Sprintf("%s is already in the list", shown(v.Got))
	case *kind.FalseSchema:
		v.Message = "not allowed here"
	default:
		v.Message = strings.ReplaceAll(e.ErrorKind.LocalizedString(english), "'", "")
	}
	return v
}

// locate gives the path and the value at a location. It needs the value to tell an element from a member named 0.
func locate(doc any, steps []string) (spec.Path, any) {
	var p spec.Path
	for _, s := range steps {
		switch t := doc.(type) {
		case []any:
			i, err := strconv.Atoi(s)
			if err != nil || i < 0 || i >= len(t) {
				return p, doc
			}
			p, doc = p.Index(i), t[i]
		case map[string]any:
			p, doc = p.Key(s), t[s]
		default:
			return p, doc
		}
	}
	return p, doc
}

// decimal writes a bound without an exponent; bounds in our schemas are short.
func decimal(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	return strings.TrimRight(r.FloatString(12), "0")
}

// maxNames is how many names a message lists.
const maxNames = 20

func list(names []string) string {
	q := make([]string, 0, maxNames+1)
	for i, n := range names {
		if i == maxNames {
			q = append(q, fmt.Sprintf("and %d more", len(names)-maxNames))
			break
		}
		q = append(q, strconv.Quote(n))
	}
	return strings.Join(q, ", ")
}

// named says a JSON type in words for people.
func named(t string) string {
	switch t {
	case "object":
		return "a map"
	case "array":
		return "a list"
	case "string":
		return "text"
	case "integer":
		return "a whole number"
	case "number":
		return "a number"
	case "boolean":
		return "true or false"
	}
	return t
}

func either(types []string) string {
	words := make([]string, len(types))
	for i, t := range types {
		words[i] = named(t)
	}
	return strings.Join(words, " or ")
}

// shown quotes a value from a document, cut so that one long text does not fill the screen.
func shown(v any) string {
	s, ok := v.(string)
	if !ok {
		s = fmt.Sprint(v)
	}
	if r := []rune(s); len(r) > 60 {
		s = string(r[:57]) + "…"
	}
	if !ok {
		return s
	}
	return strconv.Quote(s)
}
