package plandiff

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/open-multi-agent/oma/spec/canon"
)

const (
	textLimit = 200       // bytes of a text that is shown as it is
	diffLimit = 256 << 10 // bytes of two texts that are compared line by line
)

// shown gives what each plan says, and the difference of long texts.
func shown(a, b any) (x, y json.RawMessage, unified string) {
	s, okA := a.(string)
	t, okB := b.(string)
	if (okA || a == nil) && (okB || b == nil) && (long(s) || long(t)) {
		return ofText(a, s), ofText(b, t), unifiedDiff(s, t)
	}
	return raw(a), raw(b), ""
}

func long(s string) bool { return len(s) > textLimit || strings.Contains(s, "\n") }

func ofText(v any, s string) json.RawMessage {
	if v == nil || !long(s) {
		return raw(v)
	}
	return raw(canon.Text("text", []byte(s)))
}

func raw(v any) json.RawMessage {
	if v == nil {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil { // it was decoded from JSON
		return json.RawMessage(fmt.Sprintf("%q", err))
	}
	return b
}

// unifiedDiff is what stands between the first plan's text and the second's.
func unifiedDiff(a, b string) string {
	if len(a)+len(b) > diffLimit {
		return ""
	}
	out := string(diff.Diff("a", []byte(ended(a)), "b", []byte(ended(b))))
	_, out, _ = strings.Cut(out, "\n") // a line that names a program
	return out
}

// ended ends a text with a line end, so that a missing one is no line of the difference.
func ended(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}
