package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// retold says why a result in a log cannot have been so. Whoever can write a log can write any answer of a model or tool
// into it, and none of a rule or of a reviewer with a key: those are found again, from what the log says came before.
func (g *guard) retold(e *core.Effect, res *core.Result) error {
	switch {
	case e.Kind == core.ModelCall && res.Model != nil && len(res.Model.Permits) > 0:
		return g.permitsAgain(e, res.Model.Permits)
	case res.Cancelled:
		return nil
	case (e.Kind == core.Judge || e.Kind == core.Boundary) && res.Judged != nil && (res.Judged.Approval != "" || res.Judged.RequestID != ""):
		return errors.New("a judgement is nobody's approval")
	case e.Kind == core.Judge && res.Judged != nil:
		return g.judgedAgain(e, res.Judged)
	case e.Kind == core.Boundary && res.Judged != nil:
		again := g.bound(context.Background(), e)
		if again.InputDigest != res.Judged.InputDigest {
			return errors.New("it is about something else than the plan")
		}
		return sameDecision(&res.Judged.Decision, &again.Decision)
	case e.Kind == core.Approval && res.Approval != nil:
		return g.concludedAgain(e, res.Approval)
	}
	return nil
}

// judgedAgain asks the rules once more. A refusal lets nothing run, and may have come from what the disk looked like. Input
// that is not in the log as it was judged, for the secrets in it, cannot be judged again: only a run that has ended, or
// a task that has, is told with such input.
func (g *guard) judgedAgain(e *core.Effect, j *core.Judged) error {
	if j.Refused != "" && j.Refused != core.RefusedUnconfirmed || canon.Digest("input", j.Canonical) != j.InputDigest {
		return nil
	}
	if strings.Contains(e.Call.Name, secretReference) { // no tool is called so, and nothing acts under that name
		return nil
	}
	parts := g.agents[e.AgentName]
	if parts == nil || parts.tools[e.Call.Name] == nil {
		return fmt.Errorf("tool %q is not granted to agent %q", e.Call.Name, e.AgentName)
	}
	tool := parts.tools[e.Call.Name]
	if code, text := g.undelegable(e.Call.Name, string(j.Canonical), e.Call.Chain); code != "" {
		return errors.New(text)
	}
	input, err := tool.decode(string(j.Canonical), 0)
	if err != nil {
		return err
	}
	if b, err := canon.Bytes(input); err != nil || string(b) != string(j.Canonical) {
		return errors.New("the input is not in the form in which it is judged")
	}
	_, again := g.decide(context.Background(), tool, e, input)
	return sameDecision(&j.Decision, &again)
}

// sameDecision holds everything that a decision lets happen against what it is now.
func sameDecision(was, is *spec.Decision) error {
	rules := func(d *spec.Decision) (out []string) {
		for _, r := range d.Rules {
			out = append(out, r.Name+" "+r.Source+" "+r.Action+" "+r.Outcome)
		}
		return out
	}
	switch {
	case was.Gated != is.Gated, was.GateAction != is.GateAction, was.GateOutcome != is.GateOutcome, was.Refused != is.Refused:
		return fmt.Errorf("the rules say %s, and not %s", decisionText(is), decisionText(was))
	case !slices.Equal(was.Marks, is.Marks), !slices.Equal(rules(was), rules(is)):
		return errors.New("other rules match")
	}
	return nil
}

func decisionText(d *spec.Decision) string {
	switch {
	case d.Refused != "":
		return d.Refused
	case !d.Gated:
		return "nothing"
	case d.GateOutcome != "decided":
		return d.GateAction + " for an error"
	}
	return d.GateAction
}

// concludedAgain counts the votes once more.
func (g *guard) concludedAgain(e *core.Effect, rec *spec.ApprovalRecord) error {
	r, err := g.request(e)
	if err != nil {
		return err
	}
	var now time.Time // nothing has expired, unless that is what it says
	if rec.Decision == spec.ApprovalExpired {
		now = r.Expires
	}
	again := g.concluded(&r, rec, now)
	switch {
	case rec.RequestID != r.ID || rec.RequestHash != r.RequestHash || !rec.Expires.Equal(r.Expires):
		return errors.New("it is an answer to another request")
	case rec.Decision != again.Decision || len(rec.Votes) != len(again.Votes) || rec.Authenticated != again.Authenticated:
		return fmt.Errorf("by the votes it is %s, and not %s", again.Decision, rec.Decision)
	}
	return nil
}
