package runtime

import (
	"context"
	"errors"
	"io"

	"github.com/open-multi-agent/oma/spec"
)

// told tells the log of a run that has ended again, through the loop that wrote it, with the yardstick's rules: each call
// is judged again, each vote counted again, each release requirement held against the answers again. Nothing is asked and
// nothing acts. What holds a secret cannot be judged again: a reference stands in its place.
func (v *GateVerdict) told(r *spec.Receipt, o *GateOptions, past *Past) {
	if past == nil || !past.Ended || o.Plan.Digest != r.Plan.Digest {
		return // that is a reason by itself
	}
	past.lenient = true
	known := o.Known
	if known == nil {
		known = grantsOf(o.Plan)
	}
	run, err := New(o.Plan, Options{RunID: past.RunID, Build: r.Oma, Known: known, Past: past, Tools: onPaper{},
		Models:   func(string) (Model, error) { return nil, nil },
		Backends: func(*spec.PlanAgent) (Model, io.Closer, error) { return nil, io.NopCloser(nil), nil }})
	var again *Result
	if err == nil {
		again, err = run.Run(context.Background())
	}
	if err != nil {
		v.Integrity, v.Chained = IntegrityDigest, false
		v.broken(hintLog, "the event log does not tell what the plan does: %v", err)
		return
	}
	if past.hid || past.Redacted {
		return
	}
	outcomes := func(all []spec.Released) (out []string) {
		for _, q := range all {
			out = append(out, q.Name+" "+q.Outcome)
		}
		return out
	}
	if plain(outcomes(again.Receipt.Release)) != plain(outcomes(r.Release)) {
		v.broken(hintLog, "by the answers in the event log the release requirements come out otherwise than the receipt says")
	}
	for i, t := range again.Receipt.Tasks {
		if i < len(r.Tasks) && t.StructuredDigest != r.Tasks[i].StructuredDigest {
			v.broken(hintLog, "the answer of task %q is another one in the event log", t.ID)
		}
	}
}

// onPaper offers the tools of a plan to nobody who calls them.
type onPaper struct{}

func (onPaper) Open(_ context.Context, a *spec.PlanAgent) ([]Tool, io.Closer, error) {
	var tools []Tool
	for _, g := range a.Tools {
		tools = append(tools, Tool{ToolInfo: g.ToolInfo, Call: func(context.Context, Invocation) spec.ToolResult {
			return spec.ToolResult{Text: errOnPaper.Error(), IsError: true}
		}})
	}
	return tools, nil, nil
}

var errOnPaper = errors.New("nothing is done here")

func grantsOf(p *spec.Plan) []spec.ToolInfo {
	var out []spec.ToolInfo
	seen := map[string]bool{}
	for i := range p.Agents {
		for _, g := range p.Agents[i].Tools {
			if !seen[g.Name] {
				seen[g.Name] = true
				out = append(out, g.ToolInfo)
			}
		}
	}
	return out
}
