//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// In a folder that cannot be written to, opening says so with the path, and reading works.
func TestReadOnlyFolder(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	l := begin(t, s, "r1")
	appendEvents(t, l, 3, 10)
	if err := errors.Join(l.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	// No mode stops root, so the child is then somebody else, who may read and enter.
	for _, path := range []string{filepath.Join(dir, "runs", "r1"), filepath.Join(dir, "runs"), filepath.Join(dir, fileName), dir, filepath.Dir(dir)} {
		if err := os.Chmod(path, 0o555); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(path, 0o700) })
	}
	c := child("readonly", dir, "r1")
	if os.Geteuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// childReadonly runs in a folder that it may not write to.
func childReadonly(dir, id string) error {
	_, err := Open(dir, Options{})
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), dir) {
		return fmt.Errorf("for writing: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "sub"), Options{}); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), dir) {
		return fmt.Errorf("a new one: %v", err)
	}
	s, err := Open(dir, Options{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("for reading: %w", err)
	}
	if got, err := collect(s, id); len(got) != 3 || err != nil {
		return fmt.Errorf("%d records: %v", len(got), err)
	}
	r, err := s.Run(context.Background(), id)
	if err != nil || r.Status != StatusInterrupted && r.Status != StatusRunning {
		return fmt.Errorf("%+v: %v", r, err)
	}
	return s.Close()
}
