package core

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/open-multi-agent/oma/spec"
)

// maxDependencyOutput bounds what one prerequisite hands on, in runes.
const maxDependencyOutput = 65536

// prompt is the text a task starts with: its own title and description, then what its direct prerequisites came to.
func (r *run) prompt(t *task) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Task: %s\n\n%s", t.Task.Title, t.Task.Description)
	heading := "\n\n## Context from prerequisite tasks"
	for _, id := range t.Task.DependsOn {
		d := r.byID(id)
		if d.Status != spec.TaskCompleted || d.Text == "" {
			continue
		}
		b.WriteString(heading)
		heading = ""
		fmt.Fprintf(&b, "\n\n### %s (by %s)\n%s", d.Task.Title, d.Task.Assignee, Truncate(d.Text, maxDependencyOutput))
	}
	return b.String()
}

func (r *run) byID(id string) *task { return r.tasks[r.index[id]] }

func runes(s string) int { return utf8.RuneCountInString(s) }

// Truncate cuts a text to at most max runes and says how many it left out: seven tenths of what is kept come from the
// head, the rest from the tail. 0 and less mean no limit.
func Truncate(s string, max int) string {
	n := len(s)
	if max <= 0 || n <= max { // never fewer bytes than runes
		return s
	}
	if n = runes(s); n <= max {
		return s
	}
	all := []rune(s)
	overhead := 33 + len(fmt.Sprint(n))
	if max <= overhead {
		return string(all[:max])
	}
	keep := max - overhead
	head := keep * 7 / 10
	tail := keep - head
	return fmt.Sprintf("%s\n\n[...truncated %d characters...]\n\n%s", string(all[:head]), n-keep, string(all[n-tail:]))
}
