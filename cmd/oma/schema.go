package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/schemas"
	"github.com/open-multi-agent/oma/spec"
)

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema [KIND]",
		Short: "Print the JSON Schema of a kind of document",
		Long:  "Schema prints the JSON Schema of a kind of document: " + strings.Join(schemas.Kinds(), ", ") + ". Without a kind it lists them.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("schema takes one kind")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				fmt.Fprintln(a.stdout, strings.Join(schemas.Kinds(), "\n"))
				return nil
			}
			b, ok := schemas.Get(args[0])
			if !ok {
				return usage("no kind is called %q: %s", args[0], spec.DidYouMean(args[0], schemas.Kinds()))
			}
			_, err := a.stdout.Write(b)
			return err
		},
	}
}
