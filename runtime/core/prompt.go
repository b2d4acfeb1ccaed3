package core

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// maxDependencyOutput bounds what one prerequisite hands on, in runes.
const maxDependencyOutput = 65536

// prompt is the text a task starts with: its own title and description, then what its direct prerequisites came to, and with
// memoryScope all what everybody did. The reference leaves out the first of these where there is the second; here an edge
// means that the work was handed on, whole. An error says that a prerequisite cannot be.
func (r *run) prompt(t *task) (string, *spec.ErrorInfo) {
	var b strings.Builder
	fmt.Fprintf(&b, "# Task: %s\n\n%s", t.Task.Title, t.Task.Description)
	heading := "\n\n## Context from prerequisite tasks"
	for _, id := range t.Task.DependsOn {
		d := r.byID(id)
		text, err := payload(d, t.Task.DependencyPayload)
		if err != nil {
			return "", err
		}
		if d.Status != spec.TaskCompleted || text == "" {
			continue
		}
		b.WriteString(heading)
		heading = ""
		fmt.Fprintf(&b, "\n\n### %s (by %s)\n%s", d.Task.Title, d.Task.Assignee, text)
	}
	if t.Task.MemoryScope == spec.MemoryAll {
		b.WriteString(r.memory.summary())
	}
	return b.String(), nil
}

// payload is what a prerequisite hands on (reference behaviour S12).
func payload(d *task, kind string) (string, *spec.ErrorInfo) {
	if kind == "" {
		return Truncate(d.Text, maxDependencyOutput), nil
	}
	failed := func(code, why string) (string, *spec.ErrorInfo) {
		return "", &spec.ErrorInfo{Kind: "validation", Code: code, Message: fmt.Sprintf("task %q %s", d.Task.Title, why)}
	}
	if d.Structured == nil {
		return failed("DEPENDENCY_STRUCTURED_RESULT_MISSING", "gave no structured result")
	}
	raw, err := canon.Bytes(d.Structured)
	if err != nil {
		return failed("DEPENDENCY_STRUCTURED_SERIALIZATION_FAILED", "gave a result that cannot be written: "+err.Error())
	}
	text := "#### Validated structured result\n" + string(raw)
	if kind == spec.PayloadBoth {
		text = "#### Raw output\n" + d.Text + "\n\n" + text
	}
	if len(text) > maxPayload {
		return failed("DEPENDENCY_PAYLOAD_TOO_LARGE", fmt.Sprintf("hands on %d bytes, and at most %d are taken", len(text), maxPayload))
	}
	return text, nil
}

// maxPayload bounds what one prerequisite hands on where none of it may be left out, in bytes.
const maxPayload = 64 << 10

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
