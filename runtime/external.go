package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/open-multi-agent/oma/spec"
)

// external opens what works in a model's place. It is asked once: whatever it did would be done twice.
func (r *Runner) external(ctx context.Context, a *spec.PlanAgent) (*agentParts, io.Closer, error) {
	if r.o.Backends == nil {
		return nil, nil, fmt.Errorf("agent %q: backend %q cannot be started here", a.Name, a.Backend.Kind)
	}
	m, closer, err := r.o.Backends(a)
	if err != nil {
		return nil, nil, fmt.Errorf("agent %q: %w", a.Name, err)
	}
	tools, opened, err := r.tools(ctx, a)
	if opened != nil {
		closer = both{closer, opened}
	}
	return &agentParts{agent: a, model: m, tree: r.treeOf(a), tools: tools}, closer, err
}

// both closes an agent that is a program, and then what served it.
type both [2]io.Closer

func (b both) Close() error { return errors.Join(b[0].Close(), b[1].Close()) }

// given is an agent with the tools that are used for it, without what it asks to use of its own.
func given(a *spec.PlanAgent) *spec.PlanAgent {
	if a.Backend == nil {
		return a
	}
	out := *a
	out.Tools = slices.DeleteFunc(slices.Clone(a.Tools), func(g spec.Grant) bool { return g.Name == spec.PermissionTool })
	return &out
}
