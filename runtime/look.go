package runtime

import (
	"context"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/spec/canon"
)

// Looked is a judgement, with what each rule that looked at the call read and said.
type Looked struct {
	Checked
	Seen []policies.Seen
}

// Look judges a call as Check does, and asks every rule that looks at it what it read. A call that was refused met no
// rule.
func (k *Checker) Look(ctx context.Context, c CheckCall) (*Looked, error) {
	j, err := k.Check(ctx, c)
	if err != nil {
		return nil, err
	}
	out := &Looked{Checked: *j}
	if j.Refused != "" {
		return out, nil
	}
	parts, err := k.question(ctx, &c)
	if err != nil {
		return nil, err
	}
	tool := parts.tools[c.ToolName]
	input, err := canon.Arguments(string(j.Canonical))
	if err != nil {
		return nil, err
	}
	canon.Shape(tool.input.decoded, input)
	out.Seen = k.r.rules.Look(ctx, policies.Request{ToolName: c.ToolName, Input: input, AgentName: c.AgentName, Role: c.Role, TaskID: c.TaskID,
		ToolCallID: checkID, Consequential: tool.Consequential, Mask: k.r.mask, Situation: c.Situation})
	for i := range out.Seen {
		for n, v := range out.Seen[i].Values {
			out.Seen[i].Values[n].Value = k.r.mask(v.Value)
		}
	}
	return out, nil
}
