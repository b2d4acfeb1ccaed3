//go:build unix

package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// nonblock keeps an open of a named pipe from waiting for a writer.
const nonblock = syscall.O_NONBLOCK

// run runs one command to its end, its time limit or the end of ctx, whichever is first. The pipes are ours rather
// than those of package exec: a process that the command left behind must not hold the call.
func (s *shell) run(ctx context.Context, command, dir string, timeout time.Duration) outcome {
	program, err := s.program()
	if err != nil {
		return outcome{code: exitNotRun, stderr: "Not run: " + err.Error() + "."}
	}
	cmd := exec.Command(program, "-c", command)
	cmd.Dir, cmd.Env = dir, s.environment()
	cmd.SysProcAttr = processAttr()
	stdout, stderr, ended, err := start(cmd)
	if err != nil {
		return outcome{code: exitNotRun, stderr: fmt.Sprintf("Not run: bash did not start: %v.", err)}
	}
	limit := time.NewTimer(timeout)
	defer limit.Stop()

	var o outcome
	var killed bool
	select {
	case err = <-ended:
		o.code, o.note = exitOf(err)
	case <-limit.C:
		killed, o.code, o.note = true, exitTimeout, fmt.Sprintf("killed at its time limit of %d ms", timeout.Milliseconds())
	case <-ctx.Done():
		killed, o.code, o.note = true, exitCancelled, "killed: the call was cancelled"
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			o.code, o.note = exitTimeout, "killed at the time limit of the call"
		}
	case <-s.over:
		killed, o.code, o.note = true, exitCancelled, "killed: the run has ended"
	}
	// The whole group: also what a command that ended well left in the background. While a member lives, the group's
	// number is taken, so this hits nobody else.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if killed {
		<-ended
	}
	until := time.Now().Add(drain)
	o.stdout, o.stderr = stdout.text(until), stderr.text(until)
	return o
}

// start starts the command with both streams collected. ended gets what Wait gives.
func start(cmd *exec.Cmd) (stdout, stderr *stream, ended <-chan error, err error) {
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	errRead, errWrite, err := os.Pipe()
	if err != nil {
		outRead.Close()
		outWrite.Close()
		return nil, nil, nil, err
	}
	cmd.Stdout, cmd.Stderr = outWrite, errWrite
	ended, err = startAndWait(cmd)
	outWrite.Close()
	errWrite.Close()
	if err != nil {
		outRead.Close()
		errRead.Close()
		return nil, nil, nil, cause(err)
	}
	return collect(outRead), collect(errRead), ended, nil
}

// startAndWait keeps one thread for the command from its start to its end: Linux kills the command when the thread that
// started it ends, which a thread of Go may do at any time once it is free for others.
func startAndWait(cmd *exec.Cmd) (<-chan error, error) {
	started, ended := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	return ended, <-started
}

// stream reads one pipe all the time, so that the command never waits for us.
type stream struct {
	pipe *os.File
	kept clipped
	done chan struct{}
}

func collect(pipe *os.File) *stream {
	s := &stream{pipe: pipe, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		_, _ = io.Copy(&s.kept, pipe) // ends at the end of the pipe or at the deadline
	}()
	return s
}

// text waits for the end of the stream, at most until then, and gives what was kept.
func (s *stream) text(until time.Time) string {
	_ = s.pipe.SetReadDeadline(until)
	<-s.done
	s.pipe.Close()
	return s.kept.String()
}

// exitOf tells an exit from a death by signal.
func exitOf(err error) (code int, note string) {
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return 0, ""
	case !ok:
		return exitNotRun, err.Error()
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal()), fmt.Sprintf("died of signal %d, %s", status.Signal(), status.Signal())
	}
	return exit.ExitCode(), ""
}
