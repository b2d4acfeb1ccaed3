package openai

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"github.com/open-multi-agent/oma/spec"
)

// request is the body of a chat completion.
type request struct {
	Model    string           `json:"model"`
	Messages []requestMessage `json:"messages"`
	Tools    []requestTool    `json:"tools,omitempty"`
	// Of the two names for the output limit one is used. 0: no limit.
	MaxTokens           int64          `json:"max_tokens,omitempty"`
	MaxCompletionTokens int64          `json:"max_completion_tokens,omitempty"`
	Temperature         *float64       `json:"temperature,omitempty"`
	Stream              bool           `json:"stream,omitempty"`
	StreamOptions       *streamOptions `json:"stream_options,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type requestMessage struct {
	Role string `json:"role"`
	// Content is a *string or []contentPart. nil: left out, which is not the same as empty.
	Content          any           `json:"content,omitempty"`
	ReasoningContent string        `json:"reasoning_content,omitempty"`
	ToolCalls        []requestCall `json:"tool_calls,omitempty"`
	ToolCallID       string        `json:"tool_call_id,omitempty"`
}

// contentPart is a piece of a message that is no text alone. Which member it has goes by its type.
type contentPart struct {
	Type  string    `json:"type"` // text, image_url or file
	Text  string    `json:"text,omitempty"`
	Image *imageURL `json:"image_url,omitempty"`
	File  *fileData `json:"file,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

type fileData struct {
	Filename string `json:"filename"`
	Data     string `json:"file_data"`
}

type requestCall struct {
	ID       string         `json:"id"`
	Type     string         `json:"type"`
	Function calledFunction `json:"function"`
}

type calledFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type requestTool struct {
	Type     string          `json:"type"`
	Function offeredFunction `json:"function"`
}

// offeredFunction has its parameters raw, so that the model sees the schema as written.
type offeredFunction struct {
	Name        string      `json:"name"`
	Description string      `json:"description,omitempty"`
	Parameters  spec.Schema `json:"parameters"`
}

// completion is a whole answer, or one event of a streamed one: they differ in the name of the message alone.
type completion struct {
	Model   string          `json:"model"`
	Choices []choice        `json:"choices"` // may be empty or null: a filter's preamble, a chunk with usage only
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"` // null in good answers of some servers
}

type choice struct {
	Index        number  `json:"index"`
	Delta        message `json:"delta"`
	Message      message `json:"message"`
	FinishReason string  `json:"finish_reason"`
}

type message struct {
	Content string `json:"content"`
	Refusal string `json:"refusal"`
	// Two names for one thing. A server that sends both sends the same text twice.
	ReasoningContent looseText       `json:"reasoning_content"`
	Reasoning        looseText       `json:"reasoning"`
	ToolCalls        []toolFragment  `json:"tool_calls"`
	FunctionCall     *functionFields `json:"function_call"`
}

// toolFragment is a call or a piece of one.
type toolFragment struct {
	Index    *number        `json:"index"` // nil: not given
	ID       string         `json:"id"`
	Function functionFields `json:"function"`
}

type functionFields struct {
	Name      string    `json:"name"`
	Arguments arguments `json:"arguments"`
}

// arguments is text. Some servers send the object itself; it is kept as they wrote it.
type arguments string

func (a *arguments) UnmarshalJSON(b []byte) error {
	switch {
	case bytes.Equal(b, []byte("null")):
		return nil
	case b[0] == '{':
		*a = arguments(b)
		return nil
	}
	return json.Unmarshal(b, (*string)(a))
}

// looseText is text nobody depends on: anything but a string is dropped.
type looseText string

func (t *looseText) UnmarshalJSON(b []byte) error {
	if b[0] != '"' {
		return nil
	}
	return json.Unmarshal(b, (*string)(t))
}

// number is a whole number, however it is spelled: some servers write 2.0. One beyond int64 becomes the nearest there is.
type number int64

func (n *number) UnmarshalJSON(b []byte) error {
	if b[0] != '-' && (b[0] < '0' || b[0] > '9') { // null changes nothing, the rest is an error
		return json.Unmarshal(b, (*int64)(n))
	}
	if whole, err := strconv.ParseInt(string(b), 10, 64); err == nil {
		*n = number(whole)
		return nil
	}
	f, _ := strconv.ParseFloat(string(b), 64) // out of range: an infinity
	switch {
	case f >= math.MaxInt64:
		*n = math.MaxInt64
	case f <= math.MinInt64:
		*n = math.MinInt64
	case f == math.Trunc(f):
		*n = number(f)
	default:
		return json.Unmarshal(b, (*int64)(n))
	}
	return nil
}

type usage struct {
	PromptTokens     number `json:"prompt_tokens"`
	CompletionTokens number `json:"completion_tokens"`
	TotalTokens      number `json:"total_tokens"`
	PromptDetails    struct {
		CachedTokens number `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		ReasoningTokens number `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}
