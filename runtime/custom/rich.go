package custom

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

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
	if !ok {
		if out.Data == nil || out.Data[0] != '"' {
			return spec.ToolResult{}, errors.New("data that is no text needs modelOutput")
		}
		seen = out.Data
	}
	var err error
	out.Text, err = modelText(seen)
	return out, err
}

// modelText gives what a model reads: text, or a list of parts with a note in the place of each attachment.
func modelText(doc json.RawMessage) (string, error) {
	var text string
	if doc[0] == '"' {
		return text, json.Unmarshal(doc, &text)
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(doc, &parts); err != nil || len(parts) == 0 {
		return "", errors.New("modelOutput is neither text nor a list of parts")
	}
	lines := make([]string, len(parts))
	for i, raw := range parts {
		line, err := partText(raw)
		if err != nil {
			return "", fmt.Errorf("modelOutput[%d]: %w", i, err)
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n"), nil
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

func partText(raw []byte) (string, error) {
	var p part
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return "", errors.New("it does not read as a part: " + strings.TrimPrefix(err.Error(), "json: "))
	}
	switch p.Type {
	case "text":
		if p.Text == nil {
			return "", errors.New("text is missing")
		}
		return *p.Text, nil
	case "image", "file":
		if p.Source == nil {
			return "", errors.New("source is missing")
		}
		where, err := p.Source.check()
		if err != nil {
			return "", err
		}
		if p.Type == "image" {
			return fmt.Sprintf("[image: %s; %s]", p.Source.MediaType, where), nil
		}
		if p.Filename == "" {
			return "", errors.New("filename is missing")
		}
		return fmt.Sprintf("[file: %s; %s; %s]", p.Filename, p.Source.MediaType, where), nil
	}
	return "", errors.New(`type must be "text", "image", or "file"`)
}

// check says in words where an attachment is.
func (s *source) check() (where string, err error) {
	if kind, params, err := mime.ParseMediaType(s.MediaType); err != nil || len(params) > 0 || !strings.Contains(kind, "/") || !strings.EqualFold(kind, s.MediaType) {
		return "", errors.New("media_type must be a media type without parameters")
	}
	switch s.Type {
	case "base64":
		b, err := base64.StdEncoding.Strict().DecodeString(s.Data)
		if err != nil || len(b) == 0 || base64.StdEncoding.EncodeToString(b) != s.Data {
			return "", errors.New("the source must contain raw base64 data")
		}
		return "inline data", nil
	case "url":
		u, err := url.Parse(s.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return "", errors.New("the source's URL must use HTTP or HTTPS")
		}
		return "URL reference", nil
	}
	return "", errors.New(`the source's type must be "base64" or "url"`)
}
