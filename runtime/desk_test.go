package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/open-multi-agent/oma/spec"
)

// coder is an external agent that asks for one thing after another and tells what it got.
type coder struct{ asks []map[string]any }

func (c coder) Complete(context.Context, *spec.ModelRequest) (*spec.ModelResponse, error) {
	return nil, errors.New("it was asked without a desk")
}

func (c coder) Work(ctx context.Context, _ *spec.ModelRequest, desk Desk) (*spec.ModelResponse, error) {
	var got []string
	for i, in := range c.asks {
		got = append(got, fmt.Sprint(desk.Permit(ctx, fmt.Sprintf("c%d", i), in)))
	}
	return &spec.ModelResponse{Message: spec.Message{Text: strings.Join(got, " ")}, Finish: spec.FinishStop, Usage: &spec.Usage{Input: 3, Output: 4},
		Activity: []spec.Activity{{Title: "did it", Kind: "edit", Status: "completed"}}}, nil
}

func wants(kind string, more ...any) map[string]any {
	in := map[string]any{"title": "x", "kind": kind, "optionKinds": []any{"allow_once"}}
	for i := 0; i < len(more); i += 2 {
		in[more[i].(string)] = more[i+1]
	}
	return in
}

// hybrid is a plan of one external agent with rules over what it asks.
func hybrid(rules ...spec.PlanRule) *spec.Plan {
	p := team(1, 1, rules...)
	a := &p.Agents[0]
	a.Backend, a.Provider, a.Model, a.MaxTurns = &spec.Backend{Kind: spec.BackendACP, Command: "coder"}, "", "", 1
	a.Tools = []spec.Grant{{ToolInfo: permission(a.Backend), GrantedBy: "backend"}}
	return p
}

func over(name, when, action string) spec.PlanRule {
	return spec.PlanRule{Rule: spec.Rule{Name: name, Tools: []string{spec.PermissionTool}, When: when, Action: action, Reason: name}, Source: "team"}
}

// An external agent's requests pass the gates one after another. Without a rule that allows it it may look and think alone,
// whatever the default is; what wants a person is refused, since its process cannot be suspended.
func TestRequestsOfAnExternalAgent(t *testing.T) {
	marks := over("reads-secrets", `has(input.path) && input.path == "key"`, "warn")
	marks.Mark = "secret"
	p := hybrid(over("tests", `has(input.command) && input.command == "go test"`, "allow"), marks,
		over("never-after", `"secret" in marks && input.kind == "fetch"`, "deny"), over("fetch", `input.kind == "fetch"`, "allow"),
		over("a-person", `input.kind == "delete"`, "suspend"),
		over("twice", `history.exists(c, c.toolName == "permission" && c.action == "allow" && has(c.input.command)) && has(input.command)`, "deny"))
	asks := []map[string]any{wants("read", "path", "a"), wants("edit", "path", "a"), wants("execute", "command", "go test"), wants("execute", "command", "go test"),
		wants("fetch"), wants("read", "path", "key"), wants("fetch"), wants("delete", "path", "a"), wants("dance"), wants("read", "more", 1)}
	s := newShift(t, p, nil)
	backends := func(o *Options) {
		o.Backends = func(*spec.PlanAgent) (Model, io.Closer, error) { return coder{asks}, io.NopCloser(nil), nil }
	}
	res := s.attempt(backends)
	r := res.Receipt
	if got := res.Outputs[0].Text; got != "true false true false true true false false false false" {
		t.Errorf("allowed: %s", got)
	}
	if !r.Success || r.TotalTokens.Total() != 7 || r.Tasks[0].ToolCalls != (spec.CallSums{Allowed: 4, Denied: 4, Refused: 2}) {
		t.Errorf("%+v, %+v, %+v", r.Status, r.TotalTokens, r.Tasks[0].ToolCalls)
	}
	if d := r.Decisions[7]; d.GateOutcome != "error" || !strings.Contains(d.Reason, "[cannot-suspend]") || d.ToolName != spec.PermissionTool {
		t.Errorf("%+v", d)
	}
	if !strings.Contains(s.log.buf.String(), `"title":"did it"`) {
		t.Error("what it says it did is not in the log")
	}

	// Told again, nothing is asked again; a request that was made an approval stands in nobody's way.
	if again := s.attempt(backends); string(again.Bytes) != string(res.Bytes) {
		t.Errorf("told again:\n%s\n%s", again.Bytes, res.Bytes)
	}
	log := forged(t, s.log.buf.Bytes(), func(e *spec.Event) bool {
		if e.Kind == spec.EventModelResult {
			e.Data = json.RawMessage(strings.Replace(string(e.Data), `"gateAction":"deny","gateOutcome":"decided"`, `"gateAction":"allow","gateOutcome":"decided"`, 1))
		}
		return true
	})
	if past, err := ReadPast(bytes.NewReader(log)); err != nil {
		t.Fatal(err)
	} else if _, err = run(t, p, nil, nil, func(o *Options) { o.Past = past; backends(o) }); !errors.Is(err, ErrDiverged) || !strings.Contains(err.Error(), "request 2") {
		t.Errorf("a forged request: %v", err)
	}
}

// Without a desk nobody says yes; an agent whose requests are not judged is not asked through one.
func TestRequestsNobodyJudges(t *testing.T) {
	p := hybrid()
	p.Agents[0].Backend.Permission, p.Agents[0].Tools = spec.PermissionReject, []spec.Grant{}
	res, err := run(t, p, nil, nil, func(o *Options) {
		o.Backends = func(*spec.PlanAgent) (Model, io.Closer, error) {
			return coder{[]map[string]any{wants("read")}}, io.NopCloser(nil), nil
		}
	})
	if err != nil || res.Outputs[0].Text != "false" || len(res.Receipt.Decisions) > 0 || slices.ContainsFunc(res.Receipt.Decisions, spec.DecisionRecord.Kept) {
		t.Errorf("%v %+v", err, res.Receipt.Tasks)
	}
}
