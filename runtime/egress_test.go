package runtime

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

// Origins are exact. They have one form, and what could stand for more than one, or for another, is none.
func TestExactOrigins(t *testing.T) {
	for text, want := range map[string]string{
		"https://llm.example.com":        "https://llm.example.com",
		"HTTPS://LLM.Example.COM:443":    "https://llm.example.com",
		"http://llm.example.com:80":      "http://llm.example.com",
		"http://llm.example.com:443":     "http://llm.example.com:443",
		"https://llm.example.com:8443":   "https://llm.example.com:8443",
		"http://127.0.0.1:11434":         "http://127.0.0.1:11434",
		"http://[0:0:0:0:0:0:0:1]:11434": "http://[::1]:11434",
		"https://[2001:DB8::1]":          "https://[2001:db8::1]",
		"https://xn--bcher-kva.example":  "https://xn--bcher-kva.example",
		"http://my_gateway":              "http://my_gateway",
	} {
		if got, problem, _ := exactOrigin(text); got != want || problem != "" {
			t.Errorf("%s is %q %q, want %q", text, got, problem, want)
		}
	}
	for text, why := range map[string]string{
		"": "no origin", "llm.example.com": "no origin", "//llm.example.com": "no origin", "https://": "no origin", "ftp://llm.example.com": "no origin",
		"https://llm.example.com/": "no origin", "https://llm.example.com/v1": "no origin", "https://llm.example.com?": "no origin",
		"https://llm.example.com#": "no origin", "https://user@llm.example.com": "no origin", "https://llm.example.com.": "no origin",
		"https://llm.example.com:": "no origin", "https://llm.example.com:0": "no origin", "https://llm.example.com:0443": "no origin",
		"https://llm.example.com:65536": "65535", "https://llm.example.com:https": "no origin", "https://[::1": "no origin",
		"https://[:::]": "no origin", "https://[fe80::1%25eth0]": "no origin", "https://[127.0.0.1]": "no origin", "https://llm example.com": "no origin",
		"https://llm.example.com\n": "no origin", `https://llm.example.com\@evil.example`: "no origin", "https://ex%61mple.com": "no origin",
		"https://*.example.com": "wildcard", "https://*": "wildcard", "*": "wildcard", "https://bücher.example": "DNS", "https://llm.example。com": "DNS",
		"https://\u0430pi.openai.com": "DNS", "javascript:alert(1)": "no origin",
	} {
		if got, problem, hint := exactOrigin(text); got != "" || !strings.Contains(problem, why) || hint == "" {
			t.Errorf("%q is %q, %q, %q, want %q", text, got, problem, hint, why)
		}
	}
}

// The address of a provider is held against the policy as it would be asked.
func TestOutsideEgress(t *testing.T) {
	origins := []string{"http://[::1]:11434", "https://llm.example.com", "https://xn--bcher-kva.example"}
	allow, offline, both := &spec.EgressPolicy{Allow: &origins}, &spec.EgressPolicy{Offline: true}, &spec.EgressPolicy{Offline: true, Allow: &origins}
	for _, c := range []struct {
		address                 string
		inAllow, offline, inAll bool
	}{
		{"", true, true, true}, // a cassette asks nobody
		{"https://LLM.example.com:443/v1?v=1", true, false, false},
		{"https://llm.example.com.evil.example/v1", false, false, false},
		{"https://evil.example/https://llm.example.com", false, false, false},
		{"https://llm.example.com./v1", false, false, false},
		{"https://llm.example.com:0443/v1", false, false, false},
		{"http://llm.example.com/v1", false, false, false},
		{"https://bücher.example", false, false, false}, // the policy has its name in DNS: write that
		{"http://[0:0::1]:11434/v1", true, true, true},
		{"http://127.0.0.1:11434/v1", false, true, false},
		{"http://127.8.8.8/v1", false, true, false},
		{"http://[::ffff:127.0.0.1]/v1", false, true, false},
		{"http://LOCALHOST:1234/v1", false, true, false},
		{"http://my.localhost/v1", false, false, false}, // a name that somebody looks up
		{"http://localhost.evil.example/v1", false, false, false},
		{"http://127.1/v1", false, false, false},
		{"http://2130706433/v1", false, false, false},
		{"http://0.0.0.0:11434/v1", false, false, false},
		{"http://10.0.0.1/v1", false, false, false},
		{"file:///etc/passwd", false, false, false},
		{"http://%zz", false, false, false},
	} {
		for name, check := range map[string]struct {
			policy *spec.EgressPolicy
			want   bool
		}{"allow": {allow, c.inAllow}, "offline": {offline, c.offline}, "both": {both, c.inAll}, "neither": {&spec.EgressPolicy{}, c.address == ""}, "none": {nil, true}} {
			if why := OutsideEgress(check.policy, c.address); (why == "") != check.want {
				t.Errorf("%s: %q: %q, want %v", name, c.address, why, check.want)
			}
		}
	}
}

// Policies above the team file narrow it, each by itself, and a team without one gets theirs.
func TestEgressUnderPolicies(t *testing.T) {
	list := func(origins ...string) *[]string { return &origins }
	limits := func(origins ...string) *spec.Limits { return &spec.Limits{Origins: list(origins...)} }
	local, cloud := "http://127.0.0.1:11434", "https://llm.example.com"
	for name, c := range map[string]struct {
		own    *spec.EgressPolicy
		limits []*spec.Limits
		want   *spec.EgressPolicy
	}{
		"none at all":       {nil, []*spec.Limits{nil, {}}, nil},
		"the team's":        {&spec.EgressPolicy{Allow: list(cloud, "HTTP://127.0.0.1:11434", cloud+":443")}, nil, &spec.EgressPolicy{Allow: list(local, cloud)}},
		"the policy's":      {nil, []*spec.Limits{limits("http://127.0.0.1:11434/", cloud)}, &spec.EgressPolicy{Allow: list(local, cloud)}},
		"both":              {&spec.EgressPolicy{Allow: list(local, "https://other.example")}, []*spec.Limits{limits(cloud, local)}, &spec.EgressPolicy{Allow: list(local)}},
		"offline with some": {&spec.EgressPolicy{Offline: true}, []*spec.Limits{limits(cloud, local)}, &spec.EgressPolicy{Offline: true, Allow: list(local, cloud)}},
		"two policies":      {nil, []*spec.Limits{limits(cloud, local), limits(local, "https://other.example")}, &spec.EgressPolicy{Allow: list(local)}},
	} {
		t.Run(name, func(t *testing.T) {
			b := pair()
			b.Team.EgressPolicy = c.own
			for i, l := range c.limits {
				b.Above = append(b.Above, policyOf(string(rune('a'+i)), "d", l))
			}
			p := compiledPair(t, b)
			if diff := cmp.Diff(c.want, p.EgressPolicy); diff != "" {
				t.Error(diff)
			}
			for _, g := range b.Above { // a saved plan keeps it, and one without it is not of this policy
				if why := NotUnder(p, []spec.PolicyFile{g}, []spec.ToolInfo{tool("look", false), tool("change", true)}); why != nil {
					t.Error(why)
				}
				wide := *p
				wide.EgressPolicy = nil
				if why := NotUnder(&wide, []spec.PolicyFile{g}, nil); g.Policy.Limits != nil && g.Policy.Limits.Origins != nil && !strings.Contains(strings.Join(why, "\n"), "fewer origins than the plan") {
					t.Errorf("a plan without it: %v", why)
				}
			}
		})
	}
}

// Only agents at work count, and what an agent has beside its model is told in the map.
func TestEgressControl(t *testing.T) {
	no, origins := false, []string{"https://llm.example.com"}
	tools := func(names ...string) (out []spec.Grant) {
		for _, n := range names {
			out = append(out, spec.Grant{ToolInfo: spec.ToolInfo{Name: n}})
		}
		return out
	}
	p := &spec.Plan{CustomTools: map[string]spec.CustomTool{"post": {HTTP: &spec.HTTPTool{URL: "https://x.example"}}},
		MCPServers: map[string]spec.PlanMCPServer{"s": {Tools: []spec.PlanServerTool{{As: "s_look"}}}}}
	for name, c := range map[string]struct {
		agent spec.PlanAgent
		level string
		words string
	}{
		"file tools":                  {spec.PlanAgent{Tools: tools("file_read", "delegate_to_agent")}, spec.Enforced, "model calls go to https://llm.example.com alone"},
		"bash":                        {spec.PlanAgent{Tools: tools("bash")}, spec.NotEnforceable, "it does not reach bash"},
		"bash without a network":      {spec.PlanAgent{Tools: tools("bash"), ShellExecutor: &spec.ShellExecutor{Kind: "bubblewrap", Network: &no}}, spec.Enforced, "alone"},
		"bash behind landlock":        {spec.PlanAgent{Tools: tools("bash"), ShellExecutor: &spec.ShellExecutor{Kind: "landlock", Network: &no}}, spec.NotEnforceable, "bash"},
		"walls that may be missing":   {spec.PlanAgent{Tools: tools("bash"), ShellExecutor: &spec.ShellExecutor{Kind: "bubblewrap", Network: &no, Required: &no}}, spec.NotEnforceable, "bash"},
		"an HTTP tool":                {spec.PlanAgent{Tools: tools("post")}, spec.NotEnforceable, "it does not reach the team's own tools"},
		"an MCP server's tool":        {spec.PlanAgent{Tools: tools("s_look", "bash")}, spec.NotEnforceable, "it does not reach bash, MCP servers"},
		"an external agent":           {spec.PlanAgent{Backend: &spec.Backend{Kind: "process"}}, spec.NotEnforceable, "a program asks whom it wants"},
		"an external agent that asks": {spec.PlanAgent{Backend: &spec.Backend{Kind: spec.BackendACP}}, spec.NotEnforceable, "a program asks whom it wants"},
	} {
		c.agent.Name = "a"
		p.Agents, p.EgressPolicy = []spec.PlanAgent{c.agent}, &spec.EgressPolicy{Allow: &origins}
		got := controlOf(p, "egress")
		if got.Level != c.level || !strings.Contains(got.Mechanism, c.words) {
			t.Errorf("%s: %s (%s), want %s (%s)", name, got.Level, got.Mechanism, c.level, c.words)
		}
		if p.EgressPolicy = nil; controlOf(p, "egress").Level != spec.NotEnforceable {
			t.Errorf("%s: enforced without a policy", name)
		}
	}
}

func controlOf(p *spec.Plan, name string) (out spec.Control) {
	for _, c := range enforcement(p) {
		if c.Control == name {
			out = c
		}
	}
	return out
}
