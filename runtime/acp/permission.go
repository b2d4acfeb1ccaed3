package acp

import (
	"context"
	"encoding/json"
	"slices"

	protocol "github.com/coder/acp-go-sdk"
)

// Permission is what an agent asks to be allowed. It is what is judged, so it is not redacted.
type Permission struct {
	CallID      string
	Title       string
	Kind        string   // read, edit, delete, move, search, execute, think, fetch or other
	OptionKinds []string // of the answers it offers, in its order, such as allow_once
	// Command is the command line, where one was sent. A list of words that is a shell with one text to run is that text;
	// any other is its words, quoted. Empty: there is none.
	Command string
	// CommandFromTitle says that an agent asked to execute and sent no command but in its title, which stands in Command
	// as it is, words beside the command included.
	CommandFromTitle bool
	// Path is a file or folder that was named, below the agent's folder without it and with /, else absolute. Links are not
	// followed. Where several were named, Permit is asked for each. Empty: none was.
	Path string
}

// Answer says whether something is allowed. The zero value is no.
type Answer bool

// The answers.
const (
	Deny  Answer = false
	Allow Answer = true
)

// Decision is how one request for permission was answered. Its texts are redacted and clipped.
type Decision struct {
	Permission
	Allowed bool
	Answer  string // the kind of the option that was chosen, or cancelled
	Mode    string // of Options.Permission
	// Reason says why nobody was asked, or why a yes could not be given. Empty: nothing special.
	Reason string
}

const (
	cancelled = "cancelled"
	// maxOptions is how many answers an agent may offer.
	maxOptions = 64
)

// permissionRequest is what is read of session/request_permission.
type permissionRequest struct {
	SessionID string       `json:"sessionId"`
	Call      callUpdate   `json:"toolCall"`
	Options   []permission `json:"options"`
}

type permission struct {
	ID   string `json:"optionId"`
	Kind string `json:"kind"`
}

// permit answers a request for permission.
func (s *session) permit(t *turn, raw json.RawMessage) (any, *RPCError) {
	var req permissionRequest
	if err := json.Unmarshal(raw, &req); err != nil {
		return nil, &RPCError{Code: codeInvalidParams, Message: "the request is not understood: " + clip(err.Error(), maxRemark)}
	}
	if len(req.Options) > maxOptions {
		return nil, &RPCError{Code: codeInvalidParams, Message: "too many options"}
	}
	asked, reason := normalise(s.o.Dir, &req, t.known(req.Call.ID))
	d := Decision{Permission: asked[0], Mode: s.o.Permission, Reason: reason}
	yes := s.o.Permission == AutoApprove || reason == "" && s.ask(t.ctx, asked)
	var id string
	if t.ctx.Err() != nil { // given up, or answered late: nothing is allowed any more
		d.Answer, d.Reason = cancelled, "the turn had ended"
	} else {
		d.Answer, id = choose(req.Options, yes, s.o.Permission == AutoApprove)
		d.Allowed = isAllow(d.Answer)
		if yes && !d.Allowed {
			d.Reason = "the agent offers no way to allow this once"
		}
	}
	t.decided(d.shown(s.o))
	return protocol.RequestPermissionResponse{Outcome: outcome(id)}, nil
}

// ask asks whether all of a request is allowed.
func (s *session) ask(ctx context.Context, asked []Permission) bool {
	if s.o.Permission != Gates || s.o.Permit == nil {
		return false
	}
	for _, p := range asked {
		if ctx.Err() != nil || s.o.Permit(ctx, p) != Allow {
			return false
		}
	}
	return true
}

// choose finds the option to answer with. An id that stands for several kinds is not chosen: nobody knows which of them the
// agent would read. always permits what holds for longer than this one call. Without an option the answer is cancelled.
func choose(options []permission, yes, always bool) (kind, id string) {
	wanted := []string{string(protocol.PermissionOptionKindRejectOnce), string(protocol.PermissionOptionKindRejectAlways)}
	if yes && always {
		wanted = append([]string{string(protocol.PermissionOptionKindAllowAlways)}, wanted...)
	}
	if yes {
		wanted = append([]string{string(protocol.PermissionOptionKindAllowOnce)}, wanted...)
	}
	for _, kind := range wanted {
		for _, o := range options {
			ambiguous := slices.ContainsFunc(options, func(p permission) bool { return p.ID == o.ID && p.Kind != o.Kind })
			if o.Kind == kind && o.ID != "" && !ambiguous {
				return kind, o.ID
			}
		}
	}
	return cancelled, ""
}

func isAllow(kind string) bool {
	return kind == string(protocol.PermissionOptionKindAllowOnce) || kind == string(protocol.PermissionOptionKindAllowAlways)
}

func outcome(id string) protocol.RequestPermissionOutcome {
	if id == "" {
		return protocol.RequestPermissionOutcome{Cancelled: &protocol.RequestPermissionOutcomeCancelled{Outcome: cancelled}}
	}
	return protocol.RequestPermissionOutcome{Selected: &protocol.RequestPermissionOutcomeSelected{
		OptionId: protocol.PermissionOptionId(id), Outcome: "selected"}}
}

// shown gives the decision with secrets taken out of it, and bounded.
func (d Decision) shown(o *Options) Decision {
	d.CallID, d.Title = clip(o.redact(d.CallID), maxName), clip(o.redact(d.Title), maxName)
	d.Command, d.Path = clip(o.redact(d.Command), maxField), clip(o.redact(d.Path), maxName)
	return d
}
