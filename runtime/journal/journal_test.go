package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

var epoch = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func clock() time.Time { return epoch }

func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir, Options{Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func begin(t testing.TB, s *Store, id string) *Log {
	t.Helper()
	l, err := s.Begin(context.Background(), Run{ID: id, Team: "crew", Plan: "sha256:p", Core: "1.0", Author: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// appendEvents adds n events that follow a log's last one, each with size bytes of data, and gives them.
func appendEvents(t testing.TB, l *Log, n, size int) [][]byte {
	t.Helper()
	var all [][]byte
	for range n {
		data, err := json.Marshal(strings.Repeat("x", size))
		if err != nil {
			t.Fatal(err)
		}
		e := spec.Event{Seq: l.Seq() + 1, At: 5, Kind: spec.EventToolResult, ID: "t/1", Data: data, Prev: l.Head()}
		record, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if err := keep(l, record); err != nil {
			t.Fatal(err)
		}
		all = append(all, record)
	}
	return all
}

func collect(s *Store, id string) (all [][]byte, err error) {
	for record, err := range s.Records(context.Background(), id) {
		if err != nil {
			return all, err
		}
		all = append(all, record)
	}
	return all, nil
}

func count(t testing.TB, s *Store, query string, args ...any) (n int64) {
	t.Helper()
	if err := s.db.QueryRow(query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// keep stores one record.
func keep(l *Log, record []byte) error {
	if err := l.Append(record); err != nil {
		return err
	}
	return l.Flush()
}

// The records that come back are those that went in, and the program's own verification of logs reads their export.
func TestRecordsAreWhatWasAppended(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	l := begin(t, s, "r1")
	var want [][]byte
	for _, size := range []int{0, 10, blobFrom - 200, blobFrom, 3 * blobFrom, 1 << 20, 3} {
		want = append(want, appendEvents(t, l, 100, size%(64<<10))...)
	}
	want = append(want, appendEvents(t, l, 1, 1<<20)...)
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	got, err := collect(s, "r1")
	if err != nil || !slices.EqualFunc(got, want, bytes.Equal) {
		t.Fatalf("%d records came back of %d, or others: %v", len(got), len(want), err)
	}
	var out bytes.Buffer
	if err := s.Export(t.Context(), "r1", &out); err != nil {
		t.Fatal(err)
	}
	if lines := append(bytes.Join(want, []byte("\n")), '\n'); !bytes.Equal(lines, out.Bytes()) {
		t.Fatal("the export is not one record a line")
	}
	ref, err := runtime.VerifyLog(&out, nil)
	if diff := cmp.Diff(spec.JournalRef{Events: l.Seq(), Head: l.Head()}, ref); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

// Whatever a record looks like, its bytes come back: where its payload lies is a guess that nothing depends on.
func TestRecordsOfAnyForm(t *testing.T) {
	s := open(t, t.TempDir())
	l := begin(t, s, "r1")
	big := strings.Repeat("y", blobFrom)
	want := [][]byte{}
	for _, text := range []string{
		`1`, `{"data":"` + big + `"}`, `{"a":1,"data":"` + big + `"}`, `{"a":1,"data":"` + big + `","prev":"x"}`,
		`,"prev":","data":` + big, `,"data":,"prev":"` + big, big, `{"k":"` + big + `","data":1,"prev":"p"}`, `{"a":"` + "\x00\xff" + big + `"}`,
	} {
		if err := keep(l, []byte(text)); err != nil {
			t.Fatal(err)
		}
		want = append(want, []byte(text))
	}
	got, err := collect(s, "r1")
	if err != nil || !slices.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("records came back changed: %v", err)
	}
	for _, text := range []string{"", "{\n}"} {
		if err := l.Append([]byte(text)); err == nil {
			t.Errorf("%q was taken for a record", text)
		}
	}
}

// Whoever reads while records move from the tail into the database sees them all, each once.
func TestReadWhileWritten(t *testing.T) {
	dir := t.TempDir()
	l := begin(t, open(t, dir), "r1")
	reader, err := Open(dir, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	var kept atomic.Int64
	done := make(chan error, 1)
	go func() {
		for i := range 2000 {
			err := keep(l, fmt.Appendf(nil, `{"seq":%d}`, i+1))
			if err == nil && i%7 == 0 {
				err = l.Sync()
			}
			if err != nil {
				done <- err
				return
			}
			kept.Store(int64(i + 1))
		}
		done <- nil
	}()
	for running := true; running; {
		select {
		case err := <-done:
			if running = false; err != nil {
				t.Fatal(err)
			}
		default:
		}
		before := kept.Load()
		got, err := collect(reader, "r1")
		if n := int64(len(got)); err != nil || n < before || n > 2000 || n > 0 && string(got[n-1]) != fmt.Sprintf(`{"seq":%d}`, n) {
			t.Fatalf("%d records, and there were %d: %v", n, before, err)
		}
		if r, err := reader.Run(t.Context(), "r1"); err != nil || r.Records < before {
			t.Fatalf("the run says %d records, and there were %d: %v", r.Records, before, err)
		}
	}
}

// A run begins without records, whatever lies in its folder.
func TestTailOfAnotherRun(t *testing.T) {
	s := open(t, t.TempDir())
	l := begin(t, s, "r1")
	appendEvents(t, l, 3, 10)
	lines, err := os.ReadFile(l.tail.path)
	if err != nil {
		t.Fatal(err)
	}
	path := s.tailPath("r2")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, lines, 0o600)); err != nil {
		t.Fatal(err)
	}
	other := begin(t, s, "r2")
	if got, err := collect(s, "r2"); len(got) > 0 || err != nil || other.Seq() > 0 {
		t.Errorf("it begins with %d records: %v", len(got), err)
	}
	if _, err := s.Begin(t.Context(), Run{ID: "r1"}); !errors.Is(err, ErrExists) {
		t.Error(err)
	}
	if got, err := collect(s, "r1"); len(got) != 3 || err != nil {
		t.Errorf("a run that could not be begun again has %d records left: %v", len(got), err)
	}
}

func TestPayloadsAreKeptOnce(t *testing.T) {
	s := open(t, t.TempDir())
	appendEvents(t, begin(t, s, "r1"), 20, 100<<10)
	appendEvents(t, begin(t, s, "r2"), 20, 100<<10)
	if n := count(t, s, `SELECT count(*) FROM blobs`); n != 1 {
		t.Errorf("one payload is stored %d times", n)
	}
	if n := count(t, s, `SELECT sum(length(body)) FROM records`); n > 40*500 {
		t.Errorf("40 records without their payload take %d bytes", n)
	}
}

func TestRunsAndTheirStates(t *testing.T) {
	ctx := t.Context()
	s := open(t, t.TempDir())
	for _, id := range []string{"held", "left", "asks", "done"} {
		appendEvents(t, begin(t, s, id), 3, 10)
	}
	closed := func(id string, status Status, code int, ended time.Time) {
		t.Helper()
		l := begin(t, s, id)
		if err := errors.Join(l.SetStatus(ctx, status, code, ended), l.Close(), l.Close()); err != nil {
			t.Fatal(err)
		}
	}
	closed("suspended", StatusSuspended, 6, time.Time{})
	closed("ended", StatusEnded, 1, epoch.Add(time.Hour))
	closed("stopped", StatusInterrupted, 130, epoch)
	if err := begin(t, s, "gone").Close(); err != nil {
		t.Fatal(err)
	}
	runs, err := s.Runs(ctx, Filter{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range runs {
		got[r.ID] = fmt.Sprintf("%s %d %d %t", r.Status, r.ExitCode, r.Records, r.Holder != nil)
	}
	want := map[string]string{"held": "running 0 3 true", "left": "running 0 3 true", "asks": "running 0 3 true", "done": "running 0 3 true",
		"suspended": "suspended 6 0 false", "ended": "ended 1 0 false", "stopped": "interrupted 130 0 false", "gone": "interrupted 0 0 false"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if runs[0].ID != "gone" || runs[len(runs)-1].ID != "held" {
		t.Errorf("runs are not newest first: %s … %s", runs[0].ID, runs[len(runs)-1].ID)
	}
	for _, c := range []struct {
		filter Filter
		want   int
	}{{Filter{Status: StatusInterrupted}, 2}, {Filter{Status: StatusRunning, Limit: 3}, 3}, {Filter{Team: "other"}, 0}, {Filter{Team: "crew"}, 8}} {
		if runs, err := s.Runs(ctx, c.filter); err != nil || len(runs) != c.want {
			t.Errorf("%+v chose %d runs, want %d: %v", c.filter, len(runs), c.want, err)
		}
	}
	r, err := s.Run(ctx, "ended")
	wantRun := Run{ID: "ended", Team: "crew", Plan: "sha256:p", Core: "1.0", Author: "ann", CreatedAt: epoch, EndedAt: epoch.Add(time.Hour),
		Status: StatusEnded, ExitCode: 1, Attempt: 1}
	if diff := cmp.Diff(wantRun, r, cmpopts.IgnoreUnexported(Run{})); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestBeginAndContinueRefuse(t *testing.T) {
	ctx := t.Context()
	s := open(t, t.TempDir())
	l := begin(t, s, "2026-05-01-brisk-otter")
	if err := errors.Join(l.SetStatus(ctx, StatusEnded, 0, epoch), l.Close()); err != nil {
		t.Fatal(err)
	}
	begin(t, s, "held")
	for _, id := range []string{"2026-05-01-brisk-otter", "held"} {
		if _, err := s.Begin(ctx, Run{ID: id}); !errors.Is(err, ErrExists) {
			t.Errorf("begin %s: %v", id, err)
		}
	}
	for _, id := range []string{"", "../x", "a/b", ".", "..", ".hidden", "a b", "ä", strings.Repeat("a", 129)} {
		if _, err := s.Begin(ctx, Run{ID: id}); err == nil {
			t.Errorf("%q was taken for an id", id)
		}
	}
	if _, err := s.Continue(ctx, "2026-05-01-brisk-otter"); !errors.Is(err, ErrEnded) {
		t.Errorf("an ended run: %v", err)
	}
	_, err := s.Continue(ctx, "2026-05-01-brisk-oter")
	var unknown *UnknownError
	if !errors.As(err, &unknown) || !slices.Contains(unknown.Near, "2026-05-01-brisk-otter") || !errors.Is(err, ErrUnknown) {
		t.Errorf("an unknown run: %v", err)
	}
	if exists(s.lockPath("2026-05-01-brisk-oter")) {
		t.Error("a wrong name left a folder")
	}
	if _, err := collect(s, "nobody"); !errors.Is(err, ErrUnknown) {
		t.Errorf("records of an unknown run: %v", err)
	}
}

// CK-03 in one process: the second is refused and told by whom; when the first has let go, it goes on after the last
// record.
func TestCK03OneHolder(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	a, b := open(t, dir), open(t, dir)
	l := begin(t, a, "r1")
	appendEvents(t, l, 5, 10)
	for _, s := range []*Store{a, b} {
		var held *HeldError
		if _, err := s.Continue(ctx, "r1"); !errors.As(err, &held) || held.Holder.PID != os.Getpid() || held.Holder.Host == "" {
			t.Errorf("a second holder: %v", err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := keep(l, []byte("1")); err == nil {
		t.Error("a closed log took a record")
	}
	next, err := b.Continue(ctx, "r1")
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if next.Seq() != 5 || next.Head() != l.Head() || next.Run().Attempt != 2 || next.Run().Status != StatusRunning {
		t.Errorf("it goes on at %d, attempt %d", next.Seq(), next.Run().Attempt)
	}
	appendEvents(t, next, 2, 10)
	if got, err := collect(a, "r1"); len(got) != 7 || err != nil {
		t.Errorf("%d records: %v", len(got), err)
	}
}

// Nothing that was written can be changed, with the rights of the program and its own connection.
func TestNothingCanBeChanged(t *testing.T) {
	ctx := t.Context()
	s := open(t, t.TempDir())
	l := begin(t, s, "r1")
	appendEvents(t, l, 3, 100<<10)
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	a := ask(t, s, "r1", "t/1", `{"n":1}`)
	if err := s.Decide(ctx, a.ID, a.RequestHash, vote(spec.VerdictReject, "bob"), nil); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`UPDATE records SET body = x'00'`, `DELETE FROM records`, `INSERT OR REPLACE INTO records SELECT num, x'00', NULL, 0, heads FROM records`,
		`INSERT INTO records SELECT num + 2, body, blob, cut, heads FROM records`, `INSERT INTO records SELECT 2 << 32, body, blob, cut, heads FROM records LIMIT 1`,
		`UPDATE blobs SET body = x'00'`, `DELETE FROM blobs`, `UPDATE runs SET plan = 'other'`, `UPDATE runs SET author = 'eve'`, `DELETE FROM runs`,
		`UPDATE approvals SET content = x'00'`, `DELETE FROM approvals`, `UPDATE decisions SET verdict = 'approve'`, `DELETE FROM decisions`,
		`INSERT OR REPLACE INTO decisions SELECT num, approval, reviewer, 'approve', reason, signature, decided_at, sum FROM decisions`,
		`INSERT OR REPLACE INTO approvals SELECT num, id, run, scope, boundary, 'h', content, reason, requested_at, expires, sum FROM approvals`,
		`UPDATE runs SET status = 'fine'`,
	} {
		if _, err := s.db.Exec(statement); err == nil {
			t.Errorf("%s went through", statement)
		}
	}
	if got, err := collect(s, "r1"); len(got) != 3 || err != nil {
		t.Errorf("%d records: %v", len(got), err)
	}
}

func TestPrune(t *testing.T) {
	ctx := t.Context()
	s := open(t, t.TempDir())
	end := func(id string, status Status, ended time.Time, size int) {
		t.Helper()
		l, err := s.Begin(ctx, Run{ID: id, CreatedAt: epoch.Add(-100 * time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		appendEvents(t, l, 300, size)
		a := ask(t, s, id, "b", `{}`)
		if err := errors.Join(s.Decide(ctx, a.ID, a.RequestHash, vote(spec.VerdictApprove, "bob"), nil),
			l.SetStatus(ctx, status, 0, ended), l.Close()); err != nil {
			t.Fatal(err)
		}
	}
	end("old", StatusEnded, epoch.Add(-50*time.Hour), 20<<10)
	end("older", StatusEnded, epoch.Add(-60*time.Hour), 30<<10)
	end("young", StatusEnded, epoch.Add(-time.Hour), 30<<10)
	end("suspended", StatusSuspended, time.Time{}, 10)
	end("crashed", StatusRunning, time.Time{}, 10)
	end("busy", StatusInterrupted, time.Time{}, 10)
	held, err := s.Continue(ctx, "busy")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := os.WriteFile(filepath.Join(s.dir, "runs", "old", "receipt.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ids := func() (ids []string) {
		runs, err := s.Runs(ctx, Filter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range runs {
			ids = append(ids, r.ID)
		}
		return ids
	}
	gone, err := s.Prune(ctx, PruneOptions{OlderThan: 24 * time.Hour})
	if diff := cmp.Diff([]string{"old", "older"}, gone); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if diff := cmp.Diff([]string{"busy", "crashed", "suspended", "young"}, ids()); diff != "" {
		t.Error(diff)
	}
	if n := count(t, s, `SELECT count(*) FROM blobs`); n != 1 {
		t.Errorf("%d payloads are left, and one run has one", n)
	}
	if n := count(t, s, `PRAGMA freelist_count`); n != 0 {
		t.Errorf("%d pages stay unused", n)
	}
	if n := count(t, s, `SELECT (SELECT count(*) FROM approvals) * 100 + (SELECT count(*) FROM decisions)`); n != 404 {
		t.Errorf("approvals and decisions that are left: %d", n)
	}
	if exists(filepath.Join(s.dir, "runs", "older")) || !exists(filepath.Join(s.dir, "runs", "old", "receipt.json")) {
		t.Error("a folder stayed, or a receipt went")
	}
	if got, err := collect(s, "young"); len(got) != 300 || err != nil {
		t.Errorf("%d records: %v", len(got), err)
	}
	if gone, err := s.Prune(ctx, PruneOptions{Interrupted: true}); !slices.Equal(gone, []string{"young", "crashed"}) || err != nil {
		t.Errorf("%v %v", gone, err)
	}
	if gone, err := s.Prune(ctx, PruneOptions{Suspended: true, OlderThan: 200 * time.Hour}); len(gone) > 0 || err != nil {
		t.Errorf("it is not that old: %v %v", gone, err)
	}
	if gone, err := s.Prune(ctx, PruneOptions{Suspended: true}); !slices.Equal(gone, []string{"suspended"}) || err != nil {
		t.Errorf("%v %v", gone, err)
	}
	if n := count(t, s, `SELECT (SELECT count(*) FROM approvals) * 100 + (SELECT count(*) FROM decisions)`); n != 101 {
		t.Errorf("approvals and decisions that are left: %d, and one run is", n)
	}
	begin(t, s, "old") // a pruned id is free
}
