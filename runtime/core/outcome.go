package core

import "github.com/open-multi-agent/oma/spec"

// Outcome is what a run came to: plain facts, from which the receipt is made.
type Outcome struct {
	Tasks []TaskOutcome // in the plan's order
	// Delegated are the runs that agents asked others for, in the order in which they were asked for.
	Delegated []TaskOutcome
	Decisions []spec.DecisionRecord
	Trees     []spec.Tree
	// Approvals are the requests to people, in the order in which they were answered or given up.
	Approvals []spec.ApprovalRecord
	// Unconfirmed says that a consequential call was denied because nobody had approved the plan, and Denied that one was
	// denied for another reason. Both are only looked at where consequential calls need a confirmation.
	Unconfirmed, Denied bool
	// Stop says what ended the run early: tokens, cost, duration, cancelled, suspended or rejected. Empty: nothing did.
	Stop       string
	StopCause  string // of a run that was rejected
	StartedAt  int64  // milliseconds since 1970
	EndedAt    int64
	UsedTokens int64
	UsedCost   spec.USD
	Exceeded   string // tokens or cost: more was used than the ceiling allows
}

// TaskOutcome is what became of one task.
type TaskOutcome struct {
	Task       spec.PlanTask
	Status     string
	StopReason spec.StopReason
	Cause      string
	Ceiling    string // of a task that stopped on a budget: tokens, cost, duration, agent or unmetered
	Err        *spec.ErrorInfo
	StartedAt  int64 // 0: it never started
	EndedAt    int64
	Attempts   int // that began
	Turns      int // of all attempts
	ModelCalls int
	Tokens     spec.Usage
	Estimated  bool
	Cost       spec.USD
	Priced     bool // Cost is known
	Unmetered  bool // the provider reported no usage in some call
	Models     []string
	ToolCalls  spec.CallSums
	Calls      []CallFact
	FilesRead  []string
	// Marks are those of the task: inherited from the tasks whose output it was given, and set by its own calls. In the
	// order in which they came.
	Marks []string
	Text  string
	// Structured is the validated answer under the agent's outputSchema, decoded. nil: there is none.
	Structured any
	// Caller is the agent that a delegated run works for, and Decision the seq of what let it. Empty: it is a task.
	Caller   string
	Decision int
}

// CallFact is one tool call as release requirements see it.
type CallFact struct {
	ToolName string
	Input    []byte // canonical; nil: not accepted
	Action   string // allow, deny, suspend or refused
	IsError  bool
}
