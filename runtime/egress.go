package runtime

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

// egress holds the providers of agents at work against the team's egress policy, and puts it into the plan, narrowed by
// policies from above. What those let through is held by limits.
func (c *compiler) egress() {
	own := c.ownEgress()
	if own != nil {
		at := bounds{plan: c.plan, team: c.team}
		for _, name := range c.asked() {
			if why := OutsideEgress(own, BaseURL(c.plan.Providers[name].Provider)); why != "" {
				c.diags.Errorf("EGRESS_POLICY_DENIED", at.of(name, "baseURL"), "models of provider %q may not be asked: %s", name, why).Hint = passesEgress(own)
			}
		}
	}
	c.plan.EgressPolicy = own
	for _, p := range c.above() {
		c.plan.EgressPolicy = narrowEgress(c.plan.EgressPolicy, p.Policy.Limits)
	}
}

// ownEgress gives the team's policy with its origins in their one form. nil: it declares none, or one that is wrong.
func (c *compiler) ownEgress() *spec.EgressPolicy {
	p, at := c.team.EgressPolicy, spec.Path("egressPolicy")
	switch {
	case p == nil:
		return nil
	case !p.Offline && p.Allow == nil:
		c.diags.Errorf("INVALID_EGRESS_POLICY", at, "egressPolicy says nothing of where models may be asked").Hint = "write offline: true, or allow: [https://HOST]; or leave it out"
		return nil
	case p.Allow == nil:
		return &spec.EgressPolicy{Offline: true}
	}
	origins, bad := []string{}, false
	for i, text := range *p.Allow {
		o, problem, hint := exactOrigin(text)
		if problem != "" {
			c.diags.Errorf("INVALID_EGRESS_POLICY", at.Key("allow").Index(i), "%q %s", text, problem).Hint = hint
			bad = true
		}
		origins = append(origins, o)
	}
	if bad {
		return nil
	}
	slices.Sort(origins)
	origins = slices.Compact(origins)
	return &spec.EgressPolicy{Offline: p.Offline, Allow: &origins}
}

// asked names the providers of the agents at work, sorted.
func (c *compiler) asked() []string {
	working, asked := c.plan.Working(), map[string]bool{}
	for i := range c.plan.Agents {
		a := &c.plan.Agents[i]
		if _, known := c.plan.Providers[a.Provider]; known && working[a.Name] {
			asked[a.Provider] = true
		}
	}
	return sortedKeys(asked)
}

// narrowEgress takes the origins of limits into a policy. Limits without origins, and nil ones, leave it as it is.
func narrowEgress(p *spec.EgressPolicy, l *spec.Limits) *spec.EgressPolicy {
	if l == nil || l.Origins == nil {
		return p
	}
	origins := []string{}
	for _, text := range *l.Origins {
		o, ok := origin(text)
		if ok && (p == nil || p.Allow == nil || slices.Contains(*p.Allow, o)) {
			origins = append(origins, o)
		}
	}
	slices.Sort(origins)
	origins = slices.Compact(origins)
	return &spec.EgressPolicy{Offline: p != nil && p.Offline, Allow: &origins}
}

// OutsideEgress says why a plan's policy lets no model be asked at an address, or gives nothing. No address asks nobody.
func OutsideEgress(p *spec.EgressPolicy, address string) string {
	if p == nil || address == "" {
		return ""
	}
	at, ok := origin(address)
	switch {
	case !ok:
		return at + " is no origin, and egressPolicy is declared"
	case !p.Offline && p.Allow == nil:
		return at + " is outside an egressPolicy that lets nothing through"
	case p.Offline && !loopback(at):
		return at + " is not on this machine, and egressPolicy.offline is true"
	case p.Allow != nil && !slices.Contains(*p.Allow, at):
		return at + " is not in egressPolicy.allow"
	}
	return ""
}

// passesEgress says what a policy lets through.
func passesEgress(p *spec.EgressPolicy) string {
	if p.Allow == nil {
		return "use a model on this machine, at 127.0.0.1, [::1] or localhost, or a cassette"
	}
	return passes(*p.Allow)
}

// loopback says that an origin is this machine by what is written: any other name is whatever is looked up.
func loopback(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// wholeOrigin is an origin and nothing else. Its host is a name as DNS has it, or an address.
var wholeOrigin = regexp.MustCompile(`^(?i:https?)://(?:\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z](?:[0-9A-Za-z._-]*[0-9A-Za-z])?)(?::([1-9][0-9]{0,4}))?$`)

// exactOrigin gives an origin in its one form. problem says why a text is none.
func exactOrigin(text string) (o, problem, hint string) {
	hint = "write https://HOST or https://HOST:PORT, and no more"
	m := wholeOrigin.FindStringSubmatch(text)
	switch {
	case strings.Contains(text, "*"):
		return "", "has a wildcard, and origins are exact", "list every origin by itself"
	case strings.ContainsFunc(text, func(r rune) bool { return r > 127 }):
		return "", "has a letter that no name in DNS has", "write the name as DNS has it, with xn--"
	case m == nil:
		return "", "is no origin", hint
	}
	if port, err := strconv.Atoi(m[1]); err == nil && port > 65535 {
		return "", fmt.Sprintf("has the port %d, and the last one is 65535", port), hint
	}
	o, ok := origin(strings.ToLower(text))
	if _, rest, bracket := strings.Cut(o, "["); bracket {
		host, _, _ := strings.Cut(rest, "]")
		_, err := netip.ParseAddr(host)
		ok = ok && err == nil
	}
	if !ok {
		return "", "is no origin", hint
	}
	return o, "", ""
}

// egressControl says how far it is known whom an agent asks. The policy bounds model calls, so whatever else of the agent can ask
// somebody weakens it.
func egressControl(p *spec.Plan, a *spec.PlanAgent, add func(control, level, mechanism string)) {
	if p.EgressPolicy == nil {
		add("egress", spec.NotEnforceable, "no egress policy is declared")
		return
	}
	held := "model calls go to loopback addresses alone"
	if p.EgressPolicy.Allow != nil {
		held = fmt.Sprintf("model calls go to %s alone", EgressText(p.EgressPolicy))
	}
	if beside := asksBeside(p, a); beside != nil {
		add("egress", spec.NotEnforceable, held+"; it does not reach "+strings.Join(beside, ", "))
		return
	}
	add("egress", spec.Enforced, held)
}

// asksBeside names what of an agent, beside its model calls, can ask somebody. nil: nothing can.
func asksBeside(p *spec.Plan, a *spec.PlanAgent) (out []string) {
	if x := a.ShellExecutor; a.Has("bash") && !(Walled(x) && x.Kind != "landlock" && x.Network != nil && !*x.Network) {
		out = append(out, "bash")
	}
	if slices.ContainsFunc(a.Tools, func(g spec.Grant) bool { _, own := p.CustomTools[g.Name]; return own }) {
		out = append(out, "the team's own tools")
	}
	if len(ServersOf(p, a)) > 0 {
		out = append(out, "MCP servers")
	}
	return out
}

// EgressText says where a policy lets models be asked.
func EgressText(p *spec.EgressPolicy) string {
	if p.Allow == nil {
		return "loopback addresses"
	}
	text := strings.Join(*p.Allow, ", ")
	if text == "" {
		text = "no origin"
	}
	if p.Offline {
		text += ", on loopback addresses,"
	}
	return text
}

// egress follows the origins from the file through the policies above it. Whoever took some away last is their source.
func (e *effective) egress() {
	path := spec.Path("egressPolicy")
	p := e.plan.EgressPolicy
	if p == nil {
		e.add(path, "undeclared", FromProgram, "")
		return
	}
	if p.Offline { // no policy sets it
		e.add(path.Key("offline"), true, FromFile, path.Key("offline"))
	} else {
		e.add(path.Key("offline"), false, FromProgram, "")
	}
	if p.Allow == nil {
		return
	}
	c := compiler{b: e.b, team: e.b.Team}
	now := c.ownEgress()
	source, at := FromFile, path.Key("allow")
	for _, f := range c.above() {
		was := now
		if now = narrowEgress(now, f.Policy.Limits); plain(was) != plain(now) {
			source, at = aboveSource(&f), ""
		}
	}
	e.add(path.Key("allow"), *p.Allow, source, at)
}
