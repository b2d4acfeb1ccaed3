package acp

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	protocol "github.com/coder/acp-go-sdk"
)

// turn is one prompt in the making. What the agent tells is applied on the reader's goroutine, in order.
type turn struct {
	o      *Options
	ctx    context.Context // of requests that belong to the turn; ends with it
	cancel context.CancelFunc
	feed   *feed          // nil: nobody listens
	work   sync.WaitGroup // requests that are being answered; entered under mu while the turn is not over

	mu               sync.Mutex
	over             bool // the answer has come: nothing more belongs to the turn
	output, thoughts ends
	calls            []*call
	byID             map[string]*call
	omitted          int
	reply            Reply // Decisions, Plan and Others alone, until the end
	signs            signs
	terminals        terminals
}

func newTurn(ctx context.Context, o *Options) *turn {
	t := &turn{o: o, byID: map[string]*call{}}
	t.ctx, t.cancel = context.WithCancel(context.WithoutCancel(ctx)) // a cancellation is told first, and then felt
	if o.Update != nil {
		t.feed = newFeed(o.Update, maxQueued)
	}
	return t
}

// settle is called when the answer has come, before anything after it is read.
func (t *turn) settle() {
	t.mu.Lock()
	t.over = true
	t.mu.Unlock()
	t.cancel()
}

// notify takes what the agent tells without being asked.
func (s *session) notify(method string, params json.RawMessage) {
	if method != protocol.ClientMethodSessionUpdate {
		return // extensions of single agents, such as how signing in goes
	}
	var n struct {
		SessionID string          `json:"sessionId"`
		Update    json.RawMessage `json:"update"`
	}
	if json.Unmarshal(params, &n) != nil || len(n.Update) == 0 || n.Update[0] != '{' {
		s.o.log("left out an update that is not understood: %s", params[:min(len(params), maxRemark)])
		return
	}
	s.mu.Lock()
	t, id := s.turn, s.id
	s.mu.Unlock()
	if id != "" && id != n.SessionID {
		s.o.log("left out an update of session %q, which is not known", clip(n.SessionID, 80))
		return
	}
	var head updateHead
	_ = json.Unmarshal(n.Update, &head) // members that fit are read: content is a list in other kinds
	if head.Kind == "usage_update" {
		s.meter.read(n.Update)
	}
	if t != nil {
		t.apply(&head, n.Update)
	}
}

// updateHead is what is read of every update, in one go, since most are pieces of text.
type updateHead struct {
	Kind    string `json:"sessionUpdate"`
	Content block  `json:"content"`
}

// apply adds one update to the turn.
func (t *turn) apply(head *updateHead, raw json.RawMessage) {
	t.mu.Lock()
	if t.over {
		t.mu.Unlock()
		return
	}
	u := t.add(head, raw)
	t.mu.Unlock()
	if t.feed != nil {
		t.feed.put(u)
	}
}

func (t *turn) add(head *updateHead, raw json.RawMessage) Update {
	kind := head.Kind
	switch kind {
	case "agent_message_chunk", "agent_thought_chunk":
		if text := head.Content.text(); text != "" {
			return t.chunk(kind, text, len(raw))
		}
	case "tool_call", "tool_call_update":
		c, isCall := t.call(kind, raw)
		switch {
		case c != nil:
			shown := c.shown
			return Update{Kind: kind, Call: &shown, Size: len(raw)}
		case isCall:
			return rawUpdate(t.o, kind, raw)
		}
	}
	u := rawUpdate(t.o, kind, raw)
	t.signs.see(kind, raw)
	switch {
	case kind == "plan":
		t.reply.Plan = u.Raw
	case kind == "usage_update": // read by the meter
	case len(t.reply.Others) < maxOthers:
		t.reply.Others = append(t.reply.Others, u)
	default:
		t.reply.OthersOmitted++
	}
	return u
}

// chunk adds a piece of text.
func (t *turn) chunk(kind, text string, size int) Update {
	if kind == "agent_thought_chunk" {
		t.thoughts.write(text)
	} else {
		t.output.write(text)
	}
	u := Update{Kind: kind, Size: size}
	if t.feed != nil {
		u.Text = strings.ToValidUTF8(t.o.redact(text), "\uFFFD")
	}
	return u
}

// call finds or makes the record of a call and brings it up to date. nil: it is one too many, or no call.
func (t *turn) call(kind string, raw json.RawMessage) (c *call, isCall bool) {
	var u callUpdate
	if json.Unmarshal(raw, &u) != nil || u.ID == "" || len(u.ID) > maxName {
		return nil, false
	}
	c = t.byID[u.ID]
	switch {
	case c != nil:
	case len(t.calls) == maxCalls:
		if kind == "tool_call" {
			t.omitted++
		}
		return nil, true
	default:
		c = &call{shown: ToolCall{ID: t.o.redact(u.ID), Status: string(protocol.ToolCallStatusPending)}}
		t.calls, t.byID[u.ID] = append(t.calls, c), c
	}
	c.update(t.o, &u)
	return c, true
}

// known gives what is known of a call, for a request for permission.
func (t *turn) known(id string) facts {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.byID[id]; c != nil {
		return c.facts
	}
	return facts{}
}

// decided records how a request for permission was answered.
func (t *turn) decided(d Decision) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.reply.Decisions) == maxDecisions {
		t.reply.DecisionsOmitted++
		return
	}
	t.reply.Decisions = append(t.reply.Decisions, d)
}

// end gives what the turn came to, once nothing runs in it any more.
func (t *turn) end() *Reply {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.reply
	r.Output, r.Thoughts = t.o.redact(t.output.String()), t.o.redact(t.thoughts.String())
	for _, c := range t.calls {
		r.ToolCalls = append(r.ToolCalls, c.shown)
	}
	r.ToolCallsOmitted = t.omitted
	return &r
}
