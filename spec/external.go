package spec

import (
	"encoding/json"
	"errors"
)

// CustomTool is a tool of the team's own. Exactly one of Command and HTTP is set.
type CustomTool struct {
	Description string `json:"description,omitempty"`
	// InputSchema is sent to the model as it is written. nil: an object without properties.
	InputSchema Schema `json:"inputSchema,omitempty"`
	// Command is a program and its arguments. {name} in an argument stands for the value of that input property, which is
	// never more than a part of the one argument. The whole input comes on standard input besides, as JSON.
	Command []string  `json:"command,omitempty"`
	HTTP    *HTTPTool `json:"http,omitempty"`
	// Output says what an answer is: text (default), json, or rich, one object {data, modelOutput}.
	Output       string `json:"output,omitempty"`
	OutputSchema Schema `json:"outputSchema,omitempty"` // of what the answer's JSON must be; nil: any
	// Consequential says that a grant permits effects outside the run. Default false.
	Consequential bool `json:"consequential,omitempty"`
	// Idempotent says that a call made twice leaves what it leaves when made once.
	Idempotent bool `json:"idempotent,omitempty"`
	// Credentials are those of the calling agent's that a command gets as variables.
	Credentials    []string `json:"credentials,omitempty"`
	MaxOutputChars int      `json:"maxOutputChars,omitempty"` // runes; 0: the agent's limit
	Timeout        Duration `json:"timeout,omitempty"`        // of one call; 0: 2m
	// PassUndeclared hands on input properties that InputSchema does not declare. Default: they are dropped.
	PassUndeclared bool `json:"passUndeclared,omitempty"`
}

// HTTPTool is a tool that makes one request. Redirects are not followed.
type HTTPTool struct {
	Method string `json:"method,omitempty"` // GET (default), POST, PUT, PATCH or DELETE
	// URL has a literal origin. {name} after it stands for the value of an input property, escaped as one path segment or
	// query value.
	URL     string              `json:"url"`
	Headers map[string]Variable `json:"headers,omitempty"`
	// Body says what is sent: input (default where the method has a body), or none.
	Body string `json:"body,omitempty"`
	// Response is a JSON Pointer to what of the answer the model sees. Empty: all of it.
	Response string `json:"response,omitempty"`
}

// Variable is a value of a header or of an environment variable: a text, or {credential: NAME} with a prefix where one is
// wanted.
type Variable struct {
	Value      string
	Credential string // empty: Value is meant
	Prefix     string // before a credential's value
}

type credentialRef struct {
	Credential string `json:"credential"`
	Prefix     string `json:"prefix,omitempty"`
}

func (v *Variable) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &v.Value)
	}
	var ref credentialRef
	if err := json.Unmarshal(b, &ref); err != nil {
		return err
	}
	if ref.Credential == "" {
		return errors.New("expected text, or {credential: NAME}")
	}
	v.Credential, v.Prefix = ref.Credential, ref.Prefix
	return nil
}

func (v Variable) MarshalJSON() ([]byte, error) {
	if v.Credential == "" {
		return json.Marshal(v.Value)
	}
	return json.Marshal(credentialRef{v.Credential, v.Prefix})
}

// MCPServer is a server of tools. Exactly one of Command and URL is set: stdio, or streamable HTTP.
type MCPServer struct {
	Command string              `json:"command,omitempty"`
	Args    []string            `json:"args,omitempty"`
	Env     map[string]Variable `json:"env,omitempty"` // over a minimal environment
	Cwd     string              `json:"cwd,omitempty"` // relative to the team file. Empty: its folder
	URL     string              `json:"url,omitempty"`
	Headers map[string]Variable `json:"headers,omitempty"`
	// NamePrefix and _ come before each tool's name. Empty: the server's own name in the team file.
	NamePrefix string `json:"namePrefix,omitempty"`
	// Consequential and ReadOnly are tools by the server's names, or "*". What the server says of them is shown and not
	// believed.
	Consequential []string `json:"consequential,omitempty"`
	ReadOnly      []string `json:"readOnly,omitempty"`
	// RequestTimeout bounds connecting, each page of a list and each call. 0: 60s.
	RequestTimeout Duration `json:"requestTimeout,omitempty"`
}

// Backend makes an agent an external one.
type Backend struct {
	Kind    string              `json:"kind"` // process or acp
	Command string              `json:"command"`
	Args    []string            `json:"args,omitempty"`
	Env     map[string]Variable `json:"env,omitempty"` // over a minimal environment
	Cwd     string              `json:"cwd,omitempty"` // empty: the agent's
	// Input says how a process gets its prompt: stdin (default), argument (the last one) or none.
	Input string `json:"input,omitempty"`
	// Permission answers an ACP agent's requests: gates (default), reject or auto-approve.
	Permission string `json:"permission,omitempty"`
	// Capabilities are what an ACP agent may have done for it: fs and terminal. Each grants built-in tools. nil: none.
	Capabilities []string `json:"capabilities,omitempty"`
	// Consequential says that the agent may change something outside the run. nil: true.
	Consequential *bool    `json:"consequential,omitempty"`
	Timeout       Duration `json:"timeout,omitempty"` // of one prompt; 0: the agent's timeout alone
}

// The kinds of backends, and how an ACP agent's requests for permission are answered.
const (
	BackendProcess    = "process"
	BackendACP        = "acp"
	PermissionGates   = "gates"
	PermissionReject  = "reject"
	PermissionApprove = "auto-approve"
)

// What an ACP agent may have done for it: read and write text files, and run commands.
const (
	CapabilityFS       = "fs"
	CapabilityTerminal = "terminal"
)

// PermissionTool is the name under which rules see what an ACP agent asks to be allowed.
const PermissionTool = "permission"

// Asks says that what the agent wants to do is put before the gates.
func (b *Backend) Asks() bool {
	return b != nil && b.Kind == BackendACP && (b.Permission == "" || b.Permission == PermissionGates)
}

// Serves says that the agent is offered something that is done for it.
func (b *Backend) Serves() bool { return b != nil && b.Kind == BackendACP && len(b.Capabilities) > 0 }

// Activity is what an external agent says of one use of a tool of its own.
type Activity struct {
	ID     string `json:"id,omitempty"`
	Title  string `json:"title,omitempty"`
	Kind   string `json:"kind,omitempty"`
	Status string `json:"status,omitempty"`
	Input  string `json:"input,omitempty"`  // JSON, clipped
	Output string `json:"output,omitempty"` // clipped
}

// ShellExecutor says where an agent's bash runs its commands. It grants nothing.
type ShellExecutor struct {
	Kind  string   `json:"kind"`            // local (default), landlock, bubblewrap or container
	Image string   `json:"image,omitempty"` // container alone
	Write []string `json:"write,omitempty"` // folders beside cwd that may be written, relative to the team file
	// Network lets commands open connections. nil: true.
	Network *bool `json:"network,omitempty"`
	// Required refuses to run where the executor cannot hold what it promises. nil: true.
	Required *bool `json:"required,omitempty"`
}
