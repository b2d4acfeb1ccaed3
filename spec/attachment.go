package spec

import (
	"errors"
	"fmt"
	"mime"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The kinds of attachments.
const (
	AttachImage = "image"
	AttachFile  = "file"
)

// Attachment is an image or a file that a tool gave beside its text. Its bytes are in Data alone, which no document, log
// or digest takes in: everything else knows them by Digest.
type Attachment struct {
	Type      string `json:"type"`               // image or file
	MediaType string `json:"mediaType"`          // without parameters
	Filename  string `json:"filename,omitempty"` // of a file
	// URL says where it is. Nobody here fetches it. Empty: it is inline.
	URL string `json:"url,omitempty"`
	// Digest and Size are those of the bytes. The door sets them.
	Digest string `json:"digest,omitempty"`
	Size   int64  `json:"size,omitempty"`
	// Data is what is inline. nil in what was read from a log, until a model is asked with it.
	Data []byte `json:"-"`
}

// What one result may have beside its text. Servers take requests of a few ten megabytes, and each turn sends all of it
// again.
const (
	MaxAttachments     = 16
	MaxAttachmentBytes = 8 << 20
)

const (
	maxFilename  = 255
	maxMediaType = 127 // RFC 6838, 4.2, with the slash
	maxURL       = 64 << 10
)

// Inline says that the bytes were given, not an address of them.
func (a *Attachment) Inline() bool { return a.URL == "" }

// Note stands for the attachment wherever a text is all there is.
func (a *Attachment) Note() string {
	where := "inline data"
	if !a.Inline() {
		where = "URL reference"
	}
	if a.Type == AttachImage {
		return fmt.Sprintf("[image: %s; %s]", a.MediaType, where)
	}
	return fmt.Sprintf("[file: %s; %s; %s]", a.Filename, a.MediaType, where)
}

// Check says what is wrong with an attachment.
func (a *Attachment) Check() error {
	switch {
	case a.Type != AttachImage && a.Type != AttachFile:
		return errors.New(`type must be "text", "image", or "file"`)
	case !plainMediaType(a.MediaType):
		return fmt.Errorf("media type %q must be a MIME type without parameters", a.MediaType)
	case a.Type == AttachImage && !strings.HasPrefix(strings.ToLower(a.MediaType), "image/"):
		return fmt.Errorf("media type %q is not that of an image", a.MediaType)
	case a.Type == AttachFile && !goodFilename(a.Filename):
		return fmt.Errorf("filename must be a name of 1 to %d bytes without control characters", maxFilename)
	case a.Inline() && len(a.Data) == 0:
		return errors.New("the source must contain raw base64 data, and is empty")
	case a.Inline():
		return nil
	}
	u, err := url.Parse(a.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("the source's URL must use HTTP or HTTPS")
	case u.User != nil:
		return errors.New("the source's URL must not hold a user or password")
	case len(a.URL) > maxURL:
		return fmt.Errorf("the source's URL has %d bytes, and %d is the most", len(a.URL), maxURL)
	}
	return nil
}

// CheckAttachments says what is wrong with those of one result.
func CheckAttachments(all []Attachment) error {
	if len(all) > MaxAttachments {
		return fmt.Errorf("there are %d attachments, and %d is the most for one result", len(all), MaxAttachments)
	}
	size := 0
	for i := range all {
		if err := all[i].Check(); err != nil {
			return fmt.Errorf("attachment %d: %w", i+1, err)
		}
		size += len(all[i].Data)
	}
	if size > MaxAttachmentBytes {
		return fmt.Errorf("the attachments have %d bytes, and %d is the most for one result", size, MaxAttachmentBytes)
	}
	return nil
}

func plainMediaType(s string) bool {
	kind, params, err := mime.ParseMediaType(s)
	return err == nil && len(params) == 0 && strings.EqualFold(kind, s) && strings.Contains(kind, "/") && !strings.Contains(kind, "*") && len(s) <= maxMediaType
}

func goodFilename(s string) bool {
	return s != "" && len(s) <= maxFilename && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// Masked gives a copy from whose words hide has taken secrets, and from its bytes where they are text: in a picture
// nothing would be found, and a replacement would break it.
func (a Attachment) Masked(hide func(string) string) Attachment {
	a.Filename, a.URL = hide(a.Filename), hide(a.URL)
	if a.Data != nil && utf8.Valid(a.Data) {
		if s := string(a.Data); hide(s) != s {
			a.Data = []byte(hide(s))
		}
	}
	return a
}

// Figures for what attachments cost a model, as far as that is not known.
const (
	// ImageTokens is what an image of any size is taken for. Anthropic gives about 1,600 for the largest that it does not
	// make smaller, OpenAI 85 and 170 for each of at most 8 tiles, which is 1,445.
	ImageTokens = 1600
	// pageTokens is what pageBytes of a file are taken for that is no text: Anthropic gives 1,500 to 3,000 for a page of a
	// PDF.
	pageTokens = 3000
	pageBytes  = 100 << 10
)

// Tokens estimates what an attachment counts in a request, never by the length of its base64.
func (a *Attachment) Tokens() int64 {
	size := min(max(a.Size, 0), MaxAttachmentBytes) // a log may say anything
	switch {
	case a.Type == AttachImage:
		return ImageTokens
	case strings.HasPrefix(a.MediaType, "text/"):
		return size/3 + 1
	}
	return pageTokens * (size/pageBytes + 1)
}
