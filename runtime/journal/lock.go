//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package journal

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// lock takes the lock file and writes into it who has it, or gives nil if somebody else has it. Whoever looks whether a
// run is held has the lock for a moment, so it is tried for a little while.
func lock(path string, h Holder) (*os.File, error) {
	for range 20 {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil && still(f, path) {
			if err := sign(f, h); err != nil {
				f.Close()
				return nil, err
			}
			return f, nil
		}
		f.Close()
		switch {
		case err == nil: // the file was removed by a prune between opening and locking
		case errors.Is(err, syscall.EWOULDBLOCK):
			time.Sleep(3 * time.Millisecond)
		default:
			return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
		}
	}
	return nil, nil
}

// still says whether the file has the name yet.
func still(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}

// sign writes the holder over what another one may have left.
func sign(f *os.File, h Holder) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	return err
}

// holderOf reads who has a lock that is taken. A process that is gone left its name to one that has not signed yet: then
// it is not known who has it.
func holderOf(path string) (h Holder) {
	b, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(b, &h) != nil {
		return Holder{}
	}
	if h.Host == host() && h.PID > 0 && errors.Is(syscall.Kill(h.PID, 0), syscall.ESRCH) {
		return Holder{}
	}
	return h
}

func host() string {
	name, err := os.Hostname()
	if err != nil {
		return "an unnamed host"
	}
	return name
}

// locked says whether somebody has the lock. What cannot be looked at counts as locked: it is then left alone.
func locked(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil
}
