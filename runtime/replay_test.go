package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

// killable is a log in memory that can break after some records, as if the process had been killed then.
type killable struct {
	buf   bytes.Buffer
	left  int // records until it breaks; negative: it never does
	lines int
}

var errKilled = errors.New("killed")

func (m *killable) Append(record []byte) error {
	if m.left == 0 {
		return errKilled
	}
	m.left--
	m.lines++
	m.buf.Write(record)
	m.buf.WriteByte('\n')
	return nil
}

func (m *killable) Flush() error { return nil }

func (m *killable) Close() error { return nil }

// workshop is a world of two agents in parallel and one after them, with a tool that only reads and one that counts.
type workshop struct {
	mu   sync.Mutex
	done map[string]int // acts, by the text of the call
}

func (w *workshop) tools() toolMap {
	look := echo(func(_ context.Context, in Invocation) spec.ToolResult {
		return spec.ToolResult{Text: "seen " + fmt.Sprint(in.Input["text"])}
	})
	look.ReadOnly = true
	act := echo(func(_ context.Context, in Invocation) spec.ToolResult {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.done[in.TaskID+" "+fmt.Sprint(in.Input["text"])]++
		return spec.ToolResult{Text: "done"}
	})
	act.Name, act.Consequential = "act", true
	return toolMap{look, act}
}

func (w *workshop) plan() *spec.Plan {
	p := team(3, 2, spec.PlanRule{Rule: spec.Rule{Name: "no", When: `has(input.text) && input.text == "<no>"`, Action: "deny"}, Source: "team"},
		spec.PlanRule{Rule: spec.Rule{Name: "m", When: `has(input.text) && input.text == "two"`, Action: "warn", Mark: "m"}, Source: "team"})
	act := w.tools()[1].ToolInfo
	look := w.tools()[0].ToolInfo
	for i := range p.Agents {
		p.Agents[i].Tools = []spec.Grant{{ToolInfo: look}, {ToolInfo: act}}
		p.Agents[i].MaxOutputTokens = 50
	}
	p.Tasks[2].DependsOn = []string{"ta1", "ta2"}
	p.Budgets = spec.Budgets{MaxTokenBudget: 5000}
	return p
}

// model asks for tools twice, each time for several, and answers then.
func (w *workshop) model() Model {
	return modelFunc(func(_ context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
		r := answerText(fmt.Sprintf("%s after %d messages", req.AgentName, len(req.Messages)))
		if req.Turn <= 2 {
			r.Message.Text = ""
			for i, text := range []string{"one", "<no>", "two"} {
				name := "echo"
				if text == "two" {
					name = "act"
				}
				r.Message.ToolCalls = append(r.Message.ToolCalls, spec.ToolCall{ID: fmt.Sprintf("c%d", i), Name: name, Arguments: fmt.Sprintf(`{"text":%q,"n":%d}`, text, req.Turn)})
			}
		}
		return r, nil
	})
}

func (w *workshop) run(t *testing.T, m *killable, past *Past, change ...func(*Options)) (*Result, error) {
	t.Helper()
	return run(t, w.plan(), w.model(), w.tools(), func(o *Options) {
		o.Journal, o.Past = m, past
		for _, f := range change {
			f(o)
		}
		for _, tool := range w.tools() {
			o.Known = append(o.Known, tool.ToolInfo)
		}
		o.Known = o.Known[1:]
	})
}

// facts is what a receipt says whenever it was written.
func facts(r *spec.Receipt) map[string]any {
	out := map[string]any{"status": r.Status, "tokens": r.TotalTokens, "denied": r.Denied, "rules": r.Rules, "order": r.ExecutionOrder, "success": r.Success}
	for _, t := range r.Tasks {
		out[t.ID] = fmt.Sprint(t.Status, t.StopReason, t.Turns, t.ModelCalls, t.Tokens, t.ToolCalls, t.OutputDigest)
	}
	return out
}

// A run that was killed after any of its records goes on where it was: nothing that has a result happens again, and a
// call that may have taken effect happens at most once.
func TestKilledAtEveryRecord(t *testing.T) {
	whole := &workshop{done: map[string]int{}}
	log := &killable{left: -1}
	res, err := whole.run(t, log, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := facts(res.Receipt)
	if log.lines < 50 || res.Receipt.Denied != 6 || len(whole.done) != 3 {
		t.Fatalf("%d records, %d denied, %v", log.lines, res.Receipt.Denied, whole.done)
	}
	past, err := ReadPast(bytes.NewReader(log.buf.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	again, err := whole.run(t, &killable{left: 0}, past) // it records nothing
	if err != nil || string(again.Bytes) != string(res.Bytes) {
		t.Fatalf("the receipt of a run that had ended is another one: %v", err)
	}
	unsure, same := 0, 0
	for k := 3; k < log.lines; k++ {
		w := &workshop{done: map[string]int{}}
		first := &killable{left: k}
		if _, err := w.run(t, first, nil); err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		past, err := ReadPast(bytes.NewReader(first.buf.Bytes()))
		if err != nil {
			t.Fatalf("after %d: %v", k, err)
		}
		second := &killable{left: -1}
		second.buf.Write(first.buf.Bytes())
		res, err := w.run(t, second, past)
		if err != nil {
			t.Fatalf("after %d: %v", k, err)
		}
		for call, n := range w.done {
			if n > 2 || n == 2 && !strings.Contains(call, "two") { // each turn calls once
				t.Fatalf("after %d: %s ran %d times", k, call, n)
			}
		}
		if v := Gate(res.Bytes, GateOptions{Unbound: true, Log: bytes.NewReader(second.buf.Bytes()), AllowNotApplicable: true}); v.Integrity != IntegrityChain {
			t.Fatalf("after %d: the gate and the log of both attempts: %+v", k, v.Reasons)
		}
		got := facts(res.Receipt)
		if res.Receipt.Attempt != 2 {
			t.Fatalf("after %d: attempt %d", k, res.Receipt.Attempt)
		}
		if strings.Contains(second.buf.String(), "was not run again") || strings.Contains(second.buf.String(), `"repeated":`) {
			unsure++
			continue // what is not known is compared by what is left of it: it ends
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("after %d of %d records:\n%s", k, log.lines, diff)
		}
		same++
	}
	if unsure < 5 || same < 20 {
		t.Errorf("%d unsure, %d the same", unsure, same)
	}
}

// A run that was told to stop goes on from there, more than once: how it was wound up has not happened.
func TestStoppedAndGoneOn(t *testing.T) {
	want := facts(must(t, func(w *workshop) (*Result, error) { return w.run(t, &killable{left: -1}, nil) }).Receipt)
	for k := 3; k < 60; k += 2 {
		w := &workshop{done: map[string]int{}}
		log := &killable{left: -1}
		res, attempts := stopAfter(t, w, log, nil, k), 1
		for res.Receipt.Status.Code == spec.StatusCancelled && attempts < 20 {
			past, err := ReadPast(bytes.NewReader(log.buf.Bytes()))
			if err != nil || past.Ended {
				t.Fatalf("after %d: ended %t, %v", k, past.Ended, err)
			}
			if attempts++; attempts < 4 {
				res = stopAfter(t, w, log, past, k)
				continue
			}
			if res, err = w.run(t, log, past); err != nil {
				t.Fatal(err)
			}
		}
		for call, n := range w.done {
			if n != 2 {
				t.Fatalf("after %d: %s ran %d times, want once in each turn", k, call, n)
			}
		}
		if diff := cmp.Diff(want, facts(res.Receipt)); diff != "" {
			t.Fatalf("stopped after every %d records, %d attempts:\n%s", k, attempts, diff)
		}
		if v := Gate(res.Bytes, GateOptions{Unbound: true, Log: bytes.NewReader(log.buf.Bytes()), AllowNotApplicable: true}); v.Integrity != IntegrityChain {
			t.Fatalf("after %d: the gate and %d attempts: %+v", k, attempts, v.Reasons)
		}
		past, err := ReadPast(bytes.NewReader(log.buf.Bytes()))
		if err != nil || !past.Ended || past.Attempt != attempts || res.Receipt.Attempt != attempts {
			t.Fatalf("the log says ended %t, attempt %d of %d, %v", past.Ended, past.Attempt, attempts, err)
		}
	}
}

func must(t *testing.T, f func(*workshop) (*Result, error)) *Result {
	t.Helper()
	res, err := f(&workshop{done: map[string]int{}})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// stopAfter stops an attempt after some of its records.
func stopAfter(t *testing.T, w *workshop, log *killable, past *Past, records int) *Result {
	t.Helper()
	drain := make(chan struct{})
	seen := 0
	res, err := w.run(t, log, past, func(o *Options) {
		o.Drain = drain
		o.OnEvent = func(*spec.Event) {
			if seen++; seen == records {
				close(drain)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// A log that does not fit is refused with what differs, and nothing runs.
func TestAPastThatDoesNotFit(t *testing.T) {
	log := &killable{left: 20}
	if _, err := (&workshop{done: map[string]int{}}).run(t, log, nil); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(log.buf.String(), "\n")
	for name, change := range map[string]func(*spec.Plan){
		"another goal":   func(p *spec.Plan) { p.Tasks[0].Description = "do something else" },
		"another prompt": func(p *spec.Plan) { p.Agents[1].SystemPrompt = "x" },
		"another task": func(p *spec.Plan) {
			was := p.Tasks[0].ID
			p.Tasks[0].ID = "other"
			for i := range p.Tasks {
				if k := slices.Index(p.Tasks[i].DependsOn, was); k >= 0 {
					p.Tasks[i].DependsOn[k] = "other"
				}
			}
		},
		"another plan": func(p *spec.Plan) { p.Digest = "sha256:0" },
	} {
		past, err := ReadPast(strings.NewReader(strings.Join(lines[:20], "")))
		if err != nil {
			t.Fatal(err)
		}
		w := &workshop{done: map[string]int{}}
		p := w.plan()
		change(p)
		r, err := New(p, Options{RunID: "run_test", Models: func(string) (Model, error) { return w.model(), nil }, Tools: w.tools(),
			Known: []spec.ToolInfo{w.tools()[0].ToolInfo, w.tools()[1].ToolInfo}, Past: past})
		if err == nil {
			_, err = r.Run(t.Context())
		}
		if !errors.Is(err, ErrDiverged) || len(w.done) > 0 {
			t.Errorf("%s: %v, %v", name, err, w.done)
		}
	}
}
