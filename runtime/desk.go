package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// Agent is a Model that asks to be allowed what it does meanwhile with tools of its own.
type Agent interface {
	Model
	// Work is Complete. permit judges one request: input is as PermissionInput has it. It is safe for concurrent use, and
	// says no to what it does not understand.
	Work(ctx context.Context, req *spec.ModelRequest, permit func(ctx context.Context, id string, input map[string]any) bool) (*spec.ModelResponse, error)
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

// desk judges what one external agent asks for during one prompt, one request after another.
type desk struct {
	g     *guard
	parts *agentParts
	e     *core.Effect

	mu   sync.Mutex
	past spec.Situation
	said []core.Permit
}

func (g *guard) desk(parts *agentParts, e *core.Effect) *desk {
	return &desk{g: g, parts: parts, e: e, past: e.Call.Situation}
}

// at gives the agent with this desk before it.
func (d *desk) at(a Agent) Model { return atDesk{a, d} }

type atDesk struct {
	Agent
	desk *desk
}

func (a atDesk) Complete(ctx context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
	return a.Work(ctx, req, a.desk.permit)
}

func (d *desk) permit(ctx context.Context, id string, input map[string]any) bool {
	arguments, err := json.Marshal(input)
	if err != nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.said) == maxPermits {
		return false
	}
	id = strings.ToValidUTF8(clip(id, 200), "\uFFFD")
	e := d.effect(id, len(d.said)+1, string(arguments))
	j := d.g.judge(ctx, d.parts, e)
	d.g.use(strings.TrimSuffix(e.ID, "/judge"), nil) // the agent acts by itself
	if j.Waits() {                                   // what it waits with is its own process, which nobody can suspend
		j.GateAction, j.GateOutcome, j.Marks, j.Holds = spec.ActionDeny, "error", nil, false
		j.Reason = "a request of an external agent cannot wait for a person [cannot-suspend]"
	}
	d.said = append(d.said, core.Permit{ID: id, Judged: j})
	d.past = after(d.past, j)
	return j.Allowed()
}

// maxPermits is how many requests of one prompt are judged. Any more are refused, and not recorded.
const maxPermits = 4096

func (d *desk) effect(id string, n int, arguments string) *core.Effect {
	return &core.Effect{Kind: core.Judge, ID: fmt.Sprintf("%s/permit/%d/judge", d.e.ID, n), TaskID: d.e.TaskID, AgentName: d.e.AgentName,
		Call: &core.Call{ID: id, Name: spec.PermissionTool, Role: d.e.Call.Role, Arguments: arguments, Situation: d.past}}
}

// after is what came before the next request.
func after(s spec.Situation, j *core.Judged) spec.Situation {
	if j.Refused == "" {
		action := spec.ActionDeny
		if j.Allowed() {
			action = spec.ActionAllow
		}
		s.History = append(s.History[:len(s.History):len(s.History)], spec.HistoryCall{ToolName: spec.PermissionTool, Input: j.Canonical, Action: action})
	}
	if j.Allowed() {
		s.Marks = append(s.Marks[:len(s.Marks):len(s.Marks)], j.Marks...)
	}
	return s
}

// permitsAgain judges an external agent's requests once more.
func (g *guard) permitsAgain(e *core.Effect, permits []core.Permit) error {
	parts := g.agents[e.AgentName]
	if parts == nil || e.Call == nil {
		return fmt.Errorf("agent %q asks for nothing", e.AgentName)
	}
	d := g.desk(parts, e)
	for i, p := range permits {
		if p.Judged == nil {
			return fmt.Errorf("request %d was not judged", i+1)
		}
		j := *p.Judged
		if len(j.Canonical) > 0 {
			if c, err := canon.Canonical(j.Canonical); err == nil { // the log's encoder escapes what canon does not
				j.Canonical = c
			}
		}
		if failed := j.GateOutcome == "error" && j.GateAction == spec.ActionDeny; !failed { // it let nothing happen
			if err := g.judgedAgain(d.effect(p.ID, i+1, ""), &j); err != nil {
				return fmt.Errorf("request %d: %w", i+1, err)
			}
		}
		d.past = after(d.past, &j)
	}
	return nil
}
