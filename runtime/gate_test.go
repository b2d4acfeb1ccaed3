package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/open-multi-agent/oma/spec"
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
	j := &MemoryJournal{}
	res, err := run(t, p, m, toolMap{echo(nil)}, func(o *Options) { o.Journal = j })
	if err != nil {
		t.Fatal(err)
	}
	return evidence{res.Bytes, append(bytes.Join(j.Records, []byte("\n")), '\n')}
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
	}{
		{name: "satisfied", receipt: good.receipt, log: good.log, plan: plan, found: "chain"},
		{name: "satisfied, without the log", receipt: good.receipt, plan: plan, found: "digest"},
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
		{name: "the conclusion's word is not read", receipt: forge(t, good.receipt, func(r *spec.Receipt) { r.GovernanceConclusion = "unsatisfied" }), plan: plan, found: "digest"},
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
		{name: "denials that were dropped", receipt: forge(t, good.receipt, func(r *spec.Receipt) { r.Denied = 3 }), plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "tokens that do not add up", receipt: forge(t, good.receipt, func(r *spec.Receipt) { r.TotalTokens.Input-- }), plan: plan, code: 4, reason: "integrity", found: "digest"},
		{name: "a success that is none", receipt: forge(t, refused.receipt, func(r *spec.Receipt) { r.Success, r.Status.Code = true, "ok" }), plan: plan, code: 4, reason: "integrity", found: "digest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Plan = c.plan
			if c.log != nil {
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
