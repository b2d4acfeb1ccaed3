//go:build unix

package builtin

import "syscall"

// nonblock keeps an open of a named pipe from waiting for a writer.
const nonblock = syscall.O_NONBLOCK
