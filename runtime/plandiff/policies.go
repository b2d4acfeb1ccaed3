package plandiff

import "strings"

// policies are documents of rules. Their rules are compared among all rules, so what is left are their limits.
func policies() *part {
	return &part{by: []string{"source"}, added: policyNew, removed: policyGone, each: &part{of: map[string]*part{
		"name":   changed("has another name"),
		"source": changed(""),
		"digest": changed("has another text"),
		"limits": {of: map[string]*part{
			"env":              bounds("environment variables"),
			"files":            bounds("files"),
			"origins":          bounds("addresses"),
			"commands":         bounds("programs"),
			"maxTokenBudget":   ceiling("the limit on tokens", ""),
			"maxCostBudget":    cost(),
			"maxDuration":      ceiling("the limit on the duration", ""),
			"requiredRoles":    demands("every team must require the role", "no team must require the role any more"),
			"requireEnforced":  demands("every team must have the control enforced", "no team must have the control enforced any more"),
			"reviewers":        {choose: reviewers},
			"quorum":           quorum("how many must approve in every team"),
			"separateApprover": control("no author approves", "an author may approve", false),
		}},
	}}}
}

// above says that a policy stands above the team file.
func above(e any) bool { return strings.HasPrefix(member(e, "source"), "policy ") }

func policyNew(_ *walk, e any) verdict {
	if above(e) {
		return verdict{Narrowed, "is a further policy above the team file"}
	}
	return verdict{Changed, "is a further document of rules"}
}

func policyGone(_ *walk, e any) verdict {
	if above(e) {
		return verdict{Widened, "is no longer a policy above the team file"}
	}
	return verdict{Changed, "is no longer a document of rules"}
}
