package main

import (
	"fmt"
	"io"
	goruntime "runtime"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/spec"
)

func (a *app) versionCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  argsExactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			doc := struct {
				spec.Build
				APIVersion string `json:"apiVersion"`
				Go         string `json:"go"`
				Platform   string `json:"platform"`
			}{spec.Build{Version: version, Commit: commit}, spec.APIVersion, goruntime.Version(), goruntime.GOOS + "/" + goruntime.GOARCH}
			return a.print(output, doc, func(w io.Writer) { fmt.Fprintln(w, "oma "+version) })
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, json or yaml")
	return cmd
}
