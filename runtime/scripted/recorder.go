package scripted

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
	"github.com/open-multi-agent/oma/spec/redact"
)

// Recorder keeps the answers of the models it is put before. What the run sees is a model's own answer; what is kept
// holds no secrets. It is safe for concurrent use.
type Recorder struct {
	redact func(string) string

	mu    sync.Mutex
	calls []*call // in the order they began
}

// call is one request and, once it is done, the turn that answers it.
type call struct {
	agent, task string
	turn        spec.Turn
	done        bool
}

// NewRecorder makes an empty Recorder. redactText takes secrets out of a text; nil: only what looks like one.
func NewRecorder(redactText func(string) string) *Recorder {
	if redactText == nil {
		redactText = masked
	}
	return &Recorder{redact: redactText}
}

// Model gives a model that asks inner and records. All models of one Recorder record into one cassette, for a team with
// several providers.
func (r *Recorder) Model(inner runtime.Model) runtime.Model { return &recorded{r, inner} }

type recorded struct {
	to    *Recorder
	inner runtime.Model
}

func (m *recorded) Complete(ctx context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
	c := m.to.begin(req)
	resp, err := m.inner.Complete(ctx, req)
	switch {
	case err == nil && resp != nil:
		m.to.end(c, m.to.answer(resp))
	case err != nil && ctx.Err() == nil && !errors.Is(err, runtime.ErrCassette):
		m.to.end(c, m.to.failure(err))
	}
	return resp, err
}

func (r *Recorder) begin(req *spec.ModelRequest) *call {
	c := &call{agent: req.AgentName, task: req.TaskTitle}
	c.turn.Request = RequestDigest(r.clean(req), "")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
	return c
}

func (r *Recorder) end(c *call, turn spec.Turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	turn.Request = c.turn.Request
	c.turn, c.done = turn, true
}

// Cassette gives what was recorded so far. Turns stand under their agent, or under their task's title where an agent
// with more than one task took part: what is asked in a task is answered in order, whatever else runs. Calls in flight
// are left out.
func (r *Recorder) Cassette(name string) *spec.Cassette {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &spec.Cassette{Envelope: spec.Envelope{APIVersion: spec.APIVersion, Kind: spec.KindCassette}, Name: name}
	shared := sharedTasks(r.calls)
	for _, c := range r.calls {
		switch {
		case !c.done:
		case shared[c.task]:
			put(&out.Tasks, c.task, c.turn)
		default:
			put(&out.Agents, c.agent, c.turn)
		}
	}
	return out
}

func put(group *map[string][]spec.Turn, name string, turn spec.Turn) {
	if *group == nil {
		*group = map[string][]spec.Turn{}
	}
	(*group)[name] = append((*group)[name], turn)
}

// sharedTasks gives the titles of all tasks of agents with more than one. Every agent's turns in such a task stand
// under its title, since that is where they are looked for first.
func sharedTasks(calls []*call) map[string]bool {
	first := map[string]string{} // agent: its first task
	shared := map[string]bool{}
	for _, c := range calls {
		task, known := first[c.agent]
		if !known {
			first[c.agent] = c.task
		} else if task != c.task {
			shared[task], shared[c.task] = true, true
		}
	}
	delete(shared, "") // a request without a task stands under its agent
	return shared
}

func (r *Recorder) answer(resp *spec.ModelResponse) spec.Turn {
	turn := spec.Turn{Text: r.redact(resp.Message.Text), Reasoning: r.redact(resp.Message.Reasoning),
		Usage: copyUsage(resp.Usage), Model: resp.Model, Finish: resp.Finish}
	if turn.Finish == spec.FinishStop {
		turn.Finish = ""
	}
	for _, c := range resp.Message.ToolCalls {
		turn.ToolCalls = append(turn.ToolCalls, r.toolCall(c))
	}
	return turn
}

// toolCall keeps arguments as an input where that gives the same text again.
func (r *Recorder) toolCall(c spec.ToolCall) spec.CassetteCall {
	out := spec.CassetteCall{ID: r.redact(c.ID), Name: r.redact(c.Name)}
	text := r.arguments(c.Arguments)
	var compact bytes.Buffer
	_, err := canon.Arguments(text)
	if err == nil && json.Compact(&compact, []byte(text)) == nil && compact.String() == text && text[0] == '{' {
		out.Input = json.RawMessage(text)
	} else {
		out.Arguments = &text
	}
	return out
}

// arguments takes secrets out of the values of a call's arguments. They keep their text if there are none.
func (r *Recorder) arguments(text string) string {
	v, err := canon.Arguments(text)
	if err != nil {
		return r.redact(text)
	}
	clean := r.leaves((*redact.Redactor)(nil).Value(v))
	if reflect.DeepEqual(clean, any(v)) {
		return text
	}
	b, err := canon.Bytes(clean)
	if err != nil {
		return r.redact(text)
	}
	return string(b)
}

func (r *Recorder) leaves(v any) any {
	switch t := v.(type) {
	case string:
		return r.redact(t)
	case []any:
		for i := range t {
			t[i] = r.leaves(t[i])
		}
	case map[string]any:
		out := make(map[string]any, len(t))
		for _, k := range slices.Sorted(maps.Keys(t)) {
			out[r.redact(k)] = r.leaves(t[k])
		}
		return out
	}
	return v
}

// failure gives the turn of a failed attempt.
func (r *Recorder) failure(err error) spec.Turn {
	var pe *runtime.ProviderError
	if !errors.As(err, &pe) {
		return spec.Turn{Error: &spec.TurnError{Message: r.redact(err.Error())}}
	}
	status := pe.Info.HTTPStatus
	if status < 100 || status > 599 || pe.Info.Retryable && !retryable(status) { // such as a broken answer with status 200
		status = 0
	}
	return spec.Turn{Usage: copyUsage(pe.Usage), Error: &spec.TurnError{Status: status, Message: r.redact(pe.Info.Message),
		RetryAfter: spec.Duration(max(0, pe.RetryAfter))}}
}

// clean gives a request as it will be when the recording is played, where what the model said comes without secrets. Text
// that the digest leaves out is left alone.
func (r *Recorder) clean(req *spec.ModelRequest) *spec.ModelRequest {
	out := *req
	out.System = r.redact(req.System)
	out.Messages = make([]spec.Message, len(req.Messages))
	for i, m := range req.Messages {
		if i == 0 {
			m.Text = r.redact(m.Text)
		}
		m.ToolCallID, m.ToolName = r.redact(m.ToolCallID), r.redact(m.ToolName)
		calls := m.ToolCalls
		m.ToolCalls = make([]spec.ToolCall, len(calls))
		for k, c := range calls {
			c.ID, c.Name, c.Arguments = r.redact(c.ID), r.redact(c.Name), r.arguments(c.Arguments)
			m.ToolCalls[k] = c
		}
		out.Messages[i] = m
	}
	return &out
}
