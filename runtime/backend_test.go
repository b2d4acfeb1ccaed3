package runtime

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

// programs is a plan with n agents that are programs, each a required role with the task of its own.
func programs(n int) *spec.Plan {
	p := team(n, n)
	p.Governance = &spec.Governance{GovernanceIntent: spec.IntentRequired, Independence: spec.Independence{Parallel: true}}
	for i := range p.Agents {
		a := &p.Agents[i]
		a.Backend, a.Provider, a.Model, a.Tools, a.MaxTurns = &spec.Backend{Kind: "process", Command: "./coder"}, "", "", nil, 1
		p.Tasks[i].Role = a.Name
		p.Governance.RequiredRoles = append(p.Governance.RequiredRoles, a.Name)
	}
	return p
}

// program is an external agent that keeps what it was asked.
type program struct {
	prompts []string
	answer  func(q *spec.ModelRequest) (*spec.ModelResponse, error)
	closed  int
}

func (p *program) open(*spec.PlanAgent) (Model, io.Closer, error) { return p, p, nil }

func (p *program) Close() error { p.closed++; return nil }

func (p *program) Complete(_ context.Context, q *spec.ModelRequest) (*spec.ModelResponse, error) {
	p.prompts = append(p.prompts, q.Messages[len(q.Messages)-1].Text)
	return p.answer(q)
}

// wrote is an answer as a program gives it: it reports no usage.
func wrote(text string) func(*spec.ModelRequest) (*spec.ModelResponse, error) {
	return func(*spec.ModelRequest) (*spec.ModelResponse, error) {
		return &spec.ModelResponse{Message: spec.Message{Text: text}, Finish: spec.FinishStop}, nil
	}
}

func (p *program) backends(o *Options) {
	o.Backends = p.open
	o.Tree = func(context.Context, *spec.PlanAgent) (string, error) {
		return "sha256:" + strings.Repeat("0", 64), nil
	}
}

// inFlight is a run of one external agent that was killed while its program was at work.
func inFlight(t *testing.T, plan *spec.Plan, p *program) *shift {
	t.Helper()
	s := newShift(t, plan, nil)
	for k := 1; ; k++ {
		s.log.buf.Reset()
		s.log.left = k
		p.prompts = nil
		if _, err := s.try(p.backends); err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Split(bytes.TrimSpace(s.log.buf.Bytes()), []byte("\n")); bytes.Contains(lines[len(lines)-1], []byte(`"kind":"llm/request"`)) {
			break
		} else if s.log.left > 0 {
			t.Fatalf("no program was asked\n%s", s.log.buf.String())
		}
	}
	s.log.left = -1
	if len(p.prompts) != 1 {
		t.Fatalf("started %d times before it was killed", len(p.prompts))
	}
	return s
}

const restartOf = "ta1/1/model/again/1"

// An external agent that was at work when the process was killed may have done its work. It is put before a person; without
// one it is not started again, and its task fails.
func TestAnAgentInFlightIsNotStartedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		people  func(*shift, *Options)
		status  string // of the run
		code    string
		started int // in the attempt that goes on
	}{
		"nobody decides":  {func(*shift, *Options) {}, spec.StatusSuspended, "", 0},
		"approved":        {func(s *shift, _ *Options) { s.says(restartOf, spec.VerdictApprove, "") }, spec.StatusOK, "", 1},
		"rejected":        {func(s *shift, _ *Options) { s.says(restartOf, spec.VerdictReject, "it is done") }, spec.StatusError, "AGENT_NOT_REPEATED", 0},
		"nobody is there": {func(_ *shift, o *Options) { o.People = nil }, spec.StatusError, "AGENT_NOT_REPEATED", 0},
		"the desk fails":  {func(s *shift, _ *Options) { s.err = errors.New("disk full") }, spec.StatusError, "AGENT_NOT_REPEATED", 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := &program{answer: wrote("done")}
			s := inFlight(t, programs(1), p)
			p.prompts = nil
			res := s.attempt(p.backends, func(o *Options) { c.people(s, o) })
			r := res.Receipt
			if r.Status.Code != c.status || len(p.prompts) != c.started || r.Attempt != 2 {
				t.Errorf("%+v, started %d times\n%s", r.Status, len(p.prompts), brief(s.log.buf.String()))
			}
			if len(s.asked) > 0 && (len(s.asked) != 1 || s.asked[0].Boundary != restartOf || s.asked[0].Scope != spec.ScopeDispatch) {
				t.Errorf("asked %+v", s.asked)
			}
			if got := r.Tasks[0].ErrorInfo; c.code != "" && (got == nil || got.Code != c.code || got.Retryable) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Wherever a run is killed: a program that has answered is not started again, one that has not is only where a person said
// so, once for each time, and the gate takes the receipt.
func TestAnAgentIsStartedAsOftenAsPeopleSay(t *testing.T) {
	p := &program{answer: wrote("done")}
	s := inFlight(t, programs(1), p)
	s.says(restartOf, spec.VerdictApprove, "")
	s.log.left = 1
	for { // until the second start is the last record
		kept, log := s.log.left, bytes.Clone(s.log.buf.Bytes())
		p.prompts = nil
		if _, err := s.try(p.backends); err != nil {
			t.Fatal(err)
		}
		if len(p.prompts) == 1 {
			break
		}
		s.log.buf.Reset()
		s.log.buf.Write(log)
		s.log.left = kept + 1
	}
	s.log.left = -1
	p.prompts = nil
	if r := s.attempt(p.backends).Receipt; len(p.prompts) != 0 || len(r.PendingApprovals) != 1 || r.PendingApprovals[0].Boundary != "ta1/1/model/again/2" {
		t.Fatalf("started %d times, pending %+v", len(p.prompts), r.PendingApprovals)
	}
	s.says("ta1/1/model/again/2", spec.VerdictApprove, "")
	r := s.attempt(p.backends).Receipt
	if !r.Success || len(p.prompts) != 1 || len(r.ApprovalDecisions) != 2 || r.Tasks[0].Turns != 1 || r.Tasks[0].ModelCalls != 1 {
		t.Errorf("%+v, started %d times, %d decisions, task %+v", r.Status, len(p.prompts), len(r.ApprovalDecisions), r.Tasks[0])
	}
}

// The gate takes a receipt of a program that was started again, and none in which that was made up.
func TestStartsMadeUp(t *testing.T) {
	p := &program{answer: wrote("done")}
	s := inFlight(t, programs(1), p)
	s.says(restartOf, spec.VerdictApprove, "")
	res := s.attempt(p.backends)
	if v := sealedAgain(t, s.plan, res.Bytes, func(*spec.Receipt) {}); !v.Pass {
		t.Fatalf("without the log: %+v", v.Reasons)
	}
	moved := func(boundary string) func(*spec.Receipt) {
		return func(r *spec.Receipt) { a := &r.ApprovalDecisions[0]; a.Boundary = boundary; identified(r, a) }
	}
	for name, edit := range map[string]func(*spec.Receipt){
		"of the first attempt":             func(r *spec.Receipt) { r.Attempt = 1 },
		"of a turn that was not":           moved("ta1/2/model/again/1"),
		"behind one that was not":          moved("ta1/1/model/again/2"),
		"behind one that was not approved": func(r *spec.Receipt) { r.Attempt = 3; moved("ta1/1/model/again/2")(r) },
		"twice": func(r *spec.Receipt) {
			a := r.ApprovalDecisions[0]
			a.Boundary = "ta1/1/model/again/3"
			identified(r, &a)
			r.ApprovalDecisions = append(r.ApprovalDecisions, a)
		},
	} {
		if v := sealedAgain(t, s.plan, res.Bytes, edit); v.Pass || !told(v, "cannot have been at work") {
			t.Errorf("%s: %+v", name, v.Reasons)
		}
	}
	plan := *s.plan
	plan.Agents = slices.Clone(plan.Agents)
	plan.Agents[0].Backend, plan.Agents[0].Provider, plan.Agents[0].Model = nil, "p", "m"
	if v := sealedAgain(t, &plan, res.Bytes, func(r *spec.Receipt) { r.Tasks[0].Provider = "p" }); v.Pass || !told(v, "cannot have been at work") {
		t.Errorf("of an agent that is no program: %+v", v.Reasons)
	}

	log := s.log.buf.Bytes()
	made, ended := eventOf(t, log, spec.EventModelAsked, restartOf), eventOf(t, log, spec.EventModelResult, restartOf)
	second := func(id string) []spec.Event {
		m, e := made, ended
		m.ID, e.ID = id, id
		return []spec.Event{m, e}
	}
	for name, log := range map[string][]byte{
		"a third time":           spliced(t, log, spec.EventModelResult, restartOf, second("ta1/1/model/again/2")...),
		"before anybody said so": spliced(t, log, spec.EventApprovalAsked, restartOf+"/approval", made),
		"though nobody said so": forged(t, log, func(e *spec.Event) bool {
			return e.Kind != spec.EventApprovalAsked && e.Kind != spec.EventApprovalDecision
		}),
		"though its end is known": forged(t, log, func(e *spec.Event) bool {
			if e.Kind == spec.EventModelResult && e.ID == "ta1/1/model" {
				e.Data = bytes.ReplaceAll(e.Data, []byte(`"unsure":true`), []byte(`"unsure":false`))
			}
			return true
		}),
	} {
		if v := gateOn(t, s.plan, res.Bytes, log); v.Pass || v.ExitCode != ExitGovernance {
			t.Errorf("%s: %+v", name, v.Reasons)
		}
	}
}

// X3: what a program ends with decides, once: nothing of it is tried again, whatever the error says of itself.
func TestAProgramIsAskedOnce(t *testing.T) {
	p := &program{answer: func(*spec.ModelRequest) (*spec.ModelResponse, error) {
		return nil, &ProviderError{Info: spec.ErrorInfo{Kind: "provider", Message: `process backend "a1" exited with code 3: no disk`, Retryable: true}}
	}}
	s := newShift(t, programs(1), nil)
	r := s.attempt(p.backends).Receipt
	if slices.Contains(r.ExitCodes, ExitBroken) || r.ExitCodes[0] != ExitGovernance {
		t.Errorf("it is an agent that failed, and no provider: the run ends %v", r.ExitCodes)
	}
	if len(p.prompts) != 1 || p.closed != 1 || r.Status.Code != spec.StatusError {
		t.Errorf("asked %d times, closed %d times, %+v", len(p.prompts), p.closed, r.Status)
	}
	if got, want := r.Tasks[0].Cause, `process backend "a1" exited with code 3: no disk`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatAProgramAnswers(t *testing.T) {
	// An answer without a word in it is one: the work of a program is in its folder.
	p := &program{answer: wrote("")}
	r := newShift(t, programs(1), nil).attempt(p.backends).Receipt
	if !r.Success || r.GovernanceConclusion != "satisfied" || r.Tasks[0].StopReason != spec.StopCompleted {
		t.Errorf("%+v %s", r.Tasks[0], r.GovernanceConclusion)
	}
	if !r.Tasks[0].Estimated || r.Tasks[0].Cost != nil {
		t.Errorf("usage that nobody reported: %+v", r.Tasks[0])
	}

	// A program knows the secrets that it was given. Neither the agents after it nor the log get to see them, and the run can
	// go on all the same.
	plan := programs(2)
	plan.Tasks[1].DependsOn = []string{"ta1"}
	p = &program{answer: wrote("the key is hunter2")}
	s := newShift(t, plan, nil)
	res := s.attempt(p.backends, func(o *Options) {
		o.Reference = func(text string) string { return strings.ReplaceAll(text, "hunter2", "${secret:KEY}") }
	})
	all := strings.Join(p.prompts, "\n") + s.log.buf.String() + string(res.Bytes)
	if strings.Contains(all, "hunter2") || !strings.Contains(p.prompts[1], "the key is ${secret:KEY}") {
		t.Errorf("%s", all)
	}
}

// A bad answer gets one corrective prompt, as a model's does.
func TestAProgramCorrectsItselfOnce(t *testing.T) {
	for good, want := range map[string]string{`{"ok":true}`: spec.StatusOK, "no": spec.StatusError} {
		plan := programs(1)
		plan.Agents[0].OutputSchema, plan.Agents[0].MaxTurns = spec.Schema(`{"type":"object","required":["ok"]}`), 2
		first := true
		p := &program{}
		p.answer = func(q *spec.ModelRequest) (*spec.ModelResponse, error) {
			if first {
				first = false
				return wrote("made it")(q)
			}
			return wrote(good)(q)
		}
		r := newShift(t, plan, nil).attempt(p.backends).Receipt
		if r.Status.Code != want || len(p.prompts) != 2 || !strings.HasPrefix(p.prompts[1], "Your answer does not fit the required output schema") {
			t.Errorf("%s: %+v, prompts %q", good, r.Status, p.prompts)
		}
	}
}

// X5: a rejection before the start means that nothing is started.
func TestARejectedProgramIsNotStarted(t *testing.T) {
	for verdict, started := range map[string]int{spec.VerdictReject: 0, spec.VerdictApprove: 1} {
		plan := programs(1)
		plan.Approvals = &spec.PlanApprovals{Quorum: 1, Dispatch: []spec.PlanRule{{Rule: spec.Rule{Name: "look", When: `input.backend == "process ./coder"`, Action: "suspend"}, Source: "team"}}}
		p := &program{answer: wrote("done")}
		s := newShift(t, plan, nil)
		if r := s.attempt(p.backends).Receipt; r.Status.Code != spec.StatusSuspended || len(p.prompts) != 0 {
			t.Fatalf("%+v, started %d times", r.Status, len(p.prompts))
		}
		s.says("ta1/dispatch", verdict, "")
		if r := s.attempt(p.backends).Receipt; r.Success != (started == 1) || len(p.prompts) != started {
			t.Errorf("%s: %+v, started %d times", verdict, r.Status, len(p.prompts))
		}
	}
}

// The folder of a required role that is a program is hashed before it and at the end.
func TestTreesOfAProgram(t *testing.T) {
	p := &program{answer: wrote("done")}
	r := newShift(t, programs(1), nil).attempt(p.backends, func(o *Options) {
		o.Tree = func(context.Context, *spec.PlanAgent) (string, error) {
			return "sha256:" + strings.Repeat("0", 63) + string(rune('0'+len(p.prompts))), nil
		}
	}).Receipt
	var got []string
	for _, tree := range r.Trees {
		got = append(got, tree.Before+" "+tree.Digest[len(tree.Digest)-1:])
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{" 1", "ta1 0"}, got); diff != "" {
		t.Error(diff)
	}
}

// Under a ceiling that reaches the run otherwise than through its team, a program ends where nobody lets estimates stand in.
func TestAProgramUnderACeiling(t *testing.T) {
	for _, unmetered := range []string{"", "allow"} {
		plan := programs(1)
		plan.Agents[0].Unmetered, plan.Budgets.MaxTokenBudget = unmetered, 10_000
		p := &program{answer: wrote("done")}
		r := newShift(t, plan, nil).attempt(p.backends).Receipt
		if r.Success != (unmetered == "allow") || !r.Tasks[0].Estimated || r.Tasks[0].Tokens.Total() == 0 {
			t.Errorf("%q: %+v, %+v", unmetered, r.Status, r.Tasks[0])
		}
	}
}

// A run that cannot start programs says so before anything is asked.
func TestNoBackendsHere(t *testing.T) {
	res, err := run(t, programs(1), nil, nil, nil)
	if err == nil || err.Error() != `agent "a1": backend "process" cannot be started here` {
		t.Errorf("%+v, %v", res, err)
	}
}
