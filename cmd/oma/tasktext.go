package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

// taskLine shows a task: who does it, after which others, and what is said of it beside.
func taskLine(w io.Writer, t *spec.PlanTask) {
	after := ""
	if len(t.DependsOn) > 0 {
		after = "  after " + strings.Join(t.DependsOn, ", ")
	}
	fmt.Fprintf(w, "  %-20s %s%s\n", t.ID, t.Assignee, after)
	said := joined("  ", phrase("chosen by", t.AssignedBy), phrase("label", t.Label), phrase("priority", t.Priority), phrase("is told", t.MemoryScope),
		phrase("is handed", t.DependencyPayload), retriesText(t.MaxRetries))
	if strings.HasPrefix(t.ID, "task-") { // a title that the team gave it
		said = joined("  ", t.Title, said)
	}
	if said != "" {
		fmt.Fprintf(w, "    %s\n", escape(cutLine(said)))
	}
}

// phrase is a word and what it is of. Nothing of nothing.
func phrase(word, of string) string {
	if of == "" {
		return ""
	}
	return word + " " + of
}

func retriesText(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "one retry"
	}
	return fmt.Sprintf("%d retries", n)
}

// taskText says who does a task, and why nobody else.
func (v *explained) taskText(w io.Writer, t *runtime.TaskView) {
	fmt.Fprintf(w, "%s  %s\n", t.ID, escape(cutLine(t.Title)))
	line := v.lines(w, "  ")
	by := t.AssignedBy
	if by == "" {
		by = "declared"
	}
	line("agent", t.Assignee+", "+by)
	line("role", t.Role)
	line("label", t.Label)
	line("after", strings.Join(t.DependsOn, ", "))
	line("before", strings.Join(t.Feeds, ", "))
	line("priority", t.Priority)
	line("is told", t.MemoryScope)
	line("is handed", t.DependencyPayload)
	line("retries", retriesText(t.MaxRetries))
	if r := t.Requires; r != nil {
		line("requires", joined("; ", phrase("tools", strings.Join(r.RequiredTools, ", ")), phrase("capabilities", strings.Join(r.RequiredCapabilities, ", ")),
			phrase("backend", r.RequiredBackend), phrase("provider", r.RequiredProvider)))
	}
	fmt.Fprintln(w, "  could")
	width := len(slices.MaxFunc(t.Candidates, func(a, b runtime.Candidate) int { return len(a.Agent) - len(b.Agent) }).Agent)
	for _, c := range t.Candidates {
		if c.Lacks != nil {
			fmt.Fprintf(w, "    - %-*s  cannot: %s\n", width, c.Agent, strings.Join(c.Lacks, "; "))
			continue
		}
		fmt.Fprintf(w, "    + %-*s  fit %.2f\n", width, c.Agent, c.Fit)
	}
}
