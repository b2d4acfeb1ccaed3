package scripted

import (
	"fmt"
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

// unmet says which part of an expectation a conversation does not meet, and how. No problem: it meets all.
func unmet(e *spec.Expect, messages []spec.Message) (part spec.Path, problem string) {
	if e == nil {
		return "", ""
	}
	if r := e.ToolResult; r != nil {
		if problem := unmetResult(r, messages); problem != "" {
			return ".toolResult", problem
		}
	}
	last := ""
	if n := len(messages); n > 0 {
		last = messages[n-1].Text
	}
	if !strings.Contains(last, e.Contains) {
		return ".contains", fmt.Sprintf("expected a last message that contains %q, found %s", e.Contains, excerpt(last))
	}
	return "", ""
}

func unmetResult(want *spec.ExpectResult, messages []spec.Message) string {
	var others []string
	for i := len(messages) - 1; i >= 0; i-- {
		m := messages[i]
		if m.Role != spec.RoleTool {
			continue
		}
		if m.ToolCallID != want.Of {
			others = append([]string{fmt.Sprintf("%q", m.ToolCallID)}, others...)
			continue
		}
		switch {
		case want.IsError != nil && *want.IsError != m.IsError:
			return fmt.Sprintf("expected isError %t of the result of call %q, found %t: %s", *want.IsError, want.Of, m.IsError, excerpt(m.Text))
		case !strings.Contains(m.Text, want.Contains):
			return fmt.Sprintf("expected a result of call %q that contains %q, found %s", want.Of, want.Contains, excerpt(m.Text))
		}
		if problem := unmetAttachment(want.Of, spec.AttachImage, want.Image, m.Attachments); problem != "" {
			return problem
		}
		return unmetAttachment(want.Of, spec.AttachFile, want.File, m.Attachments)
	}
	if len(others) == 0 {
		return fmt.Sprintf("expected a result of call %q, found no result at all", want.Of)
	}
	return fmt.Sprintf("expected a result of call %q, found results of %s", want.Of, strings.Join(others, ", "))
}

// unmetAttachment looks for an attachment that reaches the model: one whose bytes are there, or their address. No media
// type: any result will do.
func unmetAttachment(of, kind, mediaType string, all []spec.Attachment) string {
	if mediaType == "" {
		return ""
	}
	var found []string
	for i := range all {
		a := &all[i]
		if a.Type == kind && a.MediaType == mediaType && (len(a.Data) > 0 || !a.Inline()) {
			return ""
		}
		note := a.Note()
		if a.Inline() && len(a.Data) == 0 {
			note += " without its bytes"
		}
		found = append(found, note)
	}
	if len(found) == 0 {
		found = []string{"none"}
	}
	return fmt.Sprintf("expected a result of call %q with the %s %s attached, found %s", of, kind, mediaType, strings.Join(found, ", "))
}

// excerpt quotes the start of a text, since the whole of it may be a file.
func excerpt(s string) string {
	const most = 120
	if r := []rune(s[:min(len(s), 4*most)]); len(r) > most {
		return fmt.Sprintf("%q and more", string(r[:most]))
	}
	return fmt.Sprintf("%q", s)
}
