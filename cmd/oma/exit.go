package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/loader"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/redact"
)

// exitError ends the program with a code. An empty message prints nothing: all has been said.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

// usage is a mistake in the command line. Nothing ran.
func usage(format string, args ...any) error {
	return &exitError{runtime.ExitUsage, fmt.Sprintf(format, args...)}
}

// badValue is how the flag library says that a value does not fit. What follows names functions of Go.
var badValue = regexp.MustCompile(`^invalid argument "(?:[^"\\]|\\.)*" for "(?:-\w, )?--([a-z-]+)" flag: `)

// flagError says in the words of a command line what is wrong with a flag.
func flagError(cmd *cobra.Command, err error) error {
	m := badValue.FindStringSubmatch(err.Error())
	if m == nil {
		return usage("%v", err)
	}
	switch kind := cmd.Flag(m[1]).Value.Type(); kind {
	case "int64":
		return usage("--%s wants a whole number, such as 60000", m[1])
	case "duration":
		return usage("--%s wants a length of time, such as 10s or 5m", m[1])
	case "bool":
		return usage("--%s wants no value, or true or false after =", m[1])
	}
	return usage("--%s: %s", m[1], strings.TrimPrefix(err.Error(), m[0]))
}

// meaning says what a code that a run ends with means.
func meaning(code int) string {
	switch code {
	case runtime.ExitFailed:
		return "a task failed"
	case runtime.ExitBroken:
		return "the program or the world broke"
	case runtime.ExitGovernance:
		return "governance is not satisfied"
	case runtime.ExitCeiling:
		return "a ceiling ended the run"
	case runtime.ExitSuspended:
		return "it waits for a person"
	case runtime.ExitDenied:
		return "a call was denied"
	case runtime.ExitRelease:
		return "a release requirement did not hold"
	case runtime.ExitInterrupted:
		return "interrupted"
	case runtime.ExitTerminated:
		return "terminated"
	}
	return "the run did not succeed"
}

// ended is the end of a command that has printed its own result.
func ended(code int) error {
	if code == runtime.ExitOK {
		return nil
	}
	return &exitError{code: code}
}

// exit prints what is left to say and gives the code. What nobody gave a code is the program's own failure.
func (a *app) exit(err error) int {
	code := runtime.ExitBroken
	var e *exitError
	switch {
	case err == nil:
		return runtime.ExitOK
	case errors.As(err, &e):
		code, err = e.code, e
	case errors.Is(err, runtime.ErrStale):
		code = runtime.ExitStale
	}
	if text := err.Error(); text != "" {
		a.say("%s", text)
	}
	return code
}

// say tells a person something on standard error, without anything in it that could act on a terminal.
func (a *app) say(format string, args ...any) {
	fmt.Fprintln(a.stderr, "oma: "+escape(fmt.Sprintf(format, args...)))
}

// problems prints diagnostics to standard error. It gives an error when they stop the work.
func (a *app) problems(ds spec.Diagnostics, strict bool) error {
	if err := loader.Render(a.stderr, masked(ds)); err != nil {
		return err
	}
	if ds.HasErrors(strict) {
		return &exitError{code: runtime.ExitUsage}
	}
	return nil
}

// masked puts stars for what looks like a secret in diagnostics: they quote the file.
func masked(ds spec.Diagnostics) spec.Diagnostics {
	out := slices.Clone(ds)
	for i := range out {
		d := &out[i]
		d.Message, d.Hint, d.Snippet = redact.Mask(d.Message), redact.Mask(d.Hint), maskedSnippet(d.Snippet)
	}
	return out
}

// maskedSnippet masks the lines of the file. Below each is the line with its caret.
func maskedSnippet(snippet string) string {
	lines := strings.Split(snippet, "\n")
	for i := 0; i < len(lines); i += 2 {
		if gutter, text, ok := strings.Cut(lines[i], " | "); ok {
			lines[i] = gutter + " | " + redact.MaskLine(text)
		}
	}
	return strings.Join(lines, "\n")
}
