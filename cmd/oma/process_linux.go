package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/open-multi-agent/oma/spec"
)

// closeProcess keeps other processes of the same user from reading this one's memory and environment, where the keys
// are. It does nothing against root.
func closeProcess() bool { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) == nil }

// discardTyped drops what was typed at the terminal on standard input and not read yet.
func discardTyped() { unix.IoctlSetInt(int(os.Stdin.Fd()), unix.TCFLSH, unix.TCIFLUSH) } // it fails on what is no terminal

// environmentFD names the file that holds the environment after the program has started itself again without one.
const environmentFD = "OMA_ENVIRONMENT_FD"

// kept are the variables the Go runtime and its libraries read by themselves.
var kept = []string{"PATH", "HOME", "TMPDIR", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "GODEBUG", "GOGC", "GOMAXPROCS", "GOMEMLIMIT", "GOCOVERDIR"}

// hideSecrets makes the environment unreadable to the commands of agents. A process of root reads
// /proc/PID/environ of any other, and that is the environment a program was started with, whatever it unsets later. So
// the program starts itself again, once, with the environment in a file that is read and closed before any agent works.
func (a *app) hideSecrets(w *wiring) error {
	if unix.Geteuid() != 0 || !a.signals || a.environment != nil || !w.starts() {
		return nil
	}
	env, err := json.Marshal(os.Environ())
	if err != nil {
		return err
	}
	fd, err := memoryFile("environment", env)
	if err == nil && !holdsEnvironment(fd) { // the new start would not know it either, and start again
		err = errors.New("/proc does not show this process")
	}
	if err != nil {
		return fmt.Errorf("the environment cannot be hidden from commands: %w", err)
	}
	if a.input != nil { // standard input was read: the new start reads it again
		in, err := memoryFile("stdin", a.input)
		if err == nil {
			err = unix.Dup2(in, 0)
		}
		if err != nil {
			return fmt.Errorf("standard input cannot be handed on: %w", err)
		}
	}
	clean := []string{environmentFD + "=" + strconv.Itoa(fd)}
	for _, name := range kept {
		if v, ok := os.LookupEnv(name); ok {
			clean = append(clean, name+"="+v)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return unix.Exec(self, os.Args, clean)
}

// memoryFile gives a file that lives as long as somebody holds it open, across a new start.
func memoryFile(name string, data []byte) (int, error) {
	fd, err := unix.MemfdCreate("oma-"+name, 0)
	if err != nil {
		return 0, err
	}
	for len(data) > 0 {
		n, err := unix.Write(fd, data)
		if err != nil {
			return 0, err
		}
		data = data[n:]
	}
	_, err = unix.Seek(fd, 0, io.SeekStart)
	return fd, err
}

// hiddenEnvironment reads the environment that hideSecrets put away. nil: the program was started in the usual way.
// Whoever starts it can set the variable: it counts only beside what hideSecrets leaves, and only for a file of its kind.
// Any other file is not touched.
func hiddenEnvironment(environ []string) map[string]string {
	fd := -1
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if name == environmentFD {
			if n, err := strconv.Atoi(value); err == nil {
				fd = n
			}
		} else if !slices.Contains(kept, name) {
			return nil
		}
	}
	if fd < 0 || !holdsEnvironment(fd) {
		return nil
	}
	f := os.NewFile(uintptr(fd), "environment")
	defer f.Close()
	var list []string
	if json.NewDecoder(f).Decode(&list) != nil {
		return nil
	}
	env := map[string]string{}
	for _, kv := range list {
		if k, v, ok := strings.Cut(kv, "="); ok {
			env[k] = v
		}
	}
	return env
}

// holdsEnvironment says whether a descriptor is a file that memoryFile made for the environment. No file of a file system
// has seals and that name.
func holdsEnvironment(fd int) bool {
	name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil || !strings.HasPrefix(name, "/memfd:oma-environment") {
		return false
	}
	_, err = unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	return err == nil
}

// closedHere says what this machine adds to the plan's row about secrets. With bash the control is never enforced:
// the processes that started this one may hold the same keys, and their environment is not this program's to close.
func (s *execution) closedHere(c spec.Control) spec.Control {
	if c.Control != "secrets" || c.Level != spec.Observed {
		return c
	}
	switch {
	case unix.Geteuid() != 0 && s.closed:
		c.Mechanism = "the program's memory and environment are closed to the user's other processes; those of its parents are not"
	case s.environment != nil:
		c.Mechanism = "as root: the keys are not in the program's environment; its memory, and what started it, are open to root"
	}
	return c
}
