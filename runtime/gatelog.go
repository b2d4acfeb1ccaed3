package runtime

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
	"github.com/open-multi-agent/oma/spec/redact"
)

// runEnd is the last event of a log: how the run ended, as far as that does not follow from the events before it.
type runEnd struct {
	Status               spec.Status     `json:"status"`
	GovernanceConclusion string          `json:"governanceConclusion"`
	Release              []spec.Released `json:"release,omitempty"`
}

// planSet is the event that says what is run, and under which ceilings.
type planSet struct {
	Team    spec.PlanTeam `json:"team"`
	Tasks   int           `json:"tasks"`
	Budgets spec.Budgets  `json:"budgets"` // in force: the plan's, narrowed
	// Redacted says that what looks like a secret is not in the log.
	Redacted bool `json:"redacted,omitempty"`
}

// log holds the receipt against the event log: every line, the length, the head, and what the events say of the tasks. It
// gives the run as the log tells it, or nil where the log does not hold.
func (v *GateVerdict) log(r *spec.Receipt, in io.Reader) *Past {
	past := newPastReader()
	facts := logFacts{tasks: map[string]*taskFacts{}, trees: []string{}, calls: newCallFacts(),
		people: peopleFacts{requests: map[string]spec.ApprovalRequest{}, answers: map[string]core.Result{}}}
	ref, err := VerifyLog(in, func(e *spec.Event) error { return errors.Join(past.see(e), facts.see(e)) })
	if err == nil {
		err = facts.close()
	}
	switch {
	case err != nil:
		v.broken(hintLog, "the event log is damaged: %v", err)
		return nil
	case ref != r.Evidence.Journal:
		v.broken(hintLog, "the event log has %d events and another end than the receipt says", ref.Events)
		return nil
	}
	before := len(v.Reasons)
	known := map[string]bool{}
	for _, t := range r.Work() {
		v.task(t, facts.of(t.ID), facts.set.Redacted)
		known[t.ID] = true
	}
	for _, id := range sortedKeys(facts.tasks) {
		if !known[id] && id != "" {
			v.broken(hintLog, "the event log has work of %q, which the receipt leaves out", id)
		}
	}
	differs := func(what string, got, want any) {
		if plain(got) != plain(want) {
			v.broken(hintLog, "the event log and the receipt differ in the %s", what)
		}
	}
	differs("plan", facts.plan, r.Plan.Digest)
	differs("attempt", facts.attempts, r.Attempt)
	differs("ceilings", facts.set.Budgets, r.Budgets.Effective)
	slices.SortFunc(facts.people.pending, byBoundary)
	differs("decisions of people", []any{facts.people.decided, facts.people.pending}, []any{r.ApprovalDecisions, r.PendingApprovals})
	differs("run", []any{facts.author, facts.run, facts.build, facts.begun, facts.over}, []any{r.Author, r.RunID, r.Oma, r.DurationMs, r.CreatedAt})
	v.judged(r, &facts)
	if facts.calls.loose != "" {
		v.broken(hintLog, "by the event log, %s", facts.calls.loose)
	}
	slices.Sort(facts.trees)
	differs("digests of folders", facts.trees, treesOn(r))
	if !facts.ended || facts.end.Status != r.Status {
		v.broken(hintLog, "the run ended as %q in the event log and as %q in the receipt", facts.end.Status.Code, r.Status.Code)
	}
	differs("outcome of the release requirements", facts.end.Release, r.Release)
	if len(v.Reasons) > before {
		return nil
	}
	v.Integrity, v.Chained = IntegrityChain, true
	return past.past(ref)
}

// task holds one task's record against the events of the task.
func (v *GateVerdict) task(t spec.TaskRecord, f *taskFacts, redacted bool) {
	differs := func(what string, same bool) {
		if !same {
			v.broken(hintLog, "the %s of task %q differ in the event log and in the receipt", what, t.ID)
		}
	}
	differs("states", cmp.Or(f.status, spec.TaskPending) == t.Status)
	differs("times", f.started == t.StartedAt && (t.StartedAt == "" || f.ended == t.EndedAt))
	differs("model calls", f.calls == t.ModelCalls && f.turns == t.Turns && slices.Equal(f.models, t.Models))
	if t.Estimated { // what nobody reported was added to what the log holds
		least := f.tokens
		differs("tokens", least.Input <= t.Tokens.Input && least.Output <= t.Tokens.Output)
	} else {
		differs("tokens", f.tokens == t.Tokens)
	}
	if t.Provider == "" && t.Cost != nil {
		differs("costs", f.cost == *t.Cost)
	}
	differs("estimates", f.estimated == t.Estimated)
	differs("failed calls", f.failures() == t.ToolCalls.Failed)
	decided := t.ToolCalls.Allowed + t.ToolCalls.Denied + t.ToolCalls.Refused + t.ToolCalls.Suspended
	differs("attempts", f.attempts == t.Attempts)
	switch {
	case t.Attempts == 1 && (t.StopReason == spec.StopCompleted || t.StopReason == spec.StopMaxTurns || t.StopReason == spec.StopLength):
		differs("calls that were decided", decided == f.asked)
	default: // a turn that ended the task may have asked for calls that nobody looked at
		differs("calls that were decided", decided <= f.asked)
	}
	if t.Status == spec.TaskCompleted && !strings.Contains(f.text, secretReference) && !(redacted && strings.Contains(f.text, redact.Mark)) {
		differs("answers", canon.Digest("output", []byte(f.text)) == t.OutputDigest)
	}
}

// secretReference begins what stands in the log where a resolved secret stood.
const secretReference = "${secret:"

// judgement is a decision as the log has it.
type judgement struct {
	id                              string // of the effect that was judged
	scope, task, tool, call, digest string
	spec.Decision
	onSpot bool // of a request of an external agent: whoever was asked about it answered at once
}

// judged holds the receipt's decisions that were asked of the door against the log, one by one. Those the core answers by
// itself leave no event.
func (v *GateVerdict) judged(r *spec.Receipt, facts *logFacts) {
	at := 0
	for _, d := range r.Decisions {
		switch d.Refused {
		case "cut", "too-many", "budget", "loop", "cancelled":
			continue
		}
		if at == len(facts.judged) {
			v.broken(hintLog, "decision %d is not in the event log", d.Seq)
			return
		}
		j, same := facts.settled(facts.judged[at])
		if !same || !j.is(&d) {
			v.broken(hintLog, "decision %d is another one in the event log", d.Seq)
			return
		}
		at++
	}
	if at != len(facts.judged) {
		v.broken(hintLog, "the event log has %d decisions that the receipt leaves out", len(facts.judged)-at)
	}
}

func (j *judgement) is(d *spec.DecisionRecord) bool {
	return j.scope == d.Scope && j.Approval == d.Approval && j.RequestID == d.RequestID && j.task == d.TaskID && shownAs(j.tool, d.ToolName) && shownAs(j.call, d.ToolCallID) && j.digest == d.InputDigest &&
		shownAs(j.Reason, d.Reason) && j.Gated == d.Gated && j.GateAction == d.GateAction && j.GateOutcome == d.GateOutcome && j.Refused == d.Refused &&
		plain(j.Rules) == plain(d.Rules) && plain(j.Marks) == plain(d.Marks) && j.Reproduce == d.Reproduce
}

// shownAs says whether a text of a model's, or of a rule's, stands on the receipt as it must: masked, then cut. Where the
// log has a reference to a resolved secret, what it stood for is not known here.
func shownAs(text, shown string) bool {
	var patterns *redact.Redactor
	same := func(s string) bool {
		return s == shown || clip(s, maxName) == shown || clip(s, maxReason) == shown
	}
	return same(text) || same(patterns.Text(text)) || strings.Contains(text, secretReference)
}

// treesOn gives the digests of folders before tasks, by task, and those at the end.
func treesOn(r *spec.Receipt) []string {
	out := []string{}
	for _, t := range r.Trees {
		out = append(out, t.Before+" "+t.Digest)
	}
	slices.Sort(out)
	return out
}

// logFacts is what a log says by itself.
type logFacts struct {
	attempts  int
	stopped   bool         // the run was told to stop
	after     []spec.Event // what followed: it counts unless a later attempt goes on from there
	run, plan string
	set       planSet
	build     spec.Build
	first     int64 // when the core's clock began
	begun     int64 // how long the run took, in milliseconds
	over      string
	tasks     map[string]*taskFacts
	judged    []judgement
	people    peopleFacts
	calls     callFacts
	author    string
	trees     []string
	end       runEnd
	ended     bool
}

type taskFacts struct {
	status, started, ended string
	attempts               int
	calls                  int // model calls, with retries
	turns                  int
	failed                 map[string]bool // calls, by their effect: whether it failed the last time it was made
	asked                  int             // calls the answers hold
	estimated              bool            // some usage was not reported
	tokens                 spec.Usage
	cost                   spec.USD // that external agents said
	models                 []string
	text                   string // of the last answer
}

func (f *logFacts) of(task string) *taskFacts {
	t := f.tasks[task]
	if t == nil {
		t = &taskFacts{}
		f.tasks[task] = t
	}
	return t
}

func (f *logFacts) see(e *spec.Event) error {
	if err := f.calls.see(e); err != nil {
		return err
	}
	switch {
	case e.Kind == spec.EventRunStop:
		f.stopped = true
		return nil
	case e.Kind == spec.EventRunStart:
		f.attempts++
		f.stopped, f.after = false, nil
	case f.stopped:
		f.after = append(f.after, *e)
		return nil
	}
	return f.fact(e)
}

// close takes in what followed the last stop.
func (f *logFacts) close() error {
	for i := range f.after {
		if err := f.fact(&f.after[i]); err != nil {
			return err
		}
	}
	return nil
}

func (f *logFacts) fact(e *spec.Event) (err error) {
	switch e.Kind {
	case spec.EventRunStart:
		var start runStart
		err = json.Unmarshal(e.Data, &start)
		f.run, f.build, f.author = e.ID, start.Oma, start.Author
	case spec.EventPlanSet:
		f.plan = e.Digest
		err = json.Unmarshal(e.Data, &f.set)
	case spec.EventTimerResult:
		f.timer(e)
	case spec.EventRunEnd:
		f.ended = true
		err = json.Unmarshal(e.Data, &f.end)
	case spec.EventTaskStatus:
		var s core.TaskStatus
		err = json.Unmarshal(e.Data, &s)
		t := f.of(e.TaskID)
		if t.status, t.ended = s.Status, stamp(e.At); s.Status == spec.TaskInProgress && s.StopReason == "" {
			if t.attempts++; t.attempts == 1 {
				t.started = t.ended
			}
		}
		f.delegated(e.TaskID, &s)
	case spec.EventModelResult, spec.EventToolResult, spec.EventTree:
		var res core.Result
		if err = json.Unmarshal(e.Data, &res); err == nil {
			f.result(e, &res)
		}
	case spec.EventToolJudged:
		var j judgedData
		if err = json.Unmarshal(e.Data, &j); err == nil && j.Result != nil && j.Judged != nil {
			f.judged = append(f.judged, judgement{id: strings.TrimSuffix(e.ID, "/judge"), task: e.TaskID, tool: j.ToolName, call: j.ToolCallID,
				digest: j.Judged.InputDigest, Decision: j.Judged.Decision})
			f.calls.judged(&f.judged[len(f.judged)-1])
		}
	case spec.EventBoundary:
		var res core.Result
		if err = json.Unmarshal(e.Data, &res); err == nil && res.Judged != nil {
			scope := spec.ScopeDispatch
			if e.TaskID == "" {
				scope = spec.ScopePlan
			}
			f.judged = append(f.judged, judgement{id: e.ID, scope: scope, task: e.TaskID, digest: res.Judged.InputDigest, Decision: res.Judged.Decision})
		}
	case spec.EventApprovalAsked:
		err = f.asked(e)
	case spec.EventApprovalDecision:
		var res core.Result
		if err = json.Unmarshal(e.Data, &res); err == nil {
			err = f.heard(e, &res)
		}
	}
	if err != nil {
		return fmt.Errorf("event %d cannot be read", e.Seq)
	}
	return nil
}

// delegated takes what became of a delegated run, which is what came of the call that asked for it.
func (f *logFacts) delegated(id string, s *core.TaskStatus) {
	task, ok := callerOf(id)
	if !ok || s.Status == spec.TaskInProgress {
		return
	}
	f.of(task).fails(id, s.Status != spec.TaskCompleted)
}

// timer takes the two times by which the core knows when a run began and was over.
func (f *logFacts) timer(e *spec.Event) {
	switch e.ID {
	case core.TimerStart:
		f.first = e.At
	case core.TimerEnd:
		f.begun, f.over = e.At-f.first, stamp(e.At)
	}
}

func (f *logFacts) result(e *spec.Event, res *core.Result) {
	t := f.of(e.TaskID)
	switch e.Kind {
	case spec.EventModelResult:
		if !strings.Contains(e.ID, "/again/") { // it is still the turn in which the agent was at work
			t.turns++
		}
		if m := res.Model; m != nil {
			t.model(m)
			f.permits(e, m.Permits)
			t.estimated = t.estimated || m.Response == nil && m.Wasted == (spec.Usage{}) && core.Lost(*res)
		}
	case spec.EventToolResult:
		f.calls.result(e.ID, res)
		id, _, _ := strings.Cut(e.ID, "/again/")
		t.fails(id, res.Cancelled || res.Tool == nil || res.Tool.IsError)
	case spec.EventTree:
		before := e.TaskID
		if strings.HasSuffix(e.ID, "/end") {
			before = ""
		}
		if res.Cancelled {
			res.Tree = core.TreeCancelled
		}
		if res.Tree != "" {
			f.trees = append(f.trees, before+" "+res.Tree)
		}
	}
}

// permits takes in what an external agent asked for during a prompt. Each request was put on record before it was answered.
func (f *logFacts) permits(e *spec.Event, all []core.Permit) {
	t := f.of(e.TaskID)
	f.calls.answered(e.ID, all)
	for i := range all {
		p := &all[i]
		if p.Judged == nil {
			continue
		}
		id := fmt.Sprintf("%s/permit/%d", e.ID, i+1)
		f.judged = append(f.judged, judgement{id: id, task: e.TaskID, tool: p.Tool(), call: p.ID, digest: p.Judged.InputDigest, Decision: p.Judged.Decision, onSpot: true})
		if p.Approval != nil {
			f.people.decided = append(f.people.decided, *p.Approval)
		}
		if p.Failed() {
			t.fails(id, true)
		}
	}
}

func (t *taskFacts) fails(call string, failed bool) {
	if t.failed == nil {
		t.failed = map[string]bool{}
	}
	t.failed[call] = failed
}

func (t *taskFacts) failures() (n int) {
	for _, failed := range t.failed {
		if failed {
			n++
		}
	}
	return n
}

func (t *taskFacts) model(m *core.ModelResult) {
	t.calls += m.Attempts
	t.tokens, t.estimated = t.tokens.Add(m.Wasted), t.estimated || m.Repeated > 0
	t.asked += len(m.Permits)
	t.cost = spec.AddCapped(t.cost, m.WastedCost)
	r := m.Response
	if r == nil {
		return
	}
	if r.Cost != nil {
		t.cost = spec.AddCapped(t.cost, *r.Cost)
	}
	t.text = r.Message.Text
	t.asked += len(r.Message.ToolCalls)
	if r.Usage != nil {
		t.tokens = t.tokens.Add(*r.Usage)
	}
	t.estimated = t.estimated || r.Usage == nil
	if r.Model != "" && !slices.Contains(t.models, r.Model) {
		t.models = append(t.models, r.Model)
	}
}
