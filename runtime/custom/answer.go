package custom

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// structured says that an answer must be read as JSON.
func (t *tool) structured() bool { return t.spec.Output == "json" || t.spec.Output == "rich" }

// answer reads what a tool gave as what it was declared to be.
func (t *tool) answer(text string) spec.ToolResult {
	if !t.structured() {
		if text == "" && t.spec.OutputSchema == nil {
			text = "(no output)" // a model takes an empty answer for a lost one
		}
		return spec.ToolResult{Text: t.clean(text)}
	}
	doc, err := oneValue(text)
	if err != nil {
		return t.failed("its output is not one JSON value: %v", err)
	}
	if t.spec.Output == "json" {
		return t.value(doc)
	}
	out, err := rich(doc)
	if err != nil {
		return t.failed("its output is not {data, modelOutput}: %v", err)
	}
	return t.masked(out)
}

// masked takes secrets out of all that a rich result has: what is read of it first, since a mask must not meet base64.
func (t *tool) masked(out spec.ToolResult) spec.ToolResult {
	if out.Data != nil {
		out.Data = t.mask(out.Data)
	}
	out.Text = t.clean(out.Text)
	for i, a := range out.Attachments {
		out.Attachments[i] = a.Masked(t.Redact)
	}
	return out
}

// most is how much is read of an answer, in bytes. A rich one can hold as much as may be attached, as base64.
func (t *tool) most() int {
	if t.spec.Output == "rich" {
		return maxRich
	}
	return maxAnswer
}

// found gives a part of an answer: text as itself, anything else as JSON.
func (t *tool) found(doc json.RawMessage) spec.ToolResult {
	var text string
	if !t.structured() && len(doc) > 0 && doc[0] == '"' && json.Unmarshal(doc, &text) == nil {
		return spec.ToolResult{Text: t.clean(text), Data: t.mask(doc)}
	}
	if t.spec.Output == "rich" {
		return t.answer(string(doc))
	}
	return t.value(doc)
}

func (t *tool) value(doc []byte) spec.ToolResult {
	doc = t.mask(doc)
	return spec.ToolResult{Text: string(doc), Data: doc}
}

// oneValue checks that a text is exactly one JSON value, with no name twice, and takes the white space out of it.
// Numbers keep their digits and members their order.
func oneValue(text string) ([]byte, error) {
	if _, err := canon.Canonical([]byte(text)); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err := json.Compact(&b, []byte(text))
	return b.Bytes(), err
}

// mask takes secrets out of a JSON text: out of each string and number by itself, where no escape hides them, and then out
// of the text as it stands, where a name says what the value beside it is, as long as that leaves it JSON.
func (t *tool) mask(doc []byte) []byte {
	var out []byte
	for rest := doc; len(rest) > 0; {
		n := tokenEnd(rest)
		out = append(out, t.maskToken(rest[:n])...)
		rest = rest[n:]
	}
	if text := t.clean(string(out)); json.Valid([]byte(text)) {
		return []byte(text)
	}
	return out
}

// tokenEnd gives the length of the string or word that a compact JSON text begins with, or of its one mark.
func tokenEnd(text []byte) int {
	if text[0] == '"' {
		return stringEnd(text)
	}
	if n := bytes.IndexAny(text, "\"{}[]:,"); n > 0 {
		return n
	} else if n < 0 {
		return len(text)
	}
	return 1
}

// stringEnd gives the length of the JSON string that a text begins with.
func stringEnd(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// maskToken takes a secret out of a token, which is a string afterwards.
func (t *tool) maskToken(token []byte) []byte {
	plain := string(token)
	if token[0] == '"' && json.Unmarshal(token, &plain) != nil {
		return token
	}
	masked := t.Redact(plain)
	if masked == plain {
		return token
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(masked) != nil { // a string always has an encoding
		return []byte(`""`)
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}
