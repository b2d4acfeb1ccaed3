package journal

import (
	"errors"
	"fmt"
	"strings"
)

// What can be wrong, to be asked for with errors.Is.
var (
	ErrExists  = errors.New("there is such a run already")
	ErrUnknown = errors.New("there is no such run")      // see UnknownError
	ErrHeld    = errors.New("the run is in use")         // see HeldError
	ErrEnded   = errors.New("the run has ended")         // it cannot be continued
	ErrNewer   = errors.New("the store is newer")        // see NewerError
	ErrCorrupt = errors.New("the store is damaged")      // see DamageError for damage of one record
	ErrBusy    = errors.New("the store does not answer") // another process kept it locked for longer than busyTimeout
)

// UnknownError names a run that is not in the store, and runs that may have been meant.
type UnknownError struct {
	ID   string
	Near []string // nearest first, at most three; nil: none is near
}

func (e *UnknownError) Error() string {
	if len(e.Near) == 0 {
		return fmt.Sprintf("there is no run %q", e.ID)
	}
	return fmt.Sprintf("there is no run %q: did you mean %s?", e.ID, strings.Join(e.Near, " or "))
}

func (e *UnknownError) Unwrap() error { return ErrUnknown }

// HeldError says who holds a run.
type HeldError struct {
	ID     string
	Holder Holder
}

func (e *HeldError) Error() string {
	if e.Holder.PID == 0 {
		return fmt.Sprintf("run %q is in use by another process", e.ID)
	}
	return fmt.Sprintf("run %q is in use by process %d on %q", e.ID, e.Holder.PID, e.Holder.Host)
}

func (e *HeldError) Unwrap() error { return ErrHeld }

// NewerError says that another version of the program wrote the store.
type NewerError struct {
	Path         string
	Found, Known int // versions of the schema
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("%s has version %d and this program knows %d: use a newer one", e.Path, e.Found, e.Known)
}

func (e *NewerError) Unwrap() error { return ErrNewer }

// DamageError names the first record of a run that cannot be relied on.
type DamageError struct {
	Path, ID string
	Seq      int64
	Detail   string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s is damaged: run %q: record %d %s", e.Path, e.ID, e.Seq, e.Detail)
}

func (e *DamageError) Unwrap() error { return ErrCorrupt }

// Code is what is wrong with an approval. It is an error, to be asked for with errors.Is.
type Code string

const (
	ApprovalNotFound  Code = "APPROVAL_NOT_FOUND"
	ApprovalStale     Code = "APPROVAL_STALE_DECISION"   // decided for another request, or too late
	ApprovalConflict  Code = "APPROVAL_CONFLICT"         // asked with other content, or decided already
	ApprovalInvalid   Code = "APPROVAL_VALIDATION_ERROR" // what was handed in is no request or no decision
	ApprovalIntegrity Code = "APPROVAL_INTEGRITY_ERROR"  // what is stored is damaged
)

func (c Code) Error() string { return string(c) }

// ApprovalError says which approval a code is about, and why.
type ApprovalError struct {
	Code   Code
	ID     string
	Detail string
}

func (e *ApprovalError) Error() string {
	return fmt.Sprintf("approval %q %s [%s]", e.ID, e.Detail, e.Code)
}

func (e *ApprovalError) Unwrap() error { return e.Code }
