package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	protocol "github.com/coder/acp-go-sdk"

	"github.com/open-multi-agent/oma/spec"
)

const (
	maxTerminals = 16 // that one turn may have
	// terminalTime is how long a command may run, in milliseconds: the most that bash permits. The turn's end is sooner.
	terminalTime = 600_000
)

// terminals are the commands that an agent runs through its client during one turn. The zero value is ready.
type terminals struct {
	mu   sync.Mutex
	last int
	byID map[string]*terminal
	work sync.WaitGroup
}

// terminal is one command. Its output is seen when it has ended: that is when the door gives it.
type terminal struct {
	stop  context.CancelFunc
	done  chan struct{}
	limit int             // bytes of output that are given, from the end; -1: all
	out   spec.ToolResult // after done
}

// wait returns when no command runs any more. Nothing is started meanwhile: the turn is over.
func (ts *terminals) wait() { ts.work.Wait() }

func (s *session) createTerminal(t *turn, params json.RawMessage) (any, *RPCError) {
	var p protocol.CreateTerminalRequest
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, badParams(err)
	}
	command, err := terminalCommand(&p)
	if err != nil {
		return nil, badParams(err)
	}
	input := map[string]any{"command": command, "timeout": int64(terminalTime)}
	if p.Cwd != nil && *p.Cwd != "" {
		input["cwd"] = *p.Cwd
	}
	one := &terminal{done: make(chan struct{}), limit: -1}
	if p.OutputByteLimit != nil {
		one.limit = max(*p.OutputByteLimit, 0)
	}
	ts := &t.terminals
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if len(ts.byID) == maxTerminals {
		return nil, &RPCError{Code: codeInternal, Message: fmt.Sprintf("more than %d terminals; release some", maxTerminals)}
	}
	if ts.byID == nil {
		ts.byID = map[string]*terminal{}
	}
	ts.last++
	id := "terminal-" + strconv.Itoa(ts.last)
	ts.byID[id] = one
	var ctx context.Context
	ctx, one.stop = context.WithCancel(t.ctx)
	ts.work.Go(func() {
		defer close(one.done)
		defer one.stop()
		one.out = s.o.Door(ctx, toolBash, input)
	})
	return protocol.CreateTerminalResponse{TerminalId: id}, nil
}

const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits  = "0123456789"
)

func isVariable(name string) bool {
	return name != "" && !strings.Contains(digits, name[:1]) && strings.Trim(name, letters+digits+"_") == ""
}

// terminalCommand gives the command line that is judged and run. A command without arguments is a line for a shell, as
// agents send it; with arguments it is a program.
func terminalCommand(p *protocol.CreateTerminalRequest) (string, error) {
	if strings.TrimSpace(p.Command) == "" {
		return "", fmt.Errorf("the command is empty")
	}
	var b strings.Builder
	for _, v := range p.Env {
		if !isVariable(v.Name) {
			return "", fmt.Errorf("variable %q has a name that no shell takes", clip(v.Name, 80))
		}
		b.WriteString("export " + v.Name + "=" + quote(v.Value) + "; ")
	}
	if len(p.Args) == 0 {
		b.WriteString(p.Command)
		return b.String(), nil
	}
	b.WriteString(quote(p.Command))
	for _, arg := range p.Args {
		b.WriteString(" " + quote(arg))
	}
	return b.String(), nil
}

// terminal gives the terminal that a request names.
func (t *turn) terminal(params json.RawMessage) (string, *terminal, *RPCError) {
	var p struct {
		ID string `json:"terminalId"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return "", nil, badParams(err)
	}
	t.terminals.mu.Lock()
	defer t.terminals.mu.Unlock()
	one := t.terminals.byID[p.ID]
	if one == nil {
		return "", nil, &RPCError{Code: codeNoResource, Message: fmt.Sprintf("terminal %q is not known", clip(p.ID, 80))}
	}
	return p.ID, one, nil
}

func (s *session) terminalOutput(t *turn, params json.RawMessage) (any, *RPCError) {
	_, one, failure := t.terminal(params)
	if failure != nil {
		return nil, failure
	}
	select {
	case <-one.done:
	default:
		return protocol.TerminalOutputResponse{}, nil
	}
	text, cut := one.out.Text, false
	if one.limit >= 0 && len(text) > one.limit {
		text, cut = strings.ToValidUTF8(text[len(text)-one.limit:], ""), true
	}
	code := exitCode(one.out)
	return protocol.TerminalOutputResponse{Output: text, Truncated: cut, ExitStatus: &protocol.TerminalExitStatus{ExitCode: &code}}, nil
}

func (s *session) waitForTerminal(t *turn, params json.RawMessage) (any, *RPCError) {
	_, one, failure := t.terminal(params)
	if failure != nil {
		return nil, failure
	}
	select {
	case <-one.done:
	case <-t.ctx.Done():
		return nil, &RPCError{Code: codeInvalidRequest, Message: "the turn has ended"}
	}
	code := exitCode(one.out)
	return protocol.WaitForTerminalExitResponse{ExitCode: &code}, nil
}

func (s *session) killTerminal(t *turn, params json.RawMessage) (any, *RPCError) {
	_, one, failure := t.terminal(params)
	if failure != nil {
		return nil, failure
	}
	one.stop()
	return protocol.KillTerminalResponse{}, nil
}

func (s *session) releaseTerminal(t *turn, params json.RawMessage) (any, *RPCError) {
	id, one, failure := t.terminal(params)
	if failure != nil {
		return nil, failure
	}
	one.stop()
	<-one.done
	t.terminals.mu.Lock()
	delete(t.terminals.byID, id)
	t.terminals.mu.Unlock()
	return protocol.ReleaseTerminalResponse{}, nil
}

// exitCode reads the exit code of a command, which bash gives in words at the end. A call that was refused, or failed
// without one, has 1.
func exitCode(r spec.ToolResult) int {
	if !r.IsError {
		return 0
	}
	last := r.Text[strings.LastIndexByte(r.Text, '\n')+1:]
	for _, form := range [][2]string{{"(exit code: ", ")"}, {"(command exited with code ", ", no output)"}} {
		number, isForm := strings.CutPrefix(last, form[0])
		number, ends := strings.CutSuffix(number, form[1])
		if code, err := strconv.Atoi(number); isForm && ends && err == nil && code > 0 {
			return code
		}
	}
	return 1
}
