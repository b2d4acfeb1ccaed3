package custom

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

// maxParts bounds the parts of one modelOutput, of which spec.MaxAttachments may be attachments.
const maxParts = 256

// rich reads one object {data, modelOutput}: what a program may use, and what the model sees. Without modelOutput the
// data must be text, and the model sees that.
func rich(doc []byte) (spec.ToolResult, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(doc, &members); err != nil || members == nil {
		return spec.ToolResult{}, errors.New("it is no object")
	}
	for name := range members {
		if name != "data" && name != "modelOutput" {
			return spec.ToolResult{}, fmt.Errorf("it has a member %q", name)
		}
	}
	out := spec.ToolResult{Data: members["data"]}
	seen, ok := members["modelOutput"]
	if ok {
		out.Chosen = true
		return out, shown(&out, seen)
	}
	if out.Data == nil || out.Data[0] != '"' {
		return spec.ToolResult{}, errors.New("data that is no text needs modelOutput")
	}
	return out, json.Unmarshal(out.Data, &out.Text)
}

// shown puts what a model is shown into a result: text, or a list of parts, with a note in the place of each attachment.
func shown(out *spec.ToolResult, doc json.RawMessage) error {
	if doc[0] == '"' {
		return json.Unmarshal(doc, &out.Text)
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(doc, &parts); err != nil || len(parts) == 0 {
		return errors.New("modelOutput must be a text or a list of parts that is not empty")
	}
	if len(parts) > maxParts {
		return fmt.Errorf("modelOutput has %d parts, and %d is the most", len(parts), maxParts)
	}
	lines := make([]string, len(parts))
	for i, raw := range parts {
		text, attached, err := readPart(raw)
		if err == nil && attached != nil {
			text, err = attached.Note(), attached.Check()
			out.Attachments = append(out.Attachments, *attached)
		}
		if err != nil {
			return fmt.Errorf("modelOutput[%d]: %w", i, err)
		}
		lines[i] = text
	}
	out.Text = strings.Join(lines, "\n")
	return spec.CheckAttachments(out.Attachments)
}

// part is a text, an image or a file.
type part struct {
	Type     string  `json:"type"`
	Text     *string `json:"text"`
	Filename string  `json:"filename"`
	Source   *source `json:"source"`
}

// source holds the bytes of an attachment, or says where they are.
type source struct {
	Type      string `json:"type"` // base64 or url
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
	URL       string `json:"url"`
}

// readPart gives a text, or an attachment, which is then not nil.
func readPart(raw []byte) (text string, attached *spec.Attachment, err error) {
	var p part
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return "", nil, errors.New("it does not read as a part: " + strings.TrimPrefix(err.Error(), "json: "))
	}
	switch {
	case p.Type != "text" && p.Type != spec.AttachImage && p.Type != spec.AttachFile:
		return "", nil, errors.New(`type must be "text", "image", or "file"`)
	case p.Type == "text" && (p.Source != nil || p.Filename != ""):
		return "", nil, errors.New("a text has no source and no filename")
	case p.Type == "text" && p.Text == nil:
		return "", nil, errors.New("text is missing")
	case p.Type == "text":
		return *p.Text, nil, nil
	case p.Text != nil:
		return "", nil, fmt.Errorf("%s must not have text beside its source", p.Type)
	case p.Source == nil:
		return "", nil, errors.New("source is missing")
	case p.Type == spec.AttachImage && p.Filename != "":
		return "", nil, errors.New("an image has no filename")
	}
	a := spec.Attachment{Type: p.Type, MediaType: p.Source.MediaType, Filename: p.Filename}
	return "", &a, p.Source.into(&a)
}

// into puts a source into its attachment.
func (s *source) into(a *spec.Attachment) error {
	switch {
	case s.Type == "base64" && s.URL == "":
		b, err := base64.StdEncoding.Strict().DecodeString(s.Data)
		if err != nil || len(b) == 0 || base64.StdEncoding.EncodeToString(b) != s.Data {
			return errors.New("the source must contain raw base64 data")
		}
		a.Data = b
		return nil
	case s.Type == "url" && s.Data == "":
		if a.URL = s.URL; s.URL == "" {
			return errors.New("the source's URL is missing")
		}
		return nil
	case s.Type == "base64" || s.Type == "url":
		return fmt.Errorf("the source of type %q has data and url", s.Type)
	}
	return errors.New(`the source's type must be "base64" or "url"`)
}
