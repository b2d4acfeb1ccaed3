package main

import (
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/spec"
)

// runFlags are what oma run takes beside the flags of a team.
type runFlags struct {
	teamFlags
	output, receipt, state, record, dir string
	noJournal, quiet, explainDenials    bool
	again, noInput, journalRedact       bool
	author                              string
	maxTokens                           int64
	maxCost, failOn                     string
	maxDuration, grace                  time.Duration
	requireGovernance                   bool

	changed func(flag string) bool // on the command line, whatever its value
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run FILE|PLAN",
		Short: "Plan and run a team, or run a saved plan exactly, and leave a receipt",
		Args:  argsExactly(1, "one team file or saved plan"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.changed = cmd.Flags().Changed
			return a.run(cmd.Context(), args[0], &f)
		},
	}
	f.add(cmd)
	fl := cmd.Flags()
	fl.StringVarP(&f.output, "output", "o", "text", "text, json, yaml or ndjson (events as they happen)")
	fl.StringVar(&f.receipt, "receipt", "", "where to write the receipt (default: in the state folder)")
	fl.StringVar(&f.state, "state", "", "the folder runs are kept in (OMA_STATE)")
	fl.BoolVar(&f.noJournal, "no-journal", false, "keep no event log")
	fl.BoolVar(&f.journalRedact, "journal-redact", false, "keep nothing that looks like a secret in the event log: the run goes on between tasks only")
	fl.BoolVar(&f.again, "again", false, "run a saved plan that was run before")
	fl.StringVar(&f.author, "author", "", "who starts the run (OMA_AUTHOR; default: the user's name): approvals may want somebody else")
	fl.BoolVar(&f.noInput, "no-input", false, "ask nobody at the terminal: what needs a person suspends the run")
	fl.StringVar(&f.record, "record", "", "write a cassette of the run to this new file")
	fl.StringVar(&f.dir, "dir", "", "for a saved plan: the folder its inputs are in (default: the plan's own)")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "print the result only")
	fl.BoolVar(&f.explainDenials, "explain-denials", false, "say of each call that did not run which rules forbade it, what they read, and how to judge it again")
	fl.Int64Var(&f.maxTokens, "max-token-budget", 0, "lower the token ceiling")
	fl.StringVar(&f.maxCost, "max-cost-budget", "", "lower the cost ceiling, in US dollars")
	fl.DurationVar(&f.maxDuration, "max-duration", 0, "lower the ceiling on time")
	fl.DurationVar(&f.grace, "grace", 30*time.Second, "how long calls in flight may take after the first Ctrl-C or SIGTERM")
	fl.StringVar(&f.failOn, "fail-on", "", "end 8 on: denied")
	fl.BoolVar(&f.requireGovernance, "require-governance", false, "end 4 unless the governance conclusion is satisfied")
	return cmd
}

// ceilings reads the narrowing flags.
func (f *runFlags) ceilings() (spec.Budgets, error) {
	b := spec.Budgets{MaxTokenBudget: f.maxTokens, MaxDuration: spec.Duration(f.maxDuration)}
	switch {
	case f.changed("max-token-budget") && f.maxTokens <= 0:
		return b, usage("--max-token-budget %d: a ceiling is a number above 0", f.maxTokens)
	case f.changed("max-duration") && f.maxDuration <= 0:
		return b, usage("--max-duration %s: a ceiling is a time above 0", f.maxDuration)
	case f.journalRedact && f.noJournal:
		return b, usage("--journal-redact and --no-journal: there is no log to redact")
	case f.grace < 0:
		return b, usage("--grace %s is below 0", f.grace)
	}
	if f.changed("max-cost-budget") {
		v, err := spec.ParseUSD(f.maxCost)
		if err != nil || v <= 0 {
			return b, usage("--max-cost-budget %q is no amount above 0", f.maxCost)
		}
		b.MaxCostBudget = &v
	}
	if f.changed("fail-on") && f.failOn != "denied" {
		return b, usage("--fail-on %q is not denied", f.failOn)
	}
	if !slices.Contains([]string{"text", "json", "yaml", "ndjson"}, f.output) {
		return b, usage("-o %q is not text, json, yaml or ndjson", f.output)
	}
	return b, nil
}

// narrowing says where a flag was above the file's ceiling and so changes nothing.
func (a *app) narrowing(file, flags spec.Budgets) {
	say := func(flag string, higher bool) {
		if higher {
			a.say("--%s is above the file's ceiling, which stays", flag)
		}
	}
	say("max-token-budget", file.MaxTokenBudget > 0 && flags.MaxTokenBudget > file.MaxTokenBudget)
	say("max-cost-budget", file.MaxCostBudget != nil && flags.MaxCostBudget != nil && *flags.MaxCostBudget > *file.MaxCostBudget)
	say("max-duration", file.MaxDuration > 0 && flags.MaxDuration > file.MaxDuration)
}
