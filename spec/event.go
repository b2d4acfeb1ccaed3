package spec

import "encoding/json"

// Event is one record of a run's log: append-only, hash-chained, in the order in which the core took results.
type Event struct {
	Seq  int64  `json:"seq"` // 1-based
	At   int64  `json:"at"`  // milliseconds since 1970, UTC
	Kind string `json:"kind"`
	// ID is the effect the event belongs to: the same for what was asked and for its result. It is made from task,
	// turn and call, never random.
	ID        string `json:"id,omitempty"`
	TaskID    string `json:"taskId,omitempty"`
	AgentName string `json:"agentName,omitempty"`
	// Digest identifies what was asked: a replay that asks for something else is refused.
	Digest string          `json:"digest,omitempty"`
	Data   json.RawMessage `json:"data,omitempty"`
	// Prev is the chain's digest before this event.
	Prev string `json:"prev,omitempty"`
}

// The kinds of events.
const (
	EventRunStart = "run/start"
	EventRunEnd   = "run/end"
	// EventRunStop says that the run was told to stop. What follows is how it was wound up; a later attempt goes on from
	// here.
	EventRunStop     = "run/stop"
	EventPlanSet     = "plan/set"
	EventTaskStatus  = "task/status"
	EventMemorySet   = "memory/set"
	EventModelAsked  = "llm/request"
	EventModelResult = "llm/response"
	EventToolJudged  = "tool/judged"
	EventToolAsked   = "tool/call"
	EventToolResult  = "tool/result"
	EventTimerAsked  = "timer/start"
	EventTimerResult = "timer/end"
	EventTree        = "tree/digest"
	// EventBoundary is a judgement of the plan or of a task before it starts.
	EventBoundary         = "boundary/judged"
	EventApprovalAsked    = "approval/request"
	EventApprovalDecision = "approval/decision"
)
