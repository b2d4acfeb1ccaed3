//go:build unix

package custom

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

// sh is a command tool with a script that gets q as its one argument.
func sh(script string) spec.CustomTool {
	script = strings.NewReplacer("{", "{{", "}", "}}").Replace(script)
	return spec.CustomTool{Command: []string{"sh", "-c", script, "sh", "q={q}"},
		InputSchema: spec.Schema(`{"type":"object","required":["q"],"properties":{"q":{"type":"string"},"n":{"type":"integer"}}}`)}
}

func TestCommand(t *testing.T) {
	for _, c := range []struct {
		name string
		tool spec.CustomTool
		want spec.ToolResult
	}{
		{"input and argument", sh(`cat; printf '|%s|' "$@"`), okText(`{"n":5,"q":"$(id); 'x' {n}"}|q=$(id); 'x' {n}|`)},
		{"stderr of a success is dropped", sh("echo out; echo err >&2"), okText("out\n")},
		{"nothing", sh("true"), okText("(no output)")},
		{"nothing, against a schema", with(sh("true"), func(c *spec.CustomTool) { c.OutputSchema = spec.Schema(`{"maxLength":0}`) }), okText("")},
		{"redacted, valid", sh(`printf 'a hunter2 \351'`), okText("a [redacted] \uFFFD")},
		{"exit code", sh("echo out; echo why hunter2 >&2; exit 3"), bad("it exited with code 3\n--- stderr ---\nwhy [redacted]")},
		{"exit code without stderr", sh("echo out; exit 3"), bad("it exited with code 3\n--- stdout ---\nout")},
		{"exit code alone", sh("exit 3"), bad("it exited with code 3")},
		{"SE-02 environment", with(sh(`env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= -e ^PATH= -e ^TMP= | sort`), func(c *spec.CustomTool) { c.Credentials = []string{"OTHER"} }), okText("HOME=/home/u\nOTHER=other\n")},
		{"no program", with(sh(""), func(c *spec.CustomTool) { c.Command[0] = "no-such-program" }), bad(`program "no-such-program" is in no folder of PATH`)},

		{"json", with(sh(`echo '{"b": [1.50, 12345678901234567890], "a": "x\u0041"}'`), kind("json")), both(`{"b":[1.50,12345678901234567890],"a":"x\u0041"}`)},
		{"json, redacted", with(sh(`printf '{"a":"x hunter\\u0032 < y","hunter2":1}'`), kind("json")), both(`{"a":"x [redacted] < y","[redacted]":1}`)},
		{"json, two values", with(sh("echo 1 2"), kind("json")), bad("its output is not one JSON value: not valid JSON at byte 2: invalid character '2' after top-level value")},
		{"json, a name twice", with(sh(`echo '{"a":1,"a":2}'`), kind("json")), bad(`its output is not one JSON value: not valid JSON at byte 7: duplicate object member name`)},
		{"json, none", with(sh("true"), kind("json")), bad("its output is not one JSON value: not valid JSON at byte 0: unexpected EOF")},
		{"json, cut", with(sh(`printf '{"a":'`), kind("json")), bad("its output is not one JSON value: not valid JSON at byte 5: unexpected EOF")},

		{"rich, text", with(sh(`echo '{"data":{"a":1},"modelOutput":"one hunter2"}'`), kind("rich")), spec.ToolResult{Text: "one [redacted]", Data: json.RawMessage(`{"a":1}`), Chosen: true}},
		{"rich, data alone", with(sh(`echo '{"data":"one"}'`), kind("rich")), spec.ToolResult{Text: "one", Data: json.RawMessage(`"one"`)}},
		{"rich, output alone", with(sh(`echo '{"modelOutput":"one"}'`), kind("rich")), spec.ToolResult{Text: "one", Chosen: true}},
		{"rich, an image", with(sh(`printf '{"modelOutput":[{"type":"text","text":"a hunter2"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}]}' "$(printf '\211PNG' | base64)"`), kind("rich")),
			spec.ToolResult{Text: "a [redacted]\n[image: image/png; inline data]", Chosen: true, Attachments: []spec.Attachment{{Type: "image", MediaType: "image/png", Data: []byte("\x89PNG")}}}},
		{"rich, a secret in a file", with(sh(`printf '{"modelOutput":[{"type":"file","filename":"hunter2.txt","source":{"type":"base64","media_type":"text/plain","data":"%s"}}]}' "$(printf 'a hunter2' | base64)"`), kind("rich")),
			spec.ToolResult{Text: "[file: [redacted].txt; text/plain; inline data]", Chosen: true, Attachments: []spec.Attachment{{Type: "file", MediaType: "text/plain", Filename: "[redacted].txt", Data: []byte("a [redacted]")}}}},
		{"rich, exit code", with(sh(`echo '{"modelOutput":"one"}'; exit 3`), kind("rich")), bad("it exited with code 3\n--- stdout ---\n{\"modelOutput\":\"one\"}")},
		{"rich, flood", with(sh("yes"), kind("rich")), bad("it wrote more than 19573416 bytes")},
		{"rich, neither", with(sh(`echo '{"data":{}}'`), kind("rich")), bad("its output is not {data, modelOutput}: data that is no text needs modelOutput")},
		{"rich, another member", with(sh(`echo '{"Data":"x"}'`), kind("rich")), bad(`its output is not {data, modelOutput}: it has a member "Data"`)},
		{"rich, no object", with(sh(`echo null`), kind("rich")), bad("its output is not {data, modelOutput}: it is no object")},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.tool.Command = append([]string{}, c.tool.Command...)
			got := invoke(t, t.Context(), open1(t, testOptions(t), c.tool), `{"q":"$(id); 'x' {n}","n":5}`)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

const inline = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`

// O4, O5: attachments are checked, and noted in the text.
func TestRichParts(t *testing.T) {
	for parts, want := range map[string]string{
		`[{"type":"text","text":"a"},{"type":"text","text":""},{"type":"text","text":"b"}]`:                                   "a\n\nb",
		`[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]`:                                "[image: image/png; inline data]",
		`[{"type":"file","filename":"a.pdf","source":{"type":"url","media_type":"application/pdf","url":"https://h/a.pdf"}}]`: "[file: a.pdf; application/pdf; URL reference]",
		`[]`:                   "!modelOutput must be a text or a list of parts that is not empty",
		`{}`:                   "!modelOutput must be a text or a list of parts that is not empty",
		`null`:                 "!modelOutput must be a text or a list of parts that is not empty",
		`[{"type":"video"}]`:   `!modelOutput[0]: type must be "text", "image", or "file"`,
		`[{"type":"text"}]`:    "!modelOutput[0]: text is missing",
		`["a"]`:                "!modelOutput[0]: it does not read as a part",
		`[{"type":"image"}]`:   "!modelOutput[0]: source is missing",
		`[{"type":"x","y":1}]`: `!modelOutput[0]: it does not read as a part: unknown field "y"`,
		`[{"type":"file","source":{"type":"base64","media_type":"a/b","data":"AAAA"}}]`:                              "!modelOutput[0]: filename must be a name",
		`[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"data:image/png;base64,AAAA"}}]`: "!modelOutput[0]: the source must contain raw base64 data",
		`[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAB\nAAAA"}}]`:                 "!modelOutput[0]: the source must contain raw base64 data",
		`[{"type":"image","source":{"type":"base64","media_type":"image/png","data":""}}]`:                           "!modelOutput[0]: the source must contain raw base64 data",
		`[{"type":"image","source":{"type":"url","media_type":"image/png","url":"file:///etc/passwd"}}]`:             "!modelOutput[0]: the source's URL must use HTTP or HTTPS",
		`[{"type":"image","source":{"type":"url","media_type":"image/png","url":"/x"}}]`:                             "!modelOutput[0]: the source's URL must use HTTP or HTTPS",
		`[{"type":"image","source":{"type":"url","media_type":"image/png; q=1","url":"https://h/x"}}]`:               `!modelOutput[0]: media type "image/png; q=1" must be a MIME type without parameters`,
		`[{"type":"text","text":"a","filename":"b"}]`:                                                                "!modelOutput[0]: a text has no source and no filename",
		`[{"type":"image","text":"a","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]`:            "!modelOutput[0]: image must not have text beside its source",
		`[{"type":"image","filename":"a","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]`:        "!modelOutput[0]: an image has no filename",
		`[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA","url":"https://h/x"}}]`:   `!modelOutput[0]: the source of type "base64" has data and url`,
		`[{"type":"image","source":{"type":"url","media_type":"image/png"}}]`:                                        "!modelOutput[0]: the source's URL is missing",
		`[{"type":"image","source":{"type":"base64","media_type":"text/html","data":"AAAA"}}]`:                       `!modelOutput[0]: media type "text/html" is not that of an image`,
		`[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAB="}}]`:                       "!modelOutput[0]: the source must contain raw base64 data",
		`[` + strings.Repeat(`{"type":"text","text":""},`, 256) + `{"type":"text","text":""}]`:                       "!modelOutput has 257 parts, and 256 is the most",
		`[` + strings.Repeat(inline+",", 16) + inline + `]`:                                                          "!there are 17 attachments, and 16 is the most for one result",
		`[{"type":"image","source":{"type":"disk","media_type":"image/png"}}]`:                                       `!modelOutput[0]: the source's type must be "base64" or "url"`,
	} {
		attached := strings.Count(want, "[image") + strings.Count(want, "[file")
		got, err := rich([]byte(`{"data":1,"modelOutput":` + parts + `}`))
		message, refused := strings.CutPrefix(want, "!")
		switch {
		case refused && (err == nil || !strings.HasPrefix(err.Error(), message)):
			t.Errorf("%s: got %v, want %s", parts, err, message)
		case !refused && (err != nil || got.Text != want || string(got.Data) != "1" || len(got.Attachments) != attached || !got.Chosen):
			t.Errorf("%s: %+v, %v", parts, got, err)
		}
	}
}

func TestCommandCancelled(t *testing.T) {
	tool := open1(t, testOptions(t), sh("sleep 300"))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	if diff := cmp.Diff(bad("the call was cancelled"), invoke(t, ctx, tool, `{"q":""}`)); diff != "" {
		t.Error(diff)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if diff := cmp.Diff(bad("the time limit of the call was reached"), invoke(t, ctx, tool, `{"q":""}`)); diff != "" {
		t.Error(diff)
	}
}

// SP-02: what is too long for an argument is refused in words; the whole input comes on stdin anyhow.
func TestLongInputSP02(t *testing.T) {
	long, _ := json.Marshal(map[string]string{"q": strings.Repeat("x", 6<<20)})
	got := invoke(t, t.Context(), open1(t, testOptions(t), sh("wc -c")), string(long))
	if !got.IsError || !strings.HasPrefix(got.Text, `Tool "t" failed: it did not start: `) || !strings.HasSuffix(got.Text, ": hand the text over on standard input") {
		t.Error(got.Text)
	}
	plain := with(sh(""), func(c *spec.CustomTool) { c.Command = []string{"sh", "-c", "wc -c | tr -d ' '"} })
	if got := invoke(t, t.Context(), open1(t, testOptions(t), plain), string(long)); got.Text != "6291464\n" {
		t.Error(got.Text)
	}
}

// SP-04: endless text loses its middle, endless complaints all but their end.
func TestFloodSP04(t *testing.T) {
	got := invoke(t, t.Context(), open1(t, testOptions(t), sh("yes | head -c 20000000")), `{"q":""}`)
	if got.IsError || len(got.Text) > 1<<20+100 || !strings.Contains(got.Text, " bytes left out ...]") {
		t.Error(got.IsError, len(got.Text))
	}
	got = invoke(t, t.Context(), open1(t, testOptions(t), sh("yes ä | head -c 20000000 >&2; exit 1")), `{"q":""}`)
	if !got.IsError || len(got.Text) > tailBytes+100 || !strings.HasPrefix(got.Text, `Tool "t" failed: it exited with code 1`+"\n--- stderr ---\n…") {
		t.Error(got.IsError, len(got.Text), got.Text[:100])
	}
}

// N11: what no rule can see does not reach a tool, unless it is asked for.
func TestUndeclaredN11(t *testing.T) {
	tool := sh("cat")
	if got := invoke(t, t.Context(), open1(t, testOptions(t), tool), `{"q":"","Q":"x"}`); got.Text != `{"q":""}` {
		t.Error(got.Text)
	}
	tool.PassUndeclared = true
	if got := invoke(t, t.Context(), open1(t, testOptions(t), tool), `{"q":"","Q":"x"}`); got.Text != `{"Q":"x","q":""}` {
		t.Error(got.Text)
	}
}

// A program with a slash in its name is found below the folder of the team file, and never where agents write.
func TestProgramFolder(t *testing.T) {
	o := testOptions(t)
	o.Base = t.TempDir()
	if err := os.WriteFile(filepath.Join(o.Base, "tool"), []byte("#!/bin/sh\npwd"), 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	got := invoke(t, t.Context(), open1(t, o, spec.CustomTool{Command: []string{"./tool"}}), `{}`)
	if got.Text != dir+"\n" && got.Text != o.Dir+"\n" {
		t.Error(got.Text)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		tool spec.CustomTool
		want string
	}{
		{spec.CustomTool{Command: []string{"p", "{x}"}}, `tool "t": command[1]: {x} is no property: the tool has no inputSchema`},
		{spec.CustomTool{Command: []string{"p"}, Credentials: []string{"NONE"}}, `tool "t": the agent has no credential "NONE"`},
		{spec.CustomTool{HTTP: &spec.HTTPTool{URL: "https://h/", Headers: map[string]spec.Variable{"A": {Credential: "NONE"}}}}, `tool "t": A: the agent has no credential "NONE"`},
		{spec.CustomTool{HTTP: &spec.HTTPTool{URL: "https://h/", Headers: map[string]spec.Variable{"A": {Credential: "LINES"}}}}, `tool "t": credential "LINES" has a line end or another control character`},
		{spec.CustomTool{HTTP: &spec.HTTPTool{URL: "https://{h}/"}}, `tool "t": http.url: a placeholder must not stand in the origin; write scheme, host and port out`},
		{spec.CustomTool{Command: []string{"p"}, InputSchema: spec.Schema("{")}, `tool "t": schema is not valid JSON: not valid JSON at byte 1: unexpected EOF`},
	} {
		o := testOptions(t)
		o.Tools = map[string]spec.CustomTool{"t": c.tool}
		if _, _, err := Open(o); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

func FuzzMask(f *testing.F) {
	f.Add(`{"a":"x hunter2","b":[1,true,null,-1.5e3]}`)
	f.Add(`"hunter\u0032\""`)
	f.Add(`[12345678,"password: hunter2"]`)
	s := &tool{set: &set{}}
	s.Redact = func(text string) string {
		return strings.NewReplacer("hunter2", "[redacted]", "12345678", `"]`).Replace(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := oneValue(text)
		if err != nil {
			return
		}
		out := s.mask(doc)
		var v any
		if err := json.Unmarshal(out, &v); err != nil {
			t.Fatalf("%q became %q", doc, out)
		}
		if b, _ := json.Marshal(v); bytes.Contains(b, []byte("hunter2")) || bytes.Contains(b, []byte("12345678")) {
			t.Fatalf("%q became %q", doc, out)
		}
	})
}

// BenchmarkCommand is a call of a command. x-bare is how many times as long it takes as a bare start of the same program, with
// the same text to read and to write.
func BenchmarkCommand(b *testing.B) {
	file, err := exec.LookPath("cat")
	if err != nil {
		b.Skip(err)
	}
	tool := open1(b, testOptions(b), spec.CustomTool{Command: []string{"cat"}})
	var bare, ours time.Duration
	for b.Loop() {
		start := time.Now()
		cmd := &exec.Cmd{Path: file, Env: []string{}, Stdin: strings.NewReader("{}")}
		if out, err := cmd.Output(); err != nil || string(out) != "{}" {
			b.Fatal(err)
		}
		middle := time.Now()
		if r := invoke(b, b.Context(), tool, `{}`); r.IsError {
			b.Fatal(r.Text)
		}
		bare, ours = bare+middle.Sub(start), ours+time.Since(middle)
	}
	b.ReportMetric(float64(ours)/float64(bare), "x-bare")
}

// Whatever a tool writes is refused, or is something that can be passed on and is what was written.
func FuzzRich(f *testing.F) {
	for _, seed := range []string{`{"data":"x"}`, `{"data":1,"modelOutput":"x"}`, `{"modelOutput":[{"type":"text","text":"a"},` + inline + `]}`,
		`{"modelOutput":[{"type":"file","filename":"a","source":{"type":"url","media_type":"a/b","url":"https://h/x"}}]}`, `{"modelOutput":[null]}`, `{"modelOutput":[{"type":"image","source":null}]}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := oneValue(text)
		if err != nil {
			return
		}
		out, err := rich(doc)
		if err != nil {
			return
		}
		if err := spec.CheckAttachments(out.Attachments); err != nil || out.IsError {
			t.Errorf("%q: %v", text, err)
		}
		if out.Data != nil && !json.Valid(out.Data) {
			t.Errorf("%q: data %q", text, out.Data)
		}
		for i := range out.Attachments {
			if a := &out.Attachments[i]; !strings.Contains(out.Text, a.Note()) || a.Inline() != (len(a.Data) > 0) {
				t.Errorf("%q: %q has no note of %+v", text, out.Text, a)
			}
		}
	})
}
