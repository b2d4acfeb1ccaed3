package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/docs"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

// explainFlags are those of a team, and those of a run that lower a ceiling.
type explainFlags struct {
	runFlags
	effective bool
}

func (a *app) explainCommand() *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:   "explain FILE [PATH] | CODE",
		Short: "Say what is in force for a team and where it comes from, or what a code means",
		Long: "Explain shows a part of a compiled team: agents.NAME is what an agent can do and what stands before each tool,\n" +
			"tasks[N] who does a task and why, any other path the values in force and their sources. --effective lists them all.\n" +
			"A code of a problem, such as gate-dead, prints what it means and how to mend it.",
		Example: `  oma explain team.yaml agents.reviewer
  oma explain team.yaml budgets --max-token-budget 20000
  oma explain gate-dead`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 && len(args) != 2 {
				return usage("explain takes a team file and at most one path in it, or one code")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.changed = cmd.Flags().Changed
			return a.explain(args, &f)
		},
	}
	f.add(cmd)
	fl := cmd.Flags()
	fl.BoolVar(&f.effective, "effective", false, "list every setting in force with its source")
	fl.Int64Var(&f.maxTokens, "max-token-budget", 0, "as for oma run")
	fl.StringVar(&f.maxCost, "max-cost-budget", "", "as for oma run")
	fl.DurationVar(&f.maxDuration, "max-duration", 0, "as for oma run")
	fl.StringVarP(&f.output, "output", "o", "text", "text, json or yaml")
	return cmd
}

func (a *app) explain(args []string, f *explainFlags) error {
	sections := codeSections(docs.Checks)
	if len(args) == 1 && !exists(args[0]) && codeWord.MatchString(args[0]) {
		return a.explainCode(args[0], sections, f.output)
	}
	if !slices.Contains([]string{"text", "json", "yaml"}, f.output) {
		return usage("-o %q is not text, json or yaml", f.output)
	}
	ceilings, err := f.ceilings()
	if err != nil {
		return err
	}
	o := runtime.CompileOptions{Catalog: catalog(), Agent: f.agent}
	if err := a.goal(&f.teamFlags, &o); err != nil {
		return err
	}
	c, err := a.compile(args[0], &f.teamFlags)
	if err != nil {
		return err
	}
	view := explained{app: a, c: c, ceilings: ceilings, settings: a.settings(c, &f.teamFlags, o, ceilings)}
	switch {
	case len(args) == 2 && f.effective:
		return usage("--effective lists everything: leave out %q", args[1])
	case f.effective:
		return view.list(view.settings, f.output)
	case len(args) == 1:
		return view.overview(f.output)
	}
	return view.path(spec.Path(args[1]), f.output)
}

// codeWord is what a code looks like. A path of a file has a dot or a slash in it.
var codeWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*([-_][A-Za-z0-9]+)+$`)

// codeSection is what the page of checks says of a code.
type codeSection struct {
	Code string `json:"code"`
	Text string `json:"text"` // Markdown
}

// codeSections takes the page apart. What it says between sections is left out.
func codeSections(page string) (out []codeSection) {
	var open *codeSection
	fenced := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		switch {
		case !fenced && strings.HasPrefix(line, "### "):
			out = append(out, codeSection{Code: strings.Trim(strings.TrimSpace(line[4:]), "`")})
			open = &out[len(out)-1]
		case !fenced && strings.HasPrefix(line, "#"):
			open = nil
		case open != nil:
			open.Text += line
		}
	}
	for i := range out {
		out[i].Text = strings.TrimSpace(out[i].Text)
	}
	return out
}

func (a *app) explainCode(code string, sections []codeSection, output string) error {
	i := slices.IndexFunc(sections, func(s codeSection) bool { return s.Code == code })
	if i < 0 {
		var names []string
		for _, s := range sections {
			names = append(names, s.Code)
		}
		if near := spec.Nearest(code, names); near != "" {
			return usage("no problem has the code %q: did you mean %s?", code, near)
		}
		return usage("%q is neither a file nor the code of a problem; a code stands in square brackets behind a problem", code)
	}
	s := sections[i]
	return a.print(output, s, func(w io.Writer) { fmt.Fprintf(w, "%s\n\n%s\n", s.Code, s.Text) })
}
