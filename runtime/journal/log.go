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
	head    string   // the chain's digest; empty: no record
	file    *os.File // the lock
	queue   []row    // appended and not in the database yet
	durable int64    // records in the database
	tail    tail     // of the queue, what survives this process
	closed  bool

	statements map[string]*sql.Stmt // those of move
}

var _ runtime.Journal = (*Log)(nil)

// open makes the log of a run that is locked. If err is not nil, or anything fails, the lock is let go.
func (s *Store) open(ctx context.Context, id string, file *os.File, err error) (*Log, error) {
	l := &Log{store: s, file: file, tail: tail{path: s.tailPath(id)}, statements: map[string]*sql.Stmt{}}
	if err == nil {
		err = l.ready(ctx, id)
	}
	if err != nil {
		file.Close()
		return nil, s.fail(err)
	}
	return l, nil
}

func (l *Log) ready(ctx context.Context, id string) error {
	lines, err := l.store.readTail(id)
	if err != nil {
		return err
	}
	r, err := l.store.row(ctx, id)
	if err != nil {
		return err
	}
	l.run = *r
	if l.seq, l.head, err = l.store.last(ctx, r); err != nil {
		return err
	}
	l.durable = l.seq
	records, _ := after(lines, l.seq, l.head)
	for _, record := range records {
		if err := l.Append(record); err != nil {
			return err
		}
	}
	if err := l.Sync(); err != nil {
		return err
	}
	return removeTail(l.tail.path) // what is left of it belongs to nothing
}

// last gives the number of the last record in the database and the chain's digest with it.
func (s *Store) last(ctx context.Context, r *Run) (seq int64, head string, err error) {
	var num int64
	var sum []byte
	err = s.db.QueryRowContext(ctx, sqlLastRecord, key(r.num, 0), key(r.num+1, -1)).Scan(&num, &sum)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, "", nil
	}
	return num - key(r.num, 0), digest(sum), s.fail(err)
}

// key is the number under which a record is stored. Neither part can reach its limit of 2^31 runs and 2^32 records.
func key(run, seq int64) int64 { return run<<32 + seq }

// Run says which run is held, as it was when it was opened.
func (l *Log) Run() Run { return l.run }

// Seq is the number of records there are.
func (l *Log) Seq() int64 { return l.seq }

// Head is the chain's digest over all records; empty if there is none.
func (l *Log) Head() string { return l.head }

// What waits to be stored in the database is bounded: the records of one row and their bytes, and the bytes of all.
const (
	maxRow      = 256
	maxRowBytes = 64 << 10
	maxQueued   = 1 << 20
)

// row is what is stored together: many records, or a large one.
type row struct {
	last        int64 // the number of its last record
	body, heads []byte
	large       bool
}

// Append takes one record. It is kept by the next Flush, Sync, SetStatus or Close, or when much has come.
func (l *Log) Append(record []byte) error {
	switch {
	case l.closed:
		return fmt.Errorf("the log of run %q is closed", l.run.ID)
	case len(record) == 0 || bytes.IndexByte(record, '\n') >= 0:
		return errors.New("a record is one line of JSON")
	}
	l.seq, l.head = l.seq+1, canon.Chain(l.head, record)
	r := l.room(len(record))
	if r.last = l.seq; len(r.body) > 0 {
		r.body = append(r.body, '\n')
	}
	r.body, r.heads = append(r.body, record...), appendRaw(r.heads, l.head)
	l.tail.add(l.seq, l.head, record)
	if l.tail.bytes() < maxQueued {
		return nil
	}
	return l.Sync()
}

// room gives the row that the next record, of so many bytes, goes into. The memory of rows is used again: a row that
// grows from nothing is copied many times over.
func (l *Log) room(size int) *row {
	n, large := len(l.queue), size >= blobFrom
	if n > 0 && !large {
		if r := &l.queue[n-1]; !r.large && len(r.heads) < maxRow*headSize && len(r.body)+1+size <= maxRowBytes {
			return r
		}
	}
	if n == cap(l.queue) {
		l.queue = append(l.queue, row{})
	}
	l.queue = l.queue[:n+1]
	r := &l.queue[n]
	r.large, r.body, r.heads = large, r.body[:0], r.heads[:0]
	if need := max(size, maxRowBytes); !large && cap(r.body) < need {
		r.body, r.heads = make([]byte, 0, need), make([]byte, 0, maxRow*headSize)
	}
	return r
}

// Flush keeps what was appended: all of it or nothing. When it returns nil every record survives the end of this process.
// After an error it can be tried again.
func (l *Log) Flush() error {
	switch {
	case l.tail.bytes() >= maxQueued: // it could not be stored
		return l.Sync()
	case len(l.tail.lines) == 0:
		return nil
	}
	return l.store.fail(l.tail.flush())
}

// Sync makes all records so far survive a loss of power. It costs a flush of the disk, or nothing if nothing is new.
func (l *Log) Sync() error {
	if l.closed || l.durable == l.seq {
		return nil
	}
	return l.move(context.Background(), sqlDurable, l.seq, l.run.num)
}

// move stores the queue in the database, in one transaction with what else is to be said of the run.
func (l *Log) move(ctx context.Context, statement string, args ...any) error {
	if err := errors.Join(l.prepare(ctx, sqlAddRecords), l.prepare(ctx, statement)); err != nil {
		return l.store.fail(err)
	}
	tx, err := l.store.begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	for i := range l.queue {
		if err := l.put(ctx, tx, &l.queue[i]); err != nil {
			return l.store.fail(err)
		}
	}
	if err := l.exec(ctx, tx, statement, args...); err != nil {
		return l.store.fail(err)
	}
	if err := tx.Commit(); err != nil {
		return l.store.fail(err)
	}
	l.queue, l.durable = l.queue[:0], l.seq
	l.tail.clear()
	return nil
}

// prepare makes a statement ready for all moves to come: that takes as long as to run it. It does so outside the
// transaction, on the connection that this one takes next.
func (l *Log) prepare(ctx context.Context, statement string) error {
	if l.statements[statement] != nil {
		return nil
	}
	st, err := l.store.db.PrepareContext(ctx, statement)
	if err == nil {
		l.statements[statement] = st
	}
	return err
}

func (l *Log) exec(ctx context.Context, tx *sql.Tx, statement string, args ...any) error {
	_, err := tx.StmtContext(ctx, l.statements[statement]).ExecContext(ctx, args...)
	return err
}

// put adds one row. A large record is stored without its payload, and the payload unless it is there.
func (l *Log) put(ctx context.Context, tx *sql.Tx, r *row) error {
	num := key(l.run.num, r.last)
	if !r.large {
		return l.exec(ctx, tx, sqlAddRecords, num, r.body, r.heads)
	}
	from, to := payload(r.body)
	name := canon.Digest("blob", r.body[from:to])
	if _, err := tx.ExecContext(ctx, sqlAddBlob, name, r.body[from:to]); err != nil {
		return err
	}
	rest := append(append([]byte{}, r.body[:from]...), r.body[to:]...) // not nil, which would be stored as NULL
	_, err := tx.ExecContext(ctx, sqlAddCut, num, rest, from, r.heads, name)
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
	return l.move(ctx, sqlSetStatus, status, exitCode, milli(ended), l.seq, l.run.num)
}

// Close lets the run go, with its records on disk. Closed again it does nothing.
func (l *Log) Close() error {
	if l.closed {
		return nil
	}
	err := l.Sync()
	l.closed = true
	for _, st := range l.statements {
		st.Close()
	}
	return errors.Join(err, l.tail.close(err != nil), l.file.Close())
}

const (
	digestPrefix = "sha256:"
	headSize     = 32
)

// appendRaw and digest turn a digest into its bytes, which is how it is stored, and back.
func appendRaw(b []byte, digest string) []byte {
	b, _ = hex.AppendDecode(b, []byte(digest[len(digestPrefix):])) // canon made it
	return b
}

func digest(raw []byte) string { return digestPrefix + hex.EncodeToString(raw) }
