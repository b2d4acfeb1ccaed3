package core_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
)

// shown tells a request in a line: who said what, long texts by their length.
func shown(e *core.Effect) string {
	var out []string
	for _, m := range e.Request.Messages {
		text := m.Text
		if len(text) > 60 {
			text = fmt.Sprint(len(text))
		}
		if m.Role == spec.RoleUser {
			text = "begin"
		}
		for _, c := range m.ToolCalls {
			text += "+" + c.ID
		}
		out = append(out, m.Role[:1]+" "+m.ToolCallID+text)
	}
	return strings.Join(out, " | ")
}

// talk has an agent make one call in each of some turns, with words beside, and gives what it was shown before each.
func talk(t *testing.T, s *spec.ContextStrategy, turns int, result func(turn int) spec.ToolResult, words string) (requests []string, out *core.Outcome) {
	t.Helper()
	p := plan(1, "a")
	p.Agents[0].ContextStrategy, p.Agents[0].MaxTurns = s, turns+1
	out, err := (&orders{choose: first, world: func(e *core.Effect) core.Result {
		switch e.Kind {
		case core.Judge:
			return allowAll(e)
		case core.ToolCall:
			r := result(len(requests))
			return core.Result{Tool: &r}
		case core.ModelCall:
			requests = append(requests, shown(e))
			if len(requests) > turns {
				return text("done", nil)
			}
			r := text(words, nil)
			r.Model.Response.Message.ToolCalls = []spec.ToolCall{{ID: fmt.Sprint(len(requests)), Name: "look"}}
			return r
		}
		return core.Result{}
	}}).run(core.Input{Plan: p})
	if err != nil {
		t.Fatal(err)
	}
	return requests, out
}

// A sliding window keeps what the task began with and the last turns, each call with its result.
func TestSlidingWindow(t *testing.T) {
	got, small := talk(t, &spec.ContextStrategy{Type: spec.ContextSlidingWindow, MaxTurns: 2}, 5, func(int) spec.ToolResult { return spec.ToolResult{Text: "x"} }, "w")
	want := []string{"u begin", "u begin | a w+1 | t 1x", "u begin | a w+1 | t 1x | a w+2 | t 2x", "u begin | a w+2 | t 2x | a w+3 | t 3x",
		"u begin | a w+3 | t 3x | a w+4 | t 4x", "u begin | a w+4 | t 4x | a w+5 | t 5x"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// what nobody reports is estimated by what was really sent
	_, whole := talk(t, nil, 5, func(int) spec.ToolResult { return spec.ToolResult{Text: "x"} }, "w")
	if a, b := small.Tasks[0].Tokens.Input, whole.Tasks[0].Tokens.Input; a >= b || small.Tasks[0].Status != spec.TaskCompleted {
		t.Errorf("%d tokens with a window, %d without", a, b)
	}
}

// Compacting leaves a conversation alone as long as it is small, then shortens what is older than four turns: long results
// that are no errors, and long answers. It keeps each call with its result, and looks at nothing twice.
func TestCompact(t *testing.T) {
	long := strings.Repeat("é", 200)
	result := func(turn int) spec.ToolResult {
		return spec.ToolResult{Text: long, IsError: turn == 2}
	}
	requests, _ := talk(t, &spec.ContextStrategy{Type: spec.ContextCompact, MaxTokens: 1}, 7, result, strings.Repeat("w", 2000))
	note := "[Tool result: look, 200 characters, compacted]"
	last := requests[len(requests)-1]
	want := "u begin | a 237+1 | t 1" + note + " | a 237+2 | t 2400 | a 237+3 | t 3" + note
	for turn := 4; turn <= 7; turn++ {
		want += fmt.Sprintf(" | a 2000+%d | t %d400", turn, turn)
	}
	if diff := cmp.Diff(want, last); diff != "" {
		t.Error(diff)
	}
	requests, _ = talk(t, &spec.ContextStrategy{Type: spec.ContextCompact, MaxTokens: 1 << 30}, 7, result, "w")
	if last := requests[len(requests)-1]; strings.Contains(last, "compacted") {
		t.Errorf("a small conversation was compacted: %s", last)
	}
}

// What nobody reports is estimated by what a request holds: what was compressed and then dropped leaves nothing behind.
func TestEstimatesFollowWhatIsDropped(t *testing.T) {
	input := func(turns int) int64 {
		p := plan(1, "a")
		p.Agents[0].ContextStrategy = &spec.ContextStrategy{Type: spec.ContextSlidingWindow, MaxTurns: 2}
		p.Agents[0].MaxTurns, p.Agents[0].CompressToolResults = turns+1, 500
		n := 0
		out, err := (&orders{choose: first, world: func(e *core.Effect) core.Result {
			switch e.Kind {
			case core.Judge:
				return allowAll(e)
			case core.ToolCall:
				return core.Result{Tool: &spec.ToolResult{Text: strings.Repeat("\n", 600)}} // each is two bytes in a request
			case core.ModelCall:
				if n++; n > turns {
					return text("done", nil)
				}
				return tools(nil, "look")
			}
			return core.Result{}
		}}).run(core.Input{Plan: p})
		if err != nil {
			t.Fatal(err)
		}
		return out.Tasks[0].Tokens.Input
	}
	ten, twenty, thirty := input(10), input(20), input(30)
	if first, second := twenty-ten, thirty-twenty; first != second {
		t.Errorf("ten turns are estimated at %d tokens, and the ten after them at %d", first, second)
	}
}
