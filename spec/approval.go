package spec

import (
	"encoding/json"
	"time"
)

// Approvals say what is put before a person beside the calls that gates ask about, and who may decide. Nil: gates alone
// ask, anybody may decide, and a request waits for ever.
type Approvals struct {
	// RequireConsequentialConfirmation denies consequential calls of a run that carries the flag
	// consequential-no-independence, until its plan was approved (reference behaviour C3 and C4).
	RequireConsequentialConfirmation bool `json:"requireConsequentialConfirmation,omitempty"`
	// Plan holds rules over the whole plan, judged once, before anything starts.
	Plan []Rule `json:"plan,omitempty"`
	// Dispatch holds rules over each task, judged before it starts.
	Dispatch []Rule `json:"dispatch,omitempty"`
	// Reviewers are those who may decide. nil: anybody, by name, and nothing proves who it was.
	Reviewers []Reviewer `json:"reviewers,omitempty"`
	Expires   Duration   `json:"expires,omitempty"` // how long a request can be decided; 0: for ever
	Quorum    int        `json:"quorum,omitempty"`  // how many must approve; 0: 1. One rejection rejects.
	// SeparateApprover takes no decision of the run's author, and none that a key does not prove.
	SeparateApprover bool `json:"separateApprover,omitempty"`
}

// Reviewer is somebody who may decide.
type Reviewer struct {
	ID string `json:"id"`
	// PublicKey is Ed25519 or ECDSA P-256 in PEM. With it only what its private half signed is a decision of this
	// reviewer. Empty: the name alone is believed.
	PublicKey string `json:"publicKey,omitempty"`
}

// The scopes of an approval: what a decision is about.
const (
	ScopePlan     = "plan"
	ScopeDispatch = "task_dispatch"
	ScopeToolCall = "tool_call"
)

// ApprovalRequest is what people are asked. It is bound to its content: what runs after an approval is what the hash is
// of, or nothing.
type ApprovalRequest struct {
	ID          string          `json:"id"` // follows from run, scope, boundary and hash
	RunID       string          `json:"runId"`
	Scope       string          `json:"scope"`
	Boundary    string          `json:"boundary"`    // where in the run it is
	RequestHash string          `json:"requestHash"` // of boundary, content and scope
	Content     json.RawMessage `json:"content"`
	Reason      string          `json:"reason,omitempty"`
	RequestedAt time.Time       `json:"requestedAt,omitzero"`
	Expires     time.Time       `json:"expires,omitzero"` // zero: never; from then on no decision is taken
}

// ApprovalContent is the content of a request. Texts that a model wrote stand in it as they will run, but for secrets that
// the program resolved; InputDigest is of the whole.
type ApprovalContent struct {
	Kind string `json:"kind"` // as the scope
	Plan string `json:"planDigest"`
	// A tool call.
	ToolName      string          `json:"toolName,omitempty"`
	Input         json.RawMessage `json:"input,omitempty"`
	InputDigest   string          `json:"inputDigest,omitempty"`
	ToolCallID    string          `json:"toolCallId,omitempty"`
	Consequential bool            `json:"consequential,omitempty"`
	// Again says that an earlier attempt of the run ended while the call was in flight: it may have taken effect.
	Again     bool   `json:"again,omitempty"`
	AgentName string `json:"agentName,omitempty"`
	Role      string `json:"role,omitempty"`
	TaskID    string `json:"taskId,omitempty"`
	// What a plan or a task is, as the rules saw it.
	Subject json.RawMessage `json:"subject,omitempty"`
	// Rules are the names of the rules that ask.
	Rules []string `json:"rules,omitempty"`
}

// The words of a reviewer.
const (
	VerdictApprove = "approve"
	VerdictReject  = "reject"
)

// ApprovalVote is what one reviewer said.
type ApprovalVote struct {
	Verdict   string    `json:"decision"`            // approve or reject
	Reviewer  string    `json:"reviewer"`            // without space around it
	Reason    string    `json:"reason,omitempty"`    // as the reviewer wrote it
	Signature []byte    `json:"signature,omitempty"` // nil: unsigned
	DecidedAt time.Time `json:"decidedAt"`
}

// What came of a request.
const (
	ApprovalPending  = "pending"
	ApprovalApproved = "approved"
	ApprovalRejected = "rejected"
	ApprovalExpired  = "expired"
)

// ApprovalRecord is a request and what came of it, without its content: a receipt holds no input.
type ApprovalRecord struct {
	RequestID   string         `json:"requestId"`
	Scope       string         `json:"scope"`
	Boundary    string         `json:"boundary"`
	RequestHash string         `json:"requestHash"`
	TaskID      string         `json:"taskId,omitempty"`
	Expires     time.Time      `json:"expires,omitzero"`
	Decision    string         `json:"decision"`        // approved, rejected, expired or pending
	Votes       []ApprovalVote `json:"votes,omitempty"` // those that counted, in order
	// Authenticated says that a key proves every vote.
	Authenticated bool `json:"authenticated"`
}

// The kinds of documents that carry approvals between machines.
const (
	KindApprovalRequest  = "ApprovalRequest"
	KindApprovalDecision = "ApprovalDecision"
)

// ApprovalRequestFile is a request on its way to a reviewer, with what a decision will be held against.
type ApprovalRequestFile struct {
	Envelope
	ApprovalRequest
	Team   string `json:"team"` // name
	Author string `json:"author,omitempty"`
	// Approvals is who may decide. nil: anybody.
	Approvals *PlanApprovals `json:"approvals,omitempty"`
	Votes     []ApprovalVote `json:"votes,omitempty"`
}

// ApprovalDecisionFile is a decision on its way back.
type ApprovalDecisionFile struct {
	Envelope
	RequestID   string    `json:"requestId"`
	RunID       string    `json:"runId"`
	RequestHash string    `json:"requestHash"`
	Expires     time.Time `json:"expires,omitzero"` // of the request
	ApprovalVote
}

// PlanApprovals are a team's approvals with their rules compiled.
type PlanApprovals struct {
	RequireConsequentialConfirmation bool       `json:"requireConsequentialConfirmation,omitempty"`
	Plan                             []PlanRule `json:"plan,omitempty"`
	Dispatch                         []PlanRule `json:"dispatch,omitempty"`
	Reviewers                        []Reviewer `json:"reviewers,omitempty"`
	Expires                          Duration   `json:"expires,omitempty"`
	Quorum                           int        `json:"quorum"` // at least 1
	SeparateApprover                 bool       `json:"separateApprover,omitempty"`
}
