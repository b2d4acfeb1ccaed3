package openai

import (
	"encoding/json"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/open-multi-agent/oma/spec"
)

func (m *Model) params(e *endpoint, req *spec.ModelRequest, askUsage bool) (openai.ChatCompletionNewParams, error) {
	p := openai.ChatCompletionNewParams{Model: req.Model, Messages: m.messages(req)}
	for i := range req.Tools {
		tool, err := toolParam(&req.Tools[i])
		if err != nil {
			return p, err
		}
		p.Tools = append(p.Tools, tool)
	}
	if n := req.MaxOutputTokens; n > 0 {
		if e.official {
			p.MaxCompletionTokens = param.NewOpt(n)
		} else {
			p.MaxTokens = param.NewOpt(n)
		}
	}
	if req.Temperature != nil {
		p.Temperature = param.NewOpt(*req.Temperature)
	}
	if askUsage {
		p.StreamOptions.IncludeUsage = param.NewOpt(true)
	}
	return p, nil
}

func (m *Model) messages(req *spec.ModelRequest) []openai.ChatCompletionMessageParamUnion {
	out := make([]openai.ChatCompletionMessageParamUnion, 0, len(req.Messages)+1)
	if req.System != "" {
		out = append(out, openai.SystemMessage(req.System))
	}
	// Reasoning belongs to the tool loop it began in, which the last user message opened.
	loop := len(req.Messages)
	if m.opts.EchoReasoning {
		for loop > 0 && req.Messages[loop-1].Role != spec.RoleUser {
			loop--
		}
	}
	for i := range req.Messages {
		msg := &req.Messages[i]
		switch msg.Role {
		case spec.RoleAssistant:
			out = append(out, assistantParam(msg, i >= loop))
		case spec.RoleTool:
			out = append(out, openai.ToolMessage(msg.Text, msg.ToolCallID))
		default:
			out = append(out, openai.UserMessage(msg.Text))
		}
	}
	return out
}

func assistantParam(msg *spec.Message, echo bool) openai.ChatCompletionMessageParamUnion {
	a := &openai.ChatCompletionAssistantMessageParam{}
	// Content may be left out only beside tool calls; some servers refuse an empty one there.
	if msg.Text != "" || len(msg.ToolCalls) == 0 {
		a.Content.OfString = param.NewOpt(msg.Text)
	}
	for _, c := range msg.ToolCalls {
		args := c.Arguments
		if isBlank(args) {
			args = "{}" // several servers refuse the empty text they themselves sent
		}
		a.ToolCalls = append(a.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
				ID:       c.ID,
				Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Name, Arguments: args},
			},
		})
	}
	if echo && msg.Reasoning != "" && len(msg.ToolCalls) > 0 {
		a.SetExtraFields(map[string]any{"reasoning_content": msg.Reasoning})
	}
	return openai.ChatCompletionMessageParamUnion{OfAssistant: a}
}

func isBlank(args string) bool {
	t := strings.TrimSpace(args)
	return t == "" || t == "null"
}

func toolParam(t *spec.ToolInfo) (openai.ChatCompletionToolUnionParam, error) {
	schema := t.InputSchema
	if schema == nil {
		schema = spec.Schema(`{"type":"object","properties":{}}`)
	}
	if !json.Valid(schema) {
		return openai.ChatCompletionToolUnionParam{}, failf(codeBadRequest, "input schema of tool %s is not valid JSON", t.Name)
	}
	f := shared.FunctionDefinitionParam{Name: t.Name}
	if t.Description != "" {
		f.Description = param.NewOpt(t.Description)
	}
	// Raw, so that the model sees the schema as written and not a decoded and re-encoded one.
	f.SetExtraFields(map[string]any{"parameters": schema})
	return openai.ChatCompletionFunctionTool(f), nil
}
