package policies

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

// records makes task records from "name:status:start" words; a depends on b is "a<b".
func records(words string, deps ...string) []spec.TaskRecord {
	var out []spec.TaskRecord
	for _, w := range strings.Fields(words) {
		f := strings.Split(w, ":")
		t := spec.TaskRecord{ID: "t-" + f[0], Assignee: f[0], Status: f[1], Provider: "p", Models: []string{"m-" + f[0]}}
		if len(f) > 2 {
			t.StartedAt = fmt.Sprintf("2026-01-01T00:00:%s.000Z", f[2])
		}
		for _, d := range deps {
			if a, b, _ := strings.Cut(d, "<"); a == f[0] {
				t.DependsOn = append(t.DependsOn, "t-"+b)
			}
		}
		out = append(out, t)
	}
	return out
}

func TestConclude(t *testing.T) {
	required := func(roles, order string) *spec.Governance {
		g := &spec.Governance{GovernanceIntent: "required", RequiredRoles: strings.Fields(roles)}
		if order != "" {
			g.RequiredOrder = strings.Fields(order)
		}
		return g
	}
	parallel := required("a b", "")
	parallel.Independence.Parallel = true
	different := required("a b", "a b")
	different.Independence.DifferentModel = true
	preferred := required("a b", "a b")
	preferred.GovernanceIntent = "preferred"
	same := records("a:completed:01 b:completed:02", "b<a")
	same[0].Models, same[1].Models = []string{"m"}, []string{"m"}
	twoNames := records("a:completed:01 b:completed:02", "b<a")
	twoNames[0].Provider, twoNames[0].Models, twoNames[1].Models = "other", []string{"m"}, []string{"m"}
	noModel := records("a:completed:01 b:completed:02", "b<a")
	noModel[1].Models = nil
	for _, c := range []struct {
		name    string
		g       *spec.Governance
		tasks   []spec.TaskRecord
		source  string
		status  string
		trees   []spec.Tree
		watched map[string]string
		want    string
	}{
		{name: "G14 undeclared", tasks: records("a:completed:01"), want: "not-applicable"},
		{name: "G14 preferred", g: preferred, tasks: records("a:failed:01"), want: "not-applicable"},
		{name: "G15 in order", g: required("a b", "a b"), tasks: records("a:completed:01 b:completed:02", "b<a"), want: "satisfied"},
		{name: "G15 one role", g: required("a", ""), tasks: records("a:completed:01"), want: "satisfied"},
		{name: "G15 a role that did not run", g: required("a b", "a b"), tasks: records("a:completed:01"), want: "unsatisfied role-missing independence"},
		{name: "D3 a failed role does not count", g: required("a b", "a b"), tasks: records("a:completed:01 b:failed:02", "b<a"), want: "unsatisfied role-failed independence"},
		{name: "D3 a skipped role never started", g: required("a b", "a b"), tasks: records("a:failed:01 b:skipped", "b<a"), want: "unsatisfied role-failed role-missing independence"},
		{name: "G15 wrong order of start", g: required("a b", "b a"), tasks: records("a:completed:01 b:completed:02", "b<a"), want: "unsatisfied order"},
		{name: "G15 no path between neighbours", g: required("a b", "a b"), tasks: records("a:completed:01 b:completed:02"), want: "unsatisfied order independence"},
		{name: "G15 intermediates are allowed", g: required("a b", "a b"), tasks: records("a:completed:01 x:completed:02 b:completed:03", "x<a", "b<x"), want: "satisfied"},
		{name: "R8 parallel roles without a declaration", g: required("a b", ""), tasks: records("a:completed:01 b:completed:01"), want: "unsatisfied independence"},
		{name: "D1 parallel declared", g: parallel, tasks: records("a:completed:01 b:completed:01"), want: "satisfied"},
		{name: "D1 parallel roles that saw each other", g: parallel, tasks: records("a:completed:01 b:completed:02", "b<a"), want: "unsatisfied independence"},
		{name: "differentModel", g: different, tasks: same, want: "unsatisfied independence"},
		{name: "differentModel kept", g: different, tasks: records("a:completed:01 b:completed:02", "b<a"), want: "satisfied"},
		{name: "no roles at all", g: required("", ""), tasks: records("a:completed:01"), want: "unsatisfied role-missing"},
		{name: "no tasks at all", g: required("a", ""), want: "unsatisfied role-missing"},
		{name: "G16 overridden comes first", g: required("a b", "a b"), tasks: records("a:completed:01"), source: "override", status: "budget_exhausted",
			want: "unsatisfied overridden budget role-missing independence"},
		{name: "G17 an override that meets the floor", g: required("a", ""), tasks: records("a:completed:01"), source: "override", want: "satisfied"},
		{name: "G19 budget", g: required("a b", "a b"), tasks: records("a:completed:01 b:skipped", "b<a"), status: "budget_exhausted",
			want: "unsatisfied budget role-missing independence"},
		{name: "G19 crossed by the last role", g: required("a b", "a b"), tasks: records("a:completed:01 b:completed:02", "b<a"), status: "budget_exhausted", want: "satisfied"},
		{name: "cancelled", g: required("a", ""), tasks: records("a:failed:01"), status: "cancelled", want: "unsatisfied cancelled role-failed"},
		{name: "N19 files changed behind the reviewer", g: required("a", ""), tasks: records("a:completed:01"),
			trees: []spec.Tree{{Before: "t-a", Cwd: ".", Digest: "sha256:1"}, {Cwd: ".", Digest: "sha256:2"}}, want: "unsatisfied integrity"},
		{name: "N19 a later writer explains it", g: required("a", ""), tasks: records("a:completed:01"),
			trees: []spec.Tree{{Before: "t-a", Cwd: ".", Digest: "sha256:1", LaterWriter: true}, {Cwd: ".", Digest: "sha256:2"}}, want: "satisfied"},
		{name: "N19 unchanged", g: required("a", ""), tasks: records("a:completed:01"),
			trees: []spec.Tree{{Before: "t-a", Cwd: ".", Digest: "sha256:1"}, {Cwd: ".", Digest: "sha256:1"}, {Cwd: "x", Digest: "sha256:2"}}, want: "satisfied"},
		{name: "N19 a folder that could not be looked at", g: required("a", ""), tasks: records("a:completed:01"),
			trees: []spec.Tree{{Before: "t-a", Cwd: ".", Digest: "unknown: too many files"}, {Cwd: ".", Digest: "unknown: too many files"}},
			want:  "unsatisfied integrity integrity"},
		{name: "N19 a folder that could not be looked at in the end is not called changed", g: required("a", ""), tasks: records("a:completed:01"),
			trees: []spec.Tree{{Before: "t-a", Cwd: ".", Digest: "sha256:1"}, {Cwd: ".", Digest: "unknown: cancelled"}}, want: "unsatisfied integrity"},
		{name: "N19 a folder that was not looked at", g: required("a", ""), tasks: records("a:completed:01"), watched: map[string]string{"t-a": "."},
			want: "unsatisfied integrity"},
		{name: "N19 looked at before and not after", g: required("a", ""), tasks: records("a:completed:01"), watched: map[string]string{"t-a": "."},
			trees: []spec.Tree{{Before: "t-a", Cwd: ".", Digest: "sha256:1"}}, want: "unsatisfied integrity"},
		{name: "N19 another folder was looked at", g: required("a", ""), tasks: records("a:completed:01"), watched: map[string]string{"t-a": "."},
			trees: []spec.Tree{{Before: "t-a", Cwd: "x", Digest: "sha256:1"}, {Cwd: "x", Digest: "sha256:1"}, {Cwd: ".", Digest: "sha256:1"}}, want: "unsatisfied integrity"},
		{name: "differentModel, one server under two names", g: different, tasks: twoNames, want: "unsatisfied independence"},
		{name: "differentModel, no model named", g: different, tasks: noModel, want: "unsatisfied independence"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &spec.Receipt{Tasks: c.tasks, Trees: c.trees, Status: spec.Status{Code: c.status}}
			r.Topology = Topology(c.tasks, c.g, spec.RoutingDecision{Source: c.source})
			// a receipt's own words are never read
			r.GovernanceConclusion, r.GovernanceReason, r.Governance = "satisfied", "", nil
			got := Conclude(c.g, r, c.watched)
			words := []string{got.Conclusion}
			for _, reason := range got.Reasons {
				words = append(words, reason.Code)
			}
			if diff := cmp.Diff(c.want, strings.Join(words, " ")); diff != "" {
				t.Errorf("%s\n%v", diff, got.Reasons)
			}
		})
	}
}

func TestTopology(t *testing.T) {
	got := Topology(records("b:completed:05 a:completed:02 c:failed:03 d:skipped", "b<a", "c<a", "d<c"), nil, spec.RoutingDecision{Mode: "team"})
	want := spec.Topology{Mode: "multi-agent", RolesExecuted: []string{"b", "a"}, RolesFailed: []string{"c"}, RolesNotStarted: []string{"d"},
		WorkerInstancesExecuted: []string{"b", "a"}, ExecutionOrder: []string{"a", "b"}, DependencyEdges: []spec.Edge{{From: "a", To: "b"}},
		IndependentRolesCount: 2, IndependentReviewOccurred: true, RoutingDecision: spec.RoutingDecision{Mode: "team"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What depends on a task can start within the same millisecond, and may stand before it in the file.
func TestOrderWithinAMillisecond(t *testing.T) {
	g := &spec.Governance{GovernanceIntent: "required", RequiredRoles: []string{"w", "c"}, RequiredOrder: []string{"w", "c"}}
	r := &spec.Receipt{Tasks: records("c:completed:01 x:completed:01 w:completed:01", "c<w"), Status: spec.Status{Code: spec.StatusOK}}
	r.Topology = Topology(r.Tasks, g, spec.RoutingDecision{})
	if diff := cmp.Diff([]string{"w", "c", "x"}, r.ExecutionOrder); diff != "" {
		t.Error(diff)
	}
	if c := Conclude(g, r, nil); c.Conclusion != spec.Satisfied {
		t.Errorf("%v", c.Reasons)
	}
}

func TestReleaseConclusion(t *testing.T) {
	want := []spec.Requirement{{Name: "x"}, {Name: "y"}}
	for name, c := range map[string]struct {
		got  []spec.Released
		want string
	}{
		"all held":      {[]spec.Released{{Name: "x", Outcome: "held"}, {Name: "y", Outcome: "held"}}, "satisfied"},
		"one failed":    {[]spec.Released{{Name: "x", Outcome: "held"}, {Name: "y", Outcome: "failed"}}, "unsatisfied"},
		"one broke":     {[]spec.Released{{Name: "x", Outcome: "held"}, {Name: "y", Outcome: "error"}}, "unsatisfied"},
		"one is absent": {[]spec.Released{{Name: "x", Outcome: "held"}}, "unsatisfied"},
		"none":          {nil, "unsatisfied"},
	} {
		if got := ReleaseConclusion(c.got, want); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := ReleaseConclusion(nil, nil); got != "not-applicable" {
		t.Error(got)
	}
}

// What a role had others do was answered by their models, for it.
func TestDelegatesModelsAreTheRoles(t *testing.T) {
	g := &spec.Governance{GovernanceIntent: "required", RequiredRoles: []string{"a", "b"}, RequiredOrder: []string{"a", "b"}, Independence: spec.Independence{DifferentModel: true}}
	for _, c := range []struct {
		name, id, status string
		models           []string
		want             string
	}{
		{"another model", "t-a/1/call/1", spec.TaskCompleted, []string{"m-h"}, ""},
		{"the model of the other role", "t-a/1/call/1", spec.TaskCompleted, []string{"m-b"}, `"b" and "a" were both answered by m-b`},
		{"further down", "t-a/1/call/1/1/call/2", spec.TaskCompleted, []string{"m-b"}, `"b" and "a" were both answered by m-b`},
		{"that of its own role", "t-b/1/call/1", spec.TaskCompleted, []string{"m-b"}, ""},
		{"nobody knows which", "t-a/1/call/1", spec.TaskCompleted, nil, `no response to "h" named its model`},
		{"it came to nothing", "t-a/1/call/1", spec.TaskFailed, []string{"m-b"}, ""},
	} {
		r := &spec.Receipt{Tasks: records("a:completed:01 b:completed:02", "b<a")}
		r.Topology = Topology(r.Tasks, g, spec.RoutingDecision{})
		r.Delegations = []spec.DelegationRecord{{TaskRecord: spec.TaskRecord{ID: c.id, Assignee: "h", Status: c.status, Models: c.models, StartedAt: "2026-01-01T00:00:01.000Z"}}}
		got := ""
		for _, reason := range Conclude(g, r, nil).Reasons {
			got += reason.Message
		}
		if got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
