// Command oma runs a team of LLM agents declared in one YAML file and proves what happened.
//
// One file per command; wire.go maps the names of the team language to what implements them; exit.go turns errors into
// what a person reads and into exit codes. Only this package reads the environment, flags and the working directory.
package main

import (
	"context"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/open-multi-agent/oma/runtime/sandbox"

	"github.com/open-multi-agent/oma/spec"
)

// version and commit are set by the linker; see build.
var (
	version = "dev"
	commit  = ""
)

// gcPercent lets the little that a run holds grow to three times its size between collections, not twice. That saves a
// tenth of its processor time and costs 4 MB at 500 tasks, 12 MB at 5,000. GOGC overrides it.
const gcPercent = 200

func main() {
	if code, mine := sandbox.Helper(os.Args, os.Environ(), os.Stderr); mine { // it becomes a command of an agent
		os.Exit(code)
	}
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, lookup: os.LookupEnv, now: time.Now, newID: randomID,
		size: sizeOf(os.Stderr), tick: everySecond, signals: true, asks: term.IsTerminal(int(os.Stdin.Fd())), discard: discardTyped, login: login,
		closed: closeProcess(), environment: hiddenEnvironment(os.Environ())}
	if a.environment != nil {
		a.lookup = func(name string) (string, bool) { v, ok := a.environment[name]; return v, ok }
	}
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	os.Exit(a.main(context.Background(), os.Args[1:]))
}

// root is the command tree. Building it does no work beyond flags.
func (a *app) root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "oma",
		Short:         "Run a team of LLM agents declared in one YAML file, and prove what happened",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noSuchCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetIn(a.stdin)
	cmd.SetOut(a.stdout)
	cmd.SetErr(a.stderr)
	cmd.SetFlagErrorFunc(flagError)
	cmd.PersistentFlags().StringVar(&a.logLevel, "log-level", "off", "commentary on standard error: off, error, warn, info, debug, trace")
	cmd.PersistentFlags().StringVar(&a.logFormat, "log-format", "text", "format of the commentary: text or json")
	cmd.CompletionOptions.HiddenDefaultCmd = false
	cmd.AddCommand(a.initCommand(), a.validateCommand(), a.planCommand(), a.graphCommand(), a.runCommand(), a.resumeCommand(), a.runsCommand(), a.approvalsCommand(), a.approveCommand(), a.rejectCommand(), a.gateCommand(), a.receiptCommand(), a.policyCommand(), a.mcpCommand(),
		a.explainCommand(), a.schemaCommand(), a.doctorCommand(), a.versionCommand())
	complete(cmd)
	strictCompletion(cmd)
	cmd.SetHelpCommand(helpCommand(cmd))
	return cmd
}

// helpCommand refuses a command that does not exist; cobra's own prints a page and ends 0.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about a command",
		RunE: func(_ *cobra.Command, args []string) error {
			target, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return usage("unknown command %q: %s", args[len(args)-1], spec.DidYouMean(args[len(args)-1], names(root)))
			}
			return target.Help()
		},
	}
}

// strictCompletion makes cobra's own command refuse what it does not know, like every other.
func strictCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	cmd, _, err := root.Find([]string{"completion"})
	if err != nil {
		return
	}
	cmd.Args, cmd.RunE = noSuchCommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	for _, shell := range cmd.Commands() {
		shell.Args = argsExactly(0, "no arguments")
	}
}

// noSuchCommand refuses arguments of a command that only has commands below it.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usage("unknown command %q: %s", args[0], spec.DidYouMean(args[0], names(cmd)))
}

func names(cmd *cobra.Command) []string {
	var out []string
	for _, c := range cmd.Commands() {
		out = append(out, c.Name())
	}
	return out
}
