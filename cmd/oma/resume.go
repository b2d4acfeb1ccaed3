package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/journal"
	"github.com/open-multi-agent/oma/spec"
)

func (a *app) resumeCommand() *cobra.Command {
	var f runFlags
	var drift bool
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "Go on with a run that was stopped, that waited for a person, or whose process is gone",
		Long: "Resume tells the run's log again, so that nothing which has a result happens twice, and goes on from there. What people\n" +
			"have decided since takes place. A call that was in flight when the process ended is made again if its tool only reads;\n" +
			"of any other, which may have taken effect, a person is asked.",
		Args: argsExactly(1, "one run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.changed = cmd.Flags().Changed
			return a.resume(cmd.Context(), args[0], &f, drift)
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.output, "output", "o", "text", "text, json, yaml or ndjson (events as they happen)")
	fl.StringVar(&f.receipt, "receipt", "", "where to write the receipt (default: where the run was to leave it)")
	fl.StringVar(&f.state, "state", "", "the folder runs are kept in (OMA_STATE)")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "print the result only")
	fl.BoolVar(&f.explainDenials, "explain-denials", false, "say of each call that did not run which rules forbade it, what they read, and how to judge it again")
	fl.DurationVar(&f.grace, "grace", 30*time.Second, "how long calls in flight may take after the first Ctrl-C or SIGTERM")
	fl.StringVar(&f.failOn, "fail-on", "", "end 8 on: denied")
	fl.BoolVar(&f.requireGovernance, "require-governance", false, "end 4 unless the governance conclusion is satisfied")
	fl.BoolVar(&f.noInput, "no-input", false, "ask nobody at the terminal: what needs a person suspends the run")
	fl.BoolVar(&drift, "accept-drift", false, "go on by the plan as it was made, though files it was made from have changed")
	return cmd
}

func (a *app) resume(ctx context.Context, id string, f *runFlags, drift bool) error {
	if _, err := f.ceilings(); err != nil { // it has none of its own, and looks at the other flags
		return err
	}
	var err error
	if f.state, err = a.stateOf(f.state, id); err != nil {
		return err
	}
	s, ceilings, err := a.again(ctx, id, f, drift)
	if s != nil && s.log != nil {
		defer s.log.Close() // where nothing ran; else it is closed already
	}
	if err != nil {
		return storeError(err)
	}
	return storeError(s.perform(ctx, ceilings))
}

// again takes up a run: it holds it, reads its plan and its log, and refuses to go on where something does not fit. The
// ceilings are those of the command line it was started with.
func (a *app) again(ctx context.Context, id string, f *runFlags, drift bool) (*execution, spec.Budgets, error) {
	defer a.holdBack()()
	store, err := a.kept(f.state, false)
	if err != nil {
		return nil, spec.Budgets{}, err
	}
	run, err := store.Run(ctx, id)
	if err != nil {
		return nil, spec.Budgets{}, err
	}
	if run.Status == journal.StatusEnded {
		return nil, spec.Budgets{}, fmt.Errorf("%w: %s", journal.ErrEnded, id)
	}
	folder := filepath.Join(f.state, "runs", id)
	from, err := originOf(folder)
	if err != nil {
		return nil, spec.Budgets{}, err
	}
	f.remember(&from)
	c, err := planOf(folder, &from)
	if err != nil {
		return nil, spec.Budgets{}, err
	}
	if err := a.under(c.file, c.plan, &f.teamFlags); err != nil {
		return nil, spec.Budgets{}, err
	}
	if err := a.sameAsThen(run, c, drift); err != nil {
		return nil, spec.Budgets{}, err
	}
	s, err := a.execution(c, f, id)
	if err == nil {
		s.author = run.Author
		err = a.hideSecrets(s.wiring) // the program may start itself again, which must not count
	}
	if err == nil {
		s.store = store
		err = s.takeUp(ctx)
	}
	return s, from.Ceilings, err
}

// takeUp holds the run and reads its log, which need not fit into memory twice.
func (s *execution) takeUp(ctx context.Context) (err error) {
	if s.log, err = s.store.Continue(ctx, s.id); err != nil {
		return err
	}
	r, w := io.Pipe()
	exported := make(chan error, 1)
	go func() {
		err := s.store.Export(ctx, s.id, w)
		w.CloseWithError(err)
		exported <- err
	}()
	s.past, err = runtime.ReadPast(r)
	r.Close()
	if cause := <-exported; cause != nil && !errors.Is(cause, io.ErrClosedPipe) {
		return cause
	}
	if err != nil {
		return fmt.Errorf("the log of run %q is damaged: %w", s.id, err)
	}
	return nil
}

// remember adds what the run was started with to what is asked of it now.
func (f *runFlags) remember(from *origin) {
	f.requireGovernance = f.requireGovernance || from.RequireGovernance
	f.failOn = cmp.Or(f.failOn, from.FailOn)
	f.receipt = cmp.Or(f.receipt, from.Receipt)
}

// planOf reads the plan of a run.
func planOf(folder string, from *origin) (*compiled, error) {
	path := filepath.Join(folder, planName)
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the plan of the run cannot be read: %w", err)
	}
	plan, err := runtime.ReadPlan(raw)
	if err != nil {
		return nil, fmt.Errorf("the plan of the run: %w", err)
	}
	return &compiled{plan: plan, file: path, dir: from.Dir, above: from.Above, cwd: from.Cwd}, nil
}

// sameAsThen refuses to go on with another program, or over files that have changed, unless that is accepted: the plan
// holds their text as it was.
func (a *app) sameAsThen(run journal.Run, c *compiled, drift bool) error {
	if v := build().Version; run.Core != v {
		a.say("run %s was begun by oma %s, and this is %s: go on with that one", run.ID, run.Core, v)
		return ended(runtime.ExitStale)
	}
	if run.Plan != c.plan.Digest {
		a.say("run %s is of another plan than %s holds", run.ID, c.file)
		return ended(runtime.ExitStale)
	}
	moved := movedInputs(c.plan, c.dir)
	for _, m := range moved {
		a.say("run %s: an input has moved since it was started: %s [stale-plan]", run.ID, m)
	}
	if moved == nil {
		return nil
	}
	if !drift {
		a.say("put it back, or go on by the plan as it was with --accept-drift")
		return ended(runtime.ExitStale)
	}
	c.drift = moved
	return nil
}
