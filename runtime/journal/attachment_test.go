package journal

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

// What was kept is there after the process, for its own run alone, and stored once for all runs and records.
func TestAttachmentsAreKept(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	data := bytes.Repeat([]byte{0, 0xff, '\n'}, 10_000)
	a, b := begin(t, s, "a"), begin(t, s, "b")
	for _, l := range []*Log{a, a, b} {
		if err := l.Keep("sha256:d", data); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(t, s, `SELECT count(*) FROM blobs`); n != 1 {
		t.Errorf("%d blobs", n)
	}
	other := open(t, dir) // another process, while a is held
	var name string
	if err := other.db.QueryRow(sqlAttached, a.run.num, "sha256:d").Scan(&name, new([]byte)); err != nil {
		t.Error(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := s.Continue(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if got, err := again.Kept("sha256:d"); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := again.Kept("sha256:e"); err == nil || !strings.HasSuffix(err.Error(), `has nothing of run "a" under sha256:e`) {
		t.Error(err)
	}
	if err := a.Keep("sha256:e", data); err == nil || err.Error() != `the log of run "a" is closed` {
		t.Error(err)
	}
}

// They go with their run, and with the last run that has them.
func TestAttachmentsArePruned(t *testing.T) {
	s := open(t, t.TempDir())
	for _, id := range []string{"a", "b"} {
		l := begin(t, s, id)
		appendEvents(t, l, 2, blobFrom)
		for _, data := range []string{"shared", id} {
			if err := l.Keep("sha256:"+data, []byte(data)); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.SetStatus(t.Context(), StatusEnded, 0, time.Time{}); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, statement := range []string{`DELETE FROM attachments`, `UPDATE attachments SET digest = 'x'`, `DELETE FROM blobs`} {
		if _, err := s.db.Exec(statement); err == nil {
			t.Errorf("%s went through", statement)
		}
	}
	if _, err := s.db.Exec(`UPDATE runs SET ended_at = 1 WHERE id = 'a'`); err != nil {
		t.Fatal(err)
	}
	if gone, err := s.Prune(t.Context(), PruneOptions{OlderThan: time.Hour}); err != nil || len(gone) != 1 || gone[0] != "a" {
		t.Fatal(gone, err)
	}
	if n := count(t, s, `SELECT count(*) FROM attachments`); n != 2 {
		t.Errorf("%d attachments are left", n)
	}
	if n := count(t, s, `SELECT count(*) FROM blobs WHERE body = x'61'`); n != 0 {
		t.Error("what nobody else has is left")
	}
	if n := count(t, s, `SELECT count(*) FROM blobs WHERE body IN (CAST('shared' AS BLOB), CAST('b' AS BLOB))`); n != 2 {
		t.Errorf("%d are left of what the other run has", n)
	}
}

// What somebody has changed behind the store's back is not given to a model.
func TestDamagedAttachments(t *testing.T) {
	s := open(t, t.TempDir())
	l := begin(t, s, "a")
	defer l.Close()
	if err := l.Keep("sha256:d", []byte("picture")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.Exec(`DROP TRIGGER blobs_fixed; UPDATE blobs SET body = x'00'`); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Kept("sha256:d"); !errors.Is(err, ErrCorrupt) {
		t.Error(err)
	}
}

// A store from before there were attachments can be read as it is, and has room for them once it is opened to write.
func TestStoreWithoutAttachments(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	l := begin(t, s, "a")
	appendEvents(t, l, 3, 10)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.Exec(`DROP TABLE attachments; DROP TRIGGER blobs_attached; PRAGMA user_version = 1`); err != nil {
		t.Fatal(err)
	}
	old, err := Open(dir, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if got, err := collect(old, "a"); err != nil || len(got) != 3 {
		t.Errorf("%d records, %v", len(got), err)
	}
	l = begin(t, open(t, dir), "b")
	defer l.Close()
	if err := l.Keep("sha256:d", []byte("picture")); err != nil {
		t.Error(err)
	}
}
