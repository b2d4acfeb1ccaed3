package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/open-multi-agent/oma/policies/servers"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// answer is a result as servers write it.
type answer struct {
	ToolResult json.RawMessage `json:"toolResult"` // of the first revision of the protocol
	Content    json.RawMessage `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError"`
	Kind       string          `json:"resultType"` // empty: complete
}

// block is one of content. Which members it has goes by its type.
type block struct {
	Type        string    `json:"type"`
	Text        *string   `json:"text"`
	Data        *string   `json:"data"` // base64
	MIME        string    `json:"mimeType"`
	URI         string    `json:"uri"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Resource    *resource `json:"resource"`
}

type resource struct {
	URI  string  `json:"uri"`
	MIME string  `json:"mimeType"`
	Text *string `json:"text"`
	Blob *string `json:"blob"` // base64
}

// maxBlocks bounds the content of a result.
const maxBlocks = 10_000

// maxDataBytes bounds the value that an output schema is held against.
const maxDataBytes = 4 << 20

// result makes a tool's result of an answer.
func (c *Client) result(o *servers.Offered, text []byte) (spec.ToolResult, error) {
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		return spec.ToolResult{}, fmt.Errorf("MCP server %q: the answer is no result of a tool", c.name)
	}
	if a.Kind != "" && a.Kind != "complete" {
		return spec.ToolResult{}, fmt.Errorf("MCP server %q asks for more than the call: %q", c.name, shortened(a.Kind, maxMessage))
	}
	if string(a.Structured) == "null" {
		a.Structured = nil
	}
	said, err := a.said()
	if err == nil {
		err = spec.CheckAttachments(said.attached)
	}
	if err != nil {
		return spec.ToolResult{}, fmt.Errorf("MCP server %q: the content of the result: %w", c.name, err)
	}
	out := spec.ToolResult{Text: c.o.Redact(clipped(strings.Join(said.parts, "\n"))), IsError: a.IsError}
	for _, attached := range said.attached {
		out.Attachments = append(out.Attachments, attached.Masked(c.o.Redact))
	}
	if o.OutputSchema == nil || a.IsError {
		return out, nil
	}
	out.Data, err = c.data(a.Structured)
	return out, err
}

// data gives the value that an output schema is held against, with secrets taken out of its texts.
func (c *Client) data(structured json.RawMessage) (json.RawMessage, error) {
	switch {
	case structured == nil:
		return nil, fmt.Errorf("MCP server %q gave no structuredContent, which the tool's outputSchema asks for", c.name)
	case len(structured) > maxDataBytes:
		return nil, fmt.Errorf("MCP server %q gave %d bytes of structuredContent, at most %d are taken", c.name, len(structured), maxDataBytes)
	}
	v, err := canon.Decode(structured)
	if err != nil {
		return nil, fmt.Errorf("MCP server %q: structuredContent: %w", c.name, err)
	}
	return canon.Bytes(redacted(c.o.Redact, v))
}

func redacted(redact func(string) string, v any) any {
	switch t := v.(type) {
	case string:
		return redact(t)
	case []any:
		for i := range t {
			t[i] = redacted(redact, t[i])
		}
	case map[string]any:
		for k, e := range t {
			t[k] = redacted(redact, e)
		}
	}
	return v
}

// said is what the model is given.
func (a *answer) said() (said, error) {
	out := said{refused: a.IsError}
	if a.ToolResult != nil {
		out.parts = []string{string(a.ToolResult)}
		return out, nil
	}
	blocks, err := elements(a.Content, maxBlocks)
	if err != nil {
		return out, err
	}
	repeated := a.Structured == nil
	for _, raw := range blocks {
		isText := out.block(raw)
		repeated = repeated || isText && sameJSON(out.parts[len(out.parts)-1], a.Structured)
	}
	if !repeated {
		out.parts = append(out.parts, string(a.Structured))
	}
	return out, nil
}

// block adds a block. isText: it is the block's own text.
func (s *said) block(raw json.RawMessage) (isText bool) {
	var b block
	err := json.Unmarshal(raw, &b)
	switch r := b.Resource; {
	case err != nil:
	case b.Type == "text" && b.Text != nil:
		s.parts = append(s.parts, *b.Text)
		return true
	case (b.Type == "image" || b.Type == "audio") && b.Data != nil:
		if b.MIME == "" {
			b.MIME = b.Type + "/*"
		}
		s.media(b.Type, b.MIME, "", *b.Data)
		return false
	case b.Type == "resource_link": // an address of the server's, which nobody follows
		head := fmt.Sprintf("[resource_link name=%q uri=%q]", b.Name, b.URI)
		if b.Description != "" {
			head += "\n" + b.Description
		}
		s.parts = append(s.parts, head)
		return false
	case b.Type != "resource" || r == nil:
	case r.Text != nil:
		s.parts = append(s.parts, fmt.Sprintf("[resource %s]\n%s", r.URI, *r.Text))
		return false
	case r.Blob != nil:
		s.parts = append(s.parts, fmt.Sprintf("[resource %s]", r.URI))
		s.media("file", r.MIME, fileName(r.URI), *r.Blob)
		return false
	}
	var flat bytes.Buffer
	_ = json.Compact(&flat, raw) // it was decoded once already
	s.parts = append(s.parts, fmt.Sprintf("[%s]\n%s", b.Type, flat.String()))
	return false
}

// sameJSON says that a text is a spelling of the value.
func sameJSON(text string, value json.RawMessage) bool {
	if t := strings.TrimSpace(text); t == "" || t[0] != bytes.TrimSpace(value)[0] {
		return false
	}
	a, err := canon.Canonical([]byte(text))
	if err != nil {
		return false
	}
	b, err := canon.Canonical(value)
	return err == nil && bytes.Equal(a, b)
}

const (
	// keepText is how much is kept of the start and of the end of a longer text, in bytes.
	keepText = 512 << 10
	// cutSlack is how far a cut moves to fall on a line end: half a line may be half a secret, which no pattern knows.
	cutSlack = 4096
)

// clipped gives a text, or both ends around a mark that counts what is missing.
func clipped(s string) string {
	if len(s) <= 2*keepText {
		return s
	}
	head, tail := keepText, len(s)-keepText
	if i := strings.LastIndexByte(s[head-cutSlack:head], '\n'); i >= 0 {
		head += i + 1 - cutSlack
	}
	if i := strings.IndexByte(s[tail:tail+cutSlack], '\n'); i >= 0 {
		tail += i + 1
	}
	for !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n[... %d bytes left out ...]\n\n%s", s[:head], tail-head, s[tail:])
}
