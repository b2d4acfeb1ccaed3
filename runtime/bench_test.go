package runtime

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
)

// BenchmarkRecord is one event of the log: a model's answer of 256 bytes, encoded, chained and appended.
func BenchmarkRecord(b *testing.B) {
	ef := &core.Effect{Kind: core.ModelCall, ID: "task-12/3/model", TaskID: "task-12", AgentName: "reviewer", Digest: "sha256:" + strings.Repeat("0", 64)}
	res := &core.Result{Model: &core.ModelResult{Response: answerText(strings.Repeat("word ", 51)), Attempts: 1}}
	for name, mask := range map[string]func(string) string{"plain": nil, "masked": func(s string) string { return s }} {
		b.Run(name, func(b *testing.B) {
			r := &recorder{journal: noJournal{}, now: func() int64 { return 1_700_000_000_000 }}
			e := &engine{hide: mask}
			b.ReportAllocs()
			for b.Loop() {
				r.record(event(spec.EventModelResult, ef), e.data(ef, res))
			}
			if r.err != nil {
				b.Fatal(r.err)
			}
		})
	}
}

// BenchmarkDoor is one tool call through the door: decoded, shaped, valid, judged by one rule, permitted, made.
func BenchmarkDoor(b *testing.B) {
	rule := spec.PlanRule{Rule: spec.Rule{Name: "r", Tools: []string{"echo"}, When: `input.text.startsWith("rm")`, Action: spec.ActionDeny}, Source: "team"}
	tools := toolMap{echo(func(context.Context, Invocation) spec.ToolResult { return spec.ToolResult{Text: "ok"} })}
	p := team(1, 1, rule)
	r, err := New(p, Options{RunID: "run_test", Tools: tools, Known: []spec.ToolInfo{tools[0].ToolInfo}})
	if err != nil {
		b.Fatal(err)
	}
	opened, _, err := r.tools(b.Context(), &p.Agents[0])
	if err != nil {
		b.Fatal(err)
	}
	g := &guard{rules: r.rules, now: time.Now, mask: r.mask, permits: map[string]string{}}
	parts := &agentParts{agent: &p.Agents[0], tools: opened}
	call := core.Call{ID: "c1", Name: "echo", Arguments: `{"text":"go test ./..."}`}
	b.ReportAllocs()
	for b.Loop() {
		j := g.judge(b.Context(), parts, &core.Effect{Kind: core.Judge, ID: "t/1/call/1/judge", Call: &call})
		made := call
		made.Canonical = j.Canonical
		if res := g.act(b.Context(), parts, &core.Effect{Kind: core.ToolCall, ID: "t/1/call/1", Call: &made}); res.Tool == nil || res.Tool.IsError {
			b.Fatalf("%+v: %+v", j, res)
		}
	}
}

// BenchmarkSeal is the end of a run: its receipt, encoded, hashed and written.
func BenchmarkSeal(b *testing.B) {
	for _, n := range []int{100, 1000, 5000} {
		res, err := run(b, team(n, 50), says("done"), toolMap{echo(nil)}, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("tasks=%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(res.Bytes)))
			b.ReportAllocs()
			for b.Loop() {
				sealed, err := SealReceipt(res.Receipt)
				if err != nil || !bytes.Equal(sealed, res.Bytes) {
					b.Fatalf("another receipt, or %v", err)
				}
			}
		})
	}
}

// BenchmarkReadPlan is the start of a saved plan's run.
func BenchmarkReadPlan(b *testing.B) {
	for _, n := range []int{100, 5000} {
		p := team(n, 50)
		if err := SealPlan(p); err != nil {
			b.Fatal(err)
		}
		raw, err := p.Encode()
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("tasks=%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ReadPlan(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkResume is a log read, verified and told again to its last event. One operation is n events and a little, so its
// time should be n times the same.
func BenchmarkResume(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			const turns = 20 // of a task, and five events each
			p := team(n/(5*turns), 1)
			for i := range p.Agents {
				p.Agents[i].MaxTurns = turns
			}
			m := modelFunc(func(_ context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
				if req.Turn < turns {
					return callTool("echo", `{"text":"a line of the kind that models write"}`), nil
				}
				return answerText("done"), nil
			})
			tool := echo(func(context.Context, Invocation) spec.ToolResult {
				return spec.ToolResult{Text: strings.Repeat("word ", 51)}
			})
			log := &memory{}
			if _, err := run(b, p, m, toolMap{tool}, func(o *Options) { o.Journal = log }); err != nil {
				b.Fatal(err)
			}
			kept := log.records[:len(log.records)-1] // all but the end
			lines := append(bytes.Join(kept, []byte("\n")), '\n')
			nobody := modelFunc(func(context.Context, *spec.ModelRequest) (*spec.ModelResponse, error) {
				b.Error("a model was asked again")
				return answerText(""), nil
			})
			b.SetBytes(int64(len(lines)))
			b.ReportAllocs()
			for b.Loop() {
				past, err := ReadPast(bytes.NewReader(lines))
				if err != nil {
					b.Fatal(err)
				}
				if res, err := run(b, p, nobody, toolMap{tool}, func(o *Options) { o.Past = past }); err != nil || !res.Receipt.Success {
					b.Fatal(res, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(kept)), "ns/event")
		})
	}
}
