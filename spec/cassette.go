package spec

import "encoding/json"

// Cassette holds model turns, recorded or written by hand (kind: Cassette). Turns are taken in order, by task title
// where Tasks has it, else by agent.
type Cassette struct {
	Envelope
	Name string `json:"name,omitempty"`
	// Match says what a recorded digest covers: shape (default) leaves out what tools answered, exact does not.
	Match  string            `json:"match,omitempty"`
	Agents map[string][]Turn `json:"agents,omitempty"`
	Tasks  map[string][]Turn `json:"tasks,omitempty"`
}

// Turn is one answer of a model.
type Turn struct {
	// Expect is checked against the request before the turn plays.
	Expect *Expect `json:"expect,omitempty"`
	// Request is the digest of the request this turn answered. Empty: any request.
	Request   string         `json:"request,omitempty"`
	Text      string         `json:"text,omitempty"`
	Reasoning string         `json:"reasoning,omitempty"`
	ToolCalls []CassetteCall `json:"toolCalls,omitempty"`
	Usage     *Usage         `json:"usage,omitempty"` // nil: not reported
	Model     string         `json:"model,omitempty"`
	Finish    FinishReason   `json:"finish,omitempty"` // empty: stop
	Delay     Duration       `json:"delay,omitempty"`
	Error     *TurnError     `json:"error,omitempty"` // instead of an answer
}

// CassetteCall is a tool call. Arguments, where given, are sent as they are written, so that a cassette can hold text
// that is no JSON; else Input is.
type CassetteCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input,omitempty"`
	Arguments *string         `json:"arguments,omitempty"`
}

// Expect is what a hand-written turn asks of the request it answers.
type Expect struct {
	ToolResult *ExpectResult `json:"toolResult,omitempty"`
	// Contains is text that the last message must hold.
	Contains string `json:"contains,omitempty"`
}

// ExpectResult asks something of the result of an earlier call.
type ExpectResult struct {
	Of       string `json:"of"` // the call's id
	Contains string `json:"contains,omitempty"`
	IsError  *bool  `json:"isError,omitempty"`
	// Image and File are the media type of an attachment that the result must have.
	Image string `json:"image,omitempty"`
	File  string `json:"file,omitempty"`
}

// TurnError is a fault that a turn plays.
type TurnError struct {
	Status     int      `json:"status,omitempty"` // HTTP status; 0: the connection broke
	Message    string   `json:"message,omitempty"`
	RetryAfter Duration `json:"retryAfter,omitempty"`
}
