package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// Status is where a run stands.
type Status string

const (
	StatusRunning   Status = "running"   // a process drives it
	StatusSuspended Status = "suspended" // it waits for a person
	// StatusInterrupted is a run that stopped and can go on: it was stopped, or its process is gone. The second is not
	// stored but seen by the lock.
	StatusInterrupted Status = "interrupted"
	StatusEnded       Status = "ended" // it never goes on
)

var statuses = []Status{StatusRunning, StatusSuspended, StatusInterrupted, StatusEnded}

// Statuses are all there are.
func Statuses() []Status { return slices.Clone(statuses) }

// Run is what the store knows of a run beside its records. Times are UTC, to the millisecond.
type Run struct {
	ID     string `json:"id"`     // letters, digits, - _ and ., at most 128; it names a folder
	Team   string `json:"team"`   // the team's name
	Plan   string `json:"plan"`   // the plan's digest
	Core   string `json:"core"`   // the version of the program that began the run
	Author string `json:"author"` // whoever says so: nobody has checked

	CreatedAt time.Time `json:"createdAt"`        // zero in Begin: now
	EndedAt   time.Time `json:"endedAt,omitzero"` // zero: it has not ended
	Status    Status    `json:"status"`
	ExitCode  int       `json:"exitCode"`         // of the last attempt, if it is not running
	Attempt   int       `json:"attempt"`          // 1-based
	Records   int64     `json:"records"`          // how many there are
	Holder    *Holder   `json:"holder,omitempty"` // nil: nobody holds it, or it has ended

	num     int64
	durable int64 // records that were flushed
}

// Holder is the process that holds a run, by its own words in the lock file.
type Holder struct {
	PID   int       `json:"pid"` // 0: it is not known who
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
}

// Begin adds a run and holds it. Of the Run its ID, Team, Plan, Core, Author and CreatedAt are taken.
func (s *Store) Begin(ctx context.Context, r Run) (*Log, error) {
	if !goodID(r.ID) {
		return nil, fmt.Errorf("%q cannot be a run's id: letters, digits, - _ and . are, at most 128 of them", r.ID)
	}
	file, err := s.hold(r.ID)
	if err != nil {
		return nil, err
	}
	if file == nil {
		return nil, fmt.Errorf("%w: %q", ErrExists, r.ID)
	}
	if r.CreatedAt.IsZero() {
		r.CreatedAt = s.now()
	}
	return s.open(ctx, r.ID, file, s.add(ctx, &r))
}

func (s *Store) add(ctx context.Context, r *Run) error {
	sum, err := r.sum()
	if err != nil {
		return fmt.Errorf("run %q is not described by text: %w", r.ID, err)
	}
	tx, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	res, err := tx.ExecContext(ctx, sqlAddRun, r.ID, r.Team, r.Plan, r.Core, r.Author, milli(r.CreatedAt), sum)
	if err != nil {
		return err
	}
	if n, _ := res.RowsAffected(); n == 0 {
		return fmt.Errorf("%w: %q", ErrExists, r.ID)
	}
	if err := removeTail(s.tailPath(r.ID)); err != nil { // one of a run that was pruned is not this one's
		return err
	}
	return tx.Commit()
}

// Continue holds a run that another process left, and counts an attempt. Whoever cares about plan and version must look
// at them first, with Run: they never change.
func (s *Store) Continue(ctx context.Context, id string) (*Log, error) {
	r, err := s.row(ctx, id)
	if err != nil {
		return nil, err
	}
	file, err := s.hold(id)
	if err != nil {
		return nil, err
	}
	if file == nil {
		return nil, &HeldError{id, holderOf(s.lockPath(id))}
	}
	if r, err = s.row(ctx, id); err == nil { // now that nobody else can change it
		err = s.take(ctx, r)
	}
	return s.open(ctx, id, file, err)
}

func (s *Store) take(ctx context.Context, r *Run) error {
	if r.Status == StatusEnded {
		return fmt.Errorf("%w: %q", ErrEnded, r.ID)
	}
	if r.Records < r.durable {
		return &DamageError{s.path, r.ID, r.Records + 1, "is missing"}
	}
	lines, err := s.readTail(r.ID)
	if err != nil {
		return err
	}
	seq, head, err := s.last(ctx, r)
	if err != nil {
		return err
	}
	if kept, ahead := after(lines, seq, head); ahead { // an older copy of the database was put in its place
		return &DamageError{s.path, r.ID, seq + int64(len(kept)) + 1, "is missing, and " + s.tailPath(r.ID) + " has later ones"}
	}
	_, err = s.db.ExecContext(ctx, sqlTakeRun, r.num)
	return err
}

// Run gives one run.
func (s *Store) Run(ctx context.Context, id string) (Run, error) {
	r, err := s.row(ctx, id)
	if err != nil {
		return Run{}, err
	}
	s.look(ctx, r)
	return *r, nil
}

// Filter chooses runs. Its zero value chooses all.
type Filter struct {
	Status Status // empty: any
	Team   string // empty: any
	Limit  int    // 0: no limit
}

// Runs gives runs, newest first.
func (s *Store) Runs(ctx context.Context, f Filter) ([]Run, error) {
	rows, err := s.db.QueryContext(ctx, sqlRunsLast, f.Team)
	if err != nil {
		return nil, s.fail(err)
	}
	defer rows.Close()
	var all []*Run
	for rows.Next() {
		r, err := s.scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	if err := rows.Err(); err != nil {
		return nil, s.fail(err)
	}
	var runs []Run
	for _, r := range all {
		if s.look(ctx, r); f.Status == "" || r.Status == f.Status {
			runs = append(runs, *r)
		}
		if f.Limit > 0 && len(runs) == f.Limit {
			break
		}
	}
	return runs, nil
}

// look asks the lock whether somebody holds a run, and whom, and counts the records in its tail. A run that is said to be
// running and is not held was interrupted. What cannot be read is not counted: reading the records says why.
func (s *Store) look(ctx context.Context, r *Run) {
	if r.Status == StatusEnded {
		return
	}
	if lines, err := s.readTail(r.ID); err == nil {
		if seq, head, err := s.last(ctx, r); err == nil {
			records, _ := after(lines, seq, head)
			r.Records = seq + int64(len(records))
		}
	}
	switch path := s.lockPath(r.ID); {
	case locked(path):
		h := holderOf(path)
		r.Holder = &h
	case r.Status == StatusRunning:
		r.Status = StatusInterrupted
	}
}

// row gives a run as it is stored.
func (s *Store) row(ctx context.Context, id string) (*Run, error) {
	r, err := s.scan(s.db.QueryRowContext(ctx, sqlRunByID, id))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, s.unknown(ctx, id)
	}
	return r, err
}

func (s *Store) scan(row interface{ Scan(...any) error }) (*Run, error) {
	var r Run
	var created, ended int64
	var sum string
	if err := row.Scan(&r.num, &r.ID, &r.Team, &r.Plan, &r.Core, &r.Author, &created, &sum, &ended, &r.Status, &r.ExitCode, &r.Attempt,
		&r.durable, &r.Records); err != nil {
		return nil, s.fail(err)
	}
	r.CreatedAt, r.EndedAt = moment(created), moment(ended)
	if is, err := r.sum(); err != nil || is != sum || !slices.Contains(statuses, r.Status) {
		return nil, fmt.Errorf("%w: %s: run %q is not stored as it was begun", ErrCorrupt, s.path, r.ID)
	}
	return &r, nil
}

// sum is of what never changes.
func (r *Run) sum() (string, error) {
	return canon.DigestOf("run", []any{r.ID, r.Team, r.Plan, r.Core, r.Author, milli(r.CreatedAt)})
}

// unknown looks for what may have been meant among the newest runs.
func (s *Store) unknown(ctx context.Context, id string) error {
	rows, err := s.db.QueryContext(ctx, sqlRunIDs)
	if err != nil {
		return s.fail(err)
	}
	ids, err := s.texts(rows)
	if err != nil {
		return err
	}
	return &UnknownError{ID: id, Near: nearest(id, ids)}
}

// texts reads rows of one text each.
func (s *Store) texts(rows *sql.Rows) (all []string, err error) {
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, s.fail(err)
		}
		all = append(all, text)
	}
	return all, s.fail(rows.Err())
}

// nearest gives what may have been meant, nearest first, at most three.
func nearest(id string, ids []string) (near []string) {
	for len(near) < 3 {
		best := spec.Nearest(id, ids)
		if best == "" {
			break
		}
		near = append(near, best)
		ids = slices.DeleteFunc(ids, func(known string) bool { return known == best })
	}
	return near
}

// hold takes a run's lock; nil if another process has it. The lock keeps its file, so that nobody can remove it and
// lock another one of the same name.
func (s *Store) hold(id string) (*os.File, error) {
	if s.ro {
		return nil, fmt.Errorf("%s was opened for reading only", s.path)
	}
	if err := os.MkdirAll(filepath.Dir(s.lockPath(id)), 0o700); err != nil {
		return nil, err
	}
	return lock(s.lockPath(id), Holder{os.Getpid(), host(), s.now().UTC()})
}

func (s *Store) lockPath(id string) string { return filepath.Join(s.dir, "runs", id, "lock") }

func (s *Store) tailPath(id string) string { return filepath.Join(s.dir, "runs", id, "tail") }

// goodID keeps ids from leading out of the folder of runs.
func goodID(id string) bool {
	const marks = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."
	return id != "" && len(id) <= 128 && id[0] != '.' && strings.Trim(id, marks) == ""
}
