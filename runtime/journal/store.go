package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

const (
	fileName = "oma.db"
	// pageSize never changes, so a file that is not made of whole pages was cut.
	pageSize = 4096
	// busyTimeout is how long a statement waits for another process's transaction. Those take well under a second, so
	// only a process that is stopped in the middle of one makes it run out.
	busyTimeout = 60 * time.Second
)

// Options say how a store is opened.
type Options struct {
	Now      func() time.Time // nil: time.Now
	ReadOnly bool             // nothing is created and nothing can be changed; the folder may be unwritable
	Existing bool             // nothing is created
}

// Store is the runs of one state folder. It is safe for concurrent use, as is the folder by many processes.
type Store struct {
	dir  string
	path string
	now  func() time.Time
	ro   bool
	db   *sql.DB // its commits are flushed to disk
}

// Open opens the store of a state folder, and makes folder and store if they are not there. With ReadOnly or Existing a
// store that is not there is an error that wraps fs.ErrNotExist.
func Open(dir string, o Options) (*Store, error) {
	s := &Store{dir: dir, path: filepath.Join(dir, fileName), now: o.Now, ro: o.ReadOnly}
	if s.now == nil {
		s.now = time.Now
	}
	if err := s.present(!o.ReadOnly && !o.Existing); err != nil {
		return nil, err
	}
	err := s.connect("")
	if s.ro && errors.Is(err, fs.ErrPermission) && !exists(s.path+"-wal") {
		// Nobody writes now, and in a folder that cannot be written to there is no other way to read.
		err = s.connect("&immutable=1")
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Dir is the state folder.
func (s *Store) Dir() string { return s.dir }

// Close ends the store. Logs must be closed before it.
func (s *Store) Close() error { return s.fail(s.db.Close()) }

// present sees that there is a file worth opening, and makes one if there is none and it may.
func (s *Store) present(create bool) error {
	logged := exists(s.path + "-wal") // looked for first: other processes make it after the file
	info, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && create:
		if logged {
			return fmt.Errorf("%w: %s is gone, and what was last written to it is still in %s-wal", ErrCorrupt, s.path, s.path)
		}
		return s.create()
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: %s is no file", ErrCorrupt, s.path)
	case info.Size() == 0:
		return fmt.Errorf("%w: %s is empty", ErrCorrupt, s.path)
	case info.Size()%pageSize != 0:
		return fmt.Errorf("%w: %s is cut short", ErrCorrupt, s.path)
	}
	return nil
}

// create makes the store beside its place and links it there, so that nobody ever sees half of one. When another
// process was first, its store stays.
func (s *Store) create() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(s.dir, fileName+".new-*") // for its owner only
	if err != nil {
		return err
	}
	temp := f.Name()
	defer os.Remove(temp)
	f.Close()
	db, err := sql.Open("sqlite", source(temp, "&_auto_vacuum=INCREMENTAL&_journal_mode=MEMORY&_sync=OFF")) // half of it is thrown away
	if err != nil {
		return s.fail(err)
	}
	if err = migrate(db, migrations); err == nil {
		_, err = db.Exec("PRAGMA journal_mode = WAL")
	}
	if cerr := db.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return s.fail(err)
	}
	if err := syncDir(temp); err != nil { // a file is flushed as a folder is
		return err
	}
	if err := os.Link(temp, s.path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(s.dir)
}

// syncDir makes new names in a folder survive a loss of power.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// migrate brings a store to the last version, in one transaction. A new file has version 0.
func migrate(db *sql.DB, steps []string) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	var version int
	if err := tx.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	for _, step := range steps[min(version, len(steps)):] {
		if _, err := tx.Exec(step); err != nil {
			return err
		}
	}
	if version < len(steps) {
		set := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, len(steps))
		if _, err := tx.Exec(set); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// connect opens the file and reads what it says of itself. On an error nothing is left open.
func (s *Store) connect(options string) error {
	if s.ro {
		options += "&mode=ro"
	} else {
		options += "&mode=rw"
	}
	var err error
	if s.db, err = sql.Open("sqlite", source(s.path, options+"&_sync=FULL")); err != nil {
		return s.fail(err)
	}
	if err = s.fail(s.identify()); err != nil {
		s.Close()
	}
	return err
}

// identify fails unless the file is a store of a version this program can use.
func (s *Store) identify() error {
	var id, version int
	var mode string
	if err := s.db.QueryRow("PRAGMA application_id").Scan(&id); err != nil {
		return err
	}
	if id != applicationID {
		return fmt.Errorf("%w: %s is a database of another program", ErrCorrupt, s.path)
	}
	if err := s.db.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if err := s.db.QueryRow("PRAGMA journal_mode").Scan(&mode); err != nil {
		return err
	}
	switch {
	case mode != "wal" && !s.ro: // an immutable database has no log
		return fmt.Errorf("%w: %s has no write-ahead log", ErrCorrupt, s.path)
	case version > len(migrations):
		return &NewerError{s.path, version, len(migrations)}
	case version == len(migrations):
		return nil
	case s.ro && version >= 1: // records are stored as they were then
		return nil
	case version < 1:
		return fmt.Errorf("%w: %s has version %d, and %d is expected", ErrCorrupt, s.path, version, len(migrations))
	}
	return migrate(s.db, migrations)
}

// source is the driver's name for a file. Nothing is changed for the sake of reading it, whatever it says of itself.
func source(path, options string) string {
	escaped := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path)
	return fmt.Sprintf("file:%s?_txlock=immediate&_busy_timeout=%d&_fk=1&_defensive=1&_dqs=0&_error_rc=1"+
		"&_pragma=cell_size_check(1)&_pragma=trusted_schema(0)%s", escaped, busyTimeout.Milliseconds(), options)
}

// fail puts an error of the driver into words, with the path. Errors of this package and of contexts stay as they are.
func (s *Store) fail(err error) error {
	var e *sqlite.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &e):
		if strings.HasPrefix(err.Error(), "sql: Scan error") {
			return fmt.Errorf("%w: %s holds a value of another kind", ErrCorrupt, s.path)
		}
		return err
	}
	text := plain(e.Error())
	if e.Code() == lib.SQLITE_IOERR_SHMSIZE { // no room for the memory that processes share
		return fmt.Errorf("%s: %w", s.path, syscall.ENOSPC)
	}
	switch e.Code() & 0xff {
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB, lib.SQLITE_ERROR, lib.SQLITE_MISMATCH, lib.SQLITE_TOOBIG:
		return fmt.Errorf("%w: %s: %s", ErrCorrupt, s.path, text)
	case lib.SQLITE_FULL:
		return fmt.Errorf("%s: %w", s.path, syscall.ENOSPC)
	case lib.SQLITE_CANTOPEN, lib.SQLITE_READONLY, lib.SQLITE_PERM, lib.SQLITE_AUTH:
		return fmt.Errorf("%s cannot be opened or written (is the folder writable?): %w", s.path, fs.ErrPermission)
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return fmt.Errorf("%w: another process has kept %s locked for %v", ErrBusy, s.path, busyTimeout)
	case lib.SQLITE_IOERR:
		return fmt.Errorf("%s: %s (is the disk over its quota, or failing?)", s.path, text)
	case lib.SQLITE_INTERRUPT:
		return fmt.Errorf("%s: %w", s.path, context.Canceled)
	}
	return fmt.Errorf("%s: %s", s.path, text)
}

// plain leaves the driver's number out of its message.
func plain(text string) string {
	if i := strings.LastIndex(text, " ("); i > 0 {
		text = text[:i]
	}
	return text
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func (s *Store) begin(ctx context.Context) (*sql.Tx, error) {
	tx, err := s.db.BeginTx(ctx, nil)
	return tx, s.fail(err)
}

// milli and moment turn times into what is stored, and back. No time is 0.
func milli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
