package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// On a full disk appending ends with an error that names the file. What was kept before stays readable, and once there is
// room the run goes on where it was.
func TestDiskFilledUp(t *testing.T) {
	for _, each := range []string{"flush", "sync"} {
		t.Run(each, func(t *testing.T) {
			c := child("full", t.TempDir(), each)
			c.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
			if os.Geteuid() != 0 {
				c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
					UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
			}
			out, err := c.CombinedOutput()
			switch text := string(out); {
			case errors.Is(err, syscall.EPERM), strings.Contains(text, "no mount"):
				t.Skip("no file system can be mounted here: ", err, text)
			case err != nil:
				t.Errorf("%v: %s", err, text)
			default:
				t.Log(text)
			}
		})
	}
}

// childFull mounts a small disk for itself alone, at dir, and fills it.
func childFull(dir, each string) error {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		return fmt.Errorf("no mount: %w", err)
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 3400<<10), 0o600); err != nil {
		return err
	}
	s, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	l, err := s.Begin(context.Background(), Run{ID: "r1"})
	if err != nil {
		return err
	}
	kept, full := fill(l, each == "sync")
	if !errors.Is(full, syscall.ENOSPC) || !strings.Contains(full.Error(), dir) {
		return fmt.Errorf("a full disk is: %w", full)
	}
	closing := l.Close()
	if err := readBack(dir, kept); err != nil {
		return err
	}
	if err := errors.Join(s.Close(), os.Remove(ballast)); err != nil {
		return err
	}
	if s, err = Open(dir, Options{}); err != nil {
		return err
	}
	if l, err = s.Continue(context.Background(), "r1"); err != nil {
		return fmt.Errorf("after room was made: %w", err)
	}
	more := l.Seq()
	if err := errors.Join(keep(l, []byte("1")), l.Sync(), l.Close(), readBack(dir, more+1), s.Close()); err != nil {
		return err
	}
	fmt.Printf("%d records were kept and %d are there; %v; closing: %v", kept, more, full, closing)
	return nil
}

// fill appends until that fails, and gives how many records were kept before.
func fill(l *Log, sync bool) (kept int64, err error) {
	for range 1000 {
		if err = keep(l, fmt.Appendf(nil, `{"seq":%d,"data":%q}`, l.Seq()+1, strings.Repeat("x", 3000))); err == nil && sync {
			err = l.Sync()
		}
		if err != nil {
			return kept, err
		}
		kept = l.Seq()
	}
	return kept, nil
}

// readBack reads a run of another process and fails unless it has so many records or, of those that were not kept, more.
func readBack(dir string, kept int64) error {
	s, err := Open(dir, Options{ReadOnly: true})
	if err != nil {
		return err
	}
	got, err := collect(s, "r1")
	if err == nil && int64(len(got)) < kept {
		err = fmt.Errorf("%d records are left of %d", len(got), kept)
	}
	return errors.Join(err, s.Close())
}
