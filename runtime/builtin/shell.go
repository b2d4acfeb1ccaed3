package builtin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/open-multi-agent/oma/runtime/process"
	"github.com/open-multi-agent/oma/spec"
)

// Exit codes that are no program's own, as shells and timeout(1) use them.
const (
	exitTimeout   = 124
	exitNotRun    = 127
	exitCancelled = 130
)

const (
	defaultTimeout = 30 * time.Second
	// keepBytes is how much of the start and of the end of each stream is kept.
	keepBytes = 512 << 10
)

// shell runs commands for one agent. It is safe for concurrent use.
type shell struct {
	path     string // empty: search
	env      func(string) (string, bool)
	redact   func(string) string
	executor Executor // nil: commands are started as they are
	commands process.Runner
}

func newShell(o Options) *shell {
	s := &shell{path: o.ShellPath, env: o.Env, redact: o.Redact, executor: o.Executor}
	if s.env == nil {
		s.env = func(string) (string, bool) { return "", false }
	}
	if s.redact == nil {
		s.redact = func(text string) string { return text }
	}
	return s
}

// program finds bash. Relative entries of PATH are passed over: they would be looked up in a folder agents write.
func (s *shell) program() (string, error) {
	if s.path != "" {
		return s.path, nil
	}
	return FindBash(s.env)
}

// FindBash gives the bash that the tool runs: the first on env's PATH, else in the usual places.
func FindBash(env func(name string) (value string, ok bool)) (string, error) {
	search, _ := env("PATH")
	file, err := process.Find("bash", "", search, "/bin", "/usr/bin", "/usr/local/bin")
	if err != nil {
		return "", errors.New("bash was not found")
	}
	return file, nil
}

// outcome is how a command ended.
type outcome struct {
	stdout, stderr string
	code           int
	note           string // what the code alone does not say
}

func notRun(why error) outcome {
	return outcome{code: exitNotRun, stderr: fmt.Sprintf("Not run: %v.", why)}
}

func (t *toolbox) bash(ctx context.Context, in arguments) spec.ToolResult {
	dir, err := t.startFolder(in.text("cwd"))
	if err != nil {
		return t.shell.result(notRun(err))
	}
	timeout := time.Duration(in.number("timeout", int(defaultTimeout/time.Millisecond))) * time.Millisecond
	return t.shell.result(t.shell.run(ctx, in.text("command"), dir, timeout))
}

// run runs one command. One that must end is killed at once, with no request before.
func (s *shell) run(ctx context.Context, command, dir string, timeout time.Duration) outcome {
	if !process.Supported {
		return notRun(errors.New("bash works on Linux and macOS only"))
	}
	program, err := s.program()
	if err != nil {
		return notRun(err)
	}
	c := process.Command{Program: program, Args: []string{"-c", command}, Dir: dir, Env: process.Environment(s.env, nil)}
	done := func(process.Outcome) {}
	if s.executor != nil {
		if c, done, err = s.executor.Wrap(c); err != nil {
			return notRun(err)
		}
	}
	got, err := s.commands.Run(ctx, c, process.Limits{Timeout: timeout, Keep: keepBytes})
	done(got)
	long, isLong := errors.AsType[*process.TooLongError](err)
	switch {
	case errors.Is(err, process.ErrClosed):
		return notRun(err)
	case isLong: // bash has no other way in, so that the system's word is all there is to say
		return notRun(fmt.Errorf("bash did not start: %w", long.Unwrap()))
	case err != nil:
		return notRun(fmt.Errorf("bash did not start: %w", err))
	}
	o := outcome{stdout: got.Stdout.Text, stderr: got.Stderr.Text}
	o.code, o.note = ending(got, timeout)
	return o
}

// ending gives the exit code a command is said to have, and what the code does not say.
func ending(got process.Outcome, timeout time.Duration) (code int, note string) {
	switch got.Reason {
	case process.TimedOut:
		return exitTimeout, fmt.Sprintf("killed at its time limit of %d ms", timeout.Milliseconds())
	case process.Deadline:
		return exitTimeout, "killed at the time limit of the call"
	case process.Cancelled:
		return exitCancelled, "killed: the call was cancelled"
	case process.Closed:
		return exitCancelled, "killed: the run has ended"
	}
	switch {
	case got.Exit.Err != nil:
		return exitNotRun, got.Exit.Err.Error()
	case got.Exit.Signal != 0:
		return got.Exit.Code, got.Exit.String()
	}
	return got.Exit.Code, ""
}

// startFolder gives the absolute path of the folder a command starts in. It must lead to the very folder that the
// file tools hold.
func (t *toolbox) startFolder(shown string) (string, error) {
	if err := t.open(true); err != nil {
		return "", err
	}
	if t.contained {
		if err := sameFolder(t.top, t.base); err != nil {
			return "", fmt.Errorf("the working directory was moved: %w", err)
		}
	}
	if shown == "" {
		shown = "."
	}
	p, err := t.find(shown)
	if err != nil {
		return "", fmt.Errorf("%q: %w", shown, cause(err))
	}
	defer p.close()
	if p.info == nil || !p.info.IsDir() {
		return "", fmt.Errorf("%q is not a folder", shown)
	}
	if err := p.enter(); err != nil {
		return "", err
	}
	abs := t.absolute(p.name)
	if err := sameFolder(p.dir, abs); err != nil {
		return "", fmt.Errorf("%q was moved: %w", shown, err)
	}
	return abs, nil
}

// result puts the streams together for the model.
func (s *shell) result(o outcome) spec.ToolResult {
	text := o.stdout
	switch {
	case o.stdout == "":
		text = o.stderr
	case o.stderr != "":
		text = strings.TrimSuffix(o.stdout, "\n") + "\n--- stderr ---\n" + o.stderr
	}
	var notes []string
	if o.note != "" {
		notes = append(notes, "("+o.note+")")
	}
	switch {
	case text == "" && o.code == 0:
		text = "(command completed with no output)"
	case text == "" && o.note == "":
		text = fmt.Sprintf("(command exited with code %d, no output)", o.code)
	case o.code != 0:
		notes = append(notes, fmt.Sprintf("(exit code: %d)", o.code))
	}
	if len(notes) > 0 {
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		text += strings.Join(notes, "\n")
	}
	return spec.ToolResult{Text: s.redact(strings.ToValidUTF8(text, "\uFFFD")), IsError: o.code != 0}
}
