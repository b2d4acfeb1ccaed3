package main

import (
	"cmp"
	"strings"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

// event tells what an external agent does or asks for during its prompt: a line for each thing that it did, and for each that
// it was refused.
func (p *progress) event(e *spec.Event) {
	if p.quiet {
		return
	}
	o := runtime.ObservedIn(e)
	if o == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tasks[e.TaskID]
	if t == nil {
		return
	}
	p.now = max(p.now, e.At)
	switch {
	case o.Activity != nil:
		p.said(t, e.AgentName, o.Activity)
	case o.Permit == nil || o.Permit.Judged == nil:
	case o.Permit.Judged.Allowed():
		t.tool = o.Permit.Tool()
	default:
		t.denied++
		p.line("%s: denied %s: %s", e.AgentName, o.Permit.Tool(), firstLine(cmp.Or(o.Permit.Judged.Text, o.Permit.Judged.Reason)))
	}
	p.redraw()
}

// said tells what an agent says it does: one line when it begins, and one if it fails.
func (p *progress) said(t *taskProgress, agent string, a *spec.Activity) {
	what := cutTo(strings.TrimSpace(a.Kind+" "+firstLine(a.Title)), 200)
	switch a.Status {
	case "completed":
	case "failed":
		p.line("%s: says that it failed: %s", agent, what)
	default:
		t.tool = what
		p.line("%s: says: %s", agent, what)
	}
}
