package runtime

import (
	"slices"

	"github.com/open-multi-agent/oma/spec"
)

// The exit codes of run, resume and gate.
const (
	ExitOK          = 0
	ExitFailed      = 1 // a task or an agent failed
	ExitUsage       = 2 // usage, or a file that is not valid; nothing ran
	ExitBroken      = 3 // the program or the world broke
	ExitGovernance  = 4
	ExitCeiling     = 5
	ExitSuspended   = 6
	ExitStale       = 7
	ExitDenied      = 8
	ExitRelease     = 9
	ExitHeld        = 10
	ExitInterrupted = 130
	ExitTerminated  = 143
)

// precedence orders the codes: when several hold, the first is the one the program ends with.
var precedence = []int{ExitBroken, ExitUsage, ExitStale, ExitHeld, ExitInterrupted, ExitTerminated, ExitSuspended, ExitGovernance, ExitRelease, ExitCeiling, ExitDenied, ExitFailed}

// exitCodes gives every code that holds for a receipt, the one to end with first. It is never empty. cancelled says that
// something was left undone because the run was to end, whatever else went wrong.
func exitCodes(r *spec.Receipt, cancelled bool, o Options) []int {
	holds := map[int]bool{
		ExitFailed:     !r.Success,
		ExitCeiling:    r.Status.Code == spec.StatusBudget,
		ExitSuspended:  r.Status.Code == spec.StatusSuspended,
		ExitGovernance: r.GovernanceConclusion == spec.Unsatisfied || o.RequireGovernance && r.GovernanceConclusion != spec.Satisfied,
		ExitRelease:    r.ReleaseConclusion == spec.Unsatisfied,
		ExitDenied:     o.FailOnDenied && r.Denied > 0,
		ExitBroken:     worldBroke(r),
	}
	if cancelled && o.Interrupted != nil {
		holds[o.Interrupted()] = true
	}
	var codes []int
	for _, c := range precedence {
		if holds[c] {
			codes = append(codes, c)
		}
	}
	if codes == nil {
		return []int{ExitOK}
	}
	return codes
}

// worldBroke says that a task that had to succeed ended on its provider or the store. Where nothing declares what has
// to, every task does. An external agent has no provider: one that fails is an agent that failed.
func worldBroke(r *spec.Receipt) bool {
	if r.ErrorInfo != nil && r.ErrorInfo.Kind == "store" {
		return true
	}
	declared := r.Governance != nil && len(r.Governance.RequiredRoles) > 0
	return slices.ContainsFunc(r.Tasks, func(t spec.TaskRecord) bool {
		return (t.Role != "" || !declared) && t.Provider != "" && t.ErrorInfo != nil && (t.ErrorInfo.Kind == "provider" || t.ErrorInfo.Code == "LLM_CALL_TIMEOUT")
	})
}
