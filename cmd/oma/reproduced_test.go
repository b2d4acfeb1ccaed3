package main

import (
	"encoding/json"
	"strconv"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/open-multi-agent/oma/spec"
)

// reproduced takes the line that a denial on a receipt carries through a shell, and wants the same decision of it:
// reproduced RECEIPT SEQ.
func reproduced(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: reproduced RECEIPT SEQ")
	}
	seq, err := strconv.Atoi(args[1])
	ts.Check(err)
	var r spec.Receipt
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &r))
	if seq < 1 || seq > len(r.Decisions) || r.Decisions[seq-1].Reproduce == "" {
		ts.Fatalf("decision %d of %d has no line", seq, len(r.Decisions))
	}
	d := r.Decisions[seq-1]
	if err := ts.Exec("sh", "-c", d.Reproduce+" -o json"); err == nil {
		ts.Fatalf("%s\nlets the call run", d.Reproduce)
	}
	var again checkResult
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &again))
	type decision struct {
		Role, Task, Digest, Reason, Action, Outcome string
		Rules                                       []spec.RuleOutcome
	}
	want := decision{"", d.TaskID, d.InputDigest, d.Reason, d.GateAction, d.GateOutcome, d.Rules}
	got := decision{"", again.TaskID, again.Digest, again.Reason, again.GateAction, again.GateOutcome, again.Rules}
	if diff := cmp.Diff(want, got); diff != "" {
		ts.Fatalf("%s\ngives another decision (-run +again):\n%s", d.Reproduce, diff)
	}
}
