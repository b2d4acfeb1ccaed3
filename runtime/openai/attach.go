package openai

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

// officialImages are what OpenAI's own server takes. Others may take more.
var officialImages = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// toolText is the text of a result, which says what follows it.
func toolText(msg *spec.Message) *string {
	n := len(msg.Attachments)
	if n == 0 {
		return &msg.Text
	}
	noun := "attachments follow"
	if n == 1 {
		noun = "attachment follows"
	}
	text := fmt.Sprintf("%s\n\n[%d tool-result %s in the next user message]", msg.Text, n, noun)
	return &text
}

// attachmentParts gives what a result has attached, behind a line that says of which call it is. nil: nothing is.
func attachmentParts(msg *spec.Message, official bool) ([]contentPart, error) {
	if len(msg.Attachments) == 0 {
		return nil, nil
	}
	parts := []contentPart{{Type: "text", Text: fmt.Sprintf("Attachments for tool call %s:", msg.ToolCallID)}}
	for i := range msg.Attachments {
		a := &msg.Attachments[i]
		p, why := attachmentPart(a, official)
		if why != "" {
			return nil, failf(codeUnsupported, "%s of tool %s cannot be sent: %s", a.Note(), msg.ToolName, why)
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// attachmentPart maps one attachment. why says what keeps it from being sent.
func attachmentPart(a *spec.Attachment, official bool) (p contentPart, why string) {
	switch {
	case a.Inline() && len(a.Data) == 0:
		return p, "its bytes are not there"
	case a.Type == spec.AttachImage && official && !slices.Contains(officialImages, strings.ToLower(a.MediaType)):
		return p, "api.openai.com takes " + strings.Join(officialImages, ", ") + " alone"
	case a.Type == spec.AttachImage && a.Inline():
		return contentPart{Type: "image_url", Image: &imageURL{dataURL(a)}}, ""
	case a.Type == spec.AttachImage:
		return contentPart{Type: "image_url", Image: &imageURL{a.URL}}, ""
	case a.Type == spec.AttachFile && a.Inline():
		return contentPart{Type: "file", File: &fileData{a.Filename, dataURL(a)}}, ""
	case a.Type == spec.AttachFile:
		return p, "the protocol takes no address of a file; give the file inline"
	}
	return p, fmt.Sprintf("type %q is not known", a.Type)
}

func dataURL(a *spec.Attachment) string {
	return "data:" + a.MediaType + ";base64," + base64.StdEncoding.EncodeToString(a.Data)
}
