package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

// overviewDoc is the document explain prints without a path.
type overviewDoc struct {
	Team   string          `json:"team"`
	Agents []overviewAgent `json:"agents"`
	Paths  []string        `json:"paths"` // what a path can begin with
}

type overviewAgent struct {
	Name  string   `json:"name"`
	Model string   `json:"model"`
	Tools []string `json:"tools"`
	Rules int      `json:"rules"` // that look at its calls

	outside bool // Model is a program
}

func (v *explained) overview(output string) error {
	doc := overviewDoc{Team: v.c.plan.Team.Name, Agents: []overviewAgent{}, Paths: v.roots()}
	for _, name := range v.agents() {
		c := runtime.CapabilityOf(v.c.plan, name, catalog().Tools)
		line := overviewAgent{Name: name, Model: c.Provider + "/" + c.Model, Tools: []string{}}
		if c.Backend != nil {
			line.Model, line.outside = backendText(c.Backend), true
		}
		seen := map[string]bool{}
		for _, t := range c.Tools {
			if t.Granted {
				line.Tools = append(line.Tools, t.Name)
			}
			for _, r := range t.Rules {
				if !r.Replaced && !seen[r.Name] {
					seen[r.Name] = true
					line.Rules++
				}
			}
		}
		doc.Agents = append(doc.Agents, line)
	}
	return v.print(output, doc, func(w io.Writer) {
		for _, a := range doc.Agents {
			tools := strings.Join(a.Tools, ", ")
			switch {
			case tools == "" && a.outside:
				tools = "tools of its own"
			case tools == "":
				tools = "no tools"
			}
			fmt.Fprintf(w, "%-28s %s  %s  %d rules\n", "agents."+a.Name, escape(a.Model), tools, a.Rules)
		}
		fmt.Fprintf(w, "paths begin with %s\n", strings.Join(doc.Paths, ", "))
	})
}

// capabilityText shows what an agent can do.
func (v *explained) capabilityText(w io.Writer, c *runtime.Capability) {
	fmt.Fprintf(w, "%s\n", c.Agent)
	line := v.lines(w, "  ")
	if c.Backend == nil {
		line("asks", fmt.Sprintf("%s/%s (%s)", c.Provider, c.Model, c.Kind))
	} else {
		line("starts", backendText(c.Backend))
	}
	line("cwd", c.Cwd)
	contained := "file tools stay in cwd"
	if c.Containment == "none" {
		contained = "no: file tools reach what the user may"
	}
	if c.Backend == nil {
		line("contained", contained)
	}
	for _, t := range c.Tasks {
		role := ""
		if t.Role != "" {
			role = " as " + t.Role
		}
		line("task", t.ID+role)
	}
	if c.Backend == nil {
		line("turns", fmt.Sprintf("at most %d", c.MaxTurns))
	}
	if c.MaxTokenBudget > 0 {
		line("budget", fmt.Sprintf("%d tokens of its own", c.MaxTokenBudget))
	}
	line("budget", budgetsText(c.Budgets)+", of the run")
	for _, r := range c.Before {
		line("before", beforeText(r))
	}
	if c.Confirmed {
		line("needs", confirmationText+", for consequential calls")
	}
	if c.Backend == nil || c.Backend.Serves() {
		line("door", strings.Join(c.Door, " > "))
	}
	for i := range c.Tools {
		if c.Backend != nil && !c.Tools[i].Granted { // it has tools of its own
			continue
		}
		v.toolText(w, &c.Tools[i])
	}
	for _, e := range c.Enforcement {
		line("promise", fmt.Sprintf("%-12s %-16s %s", e.Control, e.Level, e.Mechanism))
	}
}

// beforeText says where a rule of approvals stands before an agent's work.
func beforeText(r runtime.BoundaryRule) string {
	of := "its task, before it starts"
	if r.Scope == spec.ScopePlan {
		of = "the plan"
	}
	return fmt.Sprintf("%s %s, over %s", r.Name, r.Action, of)
}

func (v *explained) toolText(w io.Writer, t *runtime.ToolAccess) {
	sign, what := "-", ""
	if t.Granted {
		sign = "+"
	}
	if t.Consequential {
		what = ", consequential"
	}
	fmt.Fprintf(w, "  %s %-11s %s%s\n", sign, t.Name, escape(t.By), what)
	if !t.Granted {
		return
	}
	inner := v.lines(w, "    ")
	inner("does", cutLine(t.Does))
	inner("given", strings.Join(t.Given, ", "))
	for _, r := range t.Rules {
		text := fmt.Sprintf("%s (%s) %s", r.Name, r.Source, r.Action)
		if !r.Replaced {
			text += fmt.Sprintf(", cost %d of %d", r.Cost, ruleCostLimit)
		}
		if r.Mark != "" {
			text += ", marks " + r.Mark
		}
		if r.Replaced {
			text += ", replaced for this agent"
		}
		inner("rule", text)
	}
	inner("asks", strings.Join(t.Asks, ", "))
	switch {
	case t.Default == "ungated":
		inner("permits", "its grant: no gates are declared")
	case len(t.Permits) == 0:
		inner("permits", "nothing: gates.default is deny, and no allow rule of the team looks at it")
	default:
		inner("permits", strings.Join(t.Permits, ", "))
	}
}
