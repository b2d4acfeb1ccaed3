package core

import (
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// keep leaves what a task or a delegated run came to in the shared memory, if the team has one: under the name of who did
// it, so that nobody writes in another's place (reference behaviour S13 and DL6).
func (r *run) keep(f Flow, id string, e spec.MemoryEntry, t *task) {
	if r.plan.SharedMemory == nil {
		return
	}
	text := t.Text
	if r.in.Redact != nil {
		text = r.in.Redact(text)
	}
	e.Digest, e.Chars = canon.Digest("memory", []byte(text)), runes(text)
	r.clock(f.Do(&Effect{Kind: Memory, ID: id + "/memory", TaskID: t.Task.ID, AgentName: e.Agent, Entry: &e}))
}
