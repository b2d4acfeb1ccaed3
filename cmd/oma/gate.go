package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	noLog                                 bool
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
	fl.BoolVar(&f.noLog, "no-log", false, "let a receipt pass without its event log")
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
	if f.noLog && f.events != "" {
		return usage("--no-log and --events exclude each other")
	}
	o := runtime.GateOptions{NoLog: f.noLog, Unbound: f.unbound, AllowNotApplicable: f.notApplicable, RequireSigned: f.requireSigned}
	if err := a.yardstick(f, &o); err != nil {
		return err
	}
	v := a.verdict(path, f, o)
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

// verdict decides about the receipt at a path. A receipt or a log that cannot be read is missing, whatever the cause.
func (a *app) verdict(path string, f *gateFlags, o runtime.GateOptions) *runtime.GateVerdict {
	data, err := a.readInput(path)
	if err != nil {
		return runtime.NoReceipt(fmt.Sprintf("the receipt cannot be read: %v", cause(err)))
	}
	if f.noLog {
		return runtime.Gate(data, o)
	}
	log, err := openLog(path, f.events)
	if err != nil {
		a.say("the event log cannot be read: %v", err)
	}
	if log != nil {
		defer log.Close()
		o.Log = log
	}
	return runtime.Gate(data, o)
}

// cause is an error without the path and the operation, which the message names by itself.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// yardstick gives the gate a plan from outside the receipt.
func (a *app) yardstick(f *gateFlags, o *runtime.GateOptions) error {
	flag := f.given()
	if f.plan == "" {
		flag = f.givenOrRequired()
	}
	switch {
	case f.team != "" && f.plan != "":
		return usage("--team and --plan exclude each other")
	case f.team == "" && flag != "":
		return usage("--%s belongs to --team FILE", flag)
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
		return a.problems(inFile(f.plan, notEnforced(o.Plan, f.require)), false)
	}
	return nil
}

// openLog opens the event log that was named, or the one beside the receipt. Without either there is none. Only a
// regular file is opened: a pipe could keep the gate waiting for ever.
func openLog(receipt, named string) (io.ReadCloser, error) {
	path := named
	if path == "" {
		if receipt == "-" {
			return nil, nil
		}
		path = filepath.Join(filepath.Dir(receipt), "events.jsonl")
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && named == "":
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	return os.Open(path)
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
