package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/graph"
	"github.com/open-multi-agent/oma/spec"
)

func (a *app) graphCommand() *cobra.Command {
	var f teamFlags
	var format, receipt string
	cmd := &cobra.Command{
		Use:     "graph FILE|PLAN",
		Short:   "Draw the task graph of a plan",
		Example: "  oma graph team.yaml --format svg > team.svg",
		Args:    argsExactly(1, "one team file or saved plan"),
		RunE: func(_ *cobra.Command, args []string) error {
			if !slices.Contains(graph.Formats(), format) {
				return usage("--format %q is not text, mermaid, dot or svg", format)
			}
			return a.graph(args[0], &f, format, receipt)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&format, "format", "text", "text, mermaid, dot or svg")
	cmd.Flags().StringVar(&receipt, "receipt", "", "also show what became of the tasks in this run of the plan")
	return cmd
}

func (a *app) graph(path string, f *teamFlags, format, receipt string) error {
	if path == "-" && receipt == "-" {
		return usage("only one of FILE and --receipt can be standard input")
	}
	p, saved, err := a.planOf(path, f)
	if err != nil {
		return err
	}
	if flag := f.given(); flag != "" && saved {
		return usage("a saved plan is drawn as it is: --%s belongs to a team file", flag)
	}
	o := graph.Options{Escape: a.outside}
	if receipt != "" {
		_, r, err := a.wholeReceipt(receipt)
		if err != nil {
			return err
		}
		if r.Plan.Digest != p.Digest {
			return fmt.Errorf("%w: %s is of plan %s, and %s is %s", runtime.ErrStale, receipt, r.Plan.Digest, path, p.Digest)
		}
		o.Receipt = r
	}
	if err := askedBefore(p, &o); err != nil {
		return err
	}
	g, err := graph.New(p, o)
	if err != nil {
		return usage("%s: %v", path, err)
	}
	return g.Draw(a.stdout, format)
}

// askedBefore finds the rules of approvals that put the plan, or a task of it, before a person.
func askedBefore(p *spec.Plan, o *graph.Options) error {
	if p.Approvals == nil || len(p.Approvals.Plan)+len(p.Approvals.Dispatch) == 0 {
		return nil
	}
	seen, err := runtime.ForeseeApprovals(context.Background(), p)
	if err != nil {
		return err
	}
	for _, r := range p.Approvals.Plan {
		if f := seen[r.Name]; r.Asks() && (f.Matches || f.Error != "") {
			o.PlanRules = append(o.PlanRules, r.Name)
		}
	}
	o.TaskRules = map[string][]string{}
	for _, r := range p.Approvals.Dispatch {
		if !r.Asks() {
			continue
		}
		for _, task := range seen[r.Name].Tasks {
			o.TaskRules[task] = append(o.TaskRules[task], r.Name)
		}
	}
	return nil
}
