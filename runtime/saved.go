package runtime

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// ErrStale says that a saved plan does not stand for what is there now.
var ErrStale = errors.New("stale plan")

// ReadPlan reads a saved plan. A plan that was edited, or that another version wrote with members this one does not
// know, is refused.
func ReadPlan(data []byte) (*spec.Plan, error) {
	if err := canon.Check(data); err != nil {
		return nil, err
	}
	var p spec.Plan
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return nil, fmt.Errorf("this is no plan of this version: %w", err)
	}
	if p.APIVersion != spec.APIVersion || p.Kind != spec.KindPlan {
		return nil, fmt.Errorf("this is a %q of %q, not a %s of %s", p.Kind, p.APIVersion, spec.KindPlan, spec.APIVersion)
	}
	digest, err := canon.DigestWithout("plan", data, "digest")
	if err != nil {
		return nil, err
	}
	if digest != p.Digest {
		return nil, fmt.Errorf("%w: the plan was changed after it was made: its digest is %s, it says %s", ErrStale, digest, p.Digest)
	}
	return &p, nil
}

// Moved gives the inputs and packs of a plan that are no longer what they were. digest reads a file by its path in the
// plan, pack gives the digest of a pack of this program, or nothing.
func Moved(p *spec.Plan, digest func(path string) (string, error), pack func(name string) string) []string {
	var moved []string
	for _, in := range p.Inputs {
		switch now, err := digest(in.Path); {
		case err != nil:
			moved = append(moved, fmt.Sprintf("%s: %v", in.Path, err))
		case now != in.Digest:
			moved = append(moved, fmt.Sprintf("%s: the file has changed", in.Path))
		}
	}
	for _, in := range p.Policies {
		name, isPack := strings.CutPrefix(in.Source, "pack ")
		switch now := pack(name); {
		case !isPack || now == in.Digest:
		case now == "":
			moved = append(moved, in.Source+": this program has no such pack")
		default:
			moved = append(moved, in.Source+": this program has another version of it")
		}
	}
	return moved
}

// NotUnder says why a saved plan was not compiled under the policies given, or gives nothing. That it lists them is its
// own word, so their rules must be in it and their limits must hold for it; known are the tools of this program, since
// rules judge by what a plan says of a tool.
func NotUnder(p *spec.Plan, given []spec.PolicyFile, known []spec.ToolInfo) (why []string) {
	if len(given) == 0 {
		return nil
	}
	kept := *p
	kept.Enforcement = enforcement(p)
	b := bounds{plan: &kept, files: namedBy(p)}
	for _, g := range given {
		source := aboveSource(&g)
		if len(g.Policy.Rules) > 0 && !p.Gates.Declared {
			why = append(why, fmt.Sprintf("the plan gates no call, and policy %q gates every one", g.Policy.Name))
		}
		if !slices.ContainsFunc(p.Policies, func(in spec.PlanPolicy) bool { return in.Source == source && in.Digest == g.Digest }) {
			why = append(why, fmt.Sprintf("the plan was not compiled under policy %q of %s", g.Policy.Name, short(g.Digest)))
			continue
		}
		for _, r := range g.Policy.Rules {
			if !slices.ContainsFunc(p.Gates.Rules, func(in spec.PlanRule) bool {
				return in.Source == source && in.Agent == "" && in.ReplacedFor == nil && plain(in.Rule) == plain(r)
			}) {
				why = append(why, fmt.Sprintf("the plan lists policy %q and is without its rule %q", g.Policy.Name, r.Name))
			}
		}
		b.hold(g.Policy)
	}
	for _, d := range b.diags {
		why = append(why, d.Message)
	}
	return append(why, otherTools(p, known)...)
}

// namedBy gives the files that a plan says it names.
func namedBy(p *spec.Plan) []named {
	var out []named
	for _, in := range p.Inputs {
		if in.Kind != spec.KindTeam && in.Kind != spec.InputProgram { // limits.commands is about programs
			out = append(out, named{path: path.Join(".", in.Path)})
		}
	}
	for _, name := range sortedKeys(p.Providers) {
		prov := p.Providers[name]
		if prov.Cassette != "" {
			out = append(out, named{path: path.Join(".", prov.Cassette)})
		}
		if ref := prov.APIKey; ref != nil && ref.File != "" {
			out = append(out, named{path: path.Join(".", ref.File)})
		}
	}
	for _, a := range p.Agents {
		for _, name := range sortedKeys(a.Credentials) {
			if file := a.Credentials[name].File; file != "" {
				out = append(out, named{path: path.Join(".", file)})
			}
		}
	}
	return out
}

// otherTools finds tools of which a plan says something else than this program, or than the plan itself where it declares
// the tool.
func otherTools(p *spec.Plan, known []spec.ToolInfo) (why []string) {
	all := slices.Concat(known, ToolsOf(p))
	for _, a := range p.Agents {
		known := all
		if a.Backend.Asks() {
			known = []spec.ToolInfo{permission(a.Backend)}
		}
		for _, g := range a.Tools {
			if !slices.ContainsFunc(known, func(t spec.ToolInfo) bool { return plain(t) == plain(g.ToolInfo) }) {
				why = append(why, fmt.Sprintf("the plan says something else of tool %q than this program", g.Name))
			}
		}
	}
	return why
}

// beside puts a plan's own tools beside those that are known. One that has the name of another would be judged as what it
// is not.
func beside(known, own []spec.ToolInfo) ([]spec.ToolInfo, error) {
	all := slices.Clone(known)
	for _, t := range own {
		i := slices.IndexFunc(known, func(k spec.ToolInfo) bool { return k.Name == t.Name })
		switch {
		case i < 0:
			all = append(all, t)
		case plain(known[i]) != plain(t):
			return nil, fmt.Errorf("%w: its tool %q has the name of a built-in one", ErrStale, t.Name)
		}
	}
	return all, nil
}

// rulesOf compiles the rules of a plan. It was compiled before, so a diagnostic here means that this program judges
// differently from the one that made the plan.
func rulesOf(p *spec.Plan, known []spec.ToolInfo) (*policies.Set, error) {
	set, diags := policies.Compile(ruleSet(p, p.Gates, known))
	if diags.HasErrors(false) {
		return nil, fmt.Errorf("%w: its rules do not compile: %s", ErrStale, diags[0].Message)
	}
	return set, nil
}
