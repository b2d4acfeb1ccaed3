package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

// aReceipt is one with something in every group, made anew each time.
func aReceipt() *spec.Receipt {
	cost := spec.Dollar
	r := &spec.Receipt{RunID: "r", CreatedAt: "2026-01-02T03:04:05.000Z", Team: spec.PlanTeam{Name: "t"}, Plan: spec.PlanRef{Digest: "sha256:p"},
		Inputs: []spec.PlanInput{{Path: "team.yaml", Digest: "sha256:t"}}, Status: spec.Status{Code: spec.StatusOK}, ExitCodes: []int{0},
		GovernanceConclusion: spec.Satisfied, ReleaseConclusion: spec.NotApplicable, Cost: &cost, TotalTokens: spec.Usage{Input: 10, Output: 5},
		Tasks: []spec.TaskRecord{{ID: "t1", Assignee: "a", Status: spec.TaskCompleted, StartedAt: "x", Tokens: spec.Usage{Input: 10, Output: 5}, Cost: &cost}},
		Trees: []spec.Tree{{Cwd: "app", Digest: "sha256:end"}}}
	for i, tool := range []string{"bash", "grep", "bash"} {
		r.Decisions = append(r.Decisions, spec.DecisionRecord{Seq: i + 1, TaskID: "t1", Agent: "a", ToolName: tool, InputDigest: "sha256:i"})
	}
	return r
}

func TestReceiptDiff(t *testing.T) {
	cheap := spec.Dollar / 2
	for _, c := range []struct {
		name   string
		change func(*spec.Receipt)
		want   []difference
	}{
		{"nothing", func(*spec.Receipt) {}, []difference{}},
		{"what differs between any two runs", func(r *spec.Receipt) {
			r.RunID, r.CreatedAt, r.DurationMs, r.Evidence.Digest, r.Tasks[0].StartedAt = "s", "2027", 9, "sha256:s", "y"
			r.Decisions[0].ToolCallID, r.Decisions[0].InputDigest, r.Decisions[0].ElapsedMicros = "c", "sha256:j", 7
		}, []difference{}},
		{"the order of decisions", func(r *spec.Receipt) { r.Decisions[0], r.Decisions[1] = r.Decisions[1], r.Decisions[0] }, []difference{}},
		{"a file of the plan", func(r *spec.Receipt) { r.Plan.Digest, r.Inputs[0].Digest = "sha256:q", "sha256:u" },
			[]difference{{"plan", "file team.yaml", "sha256:t", "sha256:u"}, {"plan", "plan", "sha256:p", "sha256:q"}}},
		{"the files that were left", func(r *spec.Receipt) { r.Trees = nil }, []difference{{"plan", "folder app at the end", "sha256:end", ""}}},
		{"a conclusion", func(r *spec.Receipt) {
			r.GovernanceConclusion, r.GovernanceDetail = spec.Unsatisfied, []spec.Reason{{Code: "order", Message: "b before a"}}
		}, []difference{{"conclusions", "governance", "satisfied", "unsatisfied"}, {"conclusions", "governance order", "", "b before a"}}},
		{"a requirement", func(r *spec.Receipt) { r.Release = []spec.Released{{Name: "ok", Outcome: "failed", Reason: "no"}} },
			[]difference{{"conclusions", "requirement ok", "", "failed: no"}}},
		{"another model", func(r *spec.Receipt) { r.Tasks[0].Provider, r.Tasks[0].Models = "p", []string{"m"} },
			[]difference{{"roles", "task t1 model", "", "p m"}}},
		{"a decision", func(r *spec.Receipt) {
			r.Decisions[2].Decision = spec.Decision{Gated: true, GateAction: spec.ActionDeny, GateOutcome: "decided", Rules: []spec.RuleOutcome{{Name: "no", Outcome: "matched"}}}
		}, []difference{{"decisions", "task t1 a bash allowed", "2", "1"}, {"decisions", "task t1 a bash denied by no matched", "", "1"}}},
		{"a refusal", func(r *spec.Receipt) { r.Decisions[1].Refused = "not-granted" },
			[]difference{{"decisions", "task t1 a grep allowed", "1", ""}, {"decisions", "task t1 a grep refused not-granted", "", "1"}}},
		{"spending", func(r *spec.Receipt) { r.TotalTokens.Output, r.Cost = 6, &cheap },
			[]difference{{"spending", "cost", "$1", "$0.5"}, {"spending", "output tokens", "5", "6"}}},
		{"a ceiling", func(r *spec.Receipt) { r.Budgets.Effective.MaxTokenBudget = 9 }, []difference{{"spending", "ceilings", "", "9 tokens"}}},
	} {
		changed := aReceipt()
		c.change(changed)
		got := compare(aReceipt(), changed)
		if diff := cmp.Diff(c.want, got.Differences); diff != "" || got.Same != (len(c.want) == 0) {
			t.Errorf("%s: same %v (-want +got):\n%s", c.name, got.Same, diff)
		}
		back := compare(changed, aReceipt())
		if len(back.Differences) != len(c.want) {
			t.Errorf("%s: %d differences there and %d back", c.name, len(c.want), len(back.Differences))
		}
	}
}

// N16: what a model or a forger wrote into a receipt moves no cursor and forges no line.
func TestN16ReceiptTextIsEscaped(t *testing.T) {
	const hostile = "x\x1b[2J\n::error::y\u202e"
	r := aReceipt()
	r.RunID, r.Team.Name, r.Tasks[0].ID, r.Tasks[0].Assignee, r.Tasks[0].Cause, r.Status.Message = hostile, hostile, hostile, hostile, hostile, hostile
	r.Decisions[0].ToolName, r.Trees[0].Cwd, r.Flags = hostile, hostile, []string{hostile}
	var b bytes.Buffer
	a := &app{stdout: &b, lookup: func(name string) (string, bool) { return "true", name == "GITHUB_ACTIONS" }}
	a.receiptText(&b, r)
	a.comparisonText(&b, compare(aReceipt(), r))
	a.verificationText(&b, &verification{RunID: hostile, Team: hostile, Signature: checked{broken, "x", hostile}})
	for line := range strings.Lines(b.String()) {
		if strings.ContainsAny(line, "\x1b\u202e") || strings.HasPrefix(strings.TrimSpace(line), "::") {
			t.Errorf("shown as it is: %q", line)
		}
	}
	if n := strings.Count(b.String(), `\u{1b}`); n < 10 {
		t.Errorf("only %d of the texts are shown:\n%s", n, b.String())
	}
}
