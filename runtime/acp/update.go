package acp

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// callUpdate is what is read of a call, in an update or a request for permission. Absent members leave what was said
// before.
type callUpdate struct {
	ID        string          `json:"toolCallId"`
	Title     *string         `json:"title"`
	Kind      *string         `json:"kind"`
	Status    *string         `json:"status"`
	Input     json.RawMessage `json:"rawInput"`
	Output    json.RawMessage `json:"rawOutput"`
	Content   json.RawMessage `json:"content"`
	Locations json.RawMessage `json:"locations"`
}

// call is a call as it is known so far: what is shown, and what a request for permission leans on.
type call struct {
	shown ToolCall
	facts facts
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

func (c *call) update(o *Options, u *callUpdate) {
	c.facts.update(o.Dir, u)
	if u.Title != nil {
		c.shown.Title = clip(o.redact(*u.Title), maxName)
	}
	c.shown.Kind = kindOf(c.facts.kind)
	if u.Status != nil {
		c.shown.Status = clip(o.redact(*u.Status), maxName)
	}
	if !isNull(u.Input) {
		c.shown.Input = clip(redactJSON(o, u.Input), maxField)
	}
	if text := callOutput(o, u); text != "" {
		c.shown.Output = clip(text, maxField)
	}
}

// callOutput gives what a call put out: rawOutput if it is text or JSON, else the text of its content.
func callOutput(o *Options, u *callUpdate) string {
	if !isNull(u.Output) {
		var text string
		if json.Unmarshal(u.Output, &text) == nil {
			return o.redact(text)
		}
		return redactJSON(o, u.Output)
	}
	if isNull(u.Content) {
		return ""
	}
	var parts []struct {
		Type    string `json:"type"`
		Content block  `json:"content"`
	}
	if json.Unmarshal(u.Content, &parts) != nil {
		return redactJSON(o, u.Content)
	}
	var texts []string
	for _, p := range parts {
		if text := p.Content.text(); p.Type == "content" && text != "" {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 && len(parts) > 0 {
		return redactJSON(o, u.Content)
	}
	return o.redact(strings.Join(texts, "\n"))
}

// block is a block of content.
type block struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// text gives what a block says. Blocks of other kinds say nothing.
func (b block) text() string {
	if b.Type != "text" {
		return ""
	}
	return b.Text
}

// rawUpdate bounds an update that is kept as it was sent.
func rawUpdate(o *Options, kind string, raw json.RawMessage) Update {
	u := Update{Kind: clip(o.redact(kind), maxName), Size: len(raw)}
	if len(raw) > maxRaw || !utf8.Valid(raw) {
		return u
	}
	if text := redactJSON(o, raw); json.Valid([]byte(text)) {
		u.Raw = json.RawMessage(text)
	}
	return u
}
