package custom

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/open-multi-agent/oma/policies/tools"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/process"
	"github.com/open-multi-agent/oma/spec"
)

func (t *tool) command() (func(context.Context, runtime.Invocation) spec.ToolResult, error) {
	template, err := tools.ParseCommand(t.spec.Command)
	if err != nil {
		return nil, err
	}
	secrets := map[string]string{}
	for _, name := range t.spec.Credentials {
		secret, ok := t.Credentials[name]
		if !ok {
			return nil, fmt.Errorf("the agent has no credential %q", name)
		}
		secrets[name] = secret
	}
	env := sync.OnceValue(func() []string { return process.Environment(t.Env, secrets) }) // whoever only judges calls asks for nothing
	return func(ctx context.Context, call runtime.Invocation) spec.ToolResult {
		return t.run(ctx, template, env(), call)
	}, nil
}

func (t *tool) run(ctx context.Context, template *tools.Command, env []string, call runtime.Invocation) spec.ToolResult {
	args, err := template.Arguments(call.Input)
	if err != nil {
		return t.failed("%v", err)
	}
	base := t.Base
	if base == "" {
		base = t.Dir
	}
	program, err := process.Find(template.Program, base, process.Variable(process.Environment(t.Env, nil), "PATH")) // the team's own does not decide which one it is
	if err != nil {
		return t.failed("%v", err)
	}
	limits := process.Limits{Input: append([]byte{}, call.Canonical...), Timeout: t.timeout, Grace: grace}
	if t.structured() { // half of it would be of no use
		limits.MaxStdout = int64(t.most())
	}
	o, err := t.commands.Run(ctx, process.Command{Program: program, Args: args, Dir: t.Dir, Env: env}, limits)
	switch {
	case err != nil:
		return t.failed("it did not start: %v", err)
	case o.Reason != process.Exited:
		return t.failed("%s%s", t.ended(ctx, o.Reason), t.said("stderr", o.Stderr))
	case !o.Exit.OK() && strings.TrimSpace(o.Stderr.Text) == "":
		return t.failed("it %s%s", o.Exit, t.said("stdout", o.Stdout))
	case !o.Exit.OK():
		return t.failed("it %s%s", o.Exit, t.said("stderr", o.Stderr))
	}
	return t.answer(o.Stdout.Text)
}

func (t *tool) ended(ctx context.Context, why process.Reason) string {
	switch why {
	case process.Closed:
		return "the run has ended"
	case process.Flooded:
		return fmt.Sprintf("it wrote more than %d bytes", t.most())
	}
	return t.stopped(ctx)
}

// tailBytes is how much of what a failed command said is shown.
const tailBytes = 4 << 10

// said gives the end of a stream, redacted before it is cut: half a secret is not recognised.
func (t *tool) said(stream string, o process.Output) string {
	text := strings.TrimSpace(t.clean(o.Text))
	if text == "" {
		return ""
	}
	if cut := len(text) - tailBytes; cut > 0 {
		for !utf8.RuneStart(text[cut]) {
			cut++
		}
		text = "…" + text[cut:]
	}
	return "\n--- " + stream + " ---\n" + text
}
