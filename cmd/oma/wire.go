package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/loader"
	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/builtin"
	"github.com/open-multi-agent/oma/runtime/custom"
	"github.com/open-multi-agent/oma/runtime/openai"
	"github.com/open-multi-agent/oma/runtime/sandbox"
	"github.com/open-multi-agent/oma/runtime/scripted"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/redact"
)

// catalog is every tool and preset of this program.
func catalog() policies.Catalog {
	c := policies.Catalog{Tools: builtin.Infos()}
	for _, name := range []string{"readonly", "readwrite", "full"} {
		c.Presets = append(c.Presets, policies.Preset{Name: name, Tools: builtin.Presets()[name]})
	}
	return c
}

// wiring makes the models and tools of one run.
type wiring struct {
	app    *app
	plan   *spec.Plan
	loaded *loader.Loaded // nil for a saved plan
	dir    string         // the team file's folder, absolute
	cwd    string         // the folder oma runs in, absolute
	keys   map[string]string
	// credentials are the agents', by agent and name.
	credentials map[string]map[string]string
	redactor    *redact.Redactor
	protected   []string
	above       []string // the policies above the team file, as given
	outputs     []string // what the run writes itself: state, receipt, recording
	locks       *builtin.Locks
	executors   map[string]sandbox.Executor  // by agent, where bash is not to run as any program
	held        map[string][]sandbox.Promise // what they held when they were made
	cassettes   map[string]*scripted.Model   // by provider, the ones played
	recorder    *scripted.Recorder           // nil: nothing is recorded
	serving     *serving                     // nil: no MCP server is started
}

// newWiring gives the wiring of a plan. It has resolved no secret and made no folder.
func (a *app) newWiring(c *compiled) (*wiring, error) {
	cwd := c.cwd
	if cwd == "" {
		var err error
		if cwd, err = os.Getwd(); err != nil {
			return nil, err
		}
	}
	dir, err := filepath.Abs(c.dir)
	return &wiring{app: a, plan: c.plan, loaded: c.loaded, above: c.above, dir: dir, cwd: cwd, locks: &builtin.Locks{},
		redactor: redact.New(), cassettes: map[string]*scripted.Model{}}, err
}

// anyStarts says whether some agent has a tool that starts programs.
func anyStarts(p *spec.Plan) bool {
	return slices.ContainsFunc(p.Agents, func(a spec.PlanAgent) bool { return a.Starts(p) })
}

// model makes the model of a provider. The kinds of the team language end here.
func (w *wiring) model(name string) (runtime.Model, error) {
	p := w.plan.Providers[name]
	var m runtime.Model
	switch p.Kind {
	case "openai", "ollama":
		m = w.openai(name, p.Provider)
	case "scripted":
		c, err := w.cassette(name, p)
		if err != nil {
			return nil, err
		}
		m = c
	default:
		return nil, usage("provider %q: kind %q is not in this version", name, p.Kind)
	}
	if w.recorder != nil {
		m = w.recorder.Model(m)
	}
	return m, nil
}

func (w *wiring) openai(name string, p spec.Provider) runtime.Model {
	return openai.New(openai.Options{Name: name, BaseURL: runtime.BaseURL(p), APIKey: w.keys[name], Stream: p.Stream == nil || *p.Stream,
		EchoReasoning: p.EchoReasoning, UserAgent: "oma/" + build().Version, Egress: w.plan.EgressPolicy})
}

// cassette gives a scripted provider what it plays: as it was read with the team, or read now for a saved plan.
func (w *wiring) cassette(name string, p spec.PlanProvider) (*scripted.Model, error) {
	var c *spec.Cassette
	var where func(spec.Path) string
	if w.loaded != nil {
		c = w.loaded.Bundle.Cassettes[p.Cassette].Cassette
		where = func(at spec.Path) string { return w.loaded.Sources.Where(p.Cassette, at) }
	} else {
		l, ds := loader.Cassette(filepath.Join(w.dir, filepath.FromSlash(p.Cassette)))
		if err := w.app.problems(ds, false); err != nil {
			return nil, err
		}
		if l.Cassette.Digest != p.CassetteDigest {
			return nil, fmt.Errorf("%w: cassette %s has changed", runtime.ErrStale, p.Cassette)
		}
		c = l.Cassette.Cassette
		where = func(at spec.Path) string { return l.Sources.Where("", at) }
	}
	m := scripted.New(c, p.Cassette, where)
	w.cassettes[name] = m
	return m, nil
}

// unused gives the turns that nobody asked for: the run was shorter than what was recorded. Agents of the team that had
// nothing to do in this run are no part of that.
func (w *wiring) unused() error {
	working := w.plan.Working()
	idle := func(agent string) bool { return w.plan.Agent(agent) != nil && !working[agent] }
	var all []error
	for _, name := range slices.Sorted(maps.Keys(w.cassettes)) {
		all = append(all, w.cassettes[name].Unused(idle)...)
	}
	return errors.Join(all...)
}

// Open gives an agent its built-in tools, the team's own and those of its servers.
func (w *wiring) Open(ctx context.Context, a *spec.PlanAgent) (all []runtime.Tool, _ io.Closer, err error) {
	var builtins []string
	own := map[string]spec.CustomTool{}
	for _, g := range a.Tools {
		t, isOwn := w.plan.CustomTools[g.Name]
		_, _, served := w.plan.ServerOf(g.Name)
		switch {
		case isOwn:
			own[g.Name] = t
		case !served && g.Name != spec.DelegateTool: // that one is the core's
			builtins = append(builtins, g.Name)
		}
	}
	var opened closers
	if len(builtins) > 0 {
		o := builtin.Options{Dir: w.folder(a), Create: true, Contained: a.Containment != "none", Protected: w.protected,
			Locks: w.locks, Env: w.app.lookup, Redact: w.redactor.Text}
		if x := w.executors[a.Name]; x != nil {
			o.Executor = x
		}
		tools, c, err := builtin.Open(o, builtins)
		if err != nil {
			return nil, opened, err
		}
		all, opened = append(all, tools...), append(opened, c)
	}
	if len(own) > 0 {
		tools, c, err := custom.Open(custom.Options{Tools: own, Dir: w.dir, Env: w.app.lookup, Credentials: w.credentials[a.Name], Redact: w.redactor.Text})
		if err != nil {
			return nil, opened, err
		}
		all, opened = append(all, tools...), append(opened, c)
	}
	remote, clients, err := w.serverTools(ctx, a)
	return append(all, remote...), append(opened, clients...), err
}

// closers are closed together, the last one first.
type closers []io.Closer

func (all closers) Close() error {
	var errs []error
	for _, c := range slices.Backward(all) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// folder is an agent's folder: the declared one from the team file, else .agent-workspace where oma runs.
func (w *wiring) folder(a *spec.PlanAgent) string {
	switch {
	case a.Cwd == "":
		return filepath.Join(w.cwd, spec.DefaultCwd)
	case filepath.IsAbs(a.Cwd):
		return filepath.FromSlash(a.Cwd)
	}
	return filepath.Join(w.dir, filepath.FromSlash(a.Cwd))
}

// tree gives the digest of an agent's folder, without what the run itself writes meanwhile.
func (w *wiring) tree(ctx context.Context, a *spec.PlanAgent) (string, error) {
	return builtin.TreeDigest(ctx, w.folder(a), builtin.TreeLimits{Skip: w.outputs})
}

// inputs gives the files the plan was made from, policies above it included, and where its keys are, absolute. file is the team or plan as the user
// named it.
func (w *wiring) inputs(file string) ([]string, error) {
	var paths []string
	given := w.above
	if file != "-" {
		given = append([]string{file}, given...)
	}
	for _, path := range given {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		paths = append(paths, abs)
	}
	for _, in := range w.plan.Inputs {
		paths = append(paths, filepath.Join(w.dir, filepath.FromSlash(in.Path)))
	}
	for _, name := range slices.Sorted(maps.Keys(w.plan.Providers)) {
		if ref := w.plan.Providers[name].APIKey; ref != nil && ref.File != "" {
			paths = append(paths, filepath.Join(w.dir, filepath.FromSlash(ref.File)))
		}
	}
	paths = append(paths, w.programs()...)
	for _, a := range w.plan.Agents {
		for _, name := range slices.Sorted(maps.Keys(a.Credentials)) {
			if file := a.Credentials[name].File; file != "" {
				paths = append(paths, filepath.Join(w.dir, filepath.FromSlash(file)))
			}
		}
	}
	return paths, nil
}

// protectInputs protects them.
func (w *wiring) protectInputs(file string) error {
	paths, err := w.inputs(file)
	w.protected = append(w.protected, paths...)
	return err
}

// notAnInput refuses to write a file over one that the plan is made from.
func notAnInput(flag, path string, inputs []string) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil // it is not there, so nothing is replaced
	}
	for _, in := range inputs {
		if other, err := os.Stat(in); err == nil && os.SameFile(info, other) {
			return usage("%s %s would replace a file the plan is made from", flag, path)
		}
	}
	return nil
}

func (w *wiring) protect(path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	w.protected = append(w.protected, abs)
	return nil
}

// working names the providers of the agents at work.
func (w *wiring) working() map[string]bool {
	working, agents := map[string]bool{}, w.plan.Working()
	for i := range w.plan.Agents {
		if a := &w.plan.Agents[i]; agents[a.Name] {
			working[a.Provider] = true
		}
	}
	return working
}

// atWork says that an agent may be asked for something.
func (w *wiring) atWork(agent string) bool { return w.plan.Working()[agent] }

// priced refuses ceilings of the command line that would hold nothing back: over a model without a price, which would count
// as free, and over a program, which reports no usage.
func priced(p *spec.Plan, ceilings spec.Budgets) error {
	working := p.Working()
	for i := range p.Agents {
		a := &p.Agents[i]
		if !working[a.Name] {
			continue
		}
		if a.Backend != nil {
			if runtime.HoldsNothing(a, ceilings) {
				return usage("a ceiling holds nothing back: agent %q is a program that does not report it [backend-unmetered]", a.Name)
			}
			continue
		}
		if ceilings.MaxCostBudget == nil {
			continue
		}
		if _, ok := p.Price(a); !ok {
			return usage("--max-cost-budget holds nothing back: model %q of provider %q has no price [model-without-price]", a.Model, a.Provider)
		}
	}
	return nil
}

// secrets resolves the keys of the providers at work. What is missing is said all at once, before anything runs.
func (w *wiring) secrets() error {
	w.keys = map[string]string{}
	var known []redact.Secret
	var missing []string
	working := w.working()
	for _, name := range slices.Sorted(maps.Keys(w.plan.Providers)) {
		ref := w.plan.Providers[name].APIKey
		if ref == nil || !working[name] {
			continue
		}
		value, err := w.secret(ref)
		if err != nil {
			missing = append(missing, fmt.Sprintf("provider %q: %v", name, err))
			continue
		}
		w.keys[name] = value
		known = append(known, redact.Secret{Name: name, Value: value})
	}
	w.credentials = map[string]map[string]string{}
	for _, a := range w.plan.Agents {
		if !w.atWork(a.Name) {
			continue
		}
		w.credentials[a.Name] = map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(a.Credentials)) {
			ref := a.Credentials[name]
			value, err := w.secret(&ref)
			if err != nil {
				missing = append(missing, fmt.Sprintf("agent %q, credential %s: %v", a.Name, name, err))
				continue
			}
			w.credentials[a.Name][name] = value
			known = append(known, redact.Secret{Name: name, Value: value})
		}
	}
	w.redactor = redact.New(known...)
	if missing != nil {
		return usage("%s [secret-missing]", strings.Join(missing, "\noma: "))
	}
	return nil
}

// withoutSecrets lets tools be opened where no call is made: each credential is there, and empty.
func (w *wiring) withoutSecrets() {
	w.credentials = map[string]map[string]string{}
	for _, a := range w.plan.Agents {
		w.credentials[a.Name] = map[string]string{}
		for name := range a.Credentials {
			w.credentials[a.Name][name] = ""
		}
	}
}

func (w *wiring) secret(ref *spec.SecretRef) (string, error) {
	if ref.Env != "" {
		v, ok := w.app.lookup(ref.Env)
		if !ok || v == "" {
			return "", fmt.Errorf("the environment variable %s is not set", ref.Env)
		}
		return v, nil
	}
	b, err := readFile(filepath.Join(w.dir, filepath.FromSlash(ref.File)))
	if err != nil {
		return "", fmt.Errorf("the key file cannot be read: %v", errors.Unwrap(err))
	}
	v := strings.TrimSpace(string(b))
	if v == "" {
		return "", fmt.Errorf("the key file %s is empty", ref.File)
	}
	return v, nil
}
