package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/plandiff"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/redact"
)

func (a *app) planDiffCommand() *cobra.Command {
	var f teamFlags
	var output, failOn string
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Say what may happen under B that could not under A",
		Long: "Diff compares two plans: of team files, which are compiled, or saved ones. Widened is what lets more happen, and whatever\n" +
			"cannot be shown not to. Ends 0 whatever differs, and 7 with --fail-on widened if something is.",
		Example: "  oma plan diff base/team.yaml team.yaml --fail-on widened",
		Args:    argsExactly(2, "two team files or saved plans"),
		RunE: func(_ *cobra.Command, args []string) error {
			if failOn != "" && failOn != "widened" {
				return usage("--fail-on %q is not widened", failOn)
			}
			return a.planDiff(args[0], args[1], &f, output, failOn)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, json or yaml")
	cmd.Flags().StringVar(&failOn, "fail-on", "", "end 7 on: widened")
	return cmd
}

func (a *app) planDiff(first, second string, f *teamFlags, output, failOn string) error {
	switch {
	case first == "-" && second == "-":
		return usage("only one of the two can come from standard input")
	case f.goalFile == "-":
		return usage("--goal-file - would be read once, and both team files need it: name a file")
	}
	one, savedOne, err := a.planOf(first, f)
	if err != nil {
		return err
	}
	two, savedTwo, err := a.planOf(second, f)
	if err != nil {
		return err
	}
	if flag := f.given(); flag != "" && savedOne && savedTwo {
		return usage("both are saved plans: --%s belongs to a team file", flag)
	}
	r, err := plandiff.Compare(one, two)
	if err != nil {
		return err
	}
	if err := a.print(output, r, func(w io.Writer) { a.planDiffText(w, r) }); err != nil {
		return err
	}
	if failOn == "widened" && r.Widened > 0 {
		a.say("%s widens what may happen: %d of %d differences", second, r.Widened, len(r.Changes))
		return ended(runtime.ExitStale)
	}
	return nil
}

// planOf gives the plan of a team file, or a saved one as it is: whether it could still run is not asked.
func (a *app) planOf(path string, f *teamFlags) (p *spec.Plan, saved bool, err error) {
	p, err = savedPlan(path)
	if err != nil {
		return nil, false, err
	}
	if p == nil {
		c, err := a.compile(path, f)
		if err != nil {
			return nil, false, err
		}
		return c.plan, false, nil
	}
	if err := a.under(path, p, f); err != nil {
		return nil, true, err
	}
	return p, true, a.problems(inFile(path, notEnforced(p, f.require)), false)
}

func (a *app) planDiffText(w io.Writer, r *plandiff.Result) {
	if r.Same {
		fmt.Fprintln(w, "nothing differs: the two plans are the same")
		return
	}
	direction := plandiff.Direction("")
	for _, c := range r.Changes {
		if c.Direction != direction {
			direction = c.Direction
			fmt.Fprintln(w, direction)
		}
		line := string(c.Path) + ": " + c.What
		if c.Agent != "" && !strings.HasPrefix(string(c.Path), "agents.") {
			line = string(c.Path) + " (agent " + c.Agent + "): " + c.What
		}
		fmt.Fprintf(w, "  %s%s\n", a.outside(strings.Join(strings.Fields(line), " ")), a.valuesText(c.A, c.B))
		if c.Diff != "" {
			text := strings.TrimSuffix(redact.Mask(c.Diff), "\n")
			fmt.Fprintf(w, "      %s\n", strings.ReplaceAll(a.outside(text), "\n", "\n      "))
		}
	}
	fmt.Fprintf(w, "%d widened, %d narrowed, %d changed otherwise\n", r.Widened, r.Narrowed, r.Changed)
}

// valuesText shows what was and what is, where that is short.
func (a *app) valuesText(was, is json.RawMessage) string {
	const room = 120 // bytes of both
	if len(was)+len(is) == 0 || len(was)+len(is) > room {
		return ""
	}
	show := func(b json.RawMessage) string {
		if b == nil {
			return "nothing"
		}
		return a.outside(redact.Mask(string(b)))
	}
	return ": " + show(was) + " → " + show(is)
}
