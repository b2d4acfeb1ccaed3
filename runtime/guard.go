package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/schemas"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// guard is the one door. Every governed action passes it, in this order: granted, input decoded, shaped and valid,
// budget reserved (by the core's ledger, before it asks), judged, approved, asked (recorded), act, settled, result
// (recorded). There is no way around it and nothing switches it off. What is not understood is refused.
type guard struct {
	plan   *spec.Plan
	rules  *policies.Set
	bounds map[string]*policies.Set // rules over the plan and over tasks, by scope
	people Approver                 // nil: nobody can be asked
	agents map[string]*agentParts
	runID  string
	author string // who started the run, by their own word; empty: nobody says
	retry  retryClock
	now    func() time.Time
	mask   func(string) string // takes secrets out of messages
	// retrace are the words that name the team to oma policy check, for a denial's record.
	retrace []string
	// reference puts references in place of resolved secrets in tool results: those go to a model's provider. nil: there
	// are none.
	reference func(string) string
	// kept gives bytes of attachments from earlier attempts, by digest. nil: there are none.
	kept func(digest string) ([]byte, error)

	// observe puts something on record while an effect is at work, and returns once it is. lasting makes it survive the loss
	// of the machine. nil: there is no log.
	observe func(e spec.Event, data any, lasting bool) error
	floor   chan struct{} // holds one thing while somebody is asked; nil: nobody is asked while another one is

	mu       sync.Mutex
	permits  map[string]string // effect id -> digest of the input that was judged; each is good for one call
	redacted bool              // the log holds less than what a call that waits would take
	// confirmed says that a person has approved the plan.
	confirmed bool
}

// agentParts is what one agent works with in this run.
type agentParts struct {
	agent *spec.PlanAgent
	model Model
	retry RetryPolicy
	tools map[string]*toolParts
	tree  func(context.Context) string
}

// toolParts is a granted tool with its compiled schemas.
type toolParts struct {
	Tool
	input  *schema
	output *schema // nil: any result
}

// pass is the door.
func (g *guard) pass(ctx context.Context, e *core.Effect) core.Result {
	switch e.Kind {
	case core.Boundary:
		return g.timed(func() *core.Judged { return g.bound(ctx, e) })
	case core.Approval:
		return g.consult(ctx, e)
	}
	parts := g.agents[e.AgentName]
	if parts == nil {
		return failed("framework", fmt.Sprintf("agent %q is not in the plan", e.AgentName))
	}
	switch e.Kind {
	case core.ModelCall:
		return g.ask(ctx, parts, e)
	case core.Judge:
		return g.timed(func() *core.Judged { return g.judge(ctx, parts, e) })
	case core.ToolCall:
		return g.act(ctx, parts, e)
	case core.Tree:
		return core.Result{Tree: parts.tree(ctx), Cancelled: ctx.Err() != nil}
	}
	return failed("framework", fmt.Sprintf("effect %q is not known", e.Kind))
}

func (g *guard) timed(judge func() *core.Judged) core.Result {
	started := g.now()
	j := judge()
	j.ElapsedMicros = g.now().Sub(started).Microseconds()
	return core.Result{Judged: j}
}

func failed(kind, message string) core.Result {
	return core.Result{Err: &spec.ErrorInfo{Kind: kind, Message: message}}
}

// ask makes a model call, with its retries. The core reserved its budget before.
func (g *guard) ask(ctx context.Context, parts *agentParts, e *core.Effect) core.Result {
	inner, cancel := ctx, func() {}
	if e.Timeout > 0 {
		inner, cancel = context.WithTimeout(ctx, time.Duration(e.Timeout))
	}
	defer cancel()
	model, asks := parts.model, (*desk)(nil)
	if agent, ok := model.(Agent); ok && e.Call != nil {
		asks = g.desk(parts, e)
		model = asks.at(agent)
	}
	request, err := g.attach(e.Request)
	if err != nil {
		return core.Result{Model: &core.ModelResult{Idle: true}, Err: &spec.ErrorInfo{Kind: "store", Code: "ATTACHMENT_LOST", Message: clip(g.mask(err.Error()), 1024)}}
	}
	call, err := completeWithRetries(inner, model, request, parts.retry, g.retry)
	if asks != nil {
		call.Permits = asks.close()
	}
	res := core.Result{Model: &call}
	var pe *ProviderError
	switch {
	case err == nil:
	case errors.Is(err, errDrained):
		res.Cancelled, call.Idle = true, true
	case ctx.Err() != nil:
		res.Cancelled = true
	case inner.Err() != nil:
		res.Err = &spec.ErrorInfo{Kind: "timeout", Code: "LLM_CALL_TIMEOUT", Retryable: true,
			Message: fmt.Sprintf("the model did not answer within %s", e.Timeout), Provider: parts.agent.Provider, Attempt: call.Attempts}
	case errors.As(err, &pe):
		info := pe.Info
		info.Attempt, info.Message = call.Attempts, clip(g.mask(providerMessage(&info, call.Attempts)), 1024)
		res.Err = &info
	case errors.Is(err, ErrCassette):
		res.Err = &spec.ErrorInfo{Kind: "validation", Code: "CASSETTE_MISMATCH", Message: clip(g.mask(err.Error()), 1024), Provider: parts.agent.Provider}
	default:
		res.Err = &spec.ErrorInfo{Kind: "unknown", Message: clip(g.mask(err.Error()), 1024), Provider: parts.agent.Provider, Attempt: call.Attempts}
	}
	if resp := call.Response; resp != nil && parts.agent.Backend != nil && g.reference != nil { // a program knows what it was given
		resp.Message.Text = g.reference(resp.Message.Text)
	}
	switch resp := call.Response; {
	case res.Err == nil && !res.Cancelled && resp == nil:
		res.Err = failed("provider", "the model gave no answer").Err
	case resp != nil && resp.Usage != nil && !resp.Usage.Sane():
		sane := *resp
		sane.Usage = nil // as if nothing had been reported: a figure made up must not move a ceiling
		call.Response = &sane
	}
	if !call.Wasted.Sane() {
		call.Wasted = spec.Usage{}
	}
	return res
}

// providerMessage says who failed and how, with what usually mends it.
func providerMessage(info *spec.ErrorInfo, attempts int) string {
	msg := info.Message
	switch {
	case info.HTTPStatus == 0 && info.Provider != "": // a program has none, and its message names it
		msg = fmt.Sprintf("provider %q: %s", info.Provider, info.Message)
	case info.HTTPStatus != 0:
		msg = fmt.Sprintf("provider %q: HTTP %d: %s", info.Provider, info.HTTPStatus, info.Message)
	}
	if attempts > 1 {
		msg += fmt.Sprintf(" (after %d attempts)", attempts)
	}
	switch info.HTTPStatus {
	case http.StatusUnauthorized, http.StatusForbidden:
		msg += "; check the key that apiKey names"
	case http.StatusNotFound:
		msg += "; check the model's name, and that baseURL ends as the server wants, mostly in /v1"
	}
	return msg
}

// judge decides about one tool call without doing anything. Only an allowed call gets a permit to act.
func (g *guard) judge(ctx context.Context, parts *agentParts, e *core.Effect) *core.Judged {
	c := e.Call
	tool := parts.tools[c.Name]
	if tool == nil {
		return refuse("not-granted", fmt.Sprintf("Tool %q is not granted to this agent. Granted: %s.", c.Name, grantedNames(parts.agent)))
	}
	if code, text := g.undelegable(c.Name, c.Arguments, c.Chain); code != "" {
		return refuse(code, text)
	}
	input, err := tool.decode(c.Arguments, parts.agent.MaxToolInputBytes)
	if err != nil {
		return refuse("invalid-input", err.Error())
	}
	if tool.Normalise != nil {
		if err := tool.Normalise(input); err != nil {
			code := "invalid-input"
			if errors.Is(err, ErrProtected) {
				code = "protected-path"
			}
			return refuse(code, fmt.Sprintf("Tool %q refused: %s.", c.Name, err))
		}
	}
	canonical, err := canon.Bytes(input)
	if err != nil {
		return refuse("invalid-input", "the input has no canonical form: "+err.Error())
	}
	j := &core.Judged{Canonical: canonical, InputDigest: canon.Digest("input", canonical)}
	var r policies.Request
	if r, j.Decision = g.decide(ctx, tool, e, input); j.Refused == core.RefusedUnconfirmed {
		j.Text = unconfirmed
		return j
	}
	g.describe(ctx, r, j)
	switch {
	case j.Asks():
		j.Holds = len(j.Marks) > 0 || g.rules.ReadsHistory(parts.agent.Name)
		return j
	case !j.Allowed():
		j.Text = g.mask(fmt.Sprintf("Tool %q denied by gate: %s", c.Name, cmp.Or(j.Reason, "no rule permits it")))
		return j
	}
	if c.Name != spec.DelegateTool { // the core does that by itself, and each thing that comes of it passes here again
		g.permit(strings.TrimSuffix(e.ID, "/judge"), j.InputDigest)
	}
	return j
}

// decide asks the rules about input that was accepted, and holds a consequential call for its confirmation.
func (g *guard) decide(ctx context.Context, tool *toolParts, e *core.Effect, input map[string]any) (policies.Request, spec.Decision) {
	c := e.Call
	r := policies.Request{ToolName: c.Name, Input: input, AgentName: e.AgentName, Role: c.Role, RunID: g.runID, TaskID: rootTask(e.TaskID),
		ToolCallID: c.ID, Consequential: tool.Consequential, Mask: g.mask, Situation: c.Situation}
	d := g.rules.Decide(ctx, r)
	if d.Allowed() && tool.Consequential && core.Confirms(g.plan) && !g.isConfirmed() {
		d.Refused, d.Reason, d.Marks = core.RefusedUnconfirmed, unconfirmed, nil
	}
	return r, d
}

// unconfirmed is what a model is told where a consequential call needs a confirmation (reference behaviour C3).
const unconfirmed = "Consequential tool confirmation required before execution."

func refuse(code, text string) *core.Judged {
	return &core.Judged{Decision: spec.Decision{Refused: code, Reason: text}, Text: text}
}

func grantedNames(a *spec.PlanAgent) string {
	if a.Backend != nil && len(a.Tools) == 0 {
		return "none; it is an external agent, whose tools are its own program's"
	}
	if len(a.Tools) == 0 {
		return "none; the team file grants tools with tools or toolPreset"
	}
	names := make([]string, len(a.Tools))
	for i, t := range a.Tools {
		names[i] = t.Name
	}
	return strings.Join(names, ", ")
}

// decode makes the one value that is judged, recorded and run: no parser after this one sees the model's text.
func (t *toolParts) decode(arguments string, limit int) (map[string]any, error) {
	if limit > 0 && len(arguments) > limit {
		return nil, fmt.Errorf("Invalid input for tool %q: the arguments are over %d bytes", t.Name, limit)
	}
	input, err := canon.Arguments(arguments)
	if err != nil {
		return nil, fmt.Errorf("Invalid input for tool %q: %s", t.Name, err)
	}
	canon.Shape(t.input.decoded, input)
	if vs := t.input.validator.Validate(input); len(vs) > 0 {
		return nil, fmt.Errorf("Invalid input for tool %q:%s", t.Name, bullets(vs))
	}
	return input, nil
}

func bullets(vs []schemas.Violation) string {
	var b strings.Builder
	for _, v := range vs {
		path := string(v.Path)
		if path == "" {
			path = "input"
		}
		fmt.Fprintf(&b, "\n  • %s: %s", path, v.Message)
	}
	return b.String()
}

func (g *guard) permit(id, digest string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.permits[id] = digest
}

// use takes a permit. It holds for exactly the input that was judged, and once.
func (g *guard) use(id string, canonical []byte) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	digest, ok := g.permits[id]
	delete(g.permits, id)
	return ok && digest == canon.Digest("input", canonical)
}

// remember lets a call act that an earlier attempt judged and did not run, and no other.
func (g *guard) remember(e *core.Effect, res *core.Result) {
	switch {
	case e.Kind == core.ToolCall:
		g.use(e.ID, nil)
	case e.Kind == core.Approval && res.Approval != nil && !res.Cancelled:
		g.heed(e, res.Approval)
	case e.Kind == core.Judge && res.Judged != nil && res.Judged.Allowed():
		g.permit(strings.TrimSuffix(e.ID, "/judge"), res.Judged.InputDigest)
	}
}

// lasting says that a call may change something.
func (g *guard) lasting(e *core.Effect) bool {
	if e.Kind == core.ModelCall {
		return g.external(e)
	}
	if e.Kind != core.ToolCall {
		return e.Kind == core.Approval // who was asked must find the run as it was
	}
	parts := g.agents[e.AgentName]
	return parts == nil || parts.tools[e.Call.Name] == nil || !parts.tools[e.Call.Name].ReadOnly
}

// unsure answers a call that an earlier attempt has asked for and not seen the end of: it may have run. One that only
// reads runs again, and so does one that is idempotent; of any other nobody here can know, so a person is asked.
func (g *guard) unsure(e *core.Effect) (core.Result, bool) {
	if e.Kind == core.ModelCall {
		return core.Result{Unsure: true, Err: &spec.ErrorInfo{Kind: "framework", Code: "AGENT_NOT_REPEATED",
			Message: "not started again: the run ended while this agent was at work, so it may have done its work"}}, g.external(e)
	}
	tool := g.agents[e.AgentName].tools[e.Call.Name]
	if tool != nil && (tool.ReadOnly || tool.Idempotent) {
		return core.Result{}, false
	}
	g.use(e.ID, nil)
	return core.Result{Unsure: true, Tool: &spec.ToolResult{IsError: true, Text: fmt.Sprintf("Tool %q was not run again: the run ended while this call was in flight, so it may have taken effect. Look before you repeat it.", e.Call.Name)}}, true
}

// external says that a program works in the place of the effect's model.
func (g *guard) external(e *core.Effect) bool {
	parts := g.agents[e.AgentName]
	return parts != nil && parts.agent != nil && parts.agent.Backend != nil
}

// act runs a call that was judged. The value that runs is decoded from what was judged.
func (g *guard) act(ctx context.Context, parts *agentParts, e *core.Effect) core.Result {
	tool := parts.tools[e.Call.Name]
	if tool == nil || tool.Call == nil || !g.use(e.ID, e.Call.Canonical) {
		return failed("framework", fmt.Sprintf("call %s was not judged as it is", e.ID))
	}
	input, err := canon.Arguments(string(e.Call.Canonical))
	if err != nil {
		return failed("framework", "the judged input cannot be read back: "+err.Error())
	}
	canon.Shape(tool.input.decoded, input)
	out := tool.call(ctx, Invocation{ID: e.Call.ID, AgentName: parts.agent.Name, TaskID: e.TaskID, Input: input, Canonical: e.Call.Canonical})
	if ctx.Err() != nil && out.IsError {
		out.Attachments = nil
		return core.Result{Cancelled: true, Tool: &out}
	}
	out = g.seal(tool.Name, tool.check(out))
	out.Text = strings.ToValidUTF8(out.Text, "\uFFFD") // what the log cannot hold is not what the model sees
	if g.reference != nil {
		out.Text = g.reference(out.Text)
	}
	if !out.Chosen || out.IsError {
		out.Text = core.Truncate(out.Text, cmp.Or(tool.MaxOutputChars, parts.agent.MaxToolOutputChars))
	}
	return core.Result{Tool: &out}
}

// call turns a tool's panic into a result: one broken tool must not take the run's record with it.
func (t *toolParts) call(ctx context.Context, in Invocation) (out spec.ToolResult) {
	defer func() {
		if p := recover(); p != nil {
			out = spec.ToolResult{IsError: true, Text: fmt.Sprintf("Tool %q broke: %v", t.Name, p)}
		}
	}()
	return t.Call(ctx, in)
}

// check holds a result that is no error against the tool's output schema.
func (t *toolParts) check(out spec.ToolResult) spec.ToolResult {
	if t.output == nil || out.IsError {
		return out
	}
	var vs []schemas.Violation
	if out.Data != nil {
		vs = t.output.validator.ValidateJSON(out.Data)
	} else {
		vs = t.output.validator.Validate(out.Text)
	}
	if len(vs) > 0 {
		return spec.ToolResult{IsError: true, Text: fmt.Sprintf("Invalid output for tool %q:%s", t.Name, bullets(vs))}
	}
	return out
}

// clip bounds a message, in runes.
func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
