package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
		Permission: a.Backend.Permission, Capabilities: a.Backend.Capabilities, Timeout: time.Duration(a.Backend.Timeout), Redact: w.redactor.Text,
		Permit: g.permit, Door: g.do, Update: g.update})
	return g, g.Agent, nil
}

// acpAgent answers as a model does. Its session goes on from prompt to prompt, one at a time.
type acpAgent struct {
	*acp.Agent
	name string

	turn sync.Mutex // one prompt at a time, so that a request is the newest prompt's
	mu   sync.Mutex
	desk runtime.Desk    // nil: no prompt is at work
	told map[string]bool // calls of the agent's own that were told, and how they ended
}

// Complete is runtime.Model: nobody judges what it asks for, so it gets nothing.
func (g *acpAgent) Complete(ctx context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
	return g.Work(ctx, req, nil)
}

// Work is runtime.Agent.
func (g *acpAgent) Work(ctx context.Context, req *spec.ModelRequest, desk runtime.Desk) (*spec.ModelResponse, error) {
	g.turn.Lock()
	defer g.turn.Unlock()
	g.sit(desk)
	defer g.sit(nil)
	reply, err := g.Prompt(ctx, lastPrompt(req))
	resp := &spec.ModelResponse{Message: spec.Message{Text: reply.Output, Reasoning: reply.Thoughts}, Finish: spec.FinishStop, Usage: reply.Usage, Cost: reply.Cost}
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
		return nil, &runtime.ProviderError{Info: spec.ErrorInfo{Kind: kindOf(failed.Code), Code: "ACP_" + failed.Code, Message: failed.Message, Provider: g.name}, Usage: reply.Usage, Cost: reply.Cost}
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

func (g *acpAgent) sit(desk runtime.Desk) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.desk, g.told = desk, map[string]bool{}
}

func (g *acpAgent) at() runtime.Desk {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.desk
}

// permit puts what the agent asks for before the rules.
func (g *acpAgent) permit(ctx context.Context, p acp.Permission) acp.Answer {
	desk := g.at()
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
	return acp.Answer(desk.Permit(ctx, p.CallID, input))
}

// do has a tool used for the agent, through the door.
func (g *acpAgent) do(ctx context.Context, tool string, input map[string]any) spec.ToolResult {
	desk := g.at()
	if desk == nil {
		return spec.ToolResult{IsError: true, Text: "Not run: no prompt is at work."}
	}
	return desk.Do(ctx, tool, input)
}

// update passes on each call of the agent's own once when it begins and once when it has ended, and how far its plan is. What
// it says meanwhile, and the text of its answer, piece by piece, is nothing that happened.
func (g *acpAgent) update(u acp.Update) {
	desk := g.at()
	if desk == nil {
		return
	}
	var a spec.Activity
	switch {
	case u.Kind == "plan":
		a = progressOf(u.Raw)
	case u.Call != nil:
		a = spec.Activity(*u.Call)
		a.Input, a.Output = "", "" // they are in the answer to the prompt
	default:
		return
	}
	state := a.ID + " began"
	if a.ID == "" || a.Status == "completed" || a.Status == "failed" {
		state = a.ID + " " + a.Status + " " + a.Title
	}
	if g.told[state] {
		return
	}
	g.told[state] = true
	desk.Tell(a)
}

// progressOf says in a few words how far an agent's plan is.
func progressOf(raw json.RawMessage) spec.Activity {
	var p struct {
		Entries []struct {
			Content string `json:"content"`
			Status  string `json:"status"`
		} `json:"entries"`
	}
	_ = json.Unmarshal(raw, &p) // of what is not understood nothing is told but that it came
	done, now := 0, ""
	for _, e := range p.Entries {
		switch e.Status {
		case "completed":
			done++
		case "in_progress":
			now = cmp.Or(now, ": "+firstLine(e.Content))
		}
	}
	return spec.Activity{Kind: "plan", Title: fmt.Sprintf("%d of %d done%s", done, len(p.Entries), cutTo(now, 200))}
}
