package main

import (
	"cmp"
	"context"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/loader"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

type policyTestFlags struct {
	teamFlags
	output      string
	minCoverage float64
}

func (a *app) policyTestCommand() *cobra.Command {
	var f policyTestFlags
	cmd := &cobra.Command{
		Use:   "test FILE...",
		Short: "Run the examples of rules and the cases of policy tests, with coverage",
		Long: "Test runs the examples of every rule of a team or a policy. Of a policy test it runs the cases, each through the\n" +
			"judgement of a run over the whole set of rules. Coverage counts, for every condition of every rule, whether it was\n" +
			"seen true and seen false. It ends 1 when an example or a case fails, or coverage is too low; 2 for a file that is\n" +
			"not valid.",
		Args: argsAtLeast(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.policyTest(cmd.Context(), args, &f) },
	}
	fl := cmd.Flags()
	fl.Float64Var(&f.minCoverage, "min-coverage", 0, "end 1 if the coverage of a file is below this percentage")
	fl.BoolVar(&f.strict, "strict", false, "take warnings for errors")
	fl.StringVarP(&f.output, "output", "o", "text", "text, json or yaml")
	f.addPolicy(cmd)
	return cmd
}

func (a *app) policyTest(ctx context.Context, files []string, f *policyTestFlags) error {
	if !(f.minCoverage >= 0 && f.minCoverage <= 100) { // NaN is neither
		return usage("--min-coverage %v is no percentage", f.minCoverage)
	}
	if !slices.Contains([]string{"text", "json", "yaml"}, f.output) {
		return usage("-o %q is not text, json or yaml", f.output)
	}
	r := policyTestResult{Passed: true, Files: []policyTestFile{}}
	for _, path := range files {
		one, err := a.testFile(ctx, path, f)
		if err != nil {
			return err
		}
		r.Files = append(r.Files, *one)
		r.Passed = r.Passed && one.Passed
	}
	if err := a.print(f.output, r, func(w io.Writer) { a.policyTestText(w, &r) }); err != nil || r.Passed {
		return err
	}
	return ended(runtime.ExitFailed)
}

// testFile tests one file of any kind that has rules. An error means that it is not valid.
func (a *app) testFile(ctx context.Context, path string, f *policyTestFlags) (*policyTestFile, error) {
	loaded, ds, err := a.loadAny(path)
	if err != nil {
		return nil, err
	}
	above := f.teamFlags
	var tested *runtime.PolicyTested
	sources := loaded.Sources
	switch {
	case loaded.Bundle != nil:
		tested, err = a.testTeam(ctx, path, loaded, &ds, nil, &above)
	case loaded.PolicyTest != nil:
		tested, sources, err = a.testCases(ctx, path, loaded, &ds, &above)
	case loaded.Policy != nil:
		var more spec.Diagnostics
		tested, more = runtime.TestPolicy(ctx, loaded.Policy.Policy, catalog().Tools)
		sources.Place(more)
		ds = append(ds, more...)
	case loaded.Cassette != nil:
		return nil, usage("%s is a cassette, which has no rules", path)
	}
	if err == nil {
		err = a.problems(ds, f.strict)
	}
	if err != nil {
		return nil, err
	}
	if tested == nil {
		return nil, usage("%s cannot be tested", path)
	}
	sources.Place(tested.Failed)
	return newTestFile(path, loaded.Kind, tested, sources, f.minCoverage), nil
}

// loadAny reads a document of whichever kind it says it is.
func (a *app) loadAny(path string) (*loader.Loaded, spec.Diagnostics, error) {
	if path != "-" {
		l, ds := loader.Any(path)
		return l, ds, nil
	}
	data, err := a.readInput("-")
	if err != nil {
		return nil, nil, usage("%v", err)
	}
	l, ds := loader.Read("-", data, "")
	return l, ds, nil
}

// testTeam tests the rules of a team, and cases over them. What is wrong with its files is added to ds. Policies from
// above are read anew: a policy test names more.
func (a *app) testTeam(ctx context.Context, path string, loaded *loader.Loaded, ds *spec.Diagnostics, cases []spec.PolicyCase, f *teamFlags) (*runtime.PolicyTested, error) {
	above, problems := loader.Above(a.abovePaths(f))
	if *ds = append(*ds, problems...); problems.HasErrors(false) {
		return nil, nil
	}
	loaded.Under(above)
	team := loaded.Bundle.Team
	goal := "judge the cases"
	co := runtime.CompileOptions{Catalog: catalog(), Goal: &goal, Agent: aloneIn(team, team.Agents[0].Name)}
	tested, more, err := runtime.TestTeam(ctx, loaded.Bundle, co, func(p *spec.Plan) (runtime.Options, error) {
		c := &compiled{plan: p, loaded: loaded, file: path, dir: filepath.Dir(path), above: a.abovePaths(f)}
		w, err := a.newWiring(c)
		if err == nil {
			w.withoutSecrets()
			err = w.protectInputs(path)
		}
		return runtime.Options{Tools: w, Known: co.Catalog.Tools, Retrace: c.retrace()}, err
	}, cases)
	loaded.Sources.Place(more)
	*ds = append(*ds, more...)
	ds.Sort()
	return tested, err
}

// testCases tests the cases of a policy test over the team and the policies that it names. The sources are the team's.
func (a *app) testCases(ctx context.Context, path string, loaded *loader.Loaded, ds *spec.Diagnostics, f *teamFlags) (*runtime.PolicyTested, *loader.Sources, error) {
	dir, test := filepath.Dir(path), loaded.PolicyTest.PolicyTest
	named := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	for _, p := range test.Policies {
		f.policies = append(slices.Clip(f.policies), named(p))
	}
	team, more := loader.Team(named(test.Team))
	*ds = append(*ds, more...)
	if team.Bundle == nil {
		return nil, team.Sources, nil
	}
	tested, err := a.testTeam(ctx, named(test.Team), team, ds, test.Cases, f)
	if tested != nil {
		loaded.Sources.Place(tested.Unasked)
		*ds = append(*ds, tested.Unasked...)
	}
	if tested != nil && tested.Unasked == nil { // every case has its result
		words := append([]string{named(test.Team)}, f.policyWords()...)
		for i := range tested.Cases {
			if c := &test.Cases[i]; !tested.Cases[i].Passed {
				tested.Cases[i].Reproduce = again(words, &runtime.CheckCall{AgentName: c.AgentName, ToolName: c.ToolName, Role: c.Role,
					Arguments: cmp.Or(string(c.Input), "{}"), Situation: c.Situation})
			}
		}
	}
	return tested, team.Sources, err
}
