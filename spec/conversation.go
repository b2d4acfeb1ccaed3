package spec

import "encoding/json"

// ToolInfo describes a tool to the model and to the rules.
type ToolInfo struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// InputSchema is a JSON Schema of an object, sent to the model as written. nil: any object.
	InputSchema Schema `json:"inputSchema,omitempty"`
	// OutputSchema is checked on results that are no errors. nil: none.
	OutputSchema Schema `json:"outputSchema,omitempty"`
	// Consequential says that a grant permits effects outside the run.
	Consequential bool `json:"consequential,omitempty"`
	// ReadOnly says that a call changes nothing, so that it may be made again.
	ReadOnly bool `json:"readOnly,omitempty"`
	// Idempotent says that a call made twice leaves what it leaves when made once, whatever else has happened in between,
	// so that one which may have been made already is made again without asking a person.
	Idempotent bool `json:"idempotent,omitempty"`
	// MaxOutputChars bounds a result, in runes. 0: the agent's limit.
	MaxOutputChars int `json:"maxOutputChars,omitempty"`
}

// The roles of a message.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// Message is one entry of a conversation. The system prompt stands apart, in ModelRequest.
type Message struct {
	Role string `json:"role"` // user, assistant or tool
	Text string `json:"text,omitempty"`
	// Reasoning is what a thinking model said beside its answer. It is never part of the answer.
	Reasoning string     `json:"reasoning,omitempty"`
	ToolCalls []ToolCall `json:"toolCalls,omitempty"` // assistant only
	// ToolCallID, ToolName and IsError belong to a tool message.
	ToolCallID string `json:"toolCallId,omitempty"`
	ToolName   string `json:"toolName,omitempty"`
	IsError    bool   `json:"isError,omitempty"`
	// Attachments are what a tool gave beside Text, which has a note in the place of each. tool only.
	Attachments []Attachment `json:"attachments,omitempty"`
}

// ToolCall is a call as the model wrote it. Nobody judges or runs Arguments: they are decoded once, at the door.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// ModelRequest is everything a model call depends on.
type ModelRequest struct {
	AgentName string
	TaskTitle string
	Turn      int // 1-based within the task
	Model     string
	System    string
	Messages  []Message
	Tools     []ToolInfo
	// MaxOutputTokens is the most the answer may have. 0: the server's own limit.
	MaxOutputTokens int64
	Temperature     *float64 // nil: the server's own
}

// FinishReason says why a model stopped.
type FinishReason string

const (
	FinishStop    FinishReason = "stop"    // an answer or tool calls, complete
	FinishLength  FinishReason = "length"  // cut at the output limit: calls must not run
	FinishRefused FinishReason = "refused" // refused or filtered
)

// ModelResponse is a complete answer. A broken stream is an error, never a short answer.
type ModelResponse struct {
	Message Message      `json:"message"`
	Finish  FinishReason `json:"finish"`
	Usage   *Usage       `json:"usage,omitempty"` // nil: the server reported none
	Model   string       `json:"model,omitempty"` // as the server names it
	Cost    *USD         `json:"cost,omitempty"`  // what an external agent says it cost; nil: it said nothing
	// Activity is what an external agent says it did. It is no part of the answer, and nothing is decided by it.
	Activity []Activity `json:"activity,omitempty"`
}

// Usage counts tokens. CachedInput is part of Input, Reasoning is part of Output.
type Usage struct {
	Input       int64 `json:"input"`
	CachedInput int64 `json:"cachedInput,omitempty"`
	Output      int64 `json:"output"`
	Reasoning   int64 `json:"reasoning,omitempty"`
}

// MaxTokens is the largest count that is believed: a million times the largest context window there is.
const MaxTokens = 1 << 40

// Sane says whether every count is one that a server may report: not negative, and not above MaxTokens.
func (u Usage) Sane() bool {
	for _, n := range [...]int64{u.Input, u.CachedInput, u.Output, u.Reasoning} {
		if n < 0 || n > MaxTokens {
			return false
		}
	}
	return true
}

// Total is what a token ceiling counts.
func (u Usage) Total() int64 { return AddCapped(u.Input, u.Output) }

// Add gives the sum of two.
func (u Usage) Add(v Usage) Usage {
	return Usage{AddCapped(u.Input, v.Input), AddCapped(u.CachedInput, v.CachedInput), AddCapped(u.Output, v.Output),
		AddCapped(u.Reasoning, v.Reasoning)}
}

// ToolResult is what a tool gave. A failing tool is a result with IsError, never a Go error.
type ToolResult struct {
	Text    string `json:"text"`
	IsError bool   `json:"isError,omitempty"`
	// Data is what OutputSchema is checked against. nil: Text.
	Data json.RawMessage `json:"data,omitempty"`
	// FilesRead and FilesWritten are paths below the agent's cwd, with /, as evidence.
	FilesRead    []string `json:"filesRead,omitempty"`
	FilesWritten []string `json:"filesWritten,omitempty"`
	// Attachments stand beside Text, which has a note in the place of each. An error has none.
	Attachments []Attachment `json:"attachments,omitempty"`
	// Chosen says that Text is what the tool's author wrote for the model, so that no limit cuts it.
	Chosen bool `json:"-"`
}

// ErrorInfo says what went wrong, in the reference's terms.
type ErrorInfo struct {
	Kind       string `json:"kind"` // provider, tool, framework, validation, timeout, cancellation, budget, egress, store, unknown
	Code       string `json:"code,omitempty"`
	Message    string `json:"message,omitempty"` // redacted, at most 1024 runes
	Retryable  bool   `json:"retryable"`
	HTTPStatus int    `json:"httpStatus,omitempty"`
	Provider   string `json:"provider,omitempty"`
	Attempt    int    `json:"attempt,omitempty"` // 1-based
}
