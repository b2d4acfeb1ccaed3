package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
)

// CheckCall is one call to be judged outside a run. Arguments is text as a model would write it.
type CheckCall struct {
	AgentName string
	ToolName  string
	Arguments string
	// TaskID and Role are what rules may ask for. Empty: those of the agent's own task in the plan, if it has one.
	TaskID string
	Role   string
}

// Checked is what a run's door says of a call that is not made.
type Checked struct {
	core.Judged
	TaskID string
	Role   string
}

// ErrNoAgent says that a plan has no agent of the name asked for.
var ErrNoAgent = errors.New("unknown agent")

// Check judges one call with the very functions a run judges it with, and stops there: no model is asked and no tool
// acts. Of o only Tools, Known and Redact are used. An error means that there is no judgement.
func Check(ctx context.Context, plan *spec.Plan, o Options, c CheckCall) (*Checked, error) {
	r, err := New(plan, o)
	if err != nil {
		return nil, err
	}
	agent := r.agents[c.AgentName]
	if agent == nil {
		return nil, fmt.Errorf("%w %q: %s", ErrNoAgent, c.AgentName, spec.DidYouMean(c.AgentName, sortedKeys(r.agents)))
	}
	tools, closer, err := r.tools(ctx, agent)
	if closer != nil {
		defer closer.Close()
	}
	if err != nil {
		return nil, err
	}
	for _, t := range plan.Tasks {
		if t.Assignee == c.AgentName {
			c.TaskID, c.Role = cmp.Or(c.TaskID, t.ID), cmp.Or(c.Role, t.Role)
			break
		}
	}
	g := &guard{rules: r.rules, now: r.o.Clock, mask: r.mask, permits: map[string]string{}}
	e := &core.Effect{Kind: core.Judge, ID: "check/judge", TaskID: c.TaskID, AgentName: c.AgentName,
		Call: &core.Call{ID: "check", Name: c.ToolName, Role: c.Role, Arguments: c.Arguments}}
	return &Checked{Judged: *g.judge(ctx, &agentParts{agent: agent, tools: tools}, e), TaskID: c.TaskID, Role: c.Role}, nil
}
