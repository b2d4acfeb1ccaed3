package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/open-multi-agent/oma/spec/canon"
)

// abandon leaves a store as a process that was killed leaves it: what was flushed is there and nothing was closed.
func abandon(t testing.TB, dir string) string {
	t.Helper()
	left := filepath.Join(t.TempDir(), "state")
	if err := os.CopyFS(left, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return left
}

// A state folder that was copied to another place, or another machine, after its process was killed: the run goes on.
func TestCopiedFolderGoesOn(t *testing.T) {
	dir := t.TempDir()
	l := begin(t, open(t, dir), "r1")
	want := appendEvents(t, l, 5, 10)
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	want = append(want, appendEvents(t, l, 5, 10)...)
	s := open(t, abandon(t, dir))
	next, err := s.Continue(t.Context(), "r1")
	if err != nil || next.Seq() != 10 || next.Head() != l.Head() {
		t.Fatal(next, err)
	}
	if exists(s.tailPath("r1")) {
		t.Error("what was moved into the database stayed in the tail")
	}
	want = append(want, appendEvents(t, next, 5, 10)...)
	if got, err := collect(s, "r1"); err != nil || !slices.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("%d records of %d: %v", len(got), len(want), err)
	}
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
}

// The database and the tail are of different moments, since one of them was put back from a copy.
func TestTailOfAnotherMoment(t *testing.T) {
	dir := t.TempDir()
	l := begin(t, open(t, dir), "r1")
	first := appendEvents(t, l, 5, 10)
	early := abandon(t, dir)
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	appendEvents(t, l, 5, 10)
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	appendEvents(t, l, 5, 10)
	late := abandon(t, dir)
	move := func(from, to string) string {
		t.Helper()
		mixed := abandon(t, to)
		b, err := os.ReadFile(filepath.Join(from, "runs", "r1", "tail"))
		if err == nil {
			err = os.WriteFile(filepath.Join(mixed, "runs", "r1", "tail"), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return mixed
	}
	t.Run("older database", func(t *testing.T) {
		s := open(t, move(late, early))
		_, err := s.Continue(t.Context(), "r1")
		var damage *DamageError
		if !errors.As(err, &damage) || damage.Seq != 1 || !strings.Contains(err.Error(), s.tailPath("r1")) {
			t.Errorf("what was lost is not noticed: %v", err)
		}
		if r, err := s.Run(t.Context(), "r1"); err != nil || r.Attempt != 1 || r.Records != 0 || !exists(s.tailPath("r1")) {
			t.Errorf("refusing changed it: %+v %v", r, err)
		}
	})
	t.Run("newer database", func(t *testing.T) {
		s := open(t, move(early, late))
		next, err := s.Continue(t.Context(), "r1")
		if err != nil || next.Seq() != 10 {
			t.Fatal(err)
		}
		defer next.Close()
		if got, err := collect(s, "r1"); err != nil || len(got) != 10 || !slices.EqualFunc(got[:5], first, bytes.Equal) {
			t.Errorf("%d records: %v", len(got), err)
		}
	})
	t.Run("another course of events", func(t *testing.T) {
		elsewhere := abandon(t, early)
		other := open(t, elsewhere)
		if next, err := other.Continue(t.Context(), "r1"); err != nil {
			t.Fatal(err)
		} else {
			appendEvents(t, next, 5, 33)
			if err := errors.Join(next.Close(), other.Close()); err != nil {
				t.Fatal(err)
			}
		}
		s := open(t, move(late, elsewhere))
		next, err := s.Continue(t.Context(), "r1")
		if err != nil || next.Seq() != 10 {
			t.Fatal(err)
		}
		defer next.Close()
		if got, err := collect(s, "r1"); err != nil || len(got) != 10 {
			t.Errorf("%d records: %v", len(got), err)
		}
	})
}

// A tail that cannot be cut is opened anew: nothing is lost, and it does not grow.
func TestTailThatCannotBeCut(t *testing.T) {
	s := open(t, t.TempDir())
	l := begin(t, s, "r1")
	for range 3 {
		appendEvents(t, l, 5, 10)
		l.tail.file.Close()
		if err := l.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	appendEvents(t, l, 1, 10)
	if lines, err := os.ReadFile(l.tail.path); err != nil || bytes.Count(lines, []byte("\n")) != 1 {
		t.Errorf("%d lines: %v", bytes.Count(lines, []byte("\n")), err)
	}
	if got, err := collect(s, "r1"); err != nil || len(got) != 16 {
		t.Errorf("%d records: %v", len(got), err)
	}
}

// However short its records are, a tail stays below what is moved at once, and one that is larger is not read.
func TestTailIsBounded(t *testing.T) {
	s := open(t, t.TempDir())
	l := begin(t, s, "r1")
	for range 30_000 {
		if err := keep(l, []byte("1")); err != nil {
			t.Fatal(err)
		}
		if l.tail.bytes() > maxQueued {
			t.Fatal(l.tail.bytes())
		}
	}
	if got, err := collect(s, "r1"); err != nil || len(got) != 30_000 {
		t.Errorf("%d records: %v", len(got), err)
	}
	if err := os.Truncate(l.tail.path, maxTail+1); err != nil {
		t.Fatal(err)
	}
	if _, err := collect(s, "r1"); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), l.tail.path) {
		t.Errorf("a tail without an end: %v", err)
	}
}

// lines makes a tail of records after those with the head.
func lines(seq int64, head string, records ...string) (string, string) {
	var t tail
	for _, record := range records {
		seq, head = seq+1, canon.Chain(head, []byte(record))
		t.add(seq, head, []byte(record))
	}
	return string(t.lines), head
}

// Whatever a tail holds, what is read of it hangs together, follows on the database and stands in it.
func FuzzTail(f *testing.F) {
	before, head := lines(0, "", `{"seq":1}`, `{"seq":2}`)
	after3, _ := lines(2, head, `{"seq":3}`, `{"seq":4}`)
	for _, text := range []string{before + after3, after3, after3[:len(after3)-1], after3 + before, "3 " + after3, "\n", "3  \n", "3\n", "-1 a b\n",
		"99999999999999999999 a b\n", strings.Repeat("\x00", 600), strings.Replace(after3, "3 ", "+3 ", 1)} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		records, ahead := after(text, 2, head)
		seq, h := int64(2), head
		for _, record := range records {
			seq, h = seq+1, canon.Chain(h, record)
			line := strings.TrimPrefix(h, digestPrefix) + " " + string(record) + "\n"
			if len(record) == 0 || bytes.IndexByte(record, '\n') >= 0 || !bytes.Contains(text, []byte(line)) {
				t.Fatalf("record %d is %q", seq, record)
			}
		}
		if len(records) > bytes.Count(text, []byte("\n")) || ahead && len(text) < 2*headSize {
			t.Fatalf("%d records, ahead %t", len(records), ahead)
		}
	})
}

// Bytes of a tail are changed, as a list of changes says: what is read is a beginning of what was written.
func FuzzDamagedTail(f *testing.F) {
	var want []string
	for i := range 20 {
		want = append(want, fmt.Sprintf(`{"seq":%d,"data":"x"}`, i+1))
	}
	good, _ := lines(0, "", want...)
	f.Add([]byte{0, 0, 0, 16, 0xff})
	f.Add([]byte{0, 0, 1, 5, '\n', 0, 0, 1, 6, '3'})
	f.Fuzz(func(t *testing.T, changes []byte) {
		text := []byte(good)
		for ; len(changes) >= 5; changes = changes[5:] {
			text[int(binary.BigEndian.Uint32(changes))%len(text)] = changes[4]
		}
		records, _ := after(text, 0, "")
		for i, record := range records {
			if i >= len(want) || string(record) != want[i] {
				t.Fatalf("record %d is %q", i+1, record)
			}
		}
	})
}
