package core

import (
	"fmt"
	"strings"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// repeats counts what a model says again, turn after turn: the same calls with the same arguments, or the same words beside
// them. A turn that says something else ends the count.
type repeats struct {
	calls, words string
	ofCalls      int // in a row
	ofWords      int
	warned       bool
}

// see counts one answer that asks for calls, and gives how often it has been said in a row.
func (r *repeats) see(m *spec.Message) int {
	calls, words := signature(m.ToolCalls), strings.Join(strings.Fields(m.Text), " ")
	r.ofCalls, r.ofWords = r.ofCalls+1, r.ofWords+1
	if calls != r.calls {
		r.calls, r.ofCalls = calls, 1
	}
	if words != r.words || words == "" {
		r.words, r.ofWords = words, 1
	}
	return max(r.ofCalls, r.ofWords)
}

// signature is the same for the same calls, however their arguments are written.
func signature(calls []spec.ToolCall) string {
	var b strings.Builder
	for _, c := range calls {
		arguments := c.Arguments
		if v, err := canon.Arguments(arguments); err == nil {
			if raw, err := canon.Bytes(v); err == nil {
				arguments = string(raw)
			}
		}
		fmt.Fprintf(&b, "%q %q\n", c.Name, arguments)
	}
	return canon.Digest("calls", []byte(b.String())) // arguments may be long, and only whether they are the same counts
}

// looping looks whether an answer goes round in a circle. ends: the task has ended, and none of its calls was made. warning is
// what the model is told behind their results.
func (w *worker) looping(m *spec.Message) (warning string, ends bool) {
	d := w.agent.LoopDetection
	if d == nil {
		return "", false
	}
	n := w.said.see(m)
	if n < d.MaxRepetitions {
		w.said.warned = w.said.warned && n > 1 // who says something else has recovered
		return "", false
	}
	if d.Action == spec.LoopTerminate || w.said.warned {
		w.refuseAll(m.ToolCalls, "loop", "not run: the same was asked for too often")
		return "", w.end(spec.StopLoop, fmt.Sprintf("it said the same %d times in a row", n))
	}
	w.said.warned = true
	return fmt.Sprintf("You have now said the same %d times in a row, and got the same. Do something else, or give your final answer.", n), false
}
