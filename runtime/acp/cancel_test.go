package acp

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/open-multi-agent/oma/spec"
)

// TestCancel holds what becomes of a prompt whose context ends.
func TestCancel(t *testing.T) {
	cancelled := func(m message) bool { return m.method == "session/cancel" || m.method == "closed" }
	for _, test := range []struct {
		name   string
		prompt func(f *fake)
		output string
		said   string // the agent's own reason
		within time.Duration
		alive  bool // whether the program lives on
	}{
		{"the agent stops", func(f *fake) { f.say("half"); f.wait(cancelled); f.end(`{"stopReason":"cancelled"}`) }, "half", "cancelled", 0, true},
		{"the agent says it had finished", func(f *fake) { f.say("all"); f.wait(cancelled); f.end(endTurn) }, "all", "end_turn", 0, true},
		{"the agent fails over it", func(f *fake) {
			f.wait(cancelled)
			f.line(`{"id":%s,"error":{"code":-1,"message":"aborted"}}`, f.id)
		}, "", "", 0, true},
		{"the agent takes its time", func(f *fake) { f.wait(cancelled); time.Sleep(time.Second); f.say("late"); f.end(endTurn) }, "late", "end_turn", time.Second, true},
		{"the agent does not stop", func(f *fake) { f.say("half"); f.wait(func(m message) bool { return m.method == "closed" }) }, "half", "", defaultGrace, false},
	} {
		for _, by := range []string{"cancel", "deadline", "timeout"} {
			t.Run(test.name+" by "+by, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o, ctx, cancel := Options{}, t.Context(), context.CancelFunc(func() {})
					stop, code := spec.StopTimeout, CodeTimeout
					switch by {
					case "cancel":
						ctx, cancel = context.WithCancel(ctx)
						time.AfterFunc(time.Minute, cancel)
						stop, code = spec.StopCancelled, CodeCancelled
					case "deadline":
						ctx, cancel = context.WithTimeout(ctx, time.Minute)
					case "timeout":
						o.Timeout = time.Minute
					}
					defer cancel()
					a := agent(t, o, script{prompt: test.prompt})
					begun := time.Now()
					r, err := a.Prompt(ctx, "go")
					if took := time.Since(begun) - time.Minute; took != test.within {
						t.Errorf("took %v after the end, want %v", took, test.within)
					}
					if codeOf(t, err) != code || r.Stop != stop || r.Output != test.output || r.AgentStop != test.said {
						t.Errorf("stop %q, output %q, agent said %q, error %v", r.Stop, r.Output, r.AgentStop, err)
					}
					if a.live.open() != test.alive {
						t.Errorf("alive %v, want %v", a.live.open(), test.alive)
					}
					a.Close()
				})
			})
		}
	}
}

// TestCancelPending holds that a request for permission that is open when the turn is cancelled gets the answer cancelled,
// after the turn was.
func TestCancelPending(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var order string
	a := agent(t, Options{Permit: func(ctx ctxt, _ Permission) Answer { cancel(); <-ctx.Done(); return Allow }}, script{prompt: func(f *fake) {
		f.ask(rmCall, onceOptions)
		for _, h := range f.heard {
			order += strings.TrimSpace(h.method+" "+string(h.Result)) + "; "
		}
		f.end(`{"stopReason":"cancelled"}`)
	}})
	r, err := a.Prompt(ctx, "go")
	if order != `session/cancel; {"outcome":{"outcome":"cancelled"}}; ` {
		t.Errorf("the agent heard %s", order)
	}
	if codeOf(t, err) != CodeCancelled || len(r.Decisions) != 1 || r.Decisions[0].Allowed || r.Decisions[0].Answer != "cancelled" {
		t.Errorf("decisions %+v, error %v", r.Decisions, err)
	}
}

// TestBefore holds that a context that has ended starts nothing.
func TestBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a, starts := agentAndStarts(t, Options{}, script{prompt: func(f *fake) { f.end(endTurn) }})
	r, err := a.Prompt(ctx, "go")
	if codeOf(t, err) != CodeCancelled || r.Stop != spec.StopCancelled || *starts != 0 {
		t.Errorf("ended with %v after %d starts", err, *starts)
	}
	if _, err := a.Prompt(t.Context(), " \n"); codeOf(t, err) != CodeOptions || *starts != 0 {
		t.Errorf("an empty prompt ended with %v", err)
	}
}

// TestStartTimeout holds that an agent that does not answer its greeting is given up.
func TestStartTimeout(t *testing.T) {
	for name, s := range map[string]script{"initialize": {initialize: silent}, "session/new": {session: silent}, "only noise": {initialize: silent, banner: "Loading...\n\n\x1b[33mwarn\x1b[0m"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := agent(t, Options{}, s)
				begun := time.Now()
				_, err := a.Prompt(t.Context(), "go")
				if codeOf(t, err) != CodeTimeout || time.Since(begun) != defaultStartTimeout {
					t.Errorf("ended after %v with %v", time.Since(begun), err)
				}
				a.Close()
			})
		})
	}
}

// TestQueue holds that prompts wait for each other, and stop waiting when their context ends.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int32
		a := agent(t, Options{}, script{prompt: func(f *fake) {
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(time.Minute)
			running.Add(-1)
			f.say("ok")
			f.end(endTurn)
		}})
		results := make(chan error)
		for range 3 {
			go func() { _, err := a.Prompt(t.Context(), "go"); results <- err }()
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := a.Prompt(ctx, "go"); codeOf(t, err) != CodeTimeout {
			t.Errorf("the prompt that waited ended with %v", err)
		}
		for range 3 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		if most.Load() != 1 {
			t.Errorf("%d prompts ran at once", most.Load())
		}
		a.Close()
	})
}

// TestKilledIsADeath holds that an agent that had to be killed is started again, once, and its session anew.
func TestKilledIsADeath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, starts := agentAndStarts(t, Options{Timeout: time.Second}, script{prompt: func(f *fake) { f.wait(func(m message) bool { return m.method == "closed" }) }})
		var codes []string
		for range 3 {
			_, err := a.Prompt(t.Context(), "go")
			codes = append(codes, codeOf(t, err))
		}
		if got := strings.Join(codes, " "); got != "timeout timeout gone" || *starts != 2 {
			t.Errorf("ended with %s after %d starts", got, *starts)
		}
		a.Close()
	})
}
