package tools

import (
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

func (c *checker) http(h *spec.HTTPTool) {
	c.address(h.URL)
	methods := []string{"GET", "POST", "PUT", "PATCH", "DELETE"}
	if h.Method != "" && !slices.Contains(methods, h.Method) {
		c.diags.Errorf("custom-tool-http", "http.method", "method %q is not known", h.Method).Hint = spec.DidYouMean(h.Method, methods)
	}
	switch h.Body {
	case "", "none":
	case "input":
		if h.Method == "" || h.Method == "GET" {
			c.diags.Errorf("custom-tool-http", "http.body", "a GET request has no body").Hint = "use method: POST, or put values into the URL"
		}
	default:
		c.diags.Errorf("custom-tool-http", "http.body", "body %q is not known", h.Body).Hint = spec.DidYouMean(h.Body, []string{"input", "none"})
	}
	if _, err := ParsePointer(h.Response); err != nil {
		c.diags.Errorf("custom-tool-http", "http.response", "%v", err)
	}
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
		c.header(name, h.Headers[name], seen)
		if h.Headers[name].Credential != "" && inTheClear(h.URL) {
			c.diags.Warnf("custom-tool-http", "http.url", "credential %q would be sent unencrypted", h.Headers[name].Credential).Hint = "use https://"
		}
	}
}

// inTheClear says that a request leaves this machine without TLS.
func inTheClear(text string) bool {
	a, err := ParseAddress(text)
	if err != nil {
		return false
	}
	u, err := url.Parse(a.Origin)
	if err != nil || u.Scheme != "http" || u.Hostname() == "localhost" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err != nil || !ip.IsLoopback()
}

// Sends says whether a request carries the input as its body.
func Sends(h *spec.HTTPTool) bool {
	switch h.Method {
	case "POST", "PUT", "PATCH":
		return h.Body != "none"
	}
	return h.Body == "input"
}

func (c *checker) address(text string) {
	const at = spec.Path("http.url")
	a, err := ParseAddress(text)
	if err != nil {
		c.diags.Errorf("custom-tool-http", at, "%v", err)
		return
	}
	for _, parts := range append(slices.Clone(a.segments), a.query) {
		for _, p := range parts {
			if p.name != "" {
				c.placeholder(at, p.name)
			}
		}
	}
}

// header checks one header. seen holds the names before it, by their one form.
func (c *checker) header(name string, v spec.Variable, seen map[string]string) {
	at := spec.Path("http.headers").Key(name)
	one := http.CanonicalHeaderKey(name)
	switch other, twice := seen[one]; {
	case !token(name):
		c.diags.Errorf("custom-tool-header", at, "%q is no name of a header", name).OnKey = true
	case slices.Contains(own, one):
		c.diags.Errorf("custom-tool-header", at, "header %s is the connection's own", one).OnKey = true
	case twice:
		c.diags.Errorf("custom-tool-header", at, "headers %q and %q are the same", other, name).OnKey = true
	}
	seen[one] = name
	if i := strings.IndexByte(v.Value, '{'); i >= 0 && strings.IndexByte(v.Value[i:], '}') > 0 {
		c.diags.Warnf("custom-tool-header", at, "the value of header %s is sent as it is written, braces included", one).Hint = "for a secret write {credential: NAME, prefix: TEXT}; values of the input go into the URL or the body"
	}
	if !HeaderValue(v.Value) || !HeaderValue(v.Prefix) {
		c.diags.Errorf("custom-tool-header", at, "the value of header %s has a line end or another control character", one)
	}
}

// own are the headers that the connection sets by itself: another value of one could make one request two.
var own = []string{"Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "Accept-Encoding"}

func token(name string) bool {
	for i := range len(name) {
		b := name[i]
		if !(b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || strings.IndexByte("!#$%&'*+-.^_`|~", b) >= 0) {
			return false
		}
	}
	return name != ""
}

// HeaderValue says whether a text may be the value of a header.
func HeaderValue(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}
