package runtime

import (
	"encoding/json"
	"fmt"
	"io"

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
	if in == nil {
		return
	}
	facts := logFacts{tasks: map[string]*taskFacts{}}
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
	if facts.plan != r.Plan.Digest {
		v.fail("integrity", "the event log is of another plan")
	}
	if !facts.ended || facts.end.Status != r.Status {
		v.fail("integrity", "the run ended as %q in the event log and as %q in the receipt", facts.end.Status.Code, r.Status.Code)
	}
	if plain(facts.end.Release) != plain(r.Release) {
		v.fail("integrity", "the release requirements came out differently in the event log and in the receipt")
	}
	if len(v.Reasons) == before {
		v.Integrity = IntegrityChain
	}
}

// task holds one task's record against the events of the task.
func (v *GateVerdict) task(t spec.TaskRecord, f *taskFacts) {
	if f.status != t.Status {
		v.fail("integrity", "task %q is %q in the event log and %q in the receipt", t.ID, f.status, t.Status)
	}
	if f.calls != t.ModelCalls || !t.Estimated && f.tokens != t.Tokens {
		v.fail("integrity", "task %q made %d model calls in the event log and %d in the receipt, or used other tokens", t.ID, f.calls, t.ModelCalls)
	}
	if f.allowed != t.ToolCalls.Allowed || f.denied != t.ToolCalls.Denied {
		v.fail("integrity", "task %q has %d allowed and %d denied calls in the event log, and %d and %d in the receipt",
			t.ID, f.allowed, f.denied, t.ToolCalls.Allowed, t.ToolCalls.Denied)
	}
}

// logFacts is what a log says by itself.
type logFacts struct {
	plan  string
	tasks map[string]*taskFacts
	end   runEnd
	ended bool
}

type taskFacts struct {
	status          string
	calls           int // model calls, with retries
	tokens          spec.Usage
	allowed, denied int
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
	case spec.EventPlanSet:
		f.plan = e.Digest
	case spec.EventRunEnd:
		f.ended = true
		err = json.Unmarshal(e.Data, &f.end)
	case spec.EventTaskStatus:
		var s core.TaskStatus
		err = json.Unmarshal(e.Data, &s)
		f.of(e.TaskID).status = s.Status
	case spec.EventModelResult, spec.EventToolJudged:
		var res core.Result
		err = json.Unmarshal(e.Data, &res)
		f.of(e.TaskID).add(&res)
	}
	if err != nil {
		return fmt.Errorf("event %d cannot be read", e.Seq)
	}
	return nil
}

func (t *taskFacts) add(res *core.Result) {
	if m := res.Model; m != nil {
		t.calls += m.Attempts
		t.tokens = t.tokens.Add(m.Wasted)
		if m.Response != nil && m.Response.Usage != nil {
			t.tokens = t.tokens.Add(*m.Response.Usage)
		}
	}
	switch j := res.Judged; {
	case j == nil:
	case j.Allowed():
		t.allowed++
	case j.Refused == "":
		t.denied++
	}
}
