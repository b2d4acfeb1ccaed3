package policies

import (
	"testing"

	"github.com/open-multi-agent/oma/spec"
)

// N6: the strictest that rules said counts, in any order, and only the team's own rules permit what is denied by default.
func TestConcluded(t *testing.T) {
	said := func(action string) spec.RuleOutcome {
		return spec.RuleOutcome{Name: action, Source: "team", Action: action, Outcome: outcomeMatched}
	}
	from := func(source string, o spec.RuleOutcome) spec.RuleOutcome { o.Source = source; return o }
	failed := func(o spec.RuleOutcome) spec.RuleOutcome { o.Outcome = outcomeError; return o }
	allow, warn, ask, suspend, deny := said("allow"), said("warn"), said("ask"), said("suspend"), said("deny")
	for _, c := range []struct {
		name            string
		rules           []spec.RuleOutcome
		permit          bool
		action, outcome string
	}{
		{"nothing", nil, true, "allow", "decided"},
		{"nothing, denied by default", nil, false, "deny", "decided"},
		{"allow", []spec.RuleOutcome{allow}, false, "allow", "decided"},
		{"allow of an agent", []spec.RuleOutcome{from("agent a", allow)}, false, "allow", "decided"},
		{"allow of a pack", []spec.RuleOutcome{from("pack p", allow)}, false, "deny", "decided"},
		{"allow from above", []spec.RuleOutcome{from("policy p", allow)}, false, "deny", "decided"},
		{"allow that failed", []spec.RuleOutcome{failed(allow)}, true, "deny", "error"},
		{"warn", []spec.RuleOutcome{warn}, false, "deny", "decided"},
		{"ask", []spec.RuleOutcome{allow, ask, warn}, false, "ask", "decided"},
		{"suspend over ask", []spec.RuleOutcome{ask, suspend, ask}, true, "suspend", "decided"},
		{"deny over suspend", []spec.RuleOutcome{suspend, deny, allow}, true, "deny", "decided"},
		{"an error over deny", []spec.RuleOutcome{deny, failed(warn)}, true, "deny", "error"},
		{"an action nobody knows", []spec.RuleOutcome{said("permit")}, true, "deny", "decided"},
		{"an outcome nobody knows", []spec.RuleOutcome{{Action: "allow", Source: "team", Outcome: "ignored"}}, true, "deny", "error"},
	} {
		if action, outcome := Concluded(c.rules, c.permit); action != c.action || outcome != c.outcome {
			t.Errorf("%s: %s, %s", c.name, action, outcome)
		}
	}
}
