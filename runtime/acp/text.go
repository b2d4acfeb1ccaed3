package acp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// clip bounds a text in runes and counts what it cut. It makes text valid UTF-8.
func clip(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s
	}
	mark := fmt.Sprintf(" [... %d characters left out]", utf8.RuneCountInString(s)-n)
	end := 0
	for range n {
		_, size := utf8.DecodeRuneInString(s[end:])
		end += size
	}
	return s[:end] + mark
}

// keepBytes is how much of each end of an agent's text is kept.
const keepBytes = 512 << 10

// cutSlack is how far a cut moves to fall on a line end: half a line may be half a secret, which no pattern knows.
const cutSlack = 4096

// ends keeps the first and the last keepBytes of what is written to it, and counts the rest. The zero value is ready.
type ends struct {
	head, tail []byte
	total      int64
}

func (e *ends) write(s string) {
	e.total += int64(len(s))
	take := min(keepBytes-len(e.head), len(s))
	e.head, s = append(e.head, s[:take]...), s[take:]
	if len(s) > keepBytes {
		e.tail, s = e.tail[:0], s[len(s)-keepBytes:]
	}
	e.tail = append(e.tail, s...)
	if len(e.tail) > 2*keepBytes {
		e.tail = append(e.tail[:0], e.tail[len(e.tail)-keepBytes:]...)
	}
}

// String gives all of it, or both ends around a mark that counts what is missing.
func (e *ends) String() string {
	if e.total == int64(len(e.head)+len(e.tail)) {
		return strings.ToValidUTF8(string(e.head)+string(e.tail), "\uFFFD")
	}
	head, tail := e.head, e.tail
	if i := bytes.LastIndexByte(head[len(head)-cutSlack:], '\n'); i >= 0 {
		head = head[:len(head)-cutSlack+i+1]
	}
	if i := bytes.IndexByte(tail[:cutSlack], '\n'); i >= 0 {
		tail = tail[i+1:]
	}
	missing := e.total - int64(len(head)+len(tail))
	return strings.ToValidUTF8(fmt.Sprintf("%s\n[... %d bytes left out ...]\n\n%s", head, missing, tail), "\uFFFD")
}

// redactJSON gives JSON as text with secrets taken out of its strings: in the text as a whole, a pattern could run over a
// string's end. Empty: there is none.
func redactJSON(o *Options, raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return o.redact(string(raw))
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(redactTree(o, "", v)) != nil {
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// redactTree shows each text to the redactor with its name, by which some secrets are known.
func redactTree(o *Options, name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, member := range v {
			v[k] = redactTree(o, k, member)
		}
	case []any:
		for i, member := range v {
			v[i] = redactTree(o, name, member)
		}
	case string:
		plain := o.redact(v)
		if plain != v || name == "" {
			return plain
		}
		prefix := name + ": "
		if named := o.redact(prefix + v); named != prefix+v {
			return strings.TrimPrefix(named, prefix)
		}
	}
	return v
}
