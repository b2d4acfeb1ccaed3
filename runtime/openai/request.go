package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

// body writes a request. The SDK's own parameter types are not used: they encode every message through several nested
// marshalers, and since each turn sends the whole conversation again, an agent of 200 turns spent more time in them than
// in everything else together.
func (m *Model) body(e *endpoint, req *spec.ModelRequest, askUsage bool) ([]byte, error) {
	messages, err := m.messages(req, e.official)
	if err != nil {
		return nil, err
	}
	r := request{Model: req.Model, Messages: messages, Tools: toolParams(req.Tools), Temperature: req.Temperature, Stream: m.opts.Stream}
	if n := max(req.MaxOutputTokens, 0); e.official {
		r.MaxCompletionTokens = n
	} else {
		r.MaxTokens = n
	}
	if askUsage {
		r.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&r); err != nil {
		return nil, unsendable(req.Tools, err)
	}
	return b.Bytes(), nil
}

// unsendable says which schema kept a request from being written: nothing else in it can.
func unsendable(tools []spec.ToolInfo, err error) error {
	for _, t := range tools {
		if t.InputSchema != nil && !json.Valid(t.InputSchema) {
			return failf(codeBadRequest, "input schema of tool %s is not valid JSON", t.Name)
		}
	}
	return failf(codeBadRequest, "request cannot be written: %v", err)
}

// messages gives a conversation as the protocol has it. What tools attached stands in a message of the user behind all
// results of the turn: the protocol takes text alone in those, and nothing between them.
func (m *Model) messages(req *spec.ModelRequest, official bool) ([]requestMessage, error) {
	out := make([]requestMessage, 0, len(req.Messages)+1)
	if req.System != "" {
		out = append(out, requestMessage{Role: "system", Content: &req.System})
	}
	// Reasoning belongs to the tool loop it began in, which the last user message opened.
	loop := len(req.Messages)
	if m.opts.EchoReasoning {
		for loop > 0 && req.Messages[loop-1].Role != spec.RoleUser {
			loop--
		}
	}
	var attached []contentPart
	for i := range req.Messages {
		msg := &req.Messages[i]
		if msg.Role != spec.RoleTool && len(attached) > 0 {
			out, attached = append(out, requestMessage{Role: "user", Content: attached}), nil
		}
		switch msg.Role {
		case spec.RoleAssistant:
			out = append(out, assistantMessage(msg, i >= loop))
		case spec.RoleTool:
			parts, err := attachmentParts(msg, official)
			if err != nil {
				return nil, err
			}
			attached = append(attached, parts...)
			out = append(out, requestMessage{Role: "tool", Content: toolText(msg), ToolCallID: msg.ToolCallID})
		default:
			out = append(out, requestMessage{Role: "user", Content: &msg.Text})
		}
	}
	if len(attached) > 0 {
		out = append(out, requestMessage{Role: "user", Content: attached})
	}
	return out, nil
}

func assistantMessage(msg *spec.Message, echo bool) requestMessage {
	a := requestMessage{Role: "assistant"}
	// Content may be left out only beside tool calls; some servers refuse an empty one there.
	if msg.Text != "" || len(msg.ToolCalls) == 0 {
		a.Content = &msg.Text
	}
	for _, c := range msg.ToolCalls {
		args := c.Arguments
		if isBlank(args) {
			args = "{}" // several servers refuse the empty text they themselves sent
		}
		a.ToolCalls = append(a.ToolCalls, requestCall{ID: c.ID, Type: "function", Function: calledFunction{c.Name, args}})
	}
	if echo && len(msg.ToolCalls) > 0 {
		a.ReasoningContent = msg.Reasoning
	}
	return a
}

func isBlank(args string) bool {
	t := strings.TrimSpace(args)
	return t == "" || t == "null"
}

func toolParams(tools []spec.ToolInfo) []requestTool {
	var out []requestTool
	for _, t := range tools {
		schema := t.InputSchema
		if schema == nil {
			schema = spec.Schema(`{"type":"object","properties":{}}`)
		}
		out = append(out, requestTool{Type: "function", Function: offeredFunction{t.Name, t.Description, schema}})
	}
	return out
}
