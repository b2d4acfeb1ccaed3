package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/loader"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/builtin"
	"github.com/open-multi-agent/oma/runtime/scripted"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// runFlags are what oma run takes beside the flags of a team.
type runFlags struct {
	teamFlags
	output, receipt, state, record, dir string
	noJournal, quiet                    bool
	maxTokens                           int64
	maxCost, failOn                     string
	maxDuration, grace                  time.Duration
	requireGovernance                   bool
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run FILE or PLAN",
		Short: "Plan and run a team, or run a saved plan exactly, and leave a receipt",
		Args:  argsExactly(1, "one team file or saved plan"),
		RunE:  func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), args[0], &f) },
	}
	f.add(cmd)
	fl := cmd.Flags()
	fl.StringVarP(&f.output, "output", "o", "text", "text, json, yaml or ndjson (events as they happen)")
	fl.StringVar(&f.receipt, "receipt", "", "where to write the receipt (default: in the state folder)")
	fl.StringVar(&f.state, "state", "", "the folder runs are kept in (OMA_STATE)")
	fl.BoolVar(&f.noJournal, "no-journal", false, "keep no event log")
	fl.StringVar(&f.record, "record", "", "write a cassette of the run to this new file")
	fl.StringVar(&f.dir, "dir", "", "for a saved plan: the folder its inputs are in (default: the plan's own)")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "print the result only")
	fl.Int64Var(&f.maxTokens, "max-token-budget", 0, "lower the token ceiling")
	fl.StringVar(&f.maxCost, "max-cost-budget", "", "lower the cost ceiling, in US dollars")
	fl.DurationVar(&f.maxDuration, "max-duration", 0, "lower the ceiling on time")
	fl.DurationVar(&f.grace, "grace", 30*time.Second, "how long calls in flight may take after the first Ctrl-C or SIGTERM")
	fl.StringVar(&f.failOn, "fail-on", "", "end 8 on: denied")
	fl.BoolVar(&f.requireGovernance, "require-governance", false, "end 4 unless the governance conclusion is satisfied")
	return cmd
}

func (a *app) run(ctx context.Context, path string, f *runFlags) error {
	ceilings, err := f.ceilings()
	if err != nil {
		return err
	}
	s, err := a.prepare(path, f, ceilings)
	if err != nil {
		return err
	}
	res, err := s.drive(ctx, ceilings)
	if err != nil {
		return err
	}
	return s.finish(res)
}

// prepare does everything up to the first effect. What it prints is kept back until it is certain that the program does
// not start itself again: the second start says it all again.
func (a *app) prepare(path string, f *runFlags, ceilings spec.Budgets) (*session, error) {
	var held bytes.Buffer
	out := a.stderr
	a.stderr = &held
	defer func() {
		a.stderr = out
		out.Write(held.Bytes())
	}()
	c, err := a.runnable(path, f)
	if err != nil {
		return nil, err
	}
	s, err := a.session(c, f)
	if err != nil {
		return nil, err
	}
	if err := priced(c.plan, ceilings); err != nil {
		return nil, err
	}
	a.narrowing(c.plan.Budgets, ceilings)
	return s, a.hideSecrets(s.wiring)
}

// ceilings reads the narrowing flags.
func (f *runFlags) ceilings() (spec.Budgets, error) {
	b := spec.Budgets{MaxTokenBudget: f.maxTokens, MaxDuration: spec.Duration(f.maxDuration)}
	if f.maxTokens < 0 || f.maxDuration < 0 {
		return b, usage("a ceiling is above 0")
	}
	if f.maxCost != "" {
		v, err := spec.ParseUSD(f.maxCost)
		if err != nil || v <= 0 {
			return b, usage("--max-cost-budget %q is no amount above 0", f.maxCost)
		}
		b.MaxCostBudget = &v
	}
	if f.failOn != "" && f.failOn != "denied" {
		return b, usage("--fail-on %q is not denied", f.failOn)
	}
	if !slices.Contains([]string{"text", "json", "yaml", "ndjson"}, f.output) {
		return b, usage("-o %q is not text, json, yaml or ndjson", f.output)
	}
	return b, nil
}

// narrowing says where a flag was above the file's ceiling and so changes nothing.
func (a *app) narrowing(file, flags spec.Budgets) {
	say := func(flag string, higher bool) {
		if higher {
			fmt.Fprintf(a.stderr, "oma: --%s is above the file's ceiling, which stays\n", flag)
		}
	}
	say("max-token-budget", file.MaxTokenBudget > 0 && flags.MaxTokenBudget > file.MaxTokenBudget)
	say("max-cost-budget", file.MaxCostBudget != nil && flags.MaxCostBudget != nil && *flags.MaxCostBudget > *file.MaxCostBudget)
	say("max-duration", file.MaxDuration > 0 && flags.MaxDuration > file.MaxDuration)
}

// runnable gives the plan to run: a saved one exactly as it is, if its inputs are, or a team compiled now.
func (a *app) runnable(path string, f *runFlags) (*compiled, error) {
	p, err := savedPlan(path)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return a.compile(path, &f.teamFlags)
	}
	if f.agent != "" || f.goal != "" || f.goalFile != "" || len(f.inputs) > 0 {
		return nil, usage("a saved plan runs exactly: --agent, --goal and --input belong to oma plan")
	}
	c := &compiled{plan: p, file: path, dir: f.dir}
	if c.dir == "" {
		c.dir = filepath.Dir(path)
	}
	moved := runtime.Moved(p, func(name string) (string, error) {
		b, err := readFile(filepath.Join(c.dir, filepath.FromSlash(name)))
		if errors.Is(err, os.ErrNotExist) {
			return "", errors.New("the file is gone")
		}
		return canon.Text("file", b), err
	})
	for _, m := range moved {
		fmt.Fprintf(a.stderr, "oma: %s: an input has moved since the plan was made: %s [stale-plan]\n", path, m)
	}
	if moved != nil {
		return nil, ended(runtime.ExitStale)
	}
	return c, a.requireEnforced(p, f.require)
}

// session is one run with everything around it.
type session struct {
	*app
	c        *compiled
	f        *runFlags
	id       string
	folder   string // of this run, in the state folder
	receipt  string
	wiring   *wiring
	progress *progress
}

func (a *app) session(c *compiled, f *runFlags) (*session, error) {
	s := &session{app: a, c: c, f: f, id: a.newID()}
	cwd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(c.dir)
	if err != nil {
		return nil, err
	}
	state, err := a.stateDir(f.state, dir)
	if err != nil {
		return nil, err
	}
	s.folder = filepath.Join(state, "runs", s.id)
	if s.receipt = f.receipt; s.receipt == "" {
		s.receipt = filepath.Join(s.folder, "receipt.json")
	}
	if s.receipt, err = filepath.Abs(s.receipt); err != nil {
		return nil, err
	}
	s.wiring = &wiring{app: a, plan: c.plan, loaded: c.loaded, dir: dir, cwd: cwd, locks: &builtin.Locks{}, cassettes: map[string]*scripted.Model{}}
	if err := s.wiring.secrets(); err != nil {
		return nil, err
	}
	if f.record != "" {
		if exists(f.record) {
			return nil, usage("--record %s: the file exists", f.record)
		}
		if abs, err := filepath.Abs(f.record); err != nil || abs == s.receipt {
			return nil, usage("--record and --receipt name one file")
		}
		s.wiring.recorder = scripted.NewRecorder(nil, s.wiring.redactor.Text)
	}
	if err := s.protect(state); err != nil {
		return nil, err
	}
	s.progress = newProgress(a, c.plan, f.quiet || f.output == "ndjson")
	return s, nil
}

// protect lists what no agent may write: whatever judges it and whatever tells of it.
func (s *session) protect(state string) error {
	w := s.wiring
	w.outputs = []string{state, s.receipt}
	w.protected = append(w.protected, w.outputs...)
	if s.f.record != "" {
		if err := w.protect(s.f.record); err != nil {
			return err
		}
	}
	before := len(w.protected)
	if err := w.protectInputs(s.c.file); err != nil {
		return err
	}
	if err := notAnInput("--receipt", s.receipt, w.protected[before:]); err != nil {
		return err
	}
	for i := range s.c.plan.Agents {
		a := &s.c.plan.Agents[i]
		if writes(a) && below(state, w.folder(a)) {
			fmt.Fprintf(s.stderr, "oma: warning: the state folder %s lies in the folder of agent %s, which may write [state-in-reach]\n", state, a.Name)
		}
	}
	return nil
}

func writes(a *spec.PlanAgent) bool {
	return slices.ContainsFunc(a.Tools, func(g spec.Grant) bool { return g.Consequential })
}

// drive runs the plan, with signals, the log and the progress around it.
func (s *session) drive(ctx context.Context, ceilings spec.Budgets) (*runtime.Result, error) {
	journal, err := s.journal()
	if err != nil {
		return nil, err
	}
	log, err := s.logger()
	if err != nil {
		return nil, err
	}
	sig := s.app.watchSignals(ctx, s.f.grace)
	defer sig.stop()
	o := runtime.Options{RunID: s.id, Build: spec.Build{Version: version, Commit: commit}, Models: s.wiring.model, Tools: s.wiring,
		Known: catalog().Tools, Journal: journal, Ceilings: ceilings, Tree: s.wiring.tree, Reference: s.wiring.redactor.References, Redact: s.wiring.redactor.Text,
		Machine: s.machine, Drain: sig.drain, Interrupted: sig.code, RequireGovernance: s.f.requireGovernance,
		Finished: s.wiring.unused, FailOnDenied: s.f.failOn == "denied", Watch: s.progress.watch, OnEvent: s.ndjson(), Clock: s.now, Log: log}
	r, err := runtime.New(s.c.plan, o)
	if err != nil {
		return nil, err
	}
	defer s.progress.close()
	return r.Run(sig.ctx)
}

func (s *session) journal() (runtime.Journal, error) {
	if s.f.noJournal {
		return nil, nil
	}
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return nil, fmt.Errorf("the state folder cannot be made: %w", err)
	}
	j, err := runtime.CreateFileJournal(filepath.Join(s.folder, "events.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("the event log cannot be made: %w", err)
	}
	return j, nil
}

// ndjson writes events to standard output as they happen. The first line says the version, the last is the result.
func (s *session) ndjson() func(*spec.Event) {
	if s.f.output != "ndjson" {
		return nil
	}
	out := json.NewEncoder(s.stdout)
	out.SetEscapeHTML(false)
	out.Encode(spec.Envelope{APIVersion: spec.APIVersion, Kind: "Events"})
	return func(e *spec.Event) {
		shown := *e
		shown.Data = s.redacted(e.Data)
		out.Encode(shown)
	}
}

// redacted takes secrets out of an event's data, leaf by leaf, so that it stays JSON.
func (s *session) redacted(data json.RawMessage) json.RawMessage {
	if data == nil {
		return nil
	}
	v, err := canon.Decode(data)
	if err == nil {
		if b, err := canon.Bytes(s.wiring.redactor.Value(v)); err == nil {
			return b
		}
	}
	return json.RawMessage(`"withheld: the data cannot be redacted"`)
}

// finish writes what the run leaves behind and prints its result. The receipt is written whatever happened.
func (s *session) finish(res *runtime.Result) error {
	if err := writeFile(s.receipt, append(res.Bytes, '\n')); err != nil {
		return fmt.Errorf("the receipt cannot be written: %w", err)
	}
	if err := s.writeCassette(); err != nil {
		return err
	}
	if err := s.result(res); err != nil {
		return err
	}
	s.summary(res.Receipt)
	code := res.Receipt.ExitCodes[0]
	if !s.f.quiet {
		fmt.Fprintf(s.stderr, "receipt: %s\n", s.receipt)
	}
	return ended(code)
}

func (s *session) writeCassette() error {
	if s.wiring.recorder == nil {
		return nil
	}
	b, err := loader.MarshalCassette(s.wiring.recorder.Cassette(s.c.plan.Team.Name))
	if err != nil {
		return err
	}
	return writeFile(s.f.record, b)
}

// runResult is the document of -o json: the receipt and what it vouches for.
type runResult struct {
	Receipt *spec.Receipt    `json:"receipt"`
	Outputs []runtime.Output `json:"outputs"`
}

func (s *session) result(res *runtime.Result) error {
	if s.f.output == "ndjson" {
		return json.NewEncoder(s.stdout).Encode(runResult{res.Receipt, res.Outputs})
	}
	if s.f.output != "text" {
		return s.print(s.f.output, json.RawMessage(res.Bytes), nil)
	}
	for _, o := range res.Outputs {
		if o.Text == "" {
			continue
		}
		if len(res.Outputs) > 1 {
			fmt.Fprintf(s.stdout, "## %s\n", o.Agent)
		}
		fmt.Fprintln(s.stdout, s.outside(o.Text))
	}
	return nil
}

// summary tells a person how it went, on standard error.
func (s *session) summary(r *spec.Receipt) {
	if s.f.quiet {
		return
	}
	cost := "cost unknown"
	if r.Cost != nil {
		cost = "$" + r.Cost.String()
	}
	fmt.Fprintf(s.stderr, "%s  %d tokens  %s  %s  %d denied\n", r.Status.Code, r.TotalTokens.Total(), cost,
		time.Duration(r.DurationMs)*time.Millisecond, r.Denied)
	if r.Status.Message != "" {
		fmt.Fprintf(s.stderr, "  %s\n", s.outside(r.Status.Message))
	}
	fmt.Fprintf(s.stderr, "governanceConclusion: %s\n", r.GovernanceConclusion)
	for _, d := range r.GovernanceDetail {
		fmt.Fprintf(s.stderr, "  %s: %s\n", d.Code, s.outside(d.Message))
	}
	if r.ReleaseConclusion != spec.NotApplicable {
		fmt.Fprintf(s.stderr, "releaseConclusion: %s\n", r.ReleaseConclusion)
	}
	for _, q := range r.Release {
		if q.Outcome != "held" {
			fmt.Fprintf(s.stderr, "  %s %s: %s\n", q.Name, q.Outcome, s.outside(q.Reason))
		}
	}
	if len(r.Flags) > 0 {
		fmt.Fprintf(s.stderr, "flags: %s\n", strings.Join(r.Flags, ", "))
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
