package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/loader"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

func (a *app) validateCommand() *cobra.Command {
	var f teamFlags
	var output string
	cmd := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Find everything that can be known without a model, all at once",
		Long: "Validate checks teams, policies, policy tests and cassettes: syntax, keys and values first; once those are right, names,\n" +
			"grants, rules with their examples, governance, budgets and release requirements. Of a policy test it checks that every\n" +
			"case can be asked of its team, and not what comes of it: that is for policy test. It starts no process, opens no\n" +
			"connection and reads no secret.",
		Args: argsAtLeast(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.validate(cmd.Context(), args, &f, output) },
	}
	f.add(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, json or yaml")
	return cmd
}

// validation is the document validate prints.
type validation struct {
	Valid       bool             `json:"valid"`
	Files       []string         `json:"files"`
	Diagnostics spec.Diagnostics `json:"diagnostics"`
}

func (a *app) validate(ctx context.Context, files []string, f *teamFlags, output string) error {
	v := validation{Valid: true, Files: files, Diagnostics: spec.Diagnostics{}}
	above, ds := loader.Above(a.abovePaths(f))
	v.Diagnostics = append(v.Diagnostics, ds...)
	f.above = above
	kinds := make([]string, len(files))
	for i, path := range files {
		kind, ds, err := a.check(ctx, path, f)
		if err != nil {
			return err
		}
		kinds[i] = kind
		v.Diagnostics = append(v.Diagnostics, ds...)
	}
	v.Valid = !v.Diagnostics.HasErrors(f.strict)
	v.Diagnostics = masked(v.Diagnostics)
	if output == "text" {
		if err := loader.Render(a.stderr, v.Diagnostics); err != nil {
			return err
		}
	}
	err := a.print(output, v, func(w io.Writer) {
		if v.Valid {
			for i, path := range files {
				more := ""
				if kinds[i] == spec.KindPolicyTest {
					more = "; whether its cases hold is for oma policy test"
				}
				fmt.Fprintf(w, "%s: valid%s\n", path, more)
			}
		}
	})
	if err != nil || v.Valid {
		return err
	}
	return &exitError{code: runtime.ExitUsage}
}

// check gives the kind of one document and its problems.
func (a *app) check(ctx context.Context, path string, f *teamFlags) (kind string, ds spec.Diagnostics, err error) {
	o := runtime.CompileOptions{Catalog: catalog(), Agent: f.agent}
	if err := a.goal(f, &o); err != nil {
		return "", nil, err
	}
	loaded, ds, err := a.loadAny(path)
	if err != nil {
		return "", nil, err
	}
	loaded.Under(f.above)
	var more spec.Diagnostics
	switch {
	case loaded.Bundle != nil:
		plan, problems := runtime.Compile(loaded.Bundle, o)
		more = append(problems, notEnforced(plan, f.require)...)
	case loaded.Policy != nil:
		more = runtime.CheckPolicy(loaded.Policy.Policy, o.Catalog.Tools)
	case loaded.PolicyTest != nil:
		under := *f
		tested, sources, err := a.testCases(ctx, path, loaded, &ds, &under)
		if err != nil {
			return "", nil, err
		}
		if tested != nil {
			sources.Place(tested.Failed)
			ds = append(ds, tested.Failed...)
		}
	}
	loaded.Sources.Place(more)
	ds = append(ds, more...)
	ds.Sort()
	return loaded.Kind, ds, nil
}

func argsAtLeast(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < n {
			return usage("%s needs a file", cmd.Name())
		}
		return nil
	}
}

func argsAtMost(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return usage("%s takes %s at most", cmd.Name(), what)
		}
		return nil
	}
}

func argsExactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usage("%s takes %s", cmd.Name(), what)
		}
		return nil
	}
}
