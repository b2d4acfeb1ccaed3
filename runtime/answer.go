package runtime

import (
	"encoding/json"
	"strings"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/schemas"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// answerCheck holds a final answer against an agent's output schema. Like tool arguments it is decoded once; release
// requirements see that value.
func answerCheck(v *schemas.Validator, schema spec.Schema) core.AnswerCheck {
	var shape any
	if err := json.Unmarshal(schema, &shape); err != nil {
		return func(string) (any, string) { return nil, "the output schema is not valid JSON" }
	}
	return func(text string) (any, string) {
		value, err := canon.Decode([]byte(jsonIn(text)))
		if err != nil {
			return nil, err.Error()
		}
		value = canon.Shape(shape, value)
		var problems []string
		for _, p := range v.Validate(value) {
			at := string(p.Path)
			if at != "" {
				at += ": "
			}
			problems = append(problems, at+p.Message)
		}
		return value, strings.Join(problems, "; ")
	}
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
