package journal

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/open-multi-agent/oma/spec/canon"
)

// Approval is a request to a person, and what was decided. It is asked once and never changes.
type Approval struct {
	ID          string          `json:"id"`
	RunID       string          `json:"runId"`
	Scope       string          `json:"scope"`       // what is to be approved: plan, task_round, task_dispatch, tool_call
	Boundary    string          `json:"boundary"`    // where in the run it is
	RequestHash string          `json:"requestHash"` // of boundary, content and scope
	Content     json.RawMessage `json:"content"`
	Reason      string          `json:"reason,omitempty"`
	RequestedAt time.Time       `json:"requestedAt"`
	Expires     time.Time       `json:"expires,omitzero"` // zero: never; from then on no decision is taken
	// Decisions are in the order in which they were taken, one of each reviewer; nil: it waits.
	Decisions []Decision `json:"decisions,omitempty"`
}

// Verdict is a decision's word.
type Verdict string

const (
	Approve Verdict = "approve"
	Reject  Verdict = "reject"
)

// Decision is what one reviewer said. Whether it is enough, and whether the signature holds, is for others to judge.
type Decision struct {
	Verdict   Verdict   `json:"decision"`
	Reviewer  string    `json:"reviewer"` // without space around it
	Reason    string    `json:"reason,omitempty"`
	Signature []byte    `json:"signature,omitempty"`
	DecidedAt time.Time `json:"decidedAt"` // zero in Decide: now
}

// NewApproval makes a request: its content in the one canonical form, its hash, and an id that follows from run and
// hash, so that a run which comes to the same place again asks the same.
func NewApproval(runID, scope, boundary string, content json.RawMessage) (Approval, error) {
	c, err := canon.Canonical(content)
	if err != nil {
		return Approval{}, &ApprovalError{ApprovalInvalid, boundary, fmt.Sprintf("has content that is no JSON: %v", err)}
	}
	a := Approval{RunID: runID, Scope: scope, Boundary: boundary, Content: c}
	if a.RequestHash, err = a.hash(); err != nil {
		return Approval{}, &ApprovalError{ApprovalInvalid, boundary, err.Error()}
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{runID, scope, boundary, a.RequestHash}, "\n")))
	a.ID = "apr_" + hex.EncodeToString(sum[:16])
	return a, nil
}

// hash is what a decision is about. Reason and times are no part of it.
func (a *Approval) hash() (string, error) {
	b, err := canon.Bytes(map[string]any{"boundary": a.Boundary, "content": a.Content, "scope": a.Scope})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// Ask stores a request, on disk. The same request again changes nothing, its reason and times included.
func (s *Store) Ask(ctx context.Context, a Approval) error {
	if err := a.valid(); err != nil {
		return err
	}
	if a.RequestedAt.IsZero() {
		a.RequestedAt = s.now()
	}
	tx, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	switch old, err := s.approval(ctx, tx, a.ID); {
	case errors.Is(err, ApprovalNotFound):
	case err != nil:
		return err
	case old.RequestHash != a.RequestHash || old.RunID != a.RunID:
		return &ApprovalError{ApprovalConflict, a.ID, "was asked with other content"}
	default:
		return nil
	}
	sum, err := a.sum()
	if err != nil {
		return &ApprovalError{ApprovalInvalid, a.ID, err.Error()}
	}
	res, err := tx.ExecContext(ctx, sqlAddApproval, a.ID, a.Scope, a.Boundary, a.RequestHash, []byte(a.Content), a.Reason,
		milli(a.RequestedAt), milli(a.Expires), sum, a.RunID)
	if err != nil {
		return s.fail(err)
	}
	if n, _ := res.RowsAffected(); n == 0 {
		tx.Rollback()
		return s.unknown(ctx, a.RunID)
	}
	return s.fail(tx.Commit())
}

func (a *Approval) valid() error {
	hash, err := a.hash()
	switch {
	case a.ID == "" || a.Scope == "":
		return &ApprovalError{ApprovalInvalid, a.ID, "needs an id and a scope"}
	case err != nil:
		return &ApprovalError{ApprovalInvalid, a.ID, fmt.Sprintf("has content that is no JSON: %v", err)}
	case hash != a.RequestHash:
		return &ApprovalError{ApprovalInvalid, a.ID, fmt.Sprintf("has hash %q, and its content %q", a.RequestHash, hash)}
	}
	return nil
}

// Decide adds a reviewer's decision, on disk, if the request is the one he saw. The first of each reviewer counts; in
// a race of many processes there is one first.
func (s *Store) Decide(ctx context.Context, id, requestHash string, d Decision) error {
	d.Reviewer = strings.TrimSpace(d.Reviewer)
	switch {
	case d.Verdict != Approve && d.Verdict != Reject:
		return &ApprovalError{ApprovalInvalid, id, fmt.Sprintf("has decision %q: expected %s or %s", d.Verdict, Approve, Reject)}
	case d.Reviewer == "":
		return &ApprovalError{ApprovalInvalid, id, "needs a reviewer"}
	case d.DecidedAt.IsZero():
		d.DecidedAt = s.now()
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
	if err := a.open(requestHash, d.Reviewer, s.now()); err != nil {
		return err
	}
	sum, err := d.sum(id)
	if err != nil {
		return &ApprovalError{ApprovalInvalid, id, err.Error()}
	}
	if d.Signature == nil {
		d.Signature = []byte{}
	}
	if _, err := tx.ExecContext(ctx, sqlAddDecision, id, d.Reviewer, d.Verdict, d.Reason, d.Signature, milli(d.DecidedAt), sum); err != nil {
		return s.fail(err)
	}
	return s.fail(tx.Commit())
}

// open fails unless a reviewer may decide now.
func (a *Approval) open(requestHash, reviewer string, now time.Time) error {
	switch {
	case a.RequestHash != requestHash:
		return &ApprovalError{ApprovalStale, a.ID, fmt.Sprintf("is of request %s, and %q was decided", a.RequestHash, requestHash)}
	case !a.Expires.IsZero() && !now.Before(a.Expires):
		return &ApprovalError{ApprovalStale, a.ID, "expired at " + a.Expires.Format(time.RFC3339)}
	}
	for _, d := range a.Decisions {
		if d.Reviewer == reviewer {
			return &ApprovalError{ApprovalConflict, a.ID, fmt.Sprintf("was decided already: %s by %q", d.Verdict, reviewer)}
		}
	}
	return nil
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
	RunID   string // empty: any
	Pending bool   // only those that nobody has decided
}

// Approvals gives requests in the order in which they were asked. Those that are damaged are left out and named by the
// error, beside the others.
func (s *Store) Approvals(ctx context.Context, f ApprovalFilter) ([]Approval, error) {
	return s.approvals(ctx, s.db, sqlApprovalsAll, f.RunID, f.Pending)
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
				a.Decisions = []Decision{*d}
			}
			found = append(found, *a)
		}
	}
	return found, errors.Join(append(bad, s.fail(rows.Err()))...)
}

// scanApproval reads a row and holds it against its digests. No decision is nil.
func scanApproval(rows *sql.Rows) (*Approval, *Decision, error) {
	var a Approval
	var d Decision
	var requested, expires, num, decided int64
	var content []byte
	var sum, dsum string
	if err := rows.Scan(&a.ID, &a.RunID, &a.Scope, &a.Boundary, &a.RequestHash, &content, &a.Reason, &requested, &expires, &sum,
		&num, &d.Reviewer, &d.Verdict, &d.Reason, &d.Signature, &decided, &dsum); err != nil {
		return nil, nil, err
	}
	a.Content, a.RequestedAt, a.Expires, d.DecidedAt = content, moment(requested), moment(expires), moment(decided)
	if hash, err := a.hash(); err != nil || hash != a.RequestHash {
		return &a, nil, &ApprovalError{ApprovalIntegrity, a.ID, "is stored with content that does not match its hash"}
	}
	if is, err := a.sum(); err != nil || is != sum {
		return &a, nil, &ApprovalError{ApprovalIntegrity, a.ID, "is not stored as it was asked"}
	}
	if num == 0 {
		return &a, nil, nil
	}
	if is, err := d.sum(a.ID); err != nil || is != dsum {
		return &a, nil, &ApprovalError{ApprovalIntegrity, a.ID, "has a decision that is not stored as it was taken"}
	}
	if len(d.Signature) == 0 {
		d.Signature = nil
	}
	return &a, &d, nil
}

func (a *Approval) sum() (string, error) {
	return canon.DigestOf("approval", []any{a.ID, a.RunID, a.Scope, a.Boundary, a.RequestHash, string(a.Content), a.Reason,
		milli(a.RequestedAt), milli(a.Expires)})
}

func (d *Decision) sum(id string) (string, error) {
	return canon.DigestOf("decision", []any{id, d.Reviewer, string(d.Verdict), d.Reason, hex.EncodeToString(d.Signature), milli(d.DecidedAt)})
}
