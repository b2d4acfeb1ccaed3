package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/sandbox"
	"github.com/open-multi-agent/oma/spec"
)

// wallIn makes what keeps the commands of bash in, where the plan wants that, and tries it. A machine that cannot is an error
// before anything runs, unless the team would rather run without. Of a run that has ended it only finds out what was promised.
func (w *wiring) wallIn(ctx context.Context, run string, ended bool) error {
	w.executors, w.held = map[string]sandbox.Executor{}, map[string][]sandbox.Promise{}
	for i := range w.plan.Agents {
		a := &w.plan.Agents[i]
		if a.ShellExecutor == nil || !w.atWork(a.Name) || ended && !runtime.Walled(a.ShellExecutor) {
			continue
		}
		x, err := sandbox.New(w.walls(a, run))
		if err == nil && !ended {
			x, err = w.tried(ctx, a, x)
		}
		if err != nil {
			return usage("agent %q: %v [shell-executor]", a.Name, err)
		}
		if !ended {
			w.executors[a.Name] = x
		}
		w.held[a.Name] = x.Held() // now: later, commands may have changed what lies where
	}
	return nil
}

// machine says what this machine makes of a row of the plan's map. It never makes a promise stronger: whoever judges a receipt
// knows the plan and not the machine.
func (s *execution) machine(c spec.Control) spec.Control {
	a := s.c.plan.Agent(c.Agent)
	i := slices.IndexFunc(s.wiring.held[c.Agent], func(p sandbox.Promise) bool { return p.Control == c.Control })
	if i < 0 || a == nil || !runtime.Alone(s.c.plan, a) {
		return s.closedHere(c)
	}
	p := s.wiring.held[c.Agent][i]
	if p.Control == sandbox.Secrets && p.Level == spec.NotEnforceable {
		return s.closedHere(c) // as without a sandbox
	}
	level := runtime.Weaker(c.Level, p.Level)
	if level != p.Level && !runtime.Walled(a.ShellExecutor) {
		p.Mechanism += "; the team would run without it, so that nothing is promised"
	}
	c.Level, c.Mechanism = level, p.Mechanism
	return c
}

// wallsDown closes what keeps commands in, once no tool is open any more. An error says that something may go on.
func (w *wiring) wallsDown() error {
	var errs []error
	for _, agent := range slices.Sorted(maps.Keys(w.executors)) {
		if err := w.executors[agent].Close(); err != nil {
			errs = append(errs, fmt.Errorf("agent %q: %w [shell-executor]", agent, err))
		}
	}
	w.executors = nil
	return errors.Join(errs...)
}

func (w *wiring) walls(a *spec.PlanAgent, run string) sandbox.Options {
	o := sandbox.Options{Kind: a.ShellExecutor.Kind, Dir: w.folder(a), Image: a.ShellExecutor.Image, Name: "oma-" + run + "-" + a.Name, Protected: w.protected,
		NoNetwork: a.ShellExecutor.Network != nil && !*a.ShellExecutor.Network, Env: w.app.lookup}
	for _, folder := range a.ShellExecutor.Write {
		o.Write = append(o.Write, filepath.Join(w.dir, filepath.FromSlash(folder)))
	}
	return o
}

// tried gives an executor that works here, or one that holds nothing where the team would rather run without.
func (w *wiring) tried(ctx context.Context, a *spec.PlanAgent, x sandbox.Executor) (sandbox.Executor, error) {
	if err := os.MkdirAll(w.folder(a), 0o755); err != nil {
		return nil, err
	}
	why := x.Why(ctx)
	if why == nil {
		return x, nil
	}
	bare := sandbox.Unheld(x, why)
	if err := x.Close(); err != nil || runtime.Walled(a.ShellExecutor) {
		return nil, errors.Join(why, err)
	}
	w.app.say("warning: agent %q: bash runs without a sandbox: %v", a.Name, why)
	return bare, nil
}
