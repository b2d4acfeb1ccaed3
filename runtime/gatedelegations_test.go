package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/redact"
)

// lending is a plan of two required roles, the first of which may delegate to two helpers, who may too.
func lending(t *testing.T, change func(*spec.Plan)) *spec.Plan {
	t.Helper()
	p := governed(t)
	depth := 2
	p.Scheduling.MaxConcurrency = 4
	p.Delegation = &spec.Delegation{MaxDelegationDepth: &depth}
	for _, name := range []string{"h1", "h2"} {
		a := p.Agents[0]
		a.Name = name
		p.Agents = append(p.Agents, a)
	}
	for i := range p.Agents {
		if a := &p.Agents[i]; a.Name != "a2" {
			a.Tools = append(a.Tools[:len(a.Tools):len(a.Tools)], spec.Grant{ToolInfo: delegateTo(p.Agents), GrantedBy: "tools"})
		}
	}
	p.Enforcement = enforcement(p)
	if change != nil {
		change(p)
	}
	if err := SealPlan(p); err != nil {
		t.Fatal(err)
	}
	return p
}

func delegating(target string) *spec.ModelResponse {
	return callTool(spec.DelegateTool, `{"target_agent":"`+target+`","prompt":"help"}`)
}

// asksOthers has a1 ask h1, who asks h2.
func asksOthers() Model {
	return modelFunc(func(_ context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
		time.Sleep(2 * time.Millisecond)
		switch {
		case req.Turn == 1 && req.AgentName == "a1":
			return delegating("h1"), nil
		case req.Turn == 1 && req.AgentName == "h1":
			return delegating("h2"), nil
		}
		return answerText("done"), nil
	})
}

// A receipt with delegated runs passes as it is. No part of what it says of them can be another one, with or without the log.
func TestGateDelegations(t *testing.T) {
	plan := lending(t, nil)
	good := evidenceOf(t, plan, asksOthers())
	var r spec.Receipt
	if err := json.Unmarshal(good.receipt, &r); err != nil || len(r.Delegations) != 2 || r.GovernanceConclusion != spec.Satisfied {
		t.Fatalf("%v\n%s", err, good.receipt)
	}
	for _, c := range []struct {
		name   string
		change func(*spec.Receipt)
		want   string
	}{
		{"as it is", func(*spec.Receipt) {}, ""},
		{"none", func(r *spec.Receipt) { r.Delegations = nil }, "nothing is said of what came of it"},
		{"one of them", func(r *spec.Receipt) { r.Delegations = r.Delegations[:1] }, "do not add up"},
		{"by another decision", func(r *spec.Receipt) { r.Delegations[1].Decision = 1 }, "was let by nothing"},
		{"by none", func(r *spec.Receipt) { r.Delegations[1].Decision = 0 }, "was let by nothing"},
		{"for another", func(r *spec.Receipt) { r.Delegations[1].Caller = "a1" }, "stands nowhere"},
		{"elsewhere", func(r *spec.Receipt) { r.Delegations[1].ID = "ta1/1/call/1/7/call/1" }, "stands nowhere|was let by nothing|somebody else"},
		{"in no task", func(r *spec.Receipt) { r.Delegations[0].ID = "tx/1/call/1" }, "stands nowhere"},
		{"under another name", func(r *spec.Receipt) { r.Delegations[0].Title = "x" }, "stands nowhere"},
		{"as a role", func(r *spec.Receipt) { r.Delegations[0].Role = "a2" }, "stands nowhere"},
		{"by the role itself", func(r *spec.Receipt) { r.Delegations[1].Assignee = "a1" }, "does not allow|somebody else"},
		{"cheaper", func(r *spec.Receipt) {
			d := &r.Delegations[0]
			r.TotalTokens.Input -= 1
			r.Budgets.Used.Tokens -= 1
			d.Tokens.Input -= 1
		}, "tokens of task|cost"},
		{"never started", func(r *spec.Receipt) {
			d := &r.Delegations[1]
			d.Status, d.StartedAt, d.EndedAt, d.DurationMs = spec.TaskSkipped, "", "", 0
		}, "states"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := Gate(forge(t, good.receipt, c.change), GateOptions{Plan: plan, Log: bytes.NewReader(good.log)})
			var said []string
			for _, reason := range v.Reasons {
				said = append(said, reason.Message)
			}
			all := strings.Join(said, "\n")
			found := c.want == ""
			for _, w := range strings.Split(c.want, "|") {
				found = found || strings.Contains(all, w)
			}
			if pass := v.ExitCode == 0; pass != (c.want == "") || !found {
				t.Errorf("exit code %d:\n%s", v.ExitCode, all)
			}
		})
	}
}

// A role that another one asked cannot review it, however deep the request.
func TestDelegatedRoleIsNoReviewer(t *testing.T) {
	plan := lending(t, nil)
	got := evidenceOf(t, plan, modelFunc(func(_ context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
		time.Sleep(2 * time.Millisecond)
		switch {
		case req.Turn == 1 && req.AgentName == "a1":
			return delegating("h1"), nil
		case req.Turn == 1 && req.AgentName == "h1":
			return delegating("a2"), nil
		}
		return answerText("done"), nil
	}))
	var r spec.Receipt
	if err := json.Unmarshal(got.receipt, &r); err != nil {
		t.Fatal(err)
	}
	if r.GovernanceConclusion != spec.Unsatisfied || r.GovernanceReason != "independence" || !r.Success {
		t.Errorf("%s for %s, success %t", r.GovernanceConclusion, r.GovernanceReason, r.Success)
	}
}

// The log of a run tells of delegated work that its receipt leaves out, and a plan without delegation lets none.
func TestGateDelegationsOfAnotherPlan(t *testing.T) {
	plan := lending(t, nil)
	good := evidenceOf(t, plan, asksOthers())
	shallow := lending(t, func(p *spec.Plan) { one := 1; p.Delegation.MaxDelegationDepth = &one })
	v := Gate(forge(t, good.receipt, func(r *spec.Receipt) { r.Plan.Digest = shallow.Digest }), GateOptions{Plan: shallow, NoLog: true})
	if all := fmt.Sprint(v.Reasons); v.ExitCode == 0 || !strings.Contains(all, "Maximum delegation depth (1) reached") {
		t.Errorf("exit code %d: %s", v.ExitCode, all)
	}
}

// A key that is also the name of an agent takes no work from it: the log says whom a call delegates to, and the gate follows it.
func TestTheNameOfADelegateIsNoSecret(t *testing.T) {
	plan := lending(t, nil)
	for name, change := range map[string]func(*Options){
		"a key": func(o *Options) {
			o.Reference = func(s string) string { return strings.ReplaceAll(s, "h1", "${secret:K}") }
		},
		"in a redacted log": func(o *Options) { o.Withhold = redact.New(redact.Secret{Name: "K", Value: "h1"}) },
	} {
		j := &memory{}
		res, err := run(t, plan, asksOthers(), toolMap{echo(nil)}, func(o *Options) {
			o.Journal = j
			o.Tree = func(context.Context, *spec.PlanAgent) (string, error) { return "sha256:same", nil }
			change(o)
		})
		if err != nil {
			t.Fatal(err)
		}
		log := append(bytes.Join(j.records, []byte("\n")), '\n')
		if v := Gate(res.Bytes, GateOptions{Plan: plan, Log: bytes.NewReader(log)}); !v.Pass || len(res.Receipt.Delegations) != 2 {
			t.Errorf("%s: %+v", name, v.Reasons)
		}
	}
}
