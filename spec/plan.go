package spec

import (
	"encoding/json"
	"math"
	"math/bits"
	"slices"
)

// Plan is a compiled team: everything a run depends on, with the text it was compiled from and the digests of the
// files that text came from. It holds no secret, no environment value, no time and no machine path, so the same inputs
// give the same bytes anywhere. A Plan is immutable once compiled.
type Plan struct {
	Envelope
	// Digest is of the canonical encoding of the plan without this member.
	Digest string `json:"digest"`
	// PlanOnly is always true: a plan has run nothing.
	PlanOnly             bool   `json:"planOnly"`
	GovernanceConclusion string `json:"governanceConclusion"` // always not-applicable

	Team       PlanTeam    `json:"team"`
	Goal       string      `json:"goal"`
	GoalDigest string      `json:"goalDigest"`
	Inputs     []PlanInput `json:"inputs"` // every file, sorted by path, relative to the team file's folder
	// Policies are the sources of rules beside the team file: packs, files and, above the file, policies.
	Policies []PlanPolicy `json:"policies,omitempty"`

	RoutingDecision RoutingDecision         `json:"routingDecision"`
	Governance      *Governance             `json:"governance,omitempty"` // nil: undeclared
	Flags           []string                `json:"flags,omitempty"`
	Providers       map[string]PlanProvider `json:"providers"`
	// CustomTools are the team's own, by name.
	CustomTools map[string]CustomTool `json:"customTools,omitempty"`
	// MCPServers are the team's servers of tools, by name, with what they offered when they were locked.
	MCPServers map[string]PlanMCPServer `json:"mcpServers,omitempty"`
	Agents     []PlanAgent              `json:"agents"` // all of the team, in its order
	Tasks      []PlanTask               `json:"tasks"`
	Gates      PlanGates                `json:"gates"`
	Release    []Requirement            `json:"release,omitempty"`
	Approvals  *PlanApprovals           `json:"approvals,omitempty"` // nil: undeclared
	Budgets    Budgets                  `json:"budgets"`
	// EgressPolicy is the team's, narrowed by policies above it, its origins in one form and sorted. nil: none.
	EgressPolicy *EgressPolicy `json:"egressPolicy,omitempty"`
	Scheduling   Scheduling    `json:"scheduling"`
	// Delegation is there where some agent at work may delegate, with its depth. nil: none may.
	Delegation   *Delegation   `json:"delegation,omitempty"`
	SharedMemory *SharedMemory `json:"sharedMemory,omitempty"` // nil: off
	Enforcement  []Control     `json:"enforcement"`
	WorstCase    WorstCase     `json:"worstCase"`
}

// PlanTeam names the team file. Path is its base name.
type PlanTeam struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	Digest string `json:"digest"`
}

// PlanInput is a file the plan was compiled from.
type PlanInput struct {
	Path   string `json:"path"`
	Digest string `json:"digest"`
	Kind   string `json:"kind"` // Team, Policy, Cassette, Lock, prompt or program
}

// InputProgram is the kind of a program of the team's own.
const InputProgram = "program"

// PlanPolicy is a document of rules that the plan was compiled under.
type PlanPolicy struct {
	Name   string `json:"name"`
	Source string `json:"source"` // pack NAME, file PATH, or policy NAME for one given above the team file
	Digest string `json:"digest"` // of its text with line ends normalised
	// Limits are those of a policy given above the team file; the plan keeps them.
	Limits *Limits `json:"limits,omitempty"`
}

// RoutingDecision says how the topology was chosen.
type RoutingDecision struct {
	Source  string   `json:"source"` // declared, override or policy
	Mode    string   `json:"mode"`   // single or team
	Reasons []string `json:"reasons"`
	// RouterVersion names the rules by which a goal was judged. Empty: none was.
	RouterVersion string `json:"routerVersion,omitempty"`
}

// PlanProvider is a provider as a run needs it: references only.
type PlanProvider struct {
	Provider
	// CassetteDigest is set for a scripted provider.
	CassetteDigest string `json:"cassetteDigest,omitempty"`
}

// PlanMCPServer is a server as a run needs it: references only.
type PlanMCPServer struct {
	MCPServer
	Tools []PlanServerTool `json:"tools"` // those of the lock that can be used
}

// PlanServerTool is a tool as its server described it when it was locked.
type PlanServerTool struct {
	// As is the name that models, rules and grants have for it.
	As string `json:"as"`
	ServerTool
}

// ServerOf gives the server that has a tool, by the name it has in the plan. ok is false for any other tool.
func (p *Plan) ServerOf(tool string) (server string, t *PlanServerTool, ok bool) {
	for name, s := range p.MCPServers {
		for i := range s.Tools {
			if s.Tools[i].As == tool { // names are unique: the order of servers means nothing
				return name, &s.Tools[i], true
			}
		}
	}
	return "", nil, false
}

// PlanAgent is an agent with its defaults filled in and its grants resolved.
type PlanAgent struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Provider    string `json:"provider"`
	Model       string `json:"model"`
	// SystemPrompt is the text itself, also when it came from a file.
	SystemPrompt string `json:"systemPrompt"`

	// Capabilities are tags that tasks may require, sorted.
	Capabilities []string `json:"capabilities,omitempty"`

	Tools   []Grant   `json:"tools"`
	Removed []Removal `json:"removed,omitempty"`
	// Credentials say where those that its own tools get are, never what they are.
	Credentials map[string]SecretRef `json:"credentials,omitempty"`

	// Backend is what works in a model's place. nil: a model does.
	Backend *Backend `json:"backend,omitempty"`

	// ShellExecutor says where bash runs its commands. nil: as any program, or there is no bash.
	ShellExecutor *ShellExecutor `json:"shellExecutor,omitempty"`

	// Cwd is relative to the team file's folder, or empty for .agent-workspace under the invocation's folder.
	Cwd         string `json:"cwd,omitempty"`
	Containment string `json:"containment,omitempty"`

	OutputSchema        Schema           `json:"outputSchema,omitempty"`
	MaxTurns            int              `json:"maxTurns"`
	MaxTokenBudget      int64            `json:"maxTokenBudget,omitempty"`
	MaxOutputTokens     int64            `json:"maxOutputTokens,omitempty"`
	Temperature         *float64         `json:"temperature,omitempty"`
	Timeout             Duration         `json:"timeout,omitempty"`
	CallTimeout         Duration         `json:"callTimeout,omitempty"`
	MaxToolOutputChars  int              `json:"maxToolOutputChars,omitempty"`
	MaxToolInputBytes   int              `json:"maxToolInputBytes"`
	MaxToolConcurrency  int              `json:"maxToolConcurrency"`
	CompressToolResults Compress         `json:"compressToolResults,omitempty"`
	LoopDetection       *LoopDetection   `json:"loopDetection,omitempty"`   // nil: off
	ContextStrategy     *ContextStrategy `json:"contextStrategy,omitempty"` // nil: the conversation grows
	Unmetered           string           `json:"unmetered,omitempty"`
}

// Starts says that the agent, or some tool of it, starts programs, which reach whatever the user may.
func (a *PlanAgent) Starts(p *Plan) bool {
	return a.Has("bash") || a.StartsBesideShell(p)
}

// StartsBesideShell is Starts without bash, which can be kept in.
func (a *PlanAgent) StartsBesideShell(p *Plan) bool {
	return a.Backend != nil || slices.ContainsFunc(a.Tools, func(g Grant) bool {
		server, _, _ := p.ServerOf(g.Name)
		return p.CustomTools[g.Name].Command != nil || p.MCPServers[server].Command != ""
	})
}

// Grant is a tool an agent may use, and the step that granted it.
type Grant struct {
	ToolInfo
	GrantedBy string `json:"grantedBy"` // tools, toolPreset readonly, defaults.toolPreset full …
}

// Removal is a tool an agent might have had, and the step that took it away.
type Removal struct {
	Name      string `json:"name"`
	RemovedBy string `json:"removedBy"`
}

// PlanTask is one node of the graph. In a plan every task is pending.
type PlanTask struct {
	ID          string   `json:"id"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Assignee    string   `json:"assignee"`
	Role        string   `json:"role,omitempty"` // the required role it fills; empty: none
	DependsOn   []string `json:"dependsOn,omitempty"`
	Status      string   `json:"status"` // pending
	// Label is the role that the team file gives the task. It is a word for people, and meets nothing.
	Label string `json:"label,omitempty"`
	// Requires is what its agent must have. nil: nothing.
	Requires *Requires `json:"requires,omitempty"`
	// AssignedBy says how the assignee was chosen. Empty: it was declared.
	AssignedBy        string                     `json:"assignedBy,omitempty"`
	MemoryScope       string                     `json:"memoryScope,omitempty"`       // empty: dependencies
	DependencyPayload string                     `json:"dependencyPayload,omitempty"` // empty: output
	Priority          string                     `json:"priority,omitempty"`          // empty: normal
	Metadata          map[string]json.RawMessage `json:"metadata,omitempty"`
	MaxRetries        int                        `json:"maxRetries,omitempty"`
	RetryDelay        Duration                   `json:"retryDelay,omitempty"`
	RetryBackoff      float64                    `json:"retryBackoff,omitempty"`
}

// PlanGates are all rules in force.
type PlanGates struct {
	// Declared is false when neither team nor any agent declares gates; calls are then not gated at all.
	Declared bool       `json:"declared"`
	Default  string     `json:"default"` // allow or deny
	Rules    []PlanRule `json:"rules"`
	// Levels extend what is known of shell commands, for rules that are not from above the team file.
	Levels []ShellLevel `json:"levels,omitempty"`
}

// PlanRule is a rule with what compiling it found.
type PlanRule struct {
	Rule
	Source string `json:"source"`          // team, agent NAME, file PATH, pack NAME or policy NAME
	Agent  string `json:"agent,omitempty"` // empty: every agent
	// ReplacedFor names the agents that the rule does not hold for, by their gates.replace.
	ReplacedFor []string `json:"replacedFor,omitempty"`
	// AppliesTo lists the tools the rule can match, with the static cost of judging one call.
	AppliesTo []RuleCost `json:"appliesTo"`

	// Doc and Path say where the rule stands; they are for diagnostics and are not part of the plan.
	Doc  string `json:"-"`
	Path Path   `json:"-"`
}

// RuleCost is the estimated cost of one judgement, in CEL cost units, at worst.
type RuleCost struct {
	Tool string `json:"tool"`
	Cost uint64 `json:"cost"`
}

// Control says how far one promise can be kept for one agent.
type Control struct {
	Agent     string `json:"agent"`
	Control   string `json:"control"`
	Level     string `json:"level"` // enforced, observed or not-enforceable
	Mechanism string `json:"mechanism"`
}

// The levels of a control.
const (
	Enforced       = "enforced"
	Observed       = "observed"
	NotEnforceable = "not-enforceable"
)

// WorstCase is the most a run could use if every agent used every turn. It is information, not a limit.
type WorstCase struct {
	// FloorTokens is what one turn of every task takes at least.
	FloorTokens int64 `json:"floorTokens"`
	// Tokens and Cost are absent where a window or a price is unknown.
	Tokens *int64 `json:"tokens,omitempty"`
	Cost   *USD   `json:"cost,omitempty"`
	Reason string `json:"reason,omitempty"` // why a figure is absent
}

// Agent gives an agent of the plan, or nil.
func (p *Plan) Agent(name string) *PlanAgent {
	for i := range p.Agents {
		if p.Agents[i].Name == name {
			return &p.Agents[i]
		}
	}
	return nil
}

// Has says whether the agent is granted a tool.
func (a *PlanAgent) Has(tool string) bool {
	return slices.ContainsFunc(a.Tools, func(g Grant) bool { return g.Name == tool })
}

// Working names the agents that may be asked for something: those with a task, and all of them where one of those may
// delegate.
func (p *Plan) Working() map[string]bool {
	working := map[string]bool{}
	if p.Delegation != nil {
		for i := range p.Agents {
			working[p.Agents[i].Name] = true
		}
	}
	for _, t := range p.Tasks {
		working[t.Assignee] = true
	}
	return working
}

// Acts says that the agent can look at or change something beside its answer.
func (a *PlanAgent) Acts() bool { return len(a.Tools) > 0 || a.Backend != nil }

// Consequential says whether any of the agent's tools is, or what works in its place.
func (a *PlanAgent) Consequential() bool {
	return a.Backend != nil && (a.Backend.Consequential == nil || *a.Backend.Consequential) || slices.ContainsFunc(a.Tools, func(g Grant) bool { return g.Consequential })
}

// DefaultCwd is the folder of agents that declare none, under the folder oma runs in.
const DefaultCwd = ".agent-workspace"

// ByName gives all agents of the plan. Ask once: it is made anew each time.
func (p *Plan) ByName() map[string]*PlanAgent {
	m := make(map[string]*PlanAgent, len(p.Agents))
	for i := range p.Agents {
		m[p.Agents[i].Name] = &p.Agents[i]
	}
	return m
}

// Price gives the price of an agent's model. ok is false where any part of it is unknown.
func (p *Plan) Price(a *PlanAgent) (Price, bool) {
	m, ok := p.Providers[a.Provider].Models[a.Model]
	if !ok || m.InputPer1M == nil || m.OutputPer1M == nil {
		return Price{}, false
	}
	cached := m.InputPer1M
	if m.CachedInputPer1M != nil {
		cached = m.CachedInputPer1M
	}
	return Price{*m.InputPer1M, *cached, *m.OutputPer1M}, true
}

// Price is a complete price, per million tokens.
type Price struct{ Input, CachedInput, Output USD }

// Cost gives what a use costs, exactly, rounded up to a whole pico-dollar once at the end. Products are 128 bits wide:
// a million tokens at 15 dollars do not fit 64.
func (p Price) Cost(u Usage) USD {
	var hi, lo uint64
	add := func(price USD, tokens int64) {
		h, l := bits.Mul64(uint64(price), uint64(max(tokens, 0)))
		var carry uint64
		lo, carry = bits.Add64(lo, l, 0)
		hi, _ = bits.Add64(hi, h, carry)
	}
	add(p.Input, u.Input-u.CachedInput)
	add(p.CachedInput, u.CachedInput)
	add(p.Output, u.Output)
	add(1, perMillion-1)
	if hi >= perMillion {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, perMillion)
	return USD(min(q, math.MaxInt64))
}

// OutputFor gives how many output tokens an amount buys. A free model gives the largest number.
func (p Price) OutputFor(amount USD) int64 {
	hi, lo := bits.Mul64(uint64(max(amount, 0)), perMillion)
	if p.Output <= 0 || hi >= uint64(p.Output) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(p.Output))
	return int64(min(q, math.MaxInt64))
}

const perMillion = 1_000_000

// Encode gives the bytes of a plan as they are written to a file.
func (p *Plan) Encode() ([]byte, error) { return json.MarshalIndent(p, "", "  ") }
