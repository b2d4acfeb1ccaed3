package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// ErrNobodyHere is the answer of an Approver where nobody sits whose word is enough.
var ErrNobodyHere = errors.New("nobody sits here whose word is enough")

// consult asks whoever sits there about a request, while the agent waits for it. Where nobody does, and where it must be able
// to wait, that is a no: what waits is the agent's own process, which cannot be suspended.
func (d *desk) consult(ctx context.Context, n int, p *core.Permit) {
	j := p.Judged
	if !j.Asks() {
		return
	}
	j.Holds = false
	rec, err := d.answer(ctx, n, p)
	if err != nil {
		j.GateAction, j.GateOutcome, j.Marks = spec.ActionDeny, "error", nil
		j.Reason = clip(d.g.mask(fmt.Sprintf("a request of an external agent cannot wait for a person: %v [cannot-suspend]", err)), maxReason)
		j.Text = fmt.Sprintf("Tool %q needs a person's approval, and %v.", p.Tool(), err)
		p.At = 0
		return
	}
	p.Approval, j.Approval, j.RequestID = rec, rec.Decision, rec.RequestID
	switch {
	case j.Allowed():
		d.g.permit(d.id(n), j.InputDigest)
	case len(rec.Votes) > 0 && rec.Votes[len(rec.Votes)-1].Reason != "":
		j.Text = fmt.Sprintf("Tool %q denied by a person: %s", p.Tool(), rec.Votes[len(rec.Votes)-1].Reason)
	default:
		j.Text = fmt.Sprintf("Tool %q denied by a person.", p.Tool())
	}
}

func (d *desk) answer(ctx context.Context, n int, p *core.Permit) (*spec.ApprovalRecord, error) {
	switch {
	case p.Judged.GateAction != spec.ActionAsk:
		return nil, errors.New("a rule wants it to wait for somebody elsewhere")
	case d.g.people == nil:
		return nil, ErrNobodyHere
	}
	p.At = d.g.now().UnixMilli()
	ask := d.asking(n, p)
	r, err := d.g.request(ask)
	if err != nil {
		return nil, err
	}
	done, err := d.g.speak(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	rec, err := d.g.people.Here(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return d.g.heard(ask, &r, &rec)
}

// heard is what an answer on the spot comes to. One that decides nothing is none.
func (g *guard) heard(e *core.Effect, r *spec.ApprovalRequest, rec *spec.ApprovalRecord) (*spec.ApprovalRecord, error) {
	if rec.RequestID != r.ID || rec.RequestHash != r.RequestHash || !rec.Expires.Equal(r.Expires) {
		return nil, errors.New("the answer is to another request")
	}
	out := g.concluded(r, rec, g.now())
	out.TaskID = e.TaskID
	if out.Decision == spec.ApprovalPending {
		return nil, ErrNobodyHere
	}
	return &out, nil
}

// permitsAgain judges an external agent's requests once more, and counts again what people said of them.
func (g *guard) permitsAgain(e *core.Effect, permits []core.Permit) error {
	parts := g.agents[e.AgentName]
	if parts == nil || e.Call == nil {
		return fmt.Errorf("agent %q asks for nothing", e.AgentName)
	}
	d := g.desk(parts, e)
	for i, p := range permits {
		if err := d.permitAgain(i+1, &p); err != nil {
			return fmt.Errorf("request %d: %w", i+1, err)
		}
		d.past = after(d.past, &p)
	}
	return nil
}

// permitAgain leaves the canonical form of what was asked in p.
func (d *desk) permitAgain(n int, p *core.Permit) error {
	if p.Judged == nil {
		return errors.New("it was not judged")
	}
	if p.ToolName == spec.PermissionTool || p.Done != nil && (p.ToolName == "" || !p.Judged.Allowed()) {
		return errors.New("something was done that nobody had let happen")
	}
	j := *p.Judged
	if len(j.Canonical) > 0 {
		if c, err := canon.Canonical(j.Canonical); err == nil { // the log's encoder escapes what canon does not
			j.Canonical = c
		}
	}
	p.Judged = &j
	judged := j
	judged.Approval, judged.RequestID = "", ""                                          // those are people's, and not the rules'
	if failed := j.GateOutcome == "error" && j.GateAction == spec.ActionDeny; !failed { // it let nothing happen
		if err := d.g.judgedAgain(d.judging(n, p, ""), &judged); err != nil {
			return err
		}
	}
	return d.answeredAgain(n, p)
}

// answeredAgain counts the votes on a request again. They were cast on the spot, by whoever sat there.
func (d *desk) answeredAgain(n int, p *core.Permit) error {
	rec, said := p.Approval, spec.ApprovalRecord{}
	if rec != nil {
		said = *rec
	}
	switch j := p.Judged; {
	case j.Approval != said.Decision || j.RequestID != said.RequestID, rec == nil && j.Asks():
		return errors.New("people answered otherwise")
	case rec == nil:
		return nil
	case !j.Asks() || j.GateAction != spec.ActionAsk || rec.Decision == spec.ApprovalPending || rec.TaskID != d.e.TaskID:
		return errors.New("people answered what they were not asked")
	}
	return d.g.concludedAgain(d.asking(n, p), rec)
}
