package core

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// worker is one agent at work on one task.
type worker struct {
	*run
	t      *task
	agent  *spec.PlanAgent
	ledger *policies.Ledger
	price  spec.Price

	messages  []spec.Message
	bytes     int64  // of the request so far, for the estimate
	digest    string // of the request so far, each message chained onto those before it
	tools     []spec.ToolInfo
	said      repeats
	starts    []int // of the turns that are in the conversation, each with an answer of the model
	short     int   // messages before this index have been compacted or looked at
	corrected bool  // the one corrective retry for a bad final answer was used
	timedOut  bool
	fresh     int                // messages before this index have been compressed or looked at
	seen      map[string]bool    // files read
	history   []spec.HistoryCall // every call that reached the gate, as it was judged
	path      string             // before the names of its effects: the task's id, and which attempt it is
	turns     int                // that earlier attempts took
	caller    *worker            // whose delegate this one is. nil: the task is its own
	chain     []string           // the agents that delegated to each other down to this one, itself included
	running   int                // calls of the turn that are being made
	asking    int                // those that people are being asked about
}

// work runs one task to its end.
func (r *run) work(f Flow, t *task) {
	w := r.worker(t)
	if !r.dispatched(f, t) || !w.briefed(f) {
		return
	}
	for w.work(f); w.retries(f); w.work(f) {
	}
	if t.Status == spec.TaskCompleted {
		r.keep(f, t.Task.ID, spec.MemoryEntry{Key: fmt.Sprintf("%s/task:%s:result", w.agent.Name, t.Task.ID), Agent: w.agent.Name, Success: true}, t)
	}
	r.note(f, t)
	t.EndedAt = r.now
}

// work takes the task from its start to the reason for its end.
func (w *worker) work(f Flow) {
	r, t := w.run, w.t
	t.Status = spec.TaskInProgress
	t.Attempts++
	r.begun(f, w)
	if t.StartedAt == 0 {
		t.StartedAt = r.now
	}
	if t.Task.Role != "" {
		r.ledger.Release(t.Task.Role)
		if w.agent.Acts() && t.Attempts == 1 {
			r.tree(f, t, t.Task.ID)
		}
	}
	inner, stop := w.timeout(f)
	w.loop(inner)
	stop()
	switch t.StopReason {
	case spec.StopCompleted:
		t.Status = spec.TaskCompleted
	case spec.StopSuspended: // it is still at work
	default:
		t.Status = spec.TaskFailed
	}
}

func (r *run) worker(t *task) *worker {
	w := r.fresh(t, r.ledger)
	w.chain = []string{w.agent.Name}
	for _, id := range t.Task.DependsOn {
		w.mark(r.byID(id).Marks)
	}
	if t.Task.MemoryScope == spec.MemoryAll {
		w.mark(r.memory.marks)
	}
	return w
}

// fresh is a task's agent before it was told anything. What it uses counts in the ledger too.
func (r *run) fresh(t *task, ledger *policies.Ledger) *worker {
	a := r.agents[t.Task.Assignee]
	w := &worker{run: r, t: t, agent: a, ledger: ledger, path: t.Task.ID}
	if a.MaxTokenBudget > 0 {
		w.ledger = ledger.Child(a.MaxTokenBudget)
	}
	w.price, t.Priced = r.plan.Price(a)
	t.Priced = t.Priced || w.billed()
	for _, g := range a.Tools {
		w.tools = append(w.tools, g.ToolInfo)
	}
	w.opened()
	return w
}

// opened begins a conversation.
func (w *worker) opened() {
	a := w.agent
	w.starts, w.short = nil, 0
	w.messages, w.bytes, w.fresh, w.said, w.corrected, w.timedOut, w.seen = nil, int64(len(a.SystemPrompt)), 0, repeats{}, false, false, nil
	for _, t := range w.tools {
		w.bytes += int64(len(t.Name) + len(t.Description) + len(t.InputSchema))
	}
	w.digest = canon.Digest("request", []byte(a.Name+"\x00"+a.Provider+"\x00"+a.Model+"\x00"+a.SystemPrompt))
}

// mark adds marks to the task. They never go away.
func (w *worker) mark(marks []string) {
	for _, m := range marks {
		if !slices.Contains(w.t.Marks, m) {
			w.t.Marks = append(w.t.Marks, m)
		}
	}
}

// situation is what rules can see of what came before. Nobody may keep it: a call that waited for a person changes in the
// history once it is decided.
func (w *worker) situation() spec.Situation {
	recent := w.history[max(len(w.history)-policies.MaxHistory, 0):]
	return spec.Situation{Marks: slices.Clip(w.t.Marks), History: slices.Clip(recent), Budget: w.ledger.Remaining()}
}

// timeout ends the agent's work on this task, and nothing else, when its own time is up.
func (w *worker) timeout(f Flow) (Flow, func()) {
	if w.agent.Timeout <= 0 {
		return f, func() {}
	}
	inner, cancel := f.WithCancel()
	timer, stop := f.WithCancel()
	timer.Go(w.path+"/timeout", func(f Flow) {
		res := f.Do(&Effect{Kind: Timer, ID: w.path + "/timeout", TaskID: w.t.Task.ID, Delay: w.agent.Timeout})
		if !res.Cancelled {
			w.clock(res)
			w.timedOut = true
			cancel()
		}
	})
	return inner, stop
}

// loop takes turns until there is a reason to stop, which it leaves in the task.
func (w *worker) loop(f Flow) {
	for turn := 1; ; turn++ {
		if turn > w.agent.MaxTurns {
			w.end(spec.StopMaxTurns, fmt.Sprintf("no final answer after %d turns", w.agent.MaxTurns))
			return
		}
		w.compress()
		w.fit()
		hold, ok := w.reserve(f)
		if !ok {
			return
		}
		resp := w.ask(f, turn, hold)
		if resp == nil || w.answered(f, turn, hold, resp) {
			return
		}
	}
}

// reserve waits for tokens held by calls in flight, which always settle. False: the task has ended.
func (w *worker) reserve(f Flow) (policies.Hold, bool) {
	ask := policies.Ask{Output: w.agent.MaxOutputTokens, Input: w.bytes/3 + 1, Price: w.price, Spends: w.billed()}
	hold, answer := w.ledger.Reserve(ask)
	for answer == policies.Wait && !w.over() {
		f.Await(func() bool { return !w.ledger.Busy(ask) || w.over() })
		hold, answer = w.ledger.Reserve(ask)
	}
	switch {
	case w.over() && answer != policies.Granted:
		w.endCancelled()
	case answer == policies.NoTokens:
		w.endBudget(w.tokenCeiling(), "no output token remains in the token budget")
	case answer == policies.NoMoney:
		w.endBudget("cost", "no output token remains in the cost budget")
	default:
		return hold, true
	}
	return hold, false
}

// over says that nothing this task asks for will be done any more.
func (w *worker) over() bool {
	return w.timedOut || w.caller != nil && w.caller.over() || w.stop == "duration" || w.stop == StopCancelled || w.stop == StopSuspended
}

// ask makes one model call and settles it. nil: the task has ended.
func (w *worker) ask(f Flow, turn int, hold policies.Hold) *spec.ModelResponse {
	w.t.Turns = w.turns + turn
	call := Effect{Kind: ModelCall, ID: fmt.Sprintf("%s/%d/model", w.path, turn), TaskID: w.t.Task.ID, AgentName: w.agent.Name, Timeout: w.agent.CallTimeout,
		Digest: canon.Digest("request", fmt.Appendf(nil, "%s %d", w.digest, hold.Output)),
		Request: &spec.ModelRequest{AgentName: w.agent.Name, TaskTitle: w.t.Task.Title, Turn: turn, Model: w.agent.Model,
			System: w.agent.SystemPrompt, Messages: slices.Clip(w.messages), Tools: w.tools,
			MaxOutputTokens: hold.Output, Temperature: w.agent.Temperature}}
	w.sit(&call)
	res := f.Do(&call)
	w.requests(&res)
	for first, again := call.ID, 1; res.Unsure; again++ {
		w.ledger.Settle(hold, spec.Usage{}, 0) // who waits for a place must hold no tokens, for which those at work may wait
		hold = policies.Hold{}
		if call.ID = fmt.Sprintf("%s/again/%d", first, again); !w.restart(f, call.ID) {
			res.Cancelled = w.over()
			break
		}
		var ok bool
		if hold, ok = w.reserve(f); !ok {
			return nil
		}
		next := call
		w.sit(&next)
		res = f.Do(&next)
		w.requests(&res)
	}
	w.clock(res)
	w.settle(hold, res)
	switch {
	case res.Cancelled:
		w.endCancelled()
	case res.Err != nil:
		w.t.Err = res.Err
		reason := spec.StopError
		if res.Err.Kind == "timeout" {
			reason = spec.StopTimeout
		}
		w.end(reason, res.Err.Message)
	default:
		return res.Model.Response
	}
	return nil
}

// settle counts what a call used, failed attempts included. What a server does not report is estimated, and said so.
func (w *worker) settle(hold policies.Hold, res Result) {
	var used spec.Usage
	if m := res.Model; m != nil {
		w.t.ModelCalls += m.Attempts
		used = m.Wasted
		for range m.Repeated {
			used = used.Add(w.estimate(hold.Output))
		}
		if r := m.Response; r != nil {
			used = used.Add(w.usage(r))
			if r.Model != "" && !slices.Contains(w.t.Models, r.Model) {
				w.t.Models = append(w.t.Models, r.Model)
			}
		} else if m.Wasted == (spec.Usage{}) && Lost(res) && !res.Unsure {
			used = used.Add(w.estimate(hold.Output))
		}
	}
	cost := w.price.Cost(used)
	if w.billed() {
		cost = w.bill(&res)
	}
	w.t.Tokens = w.t.Tokens.Add(used)
	w.t.Cost = spec.AddCapped(w.t.Cost, cost)
	w.ledger.Settle(hold, used, cost)
}

// Lost says that a model call ended without an answer after it may have been worked on: it is paid for, whoever counts.
func Lost(res Result) bool {
	return res.Cancelled && !res.Model.Idle || res.Err != nil && (res.Err.Kind == "timeout" || res.Err.Code == "INCOMPLETE")
}

func (w *worker) usage(r *spec.ModelResponse) spec.Usage {
	if r.Usage != nil {
		return *r.Usage
	}
	w.t.Unmetered = true
	out := len(r.Message.Text) + len(r.Message.Reasoning)
	for _, c := range r.Message.ToolCalls {
		out += len(c.Name) + len(c.Arguments)
	}
	return w.estimate(int64(out)/3 + 1)
}

// estimate stands in for usage that nobody reported: the request at three bytes a token.
func (w *worker) estimate(output int64) spec.Usage {
	w.t.Estimated = true
	return spec.Usage{Input: w.bytes/3 + 1, Output: output}
}

// answered deals with one answer. True: the task has ended.
func (w *worker) answered(f Flow, turn int, hold policies.Hold, resp *spec.ModelResponse) bool {
	m := resp.Message
	m.Role = spec.RoleAssistant
	switch resp.Finish {
	case spec.FinishRefused:
		return w.end(spec.StopRefused, "the model refused or its answer was filtered")
	case spec.FinishLength:
		w.refuseAll(m.ToolCalls, "cut", "the answer was cut at the output limit")
		if hold.Cut {
			return w.endBudget(w.tokenCeiling(), "the answer was cut at what remained of the budget")
		}
		return w.end(spec.StopLength, "the answer was cut at the output limit")
	}
	if w.unmetered() {
		return w.endBudget("unmetered", "the provider reports no usage and a ceiling is in force")
	}
	if w.billed() && !w.t.Priced && w.in.Budgets.MaxCostBudget != nil && w.agent.Unmetered != "allow" {
		return w.endBudget("unmetered", "the agent does not say what its work cost and a ceiling is in force")
	}
	w.say(m)
	if len(m.ToolCalls) == 0 {
		return w.final(m.Text)
	}
	if w.spentCeiling() != "" {
		w.refuseAll(m.ToolCalls, "budget", "not run: budget exhausted")
		return w.endBudget(w.spentCeiling(), "the budget was used up on a turn that asked for tools")
	}
	warning, ends := w.looping(&m)
	if ends {
		return true
	}
	w.calls(f, turn, m.ToolCalls)
	if w.over() {
		return w.endCancelled()
	}
	if warning != "" {
		w.say(spec.Message{Role: spec.RoleUser, Text: warning})
	}
	return false
}

// unmetered says that a ceiling cannot be kept because the provider reports nothing, and nobody allowed that.
func (w *worker) unmetered() bool {
	ceiling := w.in.Budgets.MaxTokenBudget > 0 || w.in.Budgets.MaxCostBudget != nil && !w.billed()
	for c := w; c != nil; c = c.caller {
		ceiling = ceiling || c.agent.MaxTokenBudget > 0
	}
	return w.t.Unmetered && ceiling && w.agent.Unmetered != "allow"
}

// spentCeiling names the ceiling that was crossed or reached, so that no further turn could follow the tools.
func (w *worker) spentCeiling() string {
	if c := w.run.ledger.Exhausted(); c != "" {
		return c
	}
	for ; w != nil; w = w.caller {
		if w.ledger != w.run.ledger && w.ledger.Exhausted() != "" {
			return "agent"
		}
	}
	return ""
}

// tokenCeiling says whose tokens ran out: the run's, or the agent's own.
func (w *worker) tokenCeiling() string {
	if w.ledger != w.run.ledger && w.run.ledger.Exhausted() == "" {
		return "agent"
	}
	return "tokens"
}

// final checks the last answer. A bad one gets one corrective retry.
func (w *worker) final(text string) bool {
	check := w.in.Answers[w.agent.Name]
	w.t.Text = text
	if check == nil {
		if strings.TrimSpace(text) == "" && w.agent.Backend == nil { // a program that ends well may have nothing to say
			return w.end(spec.StopEmpty, "the final answer is empty")
		}
		return w.end(spec.StopCompleted, "")
	}
	value, problem := check(text)
	switch {
	case problem == "":
		w.t.Structured = value
		return w.end(spec.StopCompleted, "")
	case w.corrected:
		w.t.Err = &spec.ErrorInfo{Kind: "validation", Code: "STRUCTURED_OUTPUT_VALIDATION_FAILED", Message: problem}
		return w.end(spec.StopError, "the final answer does not fit outputSchema: "+problem)
	}
	w.corrected = true
	w.say(spec.Message{Role: spec.RoleUser, Text: "Your answer does not fit the required output schema: " + problem +
		"\nAnswer again with only the JSON value, without any other text."})
	return false
}

// end leaves the reason in the task. It gives true, so that a caller can return it.
func (w *worker) end(reason spec.StopReason, cause string) bool {
	w.t.StopReason, w.t.Cause = reason, cause
	return true
}

// endBudget ends the task on a ceiling: tokens, cost or duration of the run, agent for the agent's own tokens, or
// unmetered.
func (w *worker) endBudget(ceiling, cause string) bool {
	w.t.Ceiling = ceiling
	return w.end(spec.StopBudget, cause)
}

func (w *worker) endCancelled() bool {
	switch {
	case w.timedOut:
		w.t.Err = &spec.ErrorInfo{Kind: "timeout", Code: "AGENT_TIMEOUT", Message: "the agent's timeout has passed"}
		return w.end(spec.StopTimeout, "the agent's timeout has passed")
	case w.stop == "duration":
		return w.endBudget("duration", "the run's time is up")
	case w.stop == StopSuspended:
		return w.end(spec.StopSuspended, "it waits for a person's approval")
	case w.stop == "" && w.caller != nil && w.caller.over():
		return w.end(spec.StopCancelled, "the agent that it works for has run out of time")
	}
	w.halt(StopCancelled)
	return w.end(spec.StopCancelled, "the run was cancelled")
}

// say adds a message to the conversation and chains it onto the request's digest: nothing that has grown is hashed or
// counted again.
func (w *worker) say(m spec.Message) {
	if m.Role == spec.RoleAssistant {
		w.starts = append(w.starts, len(w.messages))
	}
	w.messages = append(w.messages, m)
	b := encoded(&m)
	w.bytes += int64(len(b)) + attached(&m)
	w.digest = canon.Chain(w.digest, b)
}

func encoded(m *spec.Message) []byte {
	b, err := json.Marshal(m)
	if err != nil { // plain strings and booleans cannot fail to encode
		b = []byte(err.Error())
	}
	return b
}

// size is what a message counts for the estimate, in bytes.
func size(m *spec.Message) int64 { return int64(len(encoded(m))) + attached(m) }

// compress replaces tool results the model has already seen by a note. It looks at each message once: the newest
// results stay until newer ones have come.
func (w *worker) compress() {
	limit := int(w.agent.CompressToolResults)
	if limit <= 0 {
		return
	}
	end := len(w.messages)
	for end > 0 && w.messages[end-1].Role == spec.RoleTool {
		end--
	}
	for i := w.fresh; i < end; i++ {
		m := &w.messages[i]
		words, n := "characters", int64(runes(m.Text))
		if len(m.Attachments) > 0 {
			words, n = "estimated characters", n+attached(m)
		}
		if m.Role == spec.RoleTool && !m.IsError && n >= int64(limit) && m.ToolName != spec.DelegateTool {
			before := size(m)
			m.Text, m.Attachments = fmt.Sprintf("[Tool output compressed: %d %s, already processed]", n, words), nil
			w.bytes -= before - size(m)
			w.digest = canon.Chain(w.digest, []byte("compressed"))
		}
	}
	w.fresh = max(w.fresh, end)
}
