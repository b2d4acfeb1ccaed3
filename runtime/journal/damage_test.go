package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/open-multi-agent/oma/spec"
)

// good is a store as it was left, and what it says.
type good struct {
	file      []byte
	runs      []Run
	records   map[string][][]byte
	approvals []Approval
}

func build(t testing.TB) *good {
	dir := t.TempDir()
	s := open(t, dir)
	g := &good{records: map[string][][]byte{}}
	for _, id := range []string{"r1", "r2", "r3"} {
		l := begin(t, s, id)
		g.records[id] = append(appendEvents(t, l, 40, 300), appendEvents(t, l, 2, blobFrom)...)
		g.records[id] = append(g.records[id], appendEvents(t, l, 40, 20)...)
		a := ask(t, s, id, "t:1", `{"command":"make release"}`)
		if err := s.Decide(t.Context(), a.ID, a.RequestHash, vote(spec.VerdictReject, "ann"), nil); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(l.SetStatus(t.Context(), StatusSuspended, 6, time.Time{}), l.Close()); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if g.runs, err = s.Runs(t.Context(), Filter{}); err != nil {
		t.Fatal(err)
	}
	if g.approvals, err = s.Approvals(t.Context(), ApprovalFilter{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if g.file, err = os.ReadFile(filepath.Join(dir, fileName)); err != nil {
		t.Fatal(err)
	}
	return g
}

// read reads all of a store and gives the first error. What is given before or beside an error must be right: less than
// there was, but nothing else. Reading must leave the file as it is.
func (g *good) read(t testing.TB, dir string) error {
	t.Helper()
	path := filepath.Join(dir, fileName)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second) // far above what reading takes
	defer cancel()
	first := g.readAll(t, ctx, dir)
	if ctx.Err() != nil {
		t.Fatal("reading does not come to an end")
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file was changed: %v", err)
	}
	for _, known := range []error{nil, ErrCorrupt, ErrNewer, ErrUnknown, ApprovalIntegrity, fs.ErrPermission} {
		if errors.Is(first, known) {
			return first
		}
	}
	t.Errorf("an error without a name: %v", first)
	return first
}

func (g *good) readAll(t testing.TB, ctx context.Context, dir string) (first error) {
	t.Helper()
	note := func(err error) {
		if first == nil {
			first = err
		}
	}
	s, err := Open(dir, Options{Now: clock})
	if err != nil {
		return err
	}
	defer s.Close()
	runs, err := s.Runs(ctx, Filter{})
	if note(err); err == nil && len(runs) != len(g.runs) {
		note(fmt.Errorf("%w: %d runs", ErrCorrupt, len(runs))) // a whole row can only be lost with the tree's structure
	}
	for _, id := range []string{"r1", "r2", "r3"} {
		n := 0
		for record, err := range s.Records(ctx, id) {
			if err != nil {
				note(err)
				break
			}
			if n >= len(g.records[id]) || !bytes.Equal(record, g.records[id][n]) {
				t.Fatalf("%s: record %d is another one", id, n+1)
			}
			n++
		}
		if first == nil && n != len(g.records[id]) {
			t.Fatalf("%s: %d records, and no error", id, n)
		}
	}
	approvals, err := s.Approvals(ctx, ApprovalFilter{})
	note(err)
	for _, a := range approvals {
		same := func(b Approval) bool { return cmp.Equal(a, b) }
		undecided := func(b Approval) bool { b.Decisions = nil; return cmp.Equal(a, b) } // lost is not forged
		if !slices.ContainsFunc(g.approvals, same) && !slices.ContainsFunc(g.approvals, undecided) {
			t.Fatalf("another approval: %+v", a)
		}
	}
	for _, r := range runs {
		keep := cmpopts.IgnoreFields(Run{}, "EndedAt", "Status", "ExitCode", "Attempt", "Records", "Holder")
		if !slices.ContainsFunc(g.runs, func(b Run) bool { return cmp.Equal(r, b, keep, cmpopts.IgnoreUnexported(Run{})) }) {
			t.Fatalf("another run: %+v", r)
		}
	}
	return first
}

func place(t testing.TB, file []byte) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, fileName), file, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// CK-02: a file that was cut short is an error that names it; nothing is started anew and the file stays.
func TestCK02CutShort(t *testing.T) {
	g := build(t)
	if err := g.read(t, place(t, g.file)); err != nil {
		t.Fatalf("undamaged: %v", err)
	}
	n := len(g.file)
	for _, size := range []int{0, 1, 99, 100, 512, pageSize - 1, pageSize, n / 2, n / 2 / pageSize * pageSize, n - pageSize, n - 1} {
		dir := place(t, g.file[:size])
		err := g.read(t, dir)
		if !errors.Is(err, ErrCorrupt) || !bytes.Contains([]byte(err.Error()), []byte(filepath.Join(dir, fileName))) {
			t.Errorf("%d bytes of %d: %v", size, n, err)
		}
		if _, err := Open(dir, Options{ReadOnly: true}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%d bytes of %d, for reading: %v", size, n, err)
		}
	}
}

// CK-02: one changed byte is an error, or changes nothing that is read.
func TestCK02FlippedByte(t *testing.T) {
	g := build(t)
	random := rand.New(rand.NewPCG(3, 4))
	noticed := 0
	const flips = 600
	for i := range flips {
		at := random.IntN(len(g.file))
		if i < 100 {
			at = i // the header
		}
		file := bytes.Clone(g.file)
		file[at] ^= 1 << random.IntN(8)
		if g.read(t, place(t, file)) != nil {
			noticed++
		}
		if t.Failed() {
			t.Fatalf("byte %d", at)
		}
	}
	if noticed < flips/2 {
		t.Errorf("%d of %d changes were noticed", noticed, flips)
	}
}

// Damage in the middle of a run is reported by its number, and what lies before it can be read.
func TestDamageHasANumber(t *testing.T) {
	for _, c := range []struct{ name, change string }{
		{"changed", `UPDATE records SET body = CAST(replace(CAST(body AS TEXT), 'tool', 'fool') AS BLOB) WHERE num = ?`},
		{"lost", `DELETE FROM records WHERE num = ?`},
		{"the last ones lost", `DELETE FROM records WHERE num >= ?`},
		{"payload changed", `UPDATE blobs SET body = x'00' WHERE num = (SELECT blob FROM records WHERE num = ?)`},
		{"payload of another", `UPDATE records SET blob = 2 WHERE num = ?`},
		{"cut elsewhere", `UPDATE records SET cut = 99999999 WHERE num = ?`},
		{"moved", `UPDATE records SET num = num + 1000 WHERE num = ?`},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := t.Context()
			s := open(t, t.TempDir())
			l := begin(t, s, "r1")
			want := appendEvents(t, l, 400, 50)
			want = append(want, appendEvents(t, l, 1, 2*blobFrom)...)
			appendEvents(t, l, 300, 3*blobFrom)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			for _, trigger := range []string{"records_fixed", "records_kept", "blobs_fixed"} {
				if _, err := s.db.Exec(`DROP TRIGGER ` + trigger); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.db.Exec(c.change, key(1, 401)); err != nil {
				t.Fatal(err)
			}
			got, err := collect(s, "r1")
			var damage *DamageError
			if !errors.As(err, &damage) || damage.Seq != 401 || damage.ID != "r1" || damage.Path != s.path || !errors.Is(err, ErrCorrupt) {
				t.Errorf("%v", err)
			}
			if len(got) != 400 || !bytes.Equal(got[399], want[399]) {
				t.Errorf("%d records before it", len(got))
			}
			var out bytes.Buffer
			if err := s.Export(ctx, "r1", &out); !errors.Is(err, ErrCorrupt) || bytes.Count(out.Bytes(), []byte("\n")) != 400 {
				t.Errorf("exported %d lines: %v", bytes.Count(out.Bytes(), []byte("\n")), err)
			}
			if c.name == "the last ones lost" {
				if _, err := s.Continue(ctx, "r1"); !errors.As(err, &damage) || damage.Seq != 401 {
					t.Errorf("it was continued: %v", err)
				}
			}
		})
	}
}

// The file beside the database that holds what was written last, damaged while nobody had it open: what is left is a
// good state from before, or an error.
func TestCK02DamagedLog(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	l := begin(t, s, "r1")
	var want [][]byte
	for range 200 {
		want = append(want, appendEvents(t, l, 1, 500)...)
		if err := l.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	wal, err := os.ReadFile(s.path + "-wal")
	if err != nil || len(wal) < 50*pageSize {
		t.Fatal(len(wal), err)
	}
	random := rand.New(rand.NewPCG(5, 6))
	for i := range 100 {
		damaged := bytes.Clone(wal)
		if at := random.IntN(len(wal)); i%2 == 0 {
			damaged = damaged[:at]
		} else {
			damaged[at] ^= 1 << random.IntN(8)
		}
		dir := place(t, file)
		if err := os.WriteFile(filepath.Join(dir, fileName+"-wal"), damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := collect(s, "r1")
		if err != nil && !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrCorrupt) {
			t.Errorf("%d: %v", i, err)
		}
		if len(got) > len(want) {
			t.Fatalf("%d records", len(got))
		}
		for n, record := range got {
			if !bytes.Equal(record, want[n]) {
				t.Fatalf("record %d is another one", n+1)
			}
		}
		s.Close()
	}
}

// Records that are stored together are told apart where one of them is damaged.
func TestDamageWithinARow(t *testing.T) {
	for _, c := range []struct {
		name, change string
		first        int64 // the first record that cannot be given
	}{
		{"changed", `UPDATE records SET body = CAST(replace(CAST(body AS TEXT), '"seq":7,', '"seq":8,') AS BLOB)`, 7},
		{"one too few", `UPDATE records SET body = CAST(substr(CAST(body AS TEXT), 1, instr(CAST(body AS TEXT), '{"seq":20,') - 2) AS BLOB)`, 20},
		{"one too many", `UPDATE records SET body = CAST(CAST(body AS TEXT) || char(10) || '{}' AS BLOB)`, 20},
		{"a digest changed", `UPDATE records SET heads = CAST(substr(heads, 1, 32 * 4) || zeroblob(32) || substr(heads, 32 * 5 + 1) AS BLOB)`, 5},
		{"a digest lost", `UPDATE records SET heads = CAST(substr(heads, 33) AS BLOB)`, 1},
		{"half a digest", `UPDATE records SET heads = CAST(substr(heads, 2) AS BLOB)`, 1},
		{"no digest", `UPDATE records SET heads = x''`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, t.TempDir())
			l := begin(t, s, "r1")
			want := appendEvents(t, l, 20, 50)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if n := count(t, s, `SELECT count(*) FROM records`); n != 1 {
				t.Fatalf("%d rows", n)
			}
			if _, err := s.db.Exec(`DROP TRIGGER records_fixed; ` + c.change); err != nil {
				t.Fatal(err)
			}
			got, err := collect(s, "r1")
			var damage *DamageError
			if !errors.As(err, &damage) || damage.Seq != c.first {
				t.Errorf("%v", err)
			}
			if !slices.EqualFunc(got, want[:c.first-1], bytes.Equal) {
				t.Errorf("%d records before it", len(got))
			}
		})
	}
}

// A process was killed, and then its tail was damaged: what is left is a beginning of what was appended, with all that was
// on disk, and the run goes on from there.
func TestDamagedTail(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	l := begin(t, s, "r1")
	want := appendEvents(t, l, 20, 50)
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	want = append(want, appendEvents(t, l, 20, 50)...)
	want = append(want, appendEvents(t, l, 1, blobFrom)...)
	lines, err := os.ReadFile(l.tail.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.Exec(`DROP TRIGGER records_kept; DELETE FROM records WHERE num > 1 << 32 | 20; UPDATE runs SET durable = 20`); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(7, 8))
	for i := range 200 {
		damaged := bytes.Clone(lines)
		switch at := random.IntN(len(lines)); i % 4 {
		case 0:
			damaged = damaged[:at]
		case 1:
			damaged[at] ^= 1 << random.IntN(8)
		case 2:
			clear(damaged[at:min(at+512, len(damaged))])
		case 3:
			damaged = append(damaged, damaged[:at]...) // old lines that were not cut off
		}
		if err := os.WriteFile(l.tail.path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := collect(s, "r1")
		if n := len(got); err != nil || n < 20 || n > len(want) || !slices.EqualFunc(got, want[:n], bytes.Equal) {
			t.Fatalf("%d: %d records: %v", i, n, err)
		}
		if r, err := s.Run(t.Context(), "r1"); err != nil || r.Records != int64(len(got)) {
			t.Fatalf("%d: the run says %d records of %d: %v", i, r.Records, len(got), err)
		}
		if i < 199 {
			continue
		}
		l, err := s.Continue(t.Context(), "r1")
		if err != nil || l.Seq() != int64(len(got)) {
			t.Fatal(err)
		}
		got = append(got, appendEvents(t, l, 3, 10)...)
		if again, err := collect(s, "r1"); err != nil || !slices.EqualFunc(again, got, bytes.Equal) {
			t.Errorf("%d records after going on, of %d: %v", len(again), len(got), err)
		}
	}
}

// Whatever bytes are changed, reading ends, with what was written or with an error. The input is a list of changes, each
// a position and a byte.
func FuzzDamage(f *testing.F) {
	g := build(f)
	f.Add([]byte{0, 0, 0, 16, 0xff})
	f.Add([]byte{0, 0, 0, 28, 0, 0, 0, 0, 31, 1})
	f.Add([]byte{0, 0, 16, 5, 7, 0, 0, 16, 8, 255})
	f.Fuzz(func(t *testing.T, changes []byte) {
		file := bytes.Clone(g.file)
		for ; len(changes) >= 5; changes = changes[5:] {
			file[int(binary.BigEndian.Uint32(changes))%len(file)] = changes[4]
		}
		g.read(t, place(t, file))
	})
}
