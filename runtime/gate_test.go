package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/redact"
)

// governed is a plan of two required roles in order, with a release requirement, sealed.
func governed(t testing.TB) *spec.Plan {
	t.Helper()
	p := team(2, 1)
	p.Tasks[0].Role, p.Tasks[1].Role = "a1", "a2"
	p.Tasks[1].DependsOn = []string{p.Tasks[0].ID}
	p.Governance = &spec.Governance{GovernanceIntent: "required", RequiredRoles: []string{"a1", "a2"}, RequiredOrder: []string{"a1", "a2"}}
	p.RoutingDecision = spec.RoutingDecision{Source: "declared", Mode: "team", Reasons: []string{"governanceIntent is required"}}
	p.Release = []spec.Requirement{{Name: "finished", That: `results.a2.text == "done"`, Reason: "not finished"}}
	if err := SealPlan(p); err != nil {
		t.Fatal(err)
	}
	return p
}

// evidence is a receipt with its log.
type evidence struct {
	receipt []byte
	log     []byte
}

func evidenceOf(t testing.TB, p *spec.Plan, m Model) evidence {
	t.Helper()
	j := &memory{}
	res, err := run(t, p, m, toolMap{echo(nil)}, func(o *Options) {
		o.Journal = j
		o.Redact = (*redact.Redactor)(nil).Text
		o.Tree = func(context.Context, *spec.PlanAgent) (string, error) { return "sha256:same", nil }
	})
	if err != nil {
		t.Fatal(err)
	}
	return evidence{res.Bytes, append(bytes.Join(j.records, []byte("\n")), '\n')}
}

func says(text string) Model {
	return modelFunc(func(context.Context, *spec.ModelRequest) (*spec.ModelResponse, error) {
		time.Sleep(2 * time.Millisecond) // the receipt's times have milliseconds
		return answerText(text), nil
	})
}

// forge changes a receipt and seals it again, as somebody would who can run this program.
func forge(t testing.TB, receipt []byte, change func(*spec.Receipt)) []byte {
	t.Helper()
	var r spec.Receipt
	if err := json.Unmarshal(receipt, &r); err != nil {
		t.Fatal(err)
	}
	change(&r)
	b, err := SealReceipt(&r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// signedBy is a signature that holds or does not, whatever the receipt.
func signedBy(key string, err error) func([]byte) (string, error) {
	return func([]byte) (string, error) { return key, err }
}

func TestGate(t *testing.T) {
	plan := governed(t)
	good := evidenceOf(t, plan, says("done"))
	unfit := evidenceOf(t, plan, says("not yet"))
	refused := evidenceOf(t, plan, modelFunc(func(_ context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
		r := answerText("done")
		if req.AgentName == "a2" {
			r.Finish = spec.FinishRefused
		}
		return r, nil
	}))
	denied := evidenceOf(t, plan, modelFunc(func(_ context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
		time.Sleep(2 * time.Millisecond)
		if req.AgentName == "a1" && req.Turn == 1 {
			return callTool("bash", `{}`), nil
		}
		return answerText("done"), nil
	}))
	unmetered := evidenceOf(t, plan, modelFunc(func(_ context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
		time.Sleep(2 * time.Millisecond)
		r := answerText("done")
		if req.AgentName == "a1" {
			r.Usage = nil
		}
		return r, nil
	}))
	// a long id whose end looks like a secret: masked first, it is cut in the middle of the mark
	longID := strings.Repeat("q", 122) + " ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	many := evidenceOf(t, plan, modelFunc(func(_ context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
		time.Sleep(2 * time.Millisecond)
		r := answerText("done")
		if req.AgentName == "a1" && req.Turn == 1 {
			for range 66 {
				r.Message.ToolCalls = append(r.Message.ToolCalls, spec.ToolCall{ID: longID, Name: "bash"})
			}
		}
		return r, nil
	}))
	bounded := governed(t)
	bounded.Budgets.MaxTokenBudget = 29 // each role uses 15
	if err := SealPlan(bounded); err != nil {
		t.Fatal(err)
	}
	crossed := evidenceOf(t, bounded, says("done"))
	free := team(1, 1)
	if err := SealPlan(free); err != nil {
		t.Fatal(err)
	}
	undeclared := evidenceOf(t, free, says("done"))
	other := governed(t)
	other.Goal = "something else"
	if err := SealPlan(other); err != nil {
		t.Fatal(err)
	}
	cut := func(b []byte, n int) []byte { return b[:n] }

	for _, c := range []struct {
		name    string
		receipt []byte
		log     []byte
		plan    *spec.Plan
		o       GateOptions
		code    int
		reason  string // the first one
		found   string // integrity
		missing bool   // there is no log, and nobody said that there need be none
	}{
		{name: "satisfied", receipt: good.receipt, log: good.log, plan: plan, found: "chain"},
		{name: "satisfied, without the log", receipt: good.receipt, plan: plan, found: "digest"},
		{name: "the log is missing", receipt: good.receipt, plan: plan, missing: true, code: 4, reason: "integrity", found: "digest"},
		{name: "the log is missing, and the receipt vouches for itself", receipt: good.receipt, o: GateOptions{Unbound: true}, missing: true, code: 4, reason: "integrity", found: "digest"},
		{name: "N1 unbound", receipt: good.receipt, log: good.log, code: 4, reason: "unbound", found: "chain"},
		{name: "N1 unbound and accepted", receipt: good.receipt, o: GateOptions{Unbound: true}, found: "digest"},
		{name: "N1 another plan", receipt: good.receipt, plan: other, code: 4, reason: "integrity", found: "digest"},
		{name: "N1 governanceIntent none written in", receipt: forge(t, good.receipt, func(r *spec.Receipt) { r.Governance = &spec.Governance{GovernanceIntent: "none"} }),
			plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "N1 governanceIntent none written in, unbound", receipt: forge(t, good.receipt, func(r *spec.Receipt) { r.Governance = nil }),
			o: GateOptions{Unbound: true}, code: 4, reason: "not-applicable", found: "digest"},
		{name: "a role that did not complete", receipt: refused.receipt, log: refused.log, plan: plan, code: 4, reason: "role-failed", found: "chain"},
		{name: "a failed role called completed", receipt: forge(t, refused.receipt, func(r *spec.Receipt) {
			r.Tasks[1].Status, r.GovernanceConclusion, r.GovernanceDetail = spec.TaskCompleted, "satisfied", nil
		}), plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "a failed role called completed, everything made to fit, against the log", receipt: forge(t, refused.receipt, func(r *spec.Receipt) {
			var g spec.Receipt
			json.Unmarshal(good.receipt, &g)
			journal := r.Evidence.Journal
			*r = g
			r.Evidence.Journal = journal
		}), log: refused.log, plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "a role cut out", receipt: forge(t, good.receipt, func(r *spec.Receipt) { r.Tasks = r.Tasks[:1] }), plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "a conclusion that does not follow", receipt: forge(t, refused.receipt, func(r *spec.Receipt) {
			r.GovernanceConclusion, r.GovernanceReason, r.GovernanceDetail = "satisfied", "", nil
		}), plan: plan, code: 4, reason: "role-failed", found: "digest"},
		{name: "a run that failed though every role completed", receipt: crossed.receipt, log: crossed.log, plan: bounded, code: 5, reason: "run-failed", found: "chain"},
		{name: "what was reviewed is what is there", receipt: good.receipt, log: good.log, plan: plan, found: "chain",
			o: GateOptions{Tree: func(string) (string, error) { return "sha256:same", nil }}},
		{name: "what was reviewed is not what is there", receipt: good.receipt, log: good.log, plan: plan, code: 4, reason: "integrity", found: "chain",
			o: GateOptions{Tree: func(string) (string, error) { return "sha256:changed", nil }}},
		{name: "what is there cannot be looked at", receipt: good.receipt, log: good.log, plan: plan, code: 4, reason: "integrity", found: "chain",
			o: GateOptions{Tree: func(string) (string, error) { return "", errors.New("permission denied") }}},
		{name: "edited and not sealed again", receipt: bytes.Replace(good.receipt, []byte(`"a2"`), []byte(`"a3"`), 1), plan: plan, code: 4, reason: "integrity", found: "none"},
		{name: "a member added", receipt: bytes.Replace(good.receipt, []byte("{"), []byte(`{"extra": 1,`), 1), plan: plan, code: 4, reason: "integrity", found: "none"},
		{name: "YM-04 duplicate key", receipt: bytes.Replace(good.receipt, []byte("{"), []byte(`{"success": true,`), 1), plan: plan, code: 4, reason: "integrity", found: "none"},
		{name: "empty", receipt: nil, plan: plan, code: 4, reason: "integrity", found: "none"},
		{name: "half", receipt: cut(good.receipt, len(good.receipt)/2), plan: plan, code: 4, reason: "integrity", found: "none"},
		{name: "another kind", receipt: []byte(`{"apiVersion":"oma/v1","kind":"Plan"}`), plan: plan, code: 4, reason: "integrity", found: "none"},
		{name: "a newer version", receipt: bytes.Replace(good.receipt, []byte("oma/v1"), []byte("oma/v2"), 1), plan: plan, code: 4, reason: "integrity", found: "none"},
		{name: "the log of another run", receipt: good.receipt, log: refused.log, plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "the log cut short", receipt: good.receipt, log: cut(good.log, len(good.log)-20), plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "an empty log", receipt: good.receipt, log: []byte{}, plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "a release requirement that failed", receipt: unfit.receipt, log: unfit.log, plan: plan, code: 9, reason: "release", found: "chain"},
		{name: "a release requirement left out", receipt: forge(t, unfit.receipt, func(r *spec.Receipt) { r.Release = nil }), plan: plan, code: 9, reason: "release", found: "digest"},
		{name: "nothing was required", receipt: undeclared.receipt, plan: free, code: 4, reason: "not-applicable", found: "digest"},
		{name: "nothing was required, and accepted", receipt: undeclared.receipt, plan: free, o: GateOptions{AllowNotApplicable: true}, found: "digest"},
		{name: "N4 a signature is required", receipt: good.receipt, plan: plan, o: GateOptions{RequireSigned: true}, code: 4, reason: "integrity", found: "digest"},
		{name: "N4 a signature that holds", receipt: good.receipt, log: good.log, plan: plan, o: GateOptions{RequireSigned: true, Signature: signedBy("sha256:k", nil)}, found: "signed"},
		{name: "N4 a signature that holds, without the log", receipt: good.receipt, plan: plan, o: GateOptions{RequireSigned: true, Signature: signedBy("sha256:k", nil)}, found: "signed"},
		{name: "N4 a signature that does not hold", receipt: good.receipt, log: good.log, plan: plan, o: GateOptions{Signature: signedBy("", errors.New("no"))},
			code: 4, reason: "integrity", found: "chain"},
		{name: "N4 signed, and the log is of another run", receipt: good.receipt, log: refused.log, plan: plan, o: GateOptions{Signature: signedBy("sha256:k", nil)},
			code: 4, reason: "integrity", found: "signed"},
		{name: "N4 signed, and a role did not complete", receipt: refused.receipt, log: refused.log, plan: plan, o: GateOptions{Signature: signedBy("sha256:k", nil)},
			code: 4, reason: "role-failed", found: "signed"},
		{name: "N4 edited, whatever is signed", receipt: bytes.Replace(good.receipt, []byte(`"a2"`), []byte(`"a3"`), 1), plan: plan,
			o: GateOptions{Signature: signedBy("sha256:k", nil)}, code: 4, reason: "integrity", found: "none"},
		{name: "the artifact is what was signed for", receipt: good.receipt, log: good.log, plan: plan, found: "chain",
			o: GateOptions{Artifact: func(*spec.Receipt) error { return nil }}},
		{name: "the artifact is something else", receipt: good.receipt, log: good.log, plan: plan, code: 4, reason: "integrity", found: "chain",
			o: GateOptions{Artifact: func(*spec.Receipt) error { return errors.New("another") }}},
		{name: "denials that were dropped", receipt: forge(t, good.receipt, func(r *spec.Receipt) { r.Denied = 3 }), plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "tokens that do not add up", receipt: forge(t, good.receipt, func(r *spec.Receipt) { r.TotalTokens.Input-- }), plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "trees left out", receipt: forge(t, good.receipt, func(r *spec.Receipt) { r.Trees = nil }), plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "a later writer made up", receipt: forge(t, good.receipt, func(r *spec.Receipt) { r.Trees[0].LaterWriter = true }), plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "a tree made up, against the log", receipt: forge(t, good.receipt, func(r *spec.Receipt) {
			for i := range r.Trees {
				r.Trees[i].Digest = "sha256:other"
			}
		}), log: good.log, plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "decisions dropped", receipt: forge(t, denied.receipt, func(r *spec.Receipt) { r.Decisions, r.Denied = r.Decisions[:0], 0 }), plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "decisions dropped everywhere, against the log", receipt: forge(t, denied.receipt, func(r *spec.Receipt) {
			r.Decisions, r.Denied, r.Tasks[0].ToolCalls = r.Decisions[:0], 0, spec.CallSums{}
		}), log: denied.log, plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "a decision turned around, against the log", receipt: forge(t, denied.receipt, func(r *spec.Receipt) {
			d := &r.Decisions[0]
			d.Refused, d.Gated, d.GateAction, d.GateOutcome = "", true, "allow", "decided"
			r.Denied, r.Tasks[0].ToolCalls = 0, spec.CallSums{Allowed: 1}
		}), log: denied.log, plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "a call that was refused", receipt: denied.receipt, log: denied.log, plan: plan, found: "chain"},
		{name: "enforcement made up", receipt: forge(t, good.receipt, func(r *spec.Receipt) {
			r.Enforcement = append(r.Enforcement, spec.Control{Agent: "a1", Control: "evidence", Level: "enforced", Mechanism: "trust me"})
		}), plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "inputs left out", receipt: forge(t, good.receipt, func(r *spec.Receipt) { r.GoalDigest = "sha256:other" }), plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "another run", receipt: forge(t, good.receipt, func(r *spec.Receipt) { r.RunID = "run_other" }), log: good.log, plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "another model, against the log", receipt: forge(t, good.receipt, func(r *spec.Receipt) { r.Tasks[0].Models = []string{"better"} }), log: good.log, plan: plan,
			code: 4, reason: "integrity", found: "digest"},
		{name: "another start, against the log", receipt: forge(t, good.receipt, func(r *spec.Receipt) { r.Tasks[0].StartedAt = "2020-01-01T00:00:00.000Z" }), log: good.log, plan: plan,
			code: 4, reason: "integrity", found: "digest"},
		{name: "a cost made up", receipt: forge(t, good.receipt, func(r *spec.Receipt) {
			zero := spec.USD(0)
			for i := range r.Tasks {
				r.Tasks[i].Cost = &zero
			}
			r.Cost = &zero
		}), plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "wider ceilings", receipt: forge(t, good.receipt, func(r *spec.Receipt) { r.Budgets.Declared.MaxTokenBudget = 5 }), plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "another tool, against the log", receipt: forge(t, denied.receipt, func(r *spec.Receipt) { d := &r.Decisions[0]; d.ToolName = "file_read" }), log: denied.log, plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "a decision about somebody else", receipt: forge(t, denied.receipt, func(r *spec.Receipt) { r.Decisions[0].Agent = "nobody" }), log: denied.log, plan: plan, code: 4, reason: "integrity", found: "chain"},
		{name: "tokens called estimated, against the log", receipt: forge(t, denied.receipt, func(r *spec.Receipt) {
			r.Tasks[0].Estimated = true
			r.Tasks[0].Tokens.Input = 1
			r.TotalTokens.Input = r.Tasks[0].Tokens.Input + r.Tasks[1].Tokens.Input
			r.Budgets.Used.Tokens = r.TotalTokens.Total()
		}), log: denied.log, plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "another answer, against the log", receipt: forge(t, denied.receipt, func(r *spec.Receipt) { r.Tasks[1].OutputDigest = "sha256:0000" }), log: denied.log, plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "fewer turns, against the log", receipt: forge(t, denied.receipt, func(r *spec.Receipt) { r.Tasks[0].Turns = 1 }), log: denied.log, plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "another end, against the log", receipt: forge(t, denied.receipt, func(r *spec.Receipt) { r.Tasks[0].EndedAt = r.Tasks[1].EndedAt }), log: denied.log, plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "counts by rule dropped", receipt: forge(t, denied.receipt, func(r *spec.Receipt) { r.Rules = []spec.RuleTotal{{Name: "x"}} }), log: denied.log, plan: plan, code: 4, reason: "integrity", found: "chain"},
		{name: "another provider", receipt: forge(t, denied.receipt, func(r *spec.Receipt) { r.Tasks[0].Provider = "other" }), log: denied.log, plan: plan, code: 4, reason: "integrity", found: "chain"},
		{name: "another program, against the log", receipt: forge(t, denied.receipt, func(r *spec.Receipt) { r.Oma.Version = "9" }), log: denied.log, plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "another date, against the log", receipt: forge(t, denied.receipt, func(r *spec.Receipt) { r.CreatedAt = "2030-01-01T00:00:00.000Z" }), log: denied.log, plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "estimates erased, against the log", receipt: forge(t, unmetered.receipt, func(r *spec.Receipt) {
			r.Tasks[0].Estimated, r.Unmetered, r.Partial = false, nil, false
			r.Tasks[0].Tokens, r.TotalTokens = spec.Usage{}, r.Tasks[1].Tokens
			r.Budgets.Used.Tokens = r.TotalTokens.Total()
		}), log: unmetered.log, plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "refusals of the core dropped, against the log", receipt: forge(t, many.receipt, func(r *spec.Receipt) { r.Decisions, r.Denied = r.Decisions[:64], 0; r.Tasks[0].ToolCalls.Refused = 0 }), log: many.log, plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "a refusal made up, against the log", receipt: forge(t, many.receipt, func(r *spec.Receipt) {
			r.Decisions = append(r.Decisions, spec.DecisionRecord{Seq: len(r.Decisions) + 1, TaskID: r.Tasks[0].ID, Agent: "a1", Decision: spec.Decision{Refused: "budget"}})
			r.Denied++
			r.Tasks[0].ToolCalls.Refused++
		}), log: many.log, plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "ceilings in force made up, against the log", receipt: forge(t, good.receipt, func(r *spec.Receipt) { r.Budgets.Effective.MaxTokenBudget = 5000 }), log: good.log, plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "a tool's name hidden, against the log", receipt: forge(t, denied.receipt, func(r *spec.Receipt) { r.Decisions[0].ToolName = redact.Mark }), log: denied.log, plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "a reason changed, against the log", receipt: forge(t, denied.receipt, func(r *spec.Receipt) { r.Decisions[0].Reason = "fine" }), log: denied.log, plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "a release conclusion that does not follow", receipt: forge(t, unfit.receipt, func(r *spec.Receipt) { r.ReleaseConclusion = "satisfied" }), plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "durations that do not add up", receipt: forge(t, good.receipt, func(r *spec.Receipt) { r.Tasks[0].DurationMs++ }), plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "a cost of its own", receipt: forge(t, good.receipt, func(r *spec.Receipt) { r.Budgets.Used.Cost = new(spec.USD) }), plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "unmetered and allowed", receipt: unmetered.receipt, log: unmetered.log, plan: plan, found: "chain"},
		{name: "more calls than are judged", receipt: many.receipt, log: many.log, plan: plan, found: "chain"},
		{name: "a success that is none", receipt: forge(t, refused.receipt, func(r *spec.Receipt) { r.Success, r.Status.Code = true, "ok" }), plan: plan, code: 4, reason: "integrity", found: "digest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Plan = c.plan
			if c.o.NoLog = c.log == nil && !c.missing; c.log != nil {
				c.o.Log = bytes.NewReader(c.log)
			}
			v := Gate(c.receipt, c.o)
			first := ""
			if len(v.Reasons) > 0 {
				first = v.Reasons[0].Code
			}
			if v.ExitCode != c.code || v.Pass != (c.code == 0) || first != c.reason || v.Integrity != c.found {
				t.Errorf("code %d, pass %v, first reason %q, integrity %s; reasons %v", v.ExitCode, v.Pass, first, v.Integrity, v.Reasons)
			}
		})
	}
}

func TestSavedPlan(t *testing.T) {
	p := governed(t)
	p.Enforcement = enforcement(p)
	if err := SealPlan(p); err != nil {
		t.Fatal(err)
	}
	b, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := ReadPlan(b)
	if err != nil {
		t.Fatal(err)
	}
	again, err := back.Encode()
	if err != nil || !bytes.Equal(b, again) {
		t.Errorf("a plan does not read back as it was written: %v", err)
	}
	for name, bad := range map[string]string{
		"edited":        strings.Replace(string(b), `"do it"`, `"do that"`, 1),
		"member added":  strings.Replace(string(b), "{", `{"extra": 1,`, 1),
		"duplicate key": strings.Replace(string(b), "{", `{"goal": "x",`, 1),
		"cut":           string(b[:len(b)/2]),
		"empty":         "",
		"a receipt":     `{"apiVersion":"oma/v1","kind":"Receipt"}`,
	} {
		if _, err := ReadPlan([]byte(bad)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	for i := range p.Enforcement {
		p.Enforcement[i].Level = spec.Enforced
	}
	if left := NotEnforced(p, "gates"); len(left) != 2 {
		t.Errorf("a plan is believed what it promises: %v", left)
	}
}

func BenchmarkGate(b *testing.B) {
	plan := governed(b)
	e := evidenceOf(b, plan, says("done"))
	b.ReportAllocs()
	for b.Loop() {
		if v := Gate(e.receipt, GateOptions{Plan: plan, Log: bytes.NewReader(e.log)}); !v.Pass {
			b.Fatal(v.Reasons)
		}
	}
}
