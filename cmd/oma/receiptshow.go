package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/open-multi-agent/oma/spec"
)

func (a *app) receiptShow(path string, f *receiptFlags) error {
	b, r, err := a.wholeReceipt(path)
	if err != nil {
		return err
	}
	return a.print(f.output, json.RawMessage(b), func(w io.Writer) { a.receiptText(w, r) })
}

// receiptText shows what a person asks of a receipt. It shows words of the receipt: whether they follow from its facts is
// for the gate.
func (a *app) receiptText(w io.Writer, r *spec.Receipt) {
	line := a.lines(w, "")
	line("run", fmt.Sprintf("%s of team %s, attempt %d%s, %s, oma %s", r.RunID, r.Team.Name, r.Attempt, by(r.Author), r.CreatedAt, r.Oma.Version))
	line("plan", r.Plan.Digest)
	for _, p := range r.Policies {
		line("rules of", p.Name)
	}
	line("status", joined(": ", r.Status.Code, r.Status.Message))
	line("governed", joined(": ", r.GovernanceConclusion, r.GovernanceReason))
	for _, d := range r.GovernanceDetail {
		line("", d.Code+": "+d.Message)
	}
	line("release", r.ReleaseConclusion)
	for _, q := range r.Release {
		line("", joined(": ", q.Name+" "+q.Outcome, q.Reason))
	}
	line("exits", strings.Trim(fmt.Sprint(r.ExitCodes), "[]"))
	line("flags", strings.Join(r.Flags, ", "))
	line("executed", strings.Join(r.RolesExecuted, ", "))
	line("failed", strings.Join(r.RolesFailed, ", "))
	line("not begun", strings.Join(r.RolesNotStarted, ", "))
	line("order", strings.Join(r.ExecutionOrder, " → "))
	for _, t := range r.Tasks {
		line("task", taskText(&t))
		line("", t.Cause)
	}
	for _, d := range r.Delegations {
		line("delegated", taskText(&d.TaskRecord)+"  for "+d.Caller)
		line("", d.Cause)
	}
	a.decidedText(w, r)
	for _, p := range slices.Concat(r.ApprovalDecisions, r.PendingApprovals) {
		line("approval", fmt.Sprintf("%s at %s: %s", p.Scope, p.Boundary, approvalText(&p)))
	}
	if r.ConfirmationRequired {
		line("", "a person was to confirm the plan first, and none did")
	}
	line("spent", fmt.Sprintf("%d tokens, %s, %s", r.TotalTokens.Total(), costText(r.Cost), time.Duration(r.DurationMs)*time.Millisecond))
	line("ceilings", ceilingsText(&r.Budgets))
	for _, t := range r.Trees {
		if t.Before == "" {
			line("folder", t.Cwd+" "+t.Digest)
		}
	}
	line("log", fmt.Sprintf("%d events, head %s", r.Evidence.Journal.Events, cmp.Or(r.Evidence.Journal.Head, "none: no log was kept")))
	line("digest", r.Evidence.Digest)
}

func by(who string) string {
	if who == "" {
		return ""
	}
	return " by " + who
}

// approvalText says what people decided, who, and what proves that it was them.
func approvalText(p *spec.ApprovalRecord) string {
	text := p.Decision
	for i, v := range p.Votes {
		text += map[bool]string{true: " by ", false: ", "}[i == 0] + joined(": ", v.Reviewer, v.Reason)
	}
	switch {
	case len(p.Votes) == 0:
		return text
	case p.Authenticated:
		return text + " (signed)"
	}
	return text + " (by their own word)"
}

// decidedText counts the calls, and what each rule did.
func (a *app) decidedText(w io.Writer, r *spec.Receipt) {
	line := a.lines(w, "")
	text := fmt.Sprintf("%d decided, %d did not run", len(r.Decisions), r.Denied)
	if r.Denied > 0 {
		text += ": see oma policy explain RECEIPT"
	}
	line("calls", text)
	for _, rule := range r.Rules {
		if rule.Matched+rule.Errors > 0 {
			line("rule", fmt.Sprintf("%s (%s): matched %d, failed %d", rule.Name, rule.Source, rule.Matched, rule.Errors))
		}
	}
}

func taskText(t *spec.TaskRecord) string {
	what := t.ID + " " + t.Assignee + " " + t.Status
	if t.StartedAt == "" {
		return what
	}
	turns := fmt.Sprintf("%d turns", t.Turns)
	if t.Provider == "" {
		turns = fmt.Sprintf("an external agent, prompted %s", times(t.Turns))
	}
	return joined(", ", what, string(t.StopReason), turns, tokensText(t.Tokens.Total(), t.Estimated), costText(t.Cost),
		fmt.Sprintf("%d calls allowed, %d denied", t.ToolCalls.Allowed, t.ToolCalls.Denied+t.ToolCalls.Refused), strings.Join(t.Models, " "))
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func costText(c *spec.USD) string {
	if c == nil {
		return "cost unknown"
	}
	return "$" + c.String()
}

// ceilingsText gives the ceilings in force. Empty: there are none.
func ceilingsText(b *spec.BudgetRecord) string {
	var parts []string
	if n := b.Effective.MaxTokenBudget; n > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens", n))
	}
	if c := b.Effective.MaxCostBudget; c != nil {
		parts = append(parts, "$"+c.String())
	}
	if d := b.Effective.MaxDuration; d > 0 {
		parts = append(parts, fmt.Sprint(d))
	}
	if b.Exhausted != "" {
		parts = append(parts, "used up: "+b.Exhausted)
	}
	return strings.Join(parts, ", ")
}

// joined puts a separator between the words that are there.
func joined(separator string, words ...string) string {
	var out []string
	for _, w := range words {
		if w != "" {
			out = append(out, w)
		}
	}
	return strings.Join(out, separator)
}
