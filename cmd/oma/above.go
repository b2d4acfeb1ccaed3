package main

import (
	"path/filepath"
	"slices"

	"github.com/open-multi-agent/oma/loader"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

// abovePaths names the policies that stand above the team file: those of OMA_POLICY and those of --policy. They add up,
// and there is no way to drop one.
func (a *app) abovePaths(f *teamFlags) []string {
	return append(filepath.SplitList(a.getenv("OMA_POLICY")), f.policies...)
}

// above reads them, once. An error means that nothing may run: a policy that cannot be read is never left out.
func (a *app) above(f *teamFlags) (*loader.Policies, error) {
	if f.above != nil {
		return f.above, nil
	}
	p, ds := loader.Above(a.abovePaths(f))
	if err := a.problems(ds, false); err != nil {
		return nil, err
	}
	f.above = p
	return p, nil
}

// aboveAlone reads them where no team is compiled under them, which would find what is wrong with one.
func (a *app) aboveAlone(f *teamFlags) ([]spec.PolicyFile, error) {
	p, err := a.above(f)
	if err != nil {
		return nil, err
	}
	var all spec.Diagnostics
	for _, file := range p.Files {
		ds := runtime.CheckPolicy(file.Policy, catalog().Tools)
		ds = slices.DeleteFunc(ds, func(d spec.Diagnostic) bool { // it may be a team's own: the team knows
			return d.Code == "unknown-tool" && d.Severity == spec.Warning
		})
		all = append(all, inFile(file.Path, ds)...)
	}
	p.Place(all)
	return p.Files, a.problems(all, false)
}

// under refuses a saved plan that was not compiled under the policies given.
func (a *app) under(path string, p *spec.Plan, f *teamFlags) error {
	given, err := a.aboveAlone(f)
	if err != nil {
		return err
	}
	why := runtime.NotUnder(p, given, catalog().Tools)
	for _, w := range why {
		a.say("%s: %s [stale-plan]", path, w)
	}
	if why != nil {
		return ended(runtime.ExitStale)
	}
	return nil
}

// packDigest gives the digest of a pack as this program has it, or nothing.
func packDigest(name string) string {
	p, _, _ := loader.Pack(name)
	return p.Digest
}
