package core

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// What a compacted conversation keeps as it is: the last turns, short texts, errors, and calls with their ids.
const (
	keptTurns   = 4
	longResult  = 200  // runes from which an old result becomes a note
	longAnswer  = 2000 // runes from which an old answer is cut
	keptOfThose = 200  // of its runes
)

// fit makes the conversation smaller before a turn, as the agent's context strategy says. A call and its results stay together.
func (w *worker) fit() {
	s := w.agent.ContextStrategy
	switch {
	case s == nil:
	case s.Type == spec.ContextSlidingWindow:
		w.slide(s.MaxTurns)
	case s.Type == spec.ContextCompact && w.bytes/3 > s.MaxTokens:
		w.compact()
	}
}

// slide keeps what the task began with and the last turns. It looks at no more than it keeps, and one turn.
func (w *worker) slide(turns int) {
	if len(w.starts) <= turns {
		return
	}
	late := w.starts[len(w.starts)-turns:]
	from, to := w.starts[0], late[0]
	for i := from; i < to; i++ {
		w.bytes -= size(&w.messages[i])
	}
	w.messages = slices.Concat(w.messages[:from], w.messages[to:])
	w.starts = slices.Clone(late)
	for i := range w.starts {
		w.starts[i] -= to - from
	}
	w.fresh = max(w.fresh-(to-from), 0)
	w.digest = canon.Chain(w.digest, fmt.Appendf(nil, "without %d", to-from))
}

// compact shortens what is older than the last turns. It looks at each message once.
func (w *worker) compact() {
	if len(w.starts) <= keptTurns {
		return
	}
	end := w.starts[len(w.starts)-keptTurns]
	for i := max(w.short, w.starts[0]); i < end; i++ {
		m := &w.messages[i]
		before := size(m)
		if shorten(m) {
			w.bytes -= before - size(m)
			w.digest = canon.Chain(w.digest, fmt.Appendf(nil, "compacted %d", i))
		}
	}
	w.short = max(w.short, end)
}

// shorten makes one message shorter, if that may be. What a delegate answered stays (DL7).
func shorten(m *spec.Message) bool {
	n := utf8.RuneCountInString(m.Text)
	switch {
	case m.Role == spec.RoleTool && !m.IsError && m.ToolName != spec.DelegateTool && (n >= longResult || len(m.Attachments) > 0):
		m.Text, m.Attachments = fmt.Sprintf("[Tool result: %s, %d characters, compacted]", m.ToolName, n), nil
	case m.Role == spec.RoleAssistant && n >= longAnswer:
		m.Text = fmt.Sprintf("%s\n[...%d more characters, compacted]", string([]rune(m.Text)[:keptOfThose]), n-keptOfThose)
	default:
		return false
	}
	return true
}
