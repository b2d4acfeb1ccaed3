package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/process"
	"github.com/open-multi-agent/oma/spec"
)

// Options say where one agent's tools work.
type Options struct {
	Dir string // the agent's folder, absolute
	// Create lets the first file_write or bash make Dir. Without it a missing Dir is an error of Open.
	Create bool
	// Contained keeps the file tools in Dir. False is containment: none.
	Contained bool
	// Protected are absolute files and folders that no file tool writes, existing or not. Everything named .git is
	// protected besides.
	Protected []string
	// Locks is shared by the agents of a run. nil: this agent has its own.
	Locks *Locks

	// Env looks up a variable for bash; only the allowed names are asked for. nil: none is set.
	Env func(name string) (value string, ok bool)
	// ShellPath is the bash to run, absolute. Empty: the first bash on Env's PATH, else in the usual places.
	ShellPath string
	// Executor says what is started for a command of bash. nil: bash itself. Whoever made it closes it, after the tools.
	Executor Executor
	// Redact is applied to all that bash gives. nil: nothing is redacted.
	Redact func(string) string
}

// Executor decides where bash runs. It is called for each command and safe for concurrent use.
type Executor interface {
	// Wrap gives the command that is started in place of one. An error means that it must not run. done is called once
	// the started one has ended, with how, or with the zero Outcome when it did not start.
	Wrap(process.Command) (started process.Command, done func(process.Outcome), err error)
}

// Open gives the granted tools, in the order of [Infos]. A name that is no built-in tool is an error. The closer ends
// what bash still runs and releases the folder; the tools refuse afterwards.
func Open(o Options, granted []string) ([]runtime.Tool, io.Closer, error) {
	infos := Infos()
	for _, name := range granted {
		if !slices.ContainsFunc(infos, func(i spec.ToolInfo) bool { return i.Name == name }) {
			return nil, nil, fmt.Errorf("%q is not a built-in tool", name)
		}
	}
	w, err := newWorkspace(o)
	if err != nil {
		return nil, nil, err
	}
	t := &toolbox{workspace: w, locks: o.Locks, shell: newShell(o), searchTime: searchTime}
	if t.locks == nil {
		t.locks = &Locks{}
	}
	var tools []runtime.Tool
	for _, info := range infos {
		if slices.Contains(granted, info.Name) {
			tools = append(tools, t.tool(info))
		}
	}
	return tools, t, nil
}

// toolbox is what the tools of one agent share.
type toolbox struct {
	*workspace
	locks *Locks
	shell *shell
	// searchTime is how long one search may take.
	searchTime time.Duration
}

// Close waits until no command runs any more.
func (t *toolbox) Close() error {
	return errors.Join(t.shell.commands.Close(), t.workspace.Close())
}

func (t *toolbox) tool(info spec.ToolInfo) runtime.Tool {
	tool := runtime.Tool{ToolInfo: info, Normalise: t.normalisePath}
	var call func(context.Context, arguments) spec.ToolResult
	switch info.Name {
	case FileRead:
		call = t.fileRead
	case FileWrite:
		tool.Normalise, call = t.normaliseWrite, t.fileWrite
	case FileEdit:
		tool.Normalise, call = t.normaliseWrite, t.fileEdit
	case Grep:
		call = t.grep
	case Glob:
		call = t.glob
	case Bash:
		tool.Normalise, call = t.normaliseCwd, t.bash
	}
	tool.Call = func(ctx context.Context, c runtime.Invocation) spec.ToolResult {
		if err := ctx.Err(); err != nil {
			return failed("Not run: %v.", err)
		}
		return call(ctx, c.Input)
	}
	return tool
}

func failed(format string, args ...any) spec.ToolResult {
	return spec.ToolResult{Text: fmt.Sprintf(format, args...), IsError: true}
}

func (t *toolbox) normalisePath(input map[string]any) error { return t.normalise(input, "path") }

func (t *toolbox) normaliseCwd(input map[string]any) error { return t.normalise(input, "cwd") }

// normalise puts the shown form in the place of a given path. Where links lead is found out when the call is made.
func (t *toolbox) normalise(input map[string]any, key string) error {
	given, ok := input[key].(string)
	if !ok {
		return nil
	}
	shown, err := t.shown(given)
	if err != nil {
		return err
	}
	input[key] = shown
	return nil
}

// normaliseWrite also refuses what must not be written, before any rule is asked. The call looks again.
func (t *toolbox) normaliseWrite(input map[string]any) error {
	if err := t.normalise(input, "path"); err != nil {
		return err
	}
	shown, _ := input["path"].(string)
	if err := t.open(false); err != nil {
		abs := filepath.FromSlash(shown)
		if !filepath.IsAbs(abs) {
			abs = filepath.Join(t.base, abs)
		}
		return t.writableName(abs, shown)
	}
	p, err := t.find(shown)
	switch {
	case errors.Is(err, ErrOutside):
		return err
	case err != nil:
		return nil // for the call to report
	}
	defer p.close()
	return t.writable(p)
}

// find locates a path in its shown form.
func (t *toolbox) find(shown string) (*place, error) {
	name, err := t.name(shown)
	if err != nil {
		return nil, err
	}
	return t.locate(name)
}
