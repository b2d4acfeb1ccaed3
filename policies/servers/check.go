package servers

import (
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

// Check finds what is wrong with the declaration of a server, with paths below it. Whether agents have its credentials
// is a question for others.
func Check(s *spec.MCPServer) spec.Diagnostics {
	var ds spec.Diagnostics
	switch {
	case s.Command != "" && s.URL != "":
		ds.Errorf("mcp-server", "url", "a server has command or url, not both").OnKey = true
	case s.URL != "":
		remote(s, &ds)
	case strings.TrimSpace(s.Command) == "":
		ds.Errorf("mcp-server", "", "a server needs command or url").Hint = "add command: PROGRAM with args: [ARGUMENT], or url: URL"
	default:
		local(s, &ds)
	}
	return ds
}

// local checks a server that is started.
func local(s *spec.MCPServer, ds *spec.Diagnostics) {
	if len(s.Headers) > 0 {
		misplaced(ds, "headers", "url")
	}
	if strings.ContainsAny(s.Command, " \t") && len(s.Args) == 0 {
		ds.Warnf("mcp-server", "command", "%q is taken for the name of one program", s.Command).Hint = "put each argument into args by itself: no shell reads this"
	}
	for i, arg := range append([]string{s.Command, s.Cwd}, s.Args...) {
		if strings.ContainsRune(arg, 0) {
			at := spec.Path("command")
			if i > 1 {
				at = spec.Path("args").Index(i - 2)
			} else if i == 1 {
				at = "cwd"
			}
			ds.Errorf("mcp-server", at, "a zero byte cannot be in an argument")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		v := s.Env[name]
		if strings.ContainsRune(v.Value+v.Prefix, 0) {
			ds.Errorf("mcp-server", spec.Path("env").Key(name), "a zero byte cannot be in a variable")
		}
	}
}

// remote checks a server that is asked.
func remote(s *spec.MCPServer, ds *spec.Diagnostics) {
	for _, key := range []struct {
		name string
		set  bool
	}{{"args", len(s.Args) > 0}, {"env", len(s.Env) > 0}, {"cwd", s.Cwd != ""}} {
		if key.set {
			misplaced(ds, key.name, "command")
		}
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		ds.Errorf("mcp-server", "url", "expected a URL that begins with https:// or http://, found %q", s.URL)
		return
	}
	if u.User != nil {
		ds.Errorf("mcp-server", "url", "user and password must not stand in a URL").Hint = "use headers with {credential: NAME}"
	}
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		header(name, s.Headers[name], seen, ds)
		if cred := s.Headers[name].Credential; cred != "" && u.Scheme == "http" && !loopback(u.Hostname()) {
			ds.Warnf("mcp-server", "url", "credential %q would be sent unencrypted", cred).Hint = "use https://"
		}
	}
}

func misplaced(ds *spec.Diagnostics, key, of string) {
	d := ds.Errorf("mcp-server", spec.Path(key), "%q belongs to a server with %s", key, of)
	d.OnKey, d.Hint = true, "leave it out"
}

// header checks one header. seen holds the names before it, by their one form.
func header(name string, v spec.Variable, seen map[string]string, ds *spec.Diagnostics) {
	at, one := spec.Path("headers").Key(name), http.CanonicalHeaderKey(name)
	if other, twice := seen[one]; twice {
		ds.Errorf("mcp-server", at, "headers %q and %q are the same", other, name).OnKey = true
	}
	seen[one] = name
	if slices.Contains(own, one) {
		ds.Errorf("mcp-server", at, "header %s is the connection's own", one).OnKey = true
	}
	if strings.ContainsFunc(v.Value+v.Prefix, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		ds.Errorf("mcp-server", at, "the value of header %s has a line end or another control character", one)
	}
}

// own are the headers that the connection or the protocol sets by itself.
var own = []string{"Accept", "Accept-Encoding", "Connection", "Content-Length", "Content-Type", "Expect", "Host", "Keep-Alive", "Last-Event-Id",
	"Mcp-Protocol-Version", "Mcp-Session-Id", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// Credentials names those of the calling agent's that a server is given, sorted, each once.
func Credentials(s *spec.MCPServer) []string {
	var names []string
	for _, vars := range []map[string]spec.Variable{s.Env, s.Headers} {
		for _, v := range vars {
			if v.Credential != "" {
				names = append(names, v.Credential)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
