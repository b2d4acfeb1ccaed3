package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

func (a *app) policyCheckCommand() *cobra.Command {
	var f callFlags
	cmd := &cobra.Command{
		Use:   "check FILE|PLAN",
		Short: "Judge one call as a run would, and make none",
		Long: "Check judges one call with the functions that judge the calls of a run: granted, decoded, valid, its paths in their\n" +
			"shown form, then every rule. It ends 0 when the call may run, 6 when it would wait for a person, 1 when it may not run,\n" +
			"and 2 when the question or the team is not valid. A run can refuse more: it has a budget, it protects its own state\n" +
			"folder besides, and it may need a plan that a person has approved.",
		Example: `  oma policy check team.yaml --agent reviewer --tool file_read --input '{"path": "deploy/server.key"}'`,
		Args:    argsExactly(1, "one team file or saved plan"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.policyCheck(cmd.Context(), args[0], &f) },
	}
	f.add(cmd)
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
	// NeedsConfirmation says that a run denies the call all the same until a person has approved the plan. Of a call that
	// rules ask about, it is false: to approve that call is enough.
	NeedsConfirmation bool `json:"needsConfirmation,omitempty"`
}

func (a *app) policyCheck(ctx context.Context, path string, f *callFlags) error {
	q, err := a.question("check", path, f)
	if err != nil {
		return err
	}
	defer q.checker.Close()
	r, err := q.check(ctx)
	if err != nil {
		return err
	}
	if err := a.print(f.output, r, func(out io.Writer) { a.checkText(out, r) }); err != nil || r.Allowed {
		return err
	}
	if r.Waits() {
		return ended(runtime.ExitSuspended)
	}
	return ended(runtime.ExitFailed)
}

func (a *app) checkText(w io.Writer, r *checkResult) {
	verdict := "may run"
	switch {
	case r.NeedsConfirmation:
		verdict = "may run once a person has approved the plan"
	case r.Waits():
		verdict = "may run if a person approves it"
	case !r.Allowed:
		verdict = "may not run"
	}
	fmt.Fprintf(w, "%s %s: %s\n", r.AgentName, r.ToolName, verdict)
	line := a.lines(w, "  ")
	line("granted", cmp.Or(r.GrantedBy, "no"))
	line("role", r.Role)
	line("input", string(r.Input))
	a.decisionText(w, "  ", &r.Decision)
	if r.NeedsConfirmation {
		line("needs", confirmationText)
	}
}

// setsText names the marks of a decision.
func setsText(d *spec.Decision) string {
	s := strings.Join(d.Marks, ", ")
	if s != "" && d.Waits() {
		s += ", if it runs"
	}
	return s
}

// confirmationText is what stands before the consequential calls of some runs.
const confirmationText = "a plan that a person has approved (approvals.requireConsequentialConfirmation)"

// lines gives what writes one named value a line. An empty value is left out. What is in it comes from outside: its
// further lines stand below the first, where none can pass for a line of its own.
func (a *app) lines(w io.Writer, indent string) func(name, value string) {
	below := "\n" + indent + strings.Repeat(" ", 10)
	return func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s%-9s %s\n", indent, name, strings.ReplaceAll(a.outside(value), "\n", below))
		}
	}
}

// decisionText shows what the door said of a call, and why.
func (a *app) decisionText(w io.Writer, indent string, d *spec.Decision) {
	line := a.lines(w, indent)
	line("refused", d.Refused)
	for _, m := range d.Rules {
		text := fmt.Sprintf("%s (%s) %s %s", m.Name, m.Source, m.Outcome, m.Action)
		if m.Error != "" {
			text += ": " + m.Error
		}
		line("rule", text)
		line("when", strings.Join(strings.Fields(m.When), " "))
		for _, v := range m.Values {
			line("read", v.Path+" = "+v.Value)
		}
		for _, n := range m.Annotations {
			line("note", n.Name+": "+cmp.Or(n.Value, n.Error))
		}
	}
	if d.Gated {
		line("gate", d.GateAction+", "+d.GateOutcome)
		line("person", d.Approval)
	} else if d.Refused == "" {
		line("gate", "none: the team declares no gates")
	}
	line("reason", d.Reason)
	line("sets", setsText(d))
	line("again", d.Reproduce)
}
