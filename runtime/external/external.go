package external

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/open-multi-agent/oma/policies/tools"
	"github.com/open-multi-agent/oma/runtime/process"
	"github.com/open-multi-agent/oma/spec"
)

// Options say what an agent's program is and where it works.
type Options struct {
	Name         string // the agent's
	Backend      spec.Backend
	SystemPrompt string // before each prompt; empty: there is none
	// Dir is the folder the program starts in, absolute. A command whose name has a slash is looked for below Base; empty:
	// Dir.
	Dir, Base string
	// Env looks up a variable; only names that every program needs are asked for. nil: none is set.
	Env func(name string) (value string, ok bool)
	// Credentials are the agent's, resolved, by name. The program sees those that the backend's env names.
	Credentials map[string]string
	// Redact is applied to messages and to what is shown of stderr, and not to answers. nil: nothing is redacted.
	Redact func(string) string
	// Grace is the time a program that must end has for it. 0: 5s.
	Grace time.Duration
}

const (
	defaultGrace = 5 * time.Second
	// maxAnswer is the longest answer, in bytes.
	maxAnswer = 16 << 20
	// keepStderr is how much of the start and of the end of stderr is kept, and maxMessage what of it fits into a message,
	// in runes.
	keepStderr = 16 << 10
	maxMessage = 1024
)

// Process is an agent's program. It is safe for concurrent use: each prompt has a process of its own.
type Process struct {
	o        Options
	env      []string
	path     string // where programs are looked for: the env of a team does not decide that
	commands process.Runner
}

// Reply is what a program answered. With an error it is what there was of an answer.
type Reply struct {
	Text    string // valid UTF-8
	Elapsed time.Duration
}

// Error is a prompt that got no answer.
type Error struct{ Info spec.ErrorInfo }

func (e *Error) Error() string { return e.Info.Message }

// New prepares a program and starts nothing.
func New(o Options) (*Process, error) {
	declared, err := tools.Resolve(o.Backend.Env, o.Credentials)
	switch {
	case err != nil:
		return nil, fmt.Errorf("process backend %q: env.%w", o.Name, err)
	case o.Backend.Kind != "process":
		return nil, fmt.Errorf("process backend %q: kind is %q, want process", o.Name, o.Backend.Kind)
	case !slices.Contains(inputs, o.Backend.Input):
		return nil, fmt.Errorf("process backend %q: input %q is not known: %s", o.Name, o.Backend.Input, spec.DidYouMean(o.Backend.Input, inputs[1:]))
	}
	if o.Base == "" {
		o.Base = o.Dir
	}
	if o.Redact == nil {
		o.Redact = func(text string) string { return text }
	}
	if o.Grace == 0 {
		o.Grace = defaultGrace
	}
	return &Process{o: o, env: process.Environment(o.Env, declared), path: process.Variable(process.Environment(o.Env, nil), "PATH")}, nil
}

var inputs = []string{"", "stdin", "argument", "none"}

// Close ends what still runs and waits for it. Prompts are refused afterwards.
func (p *Process) Close() error { return p.commands.Close() }

// Prompt starts the program, hands it the text below the system prompt, and waits for its answer. An error is an *[Error]. One
// that ended the program early comes with the part of the answer there was.
func (p *Process) Prompt(ctx context.Context, text string) (Reply, error) {
	command, limits, err := p.command(text)
	if err != nil {
		return Reply{}, err
	}
	start := time.Now()
	o, err := p.commands.Run(ctx, command, limits)
	if err != nil {
		return Reply{}, p.notStarted(err)
	}
	reply := Reply{Text: strings.ToValidUTF8(o.Stdout.Text, "\uFFFD"), Elapsed: time.Since(start)}
	switch {
	case o.Reason == process.Flooded:
		return Reply{Elapsed: reply.Elapsed}, p.fail("provider", false, "wrote more than %d bytes, which is the longest answer", maxAnswer)
	case o.Reason == process.TimedOut:
		return reply, p.fail("timeout", true, "did not end within its time limit of %s%s", p.o.Backend.Timeout, p.said(o.Stderr))
	case o.Reason == process.Deadline:
		return reply, p.fail("timeout", false, "did not end within the time limit of its agent%s", p.said(o.Stderr))
	case o.Reason != process.Exited:
		return reply, p.fail("cancellation", false, "was cancelled")
	case !o.Exit.OK():
		return reply, p.fail("provider", true, "%s%s", o.Exit, p.said(o.Stderr))
	}
	return reply, nil
}

func (p *Process) command(text string) (process.Command, process.Limits, error) {
	b := &p.o.Backend
	limits := process.Limits{Timeout: time.Duration(b.Timeout), Grace: p.o.Grace, Keep: keepStderr, MaxStdout: maxAnswer}
	program, err := process.Find(b.Command, p.o.Base, p.path)
	if err != nil {
		return process.Command{}, limits, p.fail("validation", false, "cannot be started: %v", err)
	}
	c := process.Command{Program: program, Args: slices.Clone(b.Args), Dir: p.o.Dir, Env: p.env}
	if b.Input == "none" {
		return c, limits, nil
	}
	prompt := joined(p.o.SystemPrompt, text)
	switch {
	case prompt == "":
		return c, limits, p.fail("validation", false, "received an empty prompt")
	case b.Input == "argument":
		c.Args = append(c.Args, prompt)
	default:
		limits.Input = []byte(prompt)
	}
	return c, limits, nil
}

// joined puts a blank line between the system prompt and the prompt.
func joined(system, prompt string) string {
	return strings.TrimSpace(strings.TrimSpace(system) + "\n\n" + strings.TrimSpace(prompt))
}

// notStarted explains a process that did not start. Too long a prompt does not get shorter when it is tried again.
func (p *Process) notStarted(err error) error {
	if errors.Is(err, process.ErrClosed) {
		return p.fail("cancellation", false, "was not started: %v", err)
	}
	if long, ok := errors.AsType[*process.TooLongError](err); ok {
		return p.fail("validation", false, "cannot be started: %v (input: stdin)", long)
	}
	return p.fail("provider", false, "cannot be started: %v", err)
}

func (p *Process) fail(kind string, retryable bool, format string, args ...any) *Error {
	message := fmt.Sprintf("process backend %q ", p.o.Name) + fmt.Sprintf(format, args...)
	return &Error{spec.ErrorInfo{Kind: kind, Message: clip(p.o.Redact(message)), Retryable: retryable}}
}

// said gives the end of stderr, redacted before it is cut: half a secret is not recognised.
func (p *Process) said(stderr process.Output) string {
	text := []rune(strings.TrimSpace(p.o.Redact(strings.ToValidUTF8(stderr.Text, "\uFFFD"))))
	if len(text) == 0 {
		return ""
	}
	const room = maxMessage - 256 // for what stands before it
	if len(text) > room {
		return ": …" + string(text[len(text)-room:])
	}
	return ": " + string(text)
}

func clip(s string) string {
	if r := []rune(s); len(r) > maxMessage {
		return string(r[:maxMessage-1]) + "…"
	}
	return s
}
