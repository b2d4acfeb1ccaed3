package main

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/open-multi-agent/oma/loader"
	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

// policyTestResult is the document policy test prints.
type policyTestResult struct {
	Passed bool             `json:"passed"`
	Files  []policyTestFile `json:"files"`
}

// policyTestFile is what testing one file gave.
type policyTestFile struct {
	File   string `json:"file"`
	Kind   string `json:"kind"`
	Passed bool   `json:"passed"`
	// Examples are those that do not hold.
	Examples spec.Diagnostics     `json:"failedExamples"`
	Cases    []runtime.CaseResult `json:"cases,omitempty"`
	Coverage coverage             `json:"coverage"`
}

// coverage says how far the examples, and the cases, try the conditions of the rules.
type coverage struct {
	// Percent is Seen of Wanted. Each condition is wanted true and wanted false. Nothing wanted is 100, unless there are
	// no rules at all: then it is 0.
	Percent float64        `json:"percent"`
	Seen    int            `json:"seen"`
	Wanted  int            `json:"wanted"`
	Enough  bool           `json:"enough"`
	Rules   []ruleCoverage `json:"rules"`
}

type ruleCoverage struct {
	Name       string              `json:"name"`
	Source     string              `json:"source"`
	Agent      string              `json:"agent,omitempty"`
	Matches    int                 `json:"matches"`
	Ignores    int                 `json:"ignores"`
	Conditions []conditionCoverage `json:"conditions"`
}

type conditionCoverage struct {
	Condition string `json:"condition"`
	File      string `json:"file"`
	spec.Pos
	True  bool `json:"true"`
	False bool `json:"false"`
}

// newTestFile makes the document of one file.
func newTestFile(path, kind string, t *runtime.PolicyTested, sources *loader.Sources, least float64) *policyTestFile {
	out := &policyTestFile{File: path, Kind: kind, Examples: append(spec.Diagnostics{}, masked(t.Failed)...), Cases: t.Cases, Coverage: coverage{Rules: []ruleCoverage{}}}
	out.Passed = len(t.Failed) == 0
	for _, c := range t.Cases {
		out.Passed = out.Passed && c.Passed
	}
	for _, r := range t.Coverage {
		out.Coverage.add(&r, sources)
	}
	out.Coverage.sum(least)
	out.Passed = out.Passed && out.Coverage.Enough
	return out
}

func (c *coverage) add(r *policies.Coverage, sources *loader.Sources) {
	rule := ruleCoverage{Name: r.Rule.Name, Source: r.Rule.Source, Agent: r.Rule.Agent, Matches: r.Matches, Ignores: r.Ignores, Conditions: []conditionCoverage{}}
	for _, x := range r.Conditions {
		at := spec.Diagnostics{{File: r.Rule.Doc, Path: r.Rule.Path.Key("when"), At: x.At}}
		sources.Place(at)
		rule.Conditions = append(rule.Conditions, conditionCoverage{x.Text, at[0].File, at[0].Pos, x.True, x.False})
		c.Wanted += 2
		for _, seen := range []bool{x.True, x.False} {
			if seen {
				c.Seen++
			}
		}
	}
	c.Rules = append(c.Rules, rule)
}

// sum says how much that is, cut to one digit: what is less than all is never shown as all.
func (c *coverage) sum(least float64) {
	switch {
	case c.Wanted > 0:
		c.Percent = math.Floor(1000*float64(c.Seen)/float64(c.Wanted)) / 10
		c.Enough = 100*float64(c.Seen) >= least*float64(c.Wanted)
	case len(c.Rules) > 0:
		c.Percent, c.Enough = 100, true
	default:
		c.Enough = least == 0
	}
}

func (a *app) policyTestText(w io.Writer, r *policyTestResult) {
	for i := range r.Files {
		a.testFileText(w, &r.Files[i])
	}
}

func (a *app) testFileText(w io.Writer, f *policyTestFile) {
	verdict := "passed"
	if !f.Passed {
		verdict = "failed"
	}
	examples := 0
	for _, r := range f.Coverage.Rules {
		examples += r.Matches + r.Ignores
	}
	fmt.Fprintf(w, "%s: %s  %d examples, %d cases, %v%% of conditions (%d of %d)\n", escape(f.File), verdict, examples, len(f.Cases),
		f.Coverage.Percent, f.Coverage.Seen, f.Coverage.Wanted)
	for _, d := range f.Examples {
		fmt.Fprintf(w, "  example  %s\n", a.outside(d.String()))
	}
	for _, c := range f.Cases {
		if !c.Passed {
			fmt.Fprintf(w, "  case     %s\n", a.outside(fmt.Sprintf("%q: %s", c.Name, strings.Join(c.Problems, "; "))))
			a.lines(w, "    ")("again", c.Reproduce)
		}
	}
	for _, r := range f.Coverage.Rules {
		a.ruleCoverageText(w, &r)
	}
	if !f.Coverage.Enough {
		fmt.Fprintln(w, "  coverage is below --min-coverage")
	}
}

// ruleCoverageText shows a rule, and below it what of it was not tried.
func (a *app) ruleCoverageText(w io.Writer, r *ruleCoverage) {
	whose := r.Source
	if r.Agent != "" && r.Source != "agent "+r.Agent {
		whose += " of agent " + r.Agent
	}
	fmt.Fprintf(w, "  rule     %-20s %s  %d matches, %d ignores\n", r.Name, escape(whose), r.Matches, r.Ignores)
	for _, c := range r.Conditions {
		never := ""
		switch {
		case !c.True && !c.False:
			never = "never asked"
		case !c.True:
			never = "never true"
		case !c.False:
			never = "never false"
		default:
			continue
		}
		fmt.Fprintf(w, "    %s:%d:%d: %s: %s\n", escape(c.File), c.Line, c.Col, never, a.outside(c.Condition))
	}
}
