package journal

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

func TestOpenRefuses(t *testing.T) {
	t.Run("newer", func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, dir)
		if _, err := s.db.Exec(`PRAGMA user_version = 9`); err != nil {
			t.Fatal(err)
		}
		s.Close()
		_, err := Open(dir, Options{})
		var newer *NewerError
		if !errors.As(err, &newer) || newer.Found != 9 || newer.Known != len(migrations) || !errors.Is(err, ErrNewer) {
			t.Error(err)
		}
	})
	t.Run("another program's", func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, dir)
		if _, err := s.db.Exec(`PRAGMA application_id = 7`); err != nil {
			t.Fatal(err)
		}
		s.Close()
		if _, err := Open(dir, Options{}); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "oma.db") {
			t.Error(err)
		}
	})
	t.Run("gone beside its log", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "oma.db-wal"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, Options{}); !errors.Is(err, ErrCorrupt) {
			t.Error(err)
		}
	})
	t.Run("not there, to read", func(t *testing.T) {
		if _, err := Open(filepath.Join(t.TempDir(), "x"), Options{ReadOnly: true}); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
	t.Run("folder is a file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(filepath.Join(path, "sub"), Options{}); err == nil || !strings.Contains(err.Error(), path) {
			t.Error(err)
		}
	})
}

func TestOpenForReading(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	s := open(t, dir)
	l := begin(t, s, "r1")
	appendEvents(t, l, 3, 10)
	for _, live := range []bool{true, false} {
		if !live {
			if err := errors.Join(l.Close(), s.Close()); err != nil {
				t.Fatal(err)
			}
		}
		r, err := Open(dir, Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := collect(r, "r1"); len(got) != 3 || err != nil {
			t.Errorf("%d records: %v", len(got), err)
		}
		if _, err := r.Begin(ctx, Run{ID: "r2"}); err == nil {
			t.Error("a run was begun in a store opened for reading")
		}
		if _, err := r.Continue(ctx, "r1"); err == nil {
			t.Error("a run was continued in a store opened for reading")
		}
		if err := r.Ask(ctx, request(t, "r1", "b", `{}`)); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("asked in a store opened for reading: %v", err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestFilesAreTheOwners(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "state ?#%41")
	s := open(t, dir)
	appendEvents(t, begin(t, s, "r1"), 1, 1)
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		rel, _ := filepath.Rel(dir, path)
		got[rel] = info.Mode().Perm().String()
		return err
	})
	want := map[string]string{".": "-rwx------", "runs": "-rwx------", "runs/r1": "-rwx------", "runs/r1/lock": "-rw-------",
		"runs/r1/tail": "-rw-------", "oma.db": "-rw-------", "oma.db-wal": "-rw-------",
		"oma.db-shm": "-rw-------"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

// A full disk is an error with the path, and what was stored before stays.
func TestFullDisk(t *testing.T) {
	s := open(t, t.TempDir())
	s.db.SetMaxOpenConns(1) // the one that is told how large the file may become
	l := begin(t, s, "r1")
	appendEvents(t, l, 10, 10)
	if _, err := s.db.ExecContext(t.Context(), `PRAGMA max_page_count = 40`); err != nil {
		t.Fatal(err)
	}
	big := []byte(`"` + strings.Repeat("z", 1<<20) + `"`)
	for range 2 {
		if err := keep(l, big); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), s.path) {
			t.Fatal(err)
		}
	}
	if got, err := collect(s, "r1"); len(got) != 10 || err != nil {
		t.Errorf("%d records: %v", len(got), err)
	}
	if _, err := s.db.ExecContext(t.Context(), `PRAGMA max_page_count = 100000`); err != nil {
		t.Fatal(err)
	}
	if err := l.Flush(); err != nil { // there is room again, and nothing was lost
		t.Fatal(err)
	}
	if got, err := collect(s, "r1"); len(got) != 12 || err != nil {
		t.Errorf("%d records: %v", len(got), err)
	}
}

// A schema that grows: what an older program wrote is there after a newer one has opened it, and twice is once.
func TestMigrate(t *testing.T) {
	s := open(t, t.TempDir())
	appendEvents(t, begin(t, s, "r1"), 3, 10)
	steps := append(slices.Clone(migrations), `ALTER TABLE runs ADD COLUMN note TEXT NOT NULL DEFAULT ''`)
	for range 2 {
		if err := migrate(s.db, steps); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(t, s, `SELECT user_version FROM pragma_user_version`); n != int64(len(steps)) {
		t.Errorf("version %d", n)
	}
	if err := migrate(s.db, append(steps, `CREATE TABLE x (a); CREATE TABLE x (a)`)); err == nil {
		t.Error("a step that fails went through")
	}
	if n := count(t, s, `SELECT user_version FROM pragma_user_version`) + 10*count(t, s, `SELECT count(*) FROM sqlite_schema WHERE name = 'x'`); n != int64(len(steps)) {
		t.Error("a step that failed left something")
	}
	if got, err := collect(s, "r1"); len(got) != 3 || err != nil {
		t.Errorf("%d records: %v", len(got), err)
	}
}

// Sync writes once for all that is new, and says so in the run's row.
func TestSync(t *testing.T) {
	s := open(t, t.TempDir())
	l := begin(t, s, "r1")
	for _, n := range []int64{0, 3, 3, 7} {
		appendEvents(t, l, int(n-l.Seq()), 10)
		if err := l.Sync(); err != nil {
			t.Fatal(err)
		}
		if got := count(t, s, `SELECT durable FROM runs`); got != n {
			t.Errorf("%d records are promised, %d were appended", got, n)
		}
	}
	if got := count(t, s, `PRAGMA synchronous`); got != 2 {
		t.Errorf("the store commits at level %d, and FULL is 2", got)
	}
}

func TestHeadIsTheChain(t *testing.T) {
	l := begin(t, open(t, t.TempDir()), "r1")
	head := ""
	for _, record := range appendEvents(t, l, 20, 1000) {
		head = canon.Chain(head, record)
	}
	if l.Head() != head {
		t.Errorf("head %s, want %s", l.Head(), head)
	}
}

// Somebody else's transaction is waited for, as long as the caller wants and no longer than the store's own limit.
func TestLockedByAnother(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, dir), open(t, dir)
	l := begin(t, a, "r1")
	asked := ask(t, a, "r1", "b", `{}`)
	tx, err := b.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := a.Decide(ctx, asked.ID, asked.RequestHash, vote(spec.VerdictApprove, "ann"), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the caller's limit: %v", err)
	}
	a.db.SetMaxOpenConns(1)
	if _, err := a.db.ExecContext(t.Context(), `PRAGMA busy_timeout = 1`); err != nil {
		t.Fatal(err)
	}
	if err := keep(l, []byte("1")); err != nil {
		t.Errorf("a record that need not be in the database yet: %v", err)
	}
	if err := l.Sync(); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), a.path) {
		t.Errorf("the store's limit: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	appendEvents(t, l, 1, 1)
	if err := a.Decide(t.Context(), asked.ID, asked.RequestHash, vote(spec.VerdictApprove, "ann"), nil); err != nil {
		t.Error(err)
	}
}
