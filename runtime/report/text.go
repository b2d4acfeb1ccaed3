package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

// What fits on a screen of 24 lines.
const (
	maxReasons = 8
	maxMessage = 240 // characters
)

func text(v *runtime.GateVerdict) ([]byte, error) {
	var b strings.Builder
	row := func(name, value string) { fmt.Fprintf(&b, "%-12s %s\n", name, line(value, maxMessage)) }
	fmt.Fprintf(&b, "%s  exit code %d\n", passOrFail(v), v.ExitCode)
	head(v, row)
	for i, r := range v.Reasons {
		name := "reason"
		if i > 0 {
			name = ""
		}
		if i == maxReasons {
			row(name, fmt.Sprintf("and %d more", len(v.Reasons)-i))
			break
		}
		row(name, r.Code+": "+r.Message)
	}
	facts(v.Receipt, row)
	if n := next(v); n != "" {
		row("next", n)
	}
	return []byte(b.String()), nil
}

// facts gives what a receipt says of its run, each under a name.
func facts(r *spec.Receipt, row func(name, value string)) {
	if r == nil {
		row("receipt", "none that can be read")
		return
	}
	row("executed", list(r.RolesExecuted))
	failed := make([]string, len(r.RolesFailed))
	for i, role := range r.RolesFailed {
		failed[i] = role + ended(r, role)
	}
	row("failed", list(failed))
	row("not started", list(r.RolesNotStarted))
	if len(r.Delegations) > 0 {
		asked := make([]string, len(r.Delegations))
		for i, d := range r.Delegations {
			if asked[i] = d.Assignee + " for " + d.Caller; d.Status != spec.TaskCompleted {
				asked[i] += " (" + d.Status + ")"
			}
		}
		row("delegated", list(asked))
	}
	row("denied calls", fmt.Sprint(r.Denied))
	row("spent", fmt.Sprintf("%d tokens, %s, %s", r.TotalTokens.Total(), cost(r.Cost), time.Duration(r.DurationMs)*time.Millisecond))
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// ended says in brackets what ended the first task of a role that did not complete. Empty: nothing is known.
func ended(r *spec.Receipt, role string) string {
	i := slices.IndexFunc(r.Tasks, func(t spec.TaskRecord) bool {
		return t.Assignee == role && t.StartedAt != "" && t.Status != spec.TaskCompleted
	})
	if i < 0 {
		return ""
	}
	t := r.Tasks[i]
	said := []string{string(t.StopReason)}
	if t.Cause != "" {
		said = append(said, t.Cause)
	} else if t.ErrorInfo != nil {
		said = append(said, t.ErrorInfo.Message)
	}
	said = slices.DeleteFunc(said, func(s string) bool { return s == "" })
	if len(said) == 0 {
		return ""
	}
	return " (" + strings.Join(said, ": ") + ")"
}

func cost(c *spec.USD) string {
	if c == nil {
		return "cost unknown"
	}
	return "$" + c.String()
}
