package core

import (
	"cmp"
	"encoding/json"

	"github.com/open-multi-agent/oma/spec"
)

// Flow is the one seam between what decides and what acts. The local engine runs threads as coroutines over a journal;
// another engine can run them as a durable workflow. A Flow belongs to the thread it was given to.
type Flow interface {
	// Go starts a thread; it runs when this one waits. The name is for engines that show their threads.
	Go(name string, f func(Flow))
	// Do asks for an effect and waits for its result.
	Do(*Effect) Result
	// Await waits until cond holds. cond reads state of the core only.
	Await(cond func() bool)
	// WithCancel gives a flow whose effects end, as cancelled, when the func is called.
	WithCancel() (Flow, func())
}

// Kind says what an effect is.
type Kind string

// The kinds of effects. Judge, Boundary, Tree, Note and Memory change nothing outside the run.
const (
	ModelCall Kind = "model"
	Judge     Kind = "judge"
	Boundary  Kind = "boundary" // judges the plan, or a task before it starts
	Approval  Kind = "approval" // asks people
	ToolCall  Kind = "tool"
	Timer     Kind = "timer"
	Tree      Kind = "tree"
	Note      Kind = "note"
	Memory    Kind = "memory" // says what was left in the shared memory
)

// Effect is something asked of the world. ID is made from task, turn and call, so a replay asks with the same one.
type Effect struct {
	Kind      Kind
	ID        string
	TaskID    string
	AgentName string
	// Digest identifies what is asked, without holding it: a transcript in every effect would make the log quadratic.
	Digest string

	Request *spec.ModelRequest // ModelCall
	Timeout spec.Duration      // ModelCall: of the call, with its retries; 0: none
	Call    *Call              // Judge, ToolCall, an Approval of a call; of a ModelCall to an external agent, what came before
	Scope   string             // Boundary and Approval: what it is about
	Task    *spec.PlanTask     // Boundary and Approval of a task
	Marks   []string           // Boundary: of the task
	Ask     *Ask               // Approval
	Delay   spec.Duration      // Timer
	Status  *TaskStatus        // Note
	Entry   *spec.MemoryEntry  // Memory

	// At is when the effect was asked for, and first so if an earlier attempt did: milliseconds since 1970. The engine sets
	// it, for an Approval alone.
	At int64
}

// Call is a tool call on its way through the door.
type Call struct {
	ID   string // as the model named it
	Name string
	Role string // the required role the task fills, or empty
	// Arguments is the model's text, and Situation what came before the call, for Judge alone.
	Arguments string
	Situation spec.Situation
	// Chain are the agents that delegated to each other down to the caller, the task's own first, for Judge alone.
	Chain []string
	// Canonical and InputDigest are what was judged, for ToolCall alone.
	Canonical   []byte
	InputDigest string
}

// Ask is what people are told beside what they decide about.
type Ask struct {
	Action string   // ask or suspend
	Rules  []string // the names of those that ask
	Reason string
	Again  bool // the call may have taken effect already
}

// TaskStatus tells watchers and the log about a task.
type TaskStatus struct {
	Status     string          `json:"status"`
	StopReason spec.StopReason `json:"stopReason,omitempty"`
	Cause      string          `json:"cause,omitempty"`
	// Attempt counts those of a task that has begun again, from 2, after Cause. 0: it is the first.
	Attempt int `json:"attempt,omitempty"`
	// Caller is the agent that a delegated run works for. Empty: it is a task.
	Caller string `json:"caller,omitempty"`
}

// Result is what came of an effect. At is the core's only clock.
type Result struct {
	At        int64 `json:"-"` // milliseconds since 1970; in the log it is the event's own
	Cancelled bool  `json:"cancelled,omitempty"`
	// Suspended says of a cancelled effect that nothing but people's decisions was left to wait for.
	Suspended bool `json:"suspended,omitempty"`
	// Unsure says that an earlier attempt of the run asked for a call and did not see its end, and that it was not made
	// again.
	Unsure   bool                 `json:"unsure,omitempty"`
	Err      *spec.ErrorInfo      `json:"error,omitempty"`
	Model    *ModelResult         `json:"model,omitempty"`
	Judged   *Judged              `json:"judged,omitempty"`
	Approval *spec.ApprovalRecord `json:"approval,omitempty"`
	Tool     *spec.ToolResult     `json:"tool,omitempty"`
	Tree     string               `json:"tree,omitempty"`
}

// ModelResult is an answer, or what failed attempts used when there is none.
type ModelResult struct {
	Response *spec.ModelResponse `json:"response,omitempty"`
	Attempts int                 `json:"attempts"`
	// Wasted is what failed attempts reported; it was paid for.
	Wasted spec.Usage `json:"wasted,omitzero"`
	// WastedCost is what they say that has cost.
	WastedCost spec.USD `json:"wastedCost,omitzero"`
	// Repeated is how many earlier attempts of the run asked for the call and ended before the answer: each may have been
	// paid for.
	Repeated int `json:"repeated,omitempty"`
	// Permits are the requests of an external agent that were judged meanwhile, in order.
	Permits []Permit `json:"permits,omitempty"`
	// Idle says that the call ended between two attempts: no server was working on it.
	Idle bool `json:"idle,omitempty"`
}

// Permit is a request of an external agent, as it was judged: for a yes to something of its own, or that a tool is used for
// it.
type Permit struct {
	ID       string  `json:"id"`                 // of the agent's call, as it names it; a tool's calls have ids of our own
	ToolName string  `json:"toolName,omitempty"` // empty: spec.PermissionTool
	Judged   *Judged `json:"judged"`
	// At is when a person was asked about it, in milliseconds since 1970, and Approval what came of that. nil: nobody was.
	At       int64                `json:"at,omitempty"`
	Approval *spec.ApprovalRecord `json:"approval,omitempty"`
	// Done is what a tool came to. nil: none was used, or its end was not seen.
	Done *Done `json:"done,omitempty"`
}

// Done is what came of a tool that was used for an external agent, without what it gave.
type Done struct {
	IsError   bool     `json:"isError,omitempty"`
	FilesRead []string `json:"filesRead,omitempty"`
}

// Tool is the name under which rules see the request.
func (p *Permit) Tool() string { return cmp.Or(p.ToolName, spec.PermissionTool) }

// Failed says that a tool was let be used, and no good end of it is known.
func (p *Permit) Failed() bool {
	return p.ToolName != "" && p.Judged.Allowed() && (p.Done == nil || p.Done.IsError)
}

// Judged is what the door said of a call.
type Judged struct {
	spec.Decision
	Canonical   json.RawMessage `json:"input,omitempty"` // nil: the input was not accepted
	InputDigest string          `json:"inputDigest,omitempty"`
	Text        string          `json:"text,omitempty"` // what the model is told when the call does not run
	// Holds says of a call that waits for people that later calls of its turn are judged by what becomes of it.
	Holds         bool  `json:"holds,omitempty"`
	ElapsedMicros int64 `json:"elapsedMicros"`
}
