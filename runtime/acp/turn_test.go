package acp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

// TestReply holds what one turn comes to, by what the agent sends.
func TestReply(t *testing.T) {
	chunk := func(kind, text string) string {
		return fmt.Sprintf(`{"sessionUpdate":"%s","content":{"type":"text","text":"%s"}}`, kind, text)
	}
	for _, test := range []struct {
		name    string
		updates []string
		want    Reply
	}{
		{"text and thoughts", []string{chunk("agent_thought_chunk", "hm"), chunk("agent_message_chunk", "on"), chunk("agent_message_chunk", "e")},
			Reply{Output: "one", Thoughts: "hm"}},
		{"a call and its end", []string{
			`{"sessionUpdate":"tool_call","toolCallId":"c","title":"Read a.go","kind":"read","rawInput":{"b":1,"a":"<x>"}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed","content":[{"type":"content","content":{"type":"text","text":"package a"}}]}`},
			Reply{ToolCalls: []ToolCall{{"c", "Read a.go", "read", "completed", `{"a":"<x>","b":1}`, "package a"}}}},
		{"raw output stands before content", []string{
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"t","kind":"switch_mode","rawOutput":"text","content":[{"type":"content","content":{"type":"text","text":"other"}}]}`,
			`{"sessionUpdate":"tool_call","toolCallId":"d","title":"u","rawOutput":{"n":9007199254740993}}`},
			Reply{ToolCalls: []ToolCall{{"c", "t", "other", "pending", "", "text"}, {"d", "u", "other", "pending", "", `{"n":9007199254740993}`}}}},
		{"nulls and what is unknown", []string{
			chunk("agent_message_chunk", "ok"),
			`{"sessionUpdate":"agent_message_chunk","content":{"type":"hologram","x":1}}`,
			`{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","kind":null,"status":null,"rawInput":null,"content":null,"locations":null}`,
			`{"sessionUpdate":"compaction_update","compactionId":"c"}`,
			`{"sessionUpdate":"plan","entries":[]}`,
			`{"sessionUpdate":"usage_update","used":null,"size":10}`},
			Reply{Output: "ok", ToolCalls: []ToolCall{{ID: "c", Title: "t", Kind: "other", Status: "pending"}},
				Plan: json.RawMessage(`{"entries":[],"sessionUpdate":"plan"}`),
				Others: []Update{
					{Kind: "agent_message_chunk", Raw: json.RawMessage(`{"content":{"type":"hologram","x":1},"sessionUpdate":"agent_message_chunk"}`), Size: 75},
					{Kind: "compaction_update", Raw: json.RawMessage(`{"compactionId":"c","sessionUpdate":"compaction_update"}`), Size: 56}}}},
		{"calls that are none", []string{chunk("agent_message_chunk", "ok"), `{"sessionUpdate":"tool_call","title":"no id"}`, `{"sessionUpdate":"tool_call","toolCallId":7}`},
			Reply{Output: "ok", Others: []Update{
				{Kind: "tool_call", Raw: json.RawMessage(`{"sessionUpdate":"tool_call","title":"no id"}`), Size: 45},
				{Kind: "tool_call", Raw: json.RawMessage(`{"sessionUpdate":"tool_call","toolCallId":7}`), Size: 44}}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := turnOf(t, Options{}, func(f *fake) {
				for _, u := range test.updates {
					f.update(u)
				}
				f.end(endTurn)
			})
			if err != nil {
				t.Fatal(err)
			}
			test.want.Stop, test.want.AgentStop = spec.StopCompleted, "end_turn"
			if diff := cmp.Diff(&test.want, got); diff != "" {
				t.Errorf("reply (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStop holds that only an undoubted end_turn is completed.
func TestStop(t *testing.T) {
	text := func(s string) func(*fake) { return func(f *fake) { f.say(s) } }
	update := func(s string) func(*fake) { return func(f *fake) { f.update(s) } }
	const systemError = `{"sessionUpdate":"session_info_update","_meta":{"codex":{"threadStatus":{"type":"systemError"}}}}`
	const call = `{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","status":"completed"}`
	const badJSON = `{"type":"error","status":400,"error":{"type":"invalid_request_error","message":"bad request xyz"}}`
	for _, test := range []struct {
		name   string
		told   []func(*fake)
		result string
		stop   spec.StopReason
		code   string
		budget bool
	}{
		{"end_turn", []func(*fake){text("ok")}, endTurn, spec.StopCompleted, "", false},
		{"a call without words", []func(*fake){update(call)}, endTurn, spec.StopCompleted, "", false},
		{"nothing at all", nil, endTurn, spec.StopEmpty, CodeStopped, false},
		{"refusal", []func(*fake){text("no")}, `{"stopReason":"refusal"}`, spec.StopRefused, CodeStopped, false},
		{"max_tokens", []func(*fake){text("par")}, `{"stopReason":"max_tokens"}`, spec.StopLength, CodeStopped, true},
		{"max_turn_requests", nil, `{"stopReason":"max_turn_requests"}`, spec.StopMaxTurns, CodeStopped, true},
		{"cancelled by itself", nil, `{"stopReason":"cancelled"}`, spec.StopCancelled, CodeTurnCancelled, false},
		{"a reason nobody knows", []func(*fake){text("ok")}, `{"stopReason":"brand_new"}`, spec.StopError, CodeProtocol, false},
		{"no reason", []func(*fake){text("ok")}, `{}`, spec.StopError, CodeProtocol, false},
		{"a result of null", []func(*fake){text("ok")}, `null`, spec.StopError, CodeProtocol, false},
		{"a reason that is no text", []func(*fake){text("ok")}, `{"stopReason":7}`, spec.StopError, CodeProtocol, false},
		{"system error", []func(*fake){text("ok"), update(systemError)}, endTurn, spec.StopError, CodeSilent, false},
		{"an error for an answer", []func(*fake){text(badJSON)}, `{"stopReason":"end_turn","usage":null}`, spec.StopError, CodeSilent, false},
		{"an error for an answer, with usage", []func(*fake){text(badJSON)}, `{"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}`, spec.StopCompleted, "", false},
		{"an error for an answer, after a call", []func(*fake){update(call), text(badJSON)}, endTurn, spec.StopCompleted, "", false},
		{"JSON without an error", []func(*fake){text(`{"error":null,"verdict":"approve"}`)}, endTurn, spec.StopCompleted, "", false},
		{"a notice of an error", []func(*fake){update(`{"sessionUpdate":"notice","severity":"error","message":"no model"}`)}, endTurn, spec.StopError, CodeSilent, false},
		{"a notice and an answer", []func(*fake){update(`{"sessionUpdate":"notice","severity":"error","message":"m"}`), text("ok")}, endTurn, spec.StopCompleted, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := turnOf(t, Options{}, func(f *fake) {
				for _, tell := range test.told {
					tell(f)
				}
				f.end(test.result)
			})
			if got.Stop != test.stop || codeOf(t, err) != test.code || got.BudgetExceeded != test.budget {
				t.Errorf("stopped %q, code %q, budget %v (%v); want %q, %q, %v", got.Stop, codeOf(t, err), got.BudgetExceeded, err, test.stop, test.code, test.budget)
			}
		})
	}
}

// TestUsage holds what a turn used, by who reports it and how.
func TestUsage(t *testing.T) {
	for _, test := range []struct {
		name    string
		updates []string
		result  string
		want    *spec.Usage
		from    string
		cost    string // dollars; empty: none
	}{
		{"AC-04 nobody reports", nil, endTurn, nil, "", ""},
		{"null and zero are no report", []string{`{"used":null}`, `{"used":0}`}, `{"stopReason":"end_turn","usage":null}`, nil, "", ""},
		{"all zero is no report", nil, `{"stopReason":"end_turn","usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0}}`, nil, "", ""},
		{"cache apart from input", nil, `{"stopReason":"end_turn","usage":{"inputTokens":10,"outputTokens":3,"cachedReadTokens":90,"cachedWriteTokens":5,"thoughtTokens":2,"totalTokens":110}}`,
			&spec.Usage{Input: 105, CachedInput: 90, Output: 5, Reasoning: 2}, FromResult, ""},
		{"cache in input, thoughts in output", nil, `{"stopReason":"end_turn","usage":{"inputTokens":100,"outputTokens":5,"cachedReadTokens":90,"thoughtTokens":2,"totalTokens":105}}`,
			&spec.Usage{Input: 100, CachedInput: 90, Output: 5, Reasoning: 2}, FromResult, ""},
		{"cache in input, thoughts apart from output", nil, `{"stopReason":"end_turn","usage":{"inputTokens":100,"outputTokens":5,"cachedReadTokens":90,"thoughtTokens":2,"totalTokens":107}}`,
			&spec.Usage{Input: 100, CachedInput: 90, Output: 7, Reasoning: 2}, FromResult, ""},
		{"a total that does not fit counts the most", nil, `{"stopReason":"end_turn","usage":{"inputTokens":100,"outputTokens":5,"cachedReadTokens":90,"totalTokens":7}}`,
			&spec.Usage{Input: 190, CachedInput: 90, Output: 5}, FromResult, ""},
		{"negative counts are no report", nil, `{"stopReason":"end_turn","usage":{"inputTokens":-1,"outputTokens":5,"totalTokens":4}}`, nil, "", ""},
		{"counts that are made up", nil, `{"stopReason":"end_turn","usage":{"inputTokens":9000000000000000000,"outputTokens":5,"totalTokens":4}}`, nil, "", ""},
		{"quota", nil, `{"stopReason":"end_turn","_meta":{"quota":{"token_count":{"input_tokens":8,"output_tokens":2}}}}`, &spec.Usage{Input: 8, Output: 2}, FromQuota, ""},
		{"the result stands before the rest", []string{`{"used":500}`}, `{"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":2,"totalTokens":3},"_meta":{"quota":{"token_count":{"input_tokens":8,"output_tokens":2}}}}`,
			&spec.Usage{Input: 1, Output: 2}, FromResult, ""},
		{"growth of the context", []string{`{"used":1000}`, `{"used":0}`, `{"used":1200}`, `{"used":300}`, `{"used":450}`}, endTurn, &spec.Usage{Input: 1350}, FromContext, ""},
		{"cumulative cost, in floating point", []string{`{"used":7,"cost":{"amount":0.0041000000000000003,"currency":"USD"}}`, `{"used":9,"cost":{"amount":0.0082,"currency":"USD"}}`}, endTurn,
			&spec.Usage{Input: 9}, FromContext, "0.0082"},
		{"a cost is exact, and rounded up", []string{`{"used":7,"cost":{"amount":0.1234567890123456,"currency":"USD"}}`}, endTurn, &spec.Usage{Input: 7}, FromContext, "0.123456789013"},
		{"a cost too small to be counted is one", []string{`{"used":7,"cost":{"amount":1e-300000,"currency":"USD"}}`, `{"used":7,"cost":{"amount":1e-30,"currency":"USD"}}`}, endTurn,
			&spec.Usage{Input: 7}, FromContext, "0.000000000001"},
		{"another currency is no cost", []string{`{"used":7,"cost":{"amount":1,"currency":"EUR"}}`}, endTurn, &spec.Usage{Input: 7}, FromContext, ""},
		{"a cost that cannot be", []string{`{"used":7,"cost":{"amount":-1,"currency":"USD"}}`, `{"used":7,"cost":{"amount":1e300,"currency":"USD"}}`}, endTurn, &spec.Usage{Input: 7}, FromContext, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := turnOf(t, Options{}, func(f *fake) {
				f.say("ok")
				for _, u := range test.updates {
					f.update(strings.Replace(u, "{", `{"sessionUpdate":"usage_update","size":9999,`, 1))
				}
				f.end(test.result)
			})
			if err != nil {
				t.Fatal(err)
			}
			cost := ""
			if got.Cost != nil {
				cost = got.Cost.String()
			}
			if diff := cmp.Diff(test.want, got.Usage); diff != "" || got.UsageFrom != test.from || cost != test.cost {
				t.Errorf("from %q, cost %q, want %q, %q; usage (-want +got):\n%s", got.UsageFrom, cost, test.from, test.cost, diff)
			}
		})
	}
}

// TestUsageOfLaterTurns holds that figures of the session are counted once.
func TestUsageOfLaterTurns(t *testing.T) {
	n := 0
	a := agent(t, Options{}, script{prompt: func(f *fake) {
		n++
		f.say("ok")
		f.update(fmt.Sprintf(`{"sessionUpdate":"usage_update","used":%d,"cost":{"amount":%g,"currency":"USD"}}`, 100*n, 0.5*float64(n)))
		f.end(endTurn)
	}})
	for range 3 {
		r, err := a.Prompt(t.Context(), "go")
		if err != nil {
			t.Fatal(err)
		}
		if r.Usage.Input != 100 || r.Cost.String() != "0.5" {
			t.Errorf("used %d for $%s, want 100 for $0.5", r.Usage.Input, r.Cost)
		}
	}
}

// TestBounds holds that what an agent sends without end is kept within bounds, and said so.
func TestBounds(t *testing.T) {
	got, err := turnOf(t, Options{}, func(f *fake) {
		f.say(strings.Repeat("a\n", keepBytes))
		f.say(strings.Repeat("b\n", 2*keepBytes))
		for i := range maxCalls + 7 {
			f.update(fmt.Sprintf(`{"sessionUpdate":"tool_call","toolCallId":"c%d","title":"t"}`, i))
		}
		f.update(`{"sessionUpdate":"tool_call_update","toolCallId":"c1","rawOutput":"` + strings.Repeat("x", maxField+9) + `","rawInput":{"a":"` + strings.Repeat("y", 2*maxField) + `"}}`)
		for range maxOthers + 5 {
			f.update(`{"sessionUpdate":"current_mode_update"}`)
		}
		f.update(`{"sessionUpdate":"plan","entries":["` + strings.Repeat("z", maxRaw) + `"]}`)
		f.end(endTurn)
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(got.Output); n > 2*keepBytes+100 || !strings.Contains(got.Output, "2097154 bytes left out") {
		t.Errorf("output has %d bytes: %.80q", n, got.Output[keepBytes-40:])
	}
	if len(got.ToolCalls) != maxCalls || got.ToolCallsOmitted != 7 || len(got.Others) != maxOthers || got.OthersOmitted != 5 || got.Plan != nil {
		t.Errorf("%d calls and %d omitted, %d others and %d omitted, plan of %d bytes", len(got.ToolCalls), got.ToolCallsOmitted, len(got.Others), got.OthersOmitted, len(got.Plan))
	}
	wantText(t, got.ToolCalls[1].Output, "x [... 9 characters left out]")
	wantText(t, got.ToolCalls[1].Input, `{"a":"yyy`, " characters left out]")
}

// TestRedact holds that a secret shows in nothing that is kept or told.
func TestRedact(t *testing.T) {
	var told []string
	o := Options{Name: "coder", Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "[redacted]") },
		Log:    func(s string) { told = append(told, s) },
		Update: func(u Update) { told = append(told, fmt.Sprintf("%+v %s", u, u.Raw), fmt.Sprintf("%+v", u.Call)) },
		Permit: func(ctx ctxt, p Permission) Answer { return Answer(p.Command == "echo hunter2") }}
	got, err := turnOf(t, o, func(f *fake) {
		f.line("password hunter2 in a log")
		f.say("hun")
		f.say("ter2")
		f.update(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hunter2"}}`)
		f.update(`{"sessionUpdate":"tool_call","toolCallId":"hunter2","title":"hunter2","rawInput":{"command":"hunter2"},"rawOutput":"hunter2"}`)
		f.update(`{"sessionUpdate":"plan","entries":["hunter2"]}`)
		f.update(`{"sessionUpdate":"hunter2","x":"hunter2"}`)
		if m := f.ask(`{"toolCallId":"p","title":"hunter2","rawInput":{"command":"echo hunter2"}}`, onceOptions); !strings.Contains(string(m.Result), "o1") {
			f.line("not judged by what it is: %s", m.Result)
		}
		f.line(`{"jsonrpc":"2.0","id":%s,"error":{"code":400,"message":"bad hunter2","data":{"key":"hunter2"}}}`, f.id)
	})
	if codeOf(t, err) != CodeAgent || err.(*Error).RPC.Code != 400 {
		t.Fatalf("ended with %v", err)
	}
	everything := fmt.Sprintf("%+v %s %v %+v %v", got, got.Plan, err, err.(*Error).RPC, told)
	if strings.Contains(everything, "hunter2") || strings.Contains(everything, "not judged") {
		t.Errorf("a secret shows: %s", everything)
	}
	if got.Output != "[redacted]" || !got.Decisions[0].Allowed {
		t.Errorf("output %q, decision %+v", got.Output, got.Decisions[0])
	}
}
