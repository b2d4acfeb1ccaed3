package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

// subject is what a request about the plan or about a task says of it: all that the rules saw.
type subject struct {
	Goal    string         `json:"goal"`
	Mode    string         `json:"mode"`
	Flags   []string       `json:"flags"`
	Budgets subjectBudgets `json:"budgets"`
	Agents  []subjectAgent `json:"agents"`
	Tasks   []subjectTask  `json:"tasks"`

	subjectTask // of a request about one
	subjectAgent
	Description string `json:"description"`
}

// subjectBudgets are written as they were asked with. Empty: there is no such ceiling.
type subjectBudgets struct {
	Tokens   json.Number `json:"maxTokenBudget"`
	Dollars  json.Number `json:"maxCostBudget"`
	Duration json.Number `json:"maxDurationMs"`
}

type subjectAgent struct {
	Name     string   `json:"name"`
	Provider string   `json:"provider"`
	Model    string   `json:"model"`
	Backend  string   `json:"backend"`
	Tools    []string `json:"tools"`
}

type subjectTask struct {
	ID            string   `json:"id"`
	Title         string   `json:"title"`
	Assignee      string   `json:"assignee"`
	Role          string   `json:"role"`
	DependsOn     []string `json:"dependsOn"`
	Consequential bool     `json:"consequential"`
}

// subjectText shows what a request about the plan or a task is about, for reading: what is decided about is the content.
// One that reads otherwise is left to it.
func (a *app) subjectText(w io.Writer, v *approvalView, most int) {
	var s subject
	if len(v.content.Subject) == 0 || json.Unmarshal(v.content.Subject, &s) != nil {
		return
	}
	line := a.lines(w, "")
	if v.Scope == spec.ScopeDispatch {
		line("title", oneLine(s.Title))
		line("by", s.by())
		line("after", oneLine(strings.Join(s.DependsOn, ", ")))
		line("tools", s.may())
		line(s.from(), s.uses())
		line("does", shortened(s.Description, most))
		return
	}
	line("goal", shortened(s.Goal, most))
	line("mode", oneLine(s.Mode))
	line("flags", oneLine(strings.Join(s.Flags, ", ")))
	line("ceilings", s.Budgets.text())
	line("agents", fmt.Sprint(len(s.Agents)))
	for i := range s.Agents {
		g := &s.Agents[i]
		line(fmt.Sprintf("  %d", i+1), joined("; ", oneLine(g.Name), g.uses(), "tools: "+g.may()))
	}
	line("tasks", fmt.Sprint(len(s.Tasks)))
	for i := range s.Tasks {
		t := &s.Tasks[i]
		after := ""
		if len(t.DependsOn) > 0 {
			after = "after " + oneLine(strings.Join(t.DependsOn, ", "))
		}
		line(fmt.Sprintf("  %d", i+1), joined("; ", oneLine(joined(": ", t.ID, t.Title)), t.by(), after))
	}
}

// may says what an agent is granted.
func (g *subjectAgent) may() string {
	if g.Backend != "" {
		return "its own, which meet no gate"
	}
	return cmp.Or(oneLine(strings.Join(g.Tools, ", ")), "none")
}

// from names what an agent's words come from, and uses says what that is.
func (g *subjectAgent) from() string {
	if g.Backend != "" {
		return "starts"
	}
	return "model"
}

func (g *subjectAgent) uses() string {
	if g.Backend != "" {
		return oneLine(g.Backend)
	}
	return oneLine(joined(" of ", g.Model, g.Provider))
}

// againText says what may have happened already of what a request asks to do again.
func againText(scope string) string {
	if scope == spec.ScopeDispatch {
		return "the agent was at work when the run ended, and may have done its work already; approved, it is started again"
	}
	return "it was in flight when the run ended, and may have taken effect already"
}

// by says who has a task.
func (t *subjectTask) by() string {
	who := oneLine(joined(", role ", t.Assignee, t.Role))
	if t.Consequential {
		who = joined(", ", who, "consequential")
	}
	return who
}

func (b *subjectBudgets) text() string {
	var all []string
	for _, c := range []struct {
		n    json.Number
		unit string
	}{{b.Tokens, "tokens"}, {b.Dollars, "dollars"}, {b.Duration, "ms"}} {
		if c.n != "" {
			all = append(all, c.n.String()+" "+c.unit)
		}
	}
	return strings.Join(all, ", ")
}

// oneLine marks a text that stands beside others, and keeps it from looking like more than one.
func oneLine(text string) string { return strings.ReplaceAll(marked(text), "\n", `\u{a}`) }
