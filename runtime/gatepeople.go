package runtime

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
)

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
	if rec.TaskID != e.TaskID || rec.RequestID != r.ID || rec.RequestHash != r.RequestHash || rec.Scope != r.Scope || rec.Boundary != r.Boundary {
		return fmt.Errorf("the answer to request %s is to another one", rec.RequestID)
	}
	if rec.Decision == spec.ApprovalApproved && !res.Cancelled {
		f.calls.approved(&r)
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
	if !j.Asks() || j.onSpot {
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
