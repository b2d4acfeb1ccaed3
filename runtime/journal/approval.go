package journal

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// Approval is a request to people, as policies.NewApproval makes it, and what they said. A request is asked once and never
// changes. Times are UTC, to the millisecond: what a reviewer signs is read from here, so nothing finer may be in it.
type Approval struct {
	spec.ApprovalRequest
	// Decisions are in the order in which they were taken, those that do not count among them; nil: there are none.
	Decisions []spec.ApprovalVote `json:"decisions,omitempty"`
}

// Ask stores a request, on disk. The same request again changes nothing: reason and times stay as they were first asked,
// and Approval gives those. No RequestedAt is now.
func (s *Store) Ask(ctx context.Context, r spec.ApprovalRequest) error {
	if r.RequestedAt.IsZero() {
		r.RequestedAt = s.now()
	}
	tx, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	old, err := s.approval(ctx, tx, r.ID)
	known := err == nil
	switch {
	case known && (old.RequestHash != r.RequestHash || old.RunID != r.RunID):
		return &ApprovalError{ApprovalConflict, r.ID, "was asked with other content"}
	case !known && !errors.Is(err, ApprovalNotFound):
		return err
	}
	if err := policies.CheckApproval(&r); err != nil {
		return &ApprovalError{ApprovalInvalid, r.ID, "cannot be asked: " + err.Error()}
	}
	if known {
		return nil
	}
	sum, err := requestSum(&r)
	if err != nil {
		return &ApprovalError{ApprovalInvalid, r.ID, "cannot be asked: " + err.Error()}
	}
	res, err := tx.ExecContext(ctx, sqlAddApproval, r.ID, r.Scope, r.Boundary, r.RequestHash, []byte(r.Content), r.Reason,
		milli(r.RequestedAt), milli(r.Expires), sum, r.RunID)
	if err != nil {
		return s.fail(err)
	}
	if n, _ := res.RowsAffected(); n == 0 {
		tx.Rollback()
		return s.unknown(ctx, r.RunID)
	}
	return s.fail(tx.Commit())
}

// Conclude says what comes of a request by the decisions that it has: Votes are those that count.
type Conclude func(*Approval) spec.ApprovalRecord

// Decide adds what a reviewer said, on disk, if the request is the one they saw, nothing has come of it, and they have not
// been heard. conclude is asked in the same transaction, so of many processes that decide at once the first wins; what does
// not count by it, as a decision that was written around the program, keeps nobody from being heard. nil: the first
// decision of anybody concludes. No DecidedAt is now. Whether a signature holds is for the caller to judge first.
func (s *Store) Decide(ctx context.Context, id, requestHash string, v spec.ApprovalVote, conclude Conclude) error {
	if v.DecidedAt.IsZero() {
		v.DecidedAt = s.now()
	}
	tx, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	a, err := s.approval(ctx, tx, id)
	if err != nil {
		return err
	}
	if err := policies.VoteRefused(nil, "", &a.ApprovalRequest, &v); err != nil {
		return &ApprovalError{ApprovalInvalid, id, "cannot be decided so: " + err.Error()}
	}
	if conclude == nil {
		conclude = func(a *Approval) spec.ApprovalRecord {
			return policies.ConcludeApproval(nil, "", &a.ApprovalRequest, a.Decisions, s.now())
		}
	}
	if err := a.open(requestHash, &v, s.now(), conclude); err != nil {
		return err
	}
	sum, err := voteSum(id, &v)
	if err != nil {
		return &ApprovalError{ApprovalInvalid, id, "cannot be decided so: " + err.Error()}
	}
	signature := append([]byte{}, v.Signature...) // none is not NULL
	if _, err := tx.ExecContext(ctx, sqlAddDecision, id, v.Reviewer, v.Verdict, v.Reason, signature, milli(v.DecidedAt), sum); err != nil {
		return s.fail(err)
	}
	return s.fail(tx.Commit())
}

// open fails unless a vote can be taken now.
func (a *Approval) open(requestHash string, v *spec.ApprovalVote, now time.Time, conclude Conclude) error {
	late := func(t time.Time) bool { return !a.Expires.IsZero() && !t.Before(a.Expires) }
	is := conclude(a)
	switch {
	case a.RequestHash != requestHash:
		return &ApprovalError{ApprovalStale, a.ID, fmt.Sprintf("is of request %s, and %q was decided", a.RequestHash, requestHash)}
	case late(now) || late(v.DecidedAt):
		return &ApprovalError{ApprovalStale, a.ID, "expired at " + a.Expires.Format(time.RFC3339)}
	case is.Decision != spec.ApprovalPending:
		return &ApprovalError{ApprovalConflict, a.ID, "was decided already" + saidBy(is.Votes[max(len(is.Votes)-1, 0):])}
	}
	for i, d := range is.Votes {
		if d.Reviewer == v.Reviewer {
			return &ApprovalError{ApprovalConflict, a.ID, "was decided already" + saidBy(is.Votes[i:i+1])}
		}
	}
	with := *a
	with.Decisions = append(slices.Clip(a.Decisions), *v)
	if len(conclude(&with).Votes) == len(is.Votes) { // as of one who was heard under a name that is written otherwise
		return &ApprovalError{ApprovalConflict, a.ID, fmt.Sprintf("would not count this decision of %q", v.Reviewer)}
	}
	return nil
}

// saidBy names a decision, if there is one.
func saidBy(votes []spec.ApprovalVote) string {
	if len(votes) == 0 {
		return ""
	}
	return fmt.Sprintf(": %s by %q", votes[0].Verdict, votes[0].Reviewer)
}

// Approval gives one request with its decisions.
func (s *Store) Approval(ctx context.Context, id string) (Approval, error) {
	a, err := s.approval(ctx, s.db, id)
	if err != nil {
		return Approval{}, err
	}
	return *a, nil
}

// ApprovalFilter chooses approvals. Its zero value chooses all.
type ApprovalFilter struct {
	RunID string // empty: any
}

// Approvals gives requests in the order in which they were asked. Those that are damaged are left out and named by the
// error, beside the others.
func (s *Store) Approvals(ctx context.Context, f ApprovalFilter) ([]Approval, error) {
	return s.approvals(ctx, s.db, sqlApprovalsAll, f.RunID)
}

// minPrefix is how much of an id must be there: apr_ and 8 digits, so that it is not short by mistake.
const minPrefix = 12

// ApprovalID gives the id that begins with a text. The error of a text that begins none, or several, names what may have
// been meant.
func (s *Store) ApprovalID(ctx context.Context, prefix string) (string, error) {
	rows, err := s.db.QueryContext(ctx, sqlApprovalIDs)
	if err != nil {
		return "", s.fail(err)
	}
	ids, err := s.texts(rows)
	if err != nil {
		return "", err
	}
	var found []string
	for _, id := range ids {
		if id == prefix {
			return id, nil
		}
		if len(prefix) >= minPrefix && strings.HasPrefix(id, prefix) {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		detail := "is not known"
		if near := nearest(prefix, ids[:min(len(ids), 1000)]); len(near) > 0 {
			detail += ": did you mean " + strings.Join(near, " or ") + "?"
		}
		return "", &ApprovalError{ApprovalNotFound, prefix, detail}
	}
	return "", &ApprovalError{ApprovalNotFound, prefix, "begins more than one: " + strings.Join(found, ", ")}
}

// querier is a database or a transaction.
type querier interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}

func (s *Store) approval(ctx context.Context, q querier, id string) (*Approval, error) {
	found, err := s.approvals(ctx, q, sqlApprovalByID, id)
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, &ApprovalError{ApprovalNotFound, id, "is not known"}
	}
	return &found[0], nil
}

// approvals reads rows of requests, each as often as it has decisions.
func (s *Store) approvals(ctx context.Context, q querier, query string, args ...any) ([]Approval, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, s.fail(err)
	}
	defer rows.Close()
	var found []Approval
	var bad []error
	var skip string // the last request that is damaged: it is not given with some of its decisions
	for rows.Next() {
		a, d, err := scanApproval(rows)
		last := len(found) - 1
		switch {
		case err != nil && !errors.Is(err, ApprovalIntegrity):
			return found, s.fail(err)
		case err != nil:
			bad, skip = append(bad, err), a.ID
			if last >= 0 && found[last].ID == a.ID {
				found = found[:last]
			}
		case len(bad) > 0 && a.ID == skip:
		case last >= 0 && found[last].ID == a.ID:
			found[last].Decisions = append(found[last].Decisions, *d)
		default:
			if d != nil {
				a.Decisions = []spec.ApprovalVote{*d}
			}
			found = append(found, *a)
		}
	}
	return found, errors.Join(append(bad, s.fail(rows.Err()))...)
}

// scanApproval reads a row and holds it against its digests. No decision is nil.
func scanApproval(rows *sql.Rows) (*Approval, *spec.ApprovalVote, error) {
	var a Approval
	var d spec.ApprovalVote
	var requested, expires, num, decided int64
	var content []byte
	var sum, dsum string
	if err := rows.Scan(&a.ID, &a.RunID, &a.Scope, &a.Boundary, &a.RequestHash, &content, &a.Reason, &requested, &expires, &sum,
		&num, &d.Reviewer, &d.Verdict, &d.Reason, &d.Signature, &decided, &dsum); err != nil {
		return nil, nil, err
	}
	a.Content, a.RequestedAt, a.Expires, d.DecidedAt = content, moment(requested), moment(expires), moment(decided)
	if err := policies.CheckApproval(&a.ApprovalRequest); err != nil {
		return &a, nil, &ApprovalError{ApprovalIntegrity, a.ID, "is not stored as it was asked: " + err.Error()}
	}
	if is, err := requestSum(&a.ApprovalRequest); err != nil || is != sum {
		return &a, nil, &ApprovalError{ApprovalIntegrity, a.ID, "is not stored as it was asked"}
	}
	if num == 0 {
		return &a, nil, nil
	}
	if is, err := voteSum(a.ID, &d); err != nil || is != dsum {
		return &a, nil, &ApprovalError{ApprovalIntegrity, a.ID, "has a decision that is not stored as it was taken"}
	}
	if len(d.Signature) == 0 {
		d.Signature = nil
	}
	return &a, &d, nil
}

func requestSum(r *spec.ApprovalRequest) (string, error) {
	return canon.DigestOf("approval", []any{r.ID, r.RunID, r.Scope, r.Boundary, r.RequestHash, string(r.Content), r.Reason,
		milli(r.RequestedAt), milli(r.Expires)})
}

func voteSum(id string, v *spec.ApprovalVote) (string, error) {
	return canon.DigestOf("decision", []any{id, v.Reviewer, v.Verdict, v.Reason, hex.EncodeToString(v.Signature), milli(v.DecidedAt)})
}
