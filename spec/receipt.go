package spec

import "slices"

// Receipt is what a run leaves behind. It holds digests and figures, and no prompt, no tool input or output and no
// secret.
type Receipt struct {
	Envelope
	ID         string       `json:"id"`
	RunID      string       `json:"runId"`
	Attempt    int          `json:"attempt"`          // 1-based; grows with every resume
	Author     string       `json:"author,omitempty"` // who started the run, by their own word
	CreatedAt  string       `json:"createdAt"`
	Oma        Build        `json:"oma"`
	Team       PlanTeam     `json:"team"`
	Plan       PlanRef      `json:"plan"`
	Policies   []NamedInput `json:"policies,omitempty"`
	Inputs     []PlanInput  `json:"inputs"`
	GoalDigest string       `json:"goalDigest"`

	Success   bool       `json:"success"` // the run's own outcome; governance never changes it
	Status    Status     `json:"status"`
	ErrorInfo *ErrorInfo `json:"errorInfo,omitempty"`
	ExitCodes []int      `json:"exitCodes"` // all that hold, the one that was used first
	Flags     []string   `json:"flags,omitempty"`
	// ConfirmationRequired says that a consequential call waited for a confirmation that nobody gave.
	ConfirmationRequired bool `json:"confirmationRequired,omitempty"`
	Partial              bool `json:"partial"` // no role completed, or some usage is estimated; changes no conclusion

	Governance           *Governance `json:"governance,omitempty"` // nil: undeclared
	GovernanceConclusion string      `json:"governanceConclusion"`
	GovernanceReason     string      `json:"governanceReason,omitempty"` // the first of GovernanceDetail
	GovernanceDetail     []Reason    `json:"governanceDetail,omitempty"`
	ReleaseConclusion    string      `json:"releaseConclusion"`
	Release              []Released  `json:"release,omitempty"`

	Topology
	Tasks []TaskRecord `json:"tasks"`
	// Delegations are the runs that agents asked other agents for, in the order in which they were asked for. None of them
	// stands for a required role.
	Delegations []DelegationRecord `json:"delegations,omitempty"`
	Decisions   []DecisionRecord   `json:"decisions"`
	Rules       []RuleTotal        `json:"rules,omitempty"`
	// ApprovalDecisions are the requests to people that were decided, and PendingApprovals those that wait, as asked.
	ApprovalDecisions []ApprovalRecord `json:"approvalDecisions,omitempty"`
	PendingApprovals  []ApprovalRecord `json:"pendingApprovals,omitempty"`
	// Denied counts the calls that did not run: denied by a gate, or refused before it.
	Denied int `json:"denied"`

	Budgets        BudgetRecord `json:"budgets"`
	TotalTokens    Usage        `json:"totalTokens"`
	Cost           *USD         `json:"cost"` // null: some model has no price
	DurationMs     int64        `json:"durationMs"`
	TaskDurationMs int64        `json:"taskDurationMs"`
	Unmetered      []string     `json:"unmetered,omitempty"` // agents whose provider reported no usage

	Enforcement []Control `json:"enforcement"`
	Trees       []Tree    `json:"trees,omitempty"`
	Evidence    Evidence  `json:"evidence"`
}

// Build identifies the program.
type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
}

// PlanRef names the plan that was run.
type PlanRef struct {
	Digest string `json:"digest"`
}

// NamedInput is a document of rules in force.
type NamedInput struct {
	Name   string `json:"name"` // as the source of a PlanPolicy
	Digest string `json:"digest"`
}

// Status is the outcome of a run or a task.
type Status struct {
	Code    string `json:"code"`              // one of the Status constants
	Message string `json:"message,omitempty"` // redacted, at most 256 runes
}

// The outcomes of a run.
const (
	StatusOK        = "ok"
	StatusError     = "error"
	StatusCancelled = "cancelled"
	StatusTimeout   = "timeout"
	StatusBudget    = "budget_exhausted"
	StatusRejected  = "rejected"
	StatusSuspended = "suspended"
)

// Conclusions of governance and release.
const (
	Satisfied     = "satisfied"
	Unsatisfied   = "unsatisfied"
	NotApplicable = "not-applicable"
)

// Flags on a receipt.
const (
	FlagOverridden    = "governance-overridden"
	FlagConsequential = "consequential-no-independence"
	// FlagReviewSkipped says that preferred roles did not work, because a ceiling is declared.
	FlagReviewSkipped = "review-skipped-due-to-budget"
)

// Reason is one reason why a declaration is not satisfied.
type Reason struct {
	Code    string `json:"code"` // overridden, budget, cancelled, rejected, suspended, role-failed, role-missing, order, independence, integrity
	Message string `json:"message"`
}

// Released is the outcome of one release requirement.
type Released struct {
	Name    string `json:"name"`
	Outcome string `json:"outcome"` // held, failed or error
	Reason  string `json:"reason,omitempty"`
}

// Topology is what ran, in which order. It is derived from the tasks alone.
type Topology struct {
	Mode                    string   `json:"mode"` // single or multi-agent
	RolesExecuted           []string `json:"rolesExecuted"`
	RolesFailed             []string `json:"rolesFailed,omitempty"`
	RolesNotStarted         []string `json:"rolesNotStarted,omitempty"`
	WorkerInstancesExecuted []string `json:"workerInstancesExecuted"`
	// TaskRolesExecuted are the labels of tasks that completed, each once. They meet no requirement.
	TaskRolesExecuted         []string `json:"taskRolesExecuted,omitempty"`
	ExecutionOrder            []string `json:"executionOrder"`
	DependencyEdges           []Edge   `json:"dependencyEdges"`
	IndependentRolesCount     int      `json:"independentRolesCount"`
	IndependentReviewOccurred bool     `json:"independentReviewOccurred"`

	RoutingDecision RoutingDecision `json:"routingDecision"`
}

// Edge says that a role worked after another and received its output.
type Edge struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// The states of a task.
const (
	TaskPending    = "pending"
	TaskInProgress = "in_progress"
	TaskCompleted  = "completed"
	TaskFailed     = "failed"
	TaskSkipped    = "skipped"
)

// StopReason says why an agent stopped. Only completed is success.
type StopReason string

const (
	StopCompleted StopReason = "completed"
	StopMaxTurns  StopReason = "max_turns"
	StopRefused   StopReason = "refused"
	StopLength    StopReason = "length"
	StopBudget    StopReason = "budget"
	StopCancelled StopReason = "cancelled"
	StopTimeout   StopReason = "timeout"
	StopEmpty     StopReason = "empty"
	StopLoop      StopReason = "loop" // it went round in a circle
	StopError     StopReason = "error"
	StopSuspended StopReason = "suspended" // it waits for a person
	StopRejected  StopReason = "rejected"  // a person, or a rule of approvals.dispatch, said no
)

// TaskRecord is what became of one task.
type TaskRecord struct {
	ID        string   `json:"id"`
	Title     string   `json:"title"`
	Assignee  string   `json:"assignee"`
	Role      string   `json:"role,omitempty"`
	Label     string   `json:"label,omitempty"` // a word of the team's own, which meets no requirement
	Status    string   `json:"status"`
	DependsOn []string `json:"dependsOn,omitempty"`
	Attempts  int      `json:"attempts"`
	// StartedAt and EndedAt are RFC 3339 with milliseconds, UTC; empty: it never did.
	StartedAt  string     `json:"startedAt,omitempty"`
	EndedAt    string     `json:"endedAt,omitempty"`
	DurationMs int64      `json:"durationMs"`
	StopReason StopReason `json:"stopReason,omitempty"`
	Cause      string     `json:"cause,omitempty"` // why it was skipped or failed, redacted
	ErrorInfo  *ErrorInfo `json:"errorInfo,omitempty"`
	Turns      int        `json:"turns"`
	ModelCalls int        `json:"modelCalls"` // with retries
	Tokens     Usage      `json:"tokens"`
	// Estimated says that some usage was not reported and was estimated.
	Estimated        bool     `json:"estimated,omitempty"`
	Cost             *USD     `json:"cost"` // null: the model has no price
	ToolCalls        CallSums `json:"toolCalls"`
	Provider         string   `json:"provider,omitempty"`
	Models           []string `json:"models,omitempty"` // as the responses name them
	OutputDigest     string   `json:"outputDigest,omitempty"`
	StructuredDigest string   `json:"structuredDigest,omitempty"`
}

// Work gives the records of all tasks and of all delegated runs, in that order.
func (r *Receipt) Work() []TaskRecord {
	out := slices.Clone(r.Tasks)
	for _, d := range r.Delegations {
		out = append(out, d.TaskRecord)
	}
	return out
}

// CallSums counts tool calls. Refused ones never reached a gate; failed ones were allowed and failed or were cut off.
type CallSums struct {
	Allowed   int `json:"allowed"`
	Denied    int `json:"denied"`
	Suspended int `json:"suspended"`
	Refused   int `json:"refused"`
	Failed    int `json:"failed"`
}

// DecisionRecord is one judgement, in order.
type DecisionRecord struct {
	Seq int `json:"seq"` // 1-based
	// Scope is plan or task_dispatch. Empty: a tool call.
	Scope    string `json:"scope,omitempty"`
	TaskID   string `json:"taskId"`
	Agent    string `json:"agent"`
	ToolName string `json:"toolName"`
	// ServerTool is SERVER/TOOL, as the MCP server itself names the tool. Empty: it is of none.
	ServerTool string `json:"serverTool,omitempty"`
	ToolCallID string `json:"toolCallId"`
	Decision
	// InputDigest is of the canonical input. Empty: the input was not accepted, so there is none.
	InputDigest   string `json:"inputDigest,omitempty"`
	ElapsedMicros int64  `json:"elapsedMicros"`
}

// Decision is the outcome of the door for one call.
type Decision struct {
	// Gated is true whenever a gate was evaluated, passes included.
	Gated       bool   `json:"gated"`
	GateAction  string `json:"gateAction,omitempty"`  // allow, deny, suspend or ask
	GateOutcome string `json:"gateOutcome,omitempty"` // decided or error
	// Refused says why a call never reached the gate: not-granted, unknown-tool, invalid-input, protected-path,
	// delegation-self, delegation-unknown, delegation-cycle, delegation-depth, cut, too-many, budget, loop or cancelled.
	Refused string        `json:"refused,omitempty"`
	Rules   []RuleOutcome `json:"rules,omitempty"` // all that matched or failed
	Reason  string        `json:"reason,omitempty"`
	// Approval says what people decided where GateAction is suspend or ask: approved, rejected, expired, or pending. Empty:
	// they were not asked.
	Approval string `json:"approval,omitempty"`
	// RequestID is that of the request to them.
	RequestID string `json:"requestId,omitempty"`
	// Marks are those that this call sets if it runs, sorted.
	Marks []string `json:"marks,omitempty"`
	// Reproduce is the command line that judges a denied call again, for a shell. Empty where the input is too long for
	// one or holds a secret; the event log then has it.
	Reproduce string `json:"reproduce,omitempty"`
}

// Allowed says whether the call may run.
func (d Decision) Allowed() bool {
	return d.Refused == "" && (!d.Gated || d.GateOutcome == "decided" && (d.GateAction == ActionAllow || d.Asks() && d.Approval == ApprovalApproved))
}

// Asks says that the call may run if a person approves it.
func (d Decision) Asks() bool {
	return d.Refused == "" && d.GateOutcome == "decided" && (d.GateAction == ActionAsk || d.GateAction == ActionSuspend)
}

// Waits says that a person has not decided yet.
func (d Decision) Waits() bool {
	return d.Asks() && (d.Approval == "" || d.Approval == ApprovalPending)
}

// Kept says that a tool call was kept from running for good.
func (d DecisionRecord) Kept() bool { return d.Scope == "" && !d.Allowed() && !d.Waits() }

// RuleOutcome is what one rule said of a call.
type RuleOutcome struct {
	Name    string `json:"name"`
	Source  string `json:"source"`
	Action  string `json:"action"`
	Outcome string `json:"outcome"` // matched or error
	Error   string `json:"error,omitempty"`
	// Reason is what reasonExpression gave. Empty: the rule has none, or it gave none.
	Reason string `json:"reason,omitempty"`
	// When and Values say of a rule that forbade a call what it asked and what it read: redacted and clipped.
	When        string       `json:"when,omitempty"`
	Values      []ReadValue  `json:"values,omitempty"`
	Annotations []Annotation `json:"annotations,omitempty"`
}

// ReadValue is a value that a rule read, as JSON.
type ReadValue struct {
	Path  string `json:"path"`
	Value string `json:"value"`
}

// Annotation is a text that a rule adds to the record. It decides nothing.
type Annotation struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
	Error string `json:"error,omitempty"` // why there is no value
}

// RuleTotal counts what one rule did in the run.
type RuleTotal struct {
	Name    string `json:"name"`
	Source  string `json:"source"`
	Matched int    `json:"matched"`
	Errors  int    `json:"errors"`
}

// BudgetRecord is what was declared, what held and what was used.
type BudgetRecord struct {
	Declared  Budgets    `json:"declared"`
	Effective Budgets    `json:"effective"` // after narrowing by flags
	Used      BudgetUsed `json:"used"`
	Exhausted string     `json:"exhausted,omitempty"` // tokens, cost, duration, agent or unmetered
}

// BudgetUsed is what was spent.
type BudgetUsed struct {
	Tokens     int64 `json:"tokens"`
	Cost       *USD  `json:"cost"`
	DurationMs int64 `json:"durationMs"`
}

// Tree is the state of an agent's folder before a required role, or at the end (Before empty).
type Tree struct {
	Before string `json:"before,omitempty"` // a task id
	Cwd    string `json:"cwd"`
	Digest string `json:"digest"`
	// LaterWriter says that this task or one that may run after it could write there, which explains a change.
	LaterWriter bool `json:"laterWriter,omitempty"`
}

// Evidence binds the receipt to the log.
type Evidence struct {
	Journal JournalRef `json:"journal"`
	// Digest is of the canonical encoding of the receipt without this member.
	Digest string `json:"digest"`
}

// JournalRef is the length of the log and the head of its hash chain.
type JournalRef struct {
	Events int64  `json:"events"`
	Head   string `json:"head"`
}
