package journal

import (
	"bufio"
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
				record, err := c.next(ctx, &page[i])
				if err != nil {
					yield(nil, err)
					return
				}
				if !yield(record, nil) {
					return
				}
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

// part is a record as it is stored.
type part struct {
	num  int64
	body []byte
	blob sql.NullInt64
	cut  int64
	head []byte
}

func (c *cursor) page(ctx context.Context, end int64) ([]part, error) {
	rows, err := c.store.db.QueryContext(ctx, sqlRecords, key(c.run.num, c.seq), key(c.run.num, end))
	if err != nil {
		return nil, c.store.fail(err)
	}
	defer rows.Close()
	var page []part
	for rows.Next() {
		var p part
		if err := rows.Scan(&p.num, &p.body, &p.blob, &p.cut, &p.head); err != nil {
			return c.upTo(page, err)
		}
		page = append(page, p)
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

// next puts a record together and holds it against the chain.
func (c *cursor) next(ctx context.Context, p *part) ([]byte, error) {
	if p.num != key(c.run.num, c.seq+1) {
		return nil, c.damage("is missing")
	}
	record := p.body
	if p.blob.Valid {
		blob, err := c.blob(ctx, p.blob.Int64)
		if err != nil {
			return nil, err
		}
		if p.cut < 0 || p.cut > int64(len(p.body)) {
			return nil, c.damage("is not what was appended")
		}
		record = slices.Concat(p.body[:p.cut], blob, p.body[p.cut:])
	}
	head := canon.Chain(c.head, record)
	if head != digest(p.head) {
		return nil, c.damage("is not what was appended")
	}
	c.seq, c.head = c.seq+1, head
	return record, nil
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
