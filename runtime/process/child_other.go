//go:build !unix

package process

import (
	"os"
	"time"
)

// Supported says that child processes work on this system.
const Supported = false

type child struct {
	done chan struct{}
	exit Exit
}

type pipes struct {
	*child
	stdin, stdout, stderr *os.File
}

func open(*Command, bool) (*pipes, error) { return nil, ErrUnsupported }

func (c *child) end(time.Duration) {}

func argumentLimits() (one, all int) { return 0, 0 }
