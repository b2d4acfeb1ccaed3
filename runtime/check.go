package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// CheckCall is one call to be judged outside a run. Arguments is text as a model would write it.
type CheckCall struct {
	AgentName string
	ToolName  string
	Arguments string
	// TaskID and Role are what rules may ask for. With neither they are those of the agent's own task in the plan, if it
	// has one. A task of the plan has its role with it; of any other there is none.
	TaskID string
	Role   string
	// Situation is what came before the call. Inputs of earlier calls are as a model would write them.
	Situation spec.Situation
}

// Checked is what a run's door says of a call that is not made.
type Checked struct {
	core.Judged
	TaskID string
	Role   string
}

// Problems of a question, which say that there is no answer.
var (
	ErrNoAgent = errors.New("unknown agent")
	ErrNoMark  = errors.New("unknown mark")
)

// EarlierError is an earlier call that no run could have made before the one that is asked about.
type EarlierError struct {
	Index int // from 0
	Why   string
}

func (e *EarlierError) Error() string { return fmt.Sprintf("history[%d]: %s", e.Index, e.Why) }

// Checker judges calls of one plan with the very functions a run judges them with. No model is asked, and no tool acts
// but where Make is called. It is for one goroutine.
type Checker struct {
	r       *Runner
	opened  map[string]*agentParts // by agent, with nothing but tools
	closers []io.Closer
}

// NewChecker prepares judgements. Of o only Tools, Known, Redact, Reference and Retrace are used.
func NewChecker(plan *spec.Plan, o Options) (*Checker, error) {
	r, err := New(plan, o)
	if err != nil {
		return nil, err
	}
	return &Checker{r: r, opened: map[string]*agentParts{}}, nil
}

// Close closes what was opened.
func (k *Checker) Close() error {
	var errs []error
	for _, c := range k.closers {
		errs = append(errs, c.Close())
	}
	k.closers = nil
	return errors.Join(errs...)
}

// Check judges one call. An error means that there is no judgement.
func (k *Checker) Check(ctx context.Context, c CheckCall) (*Checked, error) {
	parts, err := k.question(ctx, &c)
	if err != nil {
		return nil, err
	}
	g := k.door()
	g.confirmed = true // that nobody has approved the plan yet is not the rules' word: whoever asks here asks about them
	return g.checked(ctx, parts, &c), nil
}

// Make judges one call as Check does and makes it if it may run: what a run would ask a person about, or hold until a
// person has approved the plan, is not made. The result is nil where the call was not made. Nothing of it is recorded.
func (k *Checker) Make(ctx context.Context, c CheckCall) (*Checked, *spec.ToolResult, error) {
	parts, err := k.question(ctx, &c)
	if err != nil {
		return nil, nil, err
	}
	g := k.door()
	j := g.checked(ctx, parts, &c)
	if !j.Allowed() {
		return j, nil, nil
	}
	res := g.act(ctx, parts, &core.Effect{Kind: core.ToolCall, ID: checkID, TaskID: c.TaskID, AgentName: c.AgentName,
		Call: &core.Call{ID: checkID, Name: c.ToolName, Role: c.Role, Canonical: j.Canonical}})
	switch {
	case res.Err != nil:
		return j, nil, errors.New(res.Err.Message)
	case res.Tool == nil:
		return j, nil, context.Cause(ctx)
	}
	return j, res.Tool, nil
}

// door is a run's, for one call.
func (k *Checker) door() *guard {
	return &guard{plan: k.r.plan, rules: k.r.rules, now: k.r.o.Clock, mask: k.r.mask, retrace: k.r.retrace(), reference: k.r.o.Reference, permits: map[string]string{}}
}

func (g *guard) checked(ctx context.Context, parts *agentParts, c *CheckCall) *Checked {
	e := &core.Effect{Kind: core.Judge, ID: checkID + "/judge", TaskID: c.TaskID, AgentName: c.AgentName,
		Call: &core.Call{ID: checkID, Name: c.ToolName, Role: c.Role, Arguments: c.Arguments, Situation: c.Situation, Chain: []string{c.AgentName}}}
	return &Checked{Judged: *g.judge(ctx, parts, e), TaskID: c.TaskID, Role: c.Role}
}

// Confirms says that a run of the plan denies consequential calls until a person has approved it.
func Confirms(p *spec.Plan) bool { return core.Confirms(p) }

// checkID stands for the id that a model gives a call.
const checkID = "check"

// question makes a call what a run would have judged: its task and role, and earlier calls in the form they are kept in.
func (k *Checker) question(ctx context.Context, c *CheckCall) (*agentParts, error) {
	parts, err := k.parts(ctx, c.AgentName)
	if err != nil {
		return nil, err
	}
	for _, t := range k.r.plan.Tasks {
		if t.Assignee == c.AgentName && (c.TaskID == "" || c.TaskID == t.ID) {
			c.TaskID, c.Role = t.ID, cmp.Or(c.Role, t.Role)
			break
		}
	}
	if err := k.marks(c.Situation.Marks); err != nil {
		return nil, err
	}
	c.Situation.History, err = parts.earlier(c.Situation.History, k.r.o.Known)
	return parts, err
}

func (k *Checker) parts(ctx context.Context, name string) (*agentParts, error) {
	if p := k.opened[name]; p != nil {
		return p, nil
	}
	agent := k.r.agents[name]
	if agent == nil {
		return nil, fmt.Errorf("%w %q: %s", ErrNoAgent, name, spec.DidYouMean(name, sortedKeys(k.r.agents)))
	}
	tools, closer, err := k.r.tools(ctx, agent)
	if closer != nil {
		k.closers = append(k.closers, closer)
	}
	if err != nil {
		return nil, err
	}
	p := &agentParts{agent: agent, tools: tools}
	k.opened[name] = p
	return p, nil
}

// marks refuses a mark that no rule sets: a misspelt one would be taken for one that is not set.
func (k *Checker) marks(given []string) error {
	var known []string
	for _, r := range k.r.plan.Gates.Rules {
		if r.Mark != "" && !slices.Contains(known, r.Mark) {
			known = append(known, r.Mark)
		}
	}
	for _, m := range given {
		if !slices.Contains(known, m) {
			return fmt.Errorf("%w %q: %s", ErrNoMark, m, cmp.Or(spec.DidYouMean(m, known), "no rule sets any"))
		}
	}
	return nil
}

// earlier decodes, shapes and checks earlier calls as they once were, and gives them as a run keeps them.
func (p *agentParts) earlier(calls []spec.HistoryCall, known []spec.ToolInfo) ([]spec.HistoryCall, error) {
	if len(calls) > policies.MaxHistory {
		return nil, &EarlierError{policies.MaxHistory, fmt.Sprintf("there are %d earlier calls, and rules see the last %d", len(calls), policies.MaxHistory)}
	}
	out := slices.Clone(calls)
	for i := range out {
		c := &out[i]
		tool := p.tools[c.ToolName]
		if tool == nil {
			return nil, &EarlierError{i, p.without(c.ToolName, known)}
		}
		input, err := tool.decode(string(c.Input), p.agent.MaxToolInputBytes)
		if err == nil && tool.Normalise != nil {
			err = tool.Normalise(input)
		}
		if err == nil {
			c.Input, err = canon.Bytes(input)
		}
		if err != nil {
			return nil, &EarlierError{i, err.Error()}
		}
		switch c.Action = cmp.Or(c.Action, spec.ActionAllow); c.Action {
		case spec.ActionAllow, spec.ActionDeny, spec.ActionSuspend:
		default:
			return nil, &EarlierError{i, fmt.Sprintf("action %q is not allow, deny or suspend", c.Action)}
		}
	}
	return out, nil
}

// without says why the agent cannot have called a tool.
func (p *agentParts) without(name string, known []spec.ToolInfo) string {
	var names []string
	for _, t := range known {
		names = append(names, t.Name)
	}
	if !slices.Contains(names, name) {
		return fmt.Sprintf("there is no tool %q: %s", name, spec.DidYouMean(name, names))
	}
	return fmt.Sprintf("tool %q is not granted to agent %q", name, p.agent.Name)
}
