package runtime

import (
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/open-multi-agent/oma/spec"
)

// limitProblems finds what no limit can be: it would let nothing through, and nobody would know why. nil limits have
// none.
func limitProblems(l *spec.Limits) (ds spec.Diagnostics) {
	if l == nil {
		return nil
	}
	each := func(key string, list *[]string, f func(text string) (problem, hint string)) {
		if list == nil {
			return
		}
		for i, text := range *list {
			if problem, hint := f(text); problem != "" {
				ds.Errorf("bad-limit", spec.Path("limits").Key(key).Index(i), "%q %s", text, problem).Hint = hint
			}
		}
	}
	each("env", l.Env, badEnv)
	each("files", l.Files, badPattern)
	each("origins", l.Origins, badOrigin)
	each("requireEnforced", &l.RequireEnforced, func(name string) (string, string) {
		if slices.Contains(controls, name) {
			return "", ""
		}
		return "is no control", spec.DidYouMean(name, controls)
	})
	return append(ds, peopleProblems(l)...)
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func badEnv(name string) (problem, hint string) {
	if variable.MatchString(name) {
		return "", ""
	}
	return "is no name of an environment variable", "write each name in full"
}

// badPattern refuses patterns that no cleaned path from a team file's folder can match.
func badPattern(pattern string) (problem, hint string) {
	switch {
	case strings.HasPrefix(pattern, "/"):
		return "begins with /, and a team names files from its own folder", "write it relative to the team file"
	case path.Base(pattern) == "." || path.Base(pattern) == "..":
		return "is a folder, and a team names files", "write " + path.Join(pattern, "**") + " for all that is in it"
	case path.Clean(pattern) != pattern:
		return "is not in its shortest form, so it matches nothing", "write " + path.Clean(pattern)
	case !doublestar.ValidatePattern(pattern):
		return "is no pattern", "close each [ and {"
	}
	return "", ""
}

// covers says whether a pattern takes in a path. A way out of the folder is never taken by a wildcard: the pattern must
// begin with as many .. as the path does.
func covers(pattern, name string) bool {
	for strings.HasPrefix(pattern, "../") && strings.HasPrefix(name, "../") {
		pattern, name = pattern[3:], name[3:]
	}
	if name == ".." || strings.HasPrefix(name, "../") {
		return false
	}
	ok, err := doublestar.Match(pattern, name)
	return ok && err == nil
}

func badOrigin(text string) (problem, hint string) {
	u, err := url.Parse(text)
	if _, ok := origin(text); !ok || err != nil || u.User != nil || strings.Contains(u.Host, "*") || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return "is no origin", "write https://HOST or https://HOST:PORT, and no more"
	}
	return "", ""
}

// origin gives where an address leads: scheme, host and port, in lower case and without the scheme's own port. false:
// it leads nowhere that HTTP goes; what is given is then for a message.
func origin(address string) (string, bool) {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that cannot be read", false
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	own, ok := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	if strings.Contains(host, ":") {
		if addr, err := netip.ParseAddr(host); err == nil {
			host = addr.String() // one address can be written in many ways
		}
		host = "[" + host + "]"
	}
	if port != "" && port != own {
		host += ":" + port
	}
	return u.Scheme + "://" + host, ok && host != ""
}
