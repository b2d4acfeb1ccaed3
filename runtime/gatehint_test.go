package runtime

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

// A verdict says what it compared the receipt with, and for each way evidence can break what to do about it.
func TestVerdictSaysWhatWasCompared(t *testing.T) {
	plan := governed(t)
	good := evidenceOf(t, plan, says("done"))
	other := governed(t)
	other.Goal = "something else"
	if err := SealPlan(other); err != nil {
		t.Fatal(err)
	}
	now := func(digest string, err error) func(string) (string, error) {
		return func(string) (string, error) { return digest, err }
	}
	log := func() *bytes.Reader { return bytes.NewReader(good.log) }
	type said struct{ Yardstick, Tree, Run, Hint string }
	for _, c := range []struct {
		name string
		v    *GateVerdict
		want said
	}{
		{"the receipt cannot be read", NoReceipt("no such file"), said{YardstickNotCompared, TreeNotChecked, "", hintPath}},
		{"the receipt was changed", Gate(bytes.Replace(good.receipt, []byte(`"a2"`), []byte(`"a3"`), 1), GateOptions{Plan: plan, Log: log()}),
			said{YardstickNotCompared, TreeNotChecked, "", hintReceipt}},
		{"the receipt was changed and sealed again", Gate(forge(t, good.receipt, func(r *spec.Receipt) { r.Denied = 3 }), GateOptions{Plan: plan, Log: log()}),
			said{YardstickMatched, TreeNotChecked, "run_test", hintReceipt}},
		{"the log is missing", Gate(good.receipt, GateOptions{Plan: plan}), said{YardstickMatched, TreeNotChecked, "run_test", hintNoLog}},
		{"the log is damaged", Gate(good.receipt, GateOptions{Plan: plan, Log: bytes.NewReader(good.log[:len(good.log)-20])}),
			said{YardstickMatched, TreeNotChecked, "run_test", hintLog}},
		{"no plan", Gate(good.receipt, GateOptions{Log: log(), Unbound: true}), said{YardstickNone, TreeNotChecked, "run_test", ""}},
		{"another plan", Gate(good.receipt, GateOptions{Log: log(), Plan: other}), said{YardstickDiffers, TreeNotChecked, "run_test", hintPlan}},
		{"the files are the same", Gate(good.receipt, GateOptions{Log: log(), Plan: plan, Tree: now("sha256:same", nil)}),
			said{YardstickMatched, TreeChecked, "run_test", ""}},
		{"the files differ", Gate(good.receipt, GateOptions{Log: log(), Plan: plan, Tree: now("sha256:changed", nil)}),
			said{YardstickMatched, TreeDiffers, "run_test", hintTree}},
		{"the files cannot be read", Gate(good.receipt, GateOptions{Log: log(), Plan: plan, Tree: now("", errors.New("permission denied"))}),
			said{YardstickMatched, TreeDiffers, "run_test", hintTree}},
		{"the folders were not looked at", Gate(forge(t, good.receipt, func(r *spec.Receipt) { r.Trees = nil }),
			GateOptions{NoLog: true, Plan: plan, Tree: now("sha256:same", nil)}), said{YardstickMatched, TreeNothing, "run_test", hintFolders}},
		{"a signature is required", Gate(good.receipt, GateOptions{Log: log(), Plan: plan, RequireSigned: true}),
			said{YardstickMatched, TreeNotChecked, "run_test", hintSigned}},
		{"the signature does not hold", Gate(good.receipt, GateOptions{Log: log(), Plan: plan, Signature: signedBy("", errors.New("no"))}),
			said{YardstickMatched, TreeNotChecked, "run_test", hintSigned}},
		{"the artifact is another", Gate(good.receipt, GateOptions{Log: log(), Plan: plan, Artifact: func(*spec.Receipt) error { return errors.New("no") }}),
			said{YardstickMatched, TreeNotChecked, "run_test", hintShipped}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := said{c.v.Yardstick, c.v.Tree, c.v.RunID, ""}
			if len(c.v.Reasons) > 0 {
				got.Hint = c.v.Reasons[0].Hint
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s%v", diff, c.v.Reasons)
			}
		})
	}
}

// A log is held against its receipt alone, without a yardstick.
func TestChained(t *testing.T) {
	plan := governed(t)
	good, other := evidenceOf(t, plan, says("done")), evidenceOf(t, plan, says("not yet"))
	r, err := ReadReceipt(good.receipt)
	if err != nil {
		t.Fatal(err)
	}
	if err := Chained(r, bytes.NewReader(good.log)); err != nil {
		t.Error(err)
	}
	for name, log := range map[string][]byte{"another run's": other.log, "cut short": good.log[:len(good.log)-20], "empty": nil} {
		if Chained(r, bytes.NewReader(log)) == nil {
			t.Errorf("a log that is %s agrees", name)
		}
	}
}
