package spec

import (
	"fmt"
	"strings"
)

// LockName is where the lock of a team lies: beside the team file.
const LockName = "oma.lock"

// Lock (kind: Lock) pins the tools of a team's MCP servers. From it, rules over them are checked without a server being
// started.
type Lock struct {
	Envelope
	Servers map[string]LockedServer `json:"servers"`
}

// LockedServer is what a server had when it was locked.
type LockedServer struct {
	Tools []LockedTool `json:"tools"` // by name
}

// LockedTool is a tool with the digest of what the server said of it.
type LockedTool struct {
	ServerTool
	Digest string `json:"digest"`
}

// ServerTool is a tool as its MCP server describes it.
type ServerTool struct {
	Name         string      `json:"name"`
	Description  string      `json:"description,omitempty"`
	InputSchema  Schema      `json:"inputSchema,omitempty"`
	OutputSchema Schema      `json:"outputSchema,omitempty"`
	Hints        ServerHints `json:"annotations,omitzero"`
}

// ServerHints are what a server says of a tool's effects. They are for people to see and decide nothing. nil: not said.
type ServerHints struct {
	Title       string `json:"title,omitempty"`
	ReadOnly    *bool  `json:"readOnlyHint,omitempty"`
	Destructive *bool  `json:"destructiveHint,omitempty"`
	Idempotent  *bool  `json:"idempotentHint,omitempty"`
	OpenWorld   *bool  `json:"openWorldHint,omitempty"`
}

// String gives the hints that were given: readOnlyHint=true.
func (h ServerHints) String() string {
	var words []string
	if h.Title != "" {
		words = append(words, fmt.Sprintf("title=%q", h.Title))
	}
	for _, x := range []struct {
		name  string
		value *bool
	}{{"readOnlyHint", h.ReadOnly}, {"destructiveHint", h.Destructive}, {"idempotentHint", h.Idempotent}, {"openWorldHint", h.OpenWorld}} {
		if x.value != nil {
			words = append(words, fmt.Sprintf("%s=%t", x.name, *x.value))
		}
	}
	return strings.Join(words, " ")
}
