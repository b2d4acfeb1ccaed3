package main

import (
	"strings"
	"testing"

	"github.com/open-multi-agent/oma/policies/library"
)

// Shells are told what a flag takes and which files a command reads.
func TestCompletion(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"run -o ", "text json yaml ndjson :4"},
		{"run --fail-on ", "denied :4"},
		{"run ", "yaml yml json :8"},
		{"plan --fail-on ", "unaffordable :4"},
		{"plan --require-enforced ", "grants gates containment budget evidence secrets egress :4"},
		{"gate --format ", "text json junit github :4"},
		{"gate -o ", "text json junit github :4"},
		{"gate ", "json :8"},
		{"schema ", "ApprovalDecision ApprovalRequest Cassette Event Lock Plan Policy PolicyTest Receipt Team :4"},
		{"policy check --tool ", strings.Join(catalog().Names(), " ") + " :4"},
		{"policy check ", "yaml yml json :8"},
		{"policy explain ", "yaml yml json :8"},
		{"policy test -o ", "text json yaml :4"},
		{"policy classify --fail-on ", "review high :4"},
		{"policy show ", strings.Join(library.Names(), " ") + " :4"},
		{"mcp lock ", "yaml yml json :8"},
		{"mcp list -o ", "text json yaml :4"},
		{"mcp call ", "yaml yml json :8"},
		{"explain ", "yaml yml json :8"},
		{"version -o ", "text json yaml :4"},
	} {
		out, _, code := call(t, 0, append([]string{"__complete"}, strings.Split(c.line, " ")...)...)
		if got := strings.Join(strings.Fields(out), " "); got != c.want || code != 0 {
			t.Errorf("oma %s: %q, want %q, ended %d", c.line, got, c.want, code)
		}
	}
}
