package spec

import "encoding/json"

// Team is the file a person writes (kind: Team).
type Team struct {
	Envelope
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Goal is the task text every role receives. Only text written in the file expands ${inputs.NAME}, once; $${ is a
	// literal ${.
	Goal   string           `json:"goal,omitempty"`
	Inputs map[string]Input `json:"inputs,omitempty"`

	Providers map[string]Provider `json:"providers,omitempty"`
	Defaults  Defaults            `json:"defaults,omitzero"`
	// CustomTools are tools of the team's own, by name.
	CustomTools map[string]CustomTool `json:"customTools,omitempty"`
	// MCPServers are servers of tools, by name. What they offer is pinned by the lock beside the team file.
	MCPServers map[string]MCPServer `json:"mcpServers,omitempty"`
	Agents     []Agent              `json:"agents"`
	// Tasks are a graph of tasks of the team's own. Empty: the declaration, or the one agent, says what is done.
	Tasks      []Task      `json:"tasks,omitempty"`
	Mode       string      `json:"mode,omitempty"` // auto (default) or single
	Governance *Governance `json:"governance,omitempty"`
	Budgets    Budgets     `json:"budgets,omitzero"`
	Scheduling Scheduling  `json:"scheduling,omitzero"`
	Delegation *Delegation `json:"delegation,omitempty"` // nil: the defaults
	// SharedMemory keeps what tasks and delegated runs came to, under the name of who did it. nil: off.
	SharedMemory *SharedMemory `json:"sharedMemory,omitempty"`
	Gates        *Gates        `json:"gates,omitempty"`
	Release      Release       `json:"release,omitzero"`
	Approvals    *Approvals    `json:"approvals,omitempty"`
	// EgressPolicy bounds where models are asked. nil: wherever their providers say.
	EgressPolicy *EgressPolicy `json:"egressPolicy,omitempty"`
}

// Input is a named text that goal may use as ${inputs.NAME}. Without a default it must be given.
type Input struct {
	Type        string  `json:"type,omitempty"` // string (default)
	Default     *string `json:"default,omitempty"`
	Description string  `json:"description,omitempty"`
}

// Provider is a place where models answer.
type Provider struct {
	Kind    string     `json:"kind"`              // openai, ollama or scripted
	BaseURL string     `json:"baseURL,omitempty"` // empty: the kind's own default
	APIKey  *SecretRef `json:"apiKey,omitempty"`
	// Cassette is the file a scripted provider plays, relative to the team file.
	Cassette string `json:"cassette,omitempty"`
	// Models holds prices and windows. A model in use without a price is an error under a cost ceiling.
	Models map[string]ModelPrice `json:"models,omitempty"`
	// Stream asks for streamed answers. nil: true.
	Stream *bool `json:"stream,omitempty"`
	// EchoReasoning sends a model's reasoning back to it inside a tool loop, for servers that insist. Default false.
	EchoReasoning bool `json:"echoReasoning,omitempty"`
	// MaxRetries counts further attempts after a retryable failure. nil: 2.
	MaxRetries *int `json:"maxRetries,omitempty"`
	// MaxRetryDelay is the longest wait a server may ask for with Retry-After; beyond it the call fails at once.
	// 0: 60s.
	MaxRetryDelay Duration `json:"maxRetryDelay,omitempty"`
}

// SecretRef says where a secret is, never what it is. Exactly one of the two is set.
type SecretRef struct {
	Env  string `json:"env,omitempty"`
	File string `json:"file,omitempty"` // relative to the team file
}

// ModelPrice is what a model costs, in US dollars per million tokens, and how much it takes. A nil price is unknown;
// an explicit 0 is free.
type ModelPrice struct {
	InputPer1M       *USD  `json:"inputPer1M,omitempty"`
	CachedInputPer1M *USD  `json:"cachedInputPer1M,omitempty"` // nil: as inputPer1M
	OutputPer1M      *USD  `json:"outputPer1M,omitempty"`
	ContextWindow    int64 `json:"contextWindow,omitempty"` // tokens; 0: unknown
}

// Defaults fill in what an agent leaves out.
type Defaults struct {
	Provider            string           `json:"provider,omitempty"`
	Model               string           `json:"model,omitempty"`
	ToolPreset          string           `json:"toolPreset,omitempty"` // for agents with neither tools nor toolPreset
	Cwd                 string           `json:"cwd,omitempty"`
	MaxTurns            int              `json:"maxTurns,omitempty"`
	MaxOutputTokens     int64            `json:"maxOutputTokens,omitempty"`
	Temperature         *float64         `json:"temperature,omitempty"`
	Timeout             Duration         `json:"timeout,omitempty"`
	CallTimeout         Duration         `json:"callTimeout,omitempty"`
	MaxToolOutputChars  int              `json:"maxToolOutputChars,omitempty"`
	MaxToolInputBytes   int              `json:"maxToolInputBytes,omitempty"`
	MaxToolConcurrency  int              `json:"maxToolConcurrency,omitempty"`
	CompressToolResults *Compress        `json:"compressToolResults,omitempty"`
	LoopDetection       *LoopDetection   `json:"loopDetection,omitempty"`
	ContextStrategy     *ContextStrategy `json:"contextStrategy,omitempty"`
	ShellExecutor       *ShellExecutor   `json:"shellExecutor,omitempty"` // of agents with bash
}

// Agent is one member of the team.
type Agent struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Provider    string `json:"provider,omitempty"` // empty: defaults.provider
	Model       string `json:"model,omitempty"`    // empty: defaults.model
	// SystemPrompt and SystemPromptFile exclude each other.
	SystemPrompt     string `json:"systemPrompt,omitempty"`
	SystemPromptFile string `json:"systemPromptFile,omitempty"` // relative to the team file

	// Tools names granted tools. nil: not declared; empty: a grant of nothing.
	Tools           *[]string `json:"tools,omitempty"`
	ToolPreset      string    `json:"toolPreset,omitempty"` // readonly, readwrite or full
	DisallowedTools []string  `json:"disallowedTools,omitempty"`
	// CustomTools names tools of the team's own, and of its MCP servers, that the agent has without a grant. SERVER/* stands
	// for all tools of a server.
	CustomTools []string `json:"customTools,omitempty"`
	// MCPServers names the servers whose tools the agent may have; it gives none of them. nil: all servers.
	MCPServers *[]string `json:"mcpServers,omitempty"`
	// Credentials are what its own tools may be given, by name. Nobody else gets them.
	Credentials map[string]SecretRef `json:"credentials,omitempty"`
	// Capabilities are tags that tasks may require.
	Capabilities []string `json:"capabilities,omitempty"`
	// Cwd is the folder file tools work in, relative to the team file. Empty: defaults.cwd, else .agent-workspace
	// under the folder oma runs in.
	Cwd         string `json:"cwd,omitempty"`
	Containment string `json:"containment,omitempty"` // none lifts the file tools' containment in cwd
	Gates       *Gates `json:"gates,omitempty"`       // adds to the team's rules
	// Backend makes it an external agent. nil: a model of a provider works.
	Backend *Backend `json:"backend,omitempty"`

	// OutputSchema is what the final answer must be. nil: any text.
	OutputSchema        Schema    `json:"outputSchema,omitempty"`
	MaxTurns            int       `json:"maxTurns,omitempty"`       // 0: defaults.maxTurns, else 10
	MaxTokenBudget      int64     `json:"maxTokenBudget,omitempty"` // 0: none of its own
	MaxOutputTokens     int64     `json:"maxOutputTokens,omitempty"`
	Temperature         *float64  `json:"temperature,omitempty"`
	Timeout             Duration  `json:"timeout,omitempty"`            // of the agent's whole work on one task
	CallTimeout         Duration  `json:"callTimeout,omitempty"`        // of one model call with its retries; 0: defaults.callTimeout, else 10m
	MaxToolOutputChars  int       `json:"maxToolOutputChars,omitempty"` // runes; 0: no limit
	MaxToolInputBytes   int       `json:"maxToolInputBytes,omitempty"`  // 0: 1 MiB
	MaxToolConcurrency  int       `json:"maxToolConcurrency,omitempty"` // 0: 4
	CompressToolResults *Compress `json:"compressToolResults,omitempty"`
	// LoopDetection ends an agent that goes round in a circle. nil: defaults.loopDetection, else it goes on.
	LoopDetection *LoopDetection `json:"loopDetection,omitempty"`
	// ContextStrategy keeps the conversation from growing. nil: defaults.contextStrategy, else it grows.
	ContextStrategy *ContextStrategy `json:"contextStrategy,omitempty"`
	// ShellExecutor says where bash runs its commands. nil: defaults.shellExecutor, else local.
	ShellExecutor *ShellExecutor `json:"shellExecutor,omitempty"`
	// Unmetered says what happens under a ceiling when the provider reports no usage: refuse (default) or allow.
	Unmetered string `json:"unmetered,omitempty"`
}

// Compress replaces older tool results with a note once the model has seen them. In YAML it is true (500 runes),
// false, or the least number of runes. The zero value is off.
type Compress int

func (c *Compress) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case "true":
		*c = 500
		return nil
	case "false":
		*c = 0
		return nil
	}
	var n int
	err := json.Unmarshal(b, &n)
	*c = Compress(n)
	return err
}

// LoopDetection says when an agent goes round in a circle, and what becomes of it.
type LoopDetection struct {
	// MaxRepetitions is how often in a row the same calls, or the same words beside calls, are one. 0: 3.
	MaxRepetitions int `json:"maxRepetitions,omitempty"`
	// Action is warn (default), which tells the model once and ends the task the next time, or terminate.
	Action string `json:"action,omitempty"`
}

// The actions of LoopDetection.
const (
	LoopWarn      = "warn"
	LoopTerminate = "terminate"
)

// ContextStrategy says how a conversation is kept from growing.
type ContextStrategy struct {
	Type string `json:"type"` // sliding-window or compact
	// MaxTurns is how many turns a sliding window keeps, beside what the task began with. 0: 10.
	MaxTurns int `json:"maxTurns,omitempty"`
	// MaxTokens is the size above which a conversation is compacted, at three bytes a token. 0: 32,000.
	MaxTokens int64 `json:"maxTokens,omitempty"`
}

// The types of ContextStrategy.
const (
	ContextSlidingWindow = "sliding-window"
	ContextCompact       = "compact"
)

// Governance declares which roles must have worked before a run may be called governed.
type Governance struct {
	GovernanceIntent string `json:"governanceIntent"` // required, preferred or none
	// RequiredRoles names agents. They are met by agents that did the work, never by labels.
	RequiredRoles []string `json:"requiredRoles,omitempty"`
	// RequiredOrder is a permutation of RequiredRoles; each role then depends on the one before it.
	RequiredOrder        []string     `json:"requiredOrder,omitempty"`
	Independence         Independence `json:"independence,omitzero"`
	PreferredUnderBudget string       `json:"preferredUnderBudget,omitempty"` // attempt (default) or degrade
}

// The intents of a governance declaration. No declaration at all is a fourth case: undeclared.
const (
	IntentRequired  = "required"
	IntentPreferred = "preferred"
	IntentNone      = "none"
)

// Independence says what makes several roles independent of each other.
type Independence struct {
	// Parallel lets required roles without an order count as independent when they ran as separate agents without
	// seeing each other's output.
	Parallel bool `json:"parallel,omitempty"`
	// ReviewersReadOnly refuses a consequential tool in any required role.
	ReviewersReadOnly bool `json:"reviewersReadOnly,omitempty"`
	// DifferentModel asks that no two required roles share provider and model.
	DifferentModel bool `json:"differentModel,omitempty"`
}

// Budgets are ceilings of one run. Zero means none; flags may only lower them.
type Budgets struct {
	MaxTokenBudget int64    `json:"maxTokenBudget,omitempty"` // input and output tokens together
	MaxCostBudget  *USD     `json:"maxCostBudget,omitempty"`  // nil: none
	MaxDuration    Duration `json:"maxDuration,omitempty"`    // wall clock
	// ReserveForRequired keeps a share of the token ceiling back for required roles that have not started.
	ReserveForRequired bool `json:"reserveForRequired,omitempty"`
}

// EgressPolicy bounds where models are asked, and nothing else: tools, servers and programs ask whom they want. What is set
// holds together. One with neither lets nothing through.
type EgressPolicy struct {
	Offline bool      `json:"offline,omitempty"` // loopback addresses alone
	Allow   *[]string `json:"allow,omitempty"`   // origins, as scheme://host[:port]; nil: any; empty: none
}

// Scheduling bounds what runs at once.
type Scheduling struct {
	MaxConcurrency int `json:"maxConcurrency,omitempty"` // tasks; 0: 5
	// Strategy chooses agents for tasks that name none: dependency-first (default), round-robin, least-busy,
	// capability-match or composite.
	Strategy string   `json:"strategy,omitempty"`
	Weights  *Weights `json:"weights,omitempty"` // of composite. nil: 0.7 and 0.3
}

// Weights are how much an agent's fit and its load count. They are not negative, and not both 0.
type Weights struct {
	Fit  float64 `json:"fit"`
	Load float64 `json:"load"`
}

// Release holds what must be true of the results before they may be released.
type Release struct {
	Require []Requirement `json:"require,omitempty"`
}

// Requirement is one condition over results, by required role. It can only fail a release.
type Requirement struct {
	Name   string `json:"name"`
	That   string `json:"that"` // CEL, bool, over results
	Reason string `json:"reason,omitempty"`
}
