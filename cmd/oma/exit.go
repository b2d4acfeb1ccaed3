package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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
