package main

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/open-multi-agent/oma/policies/tools"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/acp"
	"github.com/open-multi-agent/oma/runtime/process"
	"github.com/open-multi-agent/oma/spec"
)

// acp opens an external agent that speaks the Agent Client Protocol. It is started with its first prompt.
func (w *wiring) acp(a *spec.PlanAgent) (runtime.Model, io.Closer, error) {
	declared, err := tools.Resolve(a.Backend.Env, w.credentials[a.Name])
	if err != nil {
		return nil, nil, err
	}
	env := process.Environment(w.app.lookup, declared)
	command, err := w.found(a)
	if err != nil {
		return nil, nil, usage("agent %q cannot be started: %v", a.Name, err)
	}
	g := &acpAgent{name: a.Name}
	g.Agent = acp.New(acp.Options{Name: a.Name, Command: append([]string{command}, a.Backend.Args...), Dir: w.folder(a), Env: env, SystemPrompt: a.SystemPrompt,
		Permission: a.Backend.Permission, Timeout: time.Duration(a.Backend.Timeout), Redact: w.redactor.Text, Permit: g.permit})
	return g, g.Agent, nil
}

// acpAgent answers as a model does. Its session goes on from prompt to prompt, one at a time.
type acpAgent struct {
	*acp.Agent
	name string

	turn sync.Mutex // one prompt at a time, so that a request is the newest prompt's
	mu   sync.Mutex
	desk func(ctx context.Context, id string, input map[string]any) bool // nil: no prompt is at work
}

// Complete is runtime.Model: nobody judges what it asks for, so it gets nothing.
func (g *acpAgent) Complete(ctx context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
	return g.Work(ctx, req, nil)
}

// Work is runtime.Agent.
func (g *acpAgent) Work(ctx context.Context, req *spec.ModelRequest, permit func(context.Context, string, map[string]any) bool) (*spec.ModelResponse, error) {
	g.turn.Lock()
	defer g.turn.Unlock()
	g.sit(permit)
	defer g.sit(nil)
	reply, err := g.Prompt(ctx, lastPrompt(req))
	resp := &spec.ModelResponse{Message: spec.Message{Text: reply.Output, Reasoning: reply.Thoughts}, Finish: spec.FinishStop, Usage: reply.Usage}
	for _, c := range reply.ToolCalls {
		resp.Activity = append(resp.Activity, spec.Activity(c))
	}
	failed, ok := errors.AsType[*acp.Error](err)
	switch {
	case err == nil:
		return resp, nil
	case ok && failed.Stop == spec.StopRefused:
		resp.Finish = spec.FinishRefused
		return resp, nil
	case ok && failed.Stop == spec.StopLength:
		resp.Finish = spec.FinishLength
		return resp, nil
	case ok:
		return nil, &runtime.ProviderError{Info: spec.ErrorInfo{Kind: kindOf(failed.Code), Code: "ACP_" + failed.Code, Message: failed.Message, Provider: g.name}, Usage: reply.Usage}
	}
	return nil, err
}

// kindOf is the kind of error that a code of the protocol is.
func kindOf(code string) string {
	switch code {
	case acp.CodeTimeout:
		return "timeout"
	case acp.CodeOptions:
		return "validation"
	}
	return "provider"
}

func (g *acpAgent) sit(permit func(context.Context, string, map[string]any) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.desk = permit
}

// permit puts what the agent asks for before the rules.
func (g *acpAgent) permit(ctx context.Context, p acp.Permission) acp.Answer {
	g.mu.Lock()
	desk := g.desk
	g.mu.Unlock()
	if desk == nil {
		return acp.Deny
	}
	options := make([]any, len(p.OptionKinds))
	for i, kind := range p.OptionKinds {
		options[i] = kind
	}
	input := map[string]any{"title": p.Title, "kind": p.Kind, "optionKinds": options}
	if p.Command != "" {
		input["command"] = p.Command
	}
	if p.Path != "" {
		input["path"] = p.Path
	}
	return acp.Answer(desk(ctx, p.CallID, input))
}
