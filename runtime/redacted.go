package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
	"github.com/open-multi-agent/oma/spec/redact"
)

// A redacted log holds less than what happened: what looked like a secret is gone from it. So nothing that is still at
// work can be told again from it, and it goes on between tasks alone: those that have ended are told with the texts it
// has, and others, which begin, get the same.

// errRedacted is why a call of a run with a redacted log cannot wait for a person.
var errRedacted = errors.New("the log of this run is redacted, so no call can wait in it [cannot-suspend]")

// between fails if a task was at work where a redacted log ends.
func (t *tape) between() error {
	working := map[string]bool{}
	for i := range t.events {
		e := &t.events[i]
		var s core.TaskStatus
		if e.Kind != spec.EventTaskStatus {
			continue
		}
		if err := json.Unmarshal(e.Data, &s); err != nil {
			return fmt.Errorf("%w: event %d cannot be read", ErrDiverged, e.Seq)
		}
		working[e.TaskID] = s.Status == spec.TaskInProgress
	}
	for i := range t.events {
		if id := t.events[i].TaskID; working[id] {
			return fmt.Errorf("%w: task %q was at work, and the log is redacted: such a run goes on between tasks only", ErrDiverged, id)
		}
	}
	return nil
}

// redacted takes what looks like a secret out of the texts of a value, and keeps its form.
func redacted(r *redact.Redactor, raw json.RawMessage) json.RawMessage {
	v, err := canon.Decode(raw)
	if err != nil {
		return json.RawMessage(`"withheld"`)
	}
	before, err := canon.Bytes(v)
	if err != nil {
		return json.RawMessage(`"withheld"`)
	}
	after, err := canon.Bytes(r.Value(v))
	switch {
	case err != nil:
		return json.RawMessage(`"withheld"`)
	case string(before) == string(after):
		return raw
	}
	return after
}

// redactedText does the same to a text, which may be JSON: arguments of a call, or an answer with a schema.
func redactedText(r *redact.Redactor, s string) string {
	if form := strings.TrimSpace(s); form != "" && (form[0] == '{' || form[0] == '[') && json.Valid([]byte(form)) {
		return string(redacted(r, json.RawMessage(s)))
	}
	return r.Text(s)
}
