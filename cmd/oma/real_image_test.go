//go:build real

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/testdata/real/parts"
)

// The picture of the reference server reaches a server of others as an attachment: the mock answers to nothing else. What
// the protocol cannot carry ends the task, and the mock is not asked.
func TestRealPictures(t *testing.T) {
	everything := parts.MCPServer(t, "server-everything")
	oma := binary(t)
	team := fmt.Sprintf(`apiVersion: oma/v1
kind: Team
name: real-pictures
goal: Look at the tiny picture.
providers: {server: {kind: openai, baseURL: %s}}
defaults: {provider: server, model: m}
mcpServers:
  every: {command: %s, args: [%q, stdio], readOnly: [get-tiny-image]}
customTools:
  elsewhere:
    command: [echo, '{{"modelOutput":[{{"type":"file","filename":"a.pdf","source":{{"type":"url","media_type":"application/pdf","url":"https://h.example/a.pdf"}}}}]}}']
    output: rich
agents: [{name: viewer, systemPrompt: You look., customTools: [every_get-tiny-image, elsewhere]}]
`, parts.Aimock(t, "testdata/real/aimock-image.json"), everything[0], everything[1])
	if out, errs, code := oma(nil, "mcp", "lock", team); code != 0 {
		t.Fatalf("lock: %d %s%s", code, out, errs)
	}
	out, errs, code := oma(nil, "run", "-o", "ndjson", team)
	if code != 0 || !strings.Contains(out, `"text":"A tiny picture."`) {
		t.Fatalf("ended %d\n%s%s", code, out, errs)
	}
	if !strings.Contains(out, `[image: image/png; inline data]`) || !strings.Contains(out, `"mediaType":"image/png","size":4033,"type":"image"`) || strings.Contains(out, "iVBORw0KGgo") {
		t.Errorf("the events are\n%s", out)
	}
	out, errs, code = oma(nil, "run", "-o", "json", strings.Replace(team, "tiny picture.", "file elsewhere.", 1))
	r := receiptOf(t, out)
	if code != 3 || r.ErrorInfo == nil || r.ErrorInfo.Code != "UNSUPPORTED_TOOL_RESULT_CONTENT" || r.ErrorInfo.Retryable || r.Status.Code != spec.StatusError {
		t.Errorf("ended %d, %+v, %+v\n%s", code, r.Status, r.ErrorInfo, errs)
	}
}
