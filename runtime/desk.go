package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
)

// Agent is a Model that asks for what it does meanwhile.
type Agent interface {
	Model
	// Work is Complete. What the agent asks for goes over the desk, which is its own until Work returns: nothing asks there
	// afterwards.
	Work(ctx context.Context, req *spec.ModelRequest, desk Desk) (*spec.ModelResponse, error)
}

// Desk is where an external agent's requests are judged during one prompt. It is safe for concurrent use, and says no to
// what it does not understand.
type Desk interface {
	// Permit judges whether the agent may do something itself: input is as PermissionInput has it.
	Permit(ctx context.Context, id string, input map[string]any) bool
	// Do judges a call of a tool that the agent was granted, and makes it.
	Do(ctx context.Context, tool string, input map[string]any) spec.ToolResult
	// Tell puts on record what the agent says of its own doing. It is believed by nobody.
	Tell(a spec.Activity)
}

// PermissionInput is what rules see of a request of an external agent. command and path are there where one was sent.
const PermissionInput = `{"type":"object","additionalProperties":false,"required":["title","kind","optionKinds"],"properties":{` +
	`"title":{"type":"string","maxLength":4096},` +
	`"kind":{"enum":["read","edit","delete","move","search","execute","think","fetch","other"]},` +
	`"optionKinds":{"type":"array","maxItems":16,"items":{"type":"string","maxLength":64}},` +
	`"command":{"type":"string","maxLength":65536},` +
	`"path":{"type":"string","maxLength":4096}}}`

// permission is the tool as which rules see such requests.
func permission(b *spec.Backend) spec.ToolInfo {
	return spec.ToolInfo{Name: spec.PermissionTool, Description: "What an external agent asks to be allowed.", InputSchema: spec.Schema(PermissionInput),
		Consequential: b.Consequential == nil || *b.Consequential}
}

// The bounds of one prompt. What is beyond them is refused, and not recorded.
const (
	maxPermits     = 4096     // requests that are judged
	maxPermitBytes = 64 << 20 // of their inputs together: the log holds them
	maxTold        = 1024     // things that an agent says it did
)

// desk judges what one external agent asks for during one prompt, one request after another.
type desk struct {
	g     *guard
	parts *agentParts
	e     *core.Effect
	turn  chan struct{} // holds one thing while a request is judged, so that the next one sees what became of it

	mu     sync.Mutex // guards what follows
	closed bool
	past   spec.Situation
	said   []core.Permit
	bytes  int
	told   int
}

func (g *guard) desk(parts *agentParts, e *core.Effect) *desk {
	return &desk{g: g, parts: parts, e: e, past: e.Call.Situation, turn: make(chan struct{}, 1)}
}

// at gives the agent with this desk before it.
func (d *desk) at(a Agent) Model { return atDesk{a, d} }

type atDesk struct {
	Agent
	desk *desk
}

func (a atDesk) Complete(ctx context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
	return a.Work(ctx, req, a.desk)
}

// close gives what was said. Nothing is judged any more.
func (d *desk) close() []core.Permit {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	return d.said
}

func (d *desk) Permit(ctx context.Context, id string, input map[string]any) bool {
	if !d.parts.agent.Backend.Asks() {
		return false
	}
	p, _, err := d.request(ctx, "", id, input)
	return err == nil && p.Judged.Allowed()
}

func (d *desk) Do(ctx context.Context, tool string, input map[string]any) spec.ToolResult {
	refused := func(format string, args ...any) spec.ToolResult {
		return spec.ToolResult{IsError: true, Text: fmt.Sprintf(format, args...)}
	}
	if tool == spec.PermissionTool || !d.parts.agent.Has(tool) {
		return refused("Tool %q is not granted to this agent.", tool)
	}
	p, n, err := d.request(ctx, tool, "", input)
	switch j := p.Judged; {
	case err != nil:
		return refused("Not run: %v.", err)
	case !j.Allowed():
		return refused("%s", j.Text)
	}
	res := d.g.act(ctx, d.parts, d.making(n, &p))
	if res.Tool == nil {
		return refused("Not run: %s.", res.Err.Message)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.said[n-1].Done = &core.Done{IsError: res.Tool.IsError, FilesRead: res.Tool.FilesRead}
	}
	return *res.Tool
}

var (
	errOver     = errors.New("the prompt is over")
	errMany     = fmt.Errorf("one prompt may ask for no more than %d things, of %d MiB together", maxPermits, maxPermitBytes>>20)
	errUnlogged = errors.New("it could not be put on record")
)

// request judges one request, asks whoever sits there where rules say so, and puts the answer on record before anybody
// gets it. n is its number, from 1. An error means that it was not judged.
func (d *desk) request(ctx context.Context, tool, id string, input map[string]any) (p core.Permit, n int, err error) {
	p.ToolName = tool
	arguments, err := json.Marshal(input)
	if err != nil {
		return p, 0, err
	}
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
	}
	if n, err = d.room(ctx, len(arguments)); err != nil {
		return p, 0, err
	}
	if p.ID = strings.ToValidUTF8(clip(id, 200), "\uFFFD"); tool != "" {
		p.ID = fmt.Sprintf("%s-%d", tool, n)
	}
	if d.g.reference != nil {
		p.ID = d.g.reference(p.ID)
	}
	p.Judged = d.g.judge(ctx, d.parts, d.judging(n, &p, string(arguments)))
	d.consult(ctx, n, &p)
	if tool == "" { // an agent that was told yes acts by itself
		d.g.use(d.id(n), nil)
	}
	if d.g.observe != nil && d.g.observe(d.event(n, &p), Observed{Observed: true, ToolName: p.Tool(), ToolCallID: p.ID, Permit: &p}, d.lasting(&p)) != nil {
		d.g.use(d.id(n), nil)
		return p, 0, errUnlogged
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.said, d.bytes, d.past = append(d.said, p), d.bytes+len(arguments), after(d.past, &p)
	return p, n, nil
}

// room gives the number of the next request, or why there is none.
func (d *desk) room(ctx context.Context, size int) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed || ctx.Err() != nil:
		return 0, errOver
	case len(d.said) == maxPermits || d.bytes+size > maxPermitBytes:
		return 0, errMany
	}
	return len(d.said) + 1, nil
}

// lasting says that what a request lets happen may change something, so that it must be on record whatever happens then.
func (d *desk) lasting(p *core.Permit) bool {
	tool := d.parts.tools[p.Tool()]
	return p.Judged.Allowed() && (tool == nil || !tool.ReadOnly)
}

// id is the effect of making the nth request's call, which is what people are asked about.
func (d *desk) id(n int) string { return fmt.Sprintf("%s/permit/%d", d.e.ID, n) }

func (d *desk) effect(kind core.Kind, n int, suffix string, c core.Call) *core.Effect {
	c.Role = d.e.Call.Role
	return &core.Effect{Kind: kind, ID: d.id(n) + suffix, TaskID: d.e.TaskID, AgentName: d.e.AgentName, Digest: c.InputDigest, Call: &c}
}

func (d *desk) judging(n int, p *core.Permit, arguments string) *core.Effect {
	return d.effect(core.Judge, n, "/judge", core.Call{ID: p.ID, Name: p.Tool(), Arguments: arguments, Situation: d.past})
}

func (d *desk) making(n int, p *core.Permit) *core.Effect {
	return d.effect(core.ToolCall, n, "", core.Call{ID: p.ID, Name: p.Tool(), Canonical: p.Judged.Canonical, InputDigest: p.Judged.InputDigest})
}

func (d *desk) asking(n int, p *core.Permit) *core.Effect {
	e := d.making(n, p)
	e.Kind, e.ID, e.Scope, e.Ask, e.At = core.Approval, e.ID+"/approval", spec.ScopeToolCall, core.AskOf(p.Judged), p.At
	return e
}

// Observed is what the log holds of something that an external agent does or asks for while its prompt is at work.
type Observed struct {
	Observed   bool           `json:"observed"`
	ToolName   string         `json:"toolName,omitempty"`
	ToolCallID string         `json:"toolCallId,omitempty"`
	Permit     *core.Permit   `json:"permit,omitempty"`
	Activity   *spec.Activity `json:"activity,omitempty"`
}

func (d *desk) event(n int, p *core.Permit) spec.Event {
	return spec.Event{Kind: spec.EventToolAsked, ID: d.id(n), TaskID: d.e.TaskID, AgentName: d.e.AgentName, Digest: p.Judged.InputDigest}
}

func (d *desk) Tell(a spec.Activity) {
	d.mu.Lock()
	over := d.closed || d.told == maxTold
	if !over {
		d.told++
	}
	n := d.told
	d.mu.Unlock()
	if over || d.g.observe == nil {
		return
	}
	_ = d.g.observe(spec.Event{Kind: spec.EventToolAsked, ID: fmt.Sprintf("%s/told/%d", d.e.ID, n), TaskID: d.e.TaskID, AgentName: d.e.AgentName},
		Observed{Observed: true, ToolCallID: a.ID, Activity: &a}, false) // that the log failed is the run's own error
}

// after is what came before the next request.
func after(s spec.Situation, p *core.Permit) spec.Situation {
	j := p.Judged
	if j.Refused == "" {
		action := spec.ActionDeny
		if j.Allowed() {
			action = spec.ActionAllow
		}
		s.History = append(s.History[:len(s.History):len(s.History)], spec.HistoryCall{ToolName: p.Tool(), Input: j.Canonical, Action: action})
	}
	if j.Allowed() {
		s.Marks = append(s.Marks[:len(s.Marks):len(s.Marks)], j.Marks...)
	}
	return s
}
