package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	protocol "github.com/coder/acp-go-sdk"

	"github.com/open-multi-agent/oma/spec"
)

// The tools that serve an agent.
const (
	toolRead  = "file_read"
	toolWrite = "file_write"
	toolBash  = "bash"
)

// serve answers a request of the agent. Everything it can ask for belongs to a prompt that runs.
func (s *session) serve(ctx context.Context, method string, params json.RawMessage) (any, *RPCError) {
	answer := s.method(method)
	if answer == nil {
		return nil, &RPCError{Code: codeNotFound, Message: fmt.Sprintf("method %q is not offered", clip(method, 80))}
	}
	var of struct {
		SessionID string `json:"sessionId"`
	}
	if json.Unmarshal(params, &of) != nil {
		return nil, &RPCError{Code: codeInvalidParams, Message: "the parameters are not an object with a sessionId"}
	}
	s.mu.Lock()
	t, id := s.turn, s.id
	s.mu.Unlock()
	switch {
	case id == "" || of.SessionID != id:
		return nil, &RPCError{Code: codeInvalidParams, Message: fmt.Sprintf("session %q is not known", clip(of.SessionID, 80))}
	case t == nil || !t.enter():
		return nil, &RPCError{Code: codeInvalidRequest, Message: "no prompt runs"}
	}
	defer t.work.Done()
	defer context.AfterFunc(ctx, t.cancel)() // the end of the connection ends the turn
	return answer(t, params)
}

type method func(t *turn, params json.RawMessage) (any, *RPCError)

// method finds what is offered under a name. nil: nothing is.
func (s *session) method(name string) method {
	switch name {
	case protocol.ClientMethodSessionRequestPermission:
		return s.permit
	case protocol.ClientMethodFsReadTextFile:
		return s.offered(FS, s.readFile)
	case protocol.ClientMethodFsWriteTextFile:
		return s.offered(FS, s.writeFile)
	case protocol.ClientMethodTerminalCreate:
		return s.offered(Terminal, s.createTerminal)
	case protocol.ClientMethodTerminalOutput:
		return s.offered(Terminal, s.terminalOutput)
	case protocol.ClientMethodTerminalWaitForExit:
		return s.offered(Terminal, s.waitForTerminal)
	case protocol.ClientMethodTerminalKill:
		return s.offered(Terminal, s.killTerminal)
	case protocol.ClientMethodTerminalRelease:
		return s.offered(Terminal, s.releaseTerminal)
	}
	return nil
}

func (s *session) offered(capability string, m method) method {
	if !s.o.offers(capability) {
		return nil
	}
	return m
}

// enter holds the turn open for one request. False: it is over.
func (t *turn) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return false
	}
	t.work.Add(1)
	return true
}

func badParams(err error) *RPCError {
	return &RPCError{Code: codeInvalidParams, Message: clip(err.Error(), maxRemark)}
}

// refused passes on what the door or the tool said.
func refused(o *Options, r spec.ToolResult) *RPCError {
	return &RPCError{Code: codeNoResource, Message: clip(o.redact(r.Text), maxRemark)}
}

func (s *session) readFile(t *turn, params json.RawMessage) (any, *RPCError) {
	var p protocol.ReadTextFileRequest
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, badParams(err)
	}
	input := map[string]any{"path": p.Path}
	if p.Line != nil {
		input["offset"] = int64(max(*p.Line, 1))
	}
	if p.Limit != nil {
		input["limit"] = int64(*p.Limit)
	}
	r := s.o.Door(t.ctx, toolRead, input)
	if r.IsError {
		return nil, refused(s.o, r)
	}
	content, ok := fileContent(r, p.Line != nil || p.Limit != nil)
	if !ok {
		return nil, &RPCError{Code: codeInternal, Message: "the file is too long to be given whole; ask for fewer lines"}
	}
	return protocol.ReadTextFileResponse{Content: content}, nil
}

// fileContent gives the content that a result of file_read stands for: Data, or the text without its line numbers. Where
// lines were asked for, a last paragraph that says which ones they are is left out. False: it is not all of it.
// Whether the last line has an end is not known from the text; it gets one.
func fileContent(r spec.ToolResult, part bool) (string, bool) {
	if r.Data != nil {
		var content string
		err := json.Unmarshal(r.Data, &content)
		return content, err == nil
	}
	text := r.Text
	if i := strings.LastIndex(text, "\n\n(showing lines "); part && i >= 0 && !strings.Contains(text[i+2:], "\n") {
		text = text[:i]
	}
	if text == "" {
		return "", true
	}
	next := 0
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		number, rest, ok := strings.Cut(line, "\t")
		n, err := strconv.Atoi(number)
		if !ok || err != nil || next != 0 && n != next {
			return "", false
		}
		next = n + 1
		b.WriteString(rest)
		b.WriteByte('\n')
	}
	return b.String(), true
}

func (s *session) writeFile(t *turn, params json.RawMessage) (any, *RPCError) {
	var p protocol.WriteTextFileRequest
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, badParams(err)
	}
	r := s.o.Door(t.ctx, toolWrite, map[string]any{"path": p.Path, "content": p.Content})
	if r.IsError {
		return nil, refused(s.o, r)
	}
	return protocol.WriteTextFileResponse{}, nil
}
