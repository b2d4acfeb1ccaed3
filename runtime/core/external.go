package core

import "github.com/open-multi-agent/oma/spec"

// sit gives the call to an agent that asks meanwhile what came before.
func (w *worker) sit(call *Effect) {
	if b := w.agent.Backend; b != nil && b.Kind == spec.BackendACP {
		call.Call = &Call{Role: w.t.Task.Role, Situation: w.situation()}
	}
}

// requests takes in what an external agent asked for meanwhile, as if it were calls of a turn.
func (w *worker) requests(res *Result) {
	if w.t.Priced = w.t.Priced && !res.Unsure; res.Model == nil { // what it cost up to there nobody says
		return
	}
	for _, p := range res.Model.Permits {
		fact := len(w.t.Calls)
		w.decided(spec.ToolCall{ID: p.ID, Name: p.Tool()}, p.Judged)
		if p.Approval != nil {
			w.out.Approvals = append(w.out.Approvals, *p.Approval)
		}
		if p.Failed() {
			w.t.ToolCalls.Failed++
		}
		if p.Done == nil {
			continue
		}
		w.t.Calls[fact].IsError = p.Done.IsError
		if !p.Done.IsError {
			for _, path := range p.Done.FilesRead {
				w.read(path)
			}
		}
	}
}

// billed says that the agent's own word is all that is known of what its work costs.
func (w *worker) billed() bool {
	return w.agent.Backend != nil && w.agent.Backend.Kind == spec.BackendACP
}

// bill gives what a prompt is said to have cost. It is not known of the task any more once nothing is said of one prompt.
func (w *worker) bill(res *Result) spec.USD {
	var said *spec.USD
	m := res.Model
	if m != nil && m.Response != nil {
		said = m.Response.Cost
	}
	if w.t.Priced = w.t.Priced && said != nil; m == nil {
		return 0
	}
	if said == nil {
		return m.WastedCost
	}
	return spec.AddCapped(m.WastedCost, *said)
}
