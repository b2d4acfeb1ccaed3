package main

import (
	"fmt"
	"io"
	goruntime "runtime"
	"runtime/debug"

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
			}{build(), spec.APIVersion, goruntime.Version(), goruntime.GOOS + "/" + goruntime.GOARCH}
			return a.print(output, doc, func(w io.Writer) { fmt.Fprintln(w, "oma "+doc.Version) })
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, json or yaml")
	return cmd
}

// build is what this program was made from, as the linker was told, else as the toolchain noted it: go install knows the
// version, a build in a working copy the commit. "dev" is neither.
func build() spec.Build {
	b := spec.Build{Version: version, Commit: commit}
	if b.Version != "dev" || b.Commit != "" {
		return b
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Commit = s.Value
		}
	}
	return b
}
