package main

import (
	"bytes"
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

func (a *app) policyExplainCommand() *cobra.Command {
	var f callFlags
	cmd := &cobra.Command{
		Use:   "explain FILE|PLAN|RECEIPT",
		Short: "Say why a call may run or not, or why the calls of a run did not",
		Long: "Explain asks every rule that looks at a call what it read and said, and puts the verdict into words. Of a receipt it\n" +
			"shows every call that did not run, with the line that judges it again. It ends 0 whatever the verdict.",
		Example: `  oma policy explain team.yaml --agent reviewer --tool file_read --input '{"path": "deploy/server.key"}'
  oma policy explain receipt.json`,
		Args: argsExactly(1, "one team file, saved plan or receipt"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.policyExplain(cmd.Context(), args[0], &f) },
	}
	f.add(cmd)
	return cmd
}

// explanation is the document policy explain prints of one call.
type explanation struct {
	checkResult
	Verdict string      `json:"verdict"`
	Looked  []ruleWords `json:"looked"` // every rule that looks at calls of this tool by this agent
	Again   string      `json:"again"`
}

// ruleWords is what one rule said of the call.
type ruleWords struct {
	Name    string           `json:"name"`
	Source  string           `json:"source"`
	Action  string           `json:"action"`
	Mark    string           `json:"mark,omitempty"`
	Outcome string           `json:"outcome"` // matched, ignored or error
	Error   string           `json:"error,omitempty"`
	When    string           `json:"when"`
	Values  []spec.ReadValue `json:"values,omitempty"`
}

func (a *app) policyExplain(ctx context.Context, path string, f *callFlags) error {
	r, err := a.receiptOf(path)
	switch flag := f.about(); {
	case err != nil:
		return err
	case r != nil && flag != "":
		return usage("%s is a receipt, which has calls of its own: --%s belongs to a team file or a saved plan", path, flag)
	case r != nil:
		return a.explainReceipt(r, f.output)
	case flag == "":
		return usage("%s is no receipt that can be read; of a team file or a saved plan, policy explain needs --agent NAME --tool NAME --input JSON", path)
	}
	q, err := a.question("explain", path, f)
	if err != nil {
		return err
	}
	defer q.checker.Close()
	j, err := q.checker.Look(ctx, q.call)
	if err != nil {
		return asked(err)
	}
	e := explanation{checkResult: *q.result(&j.Checked), Looked: []ruleWords{}}
	for _, s := range j.Seen {
		e.Looked = append(e.Looked, ruleWords{s.Rule.Name, s.Rule.Source, s.Rule.Action, s.Rule.Mark, s.Outcome, s.Error, s.Rule.When, s.Values})
	}
	e.Verdict = verdictWords(&e, q.c.plan.Gates.Default)
	call := q.call
	if call.Role, call.TaskID = f.role, f.task; j.Canonical != nil {
		call.Arguments = string(j.Canonical)
	}
	e.Again = again(q.c.retrace(), &call)
	return a.print(f.output, e, func(w io.Writer) { a.explainText(w, &e) })
}

// receiptOf reads a receipt if that is what a file is. nil: it is something else. One that was edited is refused, as far
// as its own digest tells.
func (a *app) receiptOf(path string) (*spec.Receipt, error) {
	if path == "-" {
		return nil, nil
	}
	b, err := readFile(path)
	if err != nil || !bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) {
		return nil, nil // the loader says what is wrong with it
	}
	var e spec.Envelope
	if json.Unmarshal(b, &e) != nil || e.Kind != spec.KindReceipt {
		return nil, nil
	}
	r, err := runtime.ReadReceipt(b)
	if err != nil {
		return nil, usage("%s is no receipt that can be read: %v", path, err)
	}
	return r, nil
}

// verdictWords says what forbids the call, or what permits it.
func verdictWords(e *explanation, byDefault string) string {
	var broken, forbid, ask, permit []string
	for _, r := range e.Looked {
		name := fmt.Sprintf("rule %q", r.Name)
		switch {
		case r.Outcome == "error":
			broken = append(broken, name+": "+r.Error)
		case r.Outcome != "matched":
		case r.Action == spec.ActionAllow:
			if runtime.Permits(r.Source) {
				permit = append(permit, name)
			}
		case r.Action == spec.ActionDeny:
			forbid = append(forbid, name+" ("+r.Action+")")
		case r.Action != spec.ActionWarn:
			ask = append(ask, name+" ("+r.Action+")")
		}
	}
	switch {
	case e.Refused != "":
		return fmt.Sprintf("refused before any rule was asked: %s", e.Refused)
	case !e.Gated:
		return "it may run: it is granted and valid, and the team declares no gates"
	case broken != nil:
		return "it may not run: a rule that fails denies, and so does " + strings.Join(broken, "; ")
	case forbid != nil:
		return "it may not run: forbidden by " + strings.Join(forbid, ", ")
	case ask != nil:
		return "it may run if a person approves it: asked for by " + strings.Join(ask, ", ")
	case !e.Allowed && byDefault == spec.ActionDeny:
		return "it may not run: no rule forbids it, and none permits it under gates.default: deny"
	case !e.Allowed:
		return "it may not run: " + e.Reason
	case byDefault == spec.ActionDeny:
		return "it may run: no rule forbids it, and it is permitted by " + strings.Join(permit, ", ")
	}
	return "it may run: no rule forbids it, and gates.default: allow permits it"
}

func (a *app) explainText(w io.Writer, e *explanation) {
	fmt.Fprintf(w, "%s %s: %s\n", e.AgentName, e.ToolName, a.outside(e.Verdict))
	line := a.lines(w, "  ")
	line("granted", cmp.Or(e.GrantedBy, "no"))
	line("role", e.Role)
	line("task", e.TaskID)
	line("input", string(e.Input))
	line("reason", e.Reason)
	line("sets", setsText(&e.Decision))
	for _, r := range e.Looked {
		fmt.Fprintf(w, "  rule %s (%s), %s: %s\n", r.Name, escape(r.Source), r.Action, r.Outcome)
		inner := a.lines(w, "    ")
		inner("when", strings.Join(strings.Fields(r.When), " "))
		for _, v := range r.Values {
			inner("read", v.Path+" = "+v.Value)
		}
		inner("error", r.Error)
		inner("mark", r.Mark)
	}
	if e.NeedsConfirmation {
		line("needs", confirmationText)
	}
	line("again", e.Again)
}
