package spec

import "encoding/json"

// Gates are the rules every granted tool call must pass.
type Gates struct {
	Default string `json:"default,omitempty"` // allow (default) or deny; of the team only
	// Packs name rules that the program carries; none is on unless named.
	Packs []string `json:"packs,omitempty"`
	Files []string `json:"files,omitempty"` // kind: Policy, relative to the file that names them
	Rules []Rule   `json:"rules,omitempty"`
	// Replace names rules of the team that do not hold for this agent; of an agent only. The rule must be overridable.
	Replace []string    `json:"replace,omitempty"`
	Shell   *ShellGates `json:"shell,omitempty"` // of the team only
}

// ShellGates extend what is known of shell commands.
type ShellGates struct {
	Levels []ShellLevel `json:"levels,omitempty"`
}

// ShellLevel gives simple commands that begin with certain words a level of risk. What is around such a command, and
// its redirects and substitutions, is still judged, and the worst level wins.
type ShellLevel struct {
	Match  []string `json:"match"` // the command's name and its first arguments, word by word
	Level  string   `json:"level"` // safe, review or high
	Reason string   `json:"reason"`
	// Override lets the level lower one that is high by itself. Without it nothing does.
	Override bool `json:"override,omitempty"`
}

// Rule is one gate rule.
type Rule struct {
	Name  string   `json:"name"`
	Tools []string `json:"tools,omitempty"` // nil: every tool its agents can reach
	When  string   `json:"when"`            // CEL, bool
	// Action is deny, suspend, ask, warn or allow. A call runs only if nothing forbids it and something permits it.
	Action string `json:"action"`
	Reason string `json:"reason,omitempty"`
	// ReasonExpression is CEL that gives the reason of a match. It stands beside no Reason. Where it fails the decision
	// stays as it is, and the failure is recorded.
	ReasonExpression string `json:"reasonExpression,omitempty"`
	// Annotate holds CEL that gives a text, by name. It is evaluated after the verdict for every match, recorded, and
	// changes nothing.
	Annotate map[string]string `json:"annotate,omitempty"`
	// Mark is set when the rule matches a call that then runs. It stays for the rest of the run, on the task and on
	// every task that is given its text. Empty: none.
	Mark string `json:"mark,omitempty"`
	// Overridable lets an agent's gates.replace drop the rule; of the team's own rules only.
	Overridable bool          `json:"overridable,omitempty"`
	Examples    *RuleExamples `json:"examples,omitempty"`
}

// Asks says that the rule puts what it matches before a person.
func (r *Rule) Asks() bool { return r.Action == ActionSuspend || r.Action == ActionAsk }

// The actions of a rule, strictest first.
const (
	ActionDeny    = "deny"
	ActionSuspend = "suspend"
	ActionAsk     = "ask"
	ActionWarn    = "warn"
	ActionAllow   = "allow"
)

// RuleExamples are calls the rule must match and calls it must not. They run at every validate and plan.
type RuleExamples struct {
	Matches []CallExample `json:"matches,omitempty"`
	Ignores []CallExample `json:"ignores,omitempty"`
}

// CallExample is a call written by hand. ToolName may be left out where the rule names exactly one tool.
type CallExample struct {
	ToolName  string          `json:"toolName,omitempty"`
	AgentName string          `json:"agentName,omitempty"`
	Role      string          `json:"role,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	Situation
}

// Situation is what rules can see of a run beside the call itself. The zero value is that of a run's first call.
type Situation struct {
	Marks   []string         `json:"marks,omitempty"`
	History []HistoryCall    `json:"history,omitempty"` // of the same task, oldest first
	Budget  *BudgetRemaining `json:"budget,omitempty"`  // nil: no ceiling is in force
}

// HistoryCall is an earlier call of the task as it was judged.
type HistoryCall struct {
	ToolName string          `json:"toolName"`
	Input    json.RawMessage `json:"input,omitempty"`
	Action   string          `json:"action,omitempty"` // allow (default), deny, or suspend for one that waits for a person
}

// BudgetRemaining is what is left of the run's ceilings. nil: that ceiling does not exist.
type BudgetRemaining struct {
	Tokens *int64 `json:"tokens,omitempty"`
	Cost   *USD   `json:"cost,omitempty"`
}

// Policy is a file of rules (kind: Policy). In gates.files it adds its rules to a team. Given from outside, it also
// bounds what a team may declare.
type Policy struct {
	Envelope
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Rules       []Rule `json:"rules,omitempty"`
	// Limits hold only for a policy that is given above the team file. nil: none.
	Limits *Limits `json:"limits,omitempty"`
}

// Limits bound what a team file may name and declare. A nil list bounds nothing; an empty one allows nothing.
type Limits struct {
	Env      *[]string `json:"env,omitempty"`      // environment variables that secrets may come from
	Files    *[]string `json:"files,omitempty"`    // globs over the files a team names, relative to its folder
	Origins  *[]string `json:"origins,omitempty"`  // scheme://host[:port] of model calls
	Commands *[]string `json:"commands,omitempty"` // programs that a team's own tools, servers and backends may start
	// A ceiling holds for every team, whether or not it declares one; the lower one wins.
	MaxTokenBudget int64    `json:"maxTokenBudget,omitempty"`
	MaxCostBudget  *USD     `json:"maxCostBudget,omitempty"`
	MaxDuration    Duration `json:"maxDuration,omitempty"`
	// RequiredRoles must be required by every team.
	RequiredRoles []string `json:"requiredRoles,omitempty"`
	// RequireEnforced names controls that must be enforced for every agent at work.
	RequireEnforced []string `json:"requireEnforced,omitempty"`
	// Reviewers are those who may decide what people are asked, each with a key: a team may name some of them, and names
	// nobody else. Where it names none, all of them decide. nil: the team says who.
	Reviewers []Reviewer `json:"reviewers,omitempty"`
	// Quorum and SeparateApprover hold beside Reviewers alone: over names that a team makes up they would bound nothing.
	Quorum           int  `json:"quorum,omitempty"` // the higher of this and the team's own holds; 0: 1
	SeparateApprover bool `json:"separateApprover,omitempty"`
}

// PolicyTest is a file of calls and what a team's whole set of rules must say of them (kind: PolicyTest).
type PolicyTest struct {
	Envelope
	Name string `json:"name,omitempty"`
	// Team is the team file whose rules are tested, relative to this file.
	Team string `json:"team"`
	// Policies are given above the team file, relative to this file.
	Policies []string     `json:"policies,omitempty"`
	Cases    []PolicyCase `json:"cases"`
}

// PolicyCase is one call and what must become of it.
type PolicyCase struct {
	Name      string          `json:"name"`
	AgentName string          `json:"agentName"`
	ToolName  string          `json:"toolName"`
	Role      string          `json:"role,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	Situation
	Expect PolicyExpect `json:"expect"`
}

// PolicyExpect is what a case asks of a decision. What is left out is not asked.
type PolicyExpect struct {
	// Action is allow, deny, suspend, ask, or refused for a call that reaches no gate.
	Action string `json:"action"`
	// Rules are the names of all rules that match, in any order. nil: not asked; empty: none.
	Rules *[]string `json:"rules,omitempty"`
	// Reason must be part of the reason.
	Reason string `json:"reason,omitempty"`
	// Marks are those the call sets, in any order. nil: not asked.
	Marks *[]string `json:"marks,omitempty"`
}
