package runtime

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/open-multi-agent/oma/spec"
)

// spliced gives a log with more events behind the first one of a kind and an id, chained again.
func spliced(t *testing.T, log []byte, kind, id string, more ...spec.Event) []byte {
	t.Helper()
	var lines [][]byte
	done := false
	for _, line := range bytes.Split(bytes.TrimSpace(log), []byte("\n")) {
		lines = append(lines, line)
		var e spec.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if done || e.Kind != kind || e.ID != id {
			continue
		}
		done = true
		for _, m := range more {
			m.At = e.At
			b, err := json.Marshal(&m)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, b)
		}
	}
	if !done {
		t.Fatalf("no %s %s in\n%s", kind, id, log)
	}
	return forged(t, bytes.Join(lines, []byte("\n")), func(*spec.Event) bool { return true })
}

// eventOf gives the first event of a kind and an id.
func eventOf(t *testing.T, log []byte, kind, id string) (out spec.Event) {
	t.Helper()
	forged(t, log, func(e *spec.Event) bool {
		if out.Kind == "" && e.Kind == kind && e.ID == id {
			out = *e
		}
		return true
	})
	if out.Kind == "" {
		t.Fatalf("no %s %s", kind, id)
	}
	return out
}

// gateOn seals a receipt to a log and holds it against the log, and a plan if there is one.
func gateOn(t *testing.T, plan *spec.Plan, receipt, log []byte) *GateVerdict {
	t.Helper()
	ref, err := VerifyLog(bytes.NewReader(log), func(*spec.Event) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	b := forge(t, receipt, func(r *spec.Receipt) { r.Evidence.Journal = ref })
	return Gate(b, GateOptions{Plan: plan, Unbound: plan == nil, Log: bytes.NewReader(log), AllowNotApplicable: true})
}

// No call is made that nothing let through, and none more often than it was let through.
func TestCallsMadeAreCallsLetThrough(t *testing.T) {
	const a, b, c = "ta1/1/call/1", "ta1/1/call/2", "ta1/1/call/3"
	deny := spec.PlanRule{Rule: spec.Rule{Name: "no", When: `input.text == "c"`, Action: "deny"}, Source: "team"}
	look := asking(`input.text == "b"`, "suspend")
	look.Mark = ""
	s := newShift(t, team(1, 1, look, deny), texts("a", "b", "c"))
	s.says(b, spec.VerdictReject, "no")
	res, log := s.attempt(), s.log.buf.Bytes()
	if v := gateOn(t, nil, res.Bytes, log); !v.Pass || v.Integrity != IntegrityChain {
		t.Fatalf("as it was: %+v", v.Reasons)
	}
	call, result := eventOf(t, log, spec.EventToolAsked, a), eventOf(t, log, spec.EventToolResult, a)
	of := func(id string) []spec.Event {
		judged := eventOf(t, log, spec.EventToolJudged, id+"/judge")
		var j judgedData
		if err := json.Unmarshal(judged.Data, &j); err != nil {
			t.Fatal(err)
		}
		made, ended := call, result
		made.ID, ended.ID, made.Digest = id, id, j.Judged.InputDigest
		made.Data, _ = json.Marshal(map[string]string{"toolName": j.ToolName, "toolCallId": j.ToolCallID})
		return []spec.Event{made, ended}
	}
	without := func(kind, id string) func(*spec.Event) bool {
		return func(e *spec.Event) bool { return e.Kind != kind || e.ID != id }
	}
	stop := spec.Event{Kind: spec.EventRunStop}
	for name, f := range map[string]struct {
		log  []byte
		want string
	}{
		"a rejected call":      {spliced(t, log, spec.EventApprovalDecision, b+"/approval", of(b)...), "call " + b + " was made, and nothing had let it through"},
		"a call that waits":    {spliced(t, log, spec.EventToolJudged, b+"/judge", of(b)...), "call " + b + " was made, and nothing had let it through"},
		"a denied call":        {spliced(t, log, spec.EventToolJudged, c+"/judge", of(c)...), "call " + c + " was made, and nothing had let it through"},
		"a call nobody judged": {spliced(t, log, spec.EventToolJudged, a+"/judge", func() []spec.Event { e := of(a); e[0].ID, e[1].ID = "ta1/9/call/1", "ta1/9/call/1"; return e }()...), "call ta1/9/call/1 was made"},
		"a call twice":         {spliced(t, log, spec.EventToolResult, a, call), "call " + a + " was made, and nothing had let it through"},
		"a call made again":    {spliced(t, log, spec.EventToolResult, a, func() []spec.Event { e := of(a); e[0].ID, e[1].ID = a+"/again/1", a+"/again/1"; return e }()...), "call " + a + "/again/1 was made"},
		"before it was judged": {spliced(t, log, spec.EventModelResult, "ta1/1/model", call), "call " + a + " was made, and nothing had let it through"},
		"with other input": {forged(t, log, func(e *spec.Event) bool {
			if e.Kind == spec.EventToolAsked {
				e.Digest = "sha256:0"
			}
			return true
		}), "was made otherwise than it was let through"},
		"with another tool": {forged(t, log, func(e *spec.Event) bool {
			if e.Kind == spec.EventToolAsked {
				e.Data = bytes.ReplaceAll(e.Data, []byte("echo"), []byte("bash"))
			}
			return true
		}), "was made otherwise than it was let through"},
		"by another task": {forged(t, log, func(e *spec.Event) bool {
			if e.Kind == spec.EventToolAsked {
				e.TaskID = "ta2"
			}
			return true
		}), "was made otherwise than it was let through"},
		"a result of nothing":             {forged(t, log, without(spec.EventToolAsked, a)), "call " + a + " has a result and was not made"},
		"two results":                     {spliced(t, log, spec.EventToolResult, a, result), "call " + a + " has two results"},
		"behind a stop that is gone over": {spliced(t, log, spec.EventToolJudged, c+"/judge", append(append([]spec.Event{stop}, of(c)...), eventOf(t, log, spec.EventRunStart, "run_test"))...), "call " + c + " was made, and nothing had let it through"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, plan := range []*spec.Plan{nil, s.plan} {
				if v := gateOn(t, plan, res.Bytes, f.log); v.Pass || v.ExitCode != ExitGovernance || v.Chained || !told(v, f.want) {
					t.Errorf("%+v", v.Reasons)
				}
			}
		})
	}
}

// A call that may have taken effect is made again where a person said so, about that call, and once.
func TestCallsMadeAgainWereApproved(t *testing.T) {
	const id = "ta1/1/call/1"
	s := newShift(t, team(1, 1), texts("a"))
	for s.log.left = 1; ; s.log.left++ { // until the record of the call is the last one
		s.log.buf.Reset()
		kept := s.log.left
		if _, err := s.try(); err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Split(bytes.TrimSpace(s.log.buf.Bytes()), []byte("\n")); bytes.Contains(lines[len(lines)-1], []byte(`"kind":"tool/call"`)) {
			break
		}
		s.log.left = kept
	}
	s.log.left = -1
	if r := s.attempt().Receipt; r.Status.Code != spec.StatusSuspended || r.PendingApprovals[0].Boundary != id+"/again/1" {
		t.Fatalf("%+v %+v", r.Status, r.PendingApprovals)
	}
	s.says(id+"/again/1", spec.VerdictApprove, "")
	res := s.attempt()
	log := s.log.buf.Bytes()
	if !res.Receipt.Success || len(res.Receipt.ApprovalDecisions) != 1 {
		t.Fatalf("%+v", res.Receipt.Status)
	}
	if v := sealedAgain(t, s.plan, res.Bytes, func(*spec.Receipt) {}); !v.Pass {
		t.Fatalf("without the log: %+v", v.Reasons)
	}
	made, ended := eventOf(t, log, spec.EventToolAsked, id+"/again/1"), eventOf(t, log, spec.EventToolResult, id+"/again/1")
	second := func(id string) []spec.Event {
		m, e := made, ended
		m.ID, e.ID = id, id
		return []spec.Event{m, e}
	}
	for name, f := range map[string]struct {
		log  []byte
		want string
	}{
		"a second time":          {spliced(t, log, spec.EventToolResult, id+"/again/1", second(id+"/again/2")...), "call " + id + "/again/2 was made"},
		"the same twice":         {spliced(t, log, spec.EventToolResult, id+"/again/1", made), "call " + id + "/again/1 was made"},
		"before anybody said so": {spliced(t, log, spec.EventApprovalAsked, id+"/again/1/approval", made), "call " + id + "/again/1 was made"},
		"though its end is known": {forged(t, log, func(e *spec.Event) bool {
			if e.Kind == spec.EventToolResult && e.ID == id {
				e.Data = bytes.ReplaceAll(e.Data, []byte(`"unsure":true,`), nil)
			}
			return true
		}), "call " + id + "/again/1 was made"},
	} {
		if v := gateOn(t, nil, res.Bytes, f.log); v.Pass || v.ExitCode != ExitGovernance || !told(v, f.want) {
			t.Errorf("%s: %+v", name, v.Reasons)
		}
	}
	for name, edit := range map[string]func(*spec.Receipt){
		"of the first attempt": func(r *spec.Receipt) { r.Attempt = 1 },
		"of a turn that was not": func(r *spec.Receipt) {
			a := &r.ApprovalDecisions[0]
			a.Boundary = "ta1/7/call/1/again/1"
			identified(r, a)
		},
		"behind one that was not": func(r *spec.Receipt) { a := &r.ApprovalDecisions[0]; a.Boundary = id + "/again/2"; identified(r, a) },
		"of more calls than allowed": func(r *spec.Receipt) {
			a := r.ApprovalDecisions[0]
			a.Boundary = "ta1/1/call/2/again/1"
			identified(r, &a)
			r.ApprovalDecisions = append(r.ApprovalDecisions, a)
		},
	} {
		if v := sealedAgain(t, s.plan, res.Bytes, edit); v.Pass || !told(v, "cannot have been in flight") {
			t.Errorf("%s: %+v", name, v.Reasons)
		}
	}
}
