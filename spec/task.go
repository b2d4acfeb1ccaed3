package spec

import "encoding/json"

// Task is one node of a team's own graph of tasks.
type Task struct {
	Title       string `json:"title"` // unique in the team, whatever its case
	Description string `json:"description"`
	Assignee    string `json:"assignee,omitempty"` // an agent. Empty: scheduling.strategy chooses
	// DependsOn names tasks, by title whatever its case, or by id.
	DependsOn []string `json:"dependsOn,omitempty"`
	// Role is a label. Required roles are met by agents that did the work, never by labels.
	Role     string    `json:"role,omitempty"`
	Requires *Requires `json:"requires,omitempty"` // nil: anybody can do it
	// MemoryScope is dependencies (default) or all: what the task is told of what others came to.
	MemoryScope string `json:"memoryScope,omitempty"`
	// DependencyPayload is output (default), structured or both: what the tasks that it depends on hand on.
	DependencyPayload string `json:"dependencyPayload,omitempty"`
	// Priority is low, normal (default), high or critical: of tasks that could start, the one with more starts first.
	Priority string `json:"priority,omitempty"`
	// Metadata are the team's own words: texts, numbers, booleans and lists of one of these. Nothing is decided by them.
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
	// MaxRetries counts further attempts after a failure that may pass. 0: none.
	MaxRetries int `json:"maxRetries,omitempty"`
	// RetryDelay is waited before the first of them, half of it at least. 0: 1s.
	RetryDelay Duration `json:"retryDelay,omitempty"`
	// RetryBackoff multiplies the delay from one to the next. nil: 2.
	RetryBackoff *float64 `json:"retryBackoff,omitempty"`
}

// Requires is what an agent must have to do a task.
type Requires struct {
	RequiredTools        []string `json:"requiredTools,omitempty"`        // granted
	RequiredCapabilities []string `json:"requiredCapabilities,omitempty"` // declared, letter for letter
	RequiredBackend      string   `json:"requiredBackend,omitempty"`      // llm, process or acp
	RequiredProvider     string   `json:"requiredProvider,omitempty"`     // an external agent has none
}

// The words of a task.
const (
	MemoryDependencies = "dependencies"
	MemoryAll          = "all"
	PayloadOutput      = "output"
	PayloadStructured  = "structured"
	PayloadBoth        = "both"
)

// Priorities are the words of priority, the lowest first.
var Priorities = []string{"low", "normal", "high", "critical"}
