package tools

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Address is a URL into which values of a call are put, behind a literal origin.
type Address struct {
	Origin   string   // scheme://host, with a port where one is written
	segments [][]part // of the path, split at /; nil: there is no path
	query    []part
	asks     bool // there is a query, perhaps an empty one
}

// maxURL is the longest URL that is made: servers take 8 to 64 KiB.
const maxURL = 64 << 10

// ParseAddress reads a URL as a team file has it. A {name} is a part of a path segment or of the value of a query
// parameter, and stands nowhere else.
func ParseAddress(text string) (*Address, error) {
	origin, rest, err := splitOrigin(text)
	if err != nil {
		return nil, err
	}
	parts, err := parse(rest)
	if err != nil {
		return nil, err
	}
	a := &Address{Origin: origin}
	for _, p := range parts {
		if err := a.add(p); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func splitOrigin(text string) (origin, rest string, err error) {
	scheme, after, ok := strings.Cut(text, "://")
	if scheme = strings.ToLower(scheme); !ok || scheme != "http" && scheme != "https" {
		return "", "", errors.New("expected a URL that begins with https:// or http://")
	}
	host := after
	if i := strings.IndexAny(after, "/?#"); i >= 0 {
		host, rest = after[:i], after[i:]
	}
	switch {
	case strings.ContainsAny(host, "{}"):
		return "", "", errors.New("a placeholder must not stand in the origin; write scheme, host and port out")
	case strings.Contains(host, "@"):
		return "", "", errors.New("user and password must not stand in a URL; use headers with {credential: NAME}")
	}
	u, err := url.Parse(scheme + "://" + host)
	if err != nil || u.Hostname() == "" || !printable(host) {
		return "", "", fmt.Errorf("%q is no host", host)
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return "", "", fmt.Errorf("%q is no port", port)
		}
	}
	return scheme + "://" + host, rest, nil
}

// add takes the next part. Literal text is as it must be sent: nothing in it is escaped later.
func (a *Address) add(p part) error {
	if p.name != "" {
		return a.addValue(p)
	}
	if err := literal(p.text); err != nil {
		return err
	}
	if a.asks {
		a.query = append(a.query, p)
		return nil
	}
	path, query, asks := strings.Cut(p.text, "?")
	for i, segment := range strings.Split(path, "/") {
		if i > 0 { // behind a slash
			a.segments = append(a.segments, nil)
		}
		if n := len(a.segments); segment != "" {
			a.segments[n-1] = append(a.segments[n-1], part{text: segment})
		}
	}
	if a.asks = asks; query != "" {
		a.query = append(a.query, part{text: query})
	}
	return nil
}

func (a *Address) addValue(p part) error {
	if !a.asks {
		n := len(a.segments)
		a.segments[n-1] = append(a.segments[n-1], p)
		return nil
	}
	inValue := false
	for _, q := range a.query {
		if i := strings.LastIndexByte(q.text, '&'); i >= 0 {
			inValue = false
		}
		inValue = inValue || strings.Contains(q.text[strings.LastIndexByte(q.text, '&')+1:], "=")
	}
	if !inValue {
		return fmt.Errorf("{%s} must stand in the value of a query parameter, as in name={%s}", p.name, p.name)
	}
	a.query = append(a.query, p)
	return nil
}

// literal says what is wrong with text that is sent as it is.
func literal(text string) error {
	if strings.Contains(text, "#") {
		return errors.New("a fragment is never sent; take # and what follows away")
	}
	if !printable(text) {
		return errors.New("spaces, braces and quotes, control characters and letters beyond ASCII must be written as %XX")
	}
	for rest := text; ; {
		_, after, found := strings.Cut(rest, "%")
		if !found {
			return nil
		}
		if _, err := url.PathUnescape("%" + after[:min(2, len(after))]); err != nil {
			return fmt.Errorf("%q is no %%XX", "%"+after[:min(2, len(after))])
		}
		rest = after
	}
}

func printable(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] >= 0x7f || strings.IndexByte("\"<>\\^`{|}", text[i]) >= 0 {
			return false
		}
	}
	return true
}

// URL puts the values of a call in. The path has the same number of segments whatever is in them, and none that a server
// might take for a step up or leave out.
func (a *Address) URL(input map[string]any) (string, error) {
	var b strings.Builder
	b.WriteString(a.Origin)
	for _, segment := range a.segments {
		text, err := fill(segment, input)
		if err != nil {
			return "", err
		}
		b.WriteString("/" + text)
	}
	if a.asks {
		b.WriteByte('?')
	}
	for _, p := range a.query {
		if p.name == "" {
			b.WriteString(p.text)
			continue
		}
		v, err := value(input, p.name)
		if err != nil {
			return "", err
		}
		b.WriteString(url.QueryEscape(v))
	}
	if b.Len() > maxURL {
		return "", fmt.Errorf("the URL would have %d bytes, and %d is the most", b.Len(), maxURL)
	}
	return b.String(), nil
}

// fill makes one path segment. Its meaning to a server is what it reads as, so that is what is judged.
func fill(segment []part, input map[string]any) (string, error) {
	var escaped, plain strings.Builder
	values := false
	for _, p := range segment {
		if p.name == "" {
			text, err := url.PathUnescape(p.text)
			if err != nil {
				return "", err
			}
			escaped.WriteString(p.text)
			plain.WriteString(text)
			continue
		}
		v, err := value(input, p.name)
		if err != nil {
			return "", err
		}
		values = true
		escaped.WriteString(url.PathEscape(v))
		plain.WriteString(v)
	}
	if values {
		if err := segmentSafe(plain.String()); err != nil {
			return "", err
		}
	}
	return escaped.String(), nil
}

// segmentSafe refuses a segment that would change the path. Servers and proxies exist that decode %2F and cut at ; before
// they walk a path, so the steps inside a segment are judged too.
func segmentSafe(segment string) error {
	if segment == "" {
		return errors.New("a path segment would be empty, which changes the path")
	}
	for step := range strings.FieldsFuncSeq(segment, func(r rune) bool { return r == '/' || r == '\\' }) {
		if step, _, _ = strings.Cut(step, ";"); step == "." || step == ".." {
			return fmt.Errorf("a path segment would be %q, which changes the path", segment)
		}
	}
	if i := strings.IndexFunc(segment, func(r rune) bool { return r < ' ' || r == 0x7f }); i >= 0 {
		return fmt.Errorf("a path segment would hold the control character %q", segment[i])
	}
	return nil
}
