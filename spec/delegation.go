package spec

import "encoding/json"

// DelegateTool is the built-in tool by which an agent hands a sub-task to another agent of its team.
const DelegateTool = "delegate_to_agent"

// Delegation bounds how agents hand work to each other.
type Delegation struct {
	// MaxDelegationDepth is how many delegated runs may stand below a task's own agent, one below the other. nil: 3; 0: none.
	MaxDelegationDepth *int `json:"maxDelegationDepth,omitempty"`
}

// DefaultDelegationDepth is the reference's (DL2).
const DefaultDelegationDepth = 3

// DelegationRecord is what became of one delegated run. It has figures of its own, which are part of no task's record.
type DelegationRecord struct {
	TaskRecord // ID is that of the call that asked for it, below its task's; Role is always empty: it fills none
	// Caller is the agent that asked for it, and Decision the seq of the decision that let it.
	Caller   string `json:"caller"`
	Decision int    `json:"decision"`
}

// SharedMemory is where the agents of a team leave what they came to. In YAML it is true, false, or an object. nil: off.
type SharedMemory struct {
	Off bool `json:"-"` // it was declared, as false
	// Redact are patterns in RE2 syntax: what they match in a text is kept as [redacted].
	Redact []string `json:"redact,omitempty"`
}

func (m *SharedMemory) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case "true":
		*m = SharedMemory{}
		return nil
	case "false":
		*m = SharedMemory{Off: true}
		return nil
	}
	type plain SharedMemory
	return json.Unmarshal(b, (*plain)(m))
}

// MemoryEntry says that something was left in the shared memory. The text itself is in the log as an answer.
type MemoryEntry struct {
	// Key is AGENT/task:ID:result, or AGENT/delegation:TARGET:MILLISECONDS-ID.
	Key         string `json:"key"`
	Agent       string `json:"agent"`
	DelegatedTo string `json:"delegatedTo,omitempty"` // of a delegated run
	Success     bool   `json:"success"`
	Digest      string `json:"digest"` // of the text as it was kept
	Chars       int    `json:"chars"`  // of the text, in runes
}
