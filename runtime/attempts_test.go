package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// pastOf reads a log that a test has written.
func pastOf(t *testing.T, log *killable) *Past {
	t.Helper()
	past, err := ReadPast(bytes.NewReader(log.buf.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	return past
}

// A run's time goes on where it was, over any number of attempts: hours in which no process drove it do not count, and
// what it has had does not come back.
func TestTimeWithoutAProcessDoesNotCount(t *testing.T) {
	for limit, want := range map[time.Duration]string{10 * time.Second: spec.StatusOK, 8 * time.Second: spec.StatusBudget} {
		synctest.Test(t, func(t *testing.T) {
			p := team(1, 1)
			p.Budgets.MaxDuration = spec.Duration(limit)
			m := modelFunc(func(ctx context.Context, q *spec.ModelRequest) (*spec.ModelResponse, error) {
				select {
				case <-ctx.Done():
					return nil, ctx.Err()
				case <-time.After(3 * time.Second):
				}
				if q.Turn < 3 {
					return callTool("echo", `{"text":"a"}`), nil
				}
				return answerText("done"), nil
			})
			look := echo(func(context.Context, Invocation) spec.ToolResult { return spec.ToolResult{Text: "seen"} })
			look.ReadOnly = true
			log := &killable{left: -1}
			attempt := func(past *Past) (*Result, error) {
				return run(t, p, m, toolMap{look}, func(o *Options) {
					o.Journal, o.Past = log, past
					o.OnEvent = func(e *spec.Event) {
						if e.Kind == spec.EventToolResult {
							log.left = 0 // killed right after
						}
					}
				})
			}
			_, err := attempt(nil)
			for range 2 {
				if err != nil && !errors.Is(err, errKilled) {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
				log.left = -1
				var res *Result
				if res, err = attempt(pastOf(t, log)); err == nil && log.left != 0 && res.Receipt.Status.Code != want {
					t.Errorf("within %s the run ends %+v, want %s", limit, res.Receipt.Status, want)
				}
			}
			if past := pastOf(t, log); !past.Ended || past.Attempt != 3 {
				t.Errorf("ended %t in attempt %d, want the third", past.Ended, past.Attempt)
			}
		})
	}
}

// What was in flight when a process was killed does not start when the next attempt is told to stop before it got there,
// and the attempt after that has lost nothing.
func TestStoppedWhileToldAgain(t *testing.T) {
	for _, kind := range []string{spec.EventModelAsked, spec.EventToolAsked} {
		w := &workshop{done: map[string]int{}}
		log := &killable{left: -1}
		asked := func(o *Options) {
			o.OnEvent = func(e *spec.Event) {
				if e.Kind == kind {
					log.left = 0
				}
			}
		}
		if _, err := w.run(t, log, nil, asked); err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		log.left = -1
		drain := make(chan struct{})
		close(drain)
		started := 0
		res, err := w.run(t, log, pastOf(t, log), func(o *Options) {
			o.Drain = drain
			o.Watch = func(e *core.Effect, res *core.Result) {
				if res == nil {
					started++
				}
			}
		})
		if err != nil || started > 0 || !res.Stopped {
			t.Fatalf("%s: %d started, stopped %t, %v", kind, started, res != nil && res.Stopped, err)
		}
		if v := Gate(res.Bytes, GateOptions{Unbound: true, Log: bytes.NewReader(log.buf.Bytes()), AllowNotApplicable: true}); v.Integrity != IntegrityChain {
			t.Errorf("%s: the gate and the log: %+v", kind, v.Reasons)
		}
		if res, err = w.run(t, log, pastOf(t, log)); err != nil || !res.Receipt.Success || res.Receipt.Attempt != 3 {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// An answer that came while an attempt was wound up is told like any other: a cassette must not play it again.
func TestLateAnswersAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := modelFunc(func(_ context.Context, q *spec.ModelRequest) (*spec.ModelResponse, error) {
			if q.AgentName == "a2" {
				time.Sleep(5 * time.Second)
			} else if q.Turn == 1 {
				time.Sleep(time.Second)
				return callTool("echo", `{"text":"a"}`), nil
			}
			return answerText("done"), nil
		})
		tool := echo(func(context.Context, Invocation) spec.ToolResult { return spec.ToolResult{Text: "x"} })
		log := &killable{left: -1}
		drain := make(chan struct{})
		time.AfterFunc(time.Second/2, func() { close(drain) })
		if _, err := run(t, team(2, 2), m, toolMap{tool}, func(o *Options) { o.Journal, o.Drain = log, drain }); err != nil {
			t.Fatal(err)
		}
		told, watched := map[string]int{}, map[string]int{}
		res, err := run(t, team(2, 2), m, toolMap{tool}, func(o *Options) {
			o.Journal, o.Past = log, pastOf(t, log)
			o.Told = func(e *core.Effect, _ *core.Result) { told[e.ID]++ }
			o.Watch = func(e *core.Effect, _ *core.Result) { watched[e.ID]++ }
		})
		if err != nil || !res.Receipt.Success {
			t.Fatal(err)
		}
		if told["ta2/1/model"] != 1 || watched["ta2/1/model"] != 0 || told["ta1/1/model"] != 1 {
			t.Errorf("told %v, watched %v", told, watched)
		}
	})
}

// A run that was told to stop can go on, also where a task had failed before.
func TestStoppedAfterATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := team(2, 2)
		p.Agents[0].CallTimeout = spec.Duration(time.Second)
		m := modelFunc(func(ctx context.Context, _ *spec.ModelRequest) (*spec.ModelResponse, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		r, err := New(p, Options{RunID: "r", Models: func(string) (Model, error) { return m, nil }, Tools: toolMap{echo(nil)}, Known: []spec.ToolInfo{echo(nil).ToolInfo}})
		if err != nil {
			t.Fatal(err)
		}
		res, err := r.Run(ctx)
		if err != nil || !res.Stopped || res.Receipt.Status.Code != spec.StatusTimeout {
			t.Errorf("stopped %t, %+v, %v", res.Stopped, res.Receipt.Status, err)
		}
	})
}

// A permit that is remembered is for a call that has not run: one whose result is in the log leaves none.
func TestPermitsOfCallsThatRan(t *testing.T) {
	input := []byte(`{}`)
	call := &core.Effect{Kind: core.ToolCall, ID: "t/1/call/1", AgentName: "a", Call: &core.Call{Name: "act"}}
	judge := &core.Effect{Kind: core.Judge, ID: call.ID + "/judge"}
	allowed := &core.Result{Judged: &core.Judged{InputDigest: canon.Digest("input", input)}}
	for name, c := range map[string]struct {
		then func(*guard)
		want bool
	}{
		"judged":         {func(*guard) {}, true},
		"and run":        {func(g *guard) { g.remember(call, &core.Result{}) }, false},
		"and not so run": {func(g *guard) { g.unsure(call) }, false},
	} {
		g := &guard{permits: map[string]string{}, agents: map[string]*agentParts{"a": {}}}
		g.remember(judge, allowed)
		c.then(g)
		if got := g.use(call.ID, input); got != c.want {
			t.Errorf("%s: it may run: %t", name, got)
		}
	}
}

// Figures that no run writes are no past: they would be counted with.
func TestImpossibleCounts(t *testing.T) {
	e := &engine{past: &tape{rest: []rest{{}}}}
	for data, want := range map[string]bool{`{"model":{"attempts":1,"repeated":1}}`: true, `{"model":{"attempts":1,"repeated":2}}`: false,
		`{"model":{"attempts":-1}}`: false, `{"model":{"attempts":1,"repeated":-1}}`: false} {
		if _, err := e.recorded(&core.Effect{Kind: core.ModelCall}, &spec.Event{Data: []byte(data)}); (err == nil) != want {
			t.Errorf("%s: %v", data, err)
		}
	}
}

// An input from which a secret was taken out is not what was judged: it neither runs nor is it told again.
func TestJudgedInputWithoutItsSecret(t *testing.T) {
	e := &engine{past: &tape{}}
	for input, want := range map[string]bool{`{"key":"sesame <&>"}`: true, `{"key":"${secret:p}"}`: false} {
		data := fmt.Sprintf(`{"judged":{"gated":false,"input":%s,"inputDigest":%q}}`, input, canon.Digest("input", []byte(`{"key":"sesame <&>"}`)))
		if _, err := e.recorded(&core.Effect{Kind: core.Judge}, &spec.Event{Data: []byte(data)}); (err == nil) != want {
			t.Errorf("%s: %v", input, err)
		}
	}
}
