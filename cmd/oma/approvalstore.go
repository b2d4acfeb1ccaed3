package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/open-multi-agent/oma/policies/shell"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/journal"
	"github.com/open-multi-agent/oma/spec"
)

// matter is a request with all that it is decided by. From a file, all of it is that file's word but what the hash is of.
type matter struct {
	spec.ApprovalRequestFile
	status journal.Status // of the run; empty: a file does not say
	levels []shell.Level
	kept   bool // the run's store has it, so that others can decide it too. Only who asks here looks at it
}

// desk is a store with what was looked up in it.
type desk struct {
	*app
	store *journal.Store
	runs  map[string]*ofRun
}

// ofRun is what a run's own plan says of deciding.
type ofRun struct {
	journal.Run
	plan *spec.Plan
}

// deskOf opens the store that has a request, and gives the whole id. Where nobody says which store it is that of the folder
// oma runs in, else any other beside it, which are all this user's.
func (a *app) deskOf(ctx context.Context, flag, text string, readOnly bool) (*desk, string, error) {
	if strings.HasPrefix(text, "run_") {
		return nil, "", usage("%s is a run: %s lists what it asks", text, shellLine([]string{"oma", "approvals", "--run", text}))
	}
	cwd, err := os.Getwd()
	if err != nil {
		return nil, "", err
	}
	state, err := a.stateDir(flag, cwd)
	if err != nil {
		return nil, "", err
	}
	d, id, first := a.deskIn(ctx, state, text, readOnly)
	if first == nil || flag != "" || a.getenv("OMA_STATE") != "" {
		return d, id, first
	}
	for _, other := range beside(state) {
		d, id, err := a.deskIn(ctx, other, text, readOnly)
		if err == nil {
			return d, id, nil
		}
		var said *exitError
		if errors.As(err, &said) && !exists(filepath.Join(state, "runs")) { // it says more than that the own folder keeps none
			first = err
		}
	}
	return nil, "", first
}

// beside gives the state folders that lie where one does, in which something was run.
func beside(state string) (all []string) {
	runs, _ := filepath.Glob(filepath.Join(filepath.Dir(state), "*", "runs")) // an error is of a pattern that stands for nothing
	for _, r := range runs {
		all = append(all, filepath.Dir(r))
	}
	return all
}

func (a *app) deskIn(ctx context.Context, state, text string, readOnly bool) (*desk, string, error) {
	store, err := a.kept(state, readOnly)
	if err != nil {
		return nil, "", err
	}
	id, err := store.ApprovalID(ctx, text)
	if err != nil {
		store.Close()
		return nil, "", approvalError(err)
	}
	return &desk{app: a, store: store, runs: map[string]*ofRun{}}, id, nil
}

// find gives one request.
func (d *desk) find(ctx context.Context, id string) (*matter, error) {
	found, err := d.store.Approval(ctx, id)
	if err != nil {
		return nil, approvalError(err)
	}
	return d.matter(ctx, &found)
}

// matter adds to a request what the run's own plan says of who may decide.
func (d *desk) matter(ctx context.Context, found *journal.Approval) (*matter, error) {
	of := d.runs[found.RunID]
	if of == nil {
		run, err := d.store.Run(ctx, found.RunID)
		if err != nil {
			return nil, storeError(err)
		}
		plan, err := planIn(d.store.Dir(), &run)
		if err != nil {
			return nil, &exitError{runtime.ExitBroken, fmt.Sprintf("who may decide about run %s cannot be told: %v", run.ID, err)}
		}
		of = &ofRun{run, plan}
		d.runs[run.ID] = of
	}
	m := &matter{status: of.Status, levels: levelsOf(of.plan)}
	m.Envelope = spec.Envelope{APIVersion: spec.APIVersion, Kind: spec.KindApprovalRequest}
	m.ApprovalRequest, m.Votes = found.ApprovalRequest, found.Decisions
	m.Team, m.Author, m.Approvals = of.Team, of.Author, of.plan.Approvals
	return m, nil
}

// planIn reads the plan of a run, which must be the one that it was begun with.
func planIn(state string, run *journal.Run) (*spec.Plan, error) {
	c, err := planOf(filepath.Join(state, "runs", run.ID), &origin{})
	if err != nil {
		return nil, err
	}
	if c.plan.Digest != run.Plan {
		return nil, fmt.Errorf("%s holds another plan than the run's", c.file)
	}
	return c.plan, nil
}
