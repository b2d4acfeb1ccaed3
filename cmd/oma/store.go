package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
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

	// What it was to be held against, and where its receipt was to go: not naming it again must not be a way around it.
	Ceilings          spec.Budgets `json:"ceilings"` // given on the command line
	RequireGovernance bool         `json:"requireGovernance"`
	FailOn            string       `json:"failOn,omitempty"`
	Receipt           string       `json:"receipt,omitempty"` // empty: the run's folder
}

// originOf reads how a run was started.
func originOf(folder string) (from origin, err error) {
	raw, err := os.ReadFile(filepath.Join(folder, originName))
	if err == nil {
		err = json.Unmarshal(raw, &from)
	}
	if err != nil {
		err = fmt.Errorf("how the run was started cannot be read, so it cannot go on; run the team again: %w", err)
	}
	return from, err
}

// open begins the run in the store, with all that it takes to go on, or takes up one that is there.
func (s *execution) open(ctx context.Context, ceilings spec.Budgets) error {
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
	if err := s.once(ctx, false); err != nil {
		return errors.Join(err, s.store.Close())
	}
	if err := s.leaveOrigin(ceilings); err != nil { // first: a run that is in the store can go on
		return err
	}
	if s.log, err = s.store.Begin(ctx, journal.Run{ID: s.id, Team: s.c.plan.Team.Name, Plan: s.c.plan.Digest, Core: build().Version, Author: s.author}); err != nil {
		return fmt.Errorf("the run cannot be recorded: %w", err)
	}
	if err := s.once(ctx, true); err != nil { // two were started at once, and both had looked
		return errors.Join(err, s.log.SetStatus(ctx, journal.StatusEnded, runtime.ExitUsage, s.now()))
	}
	return nil
}

// leaveOrigin writes what a later attempt starts from. The plan is, byte for byte, what oma plan --out writes.
func (s *execution) leaveOrigin(ceilings spec.Budgets) error {
	plan, err := s.c.plan.Encode()
	if err != nil {
		return err
	}
	o := origin{Dir: s.wiring.dir, Above: s.wiring.above, Cwd: s.wiring.cwd, Saved: s.c.loaded == nil,
		Ceilings: ceilings, RequireGovernance: s.f.requireGovernance, FailOn: s.f.failOn}
	if s.f.receipt != "" {
		o.Receipt = s.receipt
	}
	from, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(writeFile(filepath.Join(s.folder, planName), append(plan, '\n')), writeFile(filepath.Join(s.folder, originName), from))
}

// once refuses to run a saved plan that was run before, unless that is asked for: what it does would be done twice. Once
// this run has begun, only those that began before it count.
func (s *execution) once(ctx context.Context, begun bool) error {
	if s.c.loaded != nil || s.f.again {
		return nil
	}
	runs, err := s.store.Runs(ctx, journal.Filter{Team: s.c.plan.Team.Name})
	if err != nil {
		return err
	}
	if begun { // the newest come first
		runs = runs[slices.IndexFunc(runs, func(r journal.Run) bool { return r.ID == s.id })+1:]
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

// recording is the log as the runner sees it. The run is held until it is settled. Of a first attempt the log is also
// copied to the file that the gate reads: reading it back at the end would take longer than anything else of it.
type recording struct {
	*journal.Log
	file *os.File // nil: there is no copy, or it failed
	copy *bufio.Writer
}

// record makes the log of the run for the runner.
func (s *execution) record() *recording {
	r := &recording{Log: s.log}
	if s.past != nil {
		return r
	}
	file, err := os.CreateTemp(s.folder, "."+logName+".*")
	if err == nil {
		r.file, r.copy = file, bufio.NewWriterSize(file, 64<<10)
	}
	return r
}

// Append stores a record, and copies it as far as that goes: the store is what counts.
func (r *recording) Append(record []byte) error {
	if r.file != nil {
		r.copy.Write(record)
		if r.copy.WriteByte('\n') != nil {
			r.drop()
		}
	}
	return r.Log.Append(record)
}

func (r *recording) Close() error { return r.Sync() }

// keep puts the copy in its place. False: there is none. It is not flushed to disk, unlike the store: where a loss of power
// takes some of it, the gate fails, and oma runs show --events gives it again.
func (r *recording) keep(path string) bool {
	if r == nil || r.file == nil {
		return false
	}
	err := r.copy.Flush()
	if err == nil {
		err = os.Rename(r.file.Name(), path)
	}
	if err != nil {
		r.drop()
		return false
	}
	err = r.file.Close()
	r.file = nil
	return err == nil
}

// drop removes the copy, unless it is in its place.
func (r *recording) drop() {
	if r != nil && r.file != nil {
		r.file.Close()
		os.Remove(r.file.Name())
		r.file = nil
	}
}

// settle says in the store where the run stands, writes its log as a file that the gate reads, and lets the run go.
func (s *execution) settle(ctx context.Context, res *runtime.Result) (err error) {
	if s.log == nil {
		return nil
	}
	if res != nil {
		status, ended := journal.StatusEnded, s.now()
		switch {
		case res.Stopped:
			status, ended = journal.StatusInterrupted, time.Time{}
		case res.Suspended:
			status, ended = journal.StatusSuspended, time.Time{}
		}
		// The status comes last: a run that has ended has all that is left of it.
		err = errors.Join(s.export(ctx), s.log.SetStatus(ctx, status, res.Receipt.ExitCodes[0], ended))
	}
	s.kept.drop()
	return errors.Join(err, s.log.Close(), s.store.Close())
}

func (s *execution) export(ctx context.Context) error {
	if s.kept.keep(filepath.Join(s.folder, logName)) {
		return nil
	}
	left, _ := filepath.Glob(filepath.Join(s.folder, "."+logName+".*")) // of attempts that were killed
	for _, path := range left {
		os.Remove(path)
	}
	return writeTo(filepath.Join(s.folder, logName), func(w io.Writer) error {
		if err := s.store.Export(ctx, s.id, w); err != nil {
			return fmt.Errorf("the event log cannot be copied: %w", err)
		}
		return nil
	})
}

// stateOf finds the state folder that a run is kept in: the one that was named, else that of the folder oma runs in, or any
// other beside it, which are all this user's.
func (a *app) stateOf(flag, id string) (string, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	state, err := a.stateDir(flag, cwd)
	if err != nil || flag != "" || a.getenv("OMA_STATE") != "" || exists(filepath.Join(state, "runs", id, originName)) {
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
	case errors.Is(err, runtime.ErrDiverged):
		return &exitError{runtime.ExitStale, err.Error() + "; what has happened is in the log, and a new run starts from the beginning"}
	}
	return err
}
