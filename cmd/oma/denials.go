package main

import (
	"fmt"
	"io"

	"github.com/open-multi-agent/oma/policies/shell"
	"github.com/open-multi-agent/oma/spec"
)

// denials are the calls of a run that did not run, as a document.
type denials struct {
	RunID   string                `json:"runId"`
	Team    string                `json:"team"`
	Denials []spec.DecisionRecord `json:"denials"`
}

// denialsOf finds them in a receipt, in their order.
func denialsOf(r *spec.Receipt) denials {
	out := denials{RunID: r.RunID, Team: r.Team.Name, Denials: []spec.DecisionRecord{}}
	for _, d := range r.Decisions {
		if !d.Allowed() {
			if !asksAgain(d.Reproduce) {
				d.Reproduce = ""
			}
			out.Denials = append(out.Denials, d)
		}
	}
	return out
}

// asksAgain says that a line is one oma policy check and no more. Whoever writes a receipt can put any line into it, for
// somebody else to paste.
func asksAgain(line string) bool {
	f := shell.Classify(line, nil)
	if f.ParseError || f.HasSubstitution || f.Background || len(f.Redirects) > 0 || len(f.Commands) != 1 {
		return false
	}
	c := f.Commands[0]
	return c.Path == "oma" && len(c.Assignments) == 0 && len(c.Args) > 2 && c.Args[0] == "policy" && c.Args[1] == "check"
}

func (a *app) explainReceipt(r *spec.Receipt, output string) error {
	d := denialsOf(r)
	return a.print(output, d, func(w io.Writer) { a.denialsText(w, &d) })
}

// denialsText shows for each denial the rules, what they read, and the line that judges the call again.
func (a *app) denialsText(w io.Writer, all *denials) {
	if len(all.Denials) == 0 {
		fmt.Fprintln(w, "no call was denied or refused")
	}
	for _, d := range all.Denials {
		of := ""
		if d.ServerTool != "" {
			of = "(" + d.ServerTool + ")"
		}
		fmt.Fprintf(w, "%d  %s: %s\n", d.Seq, a.outside(joined(" ", d.Scope, d.Agent, d.ToolName, of)), outcome(&d.Decision))
		line := a.lines(w, "  ")
		line("task", d.TaskID)
		a.decisionText(w, "  ", &d.Decision)
	}
}

// outcome is what became of a call, or of a plan or task that rules were asked about.
func outcome(d *spec.Decision) string {
	switch {
	case d.Refused != "":
		return "refused"
	case d.Waits():
		return "waits for a person"
	case d.Asks(): // approved, rejected or expired
		return d.Approval
	case d.Allowed():
		return "allowed"
	}
	return "denied"
}
