package mcp

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"mime"
	"net/url"
	"path"
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

// said is what a result comes to: text, and beside it what text cannot hold.
type said struct {
	parts    []string
	attached []spec.Attachment
	refused  bool // the result is an error, which has text alone
}

// unnamed is the name of a file whose address gives none.
const unnamed = "mcp-resource"

// media adds bytes that a block holds as base64: what is no image is a file of that name. No name: only an image will do.
// What a model cannot be given is named in the text, with the reason.
func (s *said) media(kind, mediaType, name, data string) {
	a := spec.Attachment{Type: spec.AttachImage, MediaType: plainType(mediaType)}
	if !strings.HasPrefix(a.MediaType, "image/") {
		a.Type, a.Filename = spec.AttachFile, name
		if a.MediaType == "" {
			a.MediaType = "application/octet-stream"
		}
	}
	why := ""
	b, err := base64.StdEncoding.DecodeString(data)
	switch a.Data = b; {
	case s.refused:
		why = "the result is an error"
	case err != nil || len(b) == 0:
		why = "it is not base64 data"
	case a.Type == spec.AttachFile && name == "":
		why = "models are given images and files alone"
		if kind == spec.AttachImage {
			why = "its media type is not that of an image"
		}
	default:
		if err := a.Check(); err != nil {
			why = err.Error()
		}
	}
	if why != "" {
		s.parts = append(s.parts, fmt.Sprintf("[%s: %s; not passed on: %s]", kind, shortened(cmp.Or(mediaType, a.MediaType), maxMessage), why))
		return
	}
	s.parts = append(s.parts, a.Note())
	s.attached = append(s.attached, a)
}

// plainType gives a media type without its parameters; empty if it is none.
func plainType(s string) string {
	kind, _, err := mime.ParseMediaType(s)
	if err != nil || !strings.Contains(kind, "/") {
		return ""
	}
	return kind
}

// fileName takes a name from the end of an address.
func fileName(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return unnamed
	}
	p := u.Path
	if p == "" {
		p = u.Opaque
	}
	if name := path.Base(p); name != "." && name != "/" {
		return name
	}
	return unnamed
}
