package runtime

import (
	"slices"
	"time"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
)

// approvals holds the decisions that people took against the receipt itself: nothing ran that waited for a person unless
// the request about that very call of this very run was approved, by votes that say so whoever may decide.
func (v *GateVerdict) approvals(r *spec.Receipt) {
	records, asked := map[string]*spec.ApprovalRecord{}, map[string]bool{}
	for _, of := range []struct {
		all     []spec.ApprovalRecord
		pending bool
		among   string
	}{{r.ApprovalDecisions, false, "were decided"}, {r.PendingApprovals, true, "wait"}} {
		for i := range of.all {
			a := &of.all[i]
			if (a.Decision == spec.ApprovalPending) != of.pending {
				v.broken(hintReceipt, "request %s is among those that %s and says that it was %s", a.RequestID, of.among, a.Decision)
			}
			if asked[a.Boundary] {
				v.broken(hintReceipt, "people were asked about %q twice", a.Boundary)
			}
			records[a.RequestID], asked[a.Boundary] = a, true
			v.request(r, a)
		}
	}
	v.places(r, records)
}

// request holds one record against itself.
func (v *GateVerdict) request(r *spec.Receipt, a *spec.ApprovalRecord) {
	if req := requestOf(r, a); policies.ApprovalID(&req) != a.RequestID {
		v.broken(hintReceipt, "request %s is of another run or place: its id does not follow from this one", a.RequestID)
	}
	if again := counted(r, a); plain(again) != plain(*a) {
		v.broken(hintReceipt, "request %s is said to be %s, and by the votes on it it is %s", a.RequestID, a.Decision, again.Decision)
	}
}

// counted gives the record that the votes on a record lead to, whoever may decide and however many of them must.
func counted(r *spec.Receipt, a *spec.ApprovalRecord) spec.ApprovalRecord {
	req := requestOf(r, a)
	again := concludedAgain(&spec.PlanApprovals{Quorum: leastQuorum(a)}, r.Author, &req, a)
	again.Authenticated = a.Authenticated && len(again.Votes) > 0 && !slices.ContainsFunc(again.Votes, func(v spec.ApprovalVote) bool { return len(v.Signature) == 0 })
	return again
}

// people holds what was decided against who may decide, by the yardstick: every signature is checked again.
func (v *GateVerdict) people(r *spec.Receipt, p *spec.Plan) {
	ends := p.Approvals != nil && p.Approvals.Expires > 0
	for _, a := range slices.Concat(r.ApprovalDecisions, r.PendingApprovals) {
		if ends == a.Expires.IsZero() {
			v.broken(hintReceipt, "request %s expires otherwise than the plan says", a.RequestID)
		}
		req := requestOf(r, &a)
		again := concludedAgain(p.Approvals, r.Author, &req, &a)
		if plain(again) != plain(a) && plain(counted(r, &a)) == plain(a) {
			v.broken(hintReceipt, "request %s is said to be %s, and by the votes on it and the plan's reviewers it is %s", a.RequestID, a.Decision, again.Decision)
		}
	}
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

// confirmations holds consequential calls against the confirmation that they needed.
func (v *GateVerdict) confirmations(r *spec.Receipt, p *spec.Plan) {
	if !core.Confirms(p) {
		return
	}
	confirmed := slices.ContainsFunc(r.Decisions, func(d spec.DecisionRecord) bool {
		return d.Scope == spec.ScopePlan && d.Asks() && d.Approval == spec.ApprovalApproved
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
