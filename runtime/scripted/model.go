package scripted

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

// provider is the name that faults carry.
const provider = "scripted"

// Model plays a cassette. Each request takes the next turn of its task's title, if the cassette has that, else of its
// agent. It is safe for concurrent use; tasks that share the turns of one agent take them in the order they ask.
type Model struct {
	name     string
	match    string
	position func(spec.Path) string

	mu            sync.Mutex
	agents, tasks map[string]*script
}

// script is a list of turns and how many of them were taken.
type script struct {
	path  spec.Path
	turns []spec.Turn
	next  int
}

var _ runtime.Model = (*Model)(nil)

// New makes a Model of a cassette, which must not change afterwards. name is the file as the user named it. position
// gives file:line of a path in it; nil, or an empty answer: errors name the file alone. A nil cassette answers nothing.
func New(c *spec.Cassette, name string, position func(path spec.Path) string) *Model {
	if c == nil {
		c = &spec.Cassette{}
	}
	return &Model{name: name, match: c.Match, position: position,
		agents: scripts("agents", c.Agents), tasks: scripts("tasks", c.Tasks)}
}

func scripts(root spec.Path, turns map[string][]spec.Turn) map[string]*script {
	out := make(map[string]*script, len(turns))
	for name, list := range turns {
		out[name] = &script{path: root.Key(name), turns: list}
	}
	return out
}

// Complete plays the next turn. A turn that is refused is not taken.
func (m *Model) Complete(ctx context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	turn, err := m.take(req)
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, time.Duration(turn.Delay)); err != nil {
		return nil, err
	}
	if turn.Error != nil {
		return nil, fault(turn)
	}
	return answer(turn), nil
}

// Unused gives an error for each turn that was never played, in the order of the names, agents first. Turns of agents
// that idle names are left out: nobody was going to ask for them. A nil idle names none.
func (m *Model) Unused(idle func(agent string) bool) []error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for i, group := range [...]map[string]*script{m.agents, m.tasks} {
		for _, name := range slices.Sorted(maps.Keys(group)) {
			if i == 0 && idle != nil && idle(name) {
				continue
			}
			s := group[name]
			for i := s.next; i < len(s.turns); i++ {
				errs = append(errs, m.errorf(s.path.Index(i), "turn was never played"))
			}
		}
	}
	return errs
}

// Skip takes turns without playing them: an earlier attempt of the run has had their answers.
func (m *Model) Skip(req *spec.ModelRequest, turns int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.script(req); s != nil {
		s.next = min(s.next+turns, len(s.turns))
	}
}

// take checks a request against its turn and gives the turn.
func (m *Model) take(req *spec.ModelRequest) (*spec.Turn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.script(req)
	if s == nil {
		return nil, m.errorf("", "no turns for agent %q or task %q: expected %s", req.AgentName, req.TaskTitle, m.names())
	}
	if s.next == len(s.turns) {
		return nil, m.errorf(s.path, "no turn left: expected at most %d requests, found another one from agent %q in task %q",
			len(s.turns), req.AgentName, req.TaskTitle)
	}
	turn, path := &s.turns[s.next], s.path.Index(s.next)
	if turn.Request != "" {
		if found := RequestDigest(req, m.match); found != turn.Request {
			names, want, got := changed(turn.Request, found)
			return nil, m.errorf(path.Key("request"), "the request is not the recorded one: %s changed: expected %s, found %s", names, want, got)
		}
	}
	if at, problem := unmet(turn.Expect, req.Messages); problem != "" {
		return nil, m.errorf(path.Key("expect")+at, "%s", problem)
	}
	s.next++
	return turn, nil
}

func (m *Model) script(req *spec.ModelRequest) *script {
	if s := m.tasks[req.TaskTitle]; s != nil && req.TaskTitle != "" {
		return s
	}
	return m.agents[req.AgentName]
}

// names lists who has turns.
func (m *Model) names() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m.agents)) {
		parts = append(parts, fmt.Sprintf("agent %q", name))
	}
	for _, name := range slices.Sorted(maps.Keys(m.tasks)) {
		parts = append(parts, fmt.Sprintf("task %q", name))
	}
	if len(parts) == 0 {
		return "none, the cassette is empty"
	}
	return strings.Join(parts, ", ")
}

// errorf makes an error at a place of the cassette. An empty path is the whole of it.
func (m *Model) errorf(path spec.Path, format string, args ...any) error {
	place := m.name
	if m.position != nil && path != "" {
		if at := m.position(path); at != "" {
			place = at
		}
	}
	if path != "" {
		place += ": " + string(path)
	}
	return fmt.Errorf("%w %s: %s", runtime.ErrCassette, place, fmt.Sprintf(format, args...))
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func fault(turn *spec.Turn) error {
	e := turn.Error
	message := e.Message
	switch {
	case message != "":
	case e.Status == 0:
		message = "the connection broke"
	default:
		message = strings.ToLower(http.StatusText(e.Status))
	}
	return &runtime.ProviderError{
		Info: spec.ErrorInfo{Kind: "provider", Message: message, HTTPStatus: e.Status, Provider: provider,
			Retryable: retryable(e.Status)},
		RetryAfter: time.Duration(e.RetryAfter),
		Usage:      copyUsage(turn.Usage),
	}
}

// retryable says whether a failure with this HTTP status may pass. 0: the connection broke.
func retryable(status int) bool {
	switch status {
	case 0, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

func answer(turn *spec.Turn) *spec.ModelResponse {
	msg := spec.Message{Role: spec.RoleAssistant, Text: turn.Text, Reasoning: turn.Reasoning}
	for _, c := range turn.ToolCalls {
		msg.ToolCalls = append(msg.ToolCalls, spec.ToolCall{ID: c.ID, Name: c.Name, Arguments: arguments(c)})
	}
	finish := turn.Finish
	if finish == "" {
		finish = spec.FinishStop
	}
	return &spec.ModelResponse{Message: msg, Finish: finish, Usage: copyUsage(turn.Usage), Model: turn.Model}
}

// arguments gives a call's arguments as the model would send them: Arguments as written, else Input without white
// space. Neither: an empty object.
func arguments(c spec.CassetteCall) string {
	if c.Arguments != nil {
		return *c.Arguments
	}
	if len(c.Input) == 0 {
		return "{}"
	}
	var b bytes.Buffer
	if json.Compact(&b, c.Input) != nil { // the loader lets no such text through; the door will refuse it
		return string(c.Input)
	}
	return b.String()
}

func copyUsage(u *spec.Usage) *spec.Usage {
	if u == nil {
		return nil
	}
	c := *u
	return &c
}
