package openai

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

func toolMessage(id, text string, all ...spec.Attachment) spec.Message {
	return spec.Message{Role: spec.RoleTool, ToolCallID: id, ToolName: "shot", Text: text, Attachments: all}
}

// O7: text stands in the results, which stay together, and what is attached in one message of the user behind them.
func TestO7Attachments(t *testing.T) {
	calls := spec.Message{Role: spec.RoleAssistant, ToolCalls: []spec.ToolCall{{ID: "c1", Name: "shot"}, {ID: "c2", Name: "shot"}, {ID: "c3", Name: "shot"}}}
	png := spec.Attachment{Type: spec.AttachImage, MediaType: "image/png", Data: []byte("\x89PNG<>&")}
	req := &spec.ModelRequest{Turn: 3, Model: "m", Messages: []spec.Message{
		{Role: spec.RoleUser, Text: "go"}, calls,
		toolMessage("c1", "one", png, spec.Attachment{Type: spec.AttachFile, MediaType: "application/pdf", Filename: "a.pdf", Data: []byte("%PDF")}),
		toolMessage("c2", "two"),
		toolMessage("c3", "three", spec.Attachment{Type: spec.AttachImage, MediaType: "image/tiff", URL: "https://h/x?a=1&b=2"}),
		{Role: spec.RoleAssistant, ToolCalls: []spec.ToolCall{{ID: "c4", Name: "shot"}}},
		toolMessage("c4", "four", png),
	}}
	modes(t, func(t *testing.T, stream bool) {
		s := serve(t, fine)
		if _, err := model(s, stream).Complete(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		call := func(id string) string {
			return `{"id":"` + id + `","type":"function","function":{"name":"shot","arguments":"{}"}}`
		}
		const image = `{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORzw+Jg=="}}`
		want := `[{"role":"user","content":"go"},
			{"role":"assistant","tool_calls":[` + call("c1") + "," + call("c2") + "," + call("c3") + `]},
			{"role":"tool","tool_call_id":"c1","content":"one\n\n[2 tool-result attachments follow in the next user message]"},
			{"role":"tool","tool_call_id":"c2","content":"two"},
			{"role":"tool","tool_call_id":"c3","content":"three\n\n[1 tool-result attachment follows in the next user message]"},
			{"role":"user","content":[{"type":"text","text":"Attachments for tool call c1:"},` + image + `,
				{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERg=="}},
				{"type":"text","text":"Attachments for tool call c3:"},{"type":"image_url","image_url":{"url":"https://h/x?a=1&b=2"}}]},
			{"role":"assistant","tool_calls":[` + call("c4") + `]},
			{"role":"tool","tool_call_id":"c4","content":"four\n\n[1 tool-result attachment follows in the next user message]"},
			{"role":"user","content":[{"type":"text","text":"Attachments for tool call c4:"},` + image + `]}]`
		var wanted any
		if err := json.Unmarshal([]byte(want), &wanted); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wanted, s.sent(t, 0)["messages"]); diff != "" {
			t.Errorf("messages (-want +got):\n%s", diff)
		}
	})
}

// O7: what cannot be carried ends the call for good, and nothing has been sent.
func TestO7UnmappableIsNotSent(t *testing.T) {
	for name, c := range map[string]struct {
		a        spec.Attachment
		official bool
		want     string
	}{
		"a file elsewhere": {spec.Attachment{Type: spec.AttachFile, MediaType: "a/b", Filename: "f", URL: "https://h/f"}, false,
			"[file: f; a/b; URL reference] of tool shot cannot be sent: the protocol takes no address of a file; give the file inline"},
		"lost bytes": {spec.Attachment{Type: spec.AttachImage, MediaType: "image/png", Digest: "sha256:1"}, false,
			"[image: image/png; inline data] of tool shot cannot be sent: its bytes are not there"},
		"another kind": {spec.Attachment{Type: "video", MediaType: "video/mp4", Filename: "f", Data: []byte("x")}, false,
			`[file: f; video/mp4; inline data] of tool shot cannot be sent: type "video" is not known`},
		"a kind that OpenAI refuses": {spec.Attachment{Type: spec.AttachImage, MediaType: "image/svg+xml", Data: []byte("x")}, true,
			"[image: image/svg+xml; inline data] of tool shot cannot be sent: api.openai.com takes image/png, image/jpeg, image/gif, image/webp alone"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, fine)
			m := model(s, true)
			if c.official {
				e, err := m.connect()
				if err != nil {
					t.Fatal(err)
				}
				e.official = true
			}
			req := &spec.ModelRequest{Turn: 2, Model: "m", Messages: []spec.Message{{Role: spec.RoleUser, Text: "go"}, toolMessage("c1", "one", c.a)}}
			_, err := m.Complete(t.Context(), req)
			info := providerError(t, err).Info
			if info.Code != "UNSUPPORTED_TOOL_RESULT_CONTENT" || info.Retryable || info.Message != c.want {
				t.Errorf("%+v", info)
			}
			if s.count() != 0 {
				t.Errorf("%d requests were made", s.count())
			}
		})
	}
}
