package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/open-multi-agent/oma/spec/canon"
)

// tail is a file beside a run's lock with the records that are not in the database yet. One write there takes a tenth of
// the time of a transaction, and survives the process as well. It is never flushed to disk: what must be on disk goes
// into the database. A line is a record's number, its chain's digest and the record, so that a reader knows by itself
// where the tail goes on from the database and where it ends.
type tail struct {
	path  string
	file  *os.File // nil: nothing was written yet
	size  int64
	lines []byte // not written yet
}

func (t *tail) add(seq int64, head string, record []byte) {
	t.lines = append(strconv.AppendInt(t.lines, seq, 10), ' ')
	t.lines = append(append(t.lines, strings.TrimPrefix(head, digestPrefix)...), ' ')
	t.lines = append(append(t.lines, record...), '\n')
}

// bytes is how much there is of it, written or not.
func (t *tail) bytes() int64 { return t.size + int64(len(t.lines)) }

// flush hands all lines to the operating system, or none.
func (t *tail) flush() (err error) {
	if t.file == nil {
		if t.file, err = os.OpenFile(t.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
			return err
		}
	}
	if _, err := t.file.WriteAt(t.lines, t.size); err != nil {
		return errors.Join(err, t.file.Truncate(t.size))
	}
	t.size, t.lines = t.size+int64(len(t.lines)), t.lines[:0]
	return nil
}

// clear forgets lines that are in the database now. Where they cannot be cut off they stay, and whoever reads them sees
// that they are old; but nothing is written after them, so that the file stays small.
func (t *tail) clear() {
	if t.lines = t.lines[:0]; t.size > 0 && t.file.Truncate(0) != nil {
		t.file.Close()
		t.file = nil // opened anew, it is empty or an error
	}
	t.size = 0
}

// close removes the file, unless it is all there is of some records.
func (t *tail) close(keep bool) error {
	if t.file == nil {
		return nil
	}
	err := t.file.Close()
	if keep {
		return err
	}
	return errors.Join(err, removeTail(t.path))
}

func removeTail(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// maxTail is far more than what is moved into the database at once.
const maxTail = 16 * maxQueued

// readTail reads the lines of a run's tail. They must be read before the database is: what a process moves from one to
// the other meanwhile is then seen twice, and not missed.
func (s *Store) readTail(id string) ([]byte, error) {
	if !goodID(id) {
		return nil, nil
	}
	f, err := os.Open(s.tailPath(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxTail+1))
	if err == nil && len(b) > maxTail {
		err = fmt.Errorf("%w: %s has more than %d bytes", ErrCorrupt, s.tailPath(id), maxTail)
	}
	return b, err
}

// after gives the records in a tail that follow on the last one of the database. It ends at the first that does not: that
// is one which was being written when the machine went down, or whatever else is no longer what was appended. ahead says
// that this one is whole and of a later number: the database has lost what was between, unless it was read while somebody
// moved it there.
func after(lines []byte, seq int64, head string) (records [][]byte, ahead bool) {
	for {
		line, rest, whole := bytes.Cut(lines, []byte("\n"))
		n, sum, record, ok := entry(line)
		if !whole || !ok {
			return records, false
		}
		if lines = rest; n <= seq { // it was moved
			continue
		}
		next := canon.Chain(head, record)
		if n != seq+1 || next != digestPrefix+sum {
			return records, n > seq+1
		}
		seq, head = n, next
		records = append(records, record[:len(record):len(record)])
	}
}

// entry takes a line of a tail apart.
func entry(line []byte) (n int64, sum string, record []byte, ok bool) {
	number, line, _ := bytes.Cut(line, []byte(" "))
	digest, record, found := bytes.Cut(line, []byte(" "))
	n, err := strconv.ParseInt(string(number), 10, 64)
	return n, string(digest), record, found && err == nil && len(digest) == 2*headSize && len(record) > 0
}
