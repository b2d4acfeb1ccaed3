package runtime

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/spec"
)

// sealedAgain is a receipt that was edited by somebody who has this program, held against the plan alone.
func sealedAgain(t *testing.T, plan *spec.Plan, receipt []byte, edit func(*spec.Receipt)) *GateVerdict {
	t.Helper()
	return Gate(forge(t, receipt, edit), GateOptions{Plan: plan, NoLog: true, AllowNotApplicable: true})
}

// identified gives a record the id that follows from what it says.
func identified(r *spec.Receipt, a *spec.ApprovalRecord) {
	req := requestOf(r, a)
	a.RequestID = policies.ApprovalID(&req)
}

// allowedToo counts a decision that the receipt did not have.
func allowedToo(r *spec.Receipt, d spec.DecisionRecord) {
	d.Seq = len(r.Decisions) + 1
	r.Decisions = append(r.Decisions, d)
	r.Tasks[0].ToolCalls.Allowed++
	r.Rules[0].Matched++
}

// An approval is good for one call of one run: the receipt alone shows it, whoever signed.
func TestAnApprovalIsGoodForOneCall(t *testing.T) {
	plan := bounded(spec.ScopePlan, asking("true", "suspend"))
	plan.Gates = spec.PlanGates{Declared: true, Default: "allow", Rules: []spec.PlanRule{asking(`input.text != "c"`, "suspend")}}
	plan.Gates.Rules[0].Mark = ""
	s := newShift(t, plan, texts("a", "b", "c"))
	s.says("plan", spec.VerdictApprove, "")
	for _, boundary := range []string{"ta1/1/call/1", "ta2/1/call/1", "ta2/1/call/2"} {
		s.says(boundary, spec.VerdictApprove, "")
	}
	s.says("ta1/1/call/2", spec.VerdictReject, "no")
	res := s.attempt()
	if v := sealedAgain(t, plan, res.Bytes, func(*spec.Receipt) {}); !v.Pass {
		t.Fatalf("as it was: %+v", v.Reasons)
	}
	moved := func(scope, boundary, task string) func(*spec.Receipt) {
		return func(r *spec.Receipt) {
			a := &r.ApprovalDecisions[1]
			a.Scope, a.Boundary, a.TaskID = scope, boundary, task
			identified(r, a)
			r.Decisions[1].RequestID = a.RequestID
		}
	}
	for name, c := range map[string]struct {
		edit func(*spec.Receipt)
		want string
	}{
		"in another run": {func(r *spec.Receipt) { r.RunID, r.ID = "run_other", "run_other:execution-receipt" }, "is of another run or place"},
		"for another call": {func(r *spec.Receipt) {
			d := r.Decisions[1]
			d.InputDigest, d.ToolCallID = "sha256:0", "more"
			allowedToo(r, d)
		}, "is used for decision 2 and for decision 8"},
		"for the call that was rejected": {func(r *spec.Receipt) {
			a, b := &r.Decisions[1], &r.Decisions[2]
			a.RequestID, b.RequestID, a.Approval, b.Approval = b.RequestID, a.RequestID, b.Approval, a.Approval
		}, "is about something else than decision"},
		"for another task":        {moved(spec.ScopeToolCall, "ta2/3/call/1", "ta2"), "is about something else than decision 2"},
		"for a later call":        {moved(spec.ScopeToolCall, "ta1/1/call/9", "ta1"), "is about something else than decision 2"},
		"for a place unheard of":  {moved(spec.ScopeToolCall, "ta1/1/call/01", "ta1"), "is about something else than decision 2"},
		"for the plan":            {moved(spec.ScopePlan, "plan", ""), "is about something else than decision 2"},
		"for the start of a task": {moved(spec.ScopeDispatch, "ta1/dispatch", "ta1"), "is about something else than decision 2"},
		"for making it again":     {moved(spec.ScopeToolCall, "ta1/1/call/1/again/1", "ta1"), "is about something else than decision 2"},
		"for nothing": {func(r *spec.Receipt) {
			d := &r.Decisions[1]
			d.RequestID, d.Approval, d.GateAction, d.Rules = "", "", spec.ActionAllow, nil
			r.Rules[0].Matched--
		}, "is about nothing that was decided"},
		"of a call in flight, in the first attempt": {func(r *spec.Receipt) {
			a := r.ApprovalDecisions[1]
			a.Boundary += "/again/1"
			identified(r, &a)
			r.ApprovalDecisions = append(r.ApprovalDecisions, a)
		}, "cannot have been in flight"},
		"of a rejected call in flight": {func(r *spec.Receipt) {
			a := r.ApprovalDecisions[1]
			a.Boundary = "ta1/1/call/2/again/1"
			identified(r, &a)
			r.ApprovalDecisions, r.Attempt = append(r.ApprovalDecisions, a), 2
		}, "cannot have been in flight"},
		"asked twice": {func(r *spec.Receipt) {
			a := r.ApprovalDecisions[1]
			a.RequestHash = strings.Repeat("0", 64)
			identified(r, &a)
			r.ApprovalDecisions = append(r.ApprovalDecisions, a)
		}, `asked about "ta1/1/call/1" twice`},
		"in a task that is none": {func(r *spec.Receipt) {
			d := r.Decisions[3]
			d.Seq, d.TaskID, d.Agent = len(r.Decisions)+1, "", ""
			r.Decisions = append(r.Decisions, d)
		}, "about somebody else"},
	} {
		t.Run(name, func(t *testing.T) {
			if v := sealedAgain(t, plan, res.Bytes, c.edit); v.Pass || v.ExitCode != ExitGovernance || !told(v, c.want) {
				t.Errorf("%+v", v.Reasons)
			}
		})
	}
}

// What rules said and what was decided are one thing: neither is believed without the other.
func TestADecisionFollowsFromItsRules(t *testing.T) {
	rule := func(name, when, action, source string) spec.PlanRule {
		return spec.PlanRule{Rule: spec.Rule{Name: name, When: when, Action: action}, Source: source}
	}
	others := rule("others", "true", "allow", "agent a2")
	others.Agent = "a2"
	seen := rule("marks", `input.text == "a"`, "warn", "team")
	seen.Mark = "seen"
	plan := team(2, 1, rule("ask", `input.text == "b"`, "suspend", "team"), rule("deny", `input.text == "c"`, "deny", "team"),
		rule("mine", `input.text == "a"`, "allow", "team"), rule("theirs", `toolName == "echo" && input.text == "d"`, "warn", "pack p"), others, seen)
	plan.Gates.Default = spec.ActionDeny
	s := newShift(t, plan, byAgent(map[string]Model{"a1": texts("a", "b", "c", "d"), "a2": says("done")}))
	s.says("ta1/1/call/2", spec.VerdictReject, "no")
	res := s.attempt()
	allow := func(d *spec.DecisionRecord, r *spec.Receipt) {
		d.GateAction, d.GateOutcome, d.Approval, d.RequestID, d.Reproduce = spec.ActionAllow, "decided", "", "", ""
		r.Tasks[0].ToolCalls.Allowed++
		r.Tasks[0].ToolCalls.Denied--
		r.Denied--
	}
	for name, c := range map[string]struct {
		edit func(*spec.Receipt)
		want string
	}{
		"suspend": {func(r *spec.Receipt) { allow(&r.Decisions[1], r); r.ApprovalDecisions = nil }, "decision 2 does not follow"},
		"deny":    {func(r *spec.Receipt) { allow(&r.Decisions[2], r) }, "decision 3 does not follow"},
		"an error": {func(r *spec.Receipt) {
			d := &r.Decisions[0]
			d.Rules[0].Outcome, d.Rules[0].Error = "error", "no such key"
			r.Rules[2].Matched, r.Rules[2].Errors = 0, 1
		}, "decision 1 does not follow"},
		"the default":                           {func(r *spec.Receipt) { d := &r.Decisions[0]; d.Rules = d.Rules[1:]; r.Rules[2].Matched = 0 }, "decision 1 does not follow from what its rules said and the plan's default"},
		"what a rule warns of is not permitted": {func(r *spec.Receipt) { allow(&r.Decisions[3], r) }, "decision 4 does not follow"},
		"a rule that says something else":       {func(r *spec.Receipt) { allow(&r.Decisions[2], r); r.Decisions[2].Rules[0].Action = spec.ActionAllow }, `by a rule "deny" that its plan does not have`},
		"a rule of another source":              {func(r *spec.Receipt) { allow(&r.Decisions[3], r); r.Decisions[3].Rules[0].Source = "team" }, `by a rule "theirs" that its plan does not have`},
		"a rule over another agent": {func(r *spec.Receipt) {
			allow(&r.Decisions[3], r)
			o := &r.Decisions[3].Rules[0]
			o.Name, o.Source, o.Action = "others", "agent a2", "allow"
		}, `by a rule "others"`},
		"a rule twice": {func(r *spec.Receipt) {
			d := &r.Decisions[0]
			d.Rules = append(d.Rules, d.Rules[0])
			r.Rules[2].Matched++
		}, `by a rule "mine"`},
		"no gate": {func(r *spec.Receipt) {
			allow(&r.Decisions[3], r)
			r.Decisions[3].Decision = spec.Decision{}
			r.Rules[3].Matched = 0
		}, "gated where its plan has no gates"},
		"no gate, and what a gate said": {func(r *spec.Receipt) { allow(&r.Decisions[3], r); r.Decisions[3].Gated = false }, "decision 4 does not follow"},
		"a mark left out":               {func(r *spec.Receipt) { r.Decisions[0].Marks = nil }, "sets other marks"},
		"refused, and asked": {func(r *spec.Receipt) {
			d := &r.Decisions[2]
			d.Refused = "not-granted"
			r.Tasks[0].ToolCalls.Denied--
			r.Tasks[0].ToolCalls.Refused++
		}, "decision 3 does not follow"},
		"unconfirmed where the rules forbid it": {func(r *spec.Receipt) {
			d := &r.Decisions[2]
			d.Refused = "unconfirmed"
			r.Tasks[0].ToolCalls.Denied--
			r.Tasks[0].ToolCalls.Refused++
		}, "decision 3 does not follow"},
		"an approval of what nobody asked about": {func(r *spec.Receipt) {
			d := &r.Decisions[2]
			d.Approval, d.RequestID = spec.ApprovalRejected, r.Decisions[1].RequestID
		}, "decision 3 does not follow"},
	} {
		t.Run(name, func(t *testing.T) {
			if v := sealedAgain(t, plan, res.Bytes, c.edit); v.Pass || v.ExitCode != ExitGovernance || !told(v, c.want) {
				t.Errorf("%+v", v.Reasons)
			}
		})
	}
	for name, action := range map[string]string{"suspend": spec.ActionSuspend, "deny": spec.ActionDeny} {
		i := map[string]int{spec.ActionSuspend: 1, spec.ActionDeny: 2}[action]
		b := forge(t, res.Bytes, func(r *spec.Receipt) { allow(&r.Decisions[i], r); r.ApprovalDecisions = nil })
		if v := Gate(b, GateOptions{Unbound: true, NoLog: true, AllowNotApplicable: true}); v.Pass || !told(v, "does not follow from what its rules said") {
			t.Errorf("%s, without a yardstick: %+v", name, v.Reasons)
		}
	}
}

// The plan and its tasks follow from the yardstick, so what rules say of them is found again.
func TestBoundariesAreJudgedAgain(t *testing.T) {
	mark := asking("true", "warn")
	behind := spec.PlanRule{Rule: spec.Rule{Name: "behind", When: `"seen" in marks`, Action: "suspend"}, Source: "team"}
	plan := bounded(spec.ScopeDispatch, behind)
	plan.Gates = spec.PlanGates{Declared: true, Default: "allow", Rules: []spec.PlanRule{mark}}
	plan.Approvals.Plan = []spec.PlanRule{{Rule: spec.Rule{Name: "look", When: "input.tasks.size() == 2", Action: "ask"}, Source: "team"}}
	s := newShift(t, plan, texts("a"))
	s.says("plan", spec.VerdictApprove, "")
	s.says("ta2/dispatch", spec.VerdictApprove, "")
	res := s.attempt()
	if v := sealedAgain(t, plan, res.Bytes, func(*spec.Receipt) {}); !v.Pass {
		t.Fatalf("as it was: %+v", v.Reasons)
	}
	if got := len(res.Receipt.Decisions); got != 5 { // plan, task, call, task, call
		t.Fatalf("%d decisions", got)
	}
	drop := func(r *spec.Receipt, i int, id string) {
		r.Decisions[i].Approval, r.Decisions[i].RequestID = "", ""
		r.ApprovalDecisions = slices.DeleteFunc(r.ApprovalDecisions, func(a spec.ApprovalRecord) bool { return a.Boundary == id })
	}
	for name, c := range map[string]struct {
		edit func(*spec.Receipt)
		want string
	}{
		"a plan that met no gate": {func(r *spec.Receipt) { drop(r, 0, "plan"); r.Decisions[0].Decision = spec.Decision{} }, "decision 1 is another one by the rules of approvals"},
		"a plan that no rule was about": {func(r *spec.Receipt) {
			drop(r, 0, "plan")
			r.Decisions[0].Decision = spec.Decision{Gated: true, GateAction: spec.ActionAllow, GateOutcome: "decided"}
		}, "decision 1 is another one by the rules of approvals"},
		"another plan": {func(r *spec.Receipt) { r.Decisions[0].InputDigest = "sha256:0" }, "decision 1 is another one"},
		"a plan that could not be judged": {func(r *spec.Receipt) {
			drop(r, 0, "plan")
			r.Decisions[0].GateAction, r.Decisions[0].GateOutcome = spec.ActionDeny, "error"
		}, `task "ta1" started and the plan was not let through`},
		"no plan": {func(r *spec.Receipt) {
			drop(r, 0, "plan")
			r.Decisions = r.Decisions[1:]
			for i := range r.Decisions {
				r.Decisions[i].Seq--
			}
		}, "the plan was not let through"},
		"a task that no rule was about": {func(r *spec.Receipt) {
			drop(r, 3, "ta2/dispatch")
			r.Decisions[3].Decision = spec.Decision{Gated: true, GateAction: spec.ActionAllow, GateOutcome: "decided"}
		}, "decision 4 is another one by the rules of approvals"},
		"and without the mark that it is about": {func(r *spec.Receipt) {
			drop(r, 3, "ta2/dispatch")
			r.Decisions[3].Decision = spec.Decision{Gated: true, GateAction: spec.ActionAllow, GateOutcome: "decided"}
			r.Decisions[2].Marks = nil
		}, "decision 3 sets other marks than its rules do"},
		"a task judged twice": {func(r *spec.Receipt) {
			d := r.Decisions[1]
			d.Seq = len(r.Decisions) + 1
			r.Decisions = append(r.Decisions, d)
		}, "decision 6 is about something that its plan does not put before anybody, or not then"},
	} {
		t.Run(name, func(t *testing.T) {
			if v := sealedAgain(t, plan, res.Bytes, c.edit); v.Pass || v.ExitCode != ExitGovernance || !told(v, c.want) {
				t.Errorf("%+v", v.Reasons)
			}
		})
	}
	other := team(1, 1)
	free := newShift(t, other, texts("a")).attempt()
	if v := sealedAgain(t, other, free.Bytes, func(r *spec.Receipt) {
		r.Decisions = slices.Insert(r.Decisions, 0, spec.DecisionRecord{Seq: 1, Scope: spec.ScopePlan, Decision: spec.Decision{Gated: true, GateAction: spec.ActionAllow, GateOutcome: "decided"}})
		r.Decisions[1].Seq = 2
	}); v.Pass || !told(v, "does not put before anybody") {
		t.Errorf("a plan that nobody judges: %+v", v.Reasons)
	}
}

// Whoever may decide, somebody must have: without the plan an approval still needs its votes.
func TestAWordOnAReceiptIsNoVote(t *testing.T) {
	house := policyOf("house", "sha256:house", nil, spec.Rule{Name: "look", When: "true", Action: "suspend"})
	look := spec.PlanRule{Rule: house.Policy.Rules[0], Source: "policy house"}
	plan := team(1, 1, look)
	plan.Policies = []spec.PlanPolicy{{Name: "house", Source: "policy house", Digest: house.Digest}}
	s := newShift(t, plan, texts("a", "b"))
	s.says("ta1/1/call/1", spec.VerdictApprove, "")
	s.says("ta1/1/call/2", spec.VerdictReject, "no")
	res := s.attempt()
	vote := func(verdict string) spec.ApprovalVote {
		return spec.ApprovalVote{Verdict: verdict, Reviewer: "bob", DecidedAt: time.UnixMilli(1).UTC()}
	}
	allowed := func(r *spec.Receipt) {
		r.Decisions[1].Approval = spec.ApprovalApproved
		r.Tasks[0].ToolCalls.Allowed, r.Tasks[0].ToolCalls.Denied, r.Denied = 2, 0, 0
	}
	for name, c := range map[string]struct {
		edit func(*spec.Receipt)
		want string // empty: it passes
	}{
		"as it was": {func(*spec.Receipt) {}, ""},
		"approved by two": {func(r *spec.Receipt) {
			a := &r.ApprovalDecisions[0]
			a.Votes = append(a.Votes, vote(spec.VerdictApprove))
		}, ""},
		"approved by nobody":      {func(r *spec.Receipt) { r.ApprovalDecisions[0].Votes = nil }, "by the votes on it it is pending"},
		"approved by one twice":   {func(r *spec.Receipt) { a := &r.ApprovalDecisions[0]; a.Votes = append(a.Votes, a.Votes[0]) }, "by the votes on it"},
		"approved by a rejection": {func(r *spec.Receipt) { allowed(r); r.ApprovalDecisions[1].Decision = spec.ApprovalApproved }, "by the votes on it it is rejected"},
		"approved after a rejection": {func(r *spec.Receipt) {
			allowed(r)
			a := &r.ApprovalDecisions[1]
			a.Decision, a.Votes = spec.ApprovalApproved, append(a.Votes, vote(spec.VerdictApprove))
		}, "by the votes on it it is rejected"},
		"rejected by nobody": {func(r *spec.Receipt) { r.ApprovalDecisions[1].Votes = nil }, "by the votes on it it is pending"},
		"expired, and it never does": {func(r *spec.Receipt) {
			r.ApprovalDecisions[1].Decision, r.ApprovalDecisions[1].Votes, r.Decisions[1].Approval = spec.ApprovalExpired, nil, spec.ApprovalExpired
		}, "by the votes on it it is pending"},
		"approved too late":      {func(r *spec.Receipt) { r.ApprovalDecisions[0].Expires = time.UnixMilli(1).UTC() }, "by the votes on it it is pending"},
		"proven by no signature": {func(r *spec.Receipt) { r.ApprovalDecisions[0].Authenticated = true }, "by the votes on it"},
		"by a rule that says less": {func(r *spec.Receipt) {
			d := &r.Decisions[0]
			d.GateAction, d.Approval, d.RequestID, d.Rules[0].Action = spec.ActionAllow, "", "", spec.ActionWarn
			r.ApprovalDecisions = r.ApprovalDecisions[1:]
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := forge(t, res.Bytes, c.edit)
			for yardstick, o := range map[string]GateOptions{"none": {Unbound: true}, "policy": {Policies: []spec.PolicyFile{house}}} {
				o.NoLog, o.AllowNotApplicable = true, true
				want := c.want
				if yardstick == "policy" && name == "by a rule that says less" {
					want = `by a rule "look" that policy house does not have for the call`
				}
				if v := Gate(b, o); v.Pass != (want == "") || want != "" && !told(v, want) {
					t.Errorf("yardstick %s: %+v", yardstick, v.Reasons)
				}
			}
		})
	}
}
