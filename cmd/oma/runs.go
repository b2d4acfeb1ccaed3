package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/runtime/journal"
)

// runsFlags are what the commands over the store share.
type runsFlags struct {
	state, output, status          string
	olderThan                      time.Duration
	interrupted, suspended, events bool
}

func (a *app) runsCommand() *cobra.Command {
	var f runsFlags
	cmd := &cobra.Command{Use: "runs", Short: "The runs that are kept", Args: cobra.NoArgs}
	list := &cobra.Command{Use: "list", Short: "List runs, the newest first", Args: argsAtMost(0, "nothing"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runsList(cmd.Context(), &f) }}
	list.Flags().StringVar(&f.status, "status", "", "only those that are: running, suspended, interrupted or ended")
	show := &cobra.Command{Use: "show RUN", Short: "Show one run, or its event log", Args: argsExactly(1, "one run"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runsShow(cmd.Context(), args[0], &f) }}
	show.Flags().BoolVar(&f.events, "events", false, "print the event log, one JSON object a line")
	prune := &cobra.Command{Use: "prune", Short: "Delete runs that have ended, with all that is kept of them", Args: argsAtMost(0, "nothing"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runsPrune(cmd.Context(), &f) }}
	prune.Flags().DurationVar(&f.olderThan, "older-than", 30*24*time.Hour, "how long ago they must have ended, or begun if they have not ended")
	prune.Flags().BoolVar(&f.interrupted, "interrupted", false, "also those that were interrupted and could go on")
	prune.Flags().BoolVar(&f.suspended, "suspended", false, "also those that wait for people, with what they ask")
	for _, c := range []*cobra.Command{list, show, prune} {
		c.Flags().StringVar(&f.state, "state", "", "the folder runs are kept in (OMA_STATE)")
		c.Flags().StringVarP(&f.output, "output", "o", "text", "text, json or yaml")
		cmd.AddCommand(c)
	}
	return cmd
}

// runs opens the store of the folder oma runs in, to read or to change it. What cannot be printed changes nothing.
func (a *app) runs(f *runsFlags, readOnly bool) (*journal.Store, error) {
	if !slices.Contains([]string{"text", "json", "yaml"}, f.output) {
		return nil, usage("-o %q is not text, json or yaml", f.output)
	}
	cwd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	state, err := a.stateDir(f.state, cwd)
	if err != nil {
		return nil, err
	}
	return a.kept(state, readOnly)
}

// kept opens a store that is there.
func (a *app) kept(state string, readOnly bool) (*journal.Store, error) {
	store, err := journal.Open(state, journal.Options{Now: a.now, ReadOnly: readOnly, Existing: true})
	if errors.Is(err, os.ErrNotExist) {
		return nil, usage("no runs are kept in %s; --state DIR names another folder", state)
	}
	return store, err
}

// runList is the document runs list prints.
type runList struct {
	Runs []journal.Run `json:"runs"`
}

func (a *app) runsList(ctx context.Context, f *runsFlags) error {
	if f.status != "" && !slices.Contains(journal.Statuses(), journal.Status(f.status)) {
		return usage("--status %q is not running, suspended, interrupted or ended", f.status)
	}
	store, err := a.runs(f, true)
	if err != nil {
		return err
	}
	defer store.Close()
	runs, err := store.Runs(ctx, journal.Filter{Status: journal.Status(f.status)})
	if err != nil {
		return err
	}
	return a.print(f.output, runList{append([]journal.Run{}, runs...)}, func(w io.Writer) {
		for _, r := range runs {
			fmt.Fprintf(w, "%s  %-11s  %s  attempt %d  %s\n", r.CreatedAt.Format(time.RFC3339), r.Status, r.ID, r.Attempt, a.outside(r.Team))
		}
	})
}

func (a *app) runsShow(ctx context.Context, id string, f *runsFlags) error {
	store, err := a.runs(f, true)
	if err != nil {
		return err
	}
	defer store.Close()
	if f.events {
		return storeError(store.Export(ctx, id, a.stdout))
	}
	r, err := store.Run(ctx, id)
	if err != nil {
		return storeError(err)
	}
	return a.print(f.output, r, func(w io.Writer) {
		line := func(name, value string) { fmt.Fprintf(w, "%-9s %s\n", name, a.outside(value)) }
		line("run", r.ID)
		line("team", r.Team)
		line("plan", r.Plan)
		line("begun", r.CreatedAt.Format(time.RFC3339))
		line("status", string(r.Status))
		if r.Holder != nil {
			line("held by", fmt.Sprintf("process %d on %s", r.Holder.PID, r.Holder.Host))
		}
		line("attempt", fmt.Sprint(r.Attempt))
		line("events", fmt.Sprint(r.Records))
	})
}

func (a *app) runsPrune(ctx context.Context, f *runsFlags) error {
	if f.olderThan < 0 {
		return usage("--older-than %s is below 0", f.olderThan)
	}
	store, err := a.runs(f, false)
	if err != nil {
		return err
	}
	defer store.Close()
	gone, err := store.Prune(ctx, journal.PruneOptions{OlderThan: f.olderThan, Interrupted: f.interrupted, Suspended: f.suspended})
	for _, id := range gone {
		err = errors.Join(err, os.RemoveAll(filepath.Join(store.Dir(), "runs", id)))
	}
	if err != nil {
		return err
	}
	return a.print(f.output, pruned{append([]string{}, gone...)}, func(w io.Writer) {
		for _, id := range gone {
			fmt.Fprintln(w, id)
		}
	})
}

// pruned is the document runs prune prints.
type pruned struct {
	Pruned []string `json:"pruned"`
}
