package journal

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec/canon"
)

// blobFrom is the size in bytes from which the payload of a record is kept once, by its digest: what several records
// hold, like a file that agents read one after another, is then stored once.
const blobFrom = 16 << 10

// Log is a run that this process holds. It is used from one goroutine, like every runtime.Journal.
type Log struct {
	store   *Store
	run     Run
	seq     int64
	head    string // the chain's digest; empty: no record
	durable int64
	file    *os.File // the lock
	conn    *sql.Conn
	add     *sql.Stmt
	closed  bool
}

var _ runtime.Journal = (*Log)(nil)

// open makes the log of a run that is locked. If err is not nil, or anything fails, the lock is let go.
func (s *Store) open(ctx context.Context, id string, file *os.File, err error) (*Log, error) {
	l := &Log{store: s, file: file}
	if err == nil {
		err = l.ready(ctx, id)
	}
	if err != nil {
		if l.conn != nil {
			l.conn.Close()
		}
		file.Close()
		return nil, s.fail(err)
	}
	return l, nil
}

func (l *Log) ready(ctx context.Context, id string) error {
	r, err := l.store.row(ctx, id)
	if err != nil {
		return err
	}
	l.run, l.durable = *r, r.durable
	if l.conn, err = l.store.fast.Conn(ctx); err != nil {
		return err
	}
	if l.add, err = l.conn.PrepareContext(ctx, sqlAddRecord); err != nil {
		return err
	}
	var num int64
	var head []byte
	err = l.conn.QueryRowContext(ctx, sqlLastRecord, key(r.num, 0), key(r.num+1, -1)).Scan(&num, &head)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	l.seq, l.head = num-key(r.num, 0), digest(head)
	return err
}

// key is the number under which a record is stored. Neither part can reach its limit of 2^31 runs and 2^32 records.
func key(run, seq int64) int64 { return run<<32 + seq }

// Run says which run is held, as it was when it was opened.
func (l *Log) Run() Run { return l.run }

// Seq is the number of records there are.
func (l *Log) Seq() int64 { return l.seq }

// Head is the chain's digest over all records; empty if there is none.
func (l *Log) Head() string { return l.head }

// Append stores one record. When it returns nil the record survives the end of this process; after Sync, that of the
// machine. On an error nothing is stored.
func (l *Log) Append(record []byte) error {
	switch {
	case l.closed:
		return fmt.Errorf("the log of run %q is closed", l.run.ID)
	case len(record) == 0 || bytes.IndexByte(record, '\n') >= 0:
		return errors.New("a record is one line of JSON")
	}
	ctx := context.Background()
	head := canon.Chain(l.head, record)
	sum, err := raw(head)
	if err != nil {
		return err
	}
	if len(record) < blobFrom {
		_, err = l.add.ExecContext(ctx, key(l.run.num, l.seq+1), record, sum)
	} else {
		err = l.addCut(ctx, record, sum)
	}
	if err != nil {
		return l.store.fail(err)
	}
	l.seq, l.head = l.seq+1, head
	return nil
}

// addCut stores a large record without its payload, and the payload unless it is there.
func (l *Log) addCut(ctx context.Context, record, sum []byte) error {
	from, to := payload(record)
	name := canon.Digest("blob", record[from:to])
	tx, err := l.conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	if _, err := tx.ExecContext(ctx, sqlAddBlob, name, record[from:to]); err != nil {
		return err
	}
	body := append(append([]byte{}, record[:from]...), record[to:]...) // not nil, which would be stored as NULL
	if _, err := tx.ExecContext(ctx, sqlAddCut, key(l.run.num, l.seq+1), body, from, sum, name); err != nil {
		return err
	}
	return tx.Commit()
}

// payload says which part of a record is kept as a blob: an event's data, which unlike the rest of it can be the same
// in two events. It guesses by the text; any part will do, since the record is put together again from the same bytes.
func payload(record []byte) (from, to int) {
	name := []byte(`,"data":`)
	if from = bytes.Index(record, name); from < 0 || from > blobFrom/2 {
		return 0, len(record)
	}
	from += len(name)
	if to = bytes.LastIndex(record, []byte(`,"prev":"`)); to < from || to < len(record)-128 {
		to = len(record) - 1 // the first record has no prev
	}
	return from, to
}

// Sync makes all records so far survive a loss of power. It costs a flush of the disk, or nothing if nothing is new.
func (l *Log) Sync() error {
	if l.closed || l.durable == l.seq {
		return nil
	}
	if _, err := l.store.db.Exec(sqlDurable, l.seq, l.run.num); err != nil {
		return l.store.fail(err)
	}
	l.durable = l.seq
	return nil
}

// SetStatus says where the run stands, with the exit code and the time at which it stopped, and makes that and all
// records survive a loss of power. Zero ended: it has not ended, or now if the status says so.
func (l *Log) SetStatus(ctx context.Context, status Status, exitCode int, ended time.Time) error {
	switch {
	case l.closed:
		return fmt.Errorf("the log of run %q is closed", l.run.ID)
	case !slices.Contains(statuses, status):
		return fmt.Errorf("%q is no status: expected one of %v", status, statuses)
	case status == StatusEnded && ended.IsZero():
		ended = l.store.now()
	}
	if _, err := l.store.db.ExecContext(ctx, sqlSetStatus, status, exitCode, milli(ended), l.seq, l.run.num); err != nil {
		return l.store.fail(err)
	}
	l.durable = l.seq
	return nil
}

// Close lets the run go, with its records on disk. Closed again it does nothing.
func (l *Log) Close() error {
	if l.closed {
		return nil
	}
	l.closed = true
	_, err := l.store.db.Exec(sqlDurable, l.seq, l.run.num)
	return l.store.fail(errors.Join(err, l.add.Close(), l.conn.Close(), l.file.Close()))
}

const digestPrefix = "sha256:"

// raw and digest turn a digest into its bytes, which is how it is stored, and back.
func raw(digest string) ([]byte, error) {
	return hex.DecodeString(strings.TrimPrefix(digest, digestPrefix))
}

func digest(raw []byte) string { return digestPrefix + hex.EncodeToString(raw) }
