//go:build unix && !linux

package builtin

import "syscall"

// processAttr gives the command a session of its own, which is a process group of its own and has no terminal to ask
// for a password.
func processAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
