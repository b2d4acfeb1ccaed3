package journal

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/open-multi-agent/oma/spec/canon"
)

// Records gives a run's records in order, byte for byte, as many as there were when it began. The first one that
// is missing or not what was appended ends it with a DamageError. A record belongs to whoever receives it.
func (s *Store) Records(ctx context.Context, id string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		lines, err := s.readTail(id)
		if err != nil {
			yield(nil, err)
			return
		}
		r, err := s.row(ctx, id)
		if err != nil {
			yield(nil, err)
			return
		}
		c := cursor{store: s, run: r}
		for end := max(r.Records, r.durable); c.seq < end; {
			page, err := c.page(ctx, end)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page {
				for record, err := range c.records(ctx, &page[i]) {
					if !yield(record, err) || err != nil {
						return
					}
				}
			}
		}
		rest, _ := after(lines, c.seq, c.head)
		for _, record := range rest {
			if !yield(record, nil) {
				return
			}
		}
	}
}

// Export writes a run's records as JSON lines, as the gate reads them. On damage it has written all before it.
func (s *Store) Export(ctx context.Context, id string, out io.Writer) error {
	w := bufio.NewWriterSize(out, 64<<10)
	for record, err := range s.Records(ctx, id) {
		if err != nil {
			return errors.Join(err, w.Flush())
		}
		w.Write(record) // its error is that of Flush
		w.WriteByte('\n')
	}
	return w.Flush()
}

// cursor reads a run in pages, so that no transaction stays open while a record is used.
type cursor struct {
	store *Store
	run   *Run
	seq   int64 // the last record given
	head  string
}

// part is records as they are stored.
type part struct {
	num   int64 // of the last one
	body  []byte
	blob  sql.NullInt64
	cut   int64
	heads []byte
}

// pageBytes is the size from which no more rows are read at once.
const pageBytes = 1 << 20

func (c *cursor) page(ctx context.Context, end int64) ([]part, error) {
	rows, err := c.store.db.QueryContext(ctx, sqlRecords, key(c.run.num, c.seq), key(c.run.num, end))
	if err != nil {
		return nil, c.store.fail(err)
	}
	defer rows.Close()
	var page []part
	for size := 0; size < pageBytes && rows.Next(); {
		var p part
		if err := rows.Scan(&p.num, &p.body, &p.blob, &p.cut, &p.heads); err != nil {
			return c.upTo(page, err)
		}
		page, size = append(page, p), size+len(p.body)
	}
	if err := rows.Err(); err != nil {
		return c.upTo(page, err)
	}
	if len(page) == 0 {
		return nil, c.damage("is missing")
	}
	return page, nil
}

// upTo gives what could be read before an error; the error comes again with the next page.
func (c *cursor) upTo(page []part, err error) ([]part, error) {
	if len(page) > 0 {
		return page, nil
	}
	if err = c.store.fail(err); errors.Is(err, ErrCorrupt) {
		return nil, c.damage("cannot be read")
	}
	return nil, err
}

// records takes a row apart and holds each record against the chain.
func (c *cursor) records(ctx context.Context, p *part) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		n := len(p.heads) / headSize
		if n == 0 || len(p.heads)%headSize > 0 || p.blob.Valid && n > 1 {
			yield(nil, c.damage("is not what was appended"))
			return
		}
		if p.num != key(c.run.num, c.seq+int64(n)) {
			yield(nil, c.damage("is missing"))
			return
		}
		body, err := c.whole(ctx, p)
		if err != nil {
			yield(nil, err)
			return
		}
		for i, record := range bytes.SplitN(body, []byte("\n"), n) {
			head := canon.Chain(c.head, record)
			if head != digest(p.heads[i*headSize:(i+1)*headSize]) {
				yield(nil, c.damage("is not what was appended"))
				return
			}
			if c.seq, c.head = c.seq+1, head; !yield(record[:len(record):len(record)], nil) {
				return
			}
		}
		if p.num != key(c.run.num, c.seq) {
			yield(nil, c.damage("is not what was appended"))
		}
	}
}

// whole puts a large record together.
func (c *cursor) whole(ctx context.Context, p *part) ([]byte, error) {
	if !p.blob.Valid {
		return p.body, nil
	}
	blob, err := c.blob(ctx, p.blob.Int64)
	if err != nil {
		return nil, err
	}
	if p.cut < 0 || p.cut > int64(len(p.body)) {
		return nil, c.damage("is not what was appended")
	}
	return slices.Concat(p.body[:p.cut], blob, p.body[p.cut:]), nil
}

func (c *cursor) blob(ctx context.Context, num int64) ([]byte, error) {
	var name string
	var body []byte
	err := c.store.fail(c.store.db.QueryRowContext(ctx, sqlBlob, num).Scan(&name, &body))
	switch {
	case errors.Is(err, sql.ErrNoRows) || errors.Is(err, ErrCorrupt):
		return nil, c.damage("has lost its payload")
	case err != nil:
		return nil, err
	case canon.Digest("blob", body) != name:
		return nil, c.damage(fmt.Sprintf("has a payload that is not %s", name))
	}
	return body, nil
}

func (c *cursor) damage(detail string) error {
	return &DamageError{c.store.path, c.run.ID, c.seq + 1, detail}
}
