package loader

import (
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

// gatesPlace refuses keys of gates and rules where they could not do what they say. each visits the maps at a pattern of
// steps.
func gatesPlace(each func(f func(m map[string]any, at spec.Path), steps ...string), ds *spec.Diagnostics) {
	misplaced := func(key, message, hint string, steps ...string) {
		each(func(m map[string]any, at spec.Path) {
			if _, ok := m[key]; ok {
				p := ds.Errorf("misplaced-key", at.Key(key), message, key)
				p.OnKey, p.Hint = true, hint
			}
		}, steps...)
	}
	const teams = "%q belongs to the team's own gates"
	misplaced("default", teams, "an agent's gates only add rules", "agents", "*", "gates")
	misplaced("shell", teams, "an agent's gates only add rules, and a level can lower a risk", "agents", "*", "gates")
	misplaced("replace", "%q belongs to the gates of an agent", "leave the rule out instead", "gates")
	for _, steps := range []string{"rules *", "agents * gates rules *", "approvals plan *", "approvals dispatch *"} {
		misplaced("overridable", "%q belongs to the rules of the team's own gates", "leave it out: nothing drops this rule", strings.Fields(steps)...)
	}
}

// says refuses a policy that says nothing.
func says(policy map[string]any, ds *spec.Diagnostics) {
	limits, isMap := policy["limits"].(map[string]any)
	_, hasRules := policy["rules"]
	_, hasLimits := policy["limits"]
	if hasRules || hasLimits && (!isMap || len(limits) > 0) {
		return
	}
	ds.Errorf("policy-empty", "", "the policy has neither rules nor limits").Hint = "add rules: or limits:"
}
