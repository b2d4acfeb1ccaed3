//go:build unix

package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Supported says that child processes work on this system.
const Supported = true

// child is a started process with its group.
type child struct {
	pid  int
	done chan struct{} // closed when it has ended and its group was killed
	exit Exit          // after done

	mu    sync.Mutex
	until time.Time // what is left of a group may live so long after its leader; zero: not at all
	gone  bool      // the group was killed: its number may be another's
}

// pipes are a child with our ends of its pipes.
type pipes struct {
	*child
	stdin          *os.File // nil: there is none
	stdout, stderr *os.File
}

// open starts a child with pipes of our own rather than those of package exec: a process that it left behind must not
// hold us.
func open(c *Command, input bool) (*pipes, error) {
	var p pipes
	var theirs [3]*os.File
	var err error
	for i, ours := range [...]**os.File{&p.stdin, &p.stdout, &p.stderr} {
		switch {
		case err != nil || i == 0 && !input:
		case i == 0:
			theirs[i], *ours, err = os.Pipe()
		default:
			*ours, theirs[i], err = os.Pipe()
		}
	}
	if err == nil {
		p.child, err = start(c, theirs)
	}
	for _, f := range theirs {
		f.Close() // of nil, it does nothing
	}
	if err != nil {
		p.stdin.Close()
		p.stdout.Close()
		p.stderr.Close()
		return nil, err
	}
	return &p, nil
}

// start keeps one thread for the child from its start to its end: Linux kills the child when the thread that started it
// ends, which a thread of Go may do at any time once it is free for others.
func start(c *Command, files [3]*os.File) (*child, error) {
	cmd := &exec.Cmd{Path: c.Program, Args: append([]string{c.Program}, c.Args...), Dir: c.Dir, Env: append([]string{}, c.Env...),
		Stdout: files[1], Stderr: files[2], SysProcAttr: attributes()}
	if files[0] != nil {
		cmd.Stdin = files[0]
	}
	ch := &child{done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err != nil {
			started <- err
			return
		}
		ch.pid = cmd.Process.Pid
		started <- nil
		ch.exit = exitOf(cmd.Wait())
		ch.sweep()
		close(ch.done)
	}()
	if err := <-started; err != nil {
		return nil, explain(c, cause(err))
	}
	return ch, nil
}

// explain says more of an error of the system where it can.
func explain(c *Command, err error) error {
	switch {
	case errors.Is(err, syscall.E2BIG):
		return tooLong(c, err)
	case errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR):
		if info, statErr := os.Stat(c.Dir); c.Dir != "" && (statErr != nil || !info.IsDir()) {
			return fmt.Errorf("there is no folder %q to start in", c.Dir)
		}
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%w: a script needs a first line such as #!/bin/sh", err)
	}
	return err
}

// sweep kills what is left of the group: also what a command that ended well left in the background. While a member
// lives, the group's number is taken, so this hits nobody else.
func (c *child) sweep() {
	for c.spared() && syscall.Kill(-c.pid, 0) == nil && membersLive(c.pid) {
		time.Sleep(sweepPause)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = syscall.Kill(-c.pid, syscall.SIGKILL)
	c.gone = true
}

// sweepPause is how often one looks whether a group that was asked to end has done so.
const sweepPause = 10 * time.Millisecond

func (c *child) spared() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Before(c.until)
}

// end asks the group to end, kills it after the grace, and waits for that.
func (c *child) end(grace time.Duration) {
	if grace > 0 {
		c.ask(time.Now().Add(grace))
		t := time.NewTimer(grace)
		defer t.Stop()
		select {
		case <-c.done:
		case <-t.C:
		}
	}
	c.kill()
	<-c.done
}

func (c *child) ask(until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.gone {
		c.until = until
		_ = syscall.Kill(-c.pid, syscall.SIGTERM)
	}
}

func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until = (time.Time{}); !c.gone {
		_ = syscall.Kill(-c.pid, syscall.SIGKILL)
	}
}

// exitOf tells an exit from a death by signal.
func exitOf(err error) Exit {
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return Exit{}
	case !ok:
		return Exit{Code: -1, Err: err}
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return Exit{Code: 128 + int(status.Signal()), Signal: int(status.Signal()), signal: status.Signal().String()}
	}
	return Exit{Code: exit.ExitCode()}
}
