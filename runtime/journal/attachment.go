package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec/canon"
)

var _ runtime.Keeper = (*Log)(nil)

// Keep stores bytes that records name by a digest of their own, once for all runs. When it returns nil they survive a loss
// of power.
func (l *Log) Keep(digest string, data []byte) error {
	if l.closed {
		return fmt.Errorf("the log of run %q is closed", l.run.ID)
	}
	ctx := context.Background()
	tx, err := l.store.begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	name := canon.Digest("blob", data)
	if _, err := tx.ExecContext(ctx, sqlAddBlob, name, data); err != nil {
		return l.store.fail(err)
	}
	if _, err := tx.ExecContext(ctx, sqlAttach, l.run.num, digest, name); err != nil {
		return l.store.fail(err)
	}
	return l.store.fail(tx.Commit())
}

// Kept gives bytes that this attempt or an earlier one has kept.
func (l *Log) Kept(digest string) ([]byte, error) {
	var name string
	var data []byte
	err := l.store.fail(l.store.db.QueryRow(sqlAttached, l.run.num, digest).Scan(&name, &data))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, fmt.Errorf("%s has nothing of run %q under %s", l.store.path, l.run.ID, digest)
	case err != nil:
		return nil, err
	case canon.Digest("blob", data) != name:
		return nil, fmt.Errorf("%w: %s: an attachment of run %q is not what was kept", ErrCorrupt, l.store.path, l.run.ID)
	}
	return data, nil
}
