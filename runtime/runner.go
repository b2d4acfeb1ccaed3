package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/schemas"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/redact"
)

// Options is what a run gets from outside. Models, Tools and RunID are required.
type Options struct {
	RunID string
	Build spec.Build
	// Models gives the model of a provider, by its name in the plan. It is called once for each provider at work.
	Models func(provider string) (Model, error)
	Tools  ToolSource
	Known  []spec.ToolInfo // every tool that exists, for compiling rules
	// Backends opens an external agent as a model: it answers the last message of a user, and asks for no tools. The closer
	// is called once, at the end of the run. nil: there are none.
	Backends func(*spec.PlanAgent) (Model, io.Closer, error)
	// Past is what an earlier attempt of the run has recorded in Journal. nil: the run starts.
	Past *Past
	// Drift says what has changed of the plan's inputs since the first attempt, and was accepted; the log keeps it.
	Drift []string
	// Told sees every effect of the past with its result, in order. nil: nobody does.
	Told func(*core.Effect, *core.Result)
	// Author is who started the run, by their own word; a later attempt keeps it. Empty: nobody says.
	Author string
	// People are asked where a rule wants an approval. nil: nobody can be, and what needs one does not run.
	People Approver
	// Journal keeps the events. nil: they are chained for the receipt and kept nowhere.
	Journal Journal
	// Ceilings narrow the plan's; zero fields change nothing. They never widen.
	Ceilings spec.Budgets
	// Tree gives the digest of the files in an agent's folder. nil: trees are not looked at, and a required role with
	// tools then has no evidence of what it saw.
	Tree func(ctx context.Context, agent *spec.PlanAgent) (string, error)
	// Reference puts references in place of resolved secrets in the log, which otherwise holds exactly what the model
	// saw. nil: there are none.
	Reference func(string) string
	// Withhold takes what looks like a secret out of the log too: the run then goes on between tasks only, and no call waits.
	// A run that was begun so needs one to go on. nil: the log holds what Reference leaves.
	Withhold *redact.Redactor
	// Redact takes secrets, and what looks like one, out of text that leaves the process. nil: nothing is taken out.
	Redact func(string) string
	// Machine adjusts the plan's enforcement map to what this machine can keep. nil: no adjustment.
	Machine func(spec.Control) spec.Control
	// Drain, when closed, lets effects in flight end and starts none. nil: never.
	Drain <-chan struct{}
	// Interrupted gives the exit code of the signal that closed Drain.
	Interrupted func() int
	// Finished is asked once every task has completed. An error fails the run, such as a cassette that was not played to
	// its end. nil: nothing more is asked.
	Finished func() error
	// Retrace are the words that name the team, and the policies above it, to oma policy check. nil: the team's file.
	Retrace           []string
	RequireGovernance bool
	FailOnDenied      bool
	// Watch sees every effect when it starts (nil result) and ends, on the engine's goroutine. nil: nobody watches.
	Watch func(*core.Effect, *core.Result)
	// OnEvent sees every event after it was recorded. nil: nobody does.
	OnEvent func(*spec.Event)
	Clock   func() time.Time // nil: time.Now
	Log     hclog.Logger     // nil: none
}

// Runner drives one plan once.
type Runner struct {
	plan    *spec.Plan
	o       Options
	budgets spec.Budgets
	rules   *policies.Set
	bounds  map[string]*policies.Set // by scope
	release *policies.Release
	mask    func(string) string
	agents  map[string]*spec.PlanAgent
	schemas map[string]*schema // by text
}

// Result is a receipt with what it vouches for.
type Result struct {
	Receipt *spec.Receipt
	Bytes   []byte // of the receipt, sealed
	// Outputs are the final texts of the tasks nobody depends on, in the plan's order.
	Outputs []Output
	// Stopped says that something was left undone because the run was told to stop, or that its log failed, whatever else
	// went wrong, and Suspended that it waits for a person: it can go on.
	Stopped, Suspended bool
}

// Output is the final answer of one task.
type Output struct {
	TaskID string `json:"taskId"`
	Agent  string `json:"agent"`
	Text   string `json:"text"`
}

// New prepares a run. Rules are compiled again from the plan; an error means the plan does not fit this program.
func New(plan *spec.Plan, o Options) (*Runner, error) {
	r := &Runner{plan: plan, o: o, mask: o.Redact, budgets: Narrow(plan.Budgets, o.Ceilings), agents: plan.ByName(), schemas: map[string]*schema{}}
	if r.mask == nil {
		r.mask = func(s string) string { return s }
	}
	if r.o.Clock == nil {
		r.o.Clock = time.Now
	}
	if r.o.Log == nil {
		r.o.Log = hclog.NewNullLogger()
	}
	if r.o.Journal == nil {
		r.o.Journal = noJournal{}
	}
	var err error
	if r.o.Known, err = beside(o.Known, ToolsOf(plan)); err != nil {
		return nil, err
	}
	if err := sound(plan); err != nil {
		return nil, err
	}
	if r.rules, err = rulesOf(plan, r.o.Known); err != nil {
		return nil, err
	}
	if r.bounds, err = boundsOf(plan); err != nil {
		return nil, err
	}
	release, diags := policies.CompileRelease(plan.Release, roleSchemas(plan), "release.require")
	if diags.HasErrors(false) {
		return nil, fmt.Errorf("%w: its release requirements do not compile: %s", ErrStale, diags[0].Message)
	}
	r.release = release
	if p := o.Past; p != nil && p.ref.Events == 0 { // it ended before it had recorded anything
		r.o.Past = nil
	} else if p != nil {
		if err := p.fits(plan, o.RunID); err != nil {
			return nil, err
		}
		if p.Redacted != (o.Withhold != nil) && !p.lenient {
			return nil, fmt.Errorf("%w: the log was begun with another idea of what it may hold", ErrDiverged)
		}
		r.budgets, r.o.Author = p.budgets, p.author // what was held back and cut depends on the ceilings
	}
	return r, nil
}

func (r *Runner) retrace() []string {
	if r.o.Retrace == nil {
		return []string{r.plan.Team.Path}
	}
	return r.o.Retrace
}

// Narrow gives the lower of two ceilings, each by itself. A zero ceiling is none.
func Narrow(file, flags spec.Budgets) spec.Budgets {
	out := file
	if flags.MaxTokenBudget > 0 && (out.MaxTokenBudget == 0 || flags.MaxTokenBudget < out.MaxTokenBudget) {
		out.MaxTokenBudget = flags.MaxTokenBudget
	}
	if flags.MaxCostBudget != nil && (out.MaxCostBudget == nil || *flags.MaxCostBudget < *out.MaxCostBudget) {
		out.MaxCostBudget = flags.MaxCostBudget
	}
	if flags.MaxDuration > 0 && (out.MaxDuration == 0 || flags.MaxDuration < out.MaxDuration) {
		out.MaxDuration = flags.MaxDuration
	}
	return out
}

// Run drives the plan to a receipt. ctx ends effects at once; Drain lets them end. An error means that there is no
// receipt: nothing ran, or the journal failed.
func (r *Runner) Run(ctx context.Context) (*Result, error) {
	parts, closers, err := r.open(ctx)
	defer func() {
		for _, c := range closers {
			if cerr := c.Close(); cerr != nil {
				r.o.Log.Warn("closing tools", "error", cerr)
			}
		}
	}()
	if err != nil {
		return nil, err
	}
	g := &guard{plan: r.plan, rules: r.rules, bounds: r.bounds, people: r.o.People, agents: parts, runID: r.o.RunID, author: r.o.Author,
		retry: retryClock{drain: r.o.Drain}, now: r.o.Clock, mask: r.mask, retrace: r.retrace(), reference: r.o.Reference, redacted: r.o.Withhold != nil, permits: map[string]string{},
		floor: make(chan struct{}, 1)}
	if k, ok := r.o.Journal.(Keeper); ok {
		g.kept = k.Kept
	}
	rec := &recorder{journal: r.o.Journal, now: func() int64 { return r.o.Clock().UnixMilli() }, watch: r.o.OnEvent}
	r.begin(rec)
	answers, err := r.answers()
	if err != nil {
		return nil, err
	}
	forget, err := forgetting(r.plan.SharedMemory)
	if err != nil {
		return nil, err
	}
	var out *core.Outcome
	e := &engine{ctx: ctx, drain: r.o.Drain, rec: rec, door: g.pass, watch: r.watch(), hide: r.hide(), withhold: r.o.Withhold, lasting: g.lasting, request: g.request, notes: make(chan note)}
	g.observe = e.observe
	if r.o.Past != nil {
		e.past, e.again, e.check = r.o.Past.tape, g.unsure, g.retold
		e.lenient = r.o.Past.lenient && (r.o.Past.hid || r.o.Past.Redacted)
		e.told = func(ef *core.Effect, res *core.Result) {
			g.remember(ef, res)
			if r.o.Told != nil {
				r.o.Told(ef, res)
			}
		}
	}
	err = e.run(func(f core.Flow) {
		out = core.Run(f, core.Input{Plan: r.plan, Budgets: r.budgets, Answers: answers, Redact: forget, Seed: r.o.RunID})
	})
	if err != nil {
		return nil, errors.Join(err, r.o.Journal.Close())
	}
	return r.finish(rec, out)
}

// hide gives what takes secrets out of the log.
func (r *Runner) hide() func(string) string {
	if r.o.Withhold != nil {
		return r.o.Withhold.Text
	}
	return r.o.Reference
}

// runStart is what the log says of an attempt.
type runStart struct {
	Oma     spec.Build `json:"oma"`
	Version string     `json:"version"`
	Attempt int        `json:"attempt"`
	Author  string     `json:"author,omitempty"`
	Drift   []string   `json:"drift,omitempty"`
}

// begin records the attempt. A later one goes on in the log where the one before it has ended.
func (r *Runner) begin(rec *recorder) {
	if p := r.o.Past; p != nil {
		rec.seq, rec.head, rec.at = p.ref.Events, p.ref.Head, p.at
		if p.Ended {
			return
		}
	}
	rec.record(spec.Event{Kind: spec.EventRunStart, ID: r.o.RunID}, runStart{r.o.Build, spec.APIVersion, r.attempt(), r.o.Author, r.o.Drift})
	if r.o.Past == nil {
		rec.record(spec.Event{Kind: spec.EventPlanSet, Digest: r.plan.Digest}, planSet{r.plan.Team, len(r.plan.Tasks), r.budgets, r.o.Withhold != nil})
	}
	rec.flush() // together: a log that has begun says of which plan it is
}

// finish writes the last event, so that the receipt can name the head of the chain. A log that failed, then or before,
// fails the run: the receipt says so.
func (r *Runner) finish(rec *recorder, out *core.Outcome) (*Result, error) {
	receipt := r.receipt(out, rec.err)
	if r.o.Past == nil || !r.o.Past.Ended {
		rec.record(spec.Event{Kind: spec.EventRunEnd, ID: r.o.RunID}, runEnd{receipt.Status, receipt.GovernanceConclusion, receipt.Release})
	}
	broke := rec.err
	if err := errors.Join(rec.err, r.o.Journal.Close()); err != nil && broke == nil {
		broke = err
	}
	if broke != nil {
		receipt = r.receipt(out, broke)
	}
	receipt.Evidence.Journal = spec.JournalRef{Events: rec.seq, Head: rec.head}
	b, err := SealReceipt(receipt)
	if err != nil {
		return nil, err
	}
	return &Result{Receipt: receipt, Bytes: b, Outputs: r.outputs(out), Stopped: out.Stop == core.StopCancelled || broke != nil, Suspended: out.Stop == core.StopSuspended}, nil
}

func (r *Runner) outputs(out *core.Outcome) []Output {
	needed := map[string]bool{}
	for _, t := range r.plan.Tasks {
		for _, d := range t.DependsOn {
			needed[d] = true
		}
	}
	outputs := []Output{}
	for _, t := range out.Tasks {
		if !needed[t.Task.ID] && t.StartedAt > 0 {
			outputs = append(outputs, Output{TaskID: t.Task.ID, Agent: t.Task.Assignee, Text: r.mask(t.Text)})
		}
	}
	return outputs
}

// open makes the parts of every agent at work. What fails here fails before the first model call.
func (r *Runner) open(ctx context.Context) (map[string]*agentParts, []io.Closer, error) {
	parts, models := map[string]*agentParts{}, map[string]Model{}
	var closers []io.Closer
	for _, t := range r.plan.Tasks {
		if r.agents[t.Assignee] == nil {
			return nil, closers, fmt.Errorf("%w: task %q names agent %q, which is not in the plan", ErrStale, t.ID, t.Assignee)
		}
	}
	working := r.plan.Working()
	for i := range r.plan.Agents {
		a := &r.plan.Agents[i]
		if !working[a.Name] {
			continue
		}
		if a.Backend != nil {
			part, closer, err := r.external(ctx, a)
			if closer != nil {
				closers = append(closers, closer)
			}
			if err != nil {
				return nil, closers, err
			}
			parts[a.Name] = part
			continue
		}
		if models[a.Provider] == nil {
			m, err := r.o.Models(a.Provider)
			if err != nil {
				return nil, closers, err
			}
			models[a.Provider] = m
		}
		tools, closer, err := r.tools(ctx, a)
		if closer != nil {
			closers = append(closers, closer)
		}
		if err != nil {
			return nil, closers, err
		}
		parts[a.Name] = &agentParts{agent: a, model: models[a.Provider], retry: retryPolicy(r.plan.Providers[a.Provider].Provider), tools: tools, tree: r.treeOf(a)}
	}
	return parts, closers, nil
}

// tools opens an agent's tools and keeps the granted ones, exactly as the plan has them.
func (r *Runner) tools(ctx context.Context, a *spec.PlanAgent) (map[string]*toolParts, io.Closer, error) {
	if len(a.Tools) == 0 {
		return nil, nil, nil
	}
	var opened []Tool
	var closer io.Closer
	var err error
	if given := given(a); len(given.Tools) > 0 {
		if opened, closer, err = r.o.Tools.Open(ctx, given); err != nil {
			return nil, closer, fmt.Errorf("agent %q: %w", a.Name, err)
		}
	}
	if a.Backend.Asks() { // about tools of its own, which nobody opens here
		opened = append(opened, Tool{ToolInfo: permission(a.Backend)})
	}
	byName := map[string]Tool{}
	for _, t := range opened {
		byName[t.Name] = t
	}
	if a.Has(spec.DelegateTool) { // the core makes such a call; nothing else does
		byName[spec.DelegateTool] = Tool{}
	}
	out := map[string]*toolParts{}
	for _, g := range a.Tools {
		t, ok := byName[g.Name]
		if !ok {
			return nil, closer, fmt.Errorf("agent %q: tool %q is granted and nothing offers it", a.Name, g.Name)
		}
		t.ToolInfo = g.ToolInfo // what was planned, judged and shown to the model is what counts
		p := &toolParts{Tool: t}
		if p.input, err = r.compiled(g.InputSchema); err == nil && len(g.OutputSchema) > 0 {
			p.output, err = r.compiled(g.OutputSchema)
		}
		if err != nil {
			return nil, closer, fmt.Errorf("tool %q: %w", g.Name, err)
		}
		out[g.Name] = p
	}
	return out, closer, nil
}

// schema is a schema both ways it is used: decoded for shaping, compiled for checking.
type schema struct {
	decoded   any
	validator *schemas.Validator
}

// compiled compiles each schema of the run once: many agents hold the same tools.
func (r *Runner) compiled(text spec.Schema) (*schema, error) {
	if s := r.schemas[string(text)]; s != nil {
		return s, nil
	}
	v, err := schemas.Compile(text)
	if err != nil {
		return nil, err
	}
	s := &schema{validator: v}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &s.decoded); err != nil {
			return nil, errors.New("its schema is not valid JSON")
		}
	}
	r.schemas[string(text)] = s
	return s, nil
}

// treeOf gives the digest of an agent's folder, or says why there is none: that is no evidence, however often it is the
// same.
func (r *Runner) treeOf(a *spec.PlanAgent) func(context.Context) string {
	return func(ctx context.Context) string {
		if r.o.Tree == nil {
			return ""
		}
		d, err := r.o.Tree(ctx, a)
		if err != nil {
			return "unknown: " + r.mask(err.Error())
		}
		return d
	}
}

func (r *Runner) enforcement() []spec.Control {
	out := make([]spec.Control, len(r.plan.Enforcement))
	for i, c := range r.plan.Enforcement {
		if out[i] = c; r.o.Machine != nil {
			out[i] = r.o.Machine(c)
		}
	}
	return out
}

// answers compiles the output schemas of the agents at work.
func (r *Runner) answers() (map[string]core.AnswerCheck, error) {
	out := map[string]core.AnswerCheck{}
	for i := range r.plan.Agents {
		a := &r.plan.Agents[i]
		if len(a.OutputSchema) == 0 {
			continue
		}
		sch, err := r.compiled(a.OutputSchema)
		if err != nil {
			return nil, fmt.Errorf("agent %q: outputSchema: %w", a.Name, err)
		}
		out[a.Name] = sch.answer
	}
	return out, nil
}

// retryPolicy reads a provider's own limits.
func retryPolicy(p spec.Provider) RetryPolicy {
	policy := RetryPolicy{MaxRetries: 2, MaxDelay: time.Duration(p.MaxRetryDelay)}
	if p.MaxRetries != nil {
		policy.MaxRetries = *p.MaxRetries
	}
	return policy
}
