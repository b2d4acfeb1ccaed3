package runtime

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// SealReceipt puts the receipt's digest in and gives its bytes as they are written.
func SealReceipt(r *spec.Receipt) ([]byte, error) {
	r.Evidence.Digest = ""
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if r.Evidence.Digest, err = canon.DigestWithout("receipt", raw, "evidence", "digest"); err != nil {
		return nil, err
	}
	return json.MarshalIndent(r, "", "  ")
}

// ReadReceipt reads a receipt and proves that it is whole: valid, without duplicate names, of this version, and with
// the digest it says.
func ReadReceipt(data []byte) (*spec.Receipt, error) {
	if err := canon.Check(data); err != nil {
		return nil, err
	}
	var r spec.Receipt
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("this is no receipt: %w", err)
	}
	if r.APIVersion != spec.APIVersion || r.Kind != spec.KindReceipt {
		return nil, fmt.Errorf("this is a %q of %q, not a %s of %s", r.Kind, r.APIVersion, spec.KindReceipt, spec.APIVersion)
	}
	digest, err := canon.DigestWithout("receipt", data, "evidence", "digest")
	if err != nil {
		return nil, err
	}
	if digest != r.Evidence.Digest {
		return nil, fmt.Errorf("the receipt was changed after it was written: its digest is %s, it says %s", digest, r.Evidence.Digest)
	}
	return &r, nil
}

// receipt makes the receipt of an outcome. It holds facts, figures and digests only.
func (r *Runner) receipt(out *core.Outcome) *spec.Receipt {
	p := r.plan
	rec := &spec.Receipt{
		Envelope: spec.Envelope{APIVersion: spec.APIVersion, Kind: spec.KindReceipt}, ID: r.o.RunID + ":execution-receipt", RunID: r.o.RunID,
		Attempt: 1, CreatedAt: stamp(out.EndedAt), Oma: r.o.Build, Team: p.Team, Plan: spec.PlanRef{Digest: p.Digest}, Inputs: p.Inputs,
		GoalDigest: p.GoalDigest, Governance: p.Governance, Flags: slices.Clone(p.Flags), Enforcement: r.enforcement(), Trees: out.Trees,
		Decisions: out.Decisions, DurationMs: out.EndedAt - out.StartedAt,
	}
	for _, in := range p.Inputs {
		if in.Kind == spec.KindPolicy {
			rec.Policies = append(rec.Policies, spec.NamedInput{Name: in.Path, Digest: in.Digest})
		}
	}
	if rec.Decisions == nil {
		rec.Decisions = []spec.DecisionRecord{}
	}
	for i := range rec.Decisions {
		rec.Decisions[i].Reason = clip(r.mask(rec.Decisions[i].Reason), 1024)
	}
	r.tasks(rec, out)
	r.spending(rec, out)
	rec.Rules, rec.Denied = totals(p, out.Decisions)
	r.status(rec, out)
	rec.Topology = policies.Topology(rec.Tasks, p.Governance, p.RoutingDecision)
	r.trees(rec)
	r.conclude(rec, out)
	rec.ExitCodes = exitCodes(rec, r.o)
	return rec
}

// stamp writes a time with a fixed width, so that text order is time order.
func stamp(ms int64) string {
	if ms == 0 {
		return ""
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}

func (r *Runner) tasks(rec *spec.Receipt, out *core.Outcome) {
	rec.Tasks = make([]spec.TaskRecord, 0, len(out.Tasks))
	unmetered := map[string]bool{}
	for i := range out.Tasks {
		t := &out.Tasks[i]
		a := r.agents[t.Task.Assignee]
		tr := spec.TaskRecord{ID: t.Task.ID, Title: t.Task.Title, Assignee: t.Task.Assignee, Role: t.Task.Role, Status: t.Status,
			DependsOn: t.Task.DependsOn, StartedAt: stamp(t.StartedAt), EndedAt: stamp(t.EndedAt), StopReason: t.StopReason,
			Cause: clip(r.mask(t.Cause), 256), ErrorInfo: t.Err, Turns: t.Turns, ModelCalls: t.ModelCalls, Tokens: t.Tokens,
			Estimated: t.Estimated, ToolCalls: t.ToolCalls, Provider: a.Provider, Models: t.Models}
		if t.StartedAt > 0 {
			tr.Attempts, tr.DurationMs = 1, t.EndedAt-t.StartedAt
			rec.TaskDurationMs += tr.DurationMs
		}
		if cost := t.Cost; t.Priced || t.StartedAt == 0 {
			tr.Cost = &cost
		}
		if t.Text != "" {
			tr.OutputDigest = canon.Digest("output", []byte(t.Text))
		}
		if t.Structured != nil {
			// the value came from a decoder, so it can be encoded
			tr.StructuredDigest, _ = canon.DigestOf("structured", t.Structured)
		}
		if t.Unmetered && !unmetered[t.Task.Assignee] {
			unmetered[t.Task.Assignee] = true
			rec.Unmetered = append(rec.Unmetered, t.Task.Assignee)
		}
		rec.TotalTokens = rec.TotalTokens.Add(t.Tokens)
		rec.Tasks = append(rec.Tasks, tr)
	}
	rec.Partial = len(rec.Tasks) == 0
}

func (r *Runner) spending(rec *spec.Receipt, out *core.Outcome) {
	cost, known := out.UsedCost, true
	for _, t := range rec.Tasks {
		known = known && t.Cost != nil
	}
	if known {
		rec.Cost = &cost
	}
	rec.Budgets = spec.BudgetRecord{Declared: r.plan.Budgets, Effective: r.budgets,
		Used: spec.BudgetUsed{Tokens: out.UsedTokens, Cost: rec.Cost, DurationMs: rec.DurationMs}, Exhausted: exhausted(out)}
}

// exhausted names the ceiling that ended something, or that was crossed by the last turn.
func exhausted(out *core.Outcome) string {
	if out.Stop == "tokens" || out.Stop == "cost" || out.Stop == "duration" {
		return out.Stop
	}
	if out.Exceeded != "" {
		return out.Exceeded
	}
	for _, t := range out.Tasks {
		if t.StopReason == spec.StopBudget {
			return "tokens"
		}
	}
	return ""
}

func totals(p *spec.Plan, decisions []spec.DecisionRecord) ([]spec.RuleTotal, int) {
	out := make([]spec.RuleTotal, len(p.Gates.Rules))
	index := map[string]int{}
	for i, r := range p.Gates.Rules {
		out[i] = spec.RuleTotal{Name: r.Name, Source: r.Source}
		index[r.Name] = i
	}
	denied := 0
	for _, d := range decisions {
		if !d.Allowed() {
			denied++
		}
		for _, o := range d.Rules {
			i, ok := index[o.Name]
			switch {
			case !ok:
			case o.Outcome == "error":
				out[i].Errors++
			default:
				out[i].Matched++
			}
		}
	}
	return out, denied
}

// status is the run's own outcome. Of several, a used-up ceiling comes first, then time, then cancellation.
func (r *Runner) status(rec *spec.Receipt, out *core.Outcome) {
	completed, timedOut := 0, false
	var firstFailed *spec.TaskRecord
	for i := range rec.Tasks {
		t := &rec.Tasks[i]
		if t.Status == spec.TaskCompleted {
			completed++
		}
		timedOut = timedOut || t.StopReason == spec.StopTimeout
		if t.Status == spec.TaskFailed && firstFailed == nil {
			firstFailed = t
		}
	}
	switch ceiling := rec.Budgets.Exhausted; {
	case ceiling != "":
		rec.Status = spec.Status{Code: spec.StatusBudget, Message: ceilingMessage(ceiling, rec)}
		rec.ErrorInfo = &spec.ErrorInfo{Kind: "budget", Code: ceilingCode[ceiling], Message: rec.Status.Message}
	case timedOut:
		rec.Status = spec.Status{Code: spec.StatusTimeout, Message: firstFailed.Cause}
		rec.ErrorInfo = firstFailed.ErrorInfo
	case out.Stop == "cancelled":
		rec.Status = spec.Status{Code: spec.StatusCancelled, Message: "the run was cancelled"}
		rec.ErrorInfo = &spec.ErrorInfo{Kind: "cancellation", Message: rec.Status.Message}
	case len(rec.Tasks) > 0 && completed == len(rec.Tasks):
		rec.Status, rec.Success = spec.Status{Code: spec.StatusOK}, true
		if err := r.unfinished(); err != nil {
			rec.Status, rec.Success = spec.Status{Code: spec.StatusError, Message: clip(r.mask(err.Error()), 256)}, false
			rec.ErrorInfo = &spec.ErrorInfo{Kind: "validation", Message: clip(r.mask(err.Error()), 1024)}
		}
	default:
		rec.Status = spec.Status{Code: spec.StatusError, Message: "not every task completed"}
		if firstFailed != nil {
			rec.Status.Message = clip(fmt.Sprintf("%s: %s", firstFailed.Assignee, firstFailed.Cause), 256)
			rec.ErrorInfo = firstFailed.ErrorInfo
		}
	}
}

// unfinished asks whether something is left over although every task has completed.
func (r *Runner) unfinished() error {
	if r.o.Finished == nil {
		return nil
	}
	return r.o.Finished()
}

var ceilingCode = map[string]string{"tokens": "TOKEN_BUDGET_EXCEEDED", "cost": "COST_BUDGET_EXCEEDED", "duration": "DURATION_BUDGET_EXCEEDED"}

func ceilingMessage(ceiling string, rec *spec.Receipt) string {
	b := rec.Budgets
	switch {
	case ceiling == "duration":
		return fmt.Sprintf("the run's time is up: %s allowed", b.Effective.MaxDuration)
	case ceiling == "cost" && b.Effective.MaxCostBudget != nil:
		return fmt.Sprintf("cost budget used up: $%s of $%s", valueOf(b.Used.Cost), *b.Effective.MaxCostBudget)
	case b.Effective.MaxTokenBudget > 0:
		return fmt.Sprintf("token budget used up: %d of %d tokens", b.Used.Tokens, b.Effective.MaxTokenBudget)
	}
	return "an agent's own token budget is used up"
}

func valueOf(u *spec.USD) string {
	if u == nil {
		return "?"
	}
	return u.String()
}

// trees marks the folders in which a task that came later, or ran beside, could have written.
func (r *Runner) trees(rec *spec.Receipt) {
	writers := map[string][]string{} // tasks, by folder
	for i := range rec.Trees {
		t := &rec.Trees[i]
		ids, known := writers[t.Cwd]
		if !known {
			for _, task := range r.plan.Tasks {
				if mayWrite(r.agents[task.Assignee], t.Cwd) {
					ids = append(ids, task.ID)
				}
			}
			writers[t.Cwd] = ids
		}
		if len(ids) > 0 {
			ended := r.ancestors(t.Before)
			t.LaterWriter = slices.ContainsFunc(ids, func(id string) bool { return !ended[id] })
		}
	}
}

// mayWrite says whether an agent's grants reach a folder. bash reaches every folder.
func mayWrite(a *spec.PlanAgent, cwd string) bool {
	for _, g := range a.Tools {
		if g.Consequential && (a.Cwd == cwd || g.Name == "bash" || a.Containment == "none") {
			return true
		}
	}
	return false
}

// ancestors are the tasks that are bound to have ended when this one starts.
func (r *Runner) ancestors(id string) map[string]bool {
	deps := map[string][]string{}
	for _, t := range r.plan.Tasks {
		deps[t.ID] = t.DependsOn
	}
	seen, queue := map[string]bool{}, slices.Clone(deps[id])
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if !seen[at] {
			seen[at] = true
			queue = append(queue, deps[at]...)
		}
	}
	return seen
}

// conclude derives governance and release. A release conclusion can only fail a release; it never touches governance.
func (r *Runner) conclude(rec *spec.Receipt, out *core.Outcome) {
	c := policies.Conclude(r.plan.Governance, rec)
	rec.GovernanceConclusion, rec.GovernanceDetail = c.Conclusion, c.Reasons
	if len(c.Reasons) > 0 {
		rec.GovernanceReason = c.Reasons[0].Code
	}
	if c.Conclusion == spec.Unsatisfied && r.plan.RoutingDecision.Source == "override" {
		rec.Flags = append(rec.Flags, spec.FlagOverridden)
	}
	sort.Strings(rec.Flags)
	rec.ReleaseConclusion = spec.NotApplicable
	if len(r.plan.Release) == 0 {
		return
	}
	rec.Release = r.release.Judge(results(out))
	rec.ReleaseConclusion = policies.ReleaseConclusion(rec.Release, r.plan.Release)
}

// results are the facts that release requirements see, by agent. Of several tasks the last that completed counts.
func results(out *core.Outcome) map[string]policies.RoleResult {
	res := map[string]policies.RoleResult{}
	for _, t := range out.Tasks {
		if t.Status != spec.TaskCompleted {
			continue
		}
		rr := policies.RoleResult{Structured: t.Structured, Text: t.Text, StopReason: string(t.StopReason), Turns: t.Turns,
			FilesRead: t.FilesRead, Denied: t.ToolCalls.Denied + t.ToolCalls.Refused}
		for _, c := range t.Calls {
			fact := policies.CallFact{ToolName: c.ToolName, Action: c.Action, IsError: c.IsError}
			if c.Input != nil {
				fact.Input, _ = canon.Arguments(string(c.Input)) // canonical bytes decode
			}
			rr.Calls = append(rr.Calls, fact)
		}
		res[t.Task.Assignee] = rr
	}
	return res
}
