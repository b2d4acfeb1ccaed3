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

// visitor is an external agent that does at its desk what it is told to.
type visitor func(ctx context.Context, desk Desk) string

func (v visitor) Complete(context.Context, *spec.ModelRequest) (*spec.ModelResponse, error) {
	return nil, errors.New("it was asked without a desk")
}

func (v visitor) Work(ctx context.Context, _ *spec.ModelRequest, desk Desk) (*spec.ModelResponse, error) {
	return &spec.ModelResponse{Message: spec.Message{Text: v(ctx, desk)}, Finish: spec.FinishStop, Usage: &spec.Usage{Input: 3, Output: 4}}, nil
}

func (v visitor) backends(o *Options) {
	o.Backends = func(*spec.PlanAgent) (Model, io.Closer, error) { return v, io.NopCloser(nil), nil }
}

// hosted is a plan of one external agent that is served with echo.
func hosted(rules ...spec.PlanRule) *spec.Plan {
	p := hybrid(rules...)
	p.Agents[0].Backend.Capabilities = []string{spec.CapabilityFS}
	p.Agents[0].Tools = append(p.Agents[0].Tools, spec.Grant{ToolInfo: echo(nil).ToolInfo, GrantedBy: "backend.capabilities fs"})
	return p
}

func text(name, when, action string) spec.PlanRule {
	return spec.PlanRule{Rule: spec.Rule{Name: name, Tools: []string{"echo"}, When: when, Action: action, Reason: name}, Source: "team"}
}

func say(desk Desk, ctx context.Context, word string) string {
	return desk.Do(ctx, "echo", map[string]any{"text": word}).Text
}

// What is done for an external agent passes the same door as the calls of any other, and each request sees those before it.
func TestServedThroughTheDoor(t *testing.T) {
	marks := text("marks", `input.text == "key"`, "warn")
	marks.Mark = "seen"
	s := newShift(t, hosted(text("no", `input.text == "no"`, "deny"), marks, text("after", `"seen" in marks && input.text == "out"`, "deny"),
		over("never-after", `"seen" in marks && input.kind == "fetch"`, "deny"), over("fetch", `input.kind == "fetch"`, "allow"),
		text("once", `history.exists(c, c.toolName == "echo" && c.action == "allow" && c.input.text == "a") && input.text == "a"`, "deny")), nil)
	var late Desk
	v := visitor(func(ctx context.Context, desk Desk) string {
		late = desk
		got := []string{say(desk, ctx, "a"), say(desk, ctx, "a"), say(desk, ctx, "no"), say(desk, ctx, "out"),
			fmt.Sprint(desk.Permit(ctx, "p", wants("fetch"))), say(desk, ctx, "key"), say(desk, ctx, "out"), fmt.Sprint(desk.Permit(ctx, "p", wants("fetch"))),
			desk.Do(ctx, "echo", map[string]any{"txt": 1}).Text, desk.Do(ctx, "permission", wants("read")).Text, desk.Do(ctx, "bash", nil).Text}
		ended, end := context.WithCancel(ctx)
		end()
		return strings.Join(append(got, say(desk, ended, "a")), "\n")
	})
	res := s.attempt(v.backends)
	r := res.Receipt
	want := `did a
Tool "echo" denied by gate: rule "once": once
Tool "echo" denied by gate: rule "no": no
did out
true
did key
Tool "echo" denied by gate: rule "after": after
false
Invalid input for tool "echo":
  • input: missing "text"
  • input: unknown property "txt"
Tool "permission" is not granted to this agent.
Tool "bash" is not granted to this agent.
Not run: the prompt is over.`
	if got := res.Outputs[0].Text; !strings.HasPrefix(got, want[:strings.Index(want, "Invalid")]) || !strings.HasSuffix(got, want[strings.Index(want, "Tool \"permission\""):]) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if !slices.Equal(s.acts, []string{"a", "out", "key"}) || r.Tasks[0].ToolCalls != (spec.CallSums{Allowed: 4, Denied: 4, Refused: 1}) {
		t.Errorf("acts %q, %+v", s.acts, r.Tasks[0].ToolCalls)
	}
	if d := r.Decisions[5]; d.ToolName != "echo" || d.ToolCallID != "echo-6" || !slices.Equal(d.Marks, []string{"seen"}) {
		t.Errorf("%+v", d)
	}
	if got := say(late, t.Context(), "a"); got != "Not run: the prompt is over." || late.Permit(t.Context(), "p", wants("read")) || len(s.acts) != 3 {
		t.Errorf("after the prompt: %q, acts %q", got, s.acts)
	}
	if again := s.attempt(v.backends); string(again.Bytes) != string(res.Bytes) || len(s.acts) != 3 {
		t.Errorf("told again:\n%s\n%s", again.Bytes, res.Bytes)
	}
}

// One prompt is bounded, and what is beyond the bounds is refused, with a reason.
func TestBoundsOfOnePrompt(t *testing.T) {
	s := newShift(t, hosted(), nil)
	refused, told := "", 0
	res := s.attempt(visitor(func(ctx context.Context, desk Desk) string {
		for range maxPermits {
			say(desk, ctx, "a")
		}
		refused = say(desk, ctx, "b")
		for i := range maxTold + 10 {
			desk.Tell(spec.Activity{ID: fmt.Sprint(i)})
		}
		return "done"
	}).backends)
	told = strings.Count(s.log.buf.String(), `"activity"`)
	if !strings.Contains(refused, "no more than 4096") || len(res.Receipt.Decisions) != maxPermits || told != maxTold || len(s.acts) != maxPermits {
		t.Errorf("%q, %d decisions, %d told, %d acts", refused, len(res.Receipt.Decisions), told, len(s.acts))
	}
}

// Without a record nothing is done: a log that fails ends the run, and whoever asks gets a no.
func TestNothingIsServedOffTheRecord(t *testing.T) {
	for left := 4; left < 8; left++ {
		s := newShift(t, hosted(), nil)
		s.log.left = left
		var got []string
		if _, err := s.try(visitor(func(ctx context.Context, desk Desk) string {
			got = append(got, say(desk, ctx, "a"), fmt.Sprint(desk.Permit(ctx, "p", wants("read"))), say(desk, ctx, "b"))
			return "done"
		}).backends); err != nil {
			t.Fatal(err)
		}
		recorded := strings.Count(s.log.buf.String(), `"toolName":"echo","toolCallId"`)
		if len(s.acts) > recorded {
			t.Errorf("%d left: %d calls on record, made %q, answers %q", left, recorded, s.acts, got)
		}
	}
}

// A person's answer on the spot stands in the log with the request, and none can be made up: what is told again is what the
// rules and the votes come to.
func TestAnswersOnTheSpot(t *testing.T) {
	ask := text("look", `input.text.startsWith("ask")`, "ask")
	ask.Mark = "asked"
	s := newShift(t, hosted(ask, text("after", `"asked" in marks && input.text == "late"`, "deny"), text("wait", `input.text == "wait"`, "suspend"), text("never", `input.text == "never"`, "deny")), nil)
	s.says("ta1/1/model/permit/1", spec.VerdictReject, "not now")
	s.says("ta1/1/model/permit/3", spec.VerdictApprove, "")
	v := visitor(func(ctx context.Context, desk Desk) string {
		return strings.Join([]string{say(desk, ctx, "ask 1"), say(desk, ctx, "late"), say(desk, ctx, "ask 2"), say(desk, ctx, "late"), say(desk, ctx, "wait"), say(desk, ctx, "ask 3"), say(desk, ctx, "never")}, "\n")
	})
	res := s.attempt(v.backends)
	want := `Tool "echo" denied by a person: not now
did late
did ask 2
Tool "echo" denied by gate: rule "after": after
Tool "echo" needs a person's approval, and a rule wants it to wait for somebody elsewhere.
Tool "echo" needs a person's approval, and nobody sits here whose word is enough.
Tool "echo" denied by gate: rule "never": never`
	if got := res.Outputs[0].Text; got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
	r := res.Receipt
	if len(r.ApprovalDecisions) != 2 || r.ApprovalDecisions[1].Boundary != "ta1/1/model/permit/3" || r.Decisions[4].GateOutcome != "error" || !strings.Contains(r.Decisions[5].Reason, "[cannot-suspend]") {
		t.Errorf("%+v\n%+v", r.ApprovalDecisions, r.Decisions)
	}
	if again := s.attempt(v.backends); string(again.Bytes) != string(res.Bytes) {
		t.Errorf("told again:\n%s\n%s", again.Bytes, res.Bytes)
	}

	log := s.log.buf.Bytes()
	edited := func(kind, from, to string) []byte {
		changed := false
		out := forged(t, log, func(e *spec.Event) bool {
			if e.Kind == kind && strings.Contains(string(e.Data), from) && !changed {
				changed, e.Data = true, json.RawMessage(strings.Replace(string(e.Data), from, to, 1))
			}
			return true
		})
		if !changed {
			t.Fatalf("no %s has %s", kind, from)
		}
		return out
	}
	for name, c := range map[string]struct {
		log   []byte
		again bool // telling it again finds it, and not the gate alone
	}{
		"a no that was a yes":        {edited(spec.EventModelResult, `"decision":"reject"`, `"decision":"approve"`), true},
		"a yes to what was rejected": {edited(spec.EventModelResult, `"approval":"rejected"`, `"approval":"approved"`), true},
		"a yes nobody was asked for": {edited(spec.EventModelResult, `"gateAction":"deny","gateOutcome":"decided"`, `"gateAction":"ask","gateOutcome":"decided","approval":"approved"`), true},
		"done and never allowed":     {edited(spec.EventModelResult, `"judged":{"gated":true,"gateAction":"deny"`, `"done":{},"judged":{"gated":true,"gateAction":"deny"`), true},
		"another time":               {edited(spec.EventModelResult, `"decidedAt":"1970-01-01T00:00:00.001Z"`, `"decidedAt":"1970-01-01T00:00:00.002Z"`), false},
		"another record of it":       {edited(spec.EventToolAsked, `"observed":true,"toolName":"echo"`, `"observed":false,"toolName":"echo"`), true},
		"no record of it": {forged(t, log, func(e *spec.Event) bool {
			return e.Kind != spec.EventToolAsked || !strings.HasSuffix(e.ID, "/permit/2")
		}), false},
	} {
		past, err := ReadPast(bytes.NewReader(c.log))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = run(t, s.plan, nil, toolMap{echo(nil)}, func(o *Options) { o.Past = past; v.backends(o) }); c.again != errors.Is(err, ErrDiverged) {
			t.Errorf("%s: told again: %v", name, err)
		}
		if v := gateOn(t, s.plan, res.Bytes, c.log); v.Pass || v.Integrity == IntegrityChain {
			t.Errorf("%s: the gate: %+v", name, v.Reasons)
		}
	}
	for name, edit := range map[string]func(*spec.Receipt){
		"about another request": func(r *spec.Receipt) {
			a := &r.ApprovalDecisions[1]
			a.Boundary = "ta1/1/model/permit/2"
			identified(r, a)
			r.Decisions[2].RequestID = a.RequestID
		},
		"in another prompt": func(r *spec.Receipt) {
			a := &r.ApprovalDecisions[1]
			a.Boundary = "ta1/1/model/again/1/permit/3"
			identified(r, a)
			r.Decisions[2].RequestID = a.RequestID
		},
		"approved after all": func(r *spec.Receipt) {
			r.Decisions[0].Approval = spec.ApprovalApproved
			r.Tasks[0].ToolCalls.Allowed++
			r.Tasks[0].ToolCalls.Denied--
			r.Denied--
		},
	} {
		if v := sealedAgain(t, s.plan, res.Bytes, edit); v.Pass {
			t.Errorf("%s: %+v", name, v.Reasons)
		}
	}
}

// A judgement is nobody's approval: one that says so in a log lets nothing run.
func TestAJudgementThatApproves(t *testing.T) {
	s := newShift(t, team(1, 1, asking(`input.text == "a"`, "suspend")), texts("a"))
	s.attempt()
	over := false
	log := forged(t, s.log.buf.Bytes(), func(e *spec.Event) bool { // as if the run had been killed behind it
		if over {
			return false
		}
		if over = e.Kind == spec.EventToolJudged; over {
			e.Data = json.RawMessage(strings.Replace(string(e.Data), `"gateAction":"suspend"`, `"approval":"approved","gateAction":"suspend"`, 1))
		}
		return true
	})
	s.log.buf.Reset()
	s.log.buf.Write(log)
	if _, err := s.try(); !errors.Is(err, ErrDiverged) || len(s.acts) > 0 {
		t.Errorf("%v, acts %q", err, s.acts)
	}
}
