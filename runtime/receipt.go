package runtime

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
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
func (r *Runner) receipt(out *core.Outcome, broke error) *spec.Receipt {
	p := r.plan
	rec := &spec.Receipt{
		Envelope: spec.Envelope{APIVersion: spec.APIVersion, Kind: spec.KindReceipt}, ID: r.o.RunID + ":execution-receipt", RunID: r.o.RunID,
		Attempt: r.attempt(), Author: r.o.Author, CreatedAt: stamp(out.EndedAt), Oma: r.o.Build, Team: p.Team, Plan: spec.PlanRef{Digest: p.Digest}, Inputs: p.Inputs,
		GoalDigest: p.GoalDigest, Governance: p.Governance, Flags: slices.Clone(p.Flags), Enforcement: r.enforcement(), Trees: out.Trees,
		Decisions: out.Decisions, DurationMs: out.EndedAt - out.StartedAt,
	}
	rec.Policies = policiesOf(p)
	if rec.Decisions == nil {
		rec.Decisions = []spec.DecisionRecord{}
	}
	for i := range rec.Decisions {
		d := &rec.Decisions[i]
		d.Reason = clip(r.mask(d.Reason), maxReason)
		d.ToolName, d.ToolCallID = clip(r.mask(d.ToolName), maxName), clip(r.mask(d.ToolCallID), maxName)
		d.ServerTool = serverTool(p, d.ToolName)
	}
	rec.ApprovalDecisions, rec.PendingApprovals = r.approvals(out)
	r.work(rec, out)
	r.spending(rec, out)
	rec.Rules, rec.Denied = totals(p, out.Decisions)
	r.status(rec, out, broke)
	rec.Topology = policies.Topology(rec.Tasks, p.Governance, p.RoutingDecision)
	rec.Partial = partial(rec)
	markWriters(r.plan, rec.Trees)
	r.conclude(rec, out)
	rec.ExitCodes = exitCodes(rec, out.Stop == core.StopCancelled, r.o)
	return rec
}

// policiesOf gives the documents of rules a plan was compiled under, each by its source: what stands above the team file
// must not be mistaken for what the team names itself.
func policiesOf(p *spec.Plan) (out []spec.NamedInput) {
	for _, in := range p.Policies {
		out = append(out, spec.NamedInput{Name: in.Source, Digest: in.Digest})
	}
	return out
}

// approvals tells what was decided, in that order, from what waits, by its place.
func (r *Runner) approvals(out *core.Outcome) (decided, pending []spec.ApprovalRecord) {
	for _, a := range out.Approvals {
		if a.Decision == spec.ApprovalPending {
			pending = append(pending, a)
		} else {
			decided = append(decided, a)
		}
	}
	slices.SortFunc(pending, byBoundary) // they were given up in any order
	return decided, pending
}

func byBoundary(a, b spec.ApprovalRecord) int { return strings.Compare(a.Boundary, b.Boundary) }

// attempt is the number of this one, from 1.
func (r *Runner) attempt() int {
	switch p := r.o.Past; {
	case p == nil:
		return 1
	case p.Ended:
		return p.Attempt
	default:
		return p.Attempt + 1
	}
}

// errorInfo is masked and cut: its message may quote an answer.
func (r *Runner) errorInfo(e *spec.ErrorInfo) *spec.ErrorInfo {
	if e == nil {
		return nil
	}
	out := *e
	out.Message = clip(r.mask(e.Message), 1024)
	return &out
}

// How much of a name a model chose, and of a reason, stands on a receipt, in runes.
const (
	maxName   = 128
	maxReason = 1024
)

// partial says that facts are missing: no role completed, or some usage is an estimate.
func partial(r *spec.Receipt) bool {
	return len(r.RolesExecuted) == 0 || slices.ContainsFunc(r.Work(), func(t spec.TaskRecord) bool { return t.Estimated })
}

// stamp writes a time with a fixed width, so that text order is time order.
func stamp(ms int64) string {
	if ms == 0 {
		return ""
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}

// work records what became of tasks and of delegated runs.
func (r *Runner) work(rec *spec.Receipt, out *core.Outcome) {
	rec.Tasks = make([]spec.TaskRecord, 0, len(out.Tasks))
	for i := range out.Tasks {
		rec.Tasks = append(rec.Tasks, r.record(&out.Tasks[i]))
		rec.TaskDurationMs += rec.Tasks[i].DurationMs
	}
	for i := range out.Delegated {
		t := &out.Delegated[i]
		rec.Delegations = append(rec.Delegations, spec.DelegationRecord{TaskRecord: r.record(t), Caller: t.Caller, Decision: t.Decision})
	}
	for _, t := range slices.Concat(out.Tasks, out.Delegated) {
		if t.Unmetered && !slices.Contains(rec.Unmetered, t.Task.Assignee) {
			rec.Unmetered = append(rec.Unmetered, t.Task.Assignee)
		}
		rec.TotalTokens = rec.TotalTokens.Add(t.Tokens)
	}
}

func (r *Runner) record(t *core.TaskOutcome) spec.TaskRecord {
	a := r.agents[t.Task.Assignee]
	tr := spec.TaskRecord{ID: t.Task.ID, Title: t.Task.Title, Assignee: t.Task.Assignee, Role: t.Task.Role, Label: t.Task.Label, Status: t.Status,
		DependsOn: t.Task.DependsOn, StartedAt: stamp(t.StartedAt), EndedAt: stamp(t.EndedAt), StopReason: t.StopReason,
		Cause: clip(r.mask(t.Cause), 256), ErrorInfo: r.errorInfo(t.Err), Turns: t.Turns, ModelCalls: t.ModelCalls, Tokens: t.Tokens,
		Estimated: t.Estimated, ToolCalls: t.ToolCalls, Provider: a.Provider, Models: t.Models}
	if t.StartedAt > 0 {
		tr.Attempts, tr.DurationMs = t.Attempts, t.EndedAt-t.StartedAt
	}
	if cost := t.Cost; t.Priced || t.StartedAt == 0 {
		tr.Cost = &cost
	}
	if t.Text != "" || t.Status == spec.TaskCompleted { // a program that ends well may have nothing to say
		tr.OutputDigest = canon.Digest("output", []byte(t.Text))
	}
	if t.Structured != nil {
		// the value came from a decoder, so it can be encoded
		tr.StructuredDigest, _ = canon.DigestOf("structured", t.Structured)
	}
	return tr
}

func (r *Runner) spending(rec *spec.Receipt, out *core.Outcome) {
	cost, known := out.UsedCost, true
	for _, t := range rec.Work() {
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
		if t.Ceiling != "" {
			return t.Ceiling
		}
	}
	return ""
}

func totals(p *spec.Plan, decisions []spec.DecisionRecord) ([]spec.RuleTotal, int) {
	out := []spec.RuleTotal{}
	index := map[string]int{}
	for _, r := range p.Gates.Rules {
		if _, again := index[r.Name]; !again { // a rule of a document may hold for several agents
			index[r.Name] = len(out)
			out = append(out, spec.RuleTotal{Name: r.Name, Source: r.Source})
		}
	}
	denied := 0
	for _, d := range decisions {
		if d.Kept() {
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

// status is the run's own outcome. Of several, a log that failed comes first, then a used-up ceiling, time, cancellation.
func (r *Runner) status(rec *spec.Receipt, out *core.Outcome, broke error) {
	timedOut, failed, forbidden := firstTask(rec, spec.StopTimeout), firstTask(rec, ""), firstForbidden(rec)
	switch ceiling := rec.Budgets.Exhausted; {
	case broke != nil:
		r.ends(rec, spec.StatusError, "the run's log failed: "+broke.Error(), &spec.ErrorInfo{Kind: "store"})
	case out.Stop == core.StopSuspended:
		r.ends(rec, spec.StatusSuspended, waitsFor(len(rec.PendingApprovals)), nil)
	case out.Stop == core.StopRejected:
		r.ends(rec, spec.StatusRejected, out.StopCause, nil)
	case ceiling != "":
		r.ends(rec, spec.StatusBudget, ceilingMessage(ceiling, rec), &spec.ErrorInfo{Kind: "budget", Code: ceilingCode[ceiling]})
	case timedOut != nil:
		r.ends(rec, spec.StatusTimeout, timedOut.Assignee+": "+timedOut.Cause, timedOut.ErrorInfo)
	case out.Stop == core.StopCancelled:
		r.ends(rec, spec.StatusCancelled, "the run was cancelled", &spec.ErrorInfo{Kind: "cancellation"})
	case out.Unconfirmed:
		rec.ConfirmationRequired = true
		r.ends(rec, spec.StatusRejected, unconfirmed, nil)
	case out.Denied:
		r.ends(rec, spec.StatusRejected, "Consequential tool confirmation rejected.", nil)
	case forbidden != nil:
		r.ends(rec, spec.StatusRejected, forbidden.Assignee+": "+forbidden.Cause, forbidden.ErrorInfo)
	case failed != nil:
		r.ends(rec, spec.StatusError, failed.Assignee+": "+failed.Cause, failed.ErrorInfo)
	case len(rec.Tasks) == 0 || slices.ContainsFunc(rec.Tasks, func(t spec.TaskRecord) bool { return t.Status != spec.TaskCompleted }):
		r.ends(rec, spec.StatusError, "not every task completed", nil)
	default:
		rec.Status, rec.Success = spec.Status{Code: spec.StatusOK}, true
		if err := r.unfinished(); err != nil {
			r.ends(rec, spec.StatusError, err.Error(), &spec.ErrorInfo{Kind: "validation"})
		}
	}
}

func waitsFor(n int) string {
	if n == 1 {
		return "the run waits for a person's approval"
	}
	return fmt.Sprintf("the run waits for a person's approval of %d requests", n)
}

// firstTask gives the first task that failed for a reason, or for any reason, or nil.
func firstTask(rec *spec.Receipt, reason spec.StopReason) *spec.TaskRecord {
	for i := range rec.Tasks {
		if t := &rec.Tasks[i]; t.Status == spec.TaskFailed && (reason == "" || t.StopReason == reason) {
			return t
		}
	}
	return nil
}

// firstForbidden gives the first task that an egress policy ended, or nil.
func firstForbidden(rec *spec.Receipt) *spec.TaskRecord {
	i := slices.IndexFunc(rec.Tasks, func(t spec.TaskRecord) bool {
		return t.Status == spec.TaskFailed && t.ErrorInfo != nil && t.ErrorInfo.Kind == KindEgress
	})
	if i < 0 {
		return nil
	}
	return &rec.Tasks[i]
}

func (r *Runner) ends(rec *spec.Receipt, code, message string, info *spec.ErrorInfo) {
	message = r.mask(message)
	rec.Status, rec.Success = spec.Status{Code: code, Message: clip(message, 256)}, false
	if rec.ErrorInfo = info; info != nil && info.Message == "" {
		info.Message = clip(message, 1024)
	}
}

// unfinished asks whether something is left over although every task has completed.
func (r *Runner) unfinished() error {
	if r.o.Finished == nil {
		return nil
	}
	return r.o.Finished()
}

var ceilingCode = map[string]string{"tokens": "TOKEN_BUDGET_EXCEEDED", "agent": "TOKEN_BUDGET_EXCEEDED", "cost": "COST_BUDGET_EXCEEDED",
	"duration": "DURATION_BUDGET_EXCEEDED", "unmetered": "BUDGET_UNMETERED"}

func ceilingMessage(ceiling string, rec *spec.Receipt) string {
	b := rec.Budgets
	switch ceiling {
	case "duration":
		return fmt.Sprintf("the run's time is up: %s allowed", b.Effective.MaxDuration)
	case "cost":
		return fmt.Sprintf("cost budget used up: $%s of $%s", valueOf(b.Used.Cost), valueOf(b.Effective.MaxCostBudget))
	case "agent":
		return "an agent's own token budget is used up"
	case "unmetered":
		return "a provider reports no usage, so a ceiling cannot be kept"
	}
	return fmt.Sprintf("token budget used up: %d of %d tokens", b.Used.Tokens, b.Effective.MaxTokenBudget)
}

func valueOf(u *spec.USD) string {
	if u == nil {
		return "?"
	}
	return u.String()
}

// conclude derives governance and release. A release conclusion can only fail a release; it never touches governance.
func (r *Runner) conclude(rec *spec.Receipt, out *core.Outcome) {
	c := policies.Conclude(r.plan.Governance, rec, watched(r.plan))
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

// results are the facts that release requirements see, by agent. Of several tasks that completed the last one counts.
func results(out *core.Outcome) map[string]policies.RoleResult {
	res := map[string]policies.RoleResult{}
	for _, t := range behind(out.Tasks) {
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

// behind gives tasks each behind those that it depends on, and otherwise in the plan's order: it must not be a matter of
// speed which of them is the last.
func behind(tasks []core.TaskOutcome) []*core.TaskOutcome {
	index, seen := make(map[string]int, len(tasks)), make([]bool, len(tasks))
	for i := range tasks {
		index[tasks[i].Task.ID] = i
	}
	out := make([]*core.TaskOutcome, 0, len(tasks))
	var visit func(int)
	visit = func(i int) {
		if seen[i] {
			return
		}
		seen[i] = true
		for _, d := range tasks[i].Task.DependsOn {
			visit(index[d])
		}
		out = append(out, &tasks[i])
	}
	for i := range tasks {
		visit(i)
	}
	return out
}
