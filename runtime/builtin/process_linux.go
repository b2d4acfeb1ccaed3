package builtin

import "syscall"

// processAttr gives the command a session of its own, which is a process group of its own and has no terminal to ask
// for a password. It dies with us, even if nobody is left to kill its group; what it started itself does not inherit that.
func processAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
