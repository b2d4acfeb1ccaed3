package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/journal"
	"github.com/open-multi-agent/oma/spec"
)

// approvalFlags are what the commands of a reviewer share.
type approvalFlags struct {
	state, output, run, out     string
	reviewer, reason, key, hash string
	all                         bool
	changed                     func(flag string) bool
}

func (a *app) approvalsCommand() *cobra.Command {
	var f approvalFlags
	list := &cobra.Command{Use: "list", Short: "List what waits for a person, the oldest first", Args: argsExactly(0, "nothing"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.approvalsList(cmd.Context(), &f) }}
	cmd := &cobra.Command{Use: "approvals", Short: "What runs ask people, and what was decided", Args: noSuchCommand, RunE: list.RunE}
	show := &cobra.Command{Use: "show ID|FILE", Short: "Show all that a person decides by", Args: argsExactly(1, "one request"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.approvalsShow(cmd.Context(), args[0], &f) }}
	export := &cobra.Command{Use: "export ID", Short: "Write a request as a file, to be decided on another machine", Args: argsExactly(1, "one request"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.approvalsExport(cmd.Context(), args[0], &f) }}
	export.Flags().StringVar(&f.out, "out", "", "where the file goes (default: standard output)")
	take := &cobra.Command{Use: "import FILE", Short: "Take a decision that was made on another machine", Args: argsExactly(1, "one decision"),
		Long: "Import takes the file that oma approve or reject wrote, - for standard input. What the request file said of reviewers\n" +
			"does not count: the decision is held against the plan of the run. The same decision again changes nothing and ends 0.",
		RunE: func(cmd *cobra.Command, args []string) error { return a.approvalsImport(cmd.Context(), args[0], &f) }}
	for _, c := range []*cobra.Command{cmd, list} {
		c.Flags().BoolVar(&f.all, "all", false, "also those that were decided, or that nobody can decide any more")
		c.Flags().StringVar(&f.run, "run", "", "only those of one run")
	}
	show.Flags().BoolVar(&f.all, "all", false, "all of a text that is longer than 32 KiB")
	for _, c := range []*cobra.Command{cmd, list, show, export, take} {
		c.Flags().StringVar(&f.state, "state", "", "the folder runs are kept in (OMA_STATE)")
		if c != export {
			c.Flags().StringVarP(&f.output, "output", "o", "text", "text, json or yaml")
		}
	}
	cmd.AddCommand(list, show, export, take)
	return cmd
}

// printable refuses a format before anything is done that could not be shown.
func (f *approvalFlags) printable() error {
	switch f.output {
	case "text", "json", "yaml":
		return nil
	}
	return usage("-o %q is not text, json or yaml", f.output)
}

// approvalList is the document approvals list prints.
type approvalList struct {
	Approvals []*approvalView `json:"approvals"`
}

func (a *app) approvalsList(ctx context.Context, f *approvalFlags) error {
	if err := f.printable(); err != nil {
		return err
	}
	states, own, err := a.statesOf(f)
	if err != nil {
		return err
	}
	list, broken := approvalList{Approvals: []*approvalView{}}, error(nil)
	for _, state := range states {
		found, err := a.listed(ctx, state, f)
		list.Approvals = append(list.Approvals, found...)
		switch {
		case err == nil:
		case state == own:
			broken = err
		default: // a folder that nobody named keeps no other from being listed
			a.say("what waits in %s cannot be told: %v", state, err)
		}
	}
	slices.SortStableFunc(list.Approvals, func(x, y *approvalView) int { return x.RequestedAt.Compare(y.RequestedAt) })
	err = a.print(f.output, list, func(w io.Writer) { a.approvalLines(w, list.Approvals) })
	if err == nil && broken == nil && f.output == "text" {
		a.afterList(list.Approvals, f)
	}
	return errors.Join(err, broken)
}

// statesOf gives the state folders to look into. Where nobody says which, they are all of this user's: whoever decides need
// not know where a run was started. own is the one whose damage is an error.
func (a *app) statesOf(f *approvalFlags) (all []string, own string, err error) {
	if own, err = a.stateOf(f.state, f.run); err != nil {
		return nil, "", err
	}
	if f.state == "" && f.run == "" && a.getenv("OMA_STATE") == "" {
		all = beside(own)
	}
	if len(all) == 0 {
		all = []string{own}
	}
	return all, own, nil
}

// listed gives what is asked in one state folder, as far as it can be read.
func (a *app) listed(ctx context.Context, state string, f *approvalFlags) (out []*approvalView, broken error) {
	store, err := a.kept(state, true)
	if err != nil {
		return nil, err
	}
	d := &desk{app: a, store: store, runs: map[string]*ofRun{}}
	defer store.Close()
	if f.run != "" {
		if _, err := store.Run(ctx, f.run); err != nil {
			return nil, storeError(err)
		}
	}
	found, broken := store.Approvals(ctx, journal.ApprovalFilter{RunID: f.run})
	for i := range found {
		m, err := d.matter(ctx, &found[i])
		if err != nil { // the others are shown all the same
			broken = errors.Join(broken, err)
			continue
		}
		if v := m.view(a.now()); f.all || v.open() {
			out = append(out, v)
		}
	}
	return out, broken
}

// afterList says what to type next.
func (a *app) afterList(all []*approvalView, f *approvalFlags) {
	i := slices.IndexFunc(all, (*approvalView).open)
	switch {
	case i >= 0:
		a.next(f.line("approvals", "show", all[i].ID))
	case !f.all:
		a.say("nothing waits for a person; --all lists what was decided")
	}
}

func (a *app) approvalLines(w io.Writer, all []*approvalView) {
	for _, v := range all {
		what := joined(" ", v.content.ToolName, v.content.TaskID)
		if v.content.AgentName != "" {
			what += " by " + v.content.AgentName
		}
		stands := v.Decision
		if v.Quorum > 1 {
			stands += fmt.Sprintf(" %d/%d", v.Approvals, v.Quorum)
		}
		line := fmt.Sprintf("%s  %-11s  %s  %s  %s", v.RequestedAt.Format(time.RFC3339), stands, v.ID, v.RunID, v.Scope)
		fmt.Fprintln(w, a.outside(cutTo(joined("  ", line, marked(strings.TrimSpace(what)), marked(cutLine(v.Reason))), 400)))
	}
}

// approvalError gives the exit code that belongs to what is wrong with an approval.
func approvalError(err error) error {
	switch {
	case errors.Is(err, journal.ApprovalNotFound):
		return usage("%v; oma approvals lists what waits", err)
	case errors.Is(err, journal.ApprovalInvalid):
		return usage("%v", err)
	case errors.Is(err, journal.ApprovalStale), errors.Is(err, journal.ApprovalConflict):
		return &exitError{runtime.ExitStale, err.Error()}
	}
	return storeError(err)
}

// line is a command about something in the state folder that this one was told. The last word is what it is about.
func (f *approvalFlags) line(words ...string) string {
	last := len(words) - 1
	line := append([]string{"oma"}, words[:last]...)
	if f.state != "" {
		line = append(line, "--state", f.state)
	}
	return shellLine(append(line, words[last]))
}

// next says what to type next, on standard error.
func (a *app) next(line string) { fmt.Fprintln(a.stderr, "next: "+a.outside(line)) }

// needed says how many must approve.
func needed(p *spec.PlanApprovals) int {
	if p == nil {
		return 1
	}
	return max(p.Quorum, 1)
}
