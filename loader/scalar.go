package loader

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// foreignTag gives a tag that is not of YAML's core, or "". The tag ! alone, which turns !has(x) with a blank after
// the ! into has(x), leaves no trace in the node and is looked up in the text.
func (r *reader) foreignTag(n *yaml.Node) string {
	if n.Style&yaml.TaggedStyle != 0 {
		switch n.ShortTag() {
		case "!!str", "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq":
			return ""
		}
		return n.Tag
	}
	if strings.HasPrefix(r.doc.properties(n), "!") {
		return "!"
	}
	return ""
}

// tagged reports a tag at its own place.
func (r *reader) tagged(n *yaml.Node, at *place, tag string) {
	d := r.complain(n, at, "yaml-tag", "%s is read as a YAML tag", quote(tag))
	untagged := *n
	untagged.Style &^= yaml.TaggedStyle
	d.Pos, _ = r.doc.content(&untagged)
	d.Width = utf8.RuneCountInString(tag)
	d.Hint = "a leading ! is a YAML tag; put the expression after |"
	if strings.HasPrefix(tag, "!!") {
		d.Hint = "leave the tag out; only text, numbers, true, false, lists and maps are known"
	}
}

func (r *reader) scalar(n *yaml.Node, at *place) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int", "!!float":
		v, why := number(n.Value)
		if why != "" {
			r.refuse(n, at, "number-form", "%s", why).Hint = numberHint(n.Value)
		}
		return v
	case "!!timestamp":
		r.refuse(n, at, "unquoted-date", "%s is read as a date", n.Value).Hint = fmt.Sprintf("write %q", n.Value)
		return nil
	}
	// What YAML takes for text though it has the form of a number is a number that does not fit.
	if n.Style == 0 && n.Value != "" && strings.Contains("-0123456789", n.Value[:1]) && json.Valid([]byte(n.Value)) {
		_, why := number(n.Value)
		r.refuse(n, at, "number-form", "%s", why).Hint = numberHint(n.Value)
		return nil
	}
	return n.Value
}

// maxNumber is the most characters a number may have; with three digits of exponent its exact value stays small.
const maxNumber = 400

// number accepts what JSON accepts, since everything else means different things to different readers, and keeps its
// text, which money and recorded arguments need. why says what is wrong.
func number(text string) (v any, why string) {
	if why := numberForm(text); why != "" {
		return nil, why
	}
	if !strings.ContainsAny(text, ".eE") {
		if _, err := strconv.ParseInt(text, 10, 64); err != nil {
			return nil, fmt.Sprintf("number %s does not fit into 64 bits", cut(text))
		}
		return json.Number(text), ""
	}
	_, err := strconv.ParseFloat(text, 64)
	if i := strings.IndexAny(text, "eE"); err != nil || len(text) > maxNumber || i >= 0 && len(text)-i > 5 {
		return nil, fmt.Sprintf("number %s is out of range", cut(text))
	}
	return json.Number(text), ""
}

// wholes rewrites 5.0 and 2e5 as 5 and 200000, which is what a schema takes for integers and Go does not. What
// belongs to tools and to schemas inside the document is left as it is written.
func wholes(v any) any {
	switch t := v.(type) {
	case map[string]any:
		for k, x := range t {
			_, number := x.(json.Number)
			if number || k != "input" && k != "outputSchema" {
				t[k] = wholes(x)
			}
		}
	case []any:
		for i, x := range t {
			t[i] = wholes(x)
		}
	case json.Number:
		if exact, ok := new(big.Rat).SetString(t.String()); ok && exact.IsInt() && exact.Num().IsInt64() {
			return json.Number(exact.Num().String())
		}
	}
	return v
}

func numberForm(text string) string {
	digits := strings.TrimLeft(text, "+-")
	switch lower := strings.ToLower(digits); {
	case json.Valid([]byte(text)):
		return ""
	case strings.HasSuffix(lower, "inf"), strings.HasSuffix(lower, "nan"):
		return fmt.Sprintf("%s is not a finite number", text)
	case strings.HasPrefix(lower, "0x"), strings.HasPrefix(lower, "0o"), strings.HasPrefix(lower, "0b"):
		return fmt.Sprintf("number %s is not decimal", cut(text))
	case strings.Contains(text, "_"):
		return fmt.Sprintf("number %s has an underscore", cut(text))
	case strings.HasPrefix(text, "+"):
		return fmt.Sprintf("number %s has a plus sign", cut(text))
	case strings.HasPrefix(digits, "."), strings.HasSuffix(digits, "."), strings.Contains(lower, ".e"):
		return fmt.Sprintf("number %s needs a digit on both sides of the point", cut(text))
	case strings.HasPrefix(digits, "0"):
		return fmt.Sprintf("number %s begins with 0, which some readers take for octal", cut(text))
	}
	return fmt.Sprintf("number %s is not written as in JSON", cut(text))
}

// numberHint offers the same digits where it is plain what they mean.
func numberHint(text string) string {
	plain := strings.TrimPrefix(strings.ReplaceAll(text, "_", ""), "+")
	if trimmed := strings.TrimLeft(plain, "0"); trimmed != "" && trimmed[0] >= '1' && trimmed[0] <= '9' {
		plain = trimmed
	}
	if v, why := number(plain); why == "" && plain != text {
		return fmt.Sprintf("write %v, or %q if it is text", v, text)
	}
	return fmt.Sprintf("write it in decimal digits, or %s if it is text", quote(text))
}

// quote shows text in a message, cut so that it does not fill the screen.
func quote(s string) string { return strconv.Quote(cut(s)) }

func cut(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:57]) + "…"
	}
	return s
}
