//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package journal

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

// The test binary is also the other processes: with OMA_JOURNAL_CHILD set it does what children says, and nothing else.
var children = map[string]func(dir, name string) error{
	"work": childWork, "append": childAppend, "open": childOpen, "race": childRace, "readonly": childReadonly,
	"full": childFull,
}

func TestMain(m *testing.M) {
	do := children[os.Getenv("OMA_JOURNAL_CHILD")]
	if do == nil {
		os.Exit(m.Run())
	}
	if err := do(os.Args[1], os.Args[2]); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

func child(do, dir, name string) *exec.Cmd {
	exe := "/proc/self/exe" // can be run by whoever may not enter the folder of the test binary
	if !exists(exe) {
		exe = os.Args[0]
	}
	c := exec.Command(exe, dir, name)
	c.Env = append(os.Environ(), "OMA_JOURNAL_CHILD="+do)
	return c
}

const (
	workers = 8
	shared  = 40  // approvals all of them decide, and as many that one of them does
	each    = 400 // records of each
)

// childWork appends to its own run, flushes it to disk now and then, decides every shared approval in its own name, and
// tries to be the first of all to decide another one.
func childWork(dir, name string) error {
	ctx := context.Background()
	s, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	l, err := s.Begin(ctx, Run{ID: name})
	if err != nil {
		return err
	}
	firsts := 0
	for i := range each {
		record := fmt.Appendf(nil, `{"seq":%d,"by":%q}`, i+1, name)
		if i%50 == 0 {
			record = fmt.Appendf(nil, `{"seq":%d,"by":%q,"data":"%s"}`, i+1, name, strings.Repeat("d", blobFrom))
		}
		if err := keep(l, record); err != nil {
			return fmt.Errorf("append: %w", err)
		}
		if i%10 > 0 {
			continue
		}
		if err := l.Sync(); err != nil {
			return fmt.Errorf("sync: %w", err)
		}
		decided, err := childDecide(ctx, s, name, i/10)
		if err != nil {
			return err
		}
		if decided {
			firsts++
		}
	}
	fmt.Println(firsts)
	return errors.Join(l.SetStatus(ctx, StatusEnded, 0, time.Time{}), l.Close(), s.Close())
}

// childDecide asks for two things that all others ask for too. One is decided once each has approved. Of the other the first
// decision is all there is, and true says that it was this one.
func childDecide(ctx context.Context, s *Store, name string, i int) (bool, error) {
	all, err := policies.NewApproval("shared", spec.ScopePlan, strconv.Itoa(i), []byte(`{}`))
	if err != nil {
		return false, err
	}
	one, err := policies.NewApproval("shared", spec.ScopeDispatch, strconv.Itoa(i), []byte(`{}`))
	if err != nil {
		return false, err
	}
	if err := errors.Join(s.Ask(ctx, all), s.Ask(ctx, one)); err != nil {
		return false, fmt.Errorf("ask: %w", err)
	}
	each := func(a *Approval) spec.ApprovalRecord {
		return policies.ConcludeApproval(&spec.PlanApprovals{Quorum: workers}, "", &a.ApprovalRequest, a.Decisions, time.Now())
	}
	if err := s.Decide(ctx, all.ID, all.RequestHash, vote(spec.VerdictApprove, name), each); err != nil {
		return false, fmt.Errorf("decide: %w", err)
	}
	err = s.Decide(ctx, one.ID, one.RequestHash, vote(spec.VerdictReject, name), nil)
	if err != nil && !errors.Is(err, ApprovalConflict) {
		return false, fmt.Errorf("decide: %w", err)
	}
	return err == nil, nil
}

// K10: eight processes on one store, all at once: nothing is lost, nobody meets a busy database, and of each race one wins.
func TestManyProcesses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	var running []*exec.Cmd
	var outs []*strings.Builder
	begin(t, open(t, dir), "shared")
	for i := range workers {
		c := child("work", dir, fmt.Sprintf("run%d", i))
		out := &strings.Builder{}
		c.Stdout, c.Stderr = out, out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		running, outs = append(running, c), append(outs, out)
	}
	firsts := 0
	for i, c := range running {
		if err := c.Wait(); err != nil {
			t.Fatalf("process %d: %v: %s", i, err, outs[i])
		}
		n, err := strconv.Atoi(strings.TrimSpace(outs[i].String()))
		if err != nil {
			t.Fatal(outs[i])
		}
		firsts += n
	}
	s := open(t, dir)
	if firsts != shared {
		t.Errorf("%d decisions were first, of %d approvals", firsts, shared)
	}
	for i := range workers {
		id := fmt.Sprintf("run%d", i)
		got, err := collect(s, id)
		if len(got) != each || err != nil {
			t.Errorf("%s has %d records: %v", id, len(got), err)
		}
		for n, record := range got {
			if !bytes.HasPrefix(record, fmt.Appendf(nil, `{"seq":%d,"by":%q`, n+1, id)) {
				t.Fatalf("record %d of %s is another one: %.60s", n+1, id, record)
			}
		}
		if r, err := s.Run(t.Context(), id); err != nil || r.Status != StatusEnded || r.Records != each {
			t.Errorf("%+v %v", r, err)
		}
	}
	all, err := s.Approvals(t.Context(), ApprovalFilter{RunID: "shared"})
	if err != nil || len(all) != 2*shared {
		t.Fatalf("%d approvals: %v", len(all), err)
	}
	for _, a := range all {
		if want := map[string]int{spec.ScopePlan: workers, spec.ScopeDispatch: 1}[a.Scope]; len(a.Decisions) != want {
			t.Errorf("%s has %d decisions, want %d", a.ID, len(a.Decisions), want)
		}
	}
}

func childOpen(dir, _ string) error {
	s, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	return s.Close()
}

// All of them find no store, make one, and close it: each has one in the end, and nothing half is left.
func TestManyProcessesCreate(t *testing.T) {
	for range 5 {
		dir := filepath.Join(t.TempDir(), "state")
		var running []*exec.Cmd
		for range workers {
			c := child("open", dir, "")
			c.Stdout = os.Stdout
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			running = append(running, c)
		}
		for _, c := range running {
			if err := c.Wait(); err != nil {
				t.Fatal(err)
			}
		}
		begin(t, open(t, dir), "r1")
		if left, err := filepath.Glob(filepath.Join(dir, "*.new-*")); len(left) > 0 || err != nil {
			t.Error(left, err)
		}
	}
}

// childAppend begins or continues a run and appends for ever. It says each record's number once Append has returned.
func childAppend(dir, id string) error {
	s, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	l, err := s.Continue(context.Background(), id)
	if errors.Is(err, ErrUnknown) {
		l, err = s.Begin(context.Background(), Run{ID: id})
	}
	if err != nil {
		return err
	}
	for {
		data := "small"
		if l.Seq()%7 == 3 {
			data = strings.Repeat(strconv.Itoa(int(l.Seq()%10)), blobFrom)
		}
		record := fmt.Appendf(nil, `{"seq":%d,"data":%q,"prev":%q}`, l.Seq()+1, data, l.Head())
		if l.Seq() == 0 {
			record = fmt.Appendf(nil, `{"seq":1,"data":%q}`, data)
		}
		if err := keep(l, record); err != nil {
			return err
		}
		fmt.Println(l.Seq())
	}
}

// CK-02 and CK-03: a process is killed at 50 random moments, and another one goes on each time. What Append took is
// there, in order and whole, and the dead process blocks nobody.
func TestCK02KilledWhileAppending(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 50 {
		c := child("append", dir, "r1")
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		said := int64(0)
		lines := bufio.NewScanner(out)
		for stop := random.IntN(60); stop >= 0 && lines.Scan(); stop-- {
			said = atoi(t, lines.Text())
		}
		time.AfterFunc(time.Duration(random.IntN(3000))*time.Microsecond, func() { c.Process.Kill() })
		for lines.Scan() {
			said = atoi(t, lines.Text())
		}
		if err := c.Wait(); err == nil {
			t.Fatal("it was not killed")
		}
		got, err := collect(s, "r1")
		if n := int64(len(got)); err != nil || n < said || n > said+1 { // one can be stored and not yet said
			t.Fatalf("kill %d: %d records of %d: %v", i, n, said, err)
		}
		if r, err := s.Run(t.Context(), "r1"); err != nil || r.Status != StatusInterrupted || r.Holder != nil || r.Attempt != i+1 {
			t.Fatalf("kill %d: %+v %v", i, r, err)
		}
	}
	pr, pw := io.Pipe()
	go func() { pw.CloseWithError(s.Export(context.Background(), "r1", pw)) }()
	if ref, err := runtime.VerifyLog(pr, nil); err != nil || ref.Events < 50 {
		t.Errorf("%d events: %v", ref.Events, err)
	}
}

func atoi(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(text)
	}
	return n
}

// childRace tries to continue a run and says how that went. The winner keeps it until its input ends.
func childRace(dir, id string) error {
	s, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	l, err := s.Continue(context.Background(), id)
	var held *HeldError
	switch {
	case errors.As(err, &held):
		fmt.Println("held by", held.Holder.PID)
		return nil
	case err != nil:
		return err
	}
	fmt.Println("mine")
	io.Copy(io.Discard, os.Stdin)
	return l.Close()
}

// CK-03: of many processes that continue one run at once, while others look at it, one works and each other one is
// told who does. When that one is killed, the next one gets the run.
func TestCK03ManyContinue(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if err := begin(t, s, "r1").Close(); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		looking, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			for looking.Err() == nil {
				if _, err := s.Run(context.Background(), "r1"); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		said := make(chan string)
		var running []*exec.Cmd
		for range workers {
			c := child("race", dir, "r1")
			if _, err := c.StdinPipe(); err != nil {
				t.Fatal(err)
			}
			out, err := c.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			running = append(running, c)
			go func() {
				line, _ := bufio.NewReader(out).ReadString('\n')
				said <- fmt.Sprintf("%d %s", c.Process.Pid, strings.TrimSpace(line))
			}()
		}
		var winner string
		words := map[string]int{}
		for range running {
			pid, word, _ := strings.Cut(<-said, " ")
			if word == "mine" {
				winner = pid
			}
			words[word]++
		}
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if words["mine"] != 1 || words["held by "+winner]+words["held by 0"] != workers-1 {
			t.Fatalf("process %s has it: %v", winner, words)
		}
		for _, c := range running {
			c.Process.Kill()
			c.Wait()
		}
	}
	l, err := s.Continue(t.Context(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	if l.Run().Attempt != 7 {
		t.Errorf("attempt %d", l.Run().Attempt)
	}
	l.Close()
}
