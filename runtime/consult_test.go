package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
)

// office is where requests wait. Nobody sits there but for those who have said something.
type office struct {
	mu    sync.Mutex
	plan  *spec.Plan
	said  map[string][]spec.ApprovalVote // by boundary
	asked []spec.ApprovalRequest
	err   error
	at    time.Time
	word  string // what it says of every request, whatever the votes are; empty: what follows from them
}

func (o *office) Ask(_ context.Context, r spec.ApprovalRequest, action string) (spec.ApprovalRecord, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.asked = append(o.asked, r); o.err != nil {
		return spec.ApprovalRecord{}, o.err
	}
	rec := policies.ConcludeApproval(o.plan.Approvals, "", &r, o.said[r.Boundary], o.at)
	if o.word != "" {
		rec.Decision = o.word
	}
	return rec, nil
}

func (o *office) Here(_ context.Context, r spec.ApprovalRequest) (spec.ApprovalRecord, error) {
	rec, err := o.Ask(context.Background(), r, "")
	if err == nil && rec.Decision == spec.ApprovalPending {
		err = ErrNobodyHere
	}
	return rec, err
}

func (o *office) says(boundary, verdict, reason string) {
	o.said[boundary] = append(o.said[boundary], spec.ApprovalVote{Verdict: verdict, Reviewer: "ann", Reason: reason, DecidedAt: time.UnixMilli(1).UTC()})
}

// shift is a run with people, from attempt to attempt.
type shift struct {
	t     *testing.T
	plan  *spec.Plan
	log   *killable
	acts  []string
	told  []string // what the model was told of its calls, in the last attempt
	model Model
	step  time.Duration // how far each look moves the clock on; 0: it is the machine's
	office
}

func newShift(t *testing.T, p *spec.Plan, m Model) *shift {
	s := &shift{t: t, plan: p, log: &killable{left: -1}, model: m}
	s.office.plan, s.said = p, map[string][]spec.ApprovalVote{}
	return s
}

func (s *shift) attempt(change ...func(*Options)) *Result {
	s.t.Helper()
	res, err := s.try(change...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.holds(res)
	return res
}

// try is an attempt that may break.
func (s *shift) try(change ...func(*Options)) (*Result, error) {
	s.t.Helper()
	var past *Past
	if s.log.buf.Len() > 0 {
		var err error
		if past, err = ReadPast(bytes.NewReader(s.log.buf.Bytes())); err != nil {
			s.t.Fatal(err)
		}
	}
	s.asked, s.told = nil, nil
	tool := echo(func(_ context.Context, in Invocation) spec.ToolResult {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.acts = append(s.acts, fmt.Sprint(in.Input["text"]))
		return spec.ToolResult{Text: "did " + fmt.Sprint(in.Input["text"])}
	})
	return run(s.t, s.plan, modelFunc(func(ctx context.Context, q *spec.ModelRequest) (*spec.ModelResponse, error) {
		s.mu.Lock()
		for _, m := range q.Messages {
			if m.Role == spec.RoleTool && q.Turn == 2 {
				s.told = append(s.told, m.Text)
			}
		}
		s.mu.Unlock()
		return s.model.Complete(ctx, q)
	}), toolMap{tool}, func(o *Options) {
		o.Journal, o.Past, o.People = s.log, past, &s.office
		if s.step > 0 {
			now := time.UnixMilli(0)
			o.Clock = func() time.Time { s.mu.Lock(); defer s.mu.Unlock(); now = now.Add(s.step); return now }
		}
		for _, f := range change {
			f(o)
		}
	})
}

// holds has the receipt judged against log and plan.
func (s *shift) holds(res *Result) {
	s.t.Helper()
	v := Gate(res.Bytes, GateOptions{Plan: s.plan, Log: bytes.NewReader(s.log.buf.Bytes()), AllowNotApplicable: true})
	if v.Integrity != IntegrityChain || slices.ContainsFunc(v.Reasons, func(r GateReason) bool { return r.Code == "integrity" }) {
		s.t.Fatalf("the gate: %+v\n%s", v.Reasons, brief(s.log.buf.String()))
	}
	if want := res.Receipt.Status.Code == spec.StatusSuspended; want != (v.ExitCode == ExitSuspended) || want != (res.Receipt.ExitCodes[0] == ExitSuspended) {
		s.t.Fatalf("the run ends %v and the gate %d", res.Receipt.ExitCodes, v.ExitCode)
	}
}

// texts asks for one call of each text, in one turn, and ends then.
func texts(all ...string) Model {
	return modelFunc(func(_ context.Context, q *spec.ModelRequest) (*spec.ModelResponse, error) {
		if q.Turn > 1 {
			return answerText("done"), nil
		}
		r := answerText("")
		for i, text := range all {
			r.Message.ToolCalls = append(r.Message.ToolCalls, spec.ToolCall{ID: fmt.Sprintf("c%d", i), Name: "echo", Arguments: fmt.Sprintf(`{"text":%q}`, text)})
		}
		return r, nil
	})
}

func asking(when, action string) spec.PlanRule {
	return spec.PlanRule{Rule: spec.Rule{Name: "look", When: when, Action: action, Reason: "somebody looks", Mark: "seen"}, Source: "team"}
}

// K12, K18, K19: a call that needs a person waits while its siblings run; undecided it waits again and nothing is done; once
// it is approved it runs exactly once, and the model sees all answers in its own order.
func TestACallWaitsForAPerson(t *testing.T) {
	look := asking(`input.text == "b"`, "suspend")
	look.Mark = ""
	p := team(2, 2, look)
	p.Tasks[1].DependsOn = []string{"ta1"}
	s := newShift(t, p, modelFunc(func(ctx context.Context, q *spec.ModelRequest) (*spec.ModelResponse, error) {
		if q.AgentName == "a2" {
			return answerText("read it"), nil
		}
		return texts("a", "b", "c").Complete(ctx, q)
	}))
	p.Agents[0].MaxToolConcurrency = 1 // whoever waits for a person takes nobody's place
	first := s.attempt()
	r := first.Receipt
	if r.Status.Code != spec.StatusSuspended || !first.Suspended || len(r.PendingApprovals) != 1 || r.Denied != 0 {
		t.Fatalf("%+v, pending %+v", r.Status, r.PendingApprovals)
	}
	if got := []string{r.Tasks[0].Status, r.Tasks[1].Status, string(r.Tasks[0].StopReason)}; !slices.Equal(got, []string{spec.TaskInProgress, spec.TaskPending, "suspended"}) {
		t.Errorf("tasks %v", got)
	}
	if want := (spec.CallSums{Allowed: 2, Suspended: 1}); r.Tasks[0].ToolCalls != want {
		t.Errorf("calls %+v", r.Tasks[0].ToolCalls)
	}
	if !slices.Equal(s.acts, []string{"a", "c"}) {
		t.Errorf("acts %v", s.acts)
	}
	again := s.attempt()
	if again.Receipt.Attempt != 2 || again.Receipt.Status.Code != spec.StatusSuspended || len(s.acts) != 2 || s.asked[0].ID != r.PendingApprovals[0].RequestID {
		t.Fatalf("asked again %+v, acts %v", again.Receipt.Status, s.acts)
	}
	s.says("ta1/1/call/2", spec.VerdictApprove, "")
	last := s.attempt()
	if !last.Receipt.Success || !slices.Equal(s.acts, []string{"a", "c", "b"}) || !slices.Equal(s.told, []string{"did a", "did b", "did c"}) {
		t.Fatalf("%+v, acts %v", last.Receipt.Status, s.acts)
	}
}

// A rejection is an error that the model can adapt to, with the reviewer's reason; nobody answering in time is one; so is
// everything that keeps people from being asked, with its own words (K11, K19, D20).
func TestACallThatPeopleDoNotApprove(t *testing.T) {
	for _, c := range []struct {
		name              string
		prepare           func(*shift)
		approval, outcome string
		told              string
	}{
		{"rejected", func(s *shift) { s.says("ta1/1/call/1", spec.VerdictReject, "") }, spec.ApprovalRejected, "decided", `Tool "echo" denied by durable approval.`},
		{"rejected with a reason", func(s *shift) { s.says("ta1/1/call/1", spec.VerdictReject, "not on a Friday") }, spec.ApprovalRejected, "decided",
			`Tool "echo" denied by durable approval: not on a Friday`},
		{"expired", func(s *shift) {
			s.plan.Approvals, s.step = &spec.PlanApprovals{Quorum: 1, Expires: spec.Duration(time.Hour)}, time.Hour
		}, spec.ApprovalExpired, "decided",
			`Tool "echo" denied by durable approval: nobody decided in time`},
		{"the store fails", func(s *shift) { s.err = errors.New("disk full") }, "", "error", `Tool "echo" needs a person's approval: disk full.`},
		{"cannot suspend", func(s *shift) { s.err = ErrCannotSuspend }, "", "error",
			`Tool "echo" needs a person's approval: this run keeps no log to wait in [cannot-suspend].`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShift(t, team(1, 1, asking("true", "ask")), texts("a"))
			c.prepare(s)
			res := s.attempt()
			d := res.Receipt.Decisions[0]
			if d.Allowed() || d.Approval != c.approval || d.GateOutcome != c.outcome || len(s.acts) > 0 || res.Receipt.Denied != 1 || !res.Receipt.Success {
				t.Errorf("decision %+v, acts %v, %+v", d, s.acts, res.Receipt.Status)
			}
			if !slices.Equal(s.told, []string{c.told}) {
				t.Errorf("the model was told %q", s.told)
			}
		})
	}
}

// The strictest rule counts (N6): a person cannot permit what a rule denies, and can permit what no rule allows.
func TestWhatAPersonCanPermit(t *testing.T) {
	deny := spec.PlanRule{Rule: spec.Rule{Name: "no", When: "true", Action: "deny"}, Source: "team"}
	s := newShift(t, team(1, 1, asking("true", "ask"), deny), texts("a"))
	if res := s.attempt(); len(s.asked) > 0 || len(s.acts) > 0 || res.Receipt.Denied != 1 {
		t.Errorf("asked %v, acts %v", s.asked, s.acts)
	}
	p := team(1, 1, asking("true", "ask"))
	p.Gates.Default = spec.ActionDeny
	s = newShift(t, p, texts("a"))
	s.says("ta1/1/call/1", spec.VerdictApprove, "")
	if res := s.attempt(); !slices.Equal(s.acts, []string{"a"}) || !res.Receipt.Success {
		t.Errorf("acts %v, %+v", s.acts, res.Receipt.Status)
	}
}

// Two equal calls are two requests: an approval is good for one of them (K7).
func TestEqualCallsAreAskedApart(t *testing.T) {
	s := newShift(t, team(1, 1, asking("true", "suspend")), texts("a", "a"))
	s.says("ta1/1/call/1", spec.VerdictApprove, "")
	if res := s.attempt(); !slices.Equal(s.acts, []string{"a"}) || len(res.Receipt.PendingApprovals) != 1 || res.Receipt.PendingApprovals[0].Boundary != "ta1/1/call/2" {
		t.Errorf("acts %v, pending %+v", s.acts, res.Receipt.PendingApprovals)
	}
}

// A mark comes with the call that runs, not with the one that waits or was rejected (N7).
func TestAMarkWaitsWithItsCall(t *testing.T) {
	after := spec.PlanRule{Rule: spec.Rule{Name: "after", When: `"seen" in marks`, Action: "deny"}, Source: "team"}
	for verdict, want := range map[string][]string{spec.VerdictApprove: {"a"}, spec.VerdictReject: {"b"}} {
		s := newShift(t, team(1, 1, asking(`input.text == "a"`, "suspend"), after), modelFunc(func(_ context.Context, q *spec.ModelRequest) (*spec.ModelResponse, error) {
			if q.Turn > 2 {
				return answerText("done"), nil
			}
			return callTool("echo", fmt.Sprintf(`{"text":%q}`, string(rune('a'+q.Turn-1)))), nil
		}))
		s.says("ta1/1/call/1", verdict, "")
		if res := s.attempt(); !slices.Equal(s.acts, want) || !res.Receipt.Success {
			t.Errorf("%s: acts %v", verdict, s.acts)
		}
	}
}

// What a mark forbids does not slip by in the turn of the call that would set it: it is judged once people have decided.
func TestAMarkHoldsBackItsTurn(t *testing.T) {
	after := spec.PlanRule{Rule: spec.Rule{Name: "after", When: `"seen" in marks && input.text == "c"`, Action: "deny", Reason: "after b"}, Source: "team"}
	for verdict, want := range map[string][]string{spec.VerdictApprove: {"a", "b", "d"}, spec.VerdictReject: {"a", "c", "d"}} {
		s := newShift(t, team(1, 1, asking(`input.text == "b"`, "suspend"), after), texts("a", "b", "c", "d"))
		s.plan.Agents[0].MaxToolConcurrency = 1
		r := s.attempt().Receipt
		if want := (spec.CallSums{Allowed: 1, Suspended: 1}); r.Tasks[0].ToolCalls != want || len(r.Decisions) != 2 || !slices.Equal(s.acts, []string{"a"}) {
			t.Errorf("while it waits: %+v, acts %v", r.Tasks[0].ToolCalls, s.acts)
		}
		s.says("ta1/1/call/2", verdict, "")
		if res := s.attempt(); !res.Receipt.Success || !slices.Equal(s.acts, want) || len(s.told) != 4 {
			t.Errorf("%s: acts %v, told %q", verdict, s.acts, s.told)
		}
	}
}

func bounded(scope string, rule spec.PlanRule) *spec.Plan {
	p := team(2, 2)
	p.Tasks[1].DependsOn = []string{"ta1"}
	rule.Mark = ""
	p.Approvals = &spec.PlanApprovals{Quorum: 1}
	if scope == spec.ScopePlan {
		p.Approvals.Plan = []spec.PlanRule{rule}
	} else {
		p.Approvals.Dispatch = []spec.PlanRule{rule}
	}
	return p
}

// K18: a plan, or a task, that is rejected ends the run for good, and what is approved goes on. Nothing starts before.
func TestBoundaries(t *testing.T) {
	second := `input.assignee == "a2"`
	for _, c := range []struct {
		name         string
		scope        string
		rule         spec.PlanRule
		boundary     string
		verdict      string // empty: nobody is asked
		status       string
		tasks        []string
		acts         int
		waitsFirst   bool
		message      string
		stillPending []string
	}{
		{name: "plan approved", scope: spec.ScopePlan, rule: asking("input.tasks.size() == 2", "ask"), boundary: "plan", verdict: spec.VerdictApprove,
			status: spec.StatusOK, tasks: []string{"completed", "completed"}, acts: 2, waitsFirst: true, stillPending: []string{"pending", "pending"}},
		{name: "plan rejected", scope: spec.ScopePlan, rule: asking("true", "suspend"), boundary: "plan", verdict: spec.VerdictReject,
			status: spec.StatusRejected, tasks: []string{"skipped", "skipped"}, waitsFirst: true, message: "the plan was rejected: no", stillPending: []string{"pending", "pending"}},
		{name: "plan denied by its rule", scope: spec.ScopePlan, rule: asking("true", "deny"), status: spec.StatusRejected, tasks: []string{"skipped", "skipped"},
			message: `the plan was rejected: rule "look": somebody looks`},
		{name: "plan that no rule is about", scope: spec.ScopePlan, rule: asking("input.tasks.size() == 3", "deny"), status: spec.StatusOK, tasks: []string{"completed", "completed"}, acts: 2},
		{name: "task approved", scope: spec.ScopeDispatch, rule: asking(second, "suspend"), boundary: "ta2/dispatch", verdict: spec.VerdictApprove,
			status: spec.StatusOK, tasks: []string{"completed", "completed"}, acts: 2, waitsFirst: true, stillPending: []string{"completed", "pending"}},
		{name: "task rejected", scope: spec.ScopeDispatch, rule: asking(second, "ask"), boundary: "ta2/dispatch", verdict: spec.VerdictReject,
			status: spec.StatusRejected, tasks: []string{"completed", "skipped"}, acts: 1, waitsFirst: true, message: `task "a2" was rejected: no`, stillPending: []string{"completed", "pending"}},
		{name: "task denied by its rule", scope: spec.ScopeDispatch, rule: asking(`agentName == "a1"`, "deny"), status: spec.StatusRejected, tasks: []string{"skipped", "skipped"},
			message: `task "a1" was rejected: rule "look": somebody looks`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShift(t, bounded(c.scope, c.rule), texts("x"))
			if c.waitsFirst {
				r := s.attempt().Receipt
				if r.Status.Code != spec.StatusSuspended || len(r.PendingApprovals) != 1 || r.PendingApprovals[0].Scope != c.scope {
					t.Fatalf("%+v %+v", r.Status, r.PendingApprovals)
				}
				if diff := cmp.Diff(c.stillPending, statuses(r)); diff != "" {
					t.Error(diff)
				}
				s.says(c.boundary, c.verdict, map[string]string{spec.VerdictReject: "no"}[c.verdict])
			}
			res := s.attempt()
			r := res.Receipt
			if r.Status.Code != c.status || r.Status.Message != c.message || len(s.acts) != c.acts || res.Suspended || res.Stopped {
				t.Errorf("%+v, acts %v", r.Status, s.acts)
			}
			if diff := cmp.Diff(c.tasks, statuses(r)); diff != "" {
				t.Error(diff)
			}
			if past, err := ReadPast(bytes.NewReader(s.log.buf.Bytes())); err != nil || !past.Ended {
				t.Errorf("it can go on: %v", err)
			}
		})
	}
}

func statuses(r *spec.Receipt) (out []string) {
	for _, t := range r.Tasks {
		out = append(out, t.Status)
	}
	return out
}

// C1 to C4, D5: a consequential call of a run that carries the flag needs a person who approved the plan. Without one it is
// denied, the model is told, and the run is rejected; a denial by a rule rejects the run as well.
func TestConsequentialConfirmation(t *testing.T) {
	const told = "Consequential tool confirmation required before execution."
	deny := spec.PlanRule{Rule: spec.Rule{Name: "no", When: `input.text == "b"`, Action: "deny"}, Source: "team"}
	for _, c := range []struct {
		name     string
		flag     bool
		harmless bool
		plan     string // a rule's action over the plan; empty: none
		verdict  string
		calls    []string
		rules    []spec.PlanRule
		said     string // of the call itself, where a rule asks
		acts     int
		status   spec.Status
		required bool
		told     []string
	}{
		{name: "C3 nobody can confirm", flag: true, calls: []string{"a"}, status: spec.Status{Code: spec.StatusRejected, Message: told}, required: true, told: []string{told}},
		{name: "C3 the plan was approved", flag: true, plan: "ask", verdict: spec.VerdictApprove, calls: []string{"a"}, acts: 1, status: spec.Status{Code: spec.StatusOK}},
		{name: "a plan that no person looked at", flag: true, plan: "warn", calls: []string{"a"}, status: spec.Status{Code: spec.StatusRejected, Message: told}, required: true, told: []string{told}},
		{name: "C4 denied by a rule", flag: true, plan: "ask", verdict: spec.VerdictApprove, calls: []string{"b"}, rules: []spec.PlanRule{deny},
			status: spec.Status{Code: spec.StatusRejected, Message: "Consequential tool confirmation rejected."}},
		{name: "a person approved the call itself", flag: true, calls: []string{"a"}, rules: []spec.PlanRule{asking("true", "ask")}, said: spec.VerdictApprove, acts: 1,
			status: spec.Status{Code: spec.StatusOK}},
		{name: "C2 without the flag", calls: []string{"a"}, acts: 1, status: spec.Status{Code: spec.StatusOK}},
		{name: "C1 a tool that is not consequential", flag: true, harmless: true, calls: []string{"a"}, acts: 1, status: spec.Status{Code: spec.StatusOK}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := team(1, 1, c.rules...)
			p.Agents[0].Tools[0].Consequential = !c.harmless
			p.Approvals = &spec.PlanApprovals{Quorum: 1, RequireConsequentialConfirmation: true}
			if c.flag {
				p.Flags = []string{spec.FlagConsequential}
			}
			if c.plan != "" {
				p.Approvals.Plan = []spec.PlanRule{{Rule: spec.Rule{Name: "plan", When: "true", Action: c.plan}, Source: "team"}}
			}
			s := newShift(t, p, texts(c.calls...))
			if c.verdict != "" {
				s.says("plan", c.verdict, "")
			}
			if c.said != "" {
				s.says("ta1/1/call/1", c.said, "")
			}
			r := s.attempt().Receipt
			if r.Status != c.status || r.ConfirmationRequired != c.required || len(s.acts) != c.acts {
				t.Errorf("%+v, confirmationRequired %t, acts %v", r.Status, r.ConfirmationRequired, s.acts)
			}
			if c.told != nil && !slices.Equal(s.told, c.told) {
				t.Errorf("the model was told %q", s.told)
			}
		})
	}
}

// A run that waits stands still for nobody: a task's own time runs while others work, and the run's does not while nobody
// drives it (Q25).
func TestTimeWhileAPersonDecides(t *testing.T) {
	p := team(1, 1, asking("true", "suspend"))
	p.Budgets.MaxDuration = spec.Duration(time.Minute)
	now := time.UnixMilli(1_000_000)
	clock := func(o *Options) { o.Clock = func() time.Time { return now } }
	s := newShift(t, p, texts("a"))
	s.attempt(clock)
	now = now.Add(48 * time.Hour)
	s.says("ta1/1/call/1", spec.VerdictApprove, "")
	if r := s.attempt(clock).Receipt; !r.Success || !slices.Equal(s.acts, []string{"a"}) {
		t.Errorf("%+v, acts %v", r.Status, s.acts)
	}
}

// Whoever edits what people decided, and seals the receipt again, does not pass the gate: not with the log, and not with
// the plan alone.
func TestForgedApprovals(t *testing.T) {
	s := newShift(t, team(1, 1, asking("true", "suspend")), texts("a", "b", "c"))
	s.says("ta1/1/call/1", spec.VerdictApprove, "")
	s.says("ta1/1/call/2", spec.VerdictReject, "no")
	s.says("ta1/1/call/3", spec.VerdictApprove, "")
	res := s.attempt()
	gate := func(r *spec.Receipt, log bool) *GateVerdict {
		b, err := SealReceipt(r)
		if err != nil {
			t.Fatal(err)
		}
		o := GateOptions{Plan: s.plan, NoLog: !log, AllowNotApplicable: true}
		if log {
			o.Log = bytes.NewReader(s.log.buf.Bytes())
		}
		return Gate(b, o)
	}
	for name, edit := range map[string]func(*spec.Receipt){
		"a rejection turned into an approval": func(r *spec.Receipt) {
			r.Decisions[1].Approval = spec.ApprovalApproved
			r.Tasks[0].ToolCalls.Denied, r.Tasks[0].ToolCalls.Allowed, r.Denied = 0, 3, 0
		},
		"and its record": func(r *spec.Receipt) {
			r.Decisions[1].Approval, r.ApprovalDecisions[1].Decision = spec.ApprovalApproved, spec.ApprovalApproved
			r.Tasks[0].ToolCalls.Denied, r.Tasks[0].ToolCalls.Allowed, r.Denied = 0, 3, 0
		},
		"an approval that nobody gave":      func(r *spec.Receipt) { r.ApprovalDecisions[0].Votes = nil },
		"an approval of nothing":            func(r *spec.Receipt) { r.Decisions[0].RequestID = "" },
		"another request":                   func(r *spec.Receipt) { r.Decisions[0].RequestID = r.Decisions[1].RequestID },
		"a time that the plan does not set": func(r *spec.Receipt) { r.ApprovalDecisions[0].Expires = time.UnixMilli(1 << 41).UTC() },
		"called authenticated":              func(r *spec.Receipt) { r.ApprovalDecisions[0].Authenticated = true },
	} {
		var r spec.Receipt
		reread(t, res.Bytes, &r)
		edit(&r)
		for _, log := range []bool{true, false} {
			if v := gate(&r, log); v.Pass || v.ExitCode != ExitGovernance {
				t.Errorf("%s passes, log %t: %+v", name, log, v.Reasons)
			}
		}
	}
	var r spec.Receipt
	reread(t, res.Bytes, &r)
	if v := gate(&r, true); !v.Pass {
		t.Errorf("unedited: %+v", v.Reasons)
	}
	r.ApprovalDecisions[0].Votes[0].Reviewer = "bob" // without keys nothing proves who it was, and the log still does
	if v := gate(&r, true); v.Pass || !strings.Contains(v.Reasons[0].Message, "decisions of people") {
		t.Errorf("another reviewer: %+v", v.Reasons)
	}
}

// A call whose end was not recorded may have taken effect. It is made again if that changes nothing, else only if a person
// has looked; what has a result is never made again.
func TestACallThatMayHaveTakenEffect(t *testing.T) {
	for name, c := range map[string]struct {
		info spec.ToolInfo
		asks bool
	}{
		"reads":      {spec.ToolInfo{ReadOnly: true}, false},
		"idempotent": {spec.ToolInfo{Idempotent: true}, false},
		"acts":       {spec.ToolInfo{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			twice, asks := 0, 0
			for k := 3; ; k++ {
				plan := team(1, 1)
				grant := &plan.Agents[0].Tools[0]
				grant.ReadOnly, grant.Idempotent = c.info.ReadOnly, c.info.Idempotent
				s := newShift(t, plan, texts("a"))
				s.log.left = k
				if _, err := s.try(); err != nil {
					t.Fatal(err)
				} else if s.log.left > 0 {
					break // the whole run was recorded
				}
				s.log.left = -1
				before := len(s.acts)
				res := s.attempt()
				if asked := len(s.asked) > 0; asked != (res.Receipt.Status.Code == spec.StatusSuspended) || asked && (!c.asks || before == 0 && len(s.acts) > 0) {
					t.Fatalf("killed after %d records: asked %t, %+v, acts %v", k, asked, res.Receipt.Status, s.acts)
				}
				if len(s.acts) > before && before > 0 {
					twice++
				}
				asks += len(s.asked)
			}
			if c.asks != (twice == 0) || c.asks != (asks > 0) {
				t.Errorf("made again %d times, asked %d times", twice, asks)
			}
		})
	}
}

// What the desk says does not count: the votes do. A log in which a rejection was made an approval lets nothing run either.
func TestAWordIsNoVote(t *testing.T) {
	s := newShift(t, team(1, 1, asking("true", "suspend")), texts("a"))
	s.word = spec.ApprovalApproved
	if r := s.attempt().Receipt; r.Status.Code != spec.StatusSuspended || len(s.acts) > 0 {
		t.Errorf("%+v, acts %v", r.Status, s.acts)
	}
	s.says("ta1/1/call/1", spec.VerdictReject, "no")
	if r := s.attempt().Receipt; r.ApprovalDecisions[0].Decision != spec.ApprovalRejected || len(s.acts) > 0 {
		t.Errorf("%+v, acts %v", r.ApprovalDecisions, s.acts)
	}

	plan := team(1, 1)
	g := &guard{plan: plan, runID: "r", mask: strings.Clone, agents: map[string]*agentParts{"a1": {}}, permits: map[string]string{}}
	e := &core.Effect{Kind: core.Approval, ID: "ta1/1/call/1/approval", Scope: spec.ScopeToolCall, TaskID: "ta1", AgentName: "a1", Ask: &core.Ask{},
		Call: &core.Call{Name: "echo", ID: "c0", Canonical: []byte(`{}`), InputDigest: "sha256:x"}}
	q, err := g.request(e)
	if err != nil {
		t.Fatal(err)
	}
	for _, verdict := range []string{spec.VerdictReject, spec.VerdictApprove} {
		err := g.retold(e, &core.Result{Approval: &spec.ApprovalRecord{RequestID: q.ID, RequestHash: q.RequestHash, Decision: spec.ApprovalApproved,
			Votes: []spec.ApprovalVote{{Verdict: verdict, Reviewer: "ann"}}}})
		if (err == nil) != (verdict == spec.VerdictApprove) {
			t.Errorf("%s: %v", verdict, err)
		}
	}
}

func reread(t *testing.T, b []byte, r *spec.Receipt) {
	t.Helper()
	got, err := ReadReceipt(b)
	if err != nil {
		t.Fatal(err)
	}
	*r = *got
}
