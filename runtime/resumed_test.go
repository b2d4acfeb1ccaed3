package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
)

// torn is a log whose process may be killed: what was appended and not flushed is then lost, as a journal does that
// stores a step together, or but for some of it, as one does that writes line by line.
type torn struct {
	shelf // what is kept remains
	queue [][]byte
	some  func(n int) int // how many of the last records remain
}

func (m *torn) Append(record []byte) error {
	if m.left == 0 {
		m.kill()
		return errKilled
	}
	m.left--
	m.queue = append(m.queue, bytes.Clone(record))
	return nil
}

func (m *torn) kill() {
	m.queue = m.queue[:m.some(len(m.queue))]
	m.write()
}

func (m *torn) write() {
	for _, r := range m.queue {
		m.buf.Write(append(r, '\n'))
	}
	m.queue = nil
}

func (m *torn) Flush() error {
	if m.left == 0 {
		m.kill()
		return errKilled
	}
	m.write()
	return nil
}

func (m *torn) Close() error { return m.Flush() }

// dice is a world in which everything is drawn: the plan from a seed, and what each call comes to from its own words, so
// that a call which is made again comes to the same.
type dice struct {
	seed uint64
	mu   sync.Mutex
	acts map[string]int
	// patient is the attempt from which people answer whatever they are asked; granted are calls that they let be made again.
	patient, number int
	granted         map[string]bool
	used            int64 // tokens that models used, whether anybody heard of it or not
	// lends says that agents delegate, some of them to agents without a task. most is how many models were at work at once.
	lends    bool
	at, most int
}

func (d *dice) roll(words ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, words...)
	return rand.New(rand.NewPCG(d.seed, h.Sum64()))
}

func (d *dice) plan() *spec.Plan {
	r := d.roll("plan")
	n := 2 + r.IntN(4)
	p := team(n, 1+r.IntN(4),
		spec.PlanRule{Rule: spec.Rule{Name: "no", Tools: []string{"echo", "act"}, When: `has(input.text) && input.text == "no"`, Action: "deny"}, Source: "team"},
		spec.PlanRule{Rule: spec.Rule{Name: "m", Tools: []string{"echo", "act"}, When: `has(input.text) && input.text == "mark"`, Action: "warn", Mark: "m"}, Source: "team"},
		spec.PlanRule{Rule: spec.Rule{Name: "look", Tools: []string{"echo", "act"}, When: `has(input.text) && input.text == "ask"`, Action: "suspend", Mark: "m"}, Source: "team"},
		spec.PlanRule{Rule: spec.Rule{Name: "spot", Tools: []string{"echo", "act"}, When: `has(input.text) && input.text == "spot"`, Action: "ask", Mark: "m"}, Source: "team"},
		spec.PlanRule{Rule: spec.Rule{Name: "after", Tools: []string{"echo", "act"}, When: `"m" in marks && input.text == "late"`, Action: "deny"}, Source: "team"})
	price := spec.USD(1_000_000_000_000)
	p.Providers["p"] = spec.PlanProvider{Provider: spec.Provider{Kind: "scripted", Models: map[string]spec.ModelPrice{"m": {InputPer1M: &price, OutputPer1M: &price}}}}
	tools := d.tools()
	if d.lends {
		d.lend(p)
	}
	for i := range p.Agents {
		a := &p.Agents[i]
		a.Tools = []spec.Grant{{ToolInfo: tools[0].ToolInfo}, {ToolInfo: tools[1].ToolInfo}}
		if d.lends && d.roll("lends", i).IntN(4) > 0 {
			a.Tools = append(a.Tools, spec.Grant{ToolInfo: delegateTo(p.Agents)})
		}
		a.MaxOutputTokens, a.MaxToolConcurrency = 20+r.Int64N(60), 1+r.IntN(4)
		if r.IntN(4) == 0 {
			a.Timeout = spec.Duration(time.Duration(2+r.IntN(10)) * time.Second)
		}
		if r.IntN(4) == 0 {
			a.CallTimeout = spec.Duration(2500 * time.Millisecond)
		}
		if r.IntN(3) == 0 {
			a.OutputSchema = spec.Schema(`{"type":"object","required":["ok"]}`)
		}
		if r.IntN(3) == 0 {
			a.CompressToolResults = 5
		}
		switch small := d.roll("small", i); small.IntN(6) {
		case 0:
			a.ContextStrategy = &spec.ContextStrategy{Type: spec.ContextSlidingWindow, MaxTurns: 1 + small.IntN(2)}
		case 1:
			a.ContextStrategy = &spec.ContextStrategy{Type: spec.ContextCompact, MaxTokens: 1}
		case 2:
			a.LoopDetection = &spec.LoopDetection{MaxRepetitions: 2, Action: []string{spec.LoopWarn, spec.LoopTerminate}[small.IntN(2)]}
		}
		if r.IntN(4) == 0 {
			a.MaxTokenBudget = 1500 + r.Int64N(2000)
		}
		if i < n {
			for j := range i {
				if r.IntN(4) == 0 {
					p.Tasks[i].DependsOn = append(p.Tasks[i].DependsOn, p.Tasks[j].ID)
				}
			}
			if r.IntN(2) == 0 {
				p.Tasks[i].Role = a.Name
			}
		}
		if again := d.roll("retries", i); i < n && again.IntN(3) == 0 {
			t := &p.Tasks[i]
			t.MaxRetries, t.RetryDelay, t.RetryBackoff = 1+again.IntN(2), spec.Duration(again.Int64N(int64(3*time.Second))), 1
			t.Priority = spec.Priorities[again.IntN(4)]
		}
		if p.SharedMemory == nil && d.roll("memory").IntN(2) == 0 {
			p.SharedMemory = &spec.SharedMemory{}
		}
		if i < n && p.SharedMemory != nil && d.roll("memory", i).IntN(3) == 0 {
			p.Tasks[i].MemoryScope = spec.MemoryAll
		}
		if out := d.roll("outside", i); out.IntN(4) == 0 {
			a.Backend, a.Provider, a.Model, a.Tools, a.MaxTurns = &spec.Backend{Kind: "process", Command: "x"}, "", "", nil, 2
			a.Unmetered = []string{"", "allow"}[out.IntN(2)]
			if out.IntN(3) > 0 {
				a.Backend = &spec.Backend{Kind: spec.BackendACP, Command: "x", Capabilities: []string{spec.CapabilityFS}}
				a.Tools = []spec.Grant{{ToolInfo: permission(a.Backend)}, {ToolInfo: tools[0].ToolInfo}, {ToolInfo: tools[1].ToolInfo}}
			}
		}
	}
	if slices.ContainsFunc(p.Agents, func(a spec.PlanAgent) bool { return a.Backend.Asks() }) {
		p.Gates.Rules = append(p.Gates.Rules,
			spec.PlanRule{Rule: spec.Rule{Name: "again", Tools: []string{"act", "permission"}, When: `history.exists(c, c.toolName == "permission" && c.action == "allow") && size(history) > 3`, Action: "deny"}, Source: "team"},
			spec.PlanRule{Rule: spec.Rule{Name: "title", Tools: []string{"permission"}, When: `input.title == "ask"`, Action: "ask", Mark: "m"}, Source: "team"})
	}
	if r.IntN(2) == 0 {
		p.Governance = &spec.Governance{GovernanceIntent: "required"}
		for _, t := range p.Tasks {
			if t.Role != "" {
				p.Governance.RequiredRoles = append(p.Governance.RequiredRoles, t.Role)
			}
		}
		p.Budgets.ReserveForRequired = len(p.Governance.RequiredRoles) > 0
	}
	if r.IntN(3) == 0 {
		p.Approvals = &spec.PlanApprovals{Quorum: 1}
		if r.IntN(2) == 0 {
			p.Approvals.Plan = []spec.PlanRule{{Rule: spec.Rule{Name: "all", When: "true", Action: "suspend"}, Source: "team"}}
		}
		if r.IntN(2) == 0 {
			if p.Delegation == nil { // which would go past it
				p.Approvals.Dispatch = []spec.PlanRule{{Rule: spec.Rule{Name: "second", When: `input.assignee == "a2"`, Action: "ask"}, Source: "team"}}
			}
		}
	}
	if r.IntN(2) == 0 {
		p.Budgets.MaxTokenBudget = 1000 + r.Int64N(5000)
	}
	if r.IntN(4) == 0 {
		cost := spec.USD(2_000_000_000 + r.Int64N(8_000_000_000))
		p.Budgets.MaxCostBudget = &cost
	}
	if r.IntN(4) == 0 {
		p.Budgets.MaxDuration = spec.Duration(time.Duration(5+r.IntN(20)) * time.Second)
	}
	return p
}

// lend lets agents of a plan delegate, and adds two who work for others alone.
func (d *dice) lend(p *spec.Plan) {
	r := d.roll("lend")
	depth := 1 + r.IntN(3)
	p.Delegation = &spec.Delegation{MaxDelegationDepth: &depth}
	p.Scheduling.MaxConcurrency = 1 + r.IntN(5)
	if r.IntN(3) == 0 {
		p.SharedMemory = &spec.SharedMemory{}
	}
	for _, name := range []string{"h1", "h2"} {
		a := p.Agents[0]
		a.Name = name
		p.Agents = append(p.Agents, a)
	}
	for i := range p.Gates.Rules {
		p.Gates.Rules[i].Tools = []string{"echo", "act"}
	}
	for _, prompt := range []string{"no", "mark", "ask", "late"} {
		rule := spec.Rule{Name: "lend-" + prompt, Tools: []string{spec.DelegateTool}, When: fmt.Sprintf("input.prompt == %q", prompt), Action: "warn", Mark: "lent"}
		switch prompt {
		case "no":
			rule.Action, rule.Mark = "deny", ""
		case "ask":
			rule.Action = "suspend"
		case "late":
			rule.Action, rule.Mark, rule.When = "deny", "", `"m" in marks && input.prompt == "late"`
		}
		p.Gates.Rules = append(p.Gates.Rules, spec.PlanRule{Rule: rule, Source: "team"})
	}
}

// workOf says where a model is asked: a task's title, or a delegated run's, as its id.
func workOf(q *spec.ModelRequest) string {
	if id, lent := strings.CutPrefix(q.TaskTitle, core.DelegationTitle("")); lent {
		return id
	}
	return "t" + q.AgentName
}

// busy counts one more model at work, until the func is called.
func (d *dice) busy() func() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at++
	d.most = max(d.most, d.at)
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.at--
	}
}

func (d *dice) tools() toolMap {
	look := echo(func(ctx context.Context, in Invocation) spec.ToolResult {
		if !wait(ctx, d.roll("look", in.TaskID, in.ID, in.Input["n"])) {
			return spec.ToolResult{IsError: true, Text: "ended"}
		}
		text := fmt.Sprint(in.Input["text"])
		return spec.ToolResult{Text: "seen \xff " + text, FilesRead: []string{text},
			Attachments: []spec.Attachment{{Type: spec.AttachFile, MediaType: "text/plain", Filename: text, Data: []byte("page of " + text)}}}
	})
	look.ReadOnly = true
	act := echo(func(ctx context.Context, in Invocation) spec.ToolResult {
		d.mu.Lock()
		d.acts[fmt.Sprint(in.TaskID, in.ID, in.Input["n"])]++
		d.mu.Unlock()
		if !wait(ctx, d.roll("act", in.TaskID, in.ID, in.Input["n"])) {
			return spec.ToolResult{IsError: true, Text: "ended"}
		}
		return spec.ToolResult{Text: "done"}
	})
	act.Name, act.Consequential = "act", true
	return toolMap{look, act}
}

func (d *dice) known() []spec.ToolInfo {
	tools := d.tools()
	return []spec.ToolInfo{tools[0].ToolInfo, tools[1].ToolInfo}
}

// wait takes some time, often none, and says whether ctx let it.
func wait(ctx context.Context, r *rand.Rand) bool {
	select {
	case <-time.After(max(time.Duration(r.IntN(6)-2)*time.Second, 0) + time.Duration(r.IntN(1000))):
		return true
	case <-ctx.Done():
		return false
	}
}

func (d *dice) model() Model {
	return modelFunc(func(ctx context.Context, q *spec.ModelRequest) (*spec.ModelResponse, error) {
		defer d.busy()()
		if !whole(q) {
			return nil, fmt.Errorf("agent %s is asked without an attachment", q.AgentName)
		}
		who := q.AgentName
		if at := workOf(q); at != "t"+who {
			who += " " + at
		}
		r := d.roll("model", who, q.Turn)
		used := spec.Usage{Input: sizeOf(q) / 4, Output: q.MaxOutputTokens} // nearly what is estimated for a call that is lost
		busy := r.IntN(30) == 0
		if !busy {
			d.mu.Lock()
			d.used += used.Total()
			d.mu.Unlock()
		}
		if !wait(ctx, r) {
			return nil, ctx.Err()
		}
		resp := answerText(`{"ok":true}`)
		resp.Usage = &used
		if busy {
			return nil, &ProviderError{Info: spec.ErrorInfo{Kind: "provider", Message: "busy", HTTPStatus: 429, Retryable: true}}
		}
		switch kind := r.IntN(40); {
		case q.Turn == 4 || kind < 5:
		case kind < 6:
			resp.Finish = spec.FinishLength
		case kind < 10:
			resp.Message.Text = "no JSON"
		default:
			resp.Message.Text = ""
			for i := range 1 + r.IntN(3) {
				c := spec.ToolCall{ID: fmt.Sprintf("c%d", i), Name: []string{"echo", "act", "act", "none"}[r.IntN(4)]}
				text := []string{"a", "no", "mark", "late", "ask"}[r.IntN(5)]
				c.Arguments = fmt.Sprintf(`{"text":%q,"n":%d}`, text, q.Turn)
				if d.lends && r.IntN(2) == 0 {
					c.Name, c.Arguments = spec.DelegateTool, fmt.Sprintf(`{"target_agent":%q,"prompt":%q}`, []string{"h1", "h2", "h1", "a1", "a2", "a3", "x"}[r.IntN(7)], text)
				}
				resp.Message.ToolCalls = append(resp.Message.ToolCalls, c)
			}
		}
		return resp, nil
	})
}

// guest is an external agent that asks for one thing and another, some of them at once.
type guest struct {
	Model
	d *dice
}

func (g guest) Work(ctx context.Context, q *spec.ModelRequest, desk Desk) (*spec.ModelResponse, error) {
	r := g.d.roll("guest", q.AgentName, q.Turn)
	var all sync.WaitGroup
	for i := range r.IntN(6) {
		text, ask := []string{"a", "no", "mark", "late", "ask", "spot"}[r.IntN(6)], r.IntN(3)
		one := func() {
			switch wait(ctx, g.d.roll("pause", q.AgentName, q.Turn, i)); ask {
			case 0:
				desk.Permit(ctx, fmt.Sprint("p", i), map[string]any{"title": text, "kind": []string{"read", "edit"}[i%2], "optionKinds": []any{}})
			case 1:
				desk.Do(ctx, "echo", map[string]any{"text": text, "n": q.Turn})
				desk.Tell(spec.Activity{ID: "x", Title: text})
			case 2:
				desk.Do(ctx, "act", map[string]any{"text": text, "n": q.Turn})
			}
		}
		if r.IntN(2) == 0 {
			all.Go(one)
		} else {
			one()
		}
	}
	all.Wait()
	resp, err := g.Complete(ctx, q)
	if cost := spec.USD(r.Int64N(3_000_000_000)); resp != nil && r.IntN(3) > 0 {
		resp.Cost = &cost
	}
	return resp, err
}

// program is an external agent: what it does may last, and it reports nothing of it.
func (d *dice) program(a *spec.PlanAgent) (Model, io.Closer, error) {
	m, c, err := d.process()
	if a.Backend.Kind == spec.BackendACP {
		m = guest{m, d}
	}
	return m, c, err
}

func (d *dice) process() (Model, io.Closer, error) {
	return modelFunc(func(ctx context.Context, q *spec.ModelRequest) (*spec.ModelResponse, error) {
		defer d.busy()()
		r := d.roll("program", workOf(q), q.Turn)
		d.mu.Lock()
		d.acts[fmt.Sprintf("%s/%d/model", workOf(q), q.Turn)]++
		d.mu.Unlock()
		if !wait(ctx, r) {
			return nil, ctx.Err()
		}
		switch r.IntN(10) {
		case 0:
			return nil, &ProviderError{Info: spec.ErrorInfo{Kind: "provider", Message: "exited with code 3", Retryable: true}}
		case 1:
			return &spec.ModelResponse{Finish: spec.FinishStop}, nil
		}
		return &spec.ModelResponse{Message: spec.Message{Text: `{"ok":true}`}, Finish: spec.FinishStop}, nil
	}), io.NopCloser(nil), nil
}

// whole says that each page that was looked at is there as it was given.
func whole(q *spec.ModelRequest) bool {
	for _, m := range q.Messages {
		if name, ok := strings.CutPrefix(m.Text, "seen \uFFFD "); ok && (len(m.Attachments) != 1 || string(m.Attachments[0].Data) != "page of "+name) {
			return false
		}
	}
	return true
}

func sizeOf(q *spec.ModelRequest) (n int64) {
	for _, t := range q.Tools {
		n += int64(len(t.Name) + len(t.Description) + len(t.InputSchema))
	}
	for _, m := range q.Messages {
		n += int64(len(m.Text))
	}
	return n
}

// Ask answers some requests at once, some in a later attempt, and some with no.
func (d *dice) Ask(ctx context.Context, q spec.ApprovalRequest, action string) (spec.ApprovalRecord, error) {
	r := d.roll("person", q.ID)
	rec := spec.ApprovalRecord{RequestID: q.ID, Scope: q.Scope, Boundary: q.Boundary, RequestHash: q.RequestHash, Decision: spec.ApprovalPending}
	if !wait(ctx, r) {
		return rec, ctx.Err()
	}
	if when := r.IntN(4); d.number < min(when, d.patient) {
		return rec, nil
	}
	vote := spec.ApprovalVote{Verdict: spec.VerdictApprove, Reviewer: "r", DecidedAt: time.UnixMilli(1000).UTC()}
	if r.IntN(4) == 0 {
		vote.Verdict = spec.VerdictReject
	}
	if r.IntN(20) == 0 {
		return rec, errors.New("the desk is closed")
	}
	out := policies.ConcludeApproval(d.plan().Approvals, "", &q, []spec.ApprovalVote{vote}, time.Now())
	if strings.Contains(q.Boundary, "/again/") && out.Decision == spec.ApprovalApproved {
		var c spec.ApprovalContent
		json.Unmarshal(q.Content, &c)
		d.mu.Lock()
		if first, _, _ := strings.Cut(q.Boundary, "/again/"); q.Scope == spec.ScopeDispatch {
			d.granted[regexp.MustCompile(`/try/\d+`).ReplaceAllString(first, "")] = true // which attempt it is nobody outside sees
			d.granted[c.TaskID+"act-"] = true                                            // it may ask for them again
		} else {
			d.granted[c.TaskID+c.ToolCallID] = true
		}
		d.mu.Unlock()
	}
	return out, nil
}

// Here answers most of what is asked on the spot.
func (d *dice) Here(ctx context.Context, q spec.ApprovalRequest) (spec.ApprovalRecord, error) {
	r := d.roll("here", q.ID)
	if !wait(ctx, r) {
		return spec.ApprovalRecord{}, ctx.Err()
	}
	vote := spec.ApprovalVote{Verdict: []string{spec.VerdictApprove, spec.VerdictApprove, spec.VerdictReject}[r.IntN(3)], Reviewer: "r", DecidedAt: time.UnixMilli(1000).UTC()}
	if r.IntN(10) == 0 {
		return spec.ApprovalRecord{}, ErrNobodyHere
	}
	return policies.ConcludeApproval(d.plan().Approvals, "", &q, []spec.ApprovalVote{vote}, time.Now()), nil
}

// attempt drives the run from a log until it ends, is stopped after some records or is killed after some.
func (d *dice) attempt(t *testing.T, log *torn, stopAfter int, grace time.Duration) (*Result, error) {
	t.Helper()
	var past *Past
	if log.buf.Len() > 0 {
		var err error
		if past, err = ReadPast(bytes.NewReader(log.buf.Bytes())); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	drain, seen := make(chan struct{}), 0
	o := Options{RunID: "run_test", Models: func(string) (Model, error) { return d.model(), nil }, Tools: d.tools(), Past: past, Journal: log, People: d, Backends: d.program,
		Known: d.known(), Drain: drain, Interrupted: func() int { return ExitInterrupted },
		Tree: func(ctx context.Context, a *spec.PlanAgent) (string, error) {
			wait(ctx, d.roll("tree", a.Name))
			return "sha256:tree", nil
		}}
	o.OnEvent = func(*spec.Event) {
		if seen++; seen == stopAfter {
			close(drain)
			time.AfterFunc(grace, cancel)
		}
	}
	r, err := New(d.plan(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r.Run(ctx)
}

// However often a run is stopped or killed, and wherever: it goes on, nothing that changes something happens twice, all
// that models may have used is counted, and the last receipt is the one that the log tells.
func TestInterruptedAnywhere(t *testing.T) {
	ends := interruptedAnywhere(t, 500, false)
	if ends["waits"] < 100 || ends["started again"] < 10 || ends["requests before a kill"] < 10 || ends["asked on the spot"] < 10 || ends[spec.StatusRejected] < 10 || ends[spec.StatusOK] < 10 {
		t.Errorf("the dice show too little: %v", ends)
	}
}

// The same holds where agents delegate: to each other, to agents without a task, in circles, and with one place or several.
func TestInterruptedDelegation(t *testing.T) {
	ends := interruptedAnywhere(t, 300, true)
	if ends["waits"] < 100 || ends["started again"] < 5 || ends[spec.StatusOK] < 10 || ends["lent completed"] < 100 || ends["lent skipped"] < 10 || ends["lent failed"] < 10 || ends["deep"] < 10 {
		t.Errorf("the dice show too little: %v", ends)
	}
}

func interruptedAnywhere(t *testing.T, seeds uint64, lends bool) map[string]int {
	ends := map[string]int{}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			d := &dice{seed: seed, lends: lends, acts: map[string]int{}, granted: map[string]bool{}, patient: 8}
			r := d.roll("attempts")
			log := &torn{shelf: *newShelf(0)}
			if r.IntN(2) == 0 {
				log.some = func(int) int { return 0 }
			} else {
				log.some = func(n int) int { return r.IntN(n + 1) }
			}
			res, attempts, waits := (*Result)(nil), 0, 0
			for ; ; attempts++ {
				d.number = attempts
				log.left, log.queue = -1, nil
				stop := 0
				switch r.IntN(3) {
				case 0:
					log.left = 3 + r.IntN(30)
				case 1:
					stop = 1 + r.IntN(30)
				}
				if attempts == 8 {
					log.left, stop = -1, 0
				}
				var err error
				res, err = d.attempt(t, log, stop, time.Duration(r.IntN(4))*time.Second)
				if errors.Is(err, ErrDiverged) {
					t.Fatalf("seed %d, attempt %d: %v\n%s", seed, attempts+1, err, brief(log.buf.String()))
				}
				killed := log.left == 0
				if err != nil && !killed {
					t.Fatalf("seed %d: %v\n%s", seed, err, brief(log.buf.String()))
				}
				if !killed {
					d.judge(t, res, log)
					waits += len(res.Receipt.PendingApprovals)
					if past, err := ReadPast(bytes.NewReader(log.buf.Bytes())); err != nil {
						t.Fatal(err)
					} else if past.Ended || !res.Stopped && !res.Suspended {
						break
					}
				}
				time.Sleep(time.Hour)
			}
			ends[string(res.Receipt.Status.Code)]++
			for _, l := range res.Receipt.Delegations {
				if ends["lent "+l.Status]++; strings.Count(l.ID, "/call/") > 1 {
					ends["deep"]++
				}
			}
			if d.most > d.plan().Scheduling.MaxConcurrency {
				t.Errorf("seed %d: %d at once", seed, d.most)
			}
			ends["waits"] += waits
			for line := range strings.Lines(log.buf.String()) {
				if strings.Contains(line, `"unsure":true`) && strings.Contains(line, `"permits":`) {
					ends["requests before a kill"]++
				}
			}
			for _, a := range res.Receipt.ApprovalDecisions {
				if strings.Contains(a.Boundary, "/permit/") {
					ends["asked on the spot"]++
				}
			}
			for call, n := range d.acts {
				if n > 1 && strings.HasSuffix(call, "/model") {
					ends["started again"]++
				}
				if n > 1+d.retries(call) && !d.allowed(call) {
					t.Errorf("seed %d: %s ran %d times", seed, call, n)
				}
			}
			if got := res.Receipt.TotalTokens.Total(); got < d.used {
				t.Errorf("seed %d: %d attempts: %d tokens on the receipt, %d used\n%s", seed, attempts, got, d.used, brief(log.buf.String()))
			}
			if past, err := ReadPast(bytes.NewReader(log.buf.Bytes())); err != nil || !past.Ended {
				return
			}
			log.left, log.queue = -1, nil
			length := log.buf.Len()
			if again, err := d.attempt(t, log, 0, 0); err != nil || !bytes.Equal(again.Bytes, res.Bytes) || log.buf.Len() != length {
				t.Errorf("seed %d: told again, the receipt is another one: %v", seed, err)
				if again != nil {
					t.Log(cmp.Diff(string(res.Bytes), string(again.Bytes)))
				}
			}
		})
		if t.Failed() {
			return ends
		}
	}
	return ends
}

// retries is how often the task of a call may begin again.
func (d *dice) retries(call string) (n int) {
	for _, t := range d.plan().Tasks {
		if strings.HasPrefix(call, t.ID) {
			n = max(n, t.MaxRetries)
		}
	}
	return n
}

// allowed says that people let a call be made again.
func (d *dice) allowed(call string) bool {
	for c := range d.granted {
		if strings.HasPrefix(call, c) {
			return true
		}
	}
	return false
}

func (d *dice) judge(t *testing.T, res *Result, log *torn) {
	t.Helper()
	if strings.Contains(string(res.Bytes), "is asked without an attachment") || strings.Contains(string(res.Bytes), "ATTACHMENT_LOST") {
		t.Fatalf("seed %d: an attachment is gone\n%s", d.seed, res.Bytes)
	}
	v := Gate(res.Bytes, GateOptions{Plan: d.plan(), Log: bytes.NewReader(log.buf.Bytes()), AllowNotApplicable: true, Known: d.known()})
	if slices.ContainsFunc(v.Reasons, func(r GateReason) bool { return r.Code == "integrity" && r.Hint != hintFolders }) {
		t.Fatalf("seed %d: the gate and the plan: %+v\n%s\n%s", d.seed, v.Reasons, brief(log.buf.String()), res.Bytes)
	}
	if v.Integrity != IntegrityChain {
		t.Fatalf("seed %d: the gate and the log: %+v\n%s\n%s", d.seed, v.Reasons, brief(log.buf.String()), res.Bytes)
	}
}

// brief is a log for a person.
func brief(log string) string {
	var b strings.Builder
	VerifyLog(strings.NewReader(log), func(e *spec.Event) error {
		fmt.Fprintln(&b, e.Seq, e.At, e.Kind, e.ID, clip(string(e.Data), 230))
		return nil
	})
	return b.String()
}
