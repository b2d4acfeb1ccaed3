package custom

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/open-multi-agent/oma/policies/tools"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/process"
	"github.com/open-multi-agent/oma/spec"
)

// Options say what the tools of one agent are and where they work.
type Options struct {
	// Tools are the granted ones, by name.
	Tools map[string]spec.CustomTool
	// Dir is the folder commands start in, absolute. Programs whose name has a slash are looked for below Base; empty: Dir.
	Dir, Base string
	// Env looks up a variable for commands; only names that every program needs are asked for. nil: none is set.
	Env func(name string) (value string, ok bool)
	// Credentials are the agent's, resolved, by name. A tool sees those it declares.
	Credentials map[string]string
	// Redact is applied to all text that a tool gives. nil: nothing is redacted.
	Redact func(string) string
	// Transport makes the requests. nil: one that goes straight to the origin and verifies TLS.
	Transport http.RoundTripper
}

const (
	defaultTimeout = 2 * time.Minute
	// grace is the time a command that must end has for it.
	grace = 2 * time.Second
	// maxAnswer is the most that is read of one answer, in bytes.
	maxAnswer = 8 << 20
	// maxRich is the same for output: rich.
	maxRich = maxAnswer + spec.MaxAttachmentBytes/3*4
)

// Open gives the tools, sorted by name. A tool that [tools.Check] refuses and a credential that is not there are errors.
// Nothing is started and nobody is asked before a call. The closer ends the commands that still run and lets go of idle
// connections; commands are refused afterwards.
func Open(o Options) ([]runtime.Tool, io.Closer, error) {
	s := &set{Options: o}
	if s.Redact == nil {
		s.Redact = func(text string) string { return text }
	}
	s.client = newClient(o.Transport)
	var list []runtime.Tool
	for _, name := range slices.Sorted(maps.Keys(o.Tools)) {
		declared := o.Tools[name]
		t, err := s.tool(name, &declared)
		if err != nil {
			return nil, nil, fmt.Errorf("tool %q: %w", name, err)
		}
		list = append(list, t)
	}
	return list, s, nil
}

// set is what the tools of one agent share.
type set struct {
	Options
	commands process.Runner
	client   *http.Client
}

// Close waits until no command runs any more.
func (s *set) Close() error {
	s.client.CloseIdleConnections()
	return s.commands.Close()
}

// tool is one declared tool.
type tool struct {
	*set
	name    string
	spec    *spec.CustomTool
	timeout time.Duration
}

func (s *set) tool(name string, declared *spec.CustomTool) (runtime.Tool, error) {
	for _, d := range tools.Check(declared) {
		if d.Severity == spec.Error {
			return runtime.Tool{}, fmt.Errorf("%s: %s", d.Path, d.Message)
		}
	}
	out := runtime.Tool{ToolInfo: tools.Info(name, declared)}
	if !declared.PassUndeclared {
		drop, err := tools.Undeclared(out.InputSchema)
		if err != nil {
			return runtime.Tool{}, err
		}
		out.Normalise = func(input map[string]any) error { drop(input); return nil }
	}
	t := &tool{set: s, name: name, spec: declared, timeout: cmp.Or(time.Duration(declared.Timeout), defaultTimeout)}
	var err error
	if declared.HTTP != nil {
		out.Call, err = t.request()
	} else {
		out.Call, err = t.command()
	}
	return out, err
}

// failed gives an error result. Whatever is in it is redacted.
func (t *tool) failed(format string, args ...any) spec.ToolResult {
	return spec.ToolResult{Text: t.clean(fmt.Sprintf("Tool %q failed: "+format, append([]any{t.name}, args...)...)), IsError: true}
}

// clean makes text fit to be shown.
func (t *tool) clean(text string) string { return t.Redact(strings.ToValidUTF8(text, "\uFFFD")) }

// stopped says in words that a context ended, the call's own or that with the tool's time limit in it.
func (t *tool) stopped(ctx context.Context) string {
	switch err := ctx.Err(); {
	case errors.Is(err, context.DeadlineExceeded):
		return "the time limit of the call was reached"
	case err != nil:
		return "the call was cancelled"
	}
	return fmt.Sprintf("it took longer than its time limit of %s", t.timeout)
}
