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
	begin   *sql.Stmt
	commit  *sql.Stmt
	queue   []entry // appended and not stored yet
	queued  int     // bytes of it
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
	for _, p := range []struct {
		to   **sql.Stmt
		text string
	}{{&l.add, sqlAddRecord}, {&l.begin, "BEGIN IMMEDIATE"}, {&l.commit, "COMMIT"}} {
		if *p.to, err = l.conn.PrepareContext(ctx, p.text); err != nil {
			return err
		}
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

// Append takes one record. It is stored by the next Flush, Sync, SetStatus or Close, or when many have come.
func (l *Log) Append(record []byte) error {
	switch {
	case l.closed:
		return fmt.Errorf("the log of run %q is closed", l.run.ID)
	case len(record) == 0 || bytes.IndexByte(record, '\n') >= 0:
		return errors.New("a record is one line of JSON")
	}
	head := canon.Chain(l.head, record)
	sum, err := raw(head)
	if err != nil {
		return err
	}
	l.seq, l.head = l.seq+1, head
	l.queue = append(l.queue, entry{l.seq, bytes.Clone(record), sum})
	if l.queued += len(record); len(l.queue) < maxQueue && l.queued < maxQueued {
		return nil
	}
	return l.Flush()
}

// What waits to be stored is bounded, in records and in bytes.
const (
	maxQueue  = 256
	maxQueued = 1 << 20
)

// entry is a record that waits to be stored.
type entry struct {
	seq         int64
	record, sum []byte
}

// Flush stores what was appended, in one transaction: all of it or nothing. When it returns nil every record survives the
// end of this process. After an error it can be tried again.
func (l *Log) Flush() error {
	if len(l.queue) == 0 {
		return nil
	}
	if err := l.storeQueue(context.Background()); err != nil {
		return l.store.fail(err)
	}
	l.queue, l.queued = l.queue[:0], 0
	return nil
}

func (l *Log) storeQueue(ctx context.Context) error {
	if len(l.queue) == 1 && len(l.queue[0].record) < blobFrom { // one statement is a transaction by itself
		return l.put(ctx, l.queue[0])
	}
	if _, err := l.begin.ExecContext(ctx); err != nil {
		return err
	}
	for _, e := range l.queue {
		if err := l.put(ctx, e); err != nil {
			_, undo := l.conn.ExecContext(ctx, "ROLLBACK")
			return errors.Join(err, undo)
		}
	}
	_, err := l.commit.ExecContext(ctx)
	return err
}

// put adds one record. A large one is stored without its payload, and the payload unless it is there.
func (l *Log) put(ctx context.Context, e entry) error {
	if len(e.record) < blobFrom {
		_, err := l.add.ExecContext(ctx, key(l.run.num, e.seq), e.record, e.sum)
		return err
	}
	from, to := payload(e.record)
	name := canon.Digest("blob", e.record[from:to])
	if _, err := l.conn.ExecContext(ctx, sqlAddBlob, name, e.record[from:to]); err != nil {
		return err
	}
	body := append(append([]byte{}, e.record[:from]...), e.record[to:]...) // not nil, which would be stored as NULL
	_, err := l.conn.ExecContext(ctx, sqlAddCut, key(l.run.num, e.seq), body, from, e.sum, name)
	return err
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
	if err := l.Flush(); err != nil {
		return err
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
	if err := l.Flush(); err != nil {
		return err
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
	err := l.Sync()
	l.closed = true
	return l.store.fail(errors.Join(err, l.add.Close(), l.begin.Close(), l.commit.Close(), l.conn.Close(), l.file.Close()))
}

const digestPrefix = "sha256:"

// raw and digest turn a digest into its bytes, which is how it is stored, and back.
func raw(digest string) ([]byte, error) {
	return hex.DecodeString(strings.TrimPrefix(digest, digestPrefix))
}

func digest(raw []byte) string { return digestPrefix + hex.EncodeToString(raw) }
