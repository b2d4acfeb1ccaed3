package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

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
	// drain is how long output is still read after the command ended and its group was killed: only a process that
	// left the group can hold the pipe by then.
	drain = 500 * time.Millisecond
	// keepBytes is how much of the start and of the end of each stream is kept.
	keepBytes = 512 << 10
)

// shell runs commands for one agent. It is safe for concurrent use.
type shell struct {
	path   string // empty: search
	env    func(string) (string, bool)
	redact func(string) string

	mu      sync.Mutex
	closed  bool
	over    chan struct{} // closed with the shell
	running sync.WaitGroup
}

func newShell(o Options) *shell {
	s := &shell{path: o.ShellPath, env: o.Env, redact: o.Redact, over: make(chan struct{})}
	if s.env == nil {
		s.env = func(string) (string, bool) { return "", false }
	}
	if s.redact == nil {
		s.redact = func(text string) string { return text }
	}
	return s
}

// close kills what still runs and waits for it.
func (s *shell) close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.over)
	}
	s.mu.Unlock()
	s.running.Wait()
}

// enter counts a command in, unless the shell is closed.
func (s *shell) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.New("the run has ended")
	}
	s.running.Add(1)
	return nil
}

// environment is what a command gets: the variables that programs need to work at all, and no key of any kind.
func (s *shell) environment() []string {
	env := []string{}
	for _, name := range [...]string{"HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TEMP", "TERM", "TMP", "TMPDIR", "USER"} {
		if v, ok := s.env(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
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
	for _, dir := range append(filepath.SplitList(search), "/bin", "/usr/bin", "/usr/local/bin") {
		file := filepath.Join(dir, "bash")
		if info, err := os.Stat(file); err == nil && filepath.IsAbs(file) && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", errors.New("bash was not found")
}

// outcome is how a command ended.
type outcome struct {
	stdout, stderr string
	code           int
	note           string // what the code alone does not say
}

func (t *toolbox) bash(ctx context.Context, in arguments) spec.ToolResult {
	dir, err := t.startFolder(in.text("cwd"))
	if err != nil {
		return t.shell.result(outcome{code: exitNotRun, stderr: "Not run: " + err.Error() + "."})
	}
	if err := t.shell.enter(); err != nil {
		return t.shell.result(outcome{code: exitNotRun, stderr: "Not run: " + err.Error() + "."})
	}
	defer t.shell.running.Done()
	timeout := time.Duration(in.number("timeout", int(defaultTimeout/time.Millisecond))) * time.Millisecond
	return t.shell.result(t.shell.run(ctx, in.text("command"), dir, timeout))
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
