package acp

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

// signs are what an agent told of a failure beside its answer.
type signs struct {
	system bool   // a thread status of systemError
	notice string // of severity error, the last one. Empty: there was none
}

// see looks at an update that is neither text nor a call.
func (s *signs) see(kind string, raw json.RawMessage) {
	switch kind {
	case "session_info_update":
		var vendors map[string]json.RawMessage
		if json.Unmarshal(member(raw, "_meta"), &vendors) != nil {
			return
		}
		for _, v := range vendors {
			s.system = s.system || string(member(v, "threadStatus", "type")) == `"systemError"`
		}
	case "notice":
		if string(member(raw, "severity")) == `"error"` {
			_ = json.Unmarshal(member(raw, "message"), &s.notice) // told without its text, then
		}
	}
}

// doubt says why a turn that ended with end_turn is no success. There are four signs:
//   - a session_info_update with threadStatus.type systemError in some member of its _meta, at any point of the turn;
//   - an answer that is nothing but one JSON object with an error in it, where no call completed and no usage is reported;
//   - a notice of severity error, and no answer;
//   - no answer and no call at all.
//
// An agent whose model was cut at its output limit says end_turn like any other: that cannot be told from here.
func (s *session) doubt(r *Reply, seen *signs, result json.RawMessage) *Error {
	said := strings.TrimSpace(r.Output)
	switch {
	case seen.system:
		return s.o.fail(spec.StopError, CodeSilent, "said end_turn after a system error: %s", said)
	case isError(said) && !completedCall(r) && member(result, "usage") == nil:
		return s.o.fail(spec.StopError, CodeSilent, "said end_turn and answered with nothing but an error: %s", said)
	case said == "" && seen.notice != "":
		return s.o.fail(spec.StopError, CodeSilent, "said end_turn after an error, without an answer: %s", seen.notice)
	case said == "" && len(r.ToolCalls) == 0:
		return s.o.fail(spec.StopEmpty, CodeStopped, "ended the turn without an answer and without a call")
	}
	return nil
}

func completedCall(r *Reply) bool {
	for _, c := range r.ToolCalls {
		if c.Status == "completed" {
			return true
		}
	}
	return r.ToolCallsOmitted > 0
}

// isError says whether a text is one JSON object that tells of an error: with a member error that holds something, or of
// the type error.
func isError(text string) bool {
	var object struct {
		Error json.RawMessage `json:"error"`
		Type  json.RawMessage `json:"type"`
	}
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &object) != nil {
		return false
	}
	empty := [][]byte{nil, []byte("null"), []byte("false"), []byte(`""`), []byte("{}"), []byte("0")}
	for _, e := range empty {
		if bytes.Equal(object.Error, e) {
			return string(object.Type) == `"error"`
		}
	}
	return true
}
