package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/runtime/journal"
	"github.com/open-multi-agent/oma/runtime/scripted"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

func (a *app) run(ctx context.Context, path string, f *runFlags) error {
	ceilings, err := f.ceilings()
	if err != nil {
		return err
	}
	s, err := a.prepare(path, f, ceilings)
	if err != nil {
		return err
	}
	return s.perform(ctx, ceilings)
}

// perform drives the run and leaves everything in its place: the receipt before the store says that the run has ended, so
// that a process killed in between is no run without one.
func (s *execution) perform(ctx context.Context, ceilings spec.Budgets) error {
	res, err := s.drive(ctx, ceilings)
	path := ""
	if res != nil {
		var lost error
		path, lost = s.keep(append(res.Bytes, '\n'))
		err = errors.Join(err, lost)
	}
	// The run was driven: where it stands is recorded also when ctx has ended.
	err = errors.Join(err, s.settle(context.WithoutCancel(ctx), res))
	if res == nil {
		return err
	}
	return s.finish(res, path, err)
}

// holdBack keeps back what is printed until it is certain that the program does not start itself again: the second start
// says it all again. The func lets it go.
func (a *app) holdBack() func() {
	var held bytes.Buffer
	out := a.stderr
	a.stderr = &held
	return func() {
		a.stderr = out
		out.Write(held.Bytes())
	}
}

// prepare does everything up to the first effect.
func (a *app) prepare(path string, f *runFlags, ceilings spec.Budgets) (*execution, error) {
	defer a.holdBack()()
	c, err := a.runnable(path, f)
	if err != nil {
		return nil, err
	}
	s, err := a.execution(c, f, a.newID())
	if err != nil {
		return nil, err
	}
	if err := priced(c.plan, ceilings); err != nil {
		return nil, err
	}
	if s.author, err = a.starter(f.author, c.plan.Approvals); err != nil {
		return nil, err
	}
	a.narrowing(c.plan.Budgets, ceilings)
	return s, a.hideSecrets(s.wiring)
}

// runnable gives the plan to run: a saved one exactly as it is, if its inputs are, or a team compiled now.
func (a *app) runnable(path string, f *runFlags) (*compiled, error) {
	p, err := savedPlan(path)
	if err != nil {
		return nil, err
	}
	if p == nil {
		if f.dir != "" {
			return nil, usage("--dir belongs to a saved plan, and %s is none", path)
		}
		return a.compile(path, &f.teamFlags)
	}
	if flag := f.given(); flag != "" {
		return nil, usage("a saved plan runs exactly: --%s belongs to oma plan", flag)
	}
	if err := a.under(path, p, &f.teamFlags); err != nil {
		return nil, err
	}
	c := &compiled{plan: p, file: path, dir: f.dir, above: a.abovePaths(&f.teamFlags)}
	if c.dir == "" {
		c.dir = filepath.Dir(path)
	}
	moved := movedInputs(p, c.dir)
	for _, m := range moved {
		a.say("%s: an input has moved since the plan was made: %s [stale-plan]", path, m)
	}
	if moved != nil {
		return nil, ended(runtime.ExitStale)
	}
	return c, a.problems(inFile(path, notEnforced(p, f.require)), false)
}

// movedInputs gives the inputs of a plan that are no longer what they were, seen from a folder.
func movedInputs(p *spec.Plan, dir string) []string {
	return runtime.Moved(p, func(name string) (string, error) {
		b, err := readFile(filepath.Join(dir, filepath.FromSlash(name)))
		if errors.Is(err, os.ErrNotExist) {
			return "", errors.New("the file is gone")
		}
		return canon.Text("file", b), err
	}, packDigest)
}

// execution is one run with everything around it.
type execution struct {
	*app
	c        *compiled
	f        *runFlags
	id       string
	state    string // the state folder
	folder   string // of this run, in the state folder
	store    *journal.Store
	log      *journal.Log  // nil: nothing is kept
	kept     *recording    // the log, once the run is driven
	past     *runtime.Past // nil: this is the first attempt
	receipt  string
	author   string // who started the run, by their own word
	wiring   *wiring
	progress *progress
}

func (a *app) execution(c *compiled, f *runFlags, id string) (*execution, error) {
	s := &execution{app: a, c: c, f: f, id: id}
	var err error
	if s.wiring, err = a.newWiring(c); err != nil {
		return nil, err
	}
	state, err := a.stateDir(f.state, s.wiring.dir)
	if err != nil {
		return nil, err
	}
	s.state, s.folder = state, filepath.Join(state, "runs", s.id)
	if s.receipt = f.receipt; s.receipt == "" {
		s.receipt = filepath.Join(s.folder, "receipt.json")
	}
	if s.receipt, err = filepath.Abs(s.receipt); err != nil {
		return nil, err
	}
	if err := s.wiring.secrets(); err != nil {
		return nil, err
	}
	if f.record != "" {
		if exists(f.record) {
			return nil, usage("--record %s: the file exists", f.record)
		}
		if abs, err := filepath.Abs(f.record); err != nil || abs == s.receipt {
			return nil, usage("--record and --receipt name one file")
		}
		s.wiring.recorder = scripted.NewRecorder(s.wiring.redactor.Text)
	}
	if err := s.protect(state); err != nil {
		return nil, err
	}
	s.progress = newProgress(a, c.plan, s.wiring.redactor.Text, f.quiet || f.output == "ndjson")
	return s, nil
}

// protect lists what no agent may write: whatever judges it and whatever tells of it.
func (s *execution) protect(state string) error {
	w := s.wiring
	w.outputs = []string{state, s.receipt}
	w.protected = append(w.protected, w.outputs...)
	if s.f.record != "" {
		if err := w.protect(s.f.record); err != nil {
			return err
		}
	}
	before := len(w.protected)
	if err := w.protectInputs(s.c.file); err != nil {
		return err
	}
	if err := notAnInput("--receipt", s.receipt, w.protected[before:]); err != nil {
		return err
	}
	for i := range s.c.plan.Agents {
		a := &s.c.plan.Agents[i]
		if a.Consequential() && below(state, w.folder(a)) {
			s.say("warning: the state folder %s lies in the folder of agent %s, which may write [state-in-reach]", state, a.Name)
		}
	}
	return nil
}

// drive runs the plan, with signals, the log and the progress around it.
func (s *execution) drive(ctx context.Context, ceilings spec.Budgets) (res *runtime.Result, err error) {
	ended := s.past != nil && s.past.Ended // what has ended is told, and starts nothing
	defer func() { err = errors.Join(err, s.wiring.wallsDown()) }()
	if err := s.wiring.wallIn(ctx, s.id, ended); err != nil {
		return nil, err
	}
	if err := s.open(ctx, ceilings); err != nil {
		return nil, err
	}
	if err := s.writable(); err != nil {
		return nil, err
	}
	log, err := s.logger()
	if err != nil {
		return nil, err
	}
	if !ended {
		s.wiring.serve(log)
	}
	sig := s.app.watchSignals(ctx, s.f.grace, s.interrupted)
	defer sig.stop()
	o := runtime.Options{RunID: s.id, Build: build(), Models: s.wiring.model, Backends: s.wiring.backend, Tools: s.wiring,
		Known: catalog().Tools, Ceilings: ceilings, Tree: s.wiring.tree, Reference: s.wiring.redactor.References, Redact: s.wiring.redactor.Text,
		Machine: s.machine, Drain: sig.drain, Interrupted: sig.code, RequireGovernance: s.f.requireGovernance,
		Finished: s.wiring.unused, FailOnDenied: s.f.failOn == "denied", Watch: s.progress.watch, OnEvent: s.events(), Clock: s.now, Log: log,
		Retrace: s.c.retrace(), Past: s.past, Told: s.told, Drift: s.c.drift,
		Author: s.author, People: &people{execution: s, drain: sig.drain}}
	if s.f.journalRedact || s.past != nil && s.past.Redacted {
		o.Withhold = s.wiring.redactor
	}
	if s.log != nil {
		s.kept = s.record()
		o.Journal = s.kept
	}
	r, err := runtime.New(s.c.plan, o)
	if err != nil {
		return nil, err
	}
	defer s.progress.close()
	return r.Run(sig.ctx)
}

// interrupted tells whoever pressed Ctrl-C that it was heard.
func (s *execution) interrupted() {
	switch {
	case s.f.quiet:
	case s.f.grace == 0:
		s.progress.announce("interrupted: ending the calls in flight")
	default:
		s.progress.announce(fmt.Sprintf("interrupted: waiting up to %s for calls in flight; again to end them now", s.f.grace))
	}
}

// writable finds out before the first model call whether the files that are written after the last can be.
func (s *execution) writable() error {
	if err := writable(s.receipt); err != nil {
		return fmt.Errorf("the receipt cannot be written: %w", err)
	}
	if s.f.record == "" {
		return nil
	}
	if err := writable(s.f.record); err != nil {
		return fmt.Errorf("the recording cannot be written: %w", err)
	}
	return nil
}

// told counts what an earlier attempt has done, and takes the turns of a cassette that it has had.
func (s *execution) told(e *core.Effect, res *core.Result) {
	s.progress.recall(e, res)
	if e.Kind != core.ModelCall || res.Model == nil {
		return
	}
	if m := s.wiring.cassettes[s.c.plan.Agent(e.AgentName).Provider]; m != nil {
		m.Skip(e.Request, res.Model.Attempts)
	}
}
