package runtime

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// Journal keeps the records of one run, in order and append-only. It is called from one goroutine.
type Journal interface {
	// Append takes one record, JSON without a line end, and keeps no reference to it.
	Append(record []byte) error
	// Flush is called before anything is done and before anything is waited for. When it returns nil all records survive
	// the end of this process. An error, of either, ends the run: nothing is done that could not be recorded.
	Flush() error
	Close() error
}

// Syncer is a Journal that can also make its records survive the loss of the machine. It is asked before a call that may
// change something, so that nobody makes it again for want of a record.
type Syncer interface{ Sync() error }

// Header is a Journal that knows the digest of the chain up to its last record, which is then not computed twice.
type Header interface{ Head() string }

// noJournal keeps nothing.
type noJournal struct{}

func (noJournal) Append([]byte) error { return nil }
func (noJournal) Flush() error        { return nil }
func (noJournal) Close() error        { return nil }

// recorder numbers, times and chains events. Its error is sticky.
type recorder struct {
	journal Journal
	now     func() int64
	watch   func(*spec.Event)
	seq     int64
	at      int64
	head    string
	err     error
	line    []byte // the last record, to be overwritten
}

// record appends one event and gives its time. data that cannot be encoded is a failure like a full disk. After a
// failure it only tells the time.
func (r *recorder) record(e spec.Event, data any) int64 {
	r.at = max(r.at, r.now()) // a clock that is set back must not turn the order of events around
	e.Seq, e.At, e.Prev = r.seq+1, r.at, r.head
	if r.err != nil {
		return e.At
	}
	if data != nil {
		if e.Data, r.err = json.Marshal(data); r.err != nil {
			return e.At
		}
	}
	r.line = appendEvent(r.line[:0], &e)
	if r.err = r.journal.Append(r.line); r.err != nil {
		return e.At
	}
	r.seq = e.Seq
	if j, ok := r.journal.(Header); ok {
		r.head = j.Head()
	} else {
		r.head = canon.Chain(r.head, r.line)
	}
	if r.watch != nil {
		r.watch(&e)
	}
	return e.At
}

// flush stores what was recorded. After it something is done, or waited for.
func (r *recorder) flush() {
	if r.err == nil {
		r.err = r.journal.Flush()
	}
}

// sync makes what was recorded survive the loss of the machine, where the journal can.
func (r *recorder) sync() {
	if s, ok := r.journal.(Syncer); ok && r.err == nil {
		r.err = s.Sync()
	}
}

// appendEvent encodes an event like package json does, which would read its data through once more to copy it.
func appendEvent(b []byte, e *spec.Event) []byte {
	b = strconv.AppendInt(append(b, `{"seq":`...), e.Seq, 10)
	b = strconv.AppendInt(append(b, `,"at":`...), e.At, 10)
	b = appendText(append(b, `,"kind":`...), e.Kind)
	for _, m := range [...]struct{ name, text string }{{"id", e.ID}, {"taskId", e.TaskID}, {"agentName", e.AgentName}, {"digest", e.Digest}} {
		if m.text != "" {
			b = appendText(append(append(append(b, `,"`...), m.name...), `":`...), m.text)
		}
	}
	if len(e.Data) > 0 {
		b = append(append(b, `,"data":`...), e.Data...)
	}
	if e.Prev != "" {
		b = appendText(append(b, `,"prev":`...), e.Prev)
	}
	return append(b, '}')
}

func appendText(b []byte, s string) []byte {
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' || strings.IndexByte(`"\<>&`, c) >= 0 {
			quoted, _ := json.Marshal(s) // text can always be encoded
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// VerifyLog reads a log of one record a line and gives its length and chain head. Any damage is an error that names
// the line.
func VerifyLog(in io.Reader, each func(*spec.Event) error) (spec.JournalRef, error) {
	var ref spec.JournalRef
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return ref, nil
		}
		if err != nil {
			return ref, fmt.Errorf("line %d is cut short", ref.Events+1)
		}
		line = line[:len(line)-1]
		var e spec.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return ref, fmt.Errorf("line %d is no event", ref.Events+1)
		}
		if e.Seq != ref.Events+1 || e.Prev != ref.Head {
			return ref, fmt.Errorf("line %d does not follow the line before it", ref.Events+1)
		}
		ref.Events, ref.Head = e.Seq, canon.Chain(ref.Head, line)
		if each != nil {
			if err := each(&e); err != nil {
				return ref, err
			}
		}
	}
}
