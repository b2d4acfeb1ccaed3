package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/journal"
	"github.com/open-multi-agent/oma/spec"
)

// The files of a run in its folder, beside its receipt and its event log.
const (
	planName   = "plan.json"
	originName = "origin.json"
)

// origin is how a run was started, so that it can go on from anywhere on this machine.
type origin struct {
	Dir   string   `json:"dir"`   // the folder paths in the plan are relative to
	Above []string `json:"above"` // the policies given above it
	Cwd   string   `json:"cwd"`   // where the program was started
	Saved bool     `json:"saved"` // it was a saved plan
}

// originOf reads how a run was started.
func originOf(folder string) (from origin, err error) {
	raw, err := os.ReadFile(filepath.Join(folder, originName))
	if err == nil {
		err = json.Unmarshal(raw, &from)
	}
	if err != nil {
		err = fmt.Errorf("how the run was started cannot be read: %w", err)
	}
	return from, err
}

// open begins the run in the store, with all that it takes to go on, or takes up one that is there.
func (s *execution) open(ctx context.Context) error {
	if s.f.noJournal || s.log != nil {
		return nil
	}
	err := os.MkdirAll(s.folder, 0o700)
	if err != nil {
		return fmt.Errorf("the state folder cannot be made: %w", err)
	}
	if s.store, err = journal.Open(s.state, journal.Options{Now: s.now}); err != nil {
		return fmt.Errorf("the store of runs cannot be opened: %w", err)
	}
	if err := s.once(ctx); err != nil {
		return errors.Join(err, s.store.Close())
	}
	if s.log, err = s.store.Begin(ctx, journal.Run{ID: s.id, Team: s.c.plan.Team.Name, Plan: s.c.plan.Digest, Core: build().Version}); err != nil {
		return fmt.Errorf("the run cannot be recorded: %w", err)
	}
	plan, err := s.c.plan.Encode()
	if err != nil {
		return err
	}
	from, err := json.MarshalIndent(origin{s.wiring.dir, s.wiring.above, s.wiring.cwd, s.c.loaded == nil}, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(writeFile(filepath.Join(s.folder, planName), plan), writeFile(filepath.Join(s.folder, originName), from))
}

// once refuses to run a saved plan that was run before, unless that is asked for: what it does would be done twice.
func (s *execution) once(ctx context.Context) error {
	if s.c.loaded != nil || s.f.again {
		return nil
	}
	runs, err := s.store.Runs(ctx, journal.Filter{Team: s.c.plan.Team.Name})
	if err != nil {
		return err
	}
	for _, r := range runs {
		if r.Plan == s.c.plan.Digest && fromPlan(filepath.Join(s.state, "runs", r.ID)) {
			return usage("%s was run already, as %s: --again runs it once more", s.c.file, r.ID)
		}
	}
	return nil
}

// fromPlan says that a run was of a saved plan.
func fromPlan(folder string) bool {
	from, err := originOf(folder)
	return err == nil && from.Saved
}

// recording is the log as the runner sees it. The run is held until it is settled.
type recording struct{ *journal.Log }

func (r recording) Close() error { return r.Sync() }

// settle says in the store where the run stands, writes its log as a file that the gate reads, and lets the run go.
func (s *execution) settle(ctx context.Context, res *runtime.Result) (err error) {
	if s.log == nil {
		return nil
	}
	if res != nil {
		status, ended := journal.StatusEnded, s.now()
		if interrupted(res.Receipt) {
			status, ended = journal.StatusInterrupted, time.Time{}
		}
		err = errors.Join(s.log.SetStatus(ctx, status, res.Receipt.ExitCodes[0], ended), s.export(ctx))
	}
	return errors.Join(err, s.log.Close(), s.store.Close())
}

// interrupted says that a run was told to stop, so that it can go on.
func interrupted(r *spec.Receipt) bool { return r.Status.Code == spec.StatusCancelled }

func (s *execution) export(ctx context.Context) error {
	var b bytes.Buffer
	if err := s.store.Export(ctx, s.id, &b); err != nil {
		return fmt.Errorf("the event log cannot be read back: %w", err)
	}
	return writeFile(filepath.Join(s.folder, logName), b.Bytes())
}

// stateOf finds the state folder that a run is kept in: the one that was named, that of the folder oma runs in, or any
// other of this user.
func (a *app) stateOf(flag, id string) (string, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	state, err := a.stateDir(flag, cwd)
	if err != nil || flag != "" || exists(filepath.Join(state, "runs", id, originName)) {
		return state, err
	}
	others, err := filepath.Glob(filepath.Join(filepath.Dir(state), "*", "runs", id, originName))
	if err != nil || len(others) == 0 || id != filepath.Base(id) {
		return state, nil
	}
	return filepath.Dir(filepath.Dir(filepath.Dir(others[0]))), nil
}

// storeError gives the exit code that belongs to what a store says.
func storeError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, journal.ErrHeld):
		return &exitError{runtime.ExitHeld, err.Error()}
	case errors.Is(err, journal.ErrUnknown), errors.Is(err, journal.ErrEnded), errors.Is(err, os.ErrNotExist):
		return usage("%v", err)
	}
	return err
}
