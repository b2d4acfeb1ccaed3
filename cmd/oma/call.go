package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/schemas"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// callFlags describe a call to be judged, and what came before it.
type callFlags struct {
	agent, tool, input, role, task string
	history, marks, cost           string
	tokens                         int64
	strict                         bool
	policies                       teamFlags // of which --policy alone is used
	dir, output                    string
	given                          func(flag string) bool
}

func (f *callFlags) add(cmd *cobra.Command) {
	f.addCall(cmd)
	cmd.Flags().StringVar(&f.tool, "tool", "", "the tool it calls")
}

// addCall adds the flags without the tool, which some commands take as an argument.
func (f *callFlags) addCall(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.agent, "agent", "", "the agent that makes the call")
	fl.StringVar(&f.input, "input", "", "the input, as JSON; @FILE reads a file, - standard input")
	fl.StringVar(&f.role, "role", "", "the role rules see (default: that of the task)")
	fl.StringVar(&f.task, "task", "", "the taskId rules see (default: the agent's own task, if it has one)")
	fl.StringVar(&f.history, "history", "", "earlier calls of the task, oldest first, as a JSON list; @FILE reads a file, - standard input")
	fl.StringVar(&f.marks, "marks", "", "marks that are set, separated by commas")
	fl.Int64Var(&f.tokens, "remaining-tokens", 0, "what is left of the token ceiling (default: there is no ceiling)")
	fl.StringVar(&f.cost, "remaining-cost", "", "what is left of the cost ceiling, in US dollars (default: there is no ceiling)")
	fl.StringVar(&f.dir, "dir", "", "for a saved plan: the folder its inputs are in (default: the plan's own)")
	fl.BoolVar(&f.strict, "strict", false, "take warnings for errors")
	fl.StringVarP(&f.output, "output", "o", "text", "text, json or yaml")
	f.policies.addPolicy(cmd)
	f.given = fl.Changed
}

// about names a flag that says something of a call or of its team, if one was given. Empty: none.
func (f *callFlags) about() string {
	for _, flag := range []string{"agent", "tool", "input", "role", "task", "history", "marks", "remaining-tokens", "remaining-cost", "policy", "dir", "strict"} {
		if f.given(flag) {
			return flag
		}
	}
	return ""
}

// question is a call that can be judged: its team is compiled and its tools are wired.
type question struct {
	c       *compiled
	call    runtime.CheckCall
	checker *runtime.Checker
}

// question reads the call and what came before it, then the team or the saved plan.
func (a *app) question(verb, path string, f *callFlags) (*question, error) {
	q, _, err := a.askedBy("policy "+verb, path, f)
	if err != nil {
		return nil, err
	}
	all := policies.Catalog{Tools: slices.Concat(catalog().Tools, runtime.ToolsOf(q.c.plan))}
	if _, ok := all.Tool(f.tool); !ok {
		return nil, usage("--tool: there is no tool %q: %s", f.tool, spec.DidYouMean(f.tool, all.Names()))
	}
	return q, nil
}

// askedBy gives the wiring too, which has opened nothing and knows no secret.
func (a *app) askedBy(verb, path string, f *callFlags) (*question, *wiring, error) {
	q := &question{}
	var err error
	if q.call, err = a.call(verb, path, f); err != nil {
		return nil, nil, err
	}
	if q.c, err = a.judged(path, f); err != nil {
		return nil, nil, err
	}
	w, err := a.newWiring(q.c)
	if err == nil {
		err = w.protectInputs(q.c.file)
	}
	if err != nil {
		return nil, nil, err
	}
	w.withoutSecrets()
	q.checker, err = runtime.NewChecker(q.c.plan, runtime.Options{Tools: w, Known: catalog().Tools, Retrace: q.c.retrace()})
	return q, w, err
}

// judged gives the plan that the call is judged under. The goal plays no part in a judgement, so inputs of the team need
// no values.
func (a *app) judged(path string, f *callFlags) (*compiled, error) {
	above := f.policies
	p, err := savedPlan(path)
	if err != nil {
		return nil, err
	}
	if above.strict = f.strict; p != nil || f.dir != "" {
		return a.runnable(path, &runFlags{teamFlags: above, dir: f.dir})
	}
	above.goal, above.alone = "judge one call", f.alone
	return a.compile(path, &above)
}

// alone names the agent where a run of the team would have to be of one agent alone: it has several, and nothing says
// who works on what.
func (f *callFlags) alone(t *spec.Team) string { return aloneIn(t, f.agent) }

func aloneIn(t *spec.Team, agent string) string {
	if g := t.Governance; len(t.Agents) < 2 || g != nil && g.GovernanceIntent != spec.IntentNone && t.Mode != "single" {
		return ""
	}
	return agent
}

// call reads what the flags say.
func (a *app) call(verb, path string, f *callFlags) (c runtime.CheckCall, err error) {
	for _, need := range []struct{ name, value string }{{"agent", f.agent}, {"tool", f.tool}, {"input", f.input}} {
		if need.value == "" {
			return c, usage("%s needs --%s: a call is --agent NAME --tool NAME --input JSON", verb, need.name)
		}
	}
	var readers []string
	for _, r := range []struct{ name, value string }{{"FILE", path}, {"--input", f.input}, {"--history", f.history}} {
		if r.value == "-" {
			readers = append(readers, r.name)
		}
	}
	if len(readers) > 1 {
		return c, usage("only one of %s can be standard input", strings.Join(readers, " and "))
	}
	c = runtime.CheckCall{AgentName: f.agent, ToolName: f.tool, TaskID: f.task, Role: f.role}
	if c.Arguments, err = a.argument("input", f.input); err != nil {
		return c, err
	}
	c.Situation, err = a.situation(f)
	return c, err
}

// argument reads the value of a flag that may name a file.
func (a *app) argument(flag, value string) (string, error) {
	file, named := strings.CutPrefix(value, "@")
	if value == "-" {
		file, named = "-", true
	}
	if !named {
		return value, nil
	}
	b, err := a.readInput(file)
	if err != nil {
		return "", usage("--%s: %v", flag, err)
	}
	return string(b), nil
}

// situation reads what came before the call.
func (a *app) situation(f *callFlags) (s spec.Situation, err error) {
	if f.given("history") {
		text, err := a.argument("history", f.history)
		if err != nil {
			return s, err
		}
		decoded, err := canon.Decode([]byte(text))
		if err != nil {
			return s, usage("--history: %v", err)
		}
		if err := fitsCase("history", decoded); err != nil {
			return s, err
		}
		if err := json.Unmarshal([]byte(text), &s.History); err != nil {
			return s, usage("--history: %v", err)
		}
	}
	if f.given("marks") {
		s.Marks = strings.Split(f.marks, ",")
		list := make([]any, len(s.Marks))
		for i, m := range s.Marks {
			list[i] = m
		}
		if err := fitsCase("marks", list); err != nil {
			return s, err
		}
	}
	s.Budget, err = f.budget()
	return s, err
}

// budget reads what is left of the ceilings. nil: there are none.
func (f *callFlags) budget() (*spec.BudgetRemaining, error) {
	b := &spec.BudgetRemaining{}
	if f.given("remaining-tokens") {
		if f.tokens < 0 {
			return nil, usage("--remaining-tokens %d is below 0", f.tokens)
		}
		b.Tokens = &f.tokens
	}
	if f.given("remaining-cost") {
		cost, err := spec.ParseUSD(f.cost)
		if err != nil || cost < 0 {
			return nil, usage("--remaining-cost %q is no amount of US dollars", f.cost)
		}
		b.Cost = &cost
	}
	if b.Tokens == nil && b.Cost == nil {
		return nil, nil
	}
	return b, nil
}

// fitsCase holds what came before a call against the schema that a case of a policy test has for it.
func fitsCase(key string, value any) error {
	c := map[string]any{"name": "-", "agentName": "-", "toolName": "-", "expect": map[string]any{"action": spec.ActionAllow}, key: value}
	doc := map[string]any{"apiVersion": spec.APIVersion, "kind": spec.KindPolicyTest, "team": "-", "cases": []any{c}}
	for _, v := range schemas.Check(spec.KindPolicyTest, doc) {
		where := strings.TrimPrefix(string(v.Path), "cases[0].")
		return usage("--%s: %s: %s", key, where, v.Message)
	}
	return nil
}

// asked turns what is wrong with a question into a mistake in the command line.
func asked(err error) error {
	var earlier *runtime.EarlierError
	switch {
	case errors.Is(err, runtime.ErrNoAgent):
		return usage("--agent: %v", err)
	case errors.Is(err, runtime.ErrNoMark):
		return usage("--marks: %v", err)
	case errors.As(err, &earlier):
		return usage("--history: %v", earlier)
	}
	return err
}

// check judges the call and gives the document for it.
func (q *question) check(ctx context.Context) (*checkResult, error) {
	j, err := q.checker.Check(ctx, q.call)
	if err != nil {
		return nil, asked(err)
	}
	return q.result(j), nil
}

// result is a judgement as a document.
func (q *question) result(j *runtime.Checked) *checkResult {
	r := &checkResult{Allowed: j.Allowed(), AgentName: q.call.AgentName, ToolName: q.call.ToolName, TaskID: j.TaskID, Role: j.Role,
		Input: j.Canonical, Digest: j.InputDigest, Decision: j.Decision, Text: j.Text}
	for _, g := range q.c.plan.Agent(r.AgentName).Tools {
		if g.Name == r.ToolName {
			r.GrantedBy = g.GrantedBy
			r.NeedsConfirmation = g.Consequential && r.Allowed && runtime.Confirms(q.c.plan)
		}
	}
	return r
}

// again gives the command line that judges a call, and all that came before it, once more. team are the words that name
// the team.
func again(team []string, c *runtime.CheckCall) string {
	words := append([]string{"oma", "policy", "check"}, team...)
	words = append(words, "--agent", c.AgentName, "--tool", c.ToolName, "--input", c.Arguments)
	add := func(flag, value string) {
		if value != "" {
			words = append(words, flag, value)
		}
	}
	add("--role", c.Role)
	add("--task", c.TaskID)
	add("--marks", strings.Join(c.Situation.Marks, ","))
	if b := c.Situation.Budget; b != nil && b.Tokens != nil {
		add("--remaining-tokens", strconv.FormatInt(*b.Tokens, 10))
	}
	if b := c.Situation.Budget; b != nil && b.Cost != nil {
		add("--remaining-cost", b.Cost.String())
	}
	if len(c.Situation.History) > 0 {
		history, err := json.Marshal(c.Situation.History)
		if err != nil {
			return ""
		}
		add("--history", string(history))
	}
	return shellLine(words)
}
