package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	protocol "github.com/coder/acp-go-sdk"

	"github.com/open-multi-agent/oma/spec"
)

// session is one running program with one session in it.
type session struct {
	o       *Options
	child   *child
	conn    *conn
	id      string
	methods []string // of signing in, as the agent named them
	briefed bool     // the system prompt was sent
	meter   meter

	mu   sync.Mutex
	turn *turn // nil: no prompt runs
}

// connect starts the program and opens a session. What was started is ended again if that fails.
func connect(ctx context.Context, o *Options, start func(*Options) (*child, error)) (*session, *Error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.StartTimeout, errStartTimeout)
	defer cancel()
	c, err := start(o)
	if err != nil {
		return nil, o.fail(spec.StopError, CodeStart, "did not start: %v", err)
	}
	s := &session{o: o, child: c}
	s.conn = newConn(c.out, c.in, handler{notify: s.notify, serve: s.serve, remark: o.log})
	failure := s.initialize(ctx)
	if failure == nil {
		failure = s.newSession(ctx)
	}
	if failure != nil {
		s.close()
		return nil, failure
	}
	return s, nil
}

// open says whether the program can be spoken to.
func (s *session) open() bool {
	select {
	case <-s.conn.ended:
		return false
	case <-s.child.done:
		return false
	default:
		return true
	}
}

// close ends the program and returns when nothing of it is left.
func (s *session) close() { s.stop(s.o.stopWait()) }

func (s *session) stop(grace time.Duration) {
	s.child.close(grace)
	s.conn.end(errLocal)
	s.child.in.Close()
	s.child.out.Close()
	s.conn.wait()
}

func (s *session) initialize(ctx context.Context) *Error {
	caps := protocol.ClientCapabilities{Terminal: s.o.offers(Terminal)}
	caps.Fs.ReadTextFile, caps.Fs.WriteTextFile = s.o.offers(FS), s.o.offers(FS)
	raw, err := s.conn.call(ctx, protocol.AgentMethodInitialize, protocol.InitializeRequest{
		ProtocolVersion: protocol.ProtocolVersionNumber, ClientCapabilities: caps,
		ClientInfo: &protocol.Implementation{Name: "oma", Version: "1"},
	})
	if err != nil {
		return s.explain(ctx, err, "while it was greeted")
	}
	var hello struct {
		Version json.RawMessage `json:"protocolVersion"`
		Methods json.RawMessage `json:"authMethods"`
	}
	if json.Unmarshal(raw, &hello) != nil || hello.Version == nil {
		return s.o.fail(spec.StopError, CodeProtocol, "names no protocol version, expected %d", protocol.ProtocolVersionNumber)
	}
	if string(hello.Version) != fmt.Sprint(protocol.ProtocolVersionNumber) {
		return s.o.fail(spec.StopError, CodeProtocol, "speaks protocol version %s, expected %d", clip(string(hello.Version), 40), protocol.ProtocolVersionNumber)
	}
	var methods []struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(hello.Methods, &methods) // it serves a message alone
	for _, m := range methods {
		s.methods = append(s.methods, m.ID)
	}
	return nil
}

func (s *session) newSession(ctx context.Context) *Error {
	raw, err := s.conn.call(ctx, protocol.AgentMethodSessionNew,
		protocol.NewSessionRequest{Cwd: s.o.Dir, McpServers: []protocol.McpServer{}})
	if err != nil {
		return s.explain(ctx, err, "while its session was opened")
	}
	var opened struct {
		ID string `json:"sessionId"`
	}
	if json.Unmarshal(raw, &opened) != nil || opened.ID == "" {
		return s.o.fail(spec.StopError, CodeProtocol, "opened a session without an id")
	}
	s.mu.Lock()
	s.id = opened.ID
	s.mu.Unlock()
	return nil
}

// explain says why a request failed: the context, the agent's answer, or the end of the program.
func (s *session) explain(ctx context.Context, err error, when string) *Error {
	if ctx.Err() != nil {
		return s.o.interrupted(ctx, when)
	}
	rpc, ok := errors.AsType[*RPCError](err)
	if !ok {
		return s.died(err, when)
	}
	shown := rpc.shown(s.o)
	failure := s.o.fail(spec.StopError, CodeAgent, "answered with an error %s: %v", when, shown)
	if rpc.Code == codeAuthRequired {
		failure = s.o.fail(spec.StopError, CodeAuthentication, "wants somebody to sign in (%s): sign in with its own program, or give it its key: %v",
			cmp.Or(strings.Join(s.methods, ", "), "it names no way"), shown)
	}
	failure.RPC = shown
	return failure
}

// died says how the program ended and what it complained about. A program that has closed its output and lives is ended.
func (s *session) died(why error, when string) *Error {
	code, how := CodeDied, why.Error()
	if errors.Is(why, errLongLine) || errors.Is(why, errNoise) {
		code, how = CodeProtocol, "sent "+how
		s.stop(0) // it is no agent, or none that can be followed
	}
	lasting := time.NewTimer(s.o.stopWait())
	defer lasting.Stop()
	select {
	case <-s.child.done:
		if code == CodeDied {
			how = s.child.exit()
		}
	case <-lasting.C:
		s.stop(s.o.stopWait())
		how += ", and was ended"
	}
	complaint := strings.TrimSpace(s.o.redact(s.child.stderr()))
	if complaint != "" {
		complaint = ": " + lastPart(complaint, maxStderr)
	}
	return s.o.fail(spec.StopError, code, "%s %s%s", how, when, complaint)
}

// maxStderr is how much of a program's complaints is part of an error, in bytes. The end says more than the start.
const maxStderr = 700

func lastPart(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "[...] " + strings.ToValidUTF8(s[len(s)-n:], "")
}
