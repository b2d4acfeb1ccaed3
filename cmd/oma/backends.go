package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/external"
	"github.com/open-multi-agent/oma/runtime/process"
	"github.com/open-multi-agent/oma/spec"
)

// backend opens an external agent. Nothing is started before it is asked.
func (w *wiring) backend(a *spec.PlanAgent) (runtime.Model, io.Closer, error) {
	if err := w.startable(a); err != nil {
		return nil, nil, err
	}
	switch a.Backend.Kind {
	case spec.BackendProcess:
	case spec.BackendACP:
		return w.acp(a)
	default:
		return nil, nil, usage("agent %q: backend kind %q is not in this version", a.Name, a.Backend.Kind)
	}
	p, err := external.New(external.Options{Name: a.Name, Backend: *a.Backend, SystemPrompt: a.SystemPrompt, Dir: w.folder(a), Base: w.dir,
		Env: w.app.lookup, Credentials: w.credentials[a.Name], Redact: w.redactor.Text})
	if err != nil {
		return nil, nil, err
	}
	return asModel{p, a.Name}, p, nil
}

// startable finds out before anything runs whether an external agent could be started, and makes the folder that it works in,
// as a tool that writes would.
func (w *wiring) startable(a *spec.PlanAgent) error {
	if _, err := w.found(a); err != nil {
		return usage("agent %q cannot be started: %v", a.Name, err)
	}
	if err := os.MkdirAll(w.folder(a), 0o755); err != nil {
		return fmt.Errorf("the folder of agent %q cannot be made: %w", a.Name, err)
	}
	return nil
}

// program finds a program that the team names. A name without a slash is looked for in the PATH of whoever runs oma: which one
// it is must not be the team's to say.
func (w *wiring) program(name string) (string, error) {
	return process.Find(name, w.dir, process.Variable(process.Environment(w.app.lookup, nil), "PATH"))
}

// found looks for an external agent's program where it will be looked for when it is started.
func (w *wiring) found(a *spec.PlanAgent) (string, error) {
	return w.program(a.Backend.Command)
}

// asModel answers as a model does: what it wrote is its one answer. It reports no usage.
type asModel struct {
	*external.Process
	agent string
}

// Complete is runtime.Model.
func (p asModel) Complete(ctx context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
	reply, err := p.Prompt(ctx, wholePrompt(req))
	if failed, ok := errors.AsType[*external.Error](err); ok {
		return nil, &runtime.ProviderError{Info: failed.Info}
	}
	if err != nil {
		return nil, fmt.Errorf("agent %q: %w", p.agent, err)
	}
	return &spec.ModelResponse{Message: spec.Message{Text: reply.Text}, Finish: spec.FinishStop}, nil
}

// wholePrompt is everything that was said: each prompt starts a process, which knows nothing of the one before.
func wholePrompt(req *spec.ModelRequest) string {
	var all []string
	for _, m := range req.Messages {
		if m.Role == spec.RoleAssistant {
			m.Text = "## Your answer was\n\n" + m.Text
		}
		all = append(all, m.Text)
	}
	return strings.Join(all, "\n\n")
}

// lastPrompt is the newest text of a user: an external agent keeps its own conversation, or none.
func lastPrompt(req *spec.ModelRequest) string {
	for i := len(req.Messages) - 1; i >= 0; i-- {
		if m := req.Messages[i]; m.Role == spec.RoleUser {
			return m.Text
		}
	}
	return ""
}

// programs are the files of the team's folder that its own tools and external agents are made of, absolute: they must stay
// what was reviewed.
func (w *wiring) programs() []string {
	var paths []string
	add := func(words ...string) {
		for _, word := range words {
			if path, ok := w.programFile(word); ok {
				paths = append(paths, path)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.plan.CustomTools)) {
		add(w.plan.CustomTools[name].Command...)
	}
	for _, name := range slices.Sorted(maps.Keys(w.plan.MCPServers)) {
		if s := w.plan.MCPServers[name]; s.Command != "" {
			add(append([]string{s.Command}, s.Args...)...)
		}
	}
	for _, a := range w.plan.Agents {
		if a.Backend != nil {
			add(append([]string{a.Backend.Command}, a.Backend.Args...)...)
		}
	}
	return paths
}

// programFile gives the file that a word of a command names, absolute. One that is not there counts too, where the word
// has a slash or an ending: whoever writes it makes the program.
func (w *wiring) programFile(word string) (string, bool) {
	path := filepath.FromSlash(word)
	if !filepath.IsAbs(path) {
		path = filepath.Join(w.dir, path)
	}
	info, err := os.Stat(path)
	if err == nil {
		return path, info.Mode().IsRegular()
	}
	missing := strings.Contains(word, "/") || filepath.Ext(word) != ""
	return path, missing && !strings.ContainsAny(word, "{}\x00\n")
}
