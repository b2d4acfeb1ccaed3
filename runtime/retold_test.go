package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// forged gives a log in which each event was changed, or left out where change says so, and all of it chained again.
func forged(t *testing.T, log []byte, change func(e *spec.Event) (keep bool)) []byte {
	t.Helper()
	var out bytes.Buffer
	var seq int64
	head := ""
	for _, line := range bytes.Split(bytes.TrimSpace(log), []byte("\n")) {
		var e spec.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if !change(&e) {
			continue
		}
		seq++
		e.Seq, e.Prev = seq, head
		b, err := json.Marshal(&e)
		if err != nil {
			t.Fatal(err)
		}
		head = canon.Chain(head, b)
		out.Write(append(b, '\n'))
	}
	return out.Bytes()
}

// upTo keeps a log up to the first event of a kind, which is changed as the pairs of texts say.
func upTo(kind string, replace ...string) func(*spec.Event) bool {
	over := false
	return func(e *spec.Event) bool {
		if over {
			return false
		}
		if e.Kind == kind {
			over = true
			e.Data = json.RawMessage(strings.NewReplacer(replace...).Replace(string(e.Data)))
		}
		return true
	}
}

// Whoever writes the log decides nothing: what rules and votes say is found again before anything goes on.
func TestForgedLogRunsNothing(t *testing.T) {
	asks := asking("true", "suspend")
	approved := func(boundary string, s *shift) { s.says(boundary, spec.VerdictReject, "no") }
	for name, c := range map[string]struct {
		plan   *spec.Plan
		decide func(*shift)
		change func(*spec.Event) bool
		want   string
	}{
		"a judgement": {team(1, 1, asks), nil, upTo(spec.EventToolJudged, `"gateAction":"suspend"`, `"gateAction":"allow"`), "the rules say suspend, and not allow"},
		"a judgement without its rule": {team(1, 1, asks), nil, func() func(*spec.Event) bool {
			cut := upTo(spec.EventToolJudged)
			return func(e *spec.Event) bool {
				keep := cut(e)
				if e.Kind == spec.EventToolJudged {
					var j judgedData
					if err := json.Unmarshal(e.Data, &j); err != nil {
						t.Fatal(err)
					}
					j.Judged.GateAction, j.Judged.Rules = spec.ActionAllow, nil
					e.Data, _ = json.Marshal(j)
				}
				return keep
			}
		}(), "the rules say suspend, and not allow"},
		"a mark": {team(1, 1, asking("true", "warn")), nil, upTo(spec.EventToolJudged, `"marks":["seen"]`, `"marks":[]`), "other rules match"},
		"a vote": {team(1, 1, asks), func(s *shift) { approved("ta1/1/call/1", s) }, upTo(spec.EventApprovalDecision, `"decision":"rejected"`, `"decision":"approved"`), "by the votes it is rejected, and not approved"},
		"an approval that nobody gave": {team(1, 1, asks), func(s *shift) { approved("ta1/1/call/1", s) }, func() func(*spec.Event) bool {
			cut := upTo(spec.EventApprovalDecision)
			return func(e *spec.Event) bool {
				keep := cut(e)
				if e.Kind == spec.EventApprovalDecision {
					e.Data = json.RawMessage(strings.NewReplacer(`"decision":"rejected"`, `"decision":"approved"`).Replace(string(e.Data[:bytes.Index(e.Data, []byte(`,"votes"`))])) + `,"authenticated":false}}`)
				}
				return keep
			}
		}(), "by the votes it is pending, and not approved"},
		"the plan's judgement": {bounded(spec.ScopePlan, asks), nil, upTo(spec.EventBoundary, `"gateAction":"suspend"`, `"gateAction":"allow"`), "the rules say suspend, and not allow"},
		"the plan's approval": {bounded(spec.ScopePlan, asks), func(s *shift) { approved("plan", s) }, upTo(spec.EventApprovalDecision, `"decision":"rejected"`, `"decision":"approved"`),
			"by the votes it is rejected, and not approved"},
		"a task's judgement": {bounded(spec.ScopeDispatch, asks), nil, upTo(spec.EventBoundary, `"gated":true,"gateAction":"suspend"`, `"gated":false,"gateAction":""`), "the rules say suspend, and not nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShift(t, c.plan, texts("a"))
			if c.decide != nil {
				c.decide(s)
			}
			s.attempt()
			s.acts = nil
			log := forged(t, s.log.buf.Bytes(), c.change)
			s.log = &killable{left: -1}
			s.log.buf.Write(log)
			if _, err := s.try(); !errors.Is(err, ErrDiverged) || !strings.Contains(err.Error(), c.want) || len(s.acts) > 0 {
				t.Errorf("%v, acts %v\n%s", err, s.acts, log)
			}
		})
	}
}

// A log that has been rewritten whole, with its receipt, still has to tell what the plan does.
func TestGateTellsTheLogAgain(t *testing.T) {
	deny := spec.PlanRule{Rule: spec.Rule{Name: "never", When: `input.text == "b"`, Action: "deny", Reason: "never"}, Source: "team"}
	plan := team(1, 1, deny)
	plan.Governance = &spec.Governance{GovernanceIntent: spec.IntentRequired, RequiredRoles: []string{"a1"}}
	plan.Tasks[0].Role = "a1"
	plan.Release = []spec.Requirement{{Name: "done", That: `results.a1.text == "done"`}}
	s := newShift(t, plan, texts("a", "b"))
	tree := func(o *Options) {
		o.Tree = func(context.Context, *spec.PlanAgent) (string, error) { return canon.Digest("tree", nil), nil }
	}
	res, err := s.try(tree)
	if err != nil {
		t.Fatal(err)
	}
	gate := func(r *spec.Receipt, log []byte) *GateVerdict {
		ref, err := VerifyLog(bytes.NewReader(log), func(*spec.Event) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		r.Evidence.Journal = ref
		b, err := SealReceipt(r)
		if err != nil {
			t.Fatal(err)
		}
		return Gate(b, GateOptions{Plan: plan, Log: bytes.NewReader(log)})
	}
	if v := gate(res.Receipt, s.log.buf.Bytes()); !v.Pass || v.Integrity != IntegrityChain {
		t.Fatalf("as it was: %+v", v.Reasons)
	}
	// The denied call was let through, by everybody's account.
	log := forged(t, s.log.buf.Bytes(), func(e *spec.Event) bool {
		if e.Kind == spec.EventToolJudged && strings.Contains(string(e.Data), `"text":"b"`) {
			var j judgedData
			if err := json.Unmarshal(e.Data, &j); err != nil {
				t.Fatal(err)
			}
			j.Judged.Decision = spec.Decision{Gated: true, GateAction: spec.ActionAllow, GateOutcome: "decided"}
			j.Judged.Text = ""
			e.Data, _ = json.Marshal(j)
		}
		return true
	})
	var r spec.Receipt
	reread(t, res.Bytes, &r)
	d := &r.Decisions[1]
	d.Decision = spec.Decision{Gated: true, GateAction: spec.ActionAllow, GateOutcome: "decided"}
	r.Denied, r.Rules[0].Matched = 0, 0
	r.Tasks[0].ToolCalls.Allowed, r.Tasks[0].ToolCalls.Denied = 2, 0
	if v := gate(&r, log); v.Pass || !told(v, "the rules say deny, and not allow") {
		t.Errorf("a denial made an approval: %+v", v.Reasons)
	}
	// An answer that the requirement is not held by.
	log = forged(t, s.log.buf.Bytes(), func(e *spec.Event) bool {
		if e.Kind == spec.EventModelResult {
			e.Data = json.RawMessage(strings.ReplaceAll(string(e.Data), `"text":"done"`, `"text":"not done"`))
		}
		return true
	})
	reread(t, res.Bytes, &r)
	r.Tasks[0].OutputDigest = canon.Digest("output", []byte("not done"))
	if v := gate(&r, log); v.Pass || !told(v, "the release requirements come out otherwise") {
		t.Errorf("another answer: %+v", v.Reasons)
	}
}

func told(v *GateVerdict, text string) bool {
	return slices.ContainsFunc(v.Reasons, func(r GateReason) bool { return r.Code == "integrity" && strings.Contains(r.Message, text) })
}

// Rules over history hold back the turn of a call that waits, as marks do: a rule that forbids something after a call must
// not be passed by asking for both at once.
func TestHistoryHoldsBackItsTurn(t *testing.T) {
	look := asking(`input.text == "a"`, "suspend")
	look.Mark = ""
	after := spec.PlanRule{Rule: spec.Rule{Name: "after", When: `input.text == "b" && history.exists(c, c.action == "allow")`, Action: "deny", Reason: "after a"}, Source: "team"}
	s := newShift(t, team(1, 1, look, after), texts("a", "b"))
	s.attempt()
	s.says("ta1/1/call/1", spec.VerdictApprove, "")
	if res := s.attempt(); !res.Receipt.Success || !slices.Equal(s.acts, []string{"a"}) {
		t.Errorf("%+v, acts %v", res.Receipt.Status, s.acts)
	}
}

// A task that only waits for people keeps nobody from working, and takes a place again before it goes on.
func TestWaitingTakesNoPlace(t *testing.T) {
	look := asking(`input.text == "wait"`, "suspend")
	look.Mark = ""
	p := team(3, 2, look)
	p.Scheduling.MaxConcurrency = 1
	s := newShift(t, p, modelFunc(nil))
	s.model = byAgent(map[string]Model{"a1": texts("wait"), "a2": texts("b"), "a3": texts("c")})
	r := s.attempt().Receipt
	if !slices.Equal(s.acts, []string{"b", "c"}) || r.Status.Code != spec.StatusSuspended || r.Tasks[0].Status != spec.TaskInProgress {
		t.Fatalf("acts %v, %+v", s.acts, r.Status)
	}
	s.says("ta1/1/call/1", spec.VerdictApprove, "")
	if r := s.attempt().Receipt; !r.Success || !slices.Equal(s.acts, []string{"b", "c", "wait"}) {
		t.Errorf("acts %v, %+v", s.acts, r.Status)
	}
}

// Once a model has written a key, the log has a reference in its place: nobody is asked in vain about a run that could not
// go on.
func TestNobodyIsAskedAboutAKey(t *testing.T) {
	s := newShift(t, team(1, 1, asking("true", "suspend")), texts("the key is k-12345"))
	hide := func(text string) string { return strings.ReplaceAll(text, "k-12345", "${secret:p}") }
	r := s.attempt(func(o *Options) { o.Reference = hide }).Receipt
	if len(s.asked) > 0 || len(s.acts) > 0 || !r.Success || len(s.told) != 1 || !strings.Contains(s.told[0], "[cannot-suspend]") {
		t.Errorf("asked %v, acts %v, %+v, told %q", s.asked, s.acts, r.Status, s.told)
	}
}

func byAgent(models map[string]Model) Model {
	return modelFunc(func(ctx context.Context, q *spec.ModelRequest) (*spec.ModelResponse, error) {
		m := models[q.AgentName]
		if m == nil {
			return nil, fmt.Errorf("no model for %q", q.AgentName)
		}
		return m.Complete(ctx, q)
	})
}
