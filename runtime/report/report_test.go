package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

var update = flag.Bool("update", false, "rewrite the expected renderings in testdata")

// hostile does in one text what a model may try: terminal, log, XML, HTML, Markdown, and a forged line.
const hostile = "\x1b[2J\u202e:\nPASS  exit code 0\r\n::add-mask::a\n \ufe0f::error::b\u0085##[add-mask]c #\u034f#[warning]d ##vso[task.complete]e " +
	"</failure>]]><script>alert(1)</script> | `x` [y](http://z) @all 100%,\x00\xff\u2028\U000e0041"

func task(id, role, status string, started string) spec.TaskRecord {
	t := spec.TaskRecord{ID: id, Title: id, Assignee: role, Role: role, Status: status, StartedAt: started, Cost: new(spec.USD), Provider: "p"}
	if started != "" {
		cost := spec.Dollar / 40
		t.Tokens, t.Cost, t.DurationMs, t.Turns, t.ModelCalls, t.StopReason = spec.Usage{Input: 1000, Output: 200}, &cost, 6250, 2, 2, spec.StopCompleted
	}
	return t
}

// ran is a receipt of two required roles in order, and the plan it is of. change is made before anything is derived.
func ran(t testing.TB, change func(*spec.Receipt)) ([]byte, *spec.Plan) {
	t.Helper()
	r := &spec.Receipt{
		Envelope: spec.Envelope{APIVersion: spec.APIVersion, Kind: spec.KindReceipt}, ID: "r:execution-receipt", RunID: "r", Attempt: 1,
		CreatedAt: "2026-01-02T03:04:17.000Z", Team: spec.PlanTeam{Name: "t"}, Plan: spec.PlanRef{Digest: "sha256:00112233445566778899aabbccddeeff"}, Inputs: []spec.PlanInput{},
		Success: true, Status: spec.Status{Code: spec.StatusOK}, ExitCodes: []int{0}, Decisions: []spec.DecisionRecord{}, Enforcement: []spec.Control{},
		Governance: &spec.Governance{GovernanceIntent: spec.IntentRequired, RequiredRoles: []string{"writer", "reviewer"}, RequiredOrder: []string{"writer", "reviewer"}},
		DurationMs: 12500,
		Tasks: []spec.TaskRecord{task("t1", "writer", spec.TaskCompleted, "2026-01-02T03:04:05.000Z"),
			task("t2", "reviewer", spec.TaskCompleted, "2026-01-02T03:04:11.000Z")},
	}
	r.Tasks[1].DependsOn = []string{"t1"}
	change(r)
	var cost spec.USD
	for _, t := range r.Tasks {
		r.TotalTokens = r.TotalTokens.Add(t.Tokens)
		if t.Cost != nil {
			cost += *t.Cost
		}
	}
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if start, err := time.Parse(time.RFC3339Nano, t.StartedAt); err == nil {
			t.EndedAt = start.Add(time.Duration(t.DurationMs) * time.Millisecond).Format("2006-01-02T15:04:05.000Z")
		}
		r.TaskDurationMs += t.DurationMs
	}
	r.Cost, r.Budgets.Used = &cost, spec.BudgetUsed{Tokens: r.TotalTokens.Total(), Cost: &cost, DurationMs: r.DurationMs}
	r.Topology = policies.Topology(r.Tasks, r.Governance, r.RoutingDecision)
	r.Partial = len(r.RolesExecuted) == 0
	r.ReleaseConclusion = spec.NotApplicable
	if len(r.Release) > 0 {
		r.ReleaseConclusion = spec.Unsatisfied
	}
	c := policies.Conclude(r.Governance, r, nil)
	r.GovernanceConclusion, r.GovernanceDetail = c.Conclusion, c.Reasons
	if !r.Success || c.Conclusion == spec.Unsatisfied {
		r.ExitCodes = []int{4, 9, 1}
	}
	r.Rules = []spec.RuleTotal{}
	data, err := runtime.SealReceipt(r)
	if err != nil {
		t.Fatal(err)
	}
	p := &spec.Plan{Digest: r.Plan.Digest, Team: r.Team, Governance: r.Governance, RoutingDecision: r.RoutingDecision}
	free, price := spec.USD(0), 125*spec.Dollar
	p.Providers = map[string]spec.PlanProvider{"p": {Provider: spec.Provider{Models: map[string]spec.ModelPrice{"m": {InputPer1M: &free, OutputPer1M: &price}}}}}
	for _, task := range r.Tasks {
		p.Agents = append(p.Agents, spec.PlanAgent{Name: task.Assignee, Provider: "p", Model: "m"})
		p.Tasks = append(p.Tasks, spec.PlanTask{ID: task.ID, Title: task.Title, Assignee: task.Assignee, Role: task.Role, DependsOn: task.DependsOn})
	}
	return data, p
}

func failing(said string) func(*spec.Receipt) {
	return func(r *spec.Receipt) {
		r.Success, r.Status = false, spec.Status{Code: spec.StatusCancelled, Message: said}
		r.Tasks[0].Status, r.Tasks[0].StopReason, r.Tasks[0].Cause = spec.TaskFailed, spec.StopMaxTurns, said
		r.Tasks[1] = task("t2", "reviewer", spec.TaskSkipped, "")
		r.Tasks[1].DependsOn = []string{"t1"}
		r.Release = []spec.Released{{Name: "approved", Outcome: "error", Reason: said}, {Name: "read", Outcome: "held"}}
		r.Tasks[0].ToolCalls.Refused = 1
		r.Decisions, r.Denied = []spec.DecisionRecord{{Seq: 1, TaskID: "t1", Agent: "writer", Decision: spec.Decision{Refused: "not-granted"}}}, 1
	}
}

func verdicts(t testing.TB) map[string]*runtime.GateVerdict {
	t.Helper()
	good, plan := ran(t, func(*spec.Receipt) {})
	bad, badPlan := ran(t, failing("the agent used all its turns"))
	nasty, nastyPlan := ran(t, failing(hostile))
	badPlan.Release = []spec.Requirement{{Name: "approved"}, {Name: "scored"}}
	nothing, nothingPlan := ran(t, func(r *spec.Receipt) { r.Governance = nil })
	preferred, preferredPlan := ran(t, func(r *spec.Receipt) {
		failing("it went wrong")(r)
		r.Governance.GovernanceIntent = spec.IntentPreferred
		r.Release = nil
	})
	return map[string]*runtime.GateVerdict{
		"pass":       runtime.Gate(good, runtime.GateOptions{NoLog: true, Plan: plan}),
		"vouched":    runtime.Gate(good, runtime.GateOptions{NoLog: true, Unbound: true}),
		"unbound":    runtime.Gate(good, runtime.GateOptions{NoLog: true}),
		"other-plan": runtime.Gate(good, runtime.GateOptions{NoLog: true, Plan: &spec.Plan{Digest: "sha256:ff", Governance: plan.Governance}}),
		"fail":       runtime.Gate(bad, runtime.GateOptions{NoLog: true, Plan: badPlan}),
		"hostile":    runtime.Gate(nasty, runtime.GateOptions{NoLog: true, Plan: nastyPlan}),
		"nothing":    runtime.Gate(nothing, runtime.GateOptions{NoLog: true, Plan: nothingPlan}),
		"preferred":  runtime.Gate(preferred, runtime.GateOptions{NoLog: true, Plan: preferredPlan, AllowNotApplicable: true}),
		"edited":     runtime.Gate(bytes.Replace(good, []byte("reviewer"), []byte("reviewed"), 1), runtime.GateOptions{NoLog: true, Plan: plan}),
		"signed": runtime.Gate(good, runtime.GateOptions{NoLog: true, Plan: plan, RequireSigned: true, Signature: signedBy("sha256:0123", nil),
			Artifact: func(*spec.Receipt) error { return nil }}),
		"forged": runtime.Gate(good, runtime.GateOptions{NoLog: true, Plan: plan, RequireSigned: true, Signature: signedBy("", errors.New("no signature is by the key")),
			Artifact: func(*spec.Receipt) error { return errors.New("it is another") }}),
		"missing": runtime.NoReceipt("the receipt cannot be read: no such file"),
	}
}

func signedBy(key string, err error) func([]byte) (string, error) {
	return func([]byte) (string, error) { return key, err }
}

func render(t testing.TB, f func(io.Writer, *runtime.GateVerdict) error, v *runtime.GateVerdict) string {
	t.Helper()
	var b bytes.Buffer
	if err := f(&b, v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func everyFormat() map[string]func(io.Writer, *runtime.GateVerdict) error {
	all := Formats()
	all["summary"] = Summary
	return all
}

func TestGolden(t *testing.T) {
	extension := map[string]string{"text": "txt", "json": "json", "junit": "xml", "github": "log", "summary": "md"}
	for name, v := range verdicts(t) {
		for format, f := range everyFormat() {
			t.Run(name+"/"+format, func(t *testing.T) {
				got := render(t, f, v)
				if again := render(t, f, v); again != got {
					t.Error("two renderings of one verdict differ")
				}
				path := filepath.Join("testdata", name+"."+extension[format])
				if *update {
					if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), got); diff != "" {
					t.Errorf("rendering (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// A CI system that reads only the XML must come to the gate's decision.
func TestJUnitDecidesAsTheGate(t *testing.T) {
	for name, v := range verdicts(t) {
		s := suite(t, render(t, Formats()["junit"], v))
		if (s.Failures == 0) != v.Pass {
			t.Errorf("%s: pass is %t with %d failures", name, v.Pass, s.Failures)
		}
		failures, skips := 0, 0
		text := ""
		for _, c := range s.Cases {
			if c.Failure != nil {
				failures++
				text += c.Failure.Text + "\n"
			}
			if c.Skipped != nil {
				skips++
			}
		}
		if diff := cmp.Diff([]int{s.Tests, s.Failures, s.Skipped, s.Errors}, []int{len(s.Cases), failures, skips, 0}); diff != "" {
			t.Errorf("%s: the counts are not those of the cases:\n%s", name, diff)
		}
		for _, r := range v.Reasons {
			if want := line(r.Code+": "+r.Message, 1024); !strings.Contains(text, want) {
				t.Errorf("%s: no case fails for %s", name, want)
			}
		}
	}
}

func suite(t testing.TB, doc string) testSuite {
	t.Helper()
	var s testSuites
	if err := xml.Unmarshal([]byte(doc), &s); err != nil {
		t.Fatalf("this is no XML: %v\n%s", err, doc)
	}
	return s.Suite
}

func TestUnboundIsSaidPlainly(t *testing.T) {
	for name, v := range verdicts(t) {
		got := render(t, Formats()["text"], v)
		if strings.Contains(got, "\nyardstick    bound to") != v.Bound {
			t.Errorf("%s: bound is %t in\n%s", name, v.Bound, got)
		}
		if !strings.Contains(got, "\nintegrity    "+v.Integrity+":") {
			t.Errorf("%s: integrity %s is not said in\n%s", name, v.Integrity, got)
		}
		if first, _, _ := strings.Cut(got, " "); first != passOrFail(v) {
			t.Errorf("%s: pass is %t and the text begins with %s", name, v.Pass, first)
		}
	}
}

func TestWhatWasComparedIsSaid(t *testing.T) {
	all := verdicts(t)
	for name, want := range map[string]string{
		"pass": "bound to the plan from outside the receipt", "vouched": "unbound: the receipt vouches for itself",
		"unbound": "unbound: the receipt vouches for itself", "other-plan": "differs: the receipt is of another plan than the one given",
		"edited": "not compared: no receipt could be read", "missing": "not compared: no receipt could be read",
	} {
		if got := render(t, Formats()["text"], all[name]); !strings.Contains(got, "\nyardstick    "+want+"\n") {
			t.Errorf("%s: want %q in\n%s", name, want, got)
		}
	}
	for found, want := range map[string]string{
		runtime.TreeChecked: "the files are those of the run", runtime.TreeDiffers: "the files are not those of the run, or cannot be read",
		runtime.TreeNothing: "nothing to check: no required role has tools", runtime.TreeNotChecked: "not checked: give --tree",
	} {
		v := *all["pass"]
		v.Tree = found
		if got := render(t, Formats()["text"], &v); !strings.Contains(got, "\nrun          r of team t\n") || !strings.Contains(got, "\ntree         "+want+"\n") {
			t.Errorf("%s: want %q in\n%s", found, want, got)
		}
	}
}

func TestOneHintAReason(t *testing.T) {
	for name, want := range map[string]string{"missing": "check the path", "edited": "give the receipt exactly as the run wrote it", "other-plan": "give the same --team or --plan"} {
		if got := render(t, Formats()["text"], verdicts(t)[name]); !strings.Contains(got, "\nnext         "+want) {
			t.Errorf("%s: want %q in\n%s", name, want, got)
		}
	}
}

func TestGitHubCallsAFailureAnError(t *testing.T) {
	for name, v := range verdicts(t) {
		lines := strings.Split(strings.TrimSpace(render(t, Formats()["github"], v)), "\n")
		want := "::error title=oma gate%3A FAIL::"
		if v.Pass {
			want = "::notice title=oma gate%3A PASS::"
		}
		if last := lines[len(lines)-1]; !strings.HasPrefix(last, want) {
			t.Errorf("%s: want %s, found %s", name, want, last)
		}
	}
}

func TestEveryReasonHasItsOwnHint(t *testing.T) {
	seen := map[string]string{hint("a code of a later version"): "the default"}
	for _, code := range []string{"overridden", "budget", "cancelled", "rejected", "suspended", "role-failed", "role-missing", "order", "independence",
		"integrity", "unbound", "not-applicable", "release", "run-failed"} {
		if other, taken := seen[hint(code)]; taken {
			t.Errorf("%s has the hint of %s", code, other)
		}
		seen[hint(code)] = code
	}
}

func TestManyReasonsFit(t *testing.T) {
	v := verdicts(t)["fail"]
	for len(v.Reasons) < 40 {
		v.Reasons = append(v.Reasons, runtime.GateReason{Code: "integrity", Message: "one more"})
	}
	if n := strings.Count(render(t, Formats()["text"], v), "\n"); n > 24 {
		t.Errorf("text has %d lines, a screen has 24", n)
	}
	log := render(t, Formats()["github"], v)
	if n := strings.Count(log, "::error "); n != maxAnnotations || !strings.Contains(log, "::error title=oma gate::and 32 more reasons\n") {
		t.Errorf("GitHub shows %d errors of a step, there are %d:\n%s", maxAnnotations, n, log)
	}
}

func TestSummaryIsCut(t *testing.T) {
	v := verdicts(t)["fail"]
	for range 200_000 {
		v.Release = append(v.Release, spec.Released{Name: "<b>" + strings.Repeat("é\u202e", 700), Outcome: "failed", Reason: "no"})
	}
	got := render(t, Summary, v)
	if len(got) > maxSummary || len(got) < maxSummary-64<<10 || !strings.HasSuffix(got, "|\n"+cutNote) {
		t.Errorf("%d bytes, ending in %q", len(got), got[len(got)-200:])
	}
	if whole := render(t, Summary, verdicts(t)["fail"]); strings.Contains(whole, cutNote) {
		t.Error("a short summary says it was cut")
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestFailures(t *testing.T) {
	for format, f := range everyFormat() {
		if err := f(io.Discard, nil); err == nil {
			t.Errorf("%s: no verdict is no error", format)
		}
		if err := f(brokenPipe{}, verdicts(t)["pass"]); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s: a failed write gives %v", format, err)
		}
		if got := render(t, f, &runtime.GateVerdict{}); strings.Contains(got, "PASS") || format == "github" && !strings.HasPrefix(got, "::error ") {
			t.Errorf("%s: an empty verdict gives\n%s", format, got)
		}
	}
	if s := suite(t, render(t, Formats()["junit"], &runtime.GateVerdict{})); s.Failures == 0 {
		t.Error("junit: an empty verdict fails no case")
	}
}

func TestJSONRoundTrips(t *testing.T) {
	for name, v := range verdicts(t) {
		var back runtime.GateVerdict
		if err := json.Unmarshal([]byte(render(t, Formats()["json"], v)), &back); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := *v
		want.Receipt = nil // it is a document of its own
		if diff := cmp.Diff(want, back); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func BenchmarkText(b *testing.B) {
	v, f := verdicts(b)["fail"], Formats()["text"]
	for b.Loop() {
		if err := f(io.Discard, v); err != nil {
			b.Fatal(err)
		}
	}
}
