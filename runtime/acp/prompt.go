package acp

import (
	"context"
	"encoding/json"
	"time"

	protocol "github.com/coder/acp-go-sdk"

	"github.com/open-multi-agent/oma/spec"
)

// prompt runs one turn. The reply is never nil.
func (s *session) prompt(ctx context.Context, text string) (*Reply, *Error) {
	if !s.briefed && s.o.SystemPrompt != "" {
		text = s.o.SystemPrompt + "\n\n" + text
	}
	s.briefed = true
	t := newTurn(ctx, s.o)
	s.setTurn(t)
	done := s.conn.request(protocol.AgentMethodSessionPrompt, protocol.PromptRequest{
		SessionId: protocol.SessionId(s.id), Prompt: []protocol.ContentBlock{protocol.TextBlock(text)},
	}, t.settle)
	a, failure := s.await(ctx, t, done)
	t.settle()
	s.setTurn(nil)
	t.work.Wait()
	t.terminals.wait()
	t.drain(ctx)

	reply := t.end()
	grown, cost := s.meter.take()
	reply.Cost = cost
	reply.Usage, reply.UsageFrom = usageOf(a.result, grown)
	if a.err != nil && failure == nil {
		failure = s.explain(context.WithoutCancel(ctx), a.err, "while the prompt ran")
	}
	if a.err == nil {
		reply.AgentStop, failure = s.verdict(reply, &t.signs, a.result, failure)
	}
	if failure == nil {
		reply.Stop = spec.StopCompleted
	}
	return reply, failure
}

func (s *session) setTurn(t *turn) {
	s.mu.Lock()
	s.turn = t
	s.mu.Unlock()
}

// await waits for the answer to the prompt. When ctx ends first, the agent is asked to stop, and killed if it does not
// within the grace; the failure is set then, whatever the answer is.
func (s *session) await(ctx context.Context, t *turn, done <-chan answer) (answer, *Error) {
	select {
	case a := <-done:
		return a, nil
	case <-ctx.Done():
	}
	s.conn.notification(protocol.AgentMethodSessionCancel, protocol.CancelNotification{SessionId: protocol.SessionId(s.id)})
	t.cancel()
	if t.feed != nil {
		t.feed.drop() // a listener that is slow is not to use up the grace
	}
	grace := time.NewTimer(s.o.Grace)
	defer grace.Stop()
	select {
	case a := <-done:
		return a, s.o.interrupted(ctx, "while the prompt ran")
	case <-grace.C:
	}
	s.stop(0)
	a := <-done // of the connection, if the agent's did not come at the last moment
	failure := s.o.interrupted(ctx, "while the prompt ran; the agent did not stop when it was asked to, and was killed")
	return a, failure
}

// drain waits until everything that was told has been handed on, or until ctx ends.
func (t *turn) drain(ctx context.Context) {
	if t.feed == nil {
		return
	}
	t.feed.finish()
	select {
	case <-t.feed.done:
		return
	case <-ctx.Done():
	}
	t.feed.drop()
	<-t.feed.done
}

// verdict says what the agent's answer means. An interruption stands, whatever the answer is.
func (s *session) verdict(r *Reply, seen *signs, result json.RawMessage, interrupted *Error) (string, *Error) {
	var word string
	_ = json.Unmarshal(member(result, "stopReason"), &word) // what is no text is told below
	shown := clip(s.o.redact(word), 80)
	if interrupted != nil {
		return shown, interrupted
	}
	switch protocol.StopReason(word) {
	case protocol.StopReasonEndTurn:
		return shown, s.doubt(r, seen, result)
	case protocol.StopReasonRefusal:
		return shown, s.o.fail(spec.StopRefused, CodeStopped, "refused the prompt")
	case protocol.StopReasonMaxTokens:
		r.BudgetExceeded = true
		return shown, s.o.fail(spec.StopLength, CodeStopped, "stopped at its limit of tokens")
	case protocol.StopReasonMaxTurnRequests:
		r.BudgetExceeded = true
		return shown, s.o.fail(spec.StopMaxTurns, CodeStopped, "stopped at its limit of requests in one turn")
	case protocol.StopReasonCancelled:
		why := ""
		for _, d := range r.Decisions {
			if !d.Allowed {
				why = ", after a permission was refused"
			}
		}
		return shown, s.o.fail(spec.StopCancelled, CodeTurnCancelled, "gave the turn up as cancelled, which nobody had asked for%s", why)
	case "":
		return shown, s.o.fail(spec.StopError, CodeProtocol, "ended the turn without a reason")
	}
	return shown, s.o.fail(spec.StopError, CodeProtocol, "ended the turn for the reason %q, which is not known", shown)
}
