package scripted_test

import (
	"regexp"
	"testing"

	"github.com/open-multi-agent/oma/runtime/scripted"
	"github.com/open-multi-agent/oma/spec"
)

func request() *spec.ModelRequest {
	return &spec.ModelRequest{AgentName: "a", TaskTitle: "T", Turn: 2, Model: "m", System: "s", MaxOutputTokens: 100,
		Messages: []spec.Message{
			{Role: "user", Text: "do it"},
			{Role: "assistant", Text: "I will", ToolCalls: []spec.ToolCall{{ID: "c1", Name: "file_read", Arguments: `{"path":"a","n":5}`}}},
			attached(result("c1", "12:00", false)),
			{Role: "user", Text: "again: 12:00"},
		},
		Tools: []spec.ToolInfo{{Name: "file_read", Description: "d", InputSchema: spec.Schema(`{"type": "object"}`)}}}
}

// attached puts a picture beside a result.
func attached(m spec.Message) spec.Message {
	m.Attachments = []spec.Attachment{{Type: "image", MediaType: "image/png", Digest: "sha256:1", Data: []byte("png")}}
	return m
}

// Answer 32: what a digest covers, and what differs from machine to machine.
func TestRequestDigestCovers(t *testing.T) {
	const never, exactOnly, always = 0, 1, 2
	for name, c := range map[string]struct {
		change func(*spec.ModelRequest)
		covers int
	}{
		"agent":               {func(r *spec.ModelRequest) { r.AgentName = "b" }, always},
		"task":                {func(r *spec.ModelRequest) { r.TaskTitle = "U" }, always},
		"model":               {func(r *spec.ModelRequest) { r.Model = "n" }, always},
		"system prompt":       {func(r *spec.ModelRequest) { r.System = "t" }, always},
		"tool gone":           {func(r *spec.ModelRequest) { r.Tools = nil }, always},
		"tool name":           {func(r *spec.ModelRequest) { r.Tools[0].Name = "grep" }, always},
		"tool schema":         {func(r *spec.ModelRequest) { r.Tools[0].InputSchema = nil }, always},
		"task text":           {func(r *spec.ModelRequest) { r.Messages[0].Text = "do that" }, always},
		"message gone":        {func(r *spec.ModelRequest) { r.Messages = r.Messages[:3] }, always},
		"role":                {func(r *spec.ModelRequest) { r.Messages[3].Role = "assistant" }, always},
		"call name":           {func(r *spec.ModelRequest) { r.Messages[1].ToolCalls[0].Name = "bash" }, always},
		"call id":             {func(r *spec.ModelRequest) { r.Messages[1].ToolCalls[0].ID = "c2" }, always},
		"call arguments":      {func(r *spec.ModelRequest) { r.Messages[1].ToolCalls[0].Arguments = `{"path":"b","n":5}` }, always},
		"broken arguments":    {func(r *spec.ModelRequest) { r.Messages[1].ToolCalls[0].Arguments = `{"path":"b"` }, always},
		"result of":           {func(r *spec.ModelRequest) { r.Messages[2].ToolCallID = "c2" }, always},
		"result text":         {func(r *spec.ModelRequest) { r.Messages[2].Text = "13:00" }, exactOnly},
		"result failed":       {func(r *spec.ModelRequest) { r.Messages[2].IsError = true }, exactOnly},
		"no attachment":       {func(r *spec.ModelRequest) { r.Messages[2].Attachments = nil }, always},
		"attachment's kind":   {func(r *spec.ModelRequest) { r.Messages[2].Attachments[0].Type = "file" }, always},
		"attachment's type":   {func(r *spec.ModelRequest) { r.Messages[2].Attachments[0].MediaType = "image/gif" }, always},
		"attachment's digest": {func(r *spec.ModelRequest) { r.Messages[2].Attachments[0].Digest = "sha256:2" }, exactOnly},
		"attachment's name":   {func(r *spec.ModelRequest) { r.Messages[2].Attachments[0].Filename = "a" }, exactOnly},
		"attachment's bytes":  {func(r *spec.ModelRequest) { r.Messages[2].Attachments[0].Data = nil }, never},
		"later user text":     {func(r *spec.ModelRequest) { r.Messages[3].Text = "again: 13:00" }, exactOnly},
		"answer text":         {func(r *spec.ModelRequest) { r.Messages[1].Text = "no" }, exactOnly},
		"tool description":    {func(r *spec.ModelRequest) { r.Tools[0].Description = "e" }, exactOnly},
		"temperature":         {func(r *spec.ModelRequest) { r.Temperature = ptr(0.5) }, exactOnly},
		"output limit":        {func(r *spec.ModelRequest) { r.MaxOutputTokens = 7 }, never},
		"spelling of schema":  {func(r *spec.ModelRequest) { r.Tools[0].InputSchema = spec.Schema("{\"type\":\n\"object\"}") }, never},
		"spelling of a call":  {func(r *spec.ModelRequest) { r.Messages[1].ToolCalls[0].Arguments = `{ "n": 5.0, "path": "\u0061" }` }, never},
		"nothing, for a base": {func(r *spec.ModelRequest) {}, never},
	} {
		t.Run(name, func(t *testing.T) {
			changed := request()
			c.change(changed)
			for match, want := range map[string]bool{"": c.covers == always, "shape": c.covers == always, "exact": c.covers != never} {
				if got := scripted.RequestDigest(request(), match) != scripted.RequestDigest(changed, match); got != want {
					t.Errorf("match %q: differs %t, want %t", match, got, want)
				}
			}
		})
	}
}

func TestRequestDigestForm(t *testing.T) {
	if d := scripted.RequestDigest(request(), ""); !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(d) {
		t.Errorf("%q is not what the schema of cassettes asks for", d)
	}
}
