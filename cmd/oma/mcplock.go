package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/policies/servers"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

// lockFlags are those of commands that ask servers.
type lockFlags struct {
	teamFlags        // of which --policy and --strict alone are used
	whose     string // the agent whose credentials servers get
	check     bool
	output    string
}

func (f *lockFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.whose, "agent", "", "the agent whose credentials servers get (default: for each server, the first that has them)")
	fl.BoolVar(&f.strict, "strict", false, "take warnings for errors")
	fl.StringVarP(&f.output, "output", "o", "text", "text, json or yaml")
	f.addPolicy(cmd)
}

func (a *app) mcpLockCommand() *cobra.Command {
	var f lockFlags
	cmd := &cobra.Command{
		Use:   "lock FILE",
		Short: "Ask the MCP servers of a team what they offer, and pin it in " + spec.LockName,
		Long: "Lock starts every server of the team file, asks it for its tools and writes them, with a digest of each, into " + spec.LockName + "\n" +
			"beside the file. From then on rules over these tools are checked without a server, and a run refuses a tool that is no\n" +
			"longer what was locked. It shows what has changed: look at it before you commit the file.\n" +
			"It starts programs and asks addresses that the team file names: run it on files you trust.",
		Example: "  oma mcp lock team.yaml\n  oma mcp lock team.yaml --check",
		Args:    argsExactly(1, "one team file"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.mcpLock(cmd.Context(), args[0], &f) },
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&f.check, "check", false, "write nothing, and end 7 if the servers no longer offer what is locked")
	return cmd
}

// lockResult is the document mcp lock prints.
type lockResult struct {
	Path    string         `json:"path"`
	Written bool           `json:"written"`
	Servers map[string]int `json:"servers"` // how many tools each has
	lockDiff
}

func (a *app) mcpLock(ctx context.Context, path string, f *lockFlags) error {
	release := a.holdBack()
	k, err := a.survey(path, f.whose, &f.teamFlags)
	if err == nil {
		err = k.hideSecrets(k.wiring)
	}
	release()
	if err != nil {
		return err
	}
	now, err := k.ask(ctx)
	if err != nil {
		return err
	}
	var was *spec.Lock
	if file := k.loaded.Bundle.Lock; file != nil {
		was = file.Lock
		if err := servers.Verify(was); err != nil {
			a.say("warning: the lock was edited by hand: %v [mcp-lock]", err)
			was = nil // all of it is shown as new
		}
	}
	diff, err := lockChanges(was, now)
	if err != nil {
		return err
	}
	r := &lockResult{Path: filepath.Join(folderOf(path), spec.LockName), Servers: map[string]int{}, lockDiff: *diff}
	for name, tools := range now {
		r.Servers[name] = len(tools)
	}
	if !f.check && !diff.empty() {
		if err := writeLock(r.Path, was, now); err != nil {
			return err
		}
		r.Written = true
	}
	if err := a.print(f.output, r, func(w io.Writer) { a.lockText(w, r, now) }); err != nil {
		return err
	}
	if f.check && !diff.empty() {
		return ended(runtime.ExitStale)
	}
	return nil
}

// writeLock writes what servers offer now. Servers of other teams in the folder stay as they were locked. nil: there are
// none.
func writeLock(path string, was *spec.Lock, now map[string][]spec.ServerTool) error {
	lock, err := servers.NewLock(now)
	if err != nil {
		return err
	}
	if was != nil {
		for name, s := range was.Servers {
			if _, ours := now[name]; !ours {
				lock.Servers[name] = s
			}
		}
	}
	text, err := servers.Encode(lock)
	if err != nil {
		return err
	}
	if err := writeFile(path, text); err != nil {
		return fmt.Errorf("the lock cannot be written: %w", errors.Unwrap(err))
	}
	return nil
}

func (a *app) lockText(w io.Writer, r *lockResult, now map[string][]spec.ServerTool) {
	for _, line := range r.text(now) {
		fmt.Fprintln(w, a.outside(line))
	}
	tools := 0
	for _, n := range r.Servers {
		tools += n
	}
	has := fmt.Sprintf("%s of %s", counted(tools, "tool"), counted(len(r.Servers), "server"))
	switch {
	case r.Written:
		fmt.Fprintf(w, "%s: written, %s\n", r.Path, has)
	case r.empty():
		fmt.Fprintf(w, "%s: holds, %s\n", r.Path, has)
	default:
		fmt.Fprintf(w, "%s: does not hold\n", r.Path)
	}
}

// folderOf is the folder that paths in a team file are relative to.
func folderOf(path string) string {
	if path == "-" {
		return "."
	}
	return filepath.Dir(path)
}
