//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package journal

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// lock fails: a hold that outlives its process, or that two processes can have, is worse than none.
func lock(string, Holder) (*os.File, error) {
	return nil, fmt.Errorf("a run cannot be held on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// locked is true, since nobody can know: the run is left alone.
func locked(string) bool { return true }

func holderOf(string) Holder { return Holder{} }

func host() string { return "" }
