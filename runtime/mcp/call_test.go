package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

// M4, MC-02: what the model reads of a result.
func TestResults(t *testing.T) {
	for name, test := range map[string]struct {
		result, want string
		isError      bool
	}{
		"text":                 {`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b\u0000"}]}`, "a\nb\x00", false},
		"its own error":        {`{"content":[{"type":"text","text":"no such city"}],"isError":true}`, "no such city", true},
		"nothing":              {`{"content":[]}`, "", false},
		"an empty object":      {`{}`, "", false},
		"the first revision":   {`{"toolResult":{"n":1},"content":[{"type":"text","text":"x"}]}`, `{"n":1}`, false},
		"picture":              {`{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"}]}`, "[image: image/png; inline data]", false},
		"sound without a kind": {`{"content":[{"type":"audio","data":"AAAA"}]}`, "[audio: audio/*; not passed on: models are given images and files alone]", false},
		"picture of no kind":   {`{"content":[{"type":"image","data":"AAAA"}]}`, `[image: image/*; not passed on: media type "image/*" must be a MIME type without parameters]`, false},
		"picture of words":     {`{"content":[{"type":"image","data":"AAAA","mimeType":"text/html"}]}`, "[image: text/html; not passed on: its media type is not that of an image]", false},
		"picture that is none": {`{"content":[{"type":"image","data":"A-A","mimeType":"image/png"}]}`, "[image: image/png; not passed on: it is not base64 data]", false},
		"picture of an error":  {`{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"}],"isError":true}`, "[image: image/png; not passed on: the result is an error]", true},
		"blob of an error":     {`{"content":[{"type":"resource","resource":{"uri":"u:1","blob":"AAAA"}}],"isError":true}`, "[resource u:1]\n[file: application/octet-stream; not passed on: the result is an error]", true},
		"too many pictures":    {`{"content":[` + strings.Repeat(`{"type":"image","data":"AAAA","mimeType":"image/png"},`, 16) + `{"type":"image","data":"AAAA","mimeType":"image/png"}]}`, `MCP tool "echo" failed: MCP server "fake": the content of the result: there are 17 attachments, and 16 is the most for one result`, true},
		"resource":             {`{"content":[{"type":"resource","resource":{"uri":"u:1","text":"t"}}]}`, "[resource u:1]\nt", false},
		"blob":                 {`{"content":[{"type":"resource","resource":{"uri":"u:1","mimeType":"a/b","blob":"AAAAAA=="}}]}`, "[resource u:1]\n[file: 1; a/b; inline data]", false},
		"link":                 {`{"content":[{"type":"resource_link","name":"n","uri":"u:1","description":"d"}]}`, "[resource_link name=\"n\" uri=\"u:1\"]\nd", false},
		"kind of tomorrow":     {`{"content":[{"type":"hologram", "depth": 12345678901234567890},{"type":"text","text":"t"}]}`, "[hologram]\n{\"type\":\"hologram\",\"depth\":12345678901234567890}\nt", false},
		"no block":             {`{"content":[3,null]}`, "[]\n3\n[]\nnull", false},
		"structured alone":     {`{"content":[],"structuredContent":{"n":12345678901234567890}}`, `{"n":12345678901234567890}`, false},
		"structured, no list":  {`{"structuredContent":{"n":3}}`, `{"n":3}`, false},
		"structured twice":     {`{"content":[{"type":"text","text":"{ \"b\": 1, \"a\": 2 }"}],"structuredContent":{"a":2,"b":1}}`, `{ "b": 1, "a": 2 }`, false},
		"structured besides":   {`{"content":[{"type":"text","text":"two found"}],"structuredContent":{"n":2}}`, "two found\n{\"n\":2}", false},
		"asks for input":       {`{"resultType":"input_required","inputRequests":{"x":{"method":"elicitation/create"}}}`, `MCP tool "echo" failed: MCP server "fake" asks for more than the call: "input_required"`, true},
		"no object":            {`"done"`, `MCP tool "echo" failed: MCP server "fake": tools/call failed: the answer is not what the protocol says`, true},
		"no list":              {`{"content":"done"}`, `MCP tool "echo" failed: MCP server "fake": the content of the result: no list`, true},
		"no answer":            {`{"content":[],"isError":"yes"}`, `MCP tool "echo" failed: MCP server "fake": tools/call failed: the answer is not what the protocol says`, true},
		"no end":               {`{"content":[` + strings.Repeat("3,", maxBlocks) + `3]}`, `MCP tool "echo" failed: MCP server "fake": the content of the result: too many elements`, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := wired(t, Options{}, &fake{call: func(*fake, string, string, string) string { return test.result }})
			got := invoke(t.Context(), tool(t, c), `{}`)
			got.Attachments = nil // see TestAttachments
			if diff := cmp.Diff(spec.ToolResult{Text: test.want, IsError: test.isError}, got); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
}

// M4: what becomes an attachment, beside its note in the text. What is linked is never one, and never fetched.
func TestAttachments(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		want    []spec.Attachment
	}{
		"picture":           {`{"type":"image","data":"iVBORw==","mimeType":"image/png"}`, []spec.Attachment{{Type: "image", MediaType: "image/png", Data: []byte("\x89PNG")}}},
		"with a parameter":  {`{"type":"image","data":"iVBORw==","mimeType":"image/svg+xml; charset=utf-8"}`, []spec.Attachment{{Type: "image", MediaType: "image/svg+xml", Data: []byte("\x89PNG")}}},
		"blob":              {`{"type":"resource","resource":{"uri":"file:///x/a%20b.pdf?v=1","mimeType":"application/pdf","blob":"JVBERg=="}}`, []spec.Attachment{{Type: "file", MediaType: "application/pdf", Filename: "a b.pdf", Data: []byte("%PDF")}}},
		"blob of no kind":   {`{"type":"resource","resource":{"uri":"demo://","blob":"JVBERg=="}}`, []spec.Attachment{{Type: "file", MediaType: "application/octet-stream", Filename: "mcp-resource", Data: []byte("%PDF")}}},
		"blob of a picture": {`{"type":"resource","resource":{"uri":"demo://x","mimeType":"image/gif","blob":"R0lG"}}`, []spec.Attachment{{Type: "image", MediaType: "image/gif", Data: []byte("GIF")}}},
		"text that is known": {`{"type":"resource","resource":{"uri":"a:hunter2.txt","mimeType":"text/plain","blob":"aHVudGVyMg=="}}`,
			[]spec.Attachment{{Type: "file", MediaType: "text/plain", Filename: "[gone].txt", Data: []byte("[gone]")}}},
		"link":  {`{"type":"resource_link","name":"n","uri":"https://h/x.png","mimeType":"image/png"}`, nil},
		"sound": {`{"type":"audio","data":"AAAA","mimeType":"audio/wav"}`, nil},
		"text":  {`{"type":"resource","resource":{"uri":"u:1","text":"t"}}`, nil},
	} {
		c := wired(t, Options{Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "[gone]") }},
			&fake{call: func(*fake, string, string, string) string { return `{"content":[` + test.content + `]}` }})
		if diff := cmp.Diff(test.want, invoke(t.Context(), tool(t, c), `{}`).Attachments); diff != "" {
			t.Errorf("%s: want -, got +\n%s", name, diff)
		}
	}
}

// The value for an output schema is exact, and free of secrets; where it is missing, the call has failed.
func TestStructuredResults(t *testing.T) {
	for name, test := range map[string]struct {
		result, data, text string
	}{
		"given":    {`{"content":[],"structuredContent":{"n":9007199254740993,"keys":["hunter2",null]}}`, `{"keys":["[gone]",null],"n":9007199254740993}`, `{"n":9007199254740993,"keys":["[gone]",null]}`},
		"missing":  {`{"content":[{"type":"text","text":"x"}]}`, "", `MCP tool "echo" failed: MCP server "fake" gave no structuredContent, which the tool's outputSchema asks for`},
		"null":     {`{"content":[],"structuredContent":null}`, "", `MCP tool "echo" failed: MCP server "fake" gave no structuredContent, which the tool's outputSchema asks for`},
		"twice":    {`{"content":[],"structuredContent":{"n":1,"n":2}}`, "", `MCP tool "echo" failed: MCP server "fake": structuredContent: not valid JSON at byte 7: duplicate object member name`},
		"an error": {`{"content":[{"type":"text","text":"x"}],"isError":true}`, "", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			c := wired(t, Options{Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "[gone]") }}, &fake{
				list: func(*fake, string) string {
					return `{"tools":[{"name":"echo","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}]}`
				},
				call: func(*fake, string, string, string) string { return test.result },
			})
			got := invoke(t.Context(), tool(t, c), `{}`)
			if string(got.Data) != test.data || !strings.HasPrefix(got.Text, test.text) || got.IsError != (test.data == "") {
				t.Errorf("got %+v, %s", got, got.Data)
			}
		})
	}
}

// What was judged is what is sent, to the letter, and failures of the protocol are results.
func TestCallSendsTheCanonicalInput(t *testing.T) {
	f := &fake{}
	c := wired(t, Options{}, f)
	const args = `{"n":9007199254740993,"text":"<&> ü \u2028"}`
	invoke(t.Context(), tool(t, c), args)
	var sent struct {
		Params struct{ Arguments json.RawMessage }
	}
	for line := range strings.Lines(f.lines()) {
		if strings.Contains(line, "tools/call") && json.Unmarshal([]byte(line), &sent) != nil {
			t.Fatal(line)
		}
	}
	var want, got any
	if json.Unmarshal([]byte(args), &want) != nil || json.Unmarshal(sent.Params.Arguments, &got) != nil || !strings.Contains(string(sent.Params.Arguments), "9007199254740993") {
		t.Fatalf("sent %s", sent.Params.Arguments)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
	f.call = func(f *fake, id, name, args string) string {
		f.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"Unknown tool: token=hunter2"}}`, id)
		return ""
	}
	c.o.Redact = func(s string) string { return strings.ReplaceAll(s, "hunter2", "[gone]") }
	result := invoke(t.Context(), tool(t, c), `{}`)
	if want := `MCP tool "echo" failed: MCP server "fake": tools/call failed: Unknown tool: token=[gone] (error -32602)`; !result.IsError || result.Text != want {
		t.Errorf("got %+v", result)
	}
}

// Answers go to their calls, in whatever order they come.
func TestCallsAtOnce(t *testing.T) {
	const calls = 50
	var mu sync.Mutex
	var waiting []string
	f := &fake{call: func(f *fake, id, name, args string) string {
		mu.Lock()
		defer mu.Unlock()
		if waiting = append(waiting, fmt.Sprintf("%s %s", id, args)); len(waiting) < calls {
			return ""
		}
		for i := range waiting {
			id, args, _ := strings.Cut(waiting[calls-1-i], " ")
			f.answer(id, fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, args))
		}
		return ""
	}}
	c := wired(t, Options{}, f)
	echo := tool(t, c)
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			args := fmt.Sprintf(`{"text":"%d"}`, i)
			if got := invoke(t.Context(), echo, args); got.Text != args {
				t.Errorf("%s got %s", args, got.Text)
			}
		})
	}
	all.Wait()
}

// SP-04: a long answer is read whole and cut at lines; one without bound is not read.
func TestLongAnswers(t *testing.T) {
	line := strings.Repeat("x", 99) + "\\n"
	size := 0
	f := &fake{call: func(*fake, string, string, string) string {
		return `{"content":[{"type":"text","text":"` + strings.Repeat(line, size/100) + `"}]}`
	}}
	c := wired(t, Options{}, f)
	echo := tool(t, c)
	size = 20 << 20
	got := invoke(t.Context(), echo, `{}`)
	if got.IsError || len(got.Text) > 2*keepText+200 || !strings.Contains(got.Text, "x\n\n[... 199") || !strings.Contains(got.Text, " bytes left out ...]\n\nxx") {
		t.Errorf("%d bytes, error %t", len(got.Text), got.IsError)
	}
	for l := range strings.Lines(got.Text) {
		if l != strings.Repeat("x", 99)+"\n" && l != "\n" && !strings.HasPrefix(l, "[...") {
			t.Fatalf("half a line: %q", l)
		}
	}
	short, err := wireOf(t, Options{}, f, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	echo = tool(t, short)
	size = 2 << 20
	got = invoke(t.Context(), echo, `{}`)
	if want := `MCP tool "echo" failed: MCP server "fake": tools/call failed: a message is over 1 MiB`; !got.IsError || got.Text != want {
		t.Errorf("got %.200s", got.Text)
	}
	got = invoke(t.Context(), echo, `{}`)
	if want := `MCP tool "echo" failed: MCP server "fake": tools/call failed: the connection is broken: a message is over 1 MiB`; !got.IsError || got.Text != want {
		t.Errorf("got %.200s", got.Text)
	}
}

// Rules are typed by what a tool declares: what they could not see is not sent.
func TestUndeclaredIsNotSent(t *testing.T) {
	c := wired(t, Options{}, &fake{})
	input := map[string]any{"text": "t", "sudo": true}
	if err := tool(t, c).Normalise(input); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"text": "t"}, input); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
}

func FuzzExact(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"x"}],"_meta":{"oma/exact":"{}"}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a","result":{"tools":[null,{"name":3}],"nextCursor":"x"}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","method":"x","result":{}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) == 0 {
			return
		}
		message(raw)
		out := exact(raw)
		var m struct {
			Result struct {
				Meta map[string]any `json:"_meta"`
			} `json:"result"`
		}
		if string(out) == string(raw) || json.Unmarshal(out, &m) != nil {
			return
		}
		text, ok := exactText(m.Result.Meta)
		if !ok || !json.Valid(text) {
			t.Errorf("no text in %s", out)
		}
	})
}

// Whatever a server writes: what is attached can be passed on and has its note, and an error has nothing attached.
func FuzzContent(f *testing.F) {
	for _, seed := range []string{`{"type":"image","data":"AAAA","mimeType":"image/png"}`, `{"type":"audio","data":"AAAA"}`, `{"type":"resource","resource":{"uri":"u:1/a%00","mimeType":"a/b","blob":"AAAA"}}`,
		`{"type":"resource","resource":{"uri":"%zz","blob":""}}`, `{"type":"resource_link","name":"n"}`, `null`, `{"type":"image","data":"AAAA","mimeType":"image/\n"}`} {
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, block string, isError bool) {
		if !json.Valid([]byte(block)) {
			return
		}
		s := said{refused: isError}
		s.block([]byte(block))
		if err := spec.CheckAttachments(s.attached); err != nil && !strings.Contains(err.Error(), "is the most") || isError && s.attached != nil || len(s.parts) == 0 {
			t.Errorf("%s: %v, %+v", block, err, s)
		}
		for i := range s.attached {
			if !strings.Contains(strings.Join(s.parts, "\n"), s.attached[i].Note()) {
				t.Errorf("%s: no note in %q", block, s.parts)
			}
		}
	})
}
