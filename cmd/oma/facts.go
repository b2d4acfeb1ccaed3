package main

import (
	"fmt"
	"strings"

	"github.com/open-multi-agent/oma/policies/shell"
)

// shellFacts are what rules see as shell, with the places that rules do not need.
type shellFacts struct {
	Commands        []shellCommand  `json:"commands"`
	Redirects       []shellRedirect `json:"redirects"`
	Writes          []string        `json:"writes"`
	Network         bool            `json:"network"`
	HasSubstitution bool            `json:"hasSubstitution"`
	Background      bool            `json:"background"`
	ParseError      bool            `json:"parseError"`
}

type shellCommand struct {
	Name        string   `json:"name"`
	Path        string   `json:"path"`
	Args        []string `json:"args"`
	Dynamic     bool     `json:"dynamic"`
	Assignments []string `json:"assignments"`
	Line        int      `json:"line"`
	Column      int      `json:"column"`
}

type shellRedirect struct {
	Op     string `json:"op"`
	FD     string `json:"fd"`
	Target string `json:"target"`
	Known  bool   `json:"known"`
}

func factsOf(f *shell.Facts) *shellFacts {
	out := &shellFacts{Commands: []shellCommand{}, Redirects: []shellRedirect{}, Writes: f.Writes, Network: f.Network,
		HasSubstitution: f.HasSubstitution, Background: f.Background, ParseError: f.ParseError}
	for _, c := range f.Commands {
		out.Commands = append(out.Commands, shellCommand{c.Name, c.Path, listed(c.Args), c.Dynamic, listed(c.Assignments), c.Line, c.Column})
	}
	for _, r := range f.Redirects {
		out.Redirects = append(out.Redirects, shellRedirect{r.Op, r.FD, r.Target, r.Known})
	}
	return out
}

// listed is a list that JSON shows as one, also where there is nothing in it.
func listed(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func (f *shellFacts) text(line func(name, value string)) {
	for _, c := range f.Commands {
		text := c.Name
		if c.Name == "" {
			text = c.Path
		}
		if len(c.Args) > 0 {
			text += " " + strings.Join(c.Args, " ")
		}
		line("command", fmt.Sprintf("%d:%d %s", c.Line, c.Column, cutLine(text)))
	}
	for _, r := range f.Redirects {
		target := r.Target
		if !r.Known {
			target = "(not known)"
		}
		line("redirect", strings.TrimSpace(r.FD+r.Op+" "+target))
	}
	line("writes", strings.Join(f.Writes, " "))
	var flags []string
	for _, x := range []struct {
		name string
		is   bool
	}{{"network", f.Network}, {"substitution", f.HasSubstitution}, {"background", f.Background}, {"not read", f.ParseError}} {
		if x.is {
			flags = append(flags, x.name)
		}
	}
	line("has", strings.Join(flags, ", "))
}
