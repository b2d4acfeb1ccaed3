package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/report"
)

type gateFlags struct {
	teamFlags
	team, plan, events, format, output    string
	unbound, notApplicable, requireSigned bool
}

func (a *app) gateCommand() *cobra.Command {
	var f gateFlags
	cmd := &cobra.Command{
		Use:   "gate RECEIPT",
		Short: "Decide about a release by a receipt, derived again from its facts",
		Long: "Gate passes only a receipt whose governance conclusion, derived again, is satisfied, whose release requirements all\n" +
			"held, and which is bound to a yardstick from outside: --team FILE or --plan FILE.",
		Args: argsExactly(1, "one receipt"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.gate(args[0], &f) },
	}
	f.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.team, "team", "", "the team file the run must have been of")
	fl.StringVar(&f.plan, "plan", "", "the saved plan the run must have been of")
	fl.StringVar(&f.events, "events", "", "the run's event log (default: events.jsonl beside the receipt, if it is there)")
	fl.BoolVar(&f.unbound, "unbound", false, "let a receipt vouch for itself")
	fl.BoolVar(&f.notApplicable, "allow-not-applicable", false, "let a run pass that required nothing")
	fl.BoolVar(&f.requireSigned, "require-signed", false, "fail a receipt without a signature")
	fl.StringVar(&f.format, "format", "", "text, json, junit or github")
	fl.StringVarP(&f.output, "output", "o", "text", "the same as --format")
	return cmd
}

func (a *app) gate(path string, f *gateFlags) error {
	if f.format == "" {
		f.format = f.output
	}
	render, ok := report.Formats()[f.format]
	if !ok {
		return usage("--format %q is not text, json, junit or github", f.format)
	}
	o := runtime.GateOptions{Unbound: f.unbound, AllowNotApplicable: f.notApplicable, RequireSigned: f.requireSigned}
	if err := a.yardstick(f, &o); err != nil {
		return err
	}
	log, err := openLog(path, f.events)
	if err != nil {
		return err
	}
	if log != nil {
		defer log.Close()
		o.Log = log
	}
	data, err := a.readInput(path)
	var v *runtime.GateVerdict
	if err != nil {
		v = runtime.NoReceipt(fmt.Sprintf("the receipt cannot be read: %v", errors.Unwrap(err)))
	} else {
		v = runtime.Gate(data, o)
	}
	if err := render(a.stdout, v); err != nil {
		return err
	}
	if f.format == "github" {
		if err := a.stepSummary(v); err != nil {
			return err
		}
	}
	return ended(v.ExitCode)
}

// yardstick gives the gate a plan from outside the receipt.
func (a *app) yardstick(f *gateFlags, o *runtime.GateOptions) error {
	switch {
	case f.team != "" && f.plan != "":
		return usage("--team and --plan exclude each other")
	case f.team != "":
		c, err := a.compile(f.team, &f.teamFlags)
		if err != nil {
			return err
		}
		o.Plan = c.plan
	case f.plan != "":
		data, err := readFile(f.plan)
		if err != nil {
			return usage("--plan: %v", err)
		}
		if o.Plan, err = runtime.ReadPlan(data); err != nil {
			return badPlan(f.plan, err)
		}
	}
	return nil
}

// openLog opens the event log that was named, or the one beside the receipt. Without either there is none.
func openLog(receipt, named string) (io.ReadCloser, error) {
	if named != "" {
		f, err := os.Open(named)
		if err != nil {
			return nil, usage("--events: %v", err)
		}
		return f, nil
	}
	if receipt == "-" {
		return nil, nil
	}
	f, err := os.Open(filepath.Join(filepath.Dir(receipt), "events.jsonl"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return f, err
}

// stepSummary appends a page to the summary of a GitHub job, where there is one.
func (a *app) stepSummary(v *runtime.GateVerdict) error {
	path := a.getenv("GITHUB_STEP_SUMMARY")
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("the step summary cannot be written: %w", err)
	}
	return errors.Join(report.Summary(f, v), f.Close())
}
