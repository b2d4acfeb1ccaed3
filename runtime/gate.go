package runtime

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// GateOptions is what a release decision is made with.
type GateOptions struct {
	// Plan and Policies are the yardstick from outside the receipt. Policies stand above the team file. Without either the
	// receipt vouches for itself.
	Plan     *spec.Plan
	Policies []spec.PolicyFile
	// Known is every tool there is, for rules over tools that no agent is granted.
	Known []spec.ToolInfo
	// Log is the run's event log. nil: it is missing, which no receipt passes without NoLog.
	Log                io.Reader
	NoLog              bool // check nothing but the receipt's own digest
	Unbound            bool // let a receipt without a yardstick pass
	AllowNotApplicable bool
	RequireSigned      bool // let no receipt pass whose signature does not hold
	// Signature holds a signature against the receipt as it is stored, and gives the id of the key that made it. nil: none
	// is looked at.
	Signature func(receipt []byte) (keyID string, err error)
	// Artifact says why what is to be released is not what the receipt is about. It is asked behind Signature. nil: it is
	// not looked at.
	Artifact func(*spec.Receipt) error
	// Tree gives the digest of a folder as it is now, by its cwd in the plan. It is compared with what the run left. nil:
	// what is there now is not looked at.
	Tree func(cwd string) (string, error)
}

// GateVerdict is a release decision. It is derived from the receipt's facts, never from its words.
type GateVerdict struct {
	Pass                 bool            `json:"pass"`
	ExitCode             int             `json:"exitCode"`
	RunID                string          `json:"runId,omitempty"` // as the receipt says, like Team. Empty: there is none that can be read
	Team                 string          `json:"team,omitempty"`
	Bound                bool            `json:"bound"`
	Against              []string        `json:"against,omitempty"`  // what from outside it was held against: plan, policy NAME
	Yardstick            string          `json:"yardstick"`          // none, matched, differs or not-compared
	Integrity            string          `json:"integrity"`          // none, digest, chain or signed
	Chained              bool            `json:"chained"`            // it agrees with its event log, signed or not
	SignedBy             string          `json:"signedBy,omitempty"` // id of the key. Empty: there is no signature that holds
	Artifact             string          `json:"artifact"`           // checked, differs or not-checked
	Tree                 string          `json:"tree"`               // checked, differs, nothing or not-checked
	GovernanceConclusion string          `json:"governanceConclusion"`
	ReleaseConclusion    string          `json:"releaseConclusion"`
	Reasons              []GateReason    `json:"reasons"` // why it does not pass, the weightiest first
	Release              []spec.Released `json:"release,omitempty"`
	Receipt              *spec.Receipt   `json:"-"` // nil: there is no receipt that can be read
}

// GateReason is one reason why a receipt does not pass.
type GateReason struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"` // what to do about it, where the code alone does not say. Empty: it does
}

// What a receipt was compared with from outside.
const (
	YardstickNone        = "none" // nothing was given
	YardstickMatched     = "matched"
	YardstickDiffers     = "differs"
	YardstickNotCompared = "not-compared" // no receipt could be read
)

// What was found of the files as they are now.
const (
	TreeChecked    = "checked" // they are those of the run
	TreeDiffers    = "differs"
	TreeNothing    = "nothing" // the run looked at no folder
	TreeNotChecked = "not-checked"
)

// What was found of what is to be released.
const (
	ArtifactChecked    = "checked" // it is what was signed for, or else what the run left
	ArtifactDiffers    = "differs"
	ArtifactNotChecked = "not-checked"
)

// The integrity a gate can find, the strongest last. Signed needs no event log: Chained says whether one was checked.
const (
	IntegrityNone   = "none"
	IntegrityDigest = "digest"
	IntegrityChain  = "chain"
	IntegritySigned = "signed"
)

// NoReceipt is the verdict about evidence that is not there.
func NoReceipt(why string) *GateVerdict { return emptyVerdict().broken(hintPath, "%s", why) }

func emptyVerdict() *GateVerdict {
	return &GateVerdict{Yardstick: YardstickNotCompared, Integrity: IntegrityNone, Artifact: ArtifactNotChecked, Tree: TreeNotChecked, GovernanceConclusion: spec.Unsatisfied,
		ReleaseConclusion: spec.Unsatisfied, Reasons: []GateReason{}}
}

// Gate decides about a release by a receipt. Absent evidence is never a pass: what is missing, empty, cut short,
// edited, or at odds with itself, its log or its yardstick fails with the reason integrity.
func Gate(data []byte, o GateOptions) *GateVerdict {
	v := emptyVerdict()
	r, err := ReadReceipt(data)
	if err != nil {
		return v.broken(hintReceipt, "%v", err)
	}
	v.Receipt, v.RunID, v.Team, v.Yardstick, v.Integrity = r, r.RunID, r.Team.Name, YardstickNone, IntegrityDigest
	v.consistent(r)
	var past *Past
	if o.Log != nil {
		past = v.log(r, o.Log)
	} else if !o.NoLog {
		v.broken(hintNoLog, "the event log is missing: keep events.jsonl beside the receipt or give --events FILE, or accept that with --no-log")
	}
	governance, release, folders := r.Governance, requirementsOf(r), map[string]string(nil)
	switch {
	case o.Plan != nil:
		v.bind(r, o.Plan)
		v.told(r, &o, past)
		governance, release, folders = o.Plan.Governance, o.Plan.Release, watched(o.Plan)
	case len(o.Policies) > 0:
		v.Bound, v.Yardstick = true, YardstickMatched
	case !o.Unbound:
		v.fail("unbound", "the receipt vouches for itself: give --team FILE, --plan FILE or --policy FILE, or accept that with --unbound")
	}
	v.under(r, o.Policies, governance)
	v.signed(data, o)
	c := policies.Conclude(governance, r, folders)
	v.GovernanceConclusion = c.Conclusion
	for _, why := range c.Reasons {
		v.Reasons = append(v.Reasons, GateReason{why.Code, why.Message, hintOf(why.Code)})
	}
	if c.Conclusion == spec.NotApplicable && !o.AllowNotApplicable {
		v.fail("not-applicable", "nothing is required, so nothing was proved: declare governanceIntent required, or accept that with --allow-not-applicable")
	}
	v.words(r, c)
	v.release(r, release)
	v.now(r, folders, o.Tree)
	v.artifact(r, o.Artifact)
	if !r.Success {
		v.fail("run-failed", "the run ended with status %s: %s", r.Status.Code, orStatus(r.Status))
	}
	return v.decide(r)
}

func (v *GateVerdict) fail(code, format string, args ...any) *GateVerdict {
	v.Reasons = append(v.Reasons, GateReason{Code: code, Message: fmt.Sprintf(format, args...)})
	v.ExitCode = ExitGovernance
	return v
}

// failHint is fail with a hint of its own.
func (v *GateVerdict) failHint(code, hint, format string, args ...any) {
	v.fail(code, format, args...)
	v.Reasons[len(v.Reasons)-1].Hint = hint
}

// broken is fail for evidence that does not hold. It has many causes, so each comes with its own hint.
func (v *GateVerdict) broken(hint, format string, args ...any) *GateVerdict {
	v.failHint("integrity", hint, format, args...)
	return v
}

// What to do about broken evidence, by its cause.
const (
	hintPath    = "check the path: it must be the receipt.json that the run wrote"
	hintReceipt = "give the receipt exactly as the run wrote it; if that one is lost, run the team again"
	hintNoLog   = "give --events FILE or --state DIR, or say --no-log if the log was not kept"
	hintLog     = "give receipt and event log of one run, both exactly as it wrote them; if they are lost, run the team again"
	hintPlan    = "give the same --team or --plan, --goal and --input as the run had; if a file of the team has changed since, run it again"
	hintTree    = "review again: run the team on the files as they are now"
	hintFolders = "let nothing change the folders of the required roles while the team runs, see that they can be read, and run again"
	hintSigned  = "give --key and the envelope that oma receipt sign made of this very file, or sign the receipt again"
	hintShipped = "release what was signed for, or sign the receipt again with --artifact; without a signature, the folder as the run left it"
	hintNoPlan  = "give --team FILE or --plan FILE"
	hintPolicy  = "run the team again with --policy, as given here"
	hintUnder   = "run the team again under the policy; if it was, the receipt is not as the run wrote it"
)

// hintOf gives the hint for a reason that governance has: of broken evidence, it looks at folders alone.
func hintOf(code string) string {
	if code == "integrity" {
		return hintFolders
	}
	return ""
}

// decide gives the exit code: evidence and governance come before the release requirements, and those before the run's
// own outcome.
func (v *GateVerdict) decide(r *spec.Receipt) *GateVerdict {
	v.Pass = len(v.Reasons) == 0
	has := func(code string) bool {
		return slices.ContainsFunc(v.Reasons, func(r GateReason) bool { return r.Code == code })
	}
	other := slices.ContainsFunc(v.Reasons, func(r GateReason) bool { return r.Code != "release" && r.Code != "run-failed" })
	switch {
	case v.Pass:
		v.ExitCode = ExitOK
	case r.Status.Code == spec.StatusSuspended && !has("integrity") && !has("unbound"):
		v.ExitCode = ExitSuspended
	case other:
		v.ExitCode = ExitGovernance
	case has("release"):
		v.ExitCode = ExitRelease
	case r.Status.Code == spec.StatusBudget:
		v.ExitCode = ExitCeiling
	default:
		v.ExitCode = ExitFailed
	}
	return v
}

func orStatus(s spec.Status) string { return cmp.Or(s.Message, "it does not say why") }

// plain makes two values comparable that differ only in how their absence is written.
func plain(v any) any {
	b, err := canon.Bytes(v)
	if err != nil {
		return err
	}
	return string(b)
}

// release holds each requirement of the yardstick against what the run found. The answers themselves are not on a
// receipt, so this is the one thing a gate takes from it.
func (v *GateVerdict) release(r *spec.Receipt, want []spec.Requirement) {
	v.Release = r.Release
	v.ReleaseConclusion = policies.ReleaseConclusion(r.Release, want)
	if r.ReleaseConclusion != v.ReleaseConclusion {
		v.broken(hintReceipt, "the receipt says the release is %s, and its requirements say %s", r.ReleaseConclusion, v.ReleaseConclusion)
	}
	if v.ReleaseConclusion != spec.Unsatisfied {
		return
	}
	for _, w := range want {
		i := slices.IndexFunc(r.Release, func(g spec.Released) bool { return g.Name == w.Name })
		switch {
		case i < 0:
			v.fail("release", "release requirement %q was never judged", w.Name)
		case r.Release[i].Outcome != "held":
			v.fail("release", "release requirement %q: %s", w.Name, cmp.Or(r.Release[i].Reason, r.Release[i].Outcome))
		}
	}
}

func requirementsOf(r *spec.Receipt) []spec.Requirement {
	out := make([]spec.Requirement, len(r.Release))
	for i, q := range r.Release {
		out[i] = spec.Requirement{Name: q.Name}
	}
	return out
}
