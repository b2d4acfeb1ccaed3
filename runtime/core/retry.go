package core

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// A task that failed may be tried again, from its beginning: a new conversation and no evidence of the one before, but the
// same ledger, marks and history. What was used and decided counts for the task.

// maxRetryDelay bounds the wait before a further attempt (S9).
const maxRetryDelay = 30e9

// retries waits and makes the task ready for another attempt, if there is one.
func (w *worker) retries(f Flow) bool {
	t := w.t
	if t.Status != spec.TaskFailed || t.Attempts > t.Task.MaxRetries || w.run.stop != "" || !passing(t) {
		return false
	}
	next := t.Attempts + 1
	res := f.Do(&Effect{Kind: Timer, ID: fmt.Sprintf("%s/try/%d/wait", t.Task.ID, next), TaskID: t.Task.ID, Scope: ScopeRetry, Delay: w.delay(t.Attempts)})
	w.clock(res)
	if res.Cancelled { // it has not failed for good: a later attempt of the run goes on from here
		w.halt(StopCancelled)
	}
	if w.run.stop != "" {
		return false
	}
	w.path, w.turns = fmt.Sprintf("%s/try/%d", t.Task.ID, next), t.Turns
	t.Calls, t.FilesRead, t.Text, t.Structured = nil, nil, "", nil
	w.opened()
	return w.told() == nil
}

// ScopeRetry says of a Timer that it is the wait before a further attempt, which ends when the run is told to stop.
const ScopeRetry = "retry"

// begun says that an attempt begins, and of a further one why.
func (r *run) begun(f Flow, w *worker) {
	t := w.t
	s := &TaskStatus{Status: t.Status, Caller: t.Caller}
	if t.Attempts > 1 {
		s.Attempt, s.Cause = t.Attempts, t.Cause
	}
	t.StopReason, t.Cause, t.Ceiling, t.Err = "", "", "", nil
	r.clock(f.Do(&Effect{Kind: Note, ID: w.path + "/" + t.Status, TaskID: t.Task.ID, AgentName: t.Task.Assignee, Status: s}))
}

// passing says that a failure may not be there the next time (S10).
func passing(t *task) bool {
	switch t.StopReason {
	case spec.StopBudget, spec.StopCancelled, spec.StopRejected, spec.StopSuspended:
		return false
	}
	e := t.Err
	return e == nil || e.Retryable || e.Kind == "timeout" || e.Kind == "unknown"
}

// delay is the wait after the nth attempt: a half of what is nominal, and up to another half by chance.
func (w *worker) delay(n int) spec.Duration {
	t := &w.t.Task
	nominal := min(float64(t.RetryDelay)*math.Pow(t.RetryBackoff, float64(n-1)), maxRetryDelay)
	digest := strings.TrimPrefix(canon.Digest("retry", fmt.Appendf(nil, "%s %s %d", w.in.Seed, t.ID, n)), "sha256:")
	chance, _ := strconv.ParseUint(digest[:8], 16, 32) // what a digest begins with is a number
	return spec.Duration(max(math.Round(nominal/2+float64(chance)/(1<<32)*nominal/2), 1))
}

// briefed tells the agent what its task is. False: what it depends on cannot be handed to it, and the task has failed.
func (w *worker) briefed(f Flow) bool {
	if err := w.told(); err != nil {
		w.t.Status, w.t.StopReason, w.t.Cause, w.t.Err = spec.TaskFailed, spec.StopError, err.Message, err
		w.note(f, w.t)
		return false
	}
	return true
}

// told begins the conversation with the task. The shared memory may have grown since the marks of it were taken: a person
// decided meanwhile, or an earlier attempt took its time.
func (w *worker) told() *spec.ErrorInfo {
	if w.t.Task.MemoryScope == spec.MemoryAll {
		w.mark(w.memory.marks)
	}
	text, err := w.prompt(w.t)
	if err == nil {
		w.say(spec.Message{Role: spec.RoleUser, Text: text})
	}
	return err
}
