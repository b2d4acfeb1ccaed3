package runtime

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
)

// approvals holds the decisions that people took against the receipt itself: nothing ran that waited for a person unless
// a request was approved.
func (v *GateVerdict) approvals(r *spec.Receipt) {
	became := map[string]string{}
	for _, a := range slices.Concat(r.ApprovalDecisions, r.PendingApprovals) {
		became[a.RequestID] = a.Decision
	}
	for _, a := range r.ApprovalDecisions {
		if a.Decision == spec.ApprovalPending {
			v.broken(hintReceipt, "request %s is among those that were decided and says that it was not", a.RequestID)
		}
	}
	for _, a := range r.PendingApprovals {
		if a.Decision != spec.ApprovalPending {
			v.broken(hintReceipt, "request %s is among those that wait and says that it was %s", a.RequestID, a.Decision)
		}
	}
	for _, d := range r.Decisions {
		switch {
		case d.RequestID == "" && d.Approval != "" && d.Approval != spec.ApprovalPending:
			v.broken(hintReceipt, "decision %d was %s by people whom nobody asked", d.Seq, d.Approval)
		case d.RequestID != "" && became[d.RequestID] != d.Approval:
			v.broken(hintReceipt, "decision %d says that request %s was %s, and the receipt has it otherwise", d.Seq, d.RequestID, d.Approval)
		}
	}
}

// people holds what was decided against who may decide, by the yardstick: every signature is checked again.
func (v *GateVerdict) people(r *spec.Receipt, p *spec.Plan) {
	for _, a := range slices.Concat(r.ApprovalDecisions, r.PendingApprovals) {
		req := requestOf(r, &a)
		again := concludedAgain(p.Approvals, r.Author, &req, &a)
		if plain(again) != plain(a) {
			v.broken(hintReceipt, "request %s is said to be %s, and by the votes on it and the plan's reviewers it is %s", a.RequestID, a.Decision, again.Decision)
		}
	}
	v.boundaries(r, p)
	v.confirmations(r, p)
}

// requestOf gives what a record says was asked, without its content.
func requestOf(r *spec.Receipt, a *spec.ApprovalRecord) spec.ApprovalRequest {
	return spec.ApprovalRequest{ID: a.RequestID, RunID: r.RunID, Scope: a.Scope, Boundary: a.Boundary, RequestHash: a.RequestHash, Expires: a.Expires}
}

// concludedAgain gives the record that the votes on a record lead to.
func concludedAgain(who *spec.PlanApprovals, author string, req *spec.ApprovalRequest, a *spec.ApprovalRecord) spec.ApprovalRecord {
	var now time.Time // nothing has expired, unless that is what it says
	if a.Decision == spec.ApprovalExpired {
		now = a.Expires
	}
	again := policies.ConcludeApproval(who, author, req, a.Votes, now)
	again.TaskID = a.TaskID
	return again
}

// boundaries holds what started against the decisions about the plan and its tasks.
func (v *GateVerdict) boundaries(r *spec.Receipt, p *spec.Plan) {
	var plan, dispatch bool // rules there are
	if a := p.Approvals; a != nil {
		plan, dispatch = len(a.Plan) > 0, len(a.Dispatch) > 0
	}
	passed := map[string]bool{} // scope and task
	for _, d := range r.Decisions {
		if d.Scope != "" {
			passed[d.Scope+" "+d.TaskID] = d.Allowed()
		}
	}
	for _, t := range r.Tasks {
		switch {
		case t.StartedAt == "":
		case plan && !passed[spec.ScopePlan+" "]:
			v.broken(hintReceipt, "task %q started and the plan was not let through", t.ID)
		case dispatch && !passed[spec.ScopeDispatch+" "+t.ID]:
			v.broken(hintReceipt, "task %q started and was not let through", t.ID)
		}
	}
}

// confirmations holds consequential calls against the confirmation that they needed.
func (v *GateVerdict) confirmations(r *spec.Receipt, p *spec.Plan) {
	if !core.Confirms(p) {
		return
	}
	confirmed := slices.ContainsFunc(r.Decisions, func(d spec.DecisionRecord) bool {
		return d.Scope == spec.ScopePlan && d.Approval == spec.ApprovalApproved
	})
	agents := p.ByName()
	for _, d := range r.Decisions {
		a := agents[d.Agent]
		if confirmed || d.Scope != "" || a == nil || !d.Allowed() || d.Approval == spec.ApprovalApproved {
			continue
		}
		if slices.ContainsFunc(a.Tools, func(g spec.Grant) bool { return g.Name == d.ToolName && g.Consequential }) {
			v.broken(hintReceipt, "decision %d let a consequential call run that nobody had confirmed", d.Seq)
		}
	}
}

// peopleFacts is what a log says of people.
type peopleFacts struct {
	requests map[string]spec.ApprovalRequest // by the effect that asked
	answers  map[string]core.Result
	decided  []spec.ApprovalRecord
	pending  []spec.ApprovalRecord
}

// asked takes a request, which must be what its hash and its id say.
func (f *logFacts) asked(e *spec.Event) error {
	var r spec.ApprovalRequest
	if len(e.Data) == 0 { // it could not be made, and nobody was asked
		return nil
	}
	if err := json.Unmarshal(e.Data, &r); err != nil {
		return err
	}
	if err := policies.CheckApproval(&r); err != nil {
		return err
	}
	if r.RunID != f.run || r.Boundary != strings.TrimSuffix(e.ID, "/approval") {
		return fmt.Errorf("request %s is of another place", r.ID)
	}
	f.people.requests[e.ID] = r
	return nil
}

// heard takes an answer, which must be to what was asked.
func (f *logFacts) heard(e *spec.Event, res *core.Result) error {
	f.people.answers[e.ID] = *res
	rec := res.Approval
	if rec == nil {
		return nil
	}
	r := f.people.requests[e.ID]
	if rec.RequestID != r.ID || rec.RequestHash != r.RequestHash || rec.Scope != r.Scope || rec.Boundary != r.Boundary {
		return fmt.Errorf("the answer to request %s is to another one", rec.RequestID)
	}
	if rec.Decision == spec.ApprovalPending {
		f.people.pending = append(f.people.pending, *rec)
	} else {
		f.people.decided = append(f.people.decided, *rec)
	}
	return nil
}

// settled puts what people said over a judgement, as the run did. False: what they were asked about is another call.
func (f *logFacts) settled(j judgement) (judgement, bool) {
	if !j.Asks() {
		return j, true
	}
	res, known := f.people.answers[j.id+"/approval"]
	switch rec := res.Approval; {
	case !known:
		return j, false
	case rec != nil:
		var c spec.ApprovalContent
		err := json.Unmarshal(f.people.requests[j.id+"/approval"].Content, &c)
		if j.Approval, j.RequestID = rec.Decision, rec.RequestID; res.Cancelled {
			j.Approval = spec.ApprovalPending
		}
		return j, err == nil && (j.scope != "" || c.InputDigest == j.digest)
	case res.Cancelled:
		j.Approval = spec.ApprovalPending
	default:
		j.GateAction, j.GateOutcome, j.Reason = spec.ActionDeny, "error", "nobody could be asked"
		if res.Err != nil {
			j.Reason = res.Err.Message
		}
	}
	return j, true
}
