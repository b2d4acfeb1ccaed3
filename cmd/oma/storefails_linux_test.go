package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

// A disk that is full: whatever the run had got to, it ends with a word about it and does nothing that it could not
// record. What it had recorded can be read, and once there is room it goes on and does the rest, each thing once.
func TestFullDiskGoesOn(t *testing.T) { onSmallDisk(t, fullDisk) }

// A disk that cannot be written to: nothing starts, and what is there can be read.
func TestReadOnlyDisk(t *testing.T) { onSmallDisk(t, readOnlyDisk) }

// onSmallDisk lets a test have a disk of 2 MB, in a process of its own.
func onSmallDisk(t *testing.T, test func(t *testing.T, disk, oma string)) {
	if disk := os.Getenv("OMA_TEST_DISK"); disk != "" {
		if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=2m"); err != nil {
			t.Skip("mount: ", err)
		}
		oma, err := exec.LookPath("oma")
		if err != nil {
			t.Fatal(err)
		}
		test(t, disk, oma)
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "OMA_TEST_DISK="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS} // what is mounted there is gone with it
	if os.Geteuid() != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
	}
	switch out, err := cmd.CombinedOutput(); {
	case errors.Is(err, syscall.EPERM), strings.Contains(string(out), "SKIP"):
		t.Skipf("no disk can be made here: %v\n%s", err, out)
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	default:
		t.Logf("%s", out)
	}
}

func fullDisk(t *testing.T, disk, oma string) {
	midway := 0
	for free := 40; free <= 400; free += 30 {
		dir := crashFolder(t)
		state, real := dir+"-state", filepath.Join(disk, fmt.Sprint(free))
		if err := errors.Join(os.Mkdir(real, 0o700), os.Symlink(real, state)); err != nil {
			t.Fatal(err)
		}
		ballast := filepath.Join(disk, "ballast")
		if err := os.WriteFile(ballast, make([]byte, (2048-free)<<10), 0o600); err != nil {
			t.Fatal(err)
		}
		out, code := attempt(t, dir, oma, "run", "--state", state, "--receipt", dir+"-receipt.json", "team.yaml")
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		if code != 0 && (code != 3 || !strings.Contains(out, "no space left on device") || !strings.Contains(out, state)) {
			t.Fatalf("with %d KB it ends %d\n%s", free, code, out)
		}
		done := linesOf(t, filepath.Join(dir, "work", "log"))
		switch list, _ := attempt(t, dir, oma, "runs", "list", "--state", state); {
		case strings.Contains(list, "interrupted"):
			midway++
			recorded(t, dir, oma, done)
			goesOn(t, dir, oma, list)
			judged(t, dir, oma)
		case strings.Contains(list, "ended"): // there may have been no room for the copy of its log
			recorded(t, dir, oma, done)
			judged(t, dir, oma)
		case len(done) > 0:
			t.Errorf("with %d KB it acted without a record: %v\n%s", free, done, out)
		}
		if t.Failed() {
			t.Fatalf("with %d KB:\n%s", free, out)
		}
		if err := os.RemoveAll(real); err != nil {
			t.Fatal(err)
		}
	}
	if midway < 3 {
		t.Errorf("the disk was full in the middle of %d runs", midway)
	}
	t.Logf("%d runs met a full disk on their way", midway)
}

func readOnlyDisk(t *testing.T, disk, oma string) {
	dir := crashFolder(t)
	state := filepath.Join(disk, "state")
	if out, code := attempt(t, dir, oma, "run", "--state", state, "--receipt", dir+"-receipt.json", "team.yaml"); code != 0 {
		t.Fatalf("ends %d\n%s", code, out)
	}
	list, _ := attempt(t, dir, oma, "runs", "list", "--state", state)
	run := regexp.MustCompile(`run_\w+`).FindString(list)
	events, _ := attempt(t, dir, oma, "runs", "show", "--events", "--state", state, run)
	if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "work", "log")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"run", "team.yaml"}, {"runs", "prune", "--older-than", "0s"}} {
		out, code := attempt(t, dir, oma, append(args, "--state", state)...)
		if code != 3 || !strings.Contains(out, "oma: ") || !strings.Contains(out, state) || strings.Contains(out, "started") {
			t.Errorf("%s ends %d: %s", args[0], code, out)
		}
	}
	if done := linesOf(t, filepath.Join(dir, "work", "log")); len(done) > 0 {
		t.Errorf("it acted without a record: %v", done)
	}
	if again, code := attempt(t, dir, oma, "runs", "list", "--state", state); code != 0 || again != list {
		t.Errorf("the list ends %d: %s", code, again)
	}
	if again, code := attempt(t, dir, oma, "runs", "show", "--events", "--state", state, run); code != 0 || again != events || !strings.Contains(again, spec.EventRunEnd) {
		t.Errorf("the events end %d: %s", code, again)
	}
}

// recorded writes the log of the one run as the store has it, and fails unless it has every call that took effect.
func recorded(t *testing.T, dir, oma string, done []string) {
	t.Helper()
	runs, err := os.ReadDir(filepath.Join(dir+"-state", "runs"))
	if err != nil || len(runs) != 1 {
		t.Fatal(runs, err)
	}
	cmd := exec.Command(oma, "runs", "show", "--events", "--state", dir+"-state", runs[0].Name())
	log, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	if _, err := runtime.VerifyLog(bytes.NewReader(log), func(e *spec.Event) error {
		if e.Kind == spec.EventToolAsked && bytes.Contains(e.Data, []byte(`"bash"`)) {
			asked++
		}
		return nil
	}); err != nil || asked < len(done) {
		t.Errorf("%d calls are on record and %d took effect: %v", asked, len(done), err)
	}
	if err := os.WriteFile(dir+"-events.jsonl", log, 0o600); err != nil {
		t.Fatal(err)
	}
}

// goesOn takes up the one run in a list until it is over. Nothing is written twice, and all of it in the end.
func goesOn(t *testing.T, dir, oma, list string) {
	t.Helper()
	args := []string{"resume", "--state", dir + "-state", "--receipt", dir + "-receipt.json", regexp.MustCompile(`run_\w+`).FindString(list)}
	out, code := attempt(t, dir, oma, args...)
	verdict := "approve"
	if code == runtime.ExitSuspended {
		verdict = look(t, dir, oma)
		out, code = attempt(t, dir, oma, args...)
	}
	if code != 0 {
		t.Fatalf("resume ends %d\n%s", code, out)
	}
	lines := linesOf(t, filepath.Join(dir, "work", "log"))
	slices.Sort(lines)
	if len(slices.Compact(slices.Clone(lines))) != len(lines) || len(lines) != 6 {
		t.Errorf("%s: %v\n%s", verdict, lines, out)
	}
	recorded(t, dir, oma, lines)
}

// judged holds a receipt against the log.
func judged(t *testing.T, dir, oma string) {
	t.Helper()
	out, code := attempt(t, dir, oma, "gate", "--team", "team.yaml", "--events", dir+"-events.jsonl", dir+"-receipt.json")
	if code != 0 {
		t.Errorf("the gate ends %d\n%s", code, out)
	}
}

// linesOf gives the words of a file, none if it is not there.
func linesOf(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Fields(string(b))
}
