package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

const done = "[DONE]"

// TestAnswers sends the same answer in pieces and in one piece: the result must be the same.
func TestAnswers(t *testing.T) {
	file := func(id, path string) spec.ToolCall {
		return spec.ToolCall{ID: id, Name: "file_read", Arguments: `{"path":"` + path + `"}`}
	}
	cases := []struct {
		name   string
		stream []string
		whole  string // empty: the case exists in streams only
		want   spec.Message
		finish spec.FinishReason
		usage  *spec.Usage
	}{
		{
			name: "text with usage",
			stream: []string{delta(`"role":"assistant","content":""`, ""), delta(`"content":"Hel"`, ""), delta(`"content":"lo"`, ""), delta("", "stop"),
				`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":1}}}`, done},
			whole: answer(`"content":"Hello"`, "stop", `,"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":1}}`),
			want:  spec.Message{Text: "Hello"},
			usage: &spec.Usage{Input: 9, CachedInput: 4, Output: 2, Reasoning: 1},
		},
		{
			name: "OA-01 arguments empty",
			stream: []string{delta(`"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"now","arguments":""}}]`, ""),
				delta("", "tool_calls"), done},
			whole: answer(`"content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"now","arguments":""}}]`, "tool_calls", ""),
			want:  spec.Message{ToolCalls: []spec.ToolCall{{ID: "c1", Name: "now"}}},
		},
		{
			name:   "OA-01 arguments missing",
			stream: []string{delta(`"tool_calls":[{"index":0,"id":"c1","function":{"name":"now"}}]`, "tool_calls"), done},
			whole:  answer(`"tool_calls":[{"id":"c1","function":{"name":"now"}}]`, "tool_calls", ""),
			want:   spec.Message{ToolCalls: []spec.ToolCall{{ID: "c1", Name: "now"}}},
		},
		{
			name:   "OA-01 arguments null",
			stream: []string{delta(`"tool_calls":[{"index":0,"id":"c1","function":{"name":"now","arguments":null}}]`, "tool_calls"), done},
			whole:  answer(`"tool_calls":[{"id":"c1","function":{"name":"now","arguments":null}}]`, "tool_calls", ""),
			want:   spec.Message{ToolCalls: []spec.ToolCall{{ID: "c1", Name: "now"}}},
		},
		{
			name:   "OA-01 arguments blank, and the text null",
			stream: []string{delta(`"tool_calls":[{"index":0,"id":"c1","function":{"name":"now","arguments":"   "}},{"index":1,"id":"c2","function":{"name":"now","arguments":"null"}}]`, "tool_calls"), done},
			whole:  answer(`"tool_calls":[{"id":"c1","function":{"name":"now","arguments":"   "}},{"id":"c2","function":{"name":"now","arguments":"null"}}]`, "tool_calls", ""),
			want:   spec.Message{ToolCalls: []spec.ToolCall{{ID: "c1", Name: "now"}, {ID: "c2", Name: "now"}}},
		},
		{
			name:   "arguments as an object",
			stream: []string{delta(`"tool_calls":[{"index":0,"id":"c1","function":{"name":"file_read","arguments":{"path":"/w/a"}}}]`, "tool_calls"), done},
			whole:  answer(`"tool_calls":[{"id":"c1","function":{"name":"file_read","arguments":{"path":"/w/a"}}}]`, "tool_calls", ""),
			want:   spec.Message{ToolCalls: []spec.ToolCall{file("c1", "/w/a")}},
		},
		{
			name: "OA-02 two ids at index 0",
			stream: []string{
				delta(`"tool_calls":[{"index":0,"id":"c1","function":{"name":"file_read","arguments":"{\"path\":\"/w/a\"}"}}]`, ""),
				delta(`"tool_calls":[{"index":0,"id":"c2","function":{"name":"file_read","arguments":"{\"path\":\"/w/b\"}"}}]`, ""),
				delta("", "tool_calls"), done},
			whole: answer(`"tool_calls":[{"index":0,"id":"c1","function":{"name":"file_read","arguments":"{\"path\":\"/w/a\"}"}},{"index":0,"id":"c2","function":{"name":"file_read","arguments":"{\"path\":\"/w/b\"}"}}]`, "tool_calls", ""),
			want:  spec.Message{ToolCalls: []spec.ToolCall{file("c1", "/w/a"), file("c2", "/w/b")}},
		},
		{
			name: "OA-02 two ids at index 0, interleaved",
			stream: []string{
				delta(`"tool_calls":[{"index":0,"id":"c1","function":{"name":"file_read","arguments":"{\"path\":"}}]`, ""),
				delta(`"tool_calls":[{"index":0,"id":"c2","function":{"name":"file_read","arguments":"{\"path\":"}}]`, ""),
				delta(`"tool_calls":[{"index":0,"id":"c1","function":{"arguments":"\"/w/a\"}"}}]`, ""),
				delta(`"tool_calls":[{"index":0,"id":"c2","function":{"arguments":"\"/w/b\"}"}}]`, ""),
				delta("", "tool_calls"), done},
			want: spec.Message{ToolCalls: []spec.ToolCall{file("c1", "/w/a"), file("c2", "/w/b")}},
		},
		{
			name: "arguments in pieces, two calls interleaved by index",
			stream: []string{
				delta(`"tool_calls":[{"index":0,"id":"c1","function":{"name":"file_read","arguments":""}}]`, ""),
				delta(`"tool_calls":[{"index":1,"id":"c2","function":{"name":"file_read","arguments":"{\"path\""}}]`, ""),
				delta(`"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":\"/w/a\"}"}}]`, ""),
				delta(`"tool_calls":[{"index":1,"function":{"arguments":":\"/w/b\"}"}}]`, ""),
				delta("", "tool_calls"), done},
			want: spec.Message{ToolCalls: []spec.ToolCall{file("c1", "/w/a"), file("c2", "/w/b")}},
		},
		{
			name: "id and name repeated with every fragment",
			stream: []string{
				delta(`"tool_calls":[{"index":0,"id":"c1","function":{"name":"file_read","arguments":"{\"path\":"}}]`, ""),
				delta(`"tool_calls":[{"index":0,"id":"c1","function":{"name":"file_read","arguments":"\"/w/a\"}"}}]`, ""),
				delta(`"tool_calls":[{"index":0,"id":"c1","function":{"name":"file_read","arguments":""}}]`, "tool_calls"), done},
			want: spec.Message{ToolCalls: []spec.ToolCall{file("c1", "/w/a")}},
		},
		{
			name: "name repeated without id",
			stream: []string{
				delta(`"tool_calls":[{"index":0,"id":"c1","function":{"name":"file_read","arguments":""}}]`, ""),
				delta(`"tool_calls":[{"index":0,"function":{"name":"file_read","arguments":"{\"path\":"}}]`, ""),
				delta(`"tool_calls":[{"index":0,"function":{"name":"file_read","arguments":"\"/w/a\"}"}}]`, "tool_calls"), done},
			want: spec.Message{ToolCalls: []spec.ToolCall{file("c1", "/w/a")}},
		},
		{
			name: "id comes after the name",
			stream: []string{
				delta(`"tool_calls":[{"index":0,"function":{"name":"file_read","arguments":"{\"path\":"}}]`, ""),
				delta(`"tool_calls":[{"index":0,"id":"c1","function":{"arguments":"\"/w/a\"}"}}]`, "tool_calls"), done},
			want: spec.Message{ToolCalls: []spec.ToolCall{file("c1", "/w/a")}},
		},
		{
			name:   "no ids, no index, whole calls in one delta",
			stream: []string{delta(`"tool_calls":[{"function":{"name":"file_read","arguments":"{\"path\":\"/w/a\"}"}},{"function":{"name":"file_read","arguments":"{\"path\":\"/w/b\"}"}},{"function":{"name":"now","arguments":"{}"}}]`, "tool_calls"), done},
			whole:  answer(`"tool_calls":[{"function":{"name":"file_read","arguments":"{\"path\":\"/w/a\"}"}},{"function":{"name":"file_read","arguments":"{\"path\":\"/w/b\"}"}},{"function":{"name":"now","arguments":"{}"}}]`, "tool_calls", ""),
			want:   spec.Message{ToolCalls: []spec.ToolCall{file("call_3_1", "/w/a"), file("call_3_2", "/w/b"), {ID: "call_3_3", Name: "now", Arguments: "{}"}}},
		},
		{
			name: "no index: fragments without id continue the last call",
			stream: []string{
				delta(`"tool_calls":[{"id":"c1","function":{"name":"file_read","arguments":"{\"path\":"}}]`, ""),
				delta(`"tool_calls":[{"function":{"arguments":"\"/w/a\"}"}}]`, ""),
				delta(`"tool_calls":[{"id":"c2","function":{"name":"file_read","arguments":"{\"path\":"}}]`, ""),
				delta(`"tool_calls":[{"function":{"arguments":"\"/w/b\"}"}}]`, "tool_calls"), done},
			want: spec.Message{ToolCalls: []spec.ToolCall{file("c1", "/w/a"), file("c2", "/w/b")}},
		},
		{
			name:   "one id twice",
			stream: []string{delta(`"tool_calls":[{"index":0,"id":"c","function":{"name":"file_read","arguments":"{\"path\":\"/w/a\"}"}},{"index":1,"id":"c","function":{"name":"file_read","arguments":"{\"path\":\"/w/b\"}"}}]`, "tool_calls"), done},
			whole:  answer(`"tool_calls":[{"id":"c","function":{"name":"file_read","arguments":"{\"path\":\"/w/a\"}"}},{"id":"c","function":{"name":"file_read","arguments":"{\"path\":\"/w/b\"}"}}]`, "tool_calls", ""),
			want:   spec.Message{ToolCalls: []spec.ToolCall{file("c", "/w/a"), file("call_3_2", "/w/b")}},
		},
		{
			name:   "a made id that the server uses itself",
			stream: []string{delta(`"tool_calls":[{"index":0,"function":{"name":"file_read","arguments":"{\"path\":\"/w/a\"}"}},{"index":1,"id":"call_3_1","function":{"name":"file_read","arguments":"{\"path\":\"/w/b\"}"}}]`, "tool_calls"), done},
			whole:  answer(`"tool_calls":[{"index":0,"function":{"name":"file_read","arguments":"{\"path\":\"/w/a\"}"}},{"index":1,"id":"call_3_1","function":{"name":"file_read","arguments":"{\"path\":\"/w/b\"}"}}]`, "tool_calls", ""),
			want:   spec.Message{ToolCalls: []spec.ToolCall{file("call_3_1_1", "/w/a"), file("call_3_1", "/w/b")}},
		},
		{
			name:   "OA-03 calls with finish reason stop",
			stream: []string{delta(`"tool_calls":[{"index":0,"id":"c1","function":{"name":"file_read","arguments":"{\"path\":\"/w/a\"}"}}]`, ""), delta("", "stop"), done},
			whole:  answer(`"content":"","tool_calls":[{"id":"c1","function":{"name":"file_read","arguments":"{\"path\":\"/w/a\"}"}}]`, "stop", ""),
			want:   spec.Message{ToolCalls: []spec.ToolCall{file("c1", "/w/a")}},
		},
		{
			name: "OA-04 empty and null choices, usage counted once",
			stream: []string{`{"choices":[],"prompt_filter_results":[]}`, `{"choices":null}`, delta(`"content":"a"`, ""), delta(`"content":null`, "stop"),
				`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}`, done},
			want:  spec.Message{Text: "a"},
			usage: &spec.Usage{Input: 9, Output: 2},
		},
		{
			name: "OA-04 usage in every event counts upwards",
			stream: []string{`{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}`,
				`{"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}`, done},
			want:  spec.Message{Text: "ab"},
			usage: &spec.Usage{Input: 9, Output: 2},
		},
		{
			name:   "no usage, or one of nothing, is none",
			stream: []string{delta(`"content":"a"`, "stop"), `{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}`, `{"choices":[],"usage":null}`, done},
			whole:  answer(`"content":"a"`, "stop", `,"usage":{}`),
			want:   spec.Message{Text: "a"},
		},
		{
			name:   "negative usage is none",
			stream: []string{delta(`"content":"a"`, "stop"), `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":-5}}`, done},
			whole:  answer(`"content":"a"`, "stop", `,"usage":{"prompt_tokens":-1,"completion_tokens":5}`),
			want:   spec.Message{Text: "a"},
		},
		{
			name:   "thinking counted apart is output all the same",
			stream: []string{delta(`"content":"a"`, "stop"), `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":45,"completion_tokens_details":{"reasoning_tokens":30}}}`, done},
			whole:  answer(`"content":"a"`, "stop", `,"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":45,"completion_tokens_details":{"reasoning_tokens":30}}`),
			want:   spec.Message{Text: "a"},
			usage:  &spec.Usage{Input: 10, Output: 35, Reasoning: 30},
		},
		{
			name:   "details never exceed what they are part of",
			stream: []string{delta(`"content":"a"`, "stop"), `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":99},"completion_tokens_details":{"reasoning_tokens":-3}}}`, done},
			whole:  answer(`"content":"a"`, "stop", `,"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":99},"completion_tokens_details":null}`),
			want:   spec.Message{Text: "a"},
			usage:  &spec.Usage{Input: 10, CachedInput: 10, Output: 5},
		},
		{
			name:   "OA-05 reasoning_content is kept apart",
			stream: []string{delta(`"reasoning_content":"let me "`, ""), delta(`"reasoning_content":"think","content":null`, ""), delta(`"content":"42"`, "stop"), done},
			whole:  answer(`"reasoning_content":"let me think","content":"42"`, "stop", ""),
			want:   spec.Message{Text: "42", Reasoning: "let me think"},
		},
		{
			name:   "OA-05 reasoning is no answer",
			stream: []string{delta(`"reasoning":"only "`, ""), delta(`"reasoning":"thoughts"`, "stop"), done},
			whole:  answer(`"content":"","reasoning":"only thoughts"`, "stop", ""),
			want:   spec.Message{Reasoning: "only thoughts"},
		},
		{
			name:   "OA-05 both names are not added up",
			stream: []string{delta(`"reasoning":"hm","reasoning_content":"hm"`, ""), delta(`"reasoning":{"effort":"low"},"content":"a"`, "stop"), done},
			whole:  answer(`"reasoning":"hm","reasoning_content":"hm","content":"a"`, "stop", ""),
			want:   spec.Message{Text: "a", Reasoning: "hm"},
		},
		{
			name:   "OA-07 cut in the middle of a call",
			stream: []string{delta(`"tool_calls":[{"index":0,"id":"c1","function":{"name":"file_write","arguments":"{\"path\":\"/w/a\",\"content\":\"half"}}]`, ""), delta("", "length"), done},
			whole:  answer(`"tool_calls":[{"id":"c1","function":{"name":"file_write","arguments":"{\"path\":\"/w/a\",\"content\":\"half"}}]`, "length", ""),
			want:   spec.Message{ToolCalls: []spec.ToolCall{{ID: "c1", Name: "file_write", Arguments: `{"path":"/w/a","content":"half`}}},
			finish: spec.FinishLength,
		},
		{
			name:   "OA-07 the cut text happens to be valid",
			stream: []string{delta(`"tool_calls":[{"index":0,"id":"c1","function":{"name":"file_read","arguments":"{\"path\":\"/w/a\"}"}}]`, "length"), done},
			whole:  answer(`"tool_calls":[{"id":"c1","function":{"name":"file_read","arguments":"{\"path\":\"/w/a\"}"}}]`, "length", ""),
			want:   spec.Message{ToolCalls: []spec.ToolCall{file("c1", "/w/a")}},
			finish: spec.FinishLength,
		},
		{
			name:   "OA-07 cut before the call has a name",
			stream: []string{delta(`"content":"a","tool_calls":[{"index":0,"id":"c1","function":{}}]`, "max_tokens"), done},
			whole:  answer(`"content":"a","tool_calls":[{"id":"c1"}]`, "model_length", ""),
			want:   spec.Message{Text: "a"},
			finish: spec.FinishLength,
		},
		{
			name: "OA-07 a cut is not taken back by a stop",
			stream: []string{delta(`"tool_calls":[{"index":0,"id":"c1","function":{"name":"file_read","arguments":"{\"path\":\"/w/a\"}"}}]`, "length"),
				delta("", "stop"), delta("", "tool_calls"), done},
			want:   spec.Message{ToolCalls: []spec.ToolCall{file("c1", "/w/a")}},
			finish: spec.FinishLength,
		},
		{
			name:   "OA-07 a cut that comes after a stop",
			stream: []string{delta(`"content":"a"`, "stop"), delta("", "length"), done},
			want:   spec.Message{Text: "a"},
			finish: spec.FinishLength,
		},
		{
			name:   "OA-07 a filter is not taken back by a stop",
			stream: []string{delta(`"content":"I"`, "content_filter"), delta("", "stop"), done},
			want:   spec.Message{Text: "I"},
			finish: spec.FinishRefused,
		},
		{
			name: "an index spelled as a float",
			stream: []string{delta(`"tool_calls":[{"index":1000.0,"id":"c1","function":{"name":"file_read","arguments":"{\"path\":"}}]`, ""),
				delta(`"tool_calls":[{"index":1e3,"function":{"arguments":"\"/w/a\"}"}}]`, "tool_calls"),
				`{"choices":[],"usage":{"prompt_tokens":9.0,"completion_tokens":2e0,"total_tokens":null}}`, done},
			whole: `{"choices":[{"index":0.0,"message":{"tool_calls":[{"index":1000.0,"id":"c1","function":{"name":"file_read","arguments":"{\"path\":\"/w/a\"}"}}]},"finish_reason":"tool_calls"}],` +
				`"usage":{"prompt_tokens":9.0,"completion_tokens":2e0}}`,
			want:  spec.Message{ToolCalls: []spec.ToolCall{file("c1", "/w/a")}},
			usage: &spec.Usage{Input: 9, Output: 2},
		},
		{
			name:   "filtered",
			stream: []string{delta(`"content":"I"`, ""), delta("", "content_filter"), done},
			whole:  answer(`"content":"I"`, "content_filter", ""),
			want:   spec.Message{Text: "I"},
			finish: spec.FinishRefused,
		},
		{
			name:   "refused in words",
			stream: []string{delta(`"refusal":"I can"`, ""), delta(`"refusal":"not"`, "stop"), done},
			whole:  answer(`"content":null,"refusal":"I cannot"`, "stop", ""),
			want:   spec.Message{Text: "I cannot"},
			finish: spec.FinishRefused,
		},
		{
			name:   "end mark without finish reason: an answer is an answer",
			stream: []string{delta(`"content":"a"`, ""), done},
			whole:  answer(`"content":"a"`, "", ""),
			want:   spec.Message{Text: "a"},
		},
		{
			name:   "end mark without finish reason: a whole call is a call",
			stream: []string{delta(`"tool_calls":[{"index":0,"id":"c1","function":{"name":"file_read","arguments":"{\"path\":\"/w/a\"}"}}]`, ""), done},
			whole:  answer(`"tool_calls":[{"id":"c1","function":{"name":"file_read","arguments":"{\"path\":\"/w/a\"}"}}]`, "", ""),
			want:   spec.Message{ToolCalls: []spec.ToolCall{file("c1", "/w/a")}},
		},
		{
			name:   "finish reason without end mark",
			stream: []string{delta(`"content":"a"`, "stop")},
			want:   spec.Message{Text: "a"},
		},
		{
			name:   "other choices are not ours",
			stream: []string{`{"choices":[{"index":1,"delta":{"content":"x"},"finish_reason":"length"},{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`, done},
			want:   spec.Message{Text: "a"},
		},
		{
			name:   "error null and function_call null are nothing",
			stream: []string{`{"error":null,"choices":[{"delta":{"content":"a","function_call":null},"finish_reason":"stop"}]}`, done},
			whole:  `{"error":null,"choices":[{"message":{"content":"a","function_call":null},"finish_reason":"stop"}]}`,
			want:   spec.Message{Text: "a"},
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			modes(t, func(t *testing.T, stream bool) {
				handler := events(tc.stream...)
				if !stream {
					if tc.whole == "" {
						t.Skip("exists in streams only")
					}
					handler = whole(tc.whole)
				}
				got, err := model(serve(t, handler), stream).Complete(t.Context(), ask())
				if err != nil {
					t.Fatal(err)
				}
				want := tc.want
				want.Role = spec.RoleAssistant
				if diff := cmp.Diff(want, got.Message); diff != "" {
					t.Errorf("message (-want +got):\n%s", diff)
				}
				if finish := tc.finish; finish == "" && got.Finish != spec.FinishStop || finish != "" && got.Finish != finish {
					t.Errorf("finish is %q, want %q", got.Finish, finish)
				}
				if diff := cmp.Diff(tc.usage, got.Usage); diff != "" {
					t.Errorf("usage (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestModelNameAsTheServerGivesIt(t *testing.T) {
	modes(t, func(t *testing.T, stream bool) {
		h := events(delta(`"content":"a"`, "stop"), `{"choices":[],"model":""}`, done)
		if !stream {
			h = whole(answer(`"content":"a"`, "stop", ""))
		}
		got, err := model(serve(t, h), stream).Complete(t.Context(), ask())
		if err != nil || got.Model != "m-1" {
			t.Errorf("model %+v, error %v; want m-1", got, err)
		}
	})
}

func TestModelNameIsCut(t *testing.T) {
	for _, n := range []int{255, 100_000} {
		body := fmt.Sprintf(`{"model":%q,"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}`, strings.Repeat("é", n))
		got, err := model(serve(t, whole(body)), false).Complete(t.Context(), ask())
		if err != nil {
			t.Fatal(err)
		}
		if have := utf8.RuneCountInString(got.Model); have != min(n, 256) || !strings.HasPrefix(got.Model, strings.Repeat("é", 255)) {
			t.Errorf("a name of %d runes becomes one of %d", n, have)
		}
	}
}

// Counts that cannot be true are no report: added up, they would wrap and make a ceiling endless.
func TestUsageThatCannotBeTrue(t *testing.T) {
	const most = 1 << 40
	for _, tc := range []struct {
		usage string
		want  *spec.Usage
	}{
		{`{"prompt_tokens":9223372036854775807,"completion_tokens":1}`, nil},
		{`{"prompt_tokens":1,"completion_tokens":9223372036854775807}`, nil},
		{`{"prompt_tokens":9223372036854775807,"completion_tokens":9223372036854775807}`, nil},
		{`{"prompt_tokens":1,"completion_tokens":1,"total_tokens":9223372036854775807}`, nil},
		{`{"prompt_tokens":1,"completion_tokens":1,"total_tokens":-9223372036854775808}`, nil},
		{`{"prompt_tokens":-9223372036854775808,"completion_tokens":1,"total_tokens":1}`, nil},
		{`{"prompt_tokens":1,"completion_tokens":-1}`, nil},
		{`{"prompt_tokens":1e30,"completion_tokens":1}`, nil},
		{`{"prompt_tokens":1e999,"completion_tokens":1}`, nil},
		{`{"prompt_tokens":-1e30,"completion_tokens":1}`, nil},
		{`{"prompt_tokens":99999999999999999999,"completion_tokens":1}`, nil},
		{`{"prompt_tokens":1099511627777,"completion_tokens":1}`, nil},
		{`{"prompt_tokens":1099511627776,"completion_tokens":1099511627776}`, &spec.Usage{Input: most, Output: most}},
		{`{"prompt_tokens":0,"completion_tokens":0,"total_tokens":5}`, nil},
		{`{"prompt_tokens":9,"completion_tokens":0}`, &spec.Usage{Input: 9}},
		{`{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":9223372036854775807},"completion_tokens_details":{"reasoning_tokens":1e30}}`,
			&spec.Usage{Input: 9, CachedInput: 9, Output: 2, Reasoning: 2}},
	} {
		var u *usage
		if err := json.Unmarshal([]byte(tc.usage), &u); err != nil {
			t.Errorf("%s: %v", tc.usage, err)
			continue
		}
		if diff := cmp.Diff(tc.want, u.tokens()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.usage, diff)
		}
	}
}

func TestServersThatIgnoreTheMode(t *testing.T) {
	t.Run("asked to stream, answers whole", func(t *testing.T) {
		got, err := model(serve(t, whole(answer(`"content":"a"`, "stop", ""))), true).Complete(t.Context(), ask())
		if err != nil || got.Message.Text != "a" {
			t.Errorf("answer %+v, error %v", got, err)
		}
	})
	t.Run("not asked to stream, streams", func(t *testing.T) {
		got, err := model(serve(t, events(delta(`"content":"a"`, "stop"), done)), false).Complete(t.Context(), ask())
		if err != nil || got.Message.Text != "a" {
			t.Errorf("answer %+v, error %v", got, err)
		}
	})
}
