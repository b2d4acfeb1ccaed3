//go:build unix && !linux

package process

import "syscall"

// attributes give the child a session of its own, which is a process group of its own and has no terminal to ask for a
// password.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// argumentLimits are the most bytes in one argument and in all arguments and variables together. One is bounded by all
// alone; macOS has 1 MiB.
func argumentLimits() (one, all int) { return 0, 1 << 20 }

// membersLive says whether a group that exists has a member that is no zombie. It is not known here.
func membersLive(int) bool { return true }
