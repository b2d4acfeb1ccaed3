package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

func (a *app) policyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Ask the rules of a team about a call",
		Args:  noSuchCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.policyCheckCommand())
	return cmd
}

// checkFlags describe the call to be judged.
type checkFlags struct {
	agent, tool, input, role, task string
	output                         string
	strict                         bool
}

func (a *app) policyCheckCommand() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Judge one call as a run would, and make none",
		Long: "Check judges one call with the functions that judge the calls of a run: granted, decoded, valid, its paths in their\n" +
			"shown form, then every rule. It ends 0 when the call may run, 1 when it may not, 2 when the question or the team is\n" +
			"not valid. A run can refuse more: it has a budget, and it protects its own state folder besides.",
		Example: `  oma policy check team.yaml --agent reviewer --tool file_read --input '{"path": "deploy/server.key"}'`,
		Args:    argsExactly(1, "one team file"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.policyCheck(cmd.Context(), args[0], &f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.agent, "agent", "", "the agent that makes the call")
	fl.StringVar(&f.tool, "tool", "", "the tool it calls")
	fl.StringVar(&f.input, "input", "", "the input, as JSON; @FILE reads a file, - standard input")
	fl.StringVar(&f.role, "role", "", "the role rules see (default: the required role the agent fills, if any)")
	fl.StringVar(&f.task, "task", "", "the taskId rules see (default: the agent's own task, if it has one)")
	fl.BoolVar(&f.strict, "strict", false, "take warnings for errors")
	fl.StringVarP(&f.output, "output", "o", "text", "text, json or yaml")
	return cmd
}

// checkResult is the document policy check prints.
type checkResult struct {
	Allowed   bool            `json:"allowed"`
	AgentName string          `json:"agentName"`
	ToolName  string          `json:"toolName"`
	TaskID    string          `json:"taskId,omitempty"`
	Role      string          `json:"role,omitempty"`
	GrantedBy string          `json:"grantedBy,omitempty"` // empty: not granted
	Input     json.RawMessage `json:"input,omitempty"`     // what rules see; absent: it was not accepted
	Digest    string          `json:"inputDigest,omitempty"`
	spec.Decision
	Text string `json:"text,omitempty"` // what the model is told
}

func (a *app) policyCheck(ctx context.Context, path string, f *checkFlags) error {
	arguments, err := a.checkInput(path, f)
	if err != nil {
		return err
	}
	// The goal plays no part in a judgement, so inputs of the team need no values.
	c, err := a.compile(path, &teamFlags{strict: f.strict, goal: "judge one call", alone: f.alone})
	if err != nil {
		return err
	}
	known := catalog()
	if _, ok := known.Tool(f.tool); !ok {
		return usage("--tool: there is no tool %q: %s", f.tool, spec.DidYouMean(f.tool, known.Names()))
	}
	w, err := a.newWiring(c)
	if err == nil {
		err = w.protectInputs(c.file)
	}
	if err != nil {
		return err
	}
	call := runtime.CheckCall{AgentName: f.agent, ToolName: f.tool, Arguments: arguments, TaskID: f.task, Role: f.role}
	j, err := runtime.Check(ctx, c.plan, runtime.Options{Tools: w, Known: known.Tools}, call)
	switch {
	case errors.Is(err, runtime.ErrNoAgent):
		return usage("--agent: %v", err)
	case err != nil:
		return err
	}
	r := checkResult{Allowed: j.Allowed(), AgentName: f.agent, ToolName: f.tool, TaskID: j.TaskID, Role: j.Role,
		Input: j.Canonical, Digest: j.InputDigest, Decision: j.Decision, Text: j.Text}
	for _, g := range c.plan.Agent(f.agent).Tools {
		if g.Name == f.tool {
			r.GrantedBy = g.GrantedBy
		}
	}
	if err := a.print(f.output, r, func(out io.Writer) { a.checkText(out, &r) }); err != nil || r.Allowed {
		return err
	}
	return ended(runtime.ExitFailed)
}

// alone names the agent where a run of the team would have to be of one agent alone: it has several, and nothing says
// who works on what.
func (f *checkFlags) alone(t *spec.Team) string {
	if g := t.Governance; len(t.Agents) < 2 || g != nil && g.GovernanceIntent != spec.IntentNone && t.Mode != "single" {
		return ""
	}
	return f.agent
}

// checkInput reads what a model would have written as the call's arguments.
func (a *app) checkInput(path string, f *checkFlags) (string, error) {
	for _, need := range []struct{ name, value string }{{"agent", f.agent}, {"tool", f.tool}, {"input", f.input}} {
		if need.value == "" {
			return "", usage("policy check needs --%s", need.name)
		}
	}
	file, named := strings.CutPrefix(f.input, "@")
	switch {
	case f.input == "-" && path == "-":
		return "", usage("only one of FILE and --input can be standard input")
	case f.input == "-":
		file = "-"
	case !named:
		return f.input, nil
	}
	b, err := a.readInput(file)
	if err != nil {
		return "", usage("--input: %v", err)
	}
	return string(b), nil
}

func (a *app) checkText(w io.Writer, r *checkResult) {
	verdict := "may run"
	if !r.Allowed {
		verdict = "may not run"
	}
	fmt.Fprintf(w, "%s %s: %s\n", r.AgentName, r.ToolName, verdict)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "  %-9s %s\n", name, a.outside(value))
		}
	}
	line("granted", cmp.Or(r.GrantedBy, "no"))
	line("role", r.Role)
	line("input", string(r.Input))
	line("refused", r.Refused)
	for _, m := range r.Rules {
		text := fmt.Sprintf("%s (%s) %s %s", m.Name, m.Source, m.Outcome, m.Action)
		if m.Error != "" {
			text += ": " + m.Error
		}
		line("rule", text)
	}
	if r.Gated {
		line("gate", r.GateAction+", "+r.GateOutcome)
	} else if r.Refused == "" {
		line("gate", "none: the team declares no gates")
	}
	line("reason", r.Reason)
}
