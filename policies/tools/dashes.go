package tools

import (
	"regexp/syntax"
	"slices"
	"strings"
)

// dashes says whether the value of a property may begin with -.
func (c *checker) dashes(name string) bool {
	prop := c.props[name]
	if words, ok := words(prop); ok {
		return slices.ContainsFunc(words, func(v any) bool {
			s, isText := v.(string)
			f, _ := v.(float64)
			return isText && strings.HasPrefix(s, "-") || f < 0
		})
	}
	switch prop["type"] {
	case "boolean":
		return false
	case "integer", "number":
		for _, k := range [...]string{"minimum", "exclusiveMinimum"} {
			if least, ok := prop[k].(float64); ok && least >= 0 {
				return false
			}
		}
		return true
	}
	pattern, _ := prop["pattern"].(string)
	return !dashless(pattern)
}

// dashless says that all a pattern matches begins with something else than -: it is bound to the start of the text, and
// what comes first there is no -.
func dashless(pattern string) bool {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return false
	}
	for re.Op == syntax.OpCapture {
		re = re.Sub[0]
	}
	if re.Op != syntax.OpConcat || re.Sub[0].Op != syntax.OpBeginText && re.Sub[0].Op != syntax.OpBeginLine {
		return false
	}
	first := re.Sub[1]
	for first.Op == syntax.OpCapture || first.Op == syntax.OpPlus || first.Op == syntax.OpRepeat && first.Min > 0 || first.Op == syntax.OpConcat {
		first = first.Sub[0]
	}
	switch first.Op {
	case syntax.OpLiteral:
		return first.Rune[0] != '-'
	case syntax.OpCharClass:
		for i := 0; i < len(first.Rune); i += 2 {
			if first.Rune[i] <= '-' && '-' <= first.Rune[i+1] {
				return false
			}
		}
		return true
	}
	return false
}
