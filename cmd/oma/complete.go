package main

import (
	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/policies/library"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/graph"
	"github.com/open-multi-agent/oma/schemas"
)

// complete tells shells what can follow: the values of flags that take one of a few, and which files a command reads.
// The lists are made when a shell asks.
func complete(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "run":
			values(cmd, "output", fixed("text", "json", "yaml", "ndjson"))
			values(cmd, "fail-on", fixed("denied"))
		case "plan":
			values(cmd, "fail-on", fixed("unaffordable"))
			complete(cmd)
		case "graph":
			values(cmd, "format", graph.Formats)
		case "gate":
			values(cmd, "format", fixed("text", "json", "junit", "github"))
			values(cmd, "output", fixed("text", "json", "junit", "github"))
			cmd.ValidArgsFunction = files("json")
		case "schema":
			cmd.ValidArgsFunction = one(schemas.Kinds)
		case "policy", "mcp":
			complete(cmd)
			continue
		case "diff": // of plans; that of receipts is told with receipt
			values(cmd, "fail-on", fixed("widened"))
		case "receipt":
			for _, sub := range cmd.Commands() {
				sub.ValidArgsFunction = files("json")
				values(sub, "output", fixed("text", "json", "yaml"))
			}
			continue
		case "check", "explain":
			values(cmd, "tool", func() []string { return catalog().Names() })
		case "classify":
			values(cmd, "fail-on", fixed("review", "high"))
		case "show":
			cmd.ValidArgsFunction = one(library.Names)
		}
		switch cmd.Name() {
		case "validate", "plan", "graph", "diff", "run", "doctor", "check", "explain", "test", "lock", "list", "call":
			cmd.ValidArgsFunction = files("yaml", "yml", "json")
		}
		if cmd.Name() != "run" && cmd.Name() != "gate" {
			values(cmd, "output", fixed("text", "json", "yaml"))
		}
		values(cmd, "require-enforced", runtime.Controls)
	}
}

// values registers what a flag takes. A command without the flag is left alone.
func values(cmd *cobra.Command, flag string, list func() []string) {
	if cmd.Flags().Lookup(flag) != nil {
		cmd.RegisterFlagCompletionFunc(flag, one(list)) // fails only for a flag that does not exist or has one already
	}
}

func fixed(values ...string) func() []string { return func() []string { return values } }

func one(list func() []string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return list(), cobra.ShellCompDirectiveNoFileComp
	}
}

func files(extensions ...string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return extensions, cobra.ShellCompDirectiveFilterFileExt
	}
}
