package runtime

import (
	"fmt"
	"io"
	"slices"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// GateOptions is what a release decision is made with.
type GateOptions struct {
	// Plan is the yardstick from outside the receipt. nil: there is none, and the receipt vouches for itself.
	Plan *spec.Plan
	// Log is the run's event log. nil: only the receipt's own digest is checked.
	Log                io.Reader
	Unbound            bool // let a receipt without a yardstick pass
	AllowNotApplicable bool
	RequireSigned      bool
}

// GateVerdict is a release decision. It is derived from the receipt's facts, never from its words.
type GateVerdict struct {
	Pass                 bool            `json:"pass"`
	ExitCode             int             `json:"exitCode"`
	Bound                bool            `json:"bound"`
	Integrity            string          `json:"integrity"` // none, digest or chain
	GovernanceConclusion string          `json:"governanceConclusion"`
	ReleaseConclusion    string          `json:"releaseConclusion"`
	Reasons              []spec.Reason   `json:"reasons"` // why it does not pass, the weightiest first
	Release              []spec.Released `json:"release,omitempty"`
	Receipt              *spec.Receipt   `json:"-"` // nil: there is no receipt that can be read
}

// The integrity a gate can find. A signature or an attestation is for a later version.
const (
	IntegrityNone   = "none"
	IntegrityDigest = "digest"
	IntegrityChain  = "chain"
)

// NoReceipt is the verdict about evidence that is not there.
func NoReceipt(why string) *GateVerdict { return emptyVerdict().fail("integrity", "%s", why) }

func emptyVerdict() *GateVerdict {
	return &GateVerdict{Integrity: IntegrityNone, GovernanceConclusion: spec.Unsatisfied, ReleaseConclusion: spec.Unsatisfied, Reasons: []spec.Reason{}}
}

// Gate decides about a release by a receipt. Absent evidence is never a pass: what is missing, empty, cut short,
// edited, or at odds with itself, its log or its yardstick fails with the reason integrity.
func Gate(data []byte, o GateOptions) *GateVerdict {
	v := emptyVerdict()
	r, err := ReadReceipt(data)
	if err != nil {
		return v.fail("integrity", "%v", err)
	}
	v.Receipt, v.Integrity = r, IntegrityDigest
	v.consistent(r)
	v.log(r, o.Log)
	governance, release := r.Governance, requirementsOf(r)
	if o.Plan != nil {
		v.bind(r, o.Plan)
		governance, release = o.Plan.Governance, o.Plan.Release
	} else if !o.Unbound {
		v.fail("unbound", "the receipt vouches for itself: give --team FILE or --plan FILE, or accept that with --unbound")
	}
	if o.RequireSigned {
		v.fail("integrity", "a signature is required and the receipt has none")
	}
	c := policies.Conclude(governance, r)
	v.GovernanceConclusion = c.Conclusion
	v.Reasons = append(v.Reasons, c.Reasons...)
	if c.Conclusion == spec.NotApplicable && !o.AllowNotApplicable {
		v.fail("not-applicable", "nothing is required, so nothing was proved: declare governanceIntent required, or accept that with --allow-not-applicable")
	}
	v.release(r, release)
	return v.decide()
}

func (v *GateVerdict) fail(code, format string, args ...any) *GateVerdict {
	v.Reasons = append(v.Reasons, spec.Reason{Code: code, Message: fmt.Sprintf(format, args...)})
	v.ExitCode = ExitGovernance
	return v
}

// decide gives the exit code: evidence and governance come before the release requirements.
func (v *GateVerdict) decide() *GateVerdict {
	v.Pass = len(v.Reasons) == 0
	switch onlyRelease := !slices.ContainsFunc(v.Reasons, func(r spec.Reason) bool { return r.Code != "release" }); {
	case v.Pass:
		v.ExitCode = ExitOK
	case onlyRelease:
		v.ExitCode = ExitRelease
	default:
		v.ExitCode = ExitGovernance
	}
	return v
}

// consistent holds the receipt against itself: whatever can be derived is derived again.
func (v *GateVerdict) consistent(r *spec.Receipt) {
	if len(r.Tasks) == 0 {
		v.fail("integrity", "the receipt has no task")
	}
	if plain(policies.Topology(r.Tasks, r.Governance, r.RoutingDecision)) != plain(r.Topology) {
		v.fail("integrity", "the topology does not follow from the tasks")
	}
	var tokens spec.Usage
	completed, denied := 0, 0
	for _, t := range r.Tasks {
		tokens = tokens.Add(t.Tokens)
		if t.Status == spec.TaskCompleted {
			completed++
			if t.StopReason != spec.StopCompleted || t.Turns == 0 || t.ModelCalls == 0 || t.StartedAt == "" {
				v.fail("integrity", "task %q is called completed without having worked", t.ID)
			}
		}
	}
	for _, d := range r.Decisions {
		if !d.Allowed() {
			denied++
		}
	}
	if tokens != r.TotalTokens {
		v.fail("integrity", "the tokens of the tasks do not add up to the total")
	}
	if denied != r.Denied {
		v.fail("integrity", "%d decisions denied a call and the receipt says %d", denied, r.Denied)
	}
	if r.Success != (r.Status.Code == spec.StatusOK) || r.Success && completed != len(r.Tasks) {
		v.fail("integrity", "the receipt calls itself a success and its tasks do not")
	}
}

// plain makes two values comparable that differ only in how their absence is written.
func plain(v any) any {
	b, err := canon.Bytes(v)
	if err != nil {
		return err
	}
	return string(b)
}

// bind holds the receipt against the plan it is said to be of.
func (v *GateVerdict) bind(r *spec.Receipt, p *spec.Plan) {
	if r.Plan.Digest != p.Digest {
		v.fail("integrity", "the receipt is of plan %s and the yardstick is plan %s", short(r.Plan.Digest), short(p.Digest))
		return
	}
	v.Bound = true
	if plain(r.Governance) != plain(p.Governance) {
		v.fail("integrity", "the receipt declares another governance than its plan")
	}
	if plain(r.RoutingDecision) != plain(p.RoutingDecision) {
		v.fail("integrity", "the receipt has another routing decision than its plan")
	}
	if !sameTasks(r.Tasks, p.Tasks) {
		v.fail("integrity", "the receipt has other tasks than its plan")
	}
}

func short(digest string) string {
	if len(digest) > 19 {
		return digest[:19] + "…"
	}
	return digest
}

func sameTasks(got []spec.TaskRecord, want []spec.PlanTask) bool {
	return slices.EqualFunc(got, want, func(g spec.TaskRecord, w spec.PlanTask) bool {
		return g.ID == w.ID && g.Title == w.Title && g.Assignee == w.Assignee && g.Role == w.Role && slices.Equal(g.DependsOn, w.DependsOn)
	})
}

// release holds each requirement of the yardstick against what the run found. The answers themselves are not on a
// receipt, so this is the one thing a gate takes from it.
func (v *GateVerdict) release(r *spec.Receipt, want []spec.Requirement) {
	v.Release = r.Release
	v.ReleaseConclusion = policies.ReleaseConclusion(r.Release, want)
	if v.ReleaseConclusion != spec.Unsatisfied {
		return
	}
	for _, w := range want {
		i := slices.IndexFunc(r.Release, func(g spec.Released) bool { return g.Name == w.Name })
		switch {
		case i < 0:
			v.fail("release", "release requirement %q was never judged", w.Name)
		case r.Release[i].Outcome != "held":
			v.fail("release", "release requirement %q: %s", w.Name, orDefault(r.Release[i].Reason, r.Release[i].Outcome))
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
