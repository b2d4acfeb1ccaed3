package main

import (
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
			"grants, rules with their examples, governance, budgets and release requirements. It starts no process, opens no connection and reads no secret.",
		Args: argsAtLeast(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.validate(args, &f, output) },
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

func (a *app) validate(files []string, f *teamFlags, output string) error {
	v := validation{Valid: true, Files: files, Diagnostics: spec.Diagnostics{}}
	above, ds := loader.Above(a.abovePaths(f))
	v.Diagnostics = append(v.Diagnostics, ds...)
	f.above = above
	for _, path := range files {
		ds, err := a.check(path, f)
		if err != nil {
			return err
		}
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
			for _, path := range files {
				fmt.Fprintf(w, "%s: valid\n", path)
			}
		}
	})
	if err != nil || v.Valid {
		return err
	}
	return &exitError{code: runtime.ExitUsage}
}

// check gives the problems of one document of any kind.
func (a *app) check(path string, f *teamFlags) (spec.Diagnostics, error) {
	o := runtime.CompileOptions{Catalog: catalog(), Agent: f.agent}
	if err := a.goal(f, &o); err != nil {
		return nil, err
	}
	var loaded *loader.Loaded
	var ds spec.Diagnostics
	if path == "-" {
		data, err := a.readInput("-")
		if err != nil {
			return nil, usage("%v", err)
		}
		loaded, ds = loader.Read("-", data, "")
	} else {
		loaded, ds = loader.Any(path)
	}
	loaded.Under(f.above)
	var more spec.Diagnostics
	switch {
	case loaded.Bundle != nil:
		plan, problems := runtime.Compile(loaded.Bundle, o)
		more = append(problems, notEnforced(plan, f.require)...)
	case loaded.Policy != nil:
		more = runtime.CheckPolicy(loaded.Policy.Policy, o.Catalog.Tools)
	}
	loaded.Sources.Place(more)
	ds = append(ds, more...)
	ds.Sort()
	return ds, nil
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
