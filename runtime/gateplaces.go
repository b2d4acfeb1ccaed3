package runtime

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

// place is where in a task a call is, and so its effect: each turn's calls are judged one after another. try is which attempt
// of the task it is in, from 2; 0: the first.
type place struct{ try, turn, call, again int }

// placeIn reads the boundary of a request about a call of a task, or about making one again.
func placeIn(task, boundary string) (p place, ok bool) {
	base, again, repeats := strings.Cut(boundary, "/again/")
	if rest, found := strings.CutPrefix(base, task+"/"); found {
		_, _ = fmt.Sscanf(p.attempt(rest), "%d/call/%d", &p.turn, &p.call) // what could not be read does not read back
	}
	if repeats {
		_, _ = fmt.Sscanf(again, "%d", &p.again)
	}
	return p, p.turn > 0 && p.call > 0 && (p.again > 0) == repeats && boundary == p.in(task)
}

// attempt reads which attempt a place is in, and gives what comes after that.
func (p *place) attempt(rest string) string {
	after, ok := strings.CutPrefix(rest, "try/")
	if !ok {
		return rest
	}
	n, after, _ := strings.Cut(after, "/")
	p.try, _ = strconv.Atoi(n)
	return after
}

// path is what the effects of an attempt of a task begin with.
func (p place) path(task string) string {
	if p.try == 0 {
		return task
	}
	return fmt.Sprintf("%s/try/%d", task, p.try)
}

func (p place) in(task string) string {
	id := fmt.Sprintf("%s/%d/call/%d", p.path(task), p.turn, p.call)
	if p.again > 0 {
		id = fmt.Sprintf("%s/again/%d", id, p.again)
	}
	return id
}

// requested reads the boundary of a request about what an external agent asked for: call is which one of its prompt's.
func requested(task, boundary string) (p place, ok bool) {
	prompt, n := promptOf(boundary)
	p, again := restarted(task, prompt)
	if !again {
		p = place{}
		_, _ = fmt.Sscanf(p.attempt(strings.TrimPrefix(prompt, task+"/")), "%d/model", &p.turn)
	}
	p.call = n
	return p, p.turn > 0 && n > 0 && boundary == fmt.Sprintf("%s/permit/%d", prompt, n) && (again || prompt == fmt.Sprintf("%s/%d/model", p.path(task), p.turn))
}

// restarted reads the boundary of a request about starting an external agent again.
func restarted(task, boundary string) (p place, ok bool) {
	if rest, found := strings.CutPrefix(boundary, task+"/"); found {
		_, _ = fmt.Sscanf(p.attempt(rest), "%d/model/again/%d", &p.turn, &p.again)
	}
	return p, p.again > 0 && p.turn > 0 && boundary == p.restart(task)
}

func (p place) restart(task string) string {
	return fmt.Sprintf("%s/%d/model/again/%d", p.path(task), p.turn, p.again)
}

// placing is the last decision of a task that people were asked about: which of the task's calls it is of, counted from 1.
type placing struct {
	at  place
	nth int
}

// before says whether another call of the task, the nth, can be at a place behind this one.
func (p placing) before(at place, nth int) bool {
	between := nth - p.nth
	if at.try != p.at.try {
		return at.try > p.at.try && at.call <= between
	}
	if at.turn == p.at.turn && at.again == p.at.again {
		return at.call-p.at.call == between
	}
	return (at.turn > p.at.turn || at.turn == p.at.turn && at.again > p.at.again) && at.call <= between
}

// places holds each request against the one decision that it is about. Requests to make a call again have none of their own.
func (v *GateVerdict) places(r *spec.Receipt, records map[string]*spec.ApprovalRecord) {
	last, nth := map[string]placing{}, map[string]int{}
	used, ran := map[string]*spec.DecisionRecord{}, map[string]int{}
	for i := range r.Decisions {
		d := &r.Decisions[i]
		if d.Scope == "" {
			nth[d.TaskID]++
		}
		if d.RequestID == "" {
			if d.Approval != "" && d.Approval != spec.ApprovalPending {
				v.broken(hintReceipt, "decision %d was %s by people whom nobody asked", d.Seq, d.Approval)
			} else if d.Scope == "" && d.Allowed() {
				ran[d.TaskID]++
			}
			continue
		}
		switch a := records[d.RequestID]; {
		case a == nil || a.Decision != d.Approval:
			v.broken(hintReceipt, "decision %d says that request %s was %s, and the receipt has it otherwise", d.Seq, d.RequestID, d.Approval)
		case used[d.RequestID] != nil:
			v.broken(hintReceipt, "request %s is used for decision %d and for decision %d", d.RequestID, used[d.RequestID].Seq, d.Seq)
		case !fitsPlace(a, d, last, nth[d.TaskID]):
			v.broken(hintReceipt, "request %s is about something else than decision %d", d.RequestID, d.Seq)
		}
		used[d.RequestID] = d
	}
	v.repeats(r, used, ran)
}

// fitsPlace says whether a request is about a decision, as far as the receipt tells: of a call it has the task, and how
// many of the task's calls were decided before.
func fitsPlace(a *spec.ApprovalRecord, d *spec.DecisionRecord, last map[string]placing, nth int) bool {
	if a.TaskID != d.TaskID {
		return false
	}
	switch d.Scope {
	case spec.ScopePlan:
		return a.Scope == d.Scope && a.Boundary == "plan"
	case spec.ScopeDispatch:
		return a.Scope == d.Scope && a.Boundary == d.TaskID+"/dispatch"
	}
	at, ok := placeIn(a.TaskID, a.Boundary)
	ok = ok && at.again == 0
	if !ok {
		at, ok = requested(a.TaskID, a.Boundary)
	}
	before, known := last[d.TaskID]
	if !known {
		before.at.turn = 1
	}
	last[d.TaskID] = placing{at, nth}
	return ok && a.Scope == spec.ScopeToolCall && before.before(at, nth)
}

// repeats holds requests that no decision names. An attempt that ended while a call was in flight leaves one to the next
// attempt: about a call that was let through, and about doing it again only if that was approved before. ran counts, by
// task, the calls that ran without a person.
func (v *GateVerdict) repeats(r *spec.Receipt, used map[string]*spec.DecisionRecord, ran map[string]int) {
	asked, approved, turns := map[string]*spec.DecisionRecord{}, map[string]bool{}, map[string]int{}
	outside := map[string]bool{} // tasks of external agents, which no provider answers
	all := slices.Concat(r.ApprovalDecisions, r.PendingApprovals)
	for _, a := range all {
		approved[a.Boundary] = a.Decision == spec.ApprovalApproved
		asked[a.Boundary] = used[a.RequestID]
	}
	for _, t := range r.Work() {
		turns[t.ID], outside[t.ID] = t.Turns, t.Provider == ""
	}
	for _, a := range all {
		if used[a.RequestID] != nil {
			continue
		}
		if at, ok := restarted(a.TaskID, a.Boundary); ok && a.Scope == spec.ScopeDispatch {
			before := place{try: at.try, turn: at.turn, again: at.again - 1}
			if at.again >= r.Attempt || at.turn > turns[a.TaskID] || at.again > 1 && !approved[before.restart(a.TaskID)] || !outside[a.TaskID] {
				v.broken(hintReceipt, "request %s is about an agent that cannot have been at work", a.RequestID)
			}
			continue
		}
		at, ok := placeIn(a.TaskID, a.Boundary)
		if !ok || at.again == 0 || a.Scope != spec.ScopeToolCall {
			v.broken(hintReceipt, "request %s is about nothing that was decided", a.RequestID)
			continue
		}
		first, before := place{try: at.try, turn: at.turn, call: at.call}, place{at.try, at.turn, at.call, at.again - 1}
		d := asked[first.in(a.TaskID)]
		if d == nil && at.again == 1 {
			ran[a.TaskID]--
		}
		if at.again >= r.Attempt || at.turn > turns[a.TaskID] || at.again > 1 && !approved[before.in(a.TaskID)] || d != nil && !d.Allowed() || ran[a.TaskID] < 0 {
			v.broken(hintReceipt, "request %s is about a call that cannot have been in flight", a.RequestID)
		}
	}
}
