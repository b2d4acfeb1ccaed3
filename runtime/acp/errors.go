package acp

import (
	"encoding/json"
	"fmt"

	"github.com/open-multi-agent/oma/spec"
)

// The codes of an Error.
const (
	CodeOptions        = "options"        // what the caller gave cannot work
	CodeStart          = "start"          // the program did not start
	CodeProtocol       = "protocol"       // what came is not the protocol, or not its version 1
	CodeAuthentication = "authentication" // the agent wants somebody to sign in
	CodeDied           = "died"           // the program ended, or closed its output
	CodeAgent          = "agent-error"    // the agent answered with an error
	CodeSilent         = "agent-failed"   // the agent said end_turn and told of a failure beside it
	CodeTurnCancelled  = "turn-cancelled" // the agent gave the turn up, and nobody had asked it to
	CodeStopped        = "stopped"        // refused, cut short or empty, see Stop
	CodeCancelled      = "cancelled"      // the context ended
	CodeTimeout        = "timeout"        // a time limit passed
	CodeGone           = "gone"           // it died twice, or was closed
)

// Codes of JSON-RPC, and of the protocol on top of it.
const (
	codeAuthRequired   = -32000
	codeNoResource     = -32002
	codeInvalidRequest = -32600
	codeNotFound       = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
)

// maxErrorData bounds RPCError.Data, in runes.
const maxErrorData = 2048

// Error says why a prompt did not complete.
type Error struct {
	Stop      spec.StopReason
	Code      string
	Message   string // redacted, at most 1024 runes
	Retryable bool   // whether another prompt may do better
	// RPC is what the agent answered with. nil: it answered with no error.
	RPC *RPCError
}

func (e *Error) Error() string { return e.Message }

// Unwrap gives what the agent answered with.
func (e *Error) Unwrap() error {
	if e.RPC == nil {
		return nil
	}
	return e.RPC
}

// RPCError is an error as JSON-RPC sends it.
type RPCError struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
	Data    string `json:"-"` // JSON as sent, clipped. Empty: none
}

func (e *RPCError) Error() string {
	if e.Data == "" {
		return fmt.Sprintf("%s (code %d)", e.Message, e.Code)
	}
	return fmt.Sprintf("%s (code %d): %s", e.Message, e.Code, e.Data)
}

// decodeRPCError reads an error member, whatever is in it: that there is one is what counts.
func decodeRPCError(raw json.RawMessage) *RPCError {
	var whole struct {
		Code    json.RawMessage `json:"code"`
		Message json.RawMessage `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	e := &RPCError{}
	if json.Unmarshal(raw, &whole) != nil {
		e.Message, e.Data = "an error of unknown form", string(raw)
		return e
	}
	_ = json.Unmarshal(whole.Code, &e.Code)
	if json.Unmarshal(whole.Message, &e.Message) != nil || e.Message == "" {
		e.Message = "an error without a message"
	}
	if string(whole.Data) != "null" {
		e.Data = string(whole.Data)
	}
	return e
}

// shown gives the error with secrets taken out of it, and bounded.
func (e *RPCError) shown(o *Options) *RPCError {
	return &RPCError{e.Code, clip(o.redact(e.Message), maxRemark), clip(redactJSON(o, json.RawMessage(e.Data)), maxErrorData)}
}

func (o *Options) fail(stop spec.StopReason, code, format string, args ...any) *Error {
	text := fmt.Sprintf(format, args...)
	if o.Name != "" {
		text = fmt.Sprintf("agent %q: %s", o.Name, text)
	}
	return &Error{Stop: stop, Code: code, Message: clip(o.redact(text), maxRemark)}
}
