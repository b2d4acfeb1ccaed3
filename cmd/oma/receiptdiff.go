package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

// comparison is the document receipt diff prints.
type comparison struct {
	Same        bool         `json:"same"`
	A           compared     `json:"a"`
	B           compared     `json:"b"`
	Differences []difference `json:"differences"`
}

type compared struct {
	RunID  string `json:"runId"`
	Digest string `json:"digest"`
}

// difference is one thing that two receipts say in two ways. An empty side does not say it.
type difference struct {
	Group string `json:"group"` // plan, conclusions, roles, decisions, approvals or spending
	What  string `json:"what"`
	A     string `json:"a"`
	B     string `json:"b"`
}

func (a *app) receiptDiff(first, second string, f *receiptFlags) error {
	if first == "-" && second == "-" {
		return usage("only one of the two receipts can come from standard input")
	}
	_, one, err := a.wholeReceipt(first)
	if err != nil {
		return err
	}
	_, two, err := a.wholeReceipt(second)
	if err != nil {
		return err
	}
	c := compare(one, two)
	if err := a.print(f.output, c, func(w io.Writer) { a.comparisonText(w, c) }); err != nil {
		return err
	}
	if !c.Same {
		return ended(runtime.ExitFailed)
	}
	return nil
}

func (a *app) comparisonText(w io.Writer, c *comparison) {
	if c.Same {
		fmt.Fprintln(w, "nothing differs in what the receipts mean")
	}
	group := ""
	for _, d := range c.Differences {
		if d.Group != group {
			group = d.Group
			fmt.Fprintln(w, group)
		}
		oneLine := func(s string) string { return a.outside(cmp.Or(strings.Join(strings.Fields(s), " "), "nothing")) }
		fmt.Fprintf(w, "  %s: %s → %s\n", oneLine(d.What), oneLine(d.A), oneLine(d.B))
	}
}

// compare lists in what two receipts differ, in a fixed order.
func compare(a, b *spec.Receipt) *comparison {
	c := &comparison{A: compared{a.RunID, a.Evidence.Digest}, B: compared{b.RunID, b.Evidence.Digest}, Differences: []difference{}}
	one, two := meaningOf(a), meaningOf(b)
	for i, m := range one {
		names := slices.Concat(slices.Collect(maps.Keys(m.said)), slices.Collect(maps.Keys(two[i].said)))
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if x, y := m.said[name], two[i].said[name]; x != y {
				c.Differences = append(c.Differences, difference{m.group, name, x, y})
			}
		}
	}
	c.Same = len(c.Differences) == 0
	return c
}

// sayings are what a receipt says, group by group, each fact under a name. What is empty is not said.
type sayings struct {
	group string
	said  map[string]string
}

// meaningOf leaves out what differs between any two runs: ids, times, durations and the digests made of them.
func meaningOf(r *spec.Receipt) []sayings {
	return []sayings{{"plan", planSaid(r)}, {"conclusions", concluded(r)}, {"roles", rolesSaid(r)}, {"decisions", decided(r)}, {"approvals", approvalsSaid(r)}, {"spending", spent(r)}}
}

func planSaid(r *spec.Receipt) map[string]string {
	said := map[string]string{"team": r.Team.Name, "plan": r.Plan.Digest, "goal": r.GoalDigest, "program": joined(" ", r.Oma.Version, r.Oma.Commit)}
	for _, in := range r.Inputs {
		said["file "+in.Path] = in.Digest
	}
	for _, p := range r.Policies {
		said["rules of "+p.Name] = p.Digest
	}
	for _, c := range r.Enforcement {
		key := "control " + c.Control + " of " + c.Agent // an external agent may have two: by oma, and with its own hands
		said[key] = joined(", ", said[key], c.Level)
	}
	for _, t := range r.Trees {
		if t.Before == "" {
			said["folder "+t.Cwd+" at the end"] = t.Digest
		}
	}
	return said
}

func concluded(r *spec.Receipt) map[string]string {
	said := map[string]string{"status": r.Status.Code, "governance": r.GovernanceConclusion, "governance reason": r.GovernanceReason,
		"release": r.ReleaseConclusion, "exit codes": strings.Trim(fmt.Sprint(r.ExitCodes), "[]"), "flags": strings.Join(r.Flags, ", ")}
	for _, d := range r.GovernanceDetail {
		said["governance "+d.Code] = joined("; ", said["governance "+d.Code], d.Message)
	}
	for _, q := range r.Release {
		said["requirement "+q.Name] = joined(": ", q.Outcome, q.Reason)
	}
	return said
}

func rolesSaid(r *spec.Receipt) map[string]string {
	said := map[string]string{"mode": r.Mode, "executed": strings.Join(r.RolesExecuted, ", "), "failed": strings.Join(r.RolesFailed, ", "),
		"not started": strings.Join(r.RolesNotStarted, ", "), "order": strings.Join(r.ExecutionOrder, ", "),
		"independent review": fmt.Sprint(r.IndependentReviewOccurred)}
	for _, t := range r.Work() {
		at := "task " + t.ID + " "
		said[at+"agent"] = t.Assignee
		said[at+"status"] = joined(", ", t.Status, string(t.StopReason))
		said[at+"model"] = joined(" ", t.Provider, strings.Join(t.Models, " "))
		said[at+"answer"] = joined(" ", t.OutputDigest, t.StructuredDigest)
	}
	return said
}

// decided counts what was decided, by task, tool, outcome and rules. The order within a task follows from what models
// asked for, and is left out.
func decided(r *spec.Receipt) map[string]string {
	counts := map[string]int{}
	for _, d := range r.Decisions {
		what := []string{"task " + d.TaskID, d.Agent, d.ToolName, joined(" ", outcome(&d.Decision), d.Refused)}
		var rules []string
		for _, m := range d.Rules {
			rules = append(rules, m.Name+" "+m.Outcome)
		}
		slices.Sort(rules)
		if len(rules) > 0 {
			what = append(what, "by "+strings.Join(rules, ", "))
		}
		counts[strings.Join(what, " ")]++
	}
	said := map[string]string{}
	for what, n := range counts {
		said[what] = fmt.Sprint(n)
	}
	return said
}

// approvalsSaid gives what people decided of each request, and who.
func approvalsSaid(r *spec.Receipt) map[string]string {
	said := map[string]string{}
	for _, p := range slices.Concat(r.ApprovalDecisions, r.PendingApprovals) {
		said[p.Scope+" at "+p.Boundary] = approvalText(&p)
	}
	return said
}

func spent(r *spec.Receipt) map[string]string {
	u := r.TotalTokens
	said := map[string]string{"input tokens": fmt.Sprint(u.Input), "cached input tokens": fmt.Sprint(u.CachedInput), "output tokens": fmt.Sprint(u.Output),
		"reasoning tokens": fmt.Sprint(u.Reasoning), "cost": costText(r.Cost), "ceilings": ceilingsText(&r.Budgets), "unmetered": strings.Join(r.Unmetered, ", ")}
	for _, t := range r.Work() {
		said["task "+t.ID] = tokensText(t.Tokens.Total(), t.Estimated) + ", " + costText(t.Cost)
	}
	return said
}
