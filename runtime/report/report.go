package report

import (
	"cmp"
	"errors"
	"io"
	"strings"

	"github.com/open-multi-agent/oma/runtime"
)

// Formats gives the renderings by name. Each writes one whole document, in one write, or fails.
func Formats() map[string]func(io.Writer, *runtime.GateVerdict) error {
	return map[string]func(io.Writer, *runtime.GateVerdict) error{
		"text":   whole(text),
		"json":   whole(document),
		"junit":  whole(junit),
		"github": whole(github),
	}
}

// Summary writes a GitHub step summary in Markdown. It ends below 900 KiB: GitHub refuses a summary of more than 1 MiB,
// and other programs may write to the same one.
func Summary(w io.Writer, v *runtime.GateVerdict) error { return whole(summary)(w, v) }

func whole(render func(*runtime.GateVerdict) ([]byte, error)) func(io.Writer, *runtime.GateVerdict) error {
	return func(w io.Writer, v *runtime.GateVerdict) error {
		if v == nil {
			return errors.New("there is no verdict to report")
		}
		b, err := render(v)
		if err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	}
}

func passOrFail(v *runtime.GateVerdict) string {
	if v.Pass {
		return "PASS"
	}
	return "FAIL"
}

func bound(v *runtime.GateVerdict) string {
	switch {
	case v.Bound:
		return "bound to " + against(v) + " from outside the receipt"
	case v.Yardstick == runtime.YardstickDiffers && len(v.Against) == 1 && v.Against[0] == "plan":
		return "differs: the receipt is of another plan than the one given"
	case v.Yardstick == runtime.YardstickDiffers:
		return "differs: the receipt is not bound to all of " + against(v)
	case v.Yardstick == runtime.YardstickNotCompared:
		return "not compared: no receipt could be read"
	}
	return "unbound: the receipt vouches for itself"
}

// against names what the receipt was held against.
func against(v *runtime.GateVerdict) string {
	what := make([]string, len(v.Against))
	for i, a := range v.Against {
		what[i] = line(a, 128)
		if a == "plan" {
			what[i] = "the plan"
		}
	}
	return strings.Join(what, " and ")
}

func tree(v *runtime.GateVerdict) string {
	switch v.Tree {
	case runtime.TreeChecked:
		return "the files are those of the run"
	case runtime.TreeDiffers:
		return "the files are not those of the run, or cannot be read"
	case runtime.TreeNothing:
		return "nothing to check: no required role has tools"
	}
	return "not checked: give --tree"
}

// head gives the rows that every page begins with.
func head(v *runtime.GateVerdict, row func(name, value string)) {
	if v.Receipt != nil {
		row("run", v.RunID+" of team "+v.Team)
	}
	row("governance", v.GovernanceConclusion)
	row("release", v.ReleaseConclusion)
	row("integrity", integrity(v))
	if v.SignedBy != "" {
		row("signed by", v.SignedBy)
	}
	row("yardstick", bound(v))
	if v.Receipt != nil {
		row("tree", tree(v))
	}
	if v.Artifact == runtime.ArtifactChecked || v.Artifact == runtime.ArtifactDiffers {
		row("artifact", artifact(v))
	}
}

func artifact(v *runtime.GateVerdict) string {
	switch {
	case v.Artifact == runtime.ArtifactDiffers:
		return "not what the receipt is about, or it cannot be read"
	case v.SignedBy != "":
		return "what the signature is for"
	}
	return "as the run left it"
}

func integrity(v *runtime.GateVerdict) string {
	switch v.Integrity {
	case runtime.IntegrityNone:
		return "none: nothing could be verified"
	case runtime.IntegrityDigest:
		return "digest: the receipt is as it was written; no event log was verified"
	case runtime.IntegrityChain:
		return "chain: the receipt is as it was written and agrees with its event log"
	case runtime.IntegritySigned:
		if v.Chained {
			return "signed: the receipt is as it was signed and agrees with its event log"
		}
		return "signed: the receipt is as it was signed; no event log was verified"
	}
	return v.Integrity
}

// advice says what to do about a reason.
func advice(r runtime.GateReason) string { return cmp.Or(line(r.Hint, maxMessage), hint(r.Code)) }

// hint says what to do about a reason by its code alone. Codes of a later version have none of their own.
func hint(code string) string {
	switch code {
	case "integrity":
		return "run the team again and keep receipt and event log as they were written; check the gate with the team file the run was made from"
	case "unbound":
		return "give the gate --team FILE, --plan FILE or --policy FILE, taken from a branch that the change cannot edit"
	case "not-applicable":
		return "declare governanceIntent: required with requiredRoles in the team file"
	case "overridden":
		return "run the team without --agent and without mode: single"
	case "budget":
		return "raise the ceiling in budgets, or give the team less to do, and run again"
	case "cancelled":
		return "run the team again and let it end"
	case "rejected":
		return "read why the call was rejected, change the work, and run again"
	case "suspended":
		return "decide about the call that waits, then let the run go on to its end"
	case "role-failed":
		return "see why the role stopped, mend that, and run again"
	case "role-missing":
		return "see which task before the role did not complete, mend that, and run again"
	case "order":
		return "let the tasks depend on each other as requiredOrder says, and run again"
	case "independence":
		return "let another agent, and with differentModel another model, do the review, and run again"
	case "run-failed":
		return "see in the receipt which task failed and why, mend that, and run again"
	case "release":
		return "read what the requirement asks of the answer, mend the work, and run again"
	}
	return "read the reason, mend what it says, and run again"
}

// next is what to do about the weightiest reason. Empty: nothing.
func next(v *runtime.GateVerdict) string {
	if len(v.Reasons) == 0 {
		return ""
	}
	return advice(v.Reasons[0])
}

func isCode(code string) func(string) bool { return func(c string) bool { return c == code } }

// reasons gives those of the codes asked for.
func reasons(v *runtime.GateVerdict, codes func(string) bool) (out []runtime.GateReason) {
	for _, r := range v.Reasons {
		if codes(r.Code) {
			out = append(out, r)
		}
	}
	return out
}
