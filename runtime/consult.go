package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// Approver puts requests before people. A run asks one thing after another.
type Approver interface {
	// Ask puts a request where people find it, or before one who is there, and gives the votes on it so far, and when it
	// expires. What follows from them the guard concludes by itself. The same request may be put again, by a later attempt
	// of the run. action is ask or suspend; it is suspend that is not for whoever sits there. An error means that nobody can
	// decide: the call does not run. It returns soon after ctx ends, then with what it has.
	Ask(ctx context.Context, r spec.ApprovalRequest, action string) (spec.ApprovalRecord, error)
	// Here puts a request before whoever sits there and nobody else: nothing of it is kept, and what asks cannot wait. Where
	// nobody sits whose word alone decides, or none answers, it is an error.
	Here(ctx context.Context, r spec.ApprovalRequest) (spec.ApprovalRecord, error)
}

// ErrCannotSuspend is the answer where nothing is kept that a person could decide about later.
var ErrCannotSuspend = errors.New("this run keeps no log to wait in [cannot-suspend]")

// bound judges the plan, or a task before it starts, by the rules of approvals.
func (g *guard) bound(ctx context.Context, e *core.Effect) *core.Judged {
	r := policies.Request{ToolName: e.Scope, AgentName: e.AgentName, RunID: g.runID, TaskID: e.TaskID, Mask: g.mask,
		Situation: spec.Situation{Marks: e.Marks}}
	switch e.Scope {
	case spec.ScopePlan:
		r.Input = policies.PlanSubject(g.plan)
	case spec.ScopeDispatch:
		r.Input, r.Role = policies.TaskSubject(g.plan, e.Task), e.Task.Role
	default:
		return refuse("unknown-scope", fmt.Sprintf("%q cannot be judged", e.Scope))
	}
	r.Consequential, _ = r.Input["consequential"].(bool)
	canonical, err := canon.Bytes(r.Input)
	if err != nil {
		return refuse("invalid-input", err.Error())
	}
	j := &core.Judged{InputDigest: canon.Digest("input", canonical), Decision: g.bounds[e.Scope].Decide(ctx, r)}
	j.Reason = g.mask(j.Reason)
	return j
}

// boundsOf compiles the rules over the plan and over its tasks.
func boundsOf(p *spec.Plan) (map[string]*policies.Set, error) {
	if p.Approvals == nil {
		return nil, nil
	}
	var roles, agents []string
	if p.Governance != nil {
		roles = p.Governance.RequiredRoles
	}
	for _, a := range p.Agents {
		agents = append(agents, a.Name)
	}
	out := map[string]*policies.Set{}
	for scope, rules := range map[string][]spec.PlanRule{spec.ScopePlan: p.Approvals.Plan, spec.ScopeDispatch: p.Approvals.Dispatch} {
		if len(rules) == 0 {
			continue
		}
		set, diags := policies.CompileBoundary(scope, rules, agents, roles)
		if diags.HasErrors(false) {
			return nil, fmt.Errorf("%w: the rules of approvals do not compile: %s", ErrStale, diags[0].Message)
		}
		out[scope] = set
	}
	return out, nil
}

// request is what people are asked by an effect. It follows from the effect alone, so that a later attempt asks the same.
func (g *guard) request(e *core.Effect) (spec.ApprovalRequest, error) {
	c := spec.ApprovalContent{Kind: e.Scope, Plan: g.plan.Digest, AgentName: e.AgentName, TaskID: e.TaskID, Rules: e.Ask.Rules, Again: e.Ask.Again}
	var err error
	switch e.Scope {
	case spec.ScopeToolCall:
		if g.redacted {
			return spec.ApprovalRequest{}, errRedacted
		}
		t := g.agents[e.AgentName].tools[e.Call.Name]
		c.ToolName, c.ToolCallID, c.Role, c.InputDigest = e.Call.Name, e.Call.ID, e.Call.Role, e.Call.InputDigest
		c.Input, c.Consequential = hideJSON(g.reference, e.Call.Canonical), t == nil || t.Consequential
	case spec.ScopePlan:
		c.Subject, err = canon.Bytes(policies.PlanSubject(g.plan))
	case spec.ScopeDispatch:
		c.Role = e.Task.Role
		c.Subject, err = canon.Bytes(policies.TaskSubject(g.plan, e.Task))
	}
	if err != nil {
		return spec.ApprovalRequest{}, err
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return spec.ApprovalRequest{}, err
	}
	r, err := policies.NewApproval(g.runID, e.Scope, strings.TrimSuffix(e.ID, "/approval"), raw)
	r.Reason = clip(g.mask(e.Ask.Reason), maxReason)
	r.RequestedAt = time.UnixMilli(e.At).UTC()
	if a := g.plan.Approvals; a != nil && a.Expires > 0 {
		r.Expires = r.RequestedAt.Add(time.Duration(a.Expires)).Truncate(time.Millisecond)
	}
	return r, err
}

// consult asks people. Whatever keeps them from being asked is an error, and what was to be approved does not happen.
func (g *guard) consult(ctx context.Context, e *core.Effect) core.Result {
	r, err := g.request(e)
	if err == nil && g.people == nil {
		err = ErrCannotSuspend
	}
	if err != nil {
		return unasked(err)
	}
	done, err := g.speak(ctx)
	if err != nil {
		return core.Result{Cancelled: true}
	}
	rec, err := g.people.Ask(ctx, r, e.Ask.Action)
	done()
	switch {
	case err != nil && ctx.Err() != nil:
		return core.Result{Cancelled: true}
	case err != nil:
		return unasked(err)
	case rec.RequestID != r.ID || rec.RequestHash != r.RequestHash || !rec.Expires.Equal(r.Expires):
		return unasked(errors.New("the answer is to another request"))
	}
	rec = g.concluded(&r, &rec, g.now())
	rec.TaskID = e.TaskID
	g.heed(e, &rec)
	return core.Result{Approval: &rec}
}

// speak waits until nobody else is being asked. The func ends asking.
func (g *guard) speak(ctx context.Context) (func(), error) {
	if g.floor == nil {
		return func() {}, nil
	}
	select {
	case g.floor <- struct{}{}:
		return func() { <-g.floor }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// concluded is what the votes on a request come to, whatever the record says.
func (g *guard) concluded(r *spec.ApprovalRequest, rec *spec.ApprovalRecord, now time.Time) spec.ApprovalRecord {
	return policies.ConcludeApproval(g.plan.Approvals, g.author, r, rec.Votes, now)
}

// errHid is why nothing waits for a person once a model has written a secret: the log has a reference in its place, so a
// later attempt would not be this run.
var errHid = fmt.Errorf("a model has written a key that this program resolved, so the run could not go on with the answer: %w", ErrCannotSuspend)

func unasked(err error) core.Result {
	code := "APPROVAL_FAILED"
	if errors.Is(err, ErrCannotSuspend) || errors.Is(err, errRedacted) {
		code = "CANNOT_SUSPEND"
	}
	return core.Result{Err: &spec.ErrorInfo{Kind: "framework", Code: code, Message: clip(err.Error(), 1024)}}
}

// heed lets what was approved happen, once.
func (g *guard) heed(e *core.Effect, rec *spec.ApprovalRecord) {
	if rec.Decision != spec.ApprovalApproved {
		return
	}
	switch e.Scope {
	case spec.ScopeToolCall:
		g.permit(strings.TrimSuffix(e.ID, "/approval"), e.Call.InputDigest)
	case spec.ScopePlan:
		g.mu.Lock()
		defer g.mu.Unlock()
		g.confirmed = true
	}
}

func (g *guard) isConfirmed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.confirmed
}
