package loader

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/policies/library"
	"github.com/open-multi-agent/oma/spec"
)

const policyHead = "apiVersion: oma/v1\nkind: Policy\nname: "

// N3: policies from outside the tree are read from wherever they are, each once, and a team stands under them.
func TestAbove(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/etc/acme.yaml", policyHead+"acme\nlimits: {env: []}\n")
	write(t, dir+"/copy.yaml", policyHead+"acme\r\nlimits: {env: []}\r\n")
	write(t, dir+"/site.yaml", policyHead+"site\nrules: [{name: r, when: 'true', action: deny}]\n")
	p, ds := Above([]string{dir + "/etc/acme.yaml", dir + "/site.yaml", dir + "/copy.yaml", dir + "/site.yaml"})
	if len(ds) > 0 {
		t.Fatal(text(ds))
	}
	var names []string
	for _, f := range p.Files {
		names = append(names, f.Policy.Name)
	}
	if diff := cmp.Diff([]string{"acme", "site"}, names); diff != "" {
		t.Fatal(diff)
	}
	if p.Files[0].Digest == "" || p.Files[0].Text == "" || p.Files[0].Policy.Limits == nil {
		t.Errorf("got %+v", p.Files[0])
	}

	l, ds := TeamBytes("team.yaml", dir, []byte(head+"agents: [{name: a, systemPrompt: s}]\n"))
	if len(ds) > 0 {
		t.Fatal(text(ds))
	}
	l.Under(p)
	if len(l.Bundle.Above) != 2 {
		t.Fatalf("%d policies above", len(l.Bundle.Above))
	}
	found := spec.Diagnostics{{Code: "some-code", File: p.Files[1].Path, Path: "rules[0].when", Message: "m"}}
	l.Sources.Place(found)
	if got := found[0]; got.File != dir+"/site.yaml" || got.Pos != (spec.Pos{Line: 4, Col: 25}) {
		t.Errorf("placed at %s %v", got.File, got.Pos)
	}
	l.Under(nil)
	if len(l.Bundle.Above) != 2 {
		t.Error("no policies took the others away")
	}
}

// A team that names a file as an operator does, or as a pack is called, means its own.
func TestAboveIsNoneOfTheTeams(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, "p.yaml", policyHead+"outside\nrules: [{name: r, when: 'true', action: deny}]\n")
	write(t, "teams/p.yaml", policyHead+"inside\nrules:\n  - {name: s, when: 'true', action: deny}\n")
	write(t, "teams/pack read-only", policyHead+"guise\nrules: [{name: u, when: 'true', action: warn}]\n")
	write(t, "teams/team.yaml", head+"gates: {packs: [read-only], files: [p.yaml, pack read-only]}\nagents: [{name: a, systemPrompt: s}]\n")
	p, ds := Above([]string{"p.yaml"})
	l, more := Team("teams/team.yaml")
	if ds = append(ds, more...); len(ds) > 0 {
		t.Fatal(text(ds))
	}
	l.Under(p)
	b := l.Bundle
	if b.Above[0].Policy.Name != "outside" || b.Policies["p.yaml"].Policy.Name != "inside" || b.Packs["read-only"].Policy.Name != "read-only" {
		t.Errorf("got %+v", b)
	}
	want := []string{"p.yaml", "teams/p.yaml", "pack read-only", "teams/pack read-only"}
	found := spec.Diagnostics{}
	for _, file := range []string{b.Above[0].Path, "p.yaml", b.Packs["read-only"].Path, "pack read-only"} {
		found = append(found, spec.Diagnostic{File: file, Path: "rules[0].name"})
	}
	l.Sources.Place(found)
	for i, d := range found {
		if d.File != want[i] || d.Pos.Line == 0 {
			t.Errorf("placed at %s:%d, want %s", d.File, d.Pos.Line, want[i])
		}
	}
}

// What cannot be read or is no policy is a problem of the file as it was given.
func TestAboveProblems(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, "a.yaml", policyHead+"acme\nlimits: {env: []}\n")
	write(t, "b.yaml", policyHead+"acme\nlimits: {env: [A]}\n")
	write(t, "empty.yaml", policyHead+"e\n")
	write(t, "team.yaml", head+"agents: [{name: a}]\n")
	for _, c := range []struct {
		paths []string
		want  string
	}{
		{[]string{"gone.yaml"}, `gone.yaml: no file "gone.yaml" [file-missing]`},
		{[]string{""}, `a policy without a name [file-missing]`},
		{[]string{"a.yaml", ""}, `a policy without a name [file-missing]`},
		{[]string{"."}, `.: "." is a folder, not a file [file-not-regular]`},
		{[]string{"team.yaml"}, `team.yaml:2:7: kind is "Team", want Policy [wrong-kind]`},
		{[]string{"empty.yaml"}, `empty.yaml:1:1: the policy has neither rules nor limits [policy-empty]`},
		{[]string{"a.yaml", "b.yaml"}, `b.yaml:3:7: policy "acme" is also the name of "a.yaml" [policy-name-taken]`},
	} {
		_, ds := Above(c.paths)
		first, _, _ := strings.Cut(text(ds), "\n")
		if first != c.want || !ds.HasErrors(false) {
			t.Errorf("%v: got %q, want %q", c.paths, first, c.want)
		}
	}
}

// Every pack is a policy of its own name, without a problem.
func TestPacks(t *testing.T) {
	names := library.Names()
	if !slices.Contains(names, "read-only") {
		t.Fatalf("packs: %v", names)
	}
	for _, name := range names {
		pf, ds, ok := Pack(name)
		if !ok || len(ds) > 0 || pf.Policy.Name != name || pf.Digest == "" || pf.Policy.Limits != nil || len(pf.Policy.Rules) == 0 {
			t.Errorf("pack %s: %v %+v\n%s", name, ok, pf.Policy, text(ds))
		}
	}
	if _, _, ok := Pack("nothing"); ok {
		t.Error("there is a pack called nothing")
	}
}

// A pack that several agents turn on is read once.
func TestPackOfAgents(t *testing.T) {
	l, ds := TeamBytes("team.yaml", t.TempDir(), []byte(head+`
agents:
  - {name: a, systemPrompt: s, gates: {packs: [read-only]}}
  - {name: b, systemPrompt: s, gates: {packs: [read-only]}}
`))
	if len(ds) > 0 {
		t.Fatal(text(ds))
	}
	if len(l.Bundle.Packs) != 1 || len(l.Bundle.Packs["read-only"].Policy.Rules) == 0 {
		t.Errorf("got %+v", l.Bundle.Packs)
	}
}

func TestPolicyTestFile(t *testing.T) {
	l, ds := Any("../testdata/ok/policy-test.yaml")
	if len(ds) > 0 {
		t.Fatal(text(ds))
	}
	if l.Kind != spec.KindPolicyTest || l.PolicyTest == nil || l.PolicyTest.Digest == "" || l.PolicyTest.PolicyTest.Cases[0].Expect.Action != "deny" {
		t.Errorf("got %+v", l)
	}
	twice := "apiVersion: oma/v1\nkind: PolicyTest\nteam: t.yaml\ncases:\n" + strings.Repeat("  - {name: c, agentName: a, toolName: bash, expect: {action: deny}}\n", 2)
	_, ds = Read("test.yaml", []byte(twice), "")
	if got := text(ds); !strings.HasPrefix(got, `test.yaml:6:12: case "c" is already declared on line 5 [duplicate-name]`) {
		t.Error(got)
	}
}
