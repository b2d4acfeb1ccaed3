package runtime

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
)

// runEnd is the last event of a log: how the run ended, as far as that does not follow from the events before it.
type runEnd struct {
	Status               spec.Status     `json:"status"`
	GovernanceConclusion string          `json:"governanceConclusion"`
	Release              []spec.Released `json:"release,omitempty"`
}

// log holds the receipt against the event log: every line, the length, the head, and what the events say of the tasks.
func (v *GateVerdict) log(r *spec.Receipt, in io.Reader) {
	facts := logFacts{tasks: map[string]*taskFacts{}, judged: []string{}, trees: []string{}}
	ref, err := VerifyLog(in, facts.see)
	switch {
	case err != nil:
		v.fail("integrity", "the event log is damaged: %v", err)
		return
	case ref != r.Evidence.Journal:
		v.fail("integrity", "the event log has %d events and another end than the receipt says", ref.Events)
		return
	}
	before := len(v.Reasons)
	for _, t := range r.Tasks {
		v.task(t, facts.of(t.ID))
	}
	differs := func(what string, got, want any) {
		if plain(got) != plain(want) {
			v.fail("integrity", "the event log and the receipt differ in the %s", what)
		}
	}
	differs("plan", facts.plan, r.Plan.Digest)
	differs("run", facts.run, r.RunID)
	differs("decisions", facts.judged, judgedOn(r))
	slices.Sort(facts.trees)
	differs("digests of folders", facts.trees, treesOn(r))
	if !facts.ended || facts.end.Status != r.Status {
		v.fail("integrity", "the run ended as %q in the event log and as %q in the receipt", facts.end.Status.Code, r.Status.Code)
	}
	differs("outcome of the release requirements", facts.end.Release, r.Release)
	if len(v.Reasons) == before {
		v.Integrity = IntegrityChain
	}
}

// task holds one task's record against the events of the task.
func (v *GateVerdict) task(t spec.TaskRecord, f *taskFacts) {
	if f.status != t.Status {
		v.fail("integrity", "task %q is %q in the event log and %q in the receipt", t.ID, f.status, t.Status)
	}
	if f.started != t.StartedAt {
		v.fail("integrity", "task %q started at another time in the event log than in the receipt", t.ID)
	}
	if f.calls != t.ModelCalls || !t.Estimated && f.tokens != t.Tokens || !slices.Equal(f.models, t.Models) {
		v.fail("integrity", "the model calls of task %q are others in the event log than in the receipt", t.ID)
	}
}

// judgement is what a decision comes to. Names and reasons are left out: the receipt holds them masked and cut.
func judgement(task string, d spec.Decision, inputDigest string) string {
	s := fmt.Sprintf("%s %t %s %s %s %s", task, d.Gated, d.GateAction, d.GateOutcome, d.Refused, inputDigest)
	for _, r := range d.Rules {
		s += fmt.Sprintf(" %s=%s/%s", r.Name, r.Action, r.Outcome)
	}
	return s
}

// judgedOn gives the receipt's decisions that were asked of the door. Those the core answers by itself leave no event.
func judgedOn(r *spec.Receipt) []string {
	out := []string{}
	for _, d := range r.Decisions {
		switch d.Refused {
		case "cut", "too-many", "budget", "cancelled":
		default:
			out = append(out, judgement(d.TaskID, d.Decision, d.InputDigest))
		}
	}
	return out
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
	run, plan string
	tasks     map[string]*taskFacts
	judged    []string
	trees     []string
	end       runEnd
	ended     bool
}

type taskFacts struct {
	status, started string
	calls           int // model calls, with retries
	tokens          spec.Usage
	models          []string
}

func (f *logFacts) of(task string) *taskFacts {
	t := f.tasks[task]
	if t == nil {
		t = &taskFacts{}
		f.tasks[task] = t
	}
	return t
}

func (f *logFacts) see(e *spec.Event) (err error) {
	switch e.Kind {
	case spec.EventRunStart:
		f.run = e.ID
	case spec.EventPlanSet:
		f.plan = e.Digest
	case spec.EventRunEnd:
		f.ended = true
		err = json.Unmarshal(e.Data, &f.end)
	case spec.EventTaskStatus:
		var s core.TaskStatus
		err = json.Unmarshal(e.Data, &s)
		t := f.of(e.TaskID)
		if t.status = s.Status; s.Status == spec.TaskInProgress {
			t.started = stamp(e.At)
		}
	case spec.EventModelResult, spec.EventToolJudged, spec.EventTree:
		var res core.Result
		if err = json.Unmarshal(e.Data, &res); err == nil {
			f.result(e, &res)
		}
	}
	if err != nil {
		return fmt.Errorf("event %d cannot be read", e.Seq)
	}
	return nil
}

func (f *logFacts) result(e *spec.Event, res *core.Result) {
	t := f.of(e.TaskID)
	if m := res.Model; m != nil {
		t.calls += m.Attempts
		t.tokens = t.tokens.Add(m.Wasted)
		if r := m.Response; r != nil && r.Usage != nil {
			t.tokens = t.tokens.Add(*r.Usage)
		}
		if r := m.Response; r != nil && r.Model != "" && !slices.Contains(t.models, r.Model) {
			t.models = append(t.models, r.Model)
		}
	}
	if j := res.Judged; j != nil {
		f.judged = append(f.judged, judgement(e.TaskID, j.Decision, j.InputDigest))
	}
	if e.Kind == spec.EventTree && (res.Tree != "" || res.Cancelled) {
		before := e.TaskID
		if strings.HasSuffix(e.ID, "/end") {
			before = ""
		}
		if res.Cancelled {
			res.Tree = core.TreeCancelled
		}
		f.trees = append(f.trees, before+" "+res.Tree)
	}
}
