package runtime

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
)

// maxReproduce bounds the command line that judges a denied call again, in bytes.
const maxReproduce = 4096

// describe completes a judgement for the record: what the rules that forbade the call read, and the command line that
// judges it again. Nothing of it is for the model, and nothing of it changes what was decided.
func (g *guard) describe(ctx context.Context, r policies.Request, j *core.Judged) {
	g.rules.Explain(ctx, r, &j.Decision)
	for i := range j.Rules {
		g.masked(&j.Rules[i])
	}
	if !j.Allowed() {
		j.Reproduce = g.reproduce(r, j)
	}
}

func (g *guard) masked(out *spec.RuleOutcome) {
	out.Reason = clip(g.mask(out.Reason), maxReason)
	for i, v := range out.Values {
		out.Values[i].Value = g.mask(v.Value)
	}
	for i, a := range out.Annotations {
		out.Annotations[i].Value = g.mask(a.Value)
	}
}

// reproduce gives the command line. It is empty where it would be too long or would hold a secret.
func (g *guard) reproduce(r policies.Request, j *core.Judged) string {
	words := append([]string{"oma", "policy", "check"}, g.retrace...)
	words = append(words, "--agent", r.AgentName, "--tool", r.ToolName, "--input", string(j.Canonical))
	if r.Role != "" {
		words = append(words, "--role", r.Role)
	}
	if r.TaskID != "" {
		words = append(words, "--task", r.TaskID)
	}
	if len(r.Marks) > 0 {
		words = append(words, "--marks", strings.Join(r.Marks, ","))
	}
	if g.reads(r, j, "budget") && r.Budget != nil {
		if r.Budget.Tokens != nil {
			words = append(words, "--remaining-tokens", strconv.FormatInt(*r.Budget.Tokens, 10))
		}
		if r.Budget.Cost != nil {
			words = append(words, "--remaining-cost", r.Budget.Cost.String())
		}
	}
	if g.reads(r, j, "history") && len(r.History) > 0 {
		history, err := json.Marshal(r.History)
		if err != nil {
			return ""
		}
		words = append(words, "--history", string(history))
	}
	line := commandLine(words)
	if len(line) > maxReproduce || g.mask(line) != line {
		return ""
	}
	return line
}

// reads says whether the denial hangs on a variable: a rule that forbade the call read it or, where none forbade it, a
// rule that did not permit it may have.
func (g *guard) reads(r policies.Request, j *core.Judged, variable string) bool {
	forbids := func(o spec.RuleOutcome) bool { return o.When != "" }
	if !slices.ContainsFunc(j.Rules, forbids) {
		return g.rules.Reads(r.AgentName, r.ToolName, variable)
	}
	return slices.ContainsFunc(j.Rules, func(o spec.RuleOutcome) bool {
		return slices.ContainsFunc(o.Values, func(v spec.ReadValue) bool { return strings.Contains(v.Path, variable) })
	})
}

// commandLine quotes words for a shell.
func commandLine(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = w
		if w == "" || strings.ContainsFunc(w, func(r rune) bool { return !plainRune(r) }) {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// plainRune says that no shell reads anything into a character.
func plainRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || slices.Contains([]rune("-_./:,@%+="), r)
}
