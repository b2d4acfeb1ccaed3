package servers

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

func TestCheck(t *testing.T) {
	text := func(s string) map[string]spec.Variable { return map[string]spec.Variable{"X": {Value: s}} }
	secret := map[string]spec.Variable{"Authorization": {Credential: "KEY"}}
	for name, test := range map[string]struct {
		s    spec.MCPServer
		want string // places, each with ! for an error
	}{
		"a program":         {spec.MCPServer{Command: "npx", Args: []string{"-y", "server"}, Env: text("a"), Cwd: "docs"}, ""},
		"an address":        {spec.MCPServer{URL: "https://a.example/mcp", Headers: secret}, ""},
		"this machine":      {spec.MCPServer{URL: "http://127.0.0.1:1/mcp", Headers: secret}, ""},
		"in the clear":      {spec.MCPServer{URL: "http://a.example/mcp", Headers: secret}, "url"},
		"neither":           {spec.MCPServer{}, "!"},
		"white space":       {spec.MCPServer{Command: " "}, "!"},
		"both":              {spec.MCPServer{Command: "a", URL: "https://a.example"}, "!url"},
		"a command line":    {spec.MCPServer{Command: "npx -y server"}, "command"},
		"headers, program":  {spec.MCPServer{Command: "a", Headers: text("a")}, "!headers"},
		"a zero byte":       {spec.MCPServer{Command: "a\x00", Cwd: "\x00", Args: []string{"a", "\x00"}, Env: text("\x00")}, "!command !cwd !args[1] !env.X"},
		"args, address":     {spec.MCPServer{URL: "https://a.example", Args: []string{"a"}, Env: text("a"), Cwd: "a"}, "!args !env !cwd"},
		"no address":        {spec.MCPServer{URL: "ftp://a.example"}, "!url"},
		"no host":           {spec.MCPServer{URL: "https:///mcp"}, "!url"},
		"a password":        {spec.MCPServer{URL: "https://me:pw@a.example"}, "!url"},
		"a line end":        {spec.MCPServer{URL: "https://a.example", Headers: text("a\r\nHost: b")}, "!headers.X"},
		"the session":       {spec.MCPServer{URL: "https://a.example", Headers: map[string]spec.Variable{"mcp-session-id": {Value: "a"}}}, "!headers.mcp-session-id"},
		"one header, twice": {spec.MCPServer{URL: "https://a.example", Headers: map[string]spec.Variable{"X-A": {Value: "a"}, "x-a": {Value: "b"}}}, "!headers.x-a"},
	} {
		var got []string
		for _, d := range Check(&test.s) {
			at := string(d.Path)
			if d.Severity == spec.Error {
				at = "!" + at
			}
			if d.Code != "mcp-server" {
				t.Errorf("%s: code %s", name, d.Code)
			}
			got = append(got, at)
		}
		if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: want -, got +\n%s", name, diff)
		}
	}
}

func TestCredentials(t *testing.T) {
	s := spec.MCPServer{Env: map[string]spec.Variable{"A": {Credential: "TWO"}, "B": {Value: "text"}, "C": {Credential: "ONE"}, "D": {Credential: "TWO"}}}
	if got := Credentials(&s); !slices.Equal(got, []string{"ONE", "TWO"}) {
		t.Errorf("got %v", got)
	}
}
