package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/loader"
	"github.com/open-multi-agent/oma/policies/shell"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

// maxCommandBytes is how much of one command is kept: what is longer is judged by that alone.
const maxCommandBytes = 64 << 10

type classifyFlags struct {
	null, facts          bool
	team, failOn, output string
}

func (a *app) classifyCommand() *cobra.Command {
	var f classifyFlags
	cmd := &cobra.Command{
		Use:   "classify COMMAND|-|-0",
		Short: "Say how risky a shell command is, by reading it",
		Long: "Classify reads a command as bash would and says safe, review or high, with the reasons. It runs nothing. - reads one\n" +
			"command a line from standard input, -0 commands that end with a NUL byte, which may have several lines. Every\n" +
			"command gets an answer, in order. It ends 0 whatever the levels are, unless --fail-on says otherwise.",
		Example: `  oma policy classify 'rm -rf build'
  git diff -U0 main -- Makefile | sed -n 's/^+\t//p' | oma policy classify - -o json --fail-on high`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 != f.null || f.null && len(args) == 1 && args[0] == "-" {
				return nil
			}
			return usage("classify takes one command, or - or -0 to read commands from standard input; put a command between quotes")
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.classify(args, &f) },
	}
	fl := cmd.Flags()
	fl.BoolVarP(&f.null, "null", "0", false, "read commands from standard input, each ended by a NUL byte")
	fl.BoolVar(&f.facts, "facts", false, "add what the text says: commands, redirects, writes, network")
	fl.StringVar(&f.team, "team", "", "a team file whose gates.shell.levels count")
	fl.StringVar(&f.failOn, "fail-on", "", "end 8 if a command is at that level or above: review or high")
	fl.StringVarP(&f.output, "output", "o", "text", "text, json (one object a line) or yaml (one document each)")
	return cmd
}

// classified is the document for one command.
type classified struct {
	Command   string        `json:"command"`
	Truncated bool          `json:"truncated,omitempty"` // the command is longer than what is shown
	Level     string        `json:"level"`
	Reason    string        `json:"reason"`
	Findings  []riskFinding `json:"findings"`
	Facts     *shellFacts   `json:"facts,omitempty"`
}

type riskFinding struct {
	Level  string `json:"level"`
	Code   string `json:"code"`
	Reason string `json:"reason"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Text   string `json:"text"`
}

func (a *app) classify(args []string, f *classifyFlags) error {
	switch {
	case f.failOn != "" && f.failOn != shell.Review && f.failOn != shell.High:
		return usage("--fail-on %q is not review or high", f.failOn)
	case f.output != "text" && f.output != "json" && f.output != "yaml":
		return usage("-o %q is not text, json or yaml", f.output)
	}
	levels, err := a.levels(f.team, len(args) == 0 || args[0] == "-")
	if err != nil {
		return err
	}
	c := &classifier{app: a, f: f, levels: levels, out: bufio.NewWriter(a.stdout)}
	switch {
	case f.null:
		err = c.stream(0)
	case args[0] == "-":
		err = c.stream('\n')
	default:
		err = c.one(args[0])
	}
	if err = errors.Join(err, c.out.Flush()); err != nil {
		return err
	}
	if c.worst != "" && f.failOn != "" && !shell.Worse(f.failOn, c.worst) {
		return ended(runtime.ExitDenied)
	}
	return nil
}

// levels reads the levels of a team. No team has none.
func (a *app) levels(team string, stdin bool) ([]shell.Level, error) {
	if team == "" {
		return nil, nil
	}
	if team == "-" && stdin {
		return nil, usage("only one of --team and the commands can be standard input")
	}
	first := func(t *spec.Team) string { return aloneIn(t, t.Agents[0].Name) }
	c, err := a.compile(team, &teamFlags{goal: "judge commands", alone: first})
	if err != nil {
		return nil, err
	}
	return levelsOf(c.plan), nil
}

// levelsOf gives the levels of a plan.
func levelsOf(p *spec.Plan) (out []shell.Level) {
	for _, l := range p.Gates.Levels {
		out = append(out, shell.Level{Match: l.Match, Level: l.Level, Reason: l.Reason, Override: l.Override})
	}
	return out
}

// classifier answers one command after the other and keeps none.
type classifier struct {
	*app
	f      *classifyFlags
	levels []shell.Level
	out    *bufio.Writer
	worst  string // of all commands; empty: there was none
	count  int
}

// stream reads commands that end with a byte. The last may end with the input. What was answered is written before the
// next command is waited for, so that another program can ask and listen.
func (c *classifier) stream(end byte) error {
	in := bufio.NewReaderSize(c.stdin, 32<<10)
	for {
		if in.Buffered() == 0 {
			if err := c.out.Flush(); err != nil {
				return err
			}
		}
		command, err := readUntil(in, end)
		if err != nil && err != io.EOF {
			return fmt.Errorf("standard input: %w", err)
		}
		if err == io.EOF && command == "" {
			break
		}
		if err := c.one(command); err != nil {
			return err
		}
	}
	if c.count == 0 {
		return usage("standard input holds no command")
	}
	return nil
}

// readUntil reads a command without the byte that ends it, and no more of it than can be judged. io.EOF with a command:
// nothing ended it.
func readUntil(in *bufio.Reader, end byte) (string, error) {
	var kept bytes.Buffer
	for {
		part, err := in.ReadSlice(end)
		if err == nil {
			part = part[:len(part)-1]
		}
		if room := maxCommandBytes + 1 - kept.Len(); room > 0 {
			kept.Write(part[:min(len(part), room)])
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == io.EOF && kept.Len() == 0:
			return "", io.EOF
		case err == io.EOF:
			return kept.String(), nil
		default:
			return kept.String(), err
		}
	}
}

// one judges a command and writes the answer.
func (c *classifier) one(command string) error {
	facts := shell.Classify(command, c.levels)
	if c.count++; c.worst == "" || shell.Worse(facts.Risk, c.worst) {
		c.worst = facts.Risk
	}
	r := classified{Command: command, Level: facts.Risk, Reason: facts.Reason, Findings: []riskFinding{}}
	if len(command) > maxCommandBytes {
		r.Command, r.Truncated = strings.ToValidUTF8(command[:maxCommandBytes], ""), true
	}
	for _, f := range facts.Findings {
		r.Findings = append(r.Findings, riskFinding{f.Level, f.Code, f.Reason, f.Line, f.Column, f.Text})
	}
	if c.f.facts {
		r.Facts = factsOf(&facts)
	}
	if c.f.output == "text" {
		c.text(&r)
		return nil
	}
	b, err := json.Marshal(r)
	if err == nil && c.f.output == "yaml" {
		if b, err = loader.YAML(b); c.count > 1 {
			c.out.WriteString("---\n")
		}
	}
	if err != nil {
		return err
	}
	c.out.Write(bytes.TrimRight(b, "\n"))
	return c.out.WriteByte('\n')
}

func (c *classifier) text(r *classified) {
	shown := firstLine(r.Command)
	if cut := cutTo(shown, 100); cut != r.Command {
		shown = cut + " …"
	}
	fmt.Fprintf(c.out, "%-6s  %s\n", r.Level, c.outside(shown))
	line := c.lines(c.out, "  ")
	if len(r.Findings) != 1 {
		line("reason", r.Reason)
	}
	for _, f := range r.Findings {
		line(fmt.Sprintf("%d:%d", f.Line, f.Column), fmt.Sprintf("%-6s  %s: %s", f.Level, f.Code, f.Reason))
	}
	if r.Facts != nil {
		r.Facts.text(line)
	}
}
