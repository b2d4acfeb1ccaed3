package runtime

import (
	"strings"

	"github.com/open-multi-agent/oma/spec/canon"
)

// answer holds a final answer against an output schema. Like tool arguments it is decoded once; release requirements see
// that value. problem is empty when it fits.
func (s *schema) answer(text string) (value any, problem string) {
	value, err := canon.Decode([]byte(jsonIn(text)))
	if err != nil {
		return nil, err.Error()
	}
	value = canon.Shape(s.decoded, value)
	var problems []string
	for _, p := range s.validator.Validate(value) {
		at := string(p.Path)
		if at != "" {
			at += ": "
		}
		problems = append(problems, at+p.Message)
	}
	return value, strings.Join(problems, "; ")
}

// jsonIn finds the JSON value of an answer: the whole text, or else the text of its one fenced block.
func jsonIn(text string) string {
	text = strings.TrimSpace(text)
	before, rest, ok := strings.Cut(text, "```")
	if !ok {
		return text
	}
	body, after, ok := strings.Cut(rest, "```")
	if !ok || strings.Contains(after, "```") || strings.ContainsAny(before, "{[") {
		return text
	}
	body = strings.TrimPrefix(body, "json")
	return strings.TrimSpace(body)
}
