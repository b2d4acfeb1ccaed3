package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/loader"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

// teamFlags are what every command that compiles a team takes.
type teamFlags struct {
	strict   bool
	agent    string
	goal     string
	goalFile string
	inputs   []string
	require  controls
	policies []string // of --policy alone; see app.above

	relock func(*loader.Loaded) error // asks servers instead of their lock; nil: the lock counts
	alone  func(*spec.Team) string    // agent, where it depends on the team; nil: it does not
	above  *loader.Policies           // nil: not read yet
}

func (f *teamFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&f.strict, "strict", false, "take warnings for errors")
	fl.StringVar(&f.agent, "agent", "", "take one agent alone")
	fl.StringVar(&f.goal, "goal", "", "the goal, instead of the file's; taken as it is")
	fl.StringVar(&f.goalFile, "goal-file", "", "a file with the goal, - for standard input; taken as it is")
	fl.StringArrayVar(&f.inputs, "input", nil, "NAME=VALUE for an input of the team; may be repeated")
	fl.Var(&f.require, "require-enforced", "controls that must be enforced for every agent at work: "+strings.Join(runtime.Controls(), ", "))
	f.addPolicy(cmd)
}

// addPolicy adds the one flag that puts something above the team file.
func (f *teamFlags) addPolicy(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.policies, "policy", nil, "a policy from outside the team file, which can only narrow it; may be repeated (OMA_POLICY)")
}

// given names a flag that says how a team is compiled, if one was given: beside a plan that is made already it would be
// ignored. Empty: none.
func (f *teamFlags) given() string {
	switch {
	case f.strict:
		return "strict"
	case f.agent != "":
		return "agent"
	case f.goal != "":
		return "goal"
	case f.goalFile != "":
		return "goal-file"
	case len(f.inputs) > 0:
		return "input"
	}
	return ""
}

// givenOrRequired also names --require-enforced, which holds for a plan that is made already but not for nothing.
func (f *teamFlags) givenOrRequired() string {
	if flag := f.given(); flag != "" || len(f.require) == 0 {
		return flag
	}
	return "require-enforced"
}

// controls is the value of --require-enforced: names of controls, in one flag or several. A name that is none is a
// mistake in the command line, whatever the command then does.
type controls []string

func (c *controls) Set(list string) error {
	for _, name := range strings.Split(list, ",") {
		switch name { // other words for them
		case "gate":
			name = "gates"
		case "sandbox":
			name = "containment"
		}
		if !slices.Contains(runtime.Controls(), name) {
			return fmt.Errorf("no control is called %q: %s", name, spec.DidYouMean(name, runtime.Controls()))
		}
		*c = append(*c, name)
	}
	return nil
}

func (c *controls) String() string { return strings.Join(*c, ",") }

func (c *controls) Type() string { return "controls" }

// compiled is a team that has become a plan.
type compiled struct {
	plan   *spec.Plan
	loaded *loader.Loaded // nil for a saved plan
	file   string         // as the user named it
	dir    string         // the folder paths in the plan are relative to
	above  []string       // paths of the policies given above it
	cwd    string         // where the program was started first; empty: now
	drift  []string       // what has changed of its inputs, and was accepted
}

// retrace are the words that name the team to oma policy check again.
func (c *compiled) retrace() []string {
	file := c.file
	if strings.HasPrefix(file, "-") && file != "-" { // a flag to whoever reads the line
		file = "./" + file
	}
	words := []string{file}
	if c.loaded == nil { // a saved plan does not say where its team lies
		words = append(words, "--dir", c.dir)
	}
	for _, path := range c.above {
		words = append(words, "--policy", path)
	}
	return words
}

// compile reads and compiles a team and prints every problem. An error means that nothing may run.
func (a *app) compile(path string, f *teamFlags) (*compiled, error) {
	o := runtime.CompileOptions{Catalog: catalog(), Agent: f.agent}
	if err := a.goal(f, &o); err != nil {
		return nil, err
	}
	above, err := a.above(f)
	if err != nil {
		return nil, err
	}
	loaded, ds, err := a.load(path)
	if err != nil {
		return nil, err
	}
	loaded.Under(above)
	if loaded.Bundle == nil {
		return nil, cmp.Or(a.problems(ds, true), usage("%s is no team", path))
	}
	if f.relock != nil {
		if err := f.relock(loaded); err != nil {
			return nil, err
		}
	}
	if f.alone != nil {
		o.Agent = f.alone(loaded.Bundle.Team)
	}
	plan, more := runtime.Compile(loaded.Bundle, o)
	more = append(more, notEnforced(plan, f.require)...)
	loaded.Sources.Place(more)
	ds = append(ds, more...)
	ds.Sort()
	if err := a.problems(ds, f.strict); err != nil {
		return nil, err
	}
	if plan == nil {
		return nil, usage("%s does not compile", path)
	}
	c := &compiled{plan: plan, loaded: loaded, file: path, dir: filepath.Dir(path), above: a.abovePaths(f)}
	if path == "-" {
		c.dir = "."
	}
	return c, nil
}

func (a *app) load(path string) (*loader.Loaded, spec.Diagnostics, error) {
	if path != "-" {
		l, ds := loader.Team(path)
		return l, ds, nil
	}
	data, err := a.readInput("-")
	if err != nil {
		return nil, nil, usage("%v", err)
	}
	l, ds := loader.TeamBytes("-", ".", data)
	return l, ds, nil
}

func (a *app) goal(f *teamFlags, o *runtime.CompileOptions) error {
	if f.goal != "" && f.goalFile != "" {
		return usage("--goal and --goal-file exclude each other")
	}
	if f.goal != "" {
		o.Goal = &f.goal
	}
	if f.goalFile != "" {
		b, err := a.readInput(f.goalFile)
		if err != nil {
			return usage("--goal-file: %v", err)
		}
		text := strings.TrimRight(string(b), "\n")
		o.Goal = &text
	}
	o.Inputs = map[string]string{}
	for _, in := range f.inputs {
		name, value, ok := strings.Cut(in, "=")
		if !ok {
			return usage("--input %q is not NAME=VALUE", in)
		}
		o.Inputs[name] = value
	}
	return nil
}

// notEnforced gives a problem for each required control that is not enforced for an agent at work. A nil plan has none.
func notEnforced(p *spec.Plan, required []string) (ds spec.Diagnostics) {
	if p == nil {
		return nil
	}
	for _, control := range required {
		for _, c := range runtime.NotEnforced(p, control) {
			at := spec.Path("agents").Index(slices.IndexFunc(p.Agents, func(a spec.PlanAgent) bool { return a.Name == c.Agent }))
			ds.Errorf("not-enforced", at, "control %s is %s for agent %q: %s", c.Control, c.Level, c.Agent, c.Mechanism)
		}
	}
	return ds
}

// inFile names the file of problems that have no place in it, as in a saved plan.
func inFile(path string, ds spec.Diagnostics) spec.Diagnostics {
	for i := range ds {
		ds[i].File = path
	}
	return ds
}

// savedPlan reads a plan if that is what the file is. nil: it is something else, or cannot be read; the loader then
// says why.
func savedPlan(path string) (*spec.Plan, error) {
	if path == "-" {
		return nil, nil
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxPlanBytes {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil || !looksLikePlan(data) {
		return nil, nil
	}
	p, err := runtime.ReadPlan(data)
	if err != nil {
		return nil, badPlan(path, err)
	}
	return p, nil
}

// badPlan tells a plan that was changed after it was made from a file that is no plan.
func badPlan(path string, err error) error {
	if errors.Is(err, runtime.ErrStale) {
		return fmt.Errorf("%s: %w", path, err)
	}
	return usage("%s: %v", path, err)
}

// maxPlanBytes bounds a saved plan. It embeds prompts and schemas, so it may be larger than a team file.
const maxPlanBytes = 64 << 20

// looksLikePlan says whether a file is JSON that calls itself a plan. Other tools may have written it anew.
func looksLikePlan(data []byte) bool {
	var e spec.Envelope
	return bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) && json.Unmarshal(data, &e) == nil && e.Kind == spec.KindPlan
}
