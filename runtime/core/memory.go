package core

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// memory is what the agents of a team have left for each other: under the name of who did, so that nobody writes in
// another's place.
type memory struct {
	agents []string // in the order in which they left something first
	kept   map[string][]memorized
	n      int      // of all that was left
	marks  []string // of all texts in it
}

type memorized struct{ key, text string }

// keep leaves what a task or a delegated run came to in the shared memory, if the team has one (reference behaviour S13 and
// DL6).
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
	r.memory.add(e.Agent, strings.TrimPrefix(e.Key, e.Agent+"/"), text)
	for _, m := range t.Marks {
		if !slices.Contains(r.memory.marks, m) {
			r.memory.marks = append(r.memory.marks, m)
		}
	}
}

// maxMemorized bounds each text of the memory, in runes.
const maxMemorized = 200

func (m *memory) add(agent, key, text string) {
	if m.kept == nil {
		m.kept = map[string][]memorized{}
	}
	if m.kept[agent] == nil {
		m.agents = append(m.agents, agent)
	}
	m.n++
	if all := []rune(text); len(all) > maxMemorized {
		text = string(all[:maxMemorized-3]) + "…"
	}
	m.kept[agent] = append(m.kept[agent], memorized{key, text})
}

// maxSummary bounds what a task is told of the memory, in bytes: a task may come after thousands of others.
const maxSummary = 64 << 10

// summary is what a task with memoryScope all is given beside: who left what (reference behaviour S11). Empty: nobody left anything.
func (m *memory) summary() string {
	var b strings.Builder
	told := 0
	for _, agent := range m.agents {
		if b.Len() >= maxSummary {
			break
		}
		fmt.Fprintf(&b, "\n\n### %s", agent)
		for _, e := range m.kept[agent] {
			if b.Len() >= maxSummary {
				break
			}
			fmt.Fprintf(&b, "\n- %s: %s", e.key, e.text)
			told++
		}
	}
	if told == 0 {
		return ""
	}
	if told < m.n {
		fmt.Fprintf(&b, "\n\n[...and %d more]", m.n-told)
	}
	return "\n\n## Shared Team Memory" + b.String()
}
