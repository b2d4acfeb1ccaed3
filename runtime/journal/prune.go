package journal

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// PruneOptions say what may go.
type PruneOptions struct {
	OlderThan   time.Duration // since the run ended; of a run that has not ended since it began
	Interrupted bool          // runs that were interrupted may go too; they could have been continued
	Suspended   bool          // runs that wait for people may go too, with what they ask
}

// Prune removes whole runs with their records and approvals, and payloads nobody else has, and gives the ids of those
// runs. A run that is held stays. Files beside the lock in the run's folder, like its receipt, stay too. On
// an error the runs given are gone.
func (s *Store) Prune(ctx context.Context, o PruneOptions) ([]string, error) {
	old, err := s.prunable(ctx, s.db, o, 0)
	if err != nil {
		return nil, err
	}
	var gone []string
	for _, r := range old {
		done, err := s.prune(ctx, o, r)
		if err != nil {
			return gone, s.fail(err)
		}
		if done {
			gone = append(gone, r.ID)
		}
	}
	if len(gone) == 0 {
		return nil, nil
	}
	_, err = s.db.ExecContext(ctx, "PRAGMA incremental_vacuum") // the file gets smaller
	return gone, s.fail(err)
}

// prunable gives the runs that may go, by number and id: all of them, or if num is not 0 at most that one.
func (s *Store) prunable(ctx context.Context, q querier, o PruneOptions, num int64) ([]Run, error) {
	rows, err := q.QueryContext(ctx, sqlPrunable, milli(s.now().Add(-o.OlderThan)), o.Interrupted, num, o.Suspended)
	if err != nil {
		return nil, s.fail(err)
	}
	defer rows.Close()
	var old []Run
	for rows.Next() {
		var r Run
		if err := rows.Scan(&r.num, &r.ID); err != nil {
			return nil, s.fail(err)
		}
		old = append(old, r)
	}
	return old, s.fail(rows.Err())
}

// prune removes one run, in one transaction and under its lock, unless it is held or has changed meanwhile.
func (s *Store) prune(ctx context.Context, o PruneOptions, r Run) (bool, error) {
	file, err := s.hold(r.ID)
	if err != nil || file == nil {
		return false, err
	}
	defer file.Close()
	tx, err := s.begin(ctx)
	if err != nil {
		return false, err
	}
	defer tx.Rollback() // after Commit it does nothing
	if still, err := s.prunable(ctx, tx, o, r.num); err != nil || len(still) == 0 {
		return false, err
	}
	for _, statement := range sqlPrune {
		if _, err := tx.ExecContext(ctx, statement, r.num); err != nil {
			return false, err
		}
	}
	if err := tx.Commit(); err != nil {
		return false, err
	}
	// What cannot be removed is of a run that is gone, and harms nobody.
	os.Remove(s.tailPath(r.ID))
	os.Remove(s.lockPath(r.ID))
	os.Remove(filepath.Dir(s.lockPath(r.ID))) // fails if there is a receipt, which stays
	return true, nil
}
