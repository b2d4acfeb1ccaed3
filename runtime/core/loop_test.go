package core_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
)

// MA-05: a model that says the same again and again is told so once, and then ended; or ended at once. Whoever does something
// else has recovered. How arguments are written does not matter, and what they are does.
func TestLoopDetection(t *testing.T) {
	warn, end := &spec.LoopDetection{MaxRepetitions: 3, Action: spec.LoopWarn}, &spec.LoopDetection{MaxRepetitions: 2, Action: spec.LoopTerminate}
	for _, c := range []struct {
		name   string
		d      *spec.LoopDetection
		turns  string // of each turn: words, a colon, and the arguments of the call; . is a final answer
		status string
		made   int // calls that were made
		warned int
	}{
		{"off", nil, `:{"a":1} :{"a":1} :{"a":1} :{"a":1} .`, "completed completed", 4, 0},
		{"warned, and ended", warn, `:{"a":1} :{"a":1} :{"a":1} :{"a":1} .`, "failed loop", 3, 1},
		{"warned, and recovered", warn, `:{"a":1} :{"a":1} :{"a":1} :{"a":2} :{"a":1} .`, "completed completed", 5, 1},
		{"warned twice after a recovery", warn, `:{"a":1} :{"a":1} :{"a":1} :{"a":2} :{"a":2} :{"a":2} .`, "completed completed", 6, 2},
		{"ended at once", end, `:{"a":1} :{"a":1} .`, "failed loop", 1, 0},
		{"the order of keys and white space say nothing", end, `:{"a":1,"b":2} :{"b":2,\t"a":1} .`, "failed loop", 1, 0},
		{"other arguments", end, `:{"a":1} :{"a":2} :{"a":1} .`, "completed completed", 3, 0},
		{"the same words beside other calls", end, `so:{"a":1} so:{"a":2} .`, "failed loop", 1, 0},
		{"no words are not the same words", end, `:{"a":1} :{"a":2} .`, "completed completed", 2, 0},
		{"arguments that are no JSON", end, `:{ :{ .`, "failed loop", 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := plan(1, "a")
			p.Agents[0].LoopDetection, p.Agents[0].MaxTurns = c.d, 20
			turns := strings.Fields(c.turns)
			made, warned := 0, 0
			out, err := (&orders{choose: first, world: func(e *core.Effect) core.Result {
				switch e.Kind {
				case core.Judge:
					return allowAll(e)
				case core.ToolCall:
					made++
					return core.Result{Tool: &spec.ToolResult{Text: "none"}}
				case core.ModelCall:
					if last := e.Request.Messages[len(e.Request.Messages)-1]; e.Request.Turn > 1 && last.Role == spec.RoleUser {
						warned++
					}
					words, arguments, call := strings.Cut(turns[e.Request.Turn-1], ":")
					r := text(words, &spec.Usage{})
					if call {
						r.Model.Response.Message.ToolCalls = []spec.ToolCall{{ID: fmt.Sprint("c", e.Request.Turn), Name: "look", Arguments: strings.ReplaceAll(arguments, `\t`, "\t")}}
					}
					return r
				}
				return core.Result{}
			}}).run(core.Input{Plan: p})
			if err != nil {
				t.Fatal(err)
			}
			if got := statuses(out)["a"]; got != c.status || made != c.made || warned != c.warned {
				t.Errorf("%s, %d calls made, warned %d times; want %s, %d, %d", got, made, warned, c.status, c.made, c.warned)
			}
		})
	}
}
