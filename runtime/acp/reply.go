package acp

import (
	"encoding/json"

	"github.com/open-multi-agent/oma/spec"
)

// Reply is what became of one prompt. Its texts are redacted and bounded.
type Reply struct {
	Stop spec.StopReason
	// AgentStop is the reason in the agent's own word. Empty: it gave none.
	AgentStop string
	// BudgetExceeded says that the agent stopped at a limit of its own, of tokens or of requests.
	BudgetExceeded bool
	Restarted      bool // the program had died before, and this prompt ran in a new session

	Output   string // what it said as its answer
	Thoughts string // what it said beside it
	// ToolCalls are in the order in which they were first told of. They are what the agent says it did.
	ToolCalls        []ToolCall
	ToolCallsOmitted int // beyond the bound
	Decisions        []Decision
	DecisionsOmitted int             // beyond the bound
	Plan             json.RawMessage // the last one, as sent. nil: none, or too long
	// Others are updates that stand in nothing above, the first ones, and OthersOmitted counts the rest.
	Others        []Update
	OthersOmitted int

	// Usage is what the turn used. nil: nobody reported it, so the turn is unmetered.
	Usage *spec.Usage
	// UsageFrom says who reported it: result, quota or context. The last is how much the context grew, counted as input.
	UsageFrom string
	// Cost is that of the turn, as the agent reported it. What it tells after its answer counts to the next turn. nil: it
	// told of none.
	Cost *spec.USD
}

// ToolCall is what an agent says of one use of a tool of its own.
type ToolCall struct {
	ID     string
	Title  string
	Kind   string // read, edit, delete, move, search, execute, think, fetch or other
	Status string // pending, in_progress, completed, failed, or what the agent calls it
	Input  string // JSON, clipped. Empty: none was sent
	Output string // text, or JSON, clipped. Empty: none was sent
}

// Update is one thing that the agent told while it worked.
type Update struct {
	Kind string // as the protocol names it, such as agent_message_chunk or plan
	Text string // of a chunk
	// Call is the record of a call so far. nil: the update is of no call.
	Call *ToolCall
	// Raw is the update as sent, with secrets taken out, where Text and Call do not hold it. nil: it is too long, or they do.
	Raw  json.RawMessage
	Size int // bytes of the update as sent
}

// Bounds of what one reply holds.
const (
	maxCalls     = 1000
	maxDecisions = 1000
	maxOthers    = 64
	maxRaw       = 16 << 10 // bytes of an update that is kept raw
	maxField     = 16 << 10 // runes of an input or an output of a call
	maxName      = 1024     // runes of ids, titles and the like
)
