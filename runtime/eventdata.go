package runtime

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// asked is what the log holds of an effect that starts. It holds no transcript: the log would be quadratic in turns.
func (e *engine) asked(ef *core.Effect) any {
	switch ef.Kind {
	case core.ModelCall:
		return map[string]any{"model": ef.Request.Model, "turn": ef.Request.Turn, "maxOutputTokens": ef.Request.MaxOutputTokens}
	case core.ToolCall:
		return map[string]any{"toolName": e.hidden(ef.Call.Name), "toolCallId": e.hidden(ef.Call.ID)}
	case core.Timer:
		return map[string]any{"delay": ef.Delay}
	case core.Approval:
		r, err := e.request(ef)
		if err != nil { // the door fails on it as well, and says so
			return nil
		}
		r.RequestedAt, r.Expires = time.Time{}, time.Time{} // they follow from the event's time
		return r
	}
	return nil
}

// judgedData is a judgement in the log, with the call it is of.
type judgedData struct {
	ToolName   string `json:"toolName"`
	ToolCallID string `json:"toolCallId"`
	*core.Result
}

// data is what the log holds of a result: exactly what the core was given, but for resolved secrets in what others
// wrote. Names, digests and figures of our own stay as they are: a key that is also an everyday word must not make the
// log differ from what happened.
func (e *engine) data(ef *core.Effect, res *core.Result) any {
	switch ef.Kind {
	case core.Note:
		if e.hide == nil {
			return ef.Status
		}
		s := *ef.Status
		s.Cause = e.hide(s.Cause)
		return s
	case core.Memory:
		return ef.Entry
	case core.Judge:
		return judgedData{e.hidden(ef.Call.Name), e.hidden(ef.Call.ID), withTarget(ef, e.clean(res), res)}
	case core.Timer:
		if !res.Cancelled {
			return nil
		}
	}
	return e.clean(res)
}

func (e *engine) hidden(s string) string {
	if e.hide == nil {
		return s
	}
	return e.hide(s)
}

// clean gives a copy of a result without resolved secrets, or the result itself where there are none to take out.
func (e *engine) clean(res *core.Result) *core.Result {
	if e.hide == nil {
		return res
	}
	out := *res
	if res.Err != nil {
		info := *res.Err
		info.Message = e.hide(info.Message)
		out.Err = &info
	}
	if m := res.Model; m != nil && m.Response != nil {
		model, resp := *m, *m.Response
		resp.Message = e.message(resp.Message)
		e.hid = e.hid || e.withhold == nil && differs(resp.Message, m.Response.Message)
		resp.Activity = e.activity(resp.Activity)
		model.Response, out.Model = &resp, &model
	}
	if m := out.Model; m != nil && len(m.Permits) > 0 {
		model := *m
		model.Permits = make([]core.Permit, len(m.Permits))
		for i, p := range m.Permits {
			model.Permits[i] = e.permit(p)
		}
		out.Model = &model
	}
	if j := res.Judged; j != nil {
		out.Judged = e.judged(j)
	}
	if t := res.Tool; t != nil {
		tool := *t
		tool.Text, tool.Data = e.text(t.Text), e.json(t.Data)
		tool.Attachments = e.attachments(t.Attachments)
		out.Tool = &tool
	}
	return &out
}

// attachments hides in the words of attachments. Their bytes are not in the log.
func (e *engine) attachments(all []spec.Attachment) []spec.Attachment {
	if len(all) == 0 {
		return nil
	}
	out := make([]spec.Attachment, len(all))
	for i, a := range all {
		a.Data = nil
		out[i] = a.Masked(e.hide)
	}
	return out
}

func (e *engine) judged(j *core.Judged) *core.Judged {
	out := *j
	out.Canonical, out.Text, out.Reason = e.json(j.Canonical), e.hide(j.Text), e.hide(j.Reason)
	return &out
}

func (e *engine) permit(p core.Permit) core.Permit {
	p.ID, p.Judged = e.hide(p.ID), e.judged(p.Judged)
	return p
}

// observed is what the log holds of what an effect at work put on record, without resolved secrets.
func (e *engine) observed(data any) any {
	o, ok := data.(Observed)
	if !ok || e.hide == nil {
		return data
	}
	o.ToolCallID = e.hide(o.ToolCallID)
	if o.Permit != nil {
		p := e.permit(*o.Permit)
		o.Permit = &p
	}
	if o.Activity != nil {
		o.Activity = &e.activity([]spec.Activity{*o.Activity})[0]
	}
	return o
}

func (e *engine) activity(all []spec.Activity) []spec.Activity {
	if len(all) == 0 {
		return nil
	}
	out := make([]spec.Activity, len(all))
	for i, a := range all {
		out[i] = spec.Activity{ID: e.hide(a.ID), Title: e.hide(a.Title), Kind: a.Kind, Status: a.Status, Input: e.text(a.Input), Output: e.text(a.Output)}
	}
	return out
}

// differs says that something was taken out of a model's message.
func differs(a, b spec.Message) bool {
	return a.Text != b.Text || a.Reasoning != b.Reasoning || !slices.Equal(a.ToolCalls, b.ToolCalls)
}

func (e *engine) message(m spec.Message) spec.Message {
	m.Text, m.Reasoning = e.text(m.Text), e.hide(m.Reasoning)
	calls := m.ToolCalls
	m.ToolCalls = make([]spec.ToolCall, len(calls))
	for i, c := range calls {
		m.ToolCalls[i] = spec.ToolCall{ID: e.hide(c.ID), Name: e.hide(c.Name), Arguments: e.text(c.Arguments)}
	}
	return m
}

func (e *engine) json(raw json.RawMessage) json.RawMessage {
	if e.withhold != nil && len(raw) > 0 {
		return redacted(e.withhold, raw)
	}
	return hideJSON(e.hide, raw)
}

// text is hidden for what may be JSON.
func (e *engine) text(s string) string {
	if e.withhold != nil {
		return redactedText(e.withhold, s)
	}
	return e.hide(s)
}

// hideJSON takes secrets out of the texts of a JSON value, so that it stays one. A nil hide hides nothing.
func hideJSON(hide func(string) string, raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || hide == nil || hide(string(raw)) == string(raw) {
		return raw
	}
	v, err := canon.Decode(raw)
	if err != nil {
		return json.RawMessage(`"withheld"`)
	}
	b, err := canon.Bytes(hideLeaves(hide, v))
	if err != nil {
		return json.RawMessage(`"withheld"`)
	}
	return b
}

func hideLeaves(hide func(string) string, v any) any {
	switch t := v.(type) {
	case string:
		return hide(t)
	case []any:
		for i := range t {
			t[i] = hideLeaves(hide, t[i])
		}
	case map[string]any:
		for k, x := range t {
			t[k] = hideLeaves(hide, x)
		}
	}
	return v
}
