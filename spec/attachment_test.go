package spec

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// O4: what an attachment must be, and O5: what stands for it in a text.
func TestO4Attachments(t *testing.T) {
	png := func(change func(*Attachment)) Attachment {
		a := Attachment{Type: AttachImage, MediaType: "image/png", Data: []byte("png")}
		change(&a)
		return a
	}
	file := func(name string) Attachment {
		return Attachment{Type: AttachFile, MediaType: "application/pdf", Filename: name, URL: "https://h/a"}
	}
	for name, c := range map[string]struct {
		in   Attachment
		want string // the note, or behind ! the problem
	}{
		"an image":            {png(func(*Attachment) {}), "[image: image/png; inline data]"},
		"an image elsewhere":  {png(func(a *Attachment) { a.Data, a.URL = nil, "http://h/x" }), "[image: image/png; URL reference]"},
		"a file":              {file("a b.pdf"), "[file: a b.pdf; application/pdf; URL reference]"},
		"no kind":             {png(func(a *Attachment) { a.Type = "" }), `!type must be "text", "image", or "file"`},
		"no bytes":            {png(func(a *Attachment) { a.Data = nil }), "!the source must contain raw base64 data, and is empty"},
		"no media type":       {png(func(a *Attachment) { a.MediaType = "" }), `!media type "" must be`},
		"a parameter":         {png(func(a *Attachment) { a.MediaType = "image/svg+xml; charset=utf-8" }), "!media type"},
		"any image":           {png(func(a *Attachment) { a.MediaType = "image/*" }), "!media type"},
		"no image":            {png(func(a *Attachment) { a.MediaType = "text/html" }), `!media type "text/html" is not that of an image`},
		"a media type in two": {png(func(a *Attachment) { a.MediaType = "image/png\nx" }), "!media type"},
		"a long media type":   {png(func(a *Attachment) { a.MediaType = "image/" + strings.Repeat("x", 200) }), "!media type"},
		"no name":             {file(""), "!filename must be"},
		"a long name":         {file(strings.Repeat("x", 256)), "!filename must be"},
		"a name on two lines": {file("a\n[image: image/png; inline data]"), "!filename must be"},
		"a relative address":  {png(func(a *Attachment) { a.URL = "/x" }), "!the source's URL must use HTTP or HTTPS"},
		"a file's address":    {png(func(a *Attachment) { a.URL = "file:///etc/passwd" }), "!the source's URL must use HTTP or HTTPS"},
		"a password":          {png(func(a *Attachment) { a.URL = "https://u:p@h/x" }), "!the source's URL must not hold a user or password"},
		"a long address":      {png(func(a *Attachment) { a.URL = "https://h/" + strings.Repeat("x", 65536) }), "!the source's URL has 65546 bytes"},
	} {
		err := c.in.Check()
		problem, bad := strings.CutPrefix(c.want, "!")
		switch {
		case bad && (err == nil || !strings.HasPrefix(err.Error(), problem)):
			t.Errorf("%s: %v, want %s", name, err, problem)
		case !bad && (err != nil || c.in.Note() != c.want):
			t.Errorf("%s: %v, %s", name, err, c.in.Note())
		}
	}
}

func TestAttachmentsOfOneResultAreBounded(t *testing.T) {
	of := func(n, size int) (all []Attachment) {
		for range n {
			all = append(all, Attachment{Type: AttachImage, MediaType: "image/png", Data: make([]byte, size)})
		}
		return all
	}
	for _, c := range []struct {
		all  []Attachment
		want string
	}{
		{nil, ""},
		{of(MaxAttachments, MaxAttachmentBytes/MaxAttachments), ""},
		{of(MaxAttachments+1, 1), "there are 17 attachments, and 16 is the most for one result"},
		{of(2, MaxAttachmentBytes/2+1), "the attachments have 8388610 bytes, and 8388608 is the most for one result"},
		{append(of(1, 1), Attachment{}), `attachment 2: type must be "text", "image", or "file"`},
	} {
		got := ""
		if err := CheckAttachments(c.all); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// No encoding of a result or a message has the bytes.
func TestBytesAreInNoDocument(t *testing.T) {
	a := Attachment{Type: AttachImage, MediaType: "image/png", Digest: "sha256:x", Size: 3, Data: []byte("bytes")}
	for _, v := range []any{ToolResult{Attachments: []Attachment{a}}, Message{Attachments: []Attachment{a}}} {
		b, err := json.Marshal(v)
		if err != nil || bytes.Contains(b, []byte("bytes")) || bytes.Contains(b, []byte("Ynl0ZXM")) || !bytes.Contains(b, []byte(`"digest":"sha256:x","size":3`)) {
			t.Errorf("%s, %v", b, err)
		}
	}
}

// SE-02: secrets go out of words and of bytes that are text, and a picture stays what it is.
func TestMaskedAttachments(t *testing.T) {
	hide := func(s string) string { return strings.ReplaceAll(s, "hunter2", "[gone]") }
	a := Attachment{Filename: "hunter2.txt", URL: "https://h/?k=hunter2", Data: []byte("key hunter2")}
	if got := a.Masked(hide); got.Filename != "[gone].txt" || got.URL != "https://h/?k=[gone]" || string(got.Data) != "key [gone]" || string(a.Data) != "key hunter2" {
		t.Errorf("%+v", got)
	}
	picture := Attachment{Data: []byte("\x89PNG hunter2")}
	if got := picture.Masked(hide); string(got.Data) != "\x89PNG hunter2" {
		t.Errorf("%q", got.Data)
	}
}

// What an attachment counts goes by what it is, never by its base64, and a log that lies about it moves nothing far.
func TestTokensOfAttachments(t *testing.T) {
	for _, c := range []struct {
		a    Attachment
		want int64
	}{
		{Attachment{Type: AttachImage, Size: 5 << 20}, 1600},
		{Attachment{Type: AttachImage, URL: "https://h/x"}, 1600},
		{Attachment{Type: AttachFile, MediaType: "text/csv", Size: 3000}, 1001},
		{Attachment{Type: AttachFile, MediaType: "application/pdf", Size: 1}, 3000},
		{Attachment{Type: AttachFile, MediaType: "application/pdf", Size: 1 << 20}, 33000},
		{Attachment{Type: AttachFile, MediaType: "text/csv", Size: -1 << 63}, 1},
		{Attachment{Type: AttachFile, MediaType: "application/pdf", Size: 1<<63 - 1}, 246000},
	} {
		if got := c.a.Tokens(); got != c.want {
			t.Errorf("%+v counts %d, want %d", c.a, got, c.want)
		}
	}
}
