package runtime

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/redact"
)

// callFacts is what a log says of calls in its order: which ones were let through, and which were made. A call is made once
// for each time it was let through, by rules or by people; an attempt that goes on with one that was in flight leaves no
// second record of making it, or has asked people about it.
type callFacts struct {
	asks   map[string]judgement // that wait for a person, by the effect that they are of
	may    map[string]judgement // let through and not made yet, by the effect that makes it
	made   map[string]judgement // by that effect
	ended  map[string]bool      // made, with its result
	unsure map[string]bool      // made, and nobody knows whether it took effect
	seen   map[string][]string  // what external agents asked for, by their prompts: the digests of the inputs, in order
	loose  string               // the first thing that nothing had let happen. Empty: there is none
}

func newCallFacts() callFacts {
	return callFacts{map[string]judgement{}, map[string]judgement{}, map[string]judgement{}, map[string]bool{}, map[string]bool{}, map[string][]string{}, ""}
}

func (f *callFacts) broken(format string, args ...any) {
	if f.loose == "" {
		f.loose = fmt.Sprintf(format, args...)
	}
}

// judged takes what rules said of a call.
func (f *callFacts) judged(j *judgement) {
	switch {
	case j.Allowed():
		f.may[j.id] = *j
	case j.Asks():
		f.asks[j.id] = *j
	}
}

// approved takes a request that people approved: about a call that asked, or about making one again that may have taken
// effect.
func (f *callFacts) approved(r *spec.ApprovalRequest) {
	var c spec.ApprovalContent
	if r.Scope != spec.ScopeToolCall || json.Unmarshal(r.Content, &c) != nil {
		return
	}
	at, ok := placeIn(c.TaskID, r.Boundary)
	j, asked := f.asks[r.Boundary]
	if at.again > 0 {
		before := place{at.try, at.turn, at.call, at.again - 1}.in(c.TaskID)
		j, asked = f.made[before], f.unsure[before] && c.Again
	}
	if ok && asked && c.InputDigest == j.digest {
		f.may[r.Boundary] = j
	}
}

// see takes a call that was made, and that it came to an end. It sees what followed a stop as well: a call that is on record
// was made, whether or not a later attempt goes on from there.
func (f *callFacts) see(e *spec.Event) error {
	switch e.Kind {
	case spec.EventToolAsked:
		if o := ObservedIn(e); o != nil {
			f.observed(e, o)
			return nil
		}
		var c struct{ ToolName, ToolCallID string }
		if err := json.Unmarshal(e.Data, &c); err != nil {
			return fmt.Errorf("event %d cannot be read", e.Seq)
		}
		j, let := f.may[e.ID]
		switch {
		case !let:
			f.broken("call %s was made, and nothing had let it through", e.ID)
		case j.task != e.TaskID || j.digest != e.Digest || !sameInLog(j.tool, c.ToolName) || !sameInLog(j.call, c.ToolCallID):
			f.broken("call %s was made otherwise than it was let through", e.ID)
		}
		delete(f.may, e.ID)
		f.made[e.ID] = j
	case spec.EventToolResult:
		if _, made := f.made[e.ID]; !made && !resultIn(e).Cancelled {
			f.broken("call %s has a result and was not made", e.ID)
		}
	}
	return nil
}

// observed takes what an external agent asked for while it was at work.
func (f *callFacts) observed(e *spec.Event, o *Observed) {
	if o.Permit == nil {
		return
	}
	prompt, n := promptOf(e.ID)
	if n != len(f.seen[prompt])+1 || o.Permit.Judged == nil || o.Permit.Judged.InputDigest != e.Digest {
		f.broken("request %s is out of order", e.ID)
	}
	f.seen[prompt] = append(f.seen[prompt], e.Digest)
}

// answered takes all that an external agent asked for during a prompt.
func (f *callFacts) answered(prompt string, all []core.Permit) {
	var digests []string
	for i := range all {
		if all[i].Judged != nil {
			digests = append(digests, all[i].Judged.InputDigest)
		}
	}
	if !slices.Equal(digests, f.seen[prompt]) {
		f.broken("what the agent asked for during %s is not what is on record of it", prompt)
	}
}

// result takes what a call came to, as far as it counts.
func (f *callFacts) result(id string, res *core.Result) {
	if f.ended[id] {
		f.broken("call %s has two results", id)
	}
	f.ended[id], f.unsure[id] = true, res.Unsure
}

// sameInLog compares two texts of a model's that attempts have put in a log. Each took out the secrets that it knew.
func sameInLog(a, b string) bool {
	hidden := func(s string) bool { return strings.Contains(s, secretReference) || strings.Contains(s, redact.Mark) }
	return a == b || hidden(a) || hidden(b)
}
