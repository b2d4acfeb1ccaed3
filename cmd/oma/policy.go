package main

import "github.com/spf13/cobra"

func (a *app) policyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Ask the rules of a team about calls and commands, and test them",
		Args:  noSuchCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.classifyCommand(), a.policyCheckCommand(), a.policyTestCommand(), a.policyExplainCommand(), a.policyShowCommand())
	return cmd
}
