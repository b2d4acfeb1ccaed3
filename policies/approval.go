package policies

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
	"github.com/open-multi-agent/oma/spec/keys"
)

// NewApproval makes a request: its content in the one canonical form, its hash, and an id that follows from run and
// hash, so that a run which comes to the same place again asks the same.
func NewApproval(runID, scope, boundary string, content json.RawMessage) (spec.ApprovalRequest, error) {
	c, err := canon.Canonical(content)
	if err != nil {
		return spec.ApprovalRequest{}, fmt.Errorf("the content is no JSON: %w", err)
	}
	r := spec.ApprovalRequest{RunID: runID, Scope: scope, Boundary: boundary, Content: c}
	if r.RequestHash, err = ApprovalHash(&r); err == nil {
		r.ID = ApprovalID(&r)
	}
	return r, err
}

// ApprovalHash is what a decision is about. Reason and times are no part of it.
func ApprovalHash(r *spec.ApprovalRequest) (string, error) {
	b, err := canon.Bytes(map[string]any{"boundary": r.Boundary, "content": r.Content, "scope": r.Scope})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// ApprovalID is the id that follows from a request's run, scope, boundary and hash: no request of another run or place has
// it.
func ApprovalID(r *spec.ApprovalRequest) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{r.RunID, r.Scope, r.Boundary, r.RequestHash}, "\n")))
	return "apr_" + hex.EncodeToString(sum[:16])
}

// CheckApproval says why a request is not what its hash and its id say.
func CheckApproval(r *spec.ApprovalRequest) error {
	hash, err := ApprovalHash(r)
	switch {
	case err != nil:
		return fmt.Errorf("the content is no JSON: %w", err)
	case hash != r.RequestHash:
		return fmt.Errorf("the request has hash %q, and its content %q", r.RequestHash, hash)
	case ApprovalID(r) != r.ID:
		return errors.New("the request's id does not follow from what it asks")
	}
	return nil
}

// ApprovalText is what a reviewer signs: the request, which of two words it gets, by whom, why, and until when it could be
// decided. A signature is good for one request of one run and for nothing else.
func ApprovalText(r *spec.ApprovalRequest, v *spec.ApprovalVote) ([]byte, error) {
	b, err := canon.Bytes(map[string]any{"decision": v.Verdict, "expires": stampOf(r.Expires), "id": r.ID, "reason": v.Reason,
		"requestHash": r.RequestHash, "reviewer": v.Reviewer})
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "oma/v1 approval-decision %d\n%s", len(b), b), nil
}

func stampOf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// VoteRefused says why a decision does not count, or nil. author is whoever started the run, by their own word.
func VoteRefused(a *spec.PlanApprovals, author string, r *spec.ApprovalRequest, v *spec.ApprovalVote) error {
	if v.Verdict != spec.VerdictApprove && v.Verdict != spec.VerdictReject {
		return fmt.Errorf("%q is neither %s nor %s", v.Verdict, spec.VerdictApprove, spec.VerdictReject)
	}
	if !isReviewer(v.Reviewer) {
		return fmt.Errorf("%q is no reviewer", v.Reviewer)
	}
	if a == nil {
		return nil
	}
	who := reviewer(a, v.Reviewer)
	switch {
	case len(a.Reviewers) > 0 && who == nil:
		return fmt.Errorf("%q is not among the team's reviewers", v.Reviewer)
	case a.SeparateApprover && strings.TrimSpace(author) == "":
		return errors.New("nobody says who started the run, and approvals.separateApprover wants somebody else")
	case a.SeparateApprover && strings.EqualFold(v.Reviewer, strings.TrimSpace(author)):
		return fmt.Errorf("%q started the run, and approvals.separateApprover wants somebody else", v.Reviewer)
	case a.SeparateApprover && (who == nil || who.PublicKey == ""):
		return fmt.Errorf("nothing proves that it was %q, and approvals.separateApprover wants a signature", v.Reviewer)
	case who == nil || who.PublicKey == "":
		return nil
	}
	return signed(who, r, v)
}

func reviewer(a *spec.PlanApprovals, id string) *spec.Reviewer {
	for i := range a.Reviewers {
		if a.Reviewers[i].ID == id {
			return &a.Reviewers[i]
		}
	}
	return nil
}

// signed holds a vote against its reviewer's key.
func signed(who *spec.Reviewer, r *spec.ApprovalRequest, v *spec.ApprovalVote) error {
	key, err := keys.ReadPublic([]byte(who.PublicKey))
	if err != nil {
		return fmt.Errorf("the key of %q cannot be read: %w", who.ID, err)
	}
	text, err := ApprovalText(r, v)
	if err != nil {
		return err
	}
	if len(v.Signature) == 0 {
		return fmt.Errorf("decisions of %q must be signed", who.ID)
	}
	if key.Verify(context.Background(), text, v.Signature) != nil {
		return fmt.Errorf("the signature is not one of %q over this decision", who.ID)
	}
	return nil
}

// ConcludeApproval says what came of a request: the votes that count, in order, up to the one that decided. One rejection
// rejects; as many approvals as the quorum approve; then nothing that comes later changes it. A request that nobody
// decided in time has expired: now is when that is asked.
func ConcludeApproval(a *spec.PlanApprovals, author string, r *spec.ApprovalRequest, votes []spec.ApprovalVote, now time.Time) spec.ApprovalRecord {
	out := spec.ApprovalRecord{RequestID: r.ID, Scope: r.Scope, Boundary: r.Boundary, RequestHash: r.RequestHash, Expires: r.Expires,
		Decision: spec.ApprovalPending}
	approvals, voted := 0, map[string]bool{}
	for _, v := range votes {
		late := !r.Expires.IsZero() && !v.DecidedAt.Before(r.Expires)
		who := voter(a, v.Reviewer)
		if late || voted[who] || VoteRefused(a, author, r, &v) != nil {
			continue
		}
		voted[who] = true
		out.Votes = append(out.Votes, v)
		if v.Verdict == spec.VerdictReject {
			out.Decision = spec.ApprovalRejected
		} else if approvals++; approvals >= quorum(a) {
			out.Decision = spec.ApprovalApproved
		}
		if out.Decision != spec.ApprovalPending {
			break
		}
	}
	if out.Decision == spec.ApprovalPending && !r.Expires.IsZero() && !now.Before(r.Expires) {
		out.Decision = spec.ApprovalExpired
	}
	out.Authenticated = len(out.Votes) > 0
	for _, v := range out.Votes {
		out.Authenticated = out.Authenticated && a != nil && reviewer(a, v.Reviewer) != nil && reviewer(a, v.Reviewer).PublicKey != ""
	}
	return out
}

// voter gives what counts once: a key, whatever names it has, and a name without one, however it is spelled.
func voter(a *spec.PlanApprovals, name string) string {
	if a != nil {
		if who := reviewer(a, name); who != nil && who.PublicKey != "" {
			if key, err := keys.ReadPublic([]byte(who.PublicKey)); err == nil {
				return key.ID()
			}
		}
	}
	return "name " + folded(name)
}

func quorum(a *spec.PlanApprovals) int {
	if a == nil {
		return 1
	}
	return max(a.Quorum, 1)
}
