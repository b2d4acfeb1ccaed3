package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/redact"
)

func (a *app) mcpCallCommand() *cobra.Command {
	var f callFlags
	cmd := &cobra.Command{
		Use:   "call FILE|PLAN TOOL",
		Short: "Make one call of an MCP tool as an agent, through the gates",
		Long: "Call judges one call as oma policy check does and, if it may run, makes it: the server is started, held against the lock and\n" +
			"asked once. It ends 1 when the call may not run or its result is an error, 6 when a run would ask a person first, and 7 when\n" +
			"the server no longer offers what was judged. A call that is not made starts no server. There is no way around a rule, and\n" +
			"no record: the call is in no log and on no receipt.",
		Example: `  oma mcp call team.yaml fs_read_text_file --agent reviewer --input '{"path": "README.md"}'`,
		Args:    argsExactly(2, "one team file or saved plan, and one tool"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.tool = args[1]
			return a.mcpCall(cmd.Context(), args[0], &f)
		},
	}
	f.addCall(cmd)
	return cmd
}

// callResult is the document mcp call prints.
type callResult struct {
	*checkResult
	Called   bool `json:"called"`
	Recorded bool `json:"recorded"` // always false
	// Result is what the server gave. nil: it was not called.
	Result *spec.ToolResult `json:"result,omitempty"`
}

func (a *app) mcpCall(ctx context.Context, path string, f *callFlags) error {
	q, w, err := a.caller(path, f)
	if err != nil {
		return err
	}
	r := &callResult{}
	j, err := q.checker.Check(ctx, q.call) // without a server
	q.checker.Close()
	if err == nil && j.Allowed() && !q.result(j).NeedsConfirmation { // nobody approves a plan here
		sig := a.watchSignals(ctx, 0, func() {})
		defer sig.stop()
		if j, r.Result, err = q.make(sig.ctx, w); err != nil {
			err = sig.because(err)
		}
	}
	if err != nil {
		return asked(err)
	}
	r.checkResult, r.Called = q.result(j), r.Result != nil
	if err := a.print(f.output, r, func(w io.Writer) { a.callText(w, r) }); err != nil {
		return err
	}
	switch {
	case r.Called && !r.Result.IsError:
		return nil
	case !r.Called && r.Waits():
		return ended(runtime.ExitSuspended)
	}
	return ended(runtime.ExitFailed)
}

// caller reads the call and its team, and gets ready to make it. No server is started.
func (a *app) caller(path string, f *callFlags) (*question, *wiring, error) {
	defer a.holdBack()()
	q, w, err := a.askedBy("mcp call", path, f)
	if err != nil {
		return nil, nil, err
	}
	if _, _, ok := q.c.plan.ServerOf(f.tool); !ok {
		var names []string
		for _, s := range q.c.plan.MCPServers {
			for _, t := range s.Tools {
				names = append(names, t.As)
			}
		}
		slices.Sort(names)
		return nil, nil, usage("no MCP server of %s has a tool %q: %s", path, f.tool, spec.DidYouMean(f.tool, names))
	}
	return q, w, a.hideSecrets(w)
}

// make makes the call of an agent with that agent's credentials.
func (q *question) make(ctx context.Context, w *wiring) (*runtime.Checked, *spec.ToolResult, error) {
	agent := q.c.plan.Agent(q.call.AgentName)
	w.credentials = map[string]map[string]string{agent.Name: {}}
	var known []redact.Secret
	for name, ref := range agent.Credentials {
		value, err := w.secret(&ref)
		if err != nil {
			return nil, nil, usage("agent %q, credential %s: %v [secret-missing]", agent.Name, name, err)
		}
		w.credentials[agent.Name][name] = value
		known = append(known, redact.Secret{Name: name, Value: value})
	}
	w.redactor = redact.New(known...)
	log, err := w.app.logger()
	if err != nil {
		return nil, nil, err
	}
	w.serve(log)
	checker, err := runtime.NewChecker(q.c.plan, runtime.Options{Tools: w, Known: catalog().Tools, Retrace: q.c.retrace(), Redact: w.redactor.Text, Reference: w.redactor.References})
	if err != nil {
		return nil, nil, err
	}
	defer checker.Close()
	return checker.Make(ctx, q.call)
}

func (a *app) callText(w io.Writer, r *callResult) {
	if !r.Called {
		a.checkText(w, r.checkResult)
		return
	}
	a.say("the call was judged and made; it is in no log and on no receipt")
	fmt.Fprintln(w, a.outside(r.Result.Text))
}
