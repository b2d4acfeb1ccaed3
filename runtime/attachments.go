package runtime

import (
	"errors"
	"fmt"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// Keeper is a Journal that keeps the bytes of attachments beside the records, which hold their digests. Without one they
// last as long as the process, and a run that was shown one goes on between tasks only.
type Keeper interface {
	// Keep takes bytes by their digest, before the record that names it. They survive the end of this process.
	Keep(digest string, data []byte) error
	// Kept gives them back. Unlike the rest of a Journal it may be called from any goroutine.
	Kept(digest string) ([]byte, error)
}

// seal makes the attachments of a result ready to be recorded and shown: checked, without resolved secrets, and named by
// their digests. What cannot be passed on is an error that the model is told of.
func (g *guard) seal(tool string, out spec.ToolResult) spec.ToolResult {
	if len(out.Attachments) == 0 {
		return out
	}
	if out.IsError {
		out.Attachments = nil // an error is text, and the text has a note for each
		return out
	}
	sealed := make([]spec.Attachment, len(out.Attachments))
	for i, a := range out.Attachments {
		if g.reference != nil {
			a = a.Masked(g.reference)
		}
		sealed[i] = a
	}
	if err := spec.CheckAttachments(sealed); err != nil {
		return spec.ToolResult{IsError: true, Text: fmt.Sprintf("Invalid output for tool %q: %v", tool, err)}
	}
	for i := range sealed {
		if a := &sealed[i]; a.Inline() {
			a.Digest, a.Size = canon.Digest("attachment", a.Data), int64(len(a.Data))
		}
	}
	out.Attachments = sealed
	return out
}

// attach gives a request with the bytes of all attachments. Those of an earlier attempt are not in memory: the messages
// were told from a log.
func (g *guard) attach(req *spec.ModelRequest) (*spec.ModelRequest, error) {
	var out *spec.ModelRequest
	for i := range req.Messages {
		if !bare(req.Messages[i].Attachments) {
			continue
		}
		if out == nil {
			whole := *req
			whole.Messages = append([]spec.Message{}, req.Messages...)
			out = &whole
		}
		m := &out.Messages[i]
		m.Attachments = append([]spec.Attachment{}, m.Attachments...)
		for k := range m.Attachments {
			if err := g.load(&m.Attachments[k]); err != nil {
				return nil, fmt.Errorf("an attachment of call %q is not there any more: %w", m.ToolCallID, err)
			}
		}
	}
	if out == nil {
		return req, nil
	}
	return out, nil
}

// bare says that bytes are missing.
func bare(all []spec.Attachment) bool {
	for i := range all {
		if all[i].Inline() && all[i].Data == nil {
			return true
		}
	}
	return false
}

// load gets the bytes of an attachment from where an earlier attempt has kept them.
func (g *guard) load(a *spec.Attachment) (err error) {
	if !a.Inline() || a.Data != nil {
		return nil
	}
	if g.kept == nil {
		return errors.New("nothing has kept it")
	}
	if a.Data, err = g.kept(a.Digest); err != nil {
		return err
	}
	if canon.Digest("attachment", a.Data) != a.Digest {
		return fmt.Errorf("what was kept of it is not %s", a.Digest)
	}
	return nil
}

// keep has the bytes of a result's attachments kept, before the record that names them. A redacted log has none: nothing
// that was shown them goes on from it.
func (e *engine) keep(res *core.Result) {
	if res.Tool == nil || e.withhold != nil {
		return
	}
	for i := range res.Tool.Attachments {
		if a := &res.Tool.Attachments[i]; a.Data != nil {
			e.rec.keep(a.Digest, a.Data)
		}
	}
}

func (r *recorder) keep(digest string, data []byte) {
	if k, ok := r.journal.(Keeper); ok && r.err == nil {
		r.err = k.Keep(digest, data)
	}
}
