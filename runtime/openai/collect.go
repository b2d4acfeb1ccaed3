package openai

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

// maxToolCalls bounds one answer. Models make a handful at once; without a bound a broken server could make the search
// for a fragment's call quadratic.
const maxToolCalls = 256

// maxModelRunes bounds the name a server gives its model: it stands in every receipt.
const maxModelRunes = 256

// collector puts an answer together, whether it comes in one piece or in many.
type collector struct {
	turn int // for the ids of calls that have none

	text, reasoning, refusal strings.Builder
	calls                    []*call
	finish                   string      // the finish reason that counts; empty: none yet
	ended                    bool        // the end mark was seen
	usage                    *spec.Usage // the last report: servers that repeat it count upwards
	model                    string
	event                    completion // the last one, to be overwritten
}

// fresh gives an empty value to decode an event into. Events come by the hundred, and most of what one would allocate
// is its list of choices, so that is used again. Package json leaves in its elements what was there.
func (c *collector) fresh() *completion {
	choices := c.event.Choices[:cap(c.event.Choices)]
	clear(choices)
	c.event = completion{Choices: choices[:0]}
	return &c.event
}

// call is a tool call as far as it is known.
type call struct {
	index    number
	id, name string
	args     strings.Builder
}

// add takes a whole answer or one event of a stream.
func (c *collector) add(v *completion) error {
	if len(v.Error) > 0 && string(v.Error) != "null" {
		return reportedFailure(v.Error)
	}
	if v.Model != "" {
		c.model = v.Model
	}
	if u := v.Usage.tokens(); u != nil {
		c.usage = u
	}
	for i := range v.Choices {
		ch := &v.Choices[i]
		if ch.Index != 0 { // one answer was asked for
			continue
		}
		// What says that the answer is not whole is not taken back by a "stop" after it.
		if ch.FinishReason != "" && (c.finish == "" || endsWell(c.finish)) {
			c.finish = ch.FinishReason
		}
		if err := c.addMessage(&ch.Delta); err != nil {
			return err
		}
		if err := c.addMessage(&ch.Message); err != nil {
			return err
		}
	}
	return nil
}

func (c *collector) addMessage(m *message) error {
	if f := m.FunctionCall; f != nil && f.Name != "" {
		return failf(codeBadResponse, "server answers with function_call; only tool_calls are supported")
	}
	c.text.WriteString(m.Content)
	c.refusal.WriteString(m.Refusal)
	if m.ReasoningContent != "" {
		c.reasoning.WriteString(string(m.ReasoningContent))
	} else {
		c.reasoning.WriteString(string(m.Reasoning))
	}
	for i := range m.ToolCalls {
		if err := c.addFragment(&m.ToolCalls[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *collector) addFragment(f *toolFragment) error {
	t := c.callFor(f)
	if t == nil {
		if len(c.calls) == maxToolCalls {
			return failf(codeBadResponse, "answer has more than %d tool calls", maxToolCalls)
		}
		t = &call{index: number(len(c.calls)), id: f.ID}
		if f.Index != nil {
			t.index = *f.Index
		}
		c.calls = append(c.calls, t)
	}
	if t.id == "" {
		t.id = f.ID
	}
	if t.name == "" {
		t.name = f.Function.Name // names come whole; some servers repeat them with every fragment
	}
	t.args.WriteString(string(f.Function.Arguments))
	return nil
}

// callFor finds the call a fragment continues, or nil where it starts one. Neither index nor id can be trusted alone:
// either may be missing, all calls may come with index 0, and one id may stand for two calls.
func (c *collector) callFor(f *toolFragment) *call {
	for i := len(c.calls) - 1; i >= 0; i-- {
		t := c.calls[i]
		switch {
		case f.Index != nil && t.index != *f.Index:
			continue
		case f.ID != "" && t.id == f.ID:
			if f.Index == nil && t.startsAnew(f) {
				return nil
			}
			return t
		case f.ID != "" && t.id != "":
			continue
		case t.startsAnew(f):
			return nil
		}
		return t
	}
	return nil
}

// startsAnew tells a second call that carries no mark of its own from a fragment that repeats the name.
func (t *call) startsAnew(f *toolFragment) bool {
	name := f.Function.Name
	if name == "" || t.name == "" {
		return false
	}
	return name != t.name || strings.HasPrefix(string(f.Function.Arguments), "{") && json.Valid([]byte(t.args.String()))
}

// whole says whether the arguments are complete. Blank ones are: they stand for no arguments.
func (t *call) whole() bool {
	args := t.args.String()
	return isBlank(args) || json.Valid([]byte(args))
}

// response gives the answer, or says why there is none.
func (c *collector) response() (*spec.ModelResponse, error) {
	finish, err := c.finishReason()
	if err != nil {
		return nil, err
	}
	msg := spec.Message{Role: spec.RoleAssistant, Text: c.text.String(), Reasoning: c.reasoning.String()}
	if c.refusal.Len() > 0 {
		finish = spec.FinishRefused
		if msg.Text == "" {
			msg.Text = c.refusal.String()
		}
	}
	if msg.ToolCalls, err = c.toolCalls(finish); err != nil {
		return nil, err
	}
	return &spec.ModelResponse{Message: msg, Finish: finish, Usage: c.usage, Model: cut(c.model, maxModelRunes-1)}, nil
}

// endsWell knows the finish reasons of a whole answer.
func endsWell(reason string) bool {
	switch reason {
	case "stop", "tool_calls", "function_call", "eos", "eos_token", "end_turn", "stop_sequence", "tool_use":
		return true
	}
	return false
}

// finishReason reads the server's word. Beside OpenAI's own, these are the words of compatible servers seen in use.
func (c *collector) finishReason() (spec.FinishReason, error) {
	if endsWell(c.finish) {
		return spec.FinishStop, nil
	}
	switch c.finish {
	case "length", "max_tokens", "model_length":
		return spec.FinishLength, nil
	case "content_filter", "refusal", "safety":
		return spec.FinishRefused, nil
	case "":
		return spec.FinishStop, c.unfinished()
	case "error", "abort", "insufficient_system_resource":
		return "", incompletef("server gave up in the middle of the answer (finish reason %q)", c.finish)
	}
	return "", failf(codeBadResponse, "finish reason is %q, want stop, tool_calls, length or content_filter", c.finish)
}

// unfinished judges an answer without a finish reason.
func (c *collector) unfinished() error {
	switch {
	case !c.ended:
		return incompletef("stream ended without a finish reason or end mark")
	case c.text.Len() == 0 && c.refusal.Len() == 0 && len(c.calls) == 0:
		return incompletef("answer has neither text nor tool calls nor a finish reason")
	}
	for _, t := range c.calls {
		if !t.whole() {
			return incompletef("stream ended without a finish reason and in the middle of a tool call")
		}
	}
	return nil
}

// toolCalls gives every call an id that is its own within the turn. Ids made here depend on turn and position alone.
func (c *collector) toolCalls(finish spec.FinishReason) ([]spec.ToolCall, error) {
	var out []spec.ToolCall
	taken := make(map[string]bool, len(c.calls))
	for _, t := range c.calls {
		taken[t.id] = true
	}
	seen := make(map[string]bool, len(c.calls))
	for n, t := range c.calls {
		if t.name == "" && finish == spec.FinishLength { // cut before its name came; none of them may run
			continue
		}
		if t.name == "" {
			return nil, failf(codeBadResponse, "tool call %d of the answer has no name", n+1)
		}
		id := t.id
		if id == "" || seen[id] {
			id = fmt.Sprintf("call_%d_%d", c.turn, n+1)
			for taken[id] {
				id += "_" + strconv.Itoa(n+1)
			}
			taken[id] = true
		}
		seen[id] = true
		args := t.args.String()
		if isBlank(args) {
			args = ""
		}
		out = append(out, spec.ToolCall{ID: id, Name: t.name, Arguments: args})
	}
	return out, nil
}

// maxTokens is far above what any model takes or gives. Sums of a run's counts stay clear of overflow with it.
const maxTokens = 1 << 40

// tokens gives what was reported, or nil. All zeros are no report, since every request has input; nor is one with a
// count that cannot be true.
func (u *usage) tokens() *spec.Usage {
	if u == nil || !u.PromptTokens.credible() || !u.CompletionTokens.credible() || !u.TotalTokens.credible() ||
		u.PromptTokens == 0 && u.CompletionTokens == 0 {
		return nil
	}
	// Servers that count thinking apart from the answer still have it in the total.
	out := max(u.CompletionTokens, u.TotalTokens-u.PromptTokens)
	return &spec.Usage{
		Input:       int64(u.PromptTokens),
		CachedInput: int64(min(max(u.PromptDetails.CachedTokens, 0), u.PromptTokens)),
		Output:      int64(out),
		Reasoning:   int64(min(max(u.CompletionDetails.ReasoningTokens, 0), out)),
	}
}

func (n number) credible() bool { return n >= 0 && n <= maxTokens }
