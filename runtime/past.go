package runtime

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/open-multi-agent/oma/spec"
)

// Past is a run as its log tells it, to go on with. It is used once.
type Past struct {
	RunID string
	// Attempt counts how often the run was started or resumed so far.
	Attempt int
	// Ended says that the run came to its end. It is told again for its receipt alone, which is the one it had.
	Ended bool

	// Redacted says that what looked like a secret was taken out of the log.
	Redacted bool

	// hid says that a resolved secret stood somewhere, and a reference stands there now.
	hid bool
	// lenient takes it that a reference makes digests differ, as it does for a run that is only looked at.
	lenient bool

	planned bool
	plan    string // digest
	author  string
	budgets spec.Budgets
	ref     spec.JournalRef
	at      int64
	tape    *tape
}

// ReadPast reads a log. Any damage is an error that names the line.
func ReadPast(log io.Reader) (*Past, error) {
	r := newPastReader()
	ref, err := VerifyLog(log, r.see)
	if err != nil {
		return nil, err
	}
	return r.past(ref), nil
}

// pastReader makes a past of the events of a log, one by one.
type pastReader struct {
	p Past
	t *taping
}

func newPastReader() *pastReader { return &pastReader{t: newTaping()} }

func (r *pastReader) see(e *spec.Event) error {
	p := &r.p
	p.at, p.hid = e.At, p.hid || bytes.Contains(e.Data, []byte(secretReference))
	r.t.see(e)
	switch e.Kind {
	case spec.EventRunStart:
		p.RunID = e.ID
		p.Attempt++
		var start runStart
		if err := json.Unmarshal(e.Data, &start); err != nil {
			return fmt.Errorf("event %d cannot be read", e.Seq)
		}
		if p.Attempt == 1 {
			p.author = start.Author
		}
	case spec.EventPlanSet:
		var set planSet
		if err := json.Unmarshal(e.Data, &set); err != nil {
			return fmt.Errorf("event %d cannot be read", e.Seq)
		}
		p.planned, p.plan, p.budgets, p.Redacted = true, e.Digest, set.Budgets, set.Redacted
	}
	return nil
}

func (r *pastReader) past(ref spec.JournalRef) *Past {
	r.p.ref = ref
	r.p.tape, r.p.Ended = r.t.tape()
	return &r.p
}

// fits says why a past is not one of the plan.
func (p *Past) fits(plan *spec.Plan, runID string) error {
	switch {
	case !p.planned:
		return fmt.Errorf("%w: the log names no plan", ErrDiverged)
	case p.plan != plan.Digest:
		return fmt.Errorf("%w: the log is of plan %s", ErrDiverged, p.plan)
	case p.RunID != runID:
		return fmt.Errorf("%w: the log is of run %s", ErrDiverged, p.RunID)
	case p.Redacted && !p.Ended:
		return p.tape.between()
	}
	return nil
}
