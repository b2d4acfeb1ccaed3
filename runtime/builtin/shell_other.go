//go:build !unix

package builtin

import (
	"context"
	"time"
)

const nonblock = 0

// run refuses: without process groups a command could not be ended with all it started.
func (s *shell) run(context.Context, string, string, time.Duration) outcome {
	return outcome{code: exitNotRun, stderr: "Not run: bash works on Linux and macOS only."}
}
