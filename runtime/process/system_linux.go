package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// attributes give the child a session of its own, which is a process group of its own and has no terminal to ask for a
// password. It dies with us, even if nobody is left to kill its group; what it started itself does not inherit that.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// argumentLimits are the most bytes in one argument and in all arguments and variables together, as execve(2) has them:
// 32 pages, and a quarter of the stack's limit between 128 KiB and 6 MiB.
func argumentLimits() (one, all int) {
	one = 32*os.Getpagesize() - 1 // a zero byte ends each
	var stack syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_STACK, &stack) != nil {
		return one, 0
	}
	return one, int(max(min(stack.Cur/4, 6<<20), 128<<10))
}

// membersLive says whether a group that exists has a member that is no zombie: in a container whose first process collects
// nobody, orphans stay zombies, and a group of them would be waited for. What cannot be read counts as alive.
func membersLive(group int) bool {
	proc, err := os.Open("/proc")
	if err != nil {
		return true
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return true
	}
	for _, name := range names {
		if _, err := strconv.Atoi(name); err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // it has just gone
		}
		var state string
		var parent, of int
		// PID (NAME) STATE PARENT GROUP, and the name may hold anything.
		if _, err := fmt.Sscan(string(stat[bytes.LastIndexByte(stat, ')')+1:]), &state, &parent, &of); err == nil && of == group && state != "Z" && state != "X" {
			return true
		}
	}
	return false
}
