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
// before anything runs, unless the team would rather run without.
func (w *wiring) wallIn(ctx context.Context, run string) error {
	w.executors = map[string]sandbox.Executor{}
	for i := range w.plan.Agents {
		a := &w.plan.Agents[i]
		if a.ShellExecutor == nil || !w.atWork(a.Name) {
			continue
		}
		x, err := w.executor(ctx, a, run)
		if err != nil {
			return usage("agent %q: %v [shell-executor]", a.Name, err)
		}
		w.executors[a.Name] = x
	}
	return nil
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

func (w *wiring) executor(ctx context.Context, a *spec.PlanAgent, run string) (sandbox.Executor, error) {
	dir := w.folder(a)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	o := sandbox.Options{Kind: a.ShellExecutor.Kind, Dir: dir, Image: a.ShellExecutor.Image, Name: "oma-" + run + "-" + a.Name, Protected: w.protected,
		NoNetwork: a.ShellExecutor.Network != nil && !*a.ShellExecutor.Network, Env: w.app.lookup}
	for _, folder := range a.ShellExecutor.Write {
		o.Write = append(o.Write, filepath.Join(w.dir, filepath.FromSlash(folder)))
	}
	x, err := sandbox.New(o)
	if err != nil {
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
