package acp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

type toolCall struct {
	Tool  string
	Input map[string]any
}

// served runs requests of an agent against one tool result each, and gives the calls and the answers.
func served(t *testing.T, result spec.ToolResult, requests ...[2]string) (calls []toolCall, answers []string) {
	t.Helper()
	o := Options{Capabilities: []string{FS, Terminal}, Door: func(_ ctxt, tool string, input map[string]any) spec.ToolResult {
		calls = append(calls, toolCall{tool, input})
		return result
	}}
	_, err := turnOf(t, o, func(f *fake) {
		for _, r := range requests {
			m := f.request(r[0], fmt.Sprintf(`{"sessionId":"s1",%s}`, r[1]))
			answers = append(answers, string(m.Result)+string(m.Error))
		}
		f.say("ok")
		f.end(endTurn)
	})
	if err != nil {
		t.Fatal(err)
	}
	return calls, answers
}

// TestFiles holds that files are read and written by the caller's tools, and come whole or not at all.
func TestFiles(t *testing.T) {
	for _, test := range []struct {
		name, method, params string
		result               spec.ToolResult
		call                 toolCall
		answer               string
	}{
		{"read", "fs/read_text_file", `"path":"/work/a"`, spec.ToolResult{Text: "1\tone\n2\t\n3\tt\thr\n4\t"},
			toolCall{"file_read", map[string]any{"path": "/work/a"}}, `{"content":"one\n\nt\thr\n\n"}`},
		{"read nothing", "fs/read_text_file", `"path":"/work/a"`, spec.ToolResult{}, toolCall{"file_read", map[string]any{"path": "/work/a"}}, `{"content":""}`},
		{"read as it is", "fs/read_text_file", `"path":"/work/a"`, spec.ToolResult{Text: "shown", Data: json.RawMessage(`"whole"`)},
			toolCall{"file_read", map[string]any{"path": "/work/a"}}, `{"content":"whole"}`},
		{"read some lines", "fs/read_text_file", `"path":"/work/a","line":2,"limit":2`, spec.ToolResult{Text: "2\ttwo\n3\tthree\n\n(showing lines 2–3 of 9)"},
			toolCall{"file_read", map[string]any{"path": "/work/a", "offset": int64(2), "limit": int64(2)}}, `{"content":"two\nthree\n"}`},
		{"a read that was cut", "fs/read_text_file", `"path":"/work/a"`, spec.ToolResult{Text: "1\tone\n\n(showing lines 1–1 of 9)"},
			toolCall{"file_read", map[string]any{"path": "/work/a"}}, `{"code":-32603,"message":"the file is too long to be given whole; ask for fewer lines"}`},
		{"a read with its middle left out", "fs/read_text_file", `"path":"/work/a"`, spec.ToolResult{Text: "1\tone\n[... 7 bytes left out ...]\n9\tx"},
			toolCall{"file_read", map[string]any{"path": "/work/a"}}, `{"code":-32603,"message":"the file is too long to be given whole; ask for fewer lines"}`},
		{"a read that jumps", "fs/read_text_file", `"path":"/work/a"`, spec.ToolResult{Text: "1\tone\n9\tx"},
			toolCall{"file_read", map[string]any{"path": "/work/a"}}, `{"code":-32603,"message":"the file is too long to be given whole; ask for fewer lines"}`},
		{"a refused read", "fs/read_text_file", `"path":"/etc/shadow"`, spec.ToolResult{Text: "outside", IsError: true},
			toolCall{"file_read", map[string]any{"path": "/etc/shadow"}}, `{"code":-32002,"message":"outside"}`},
		{"write", "fs/write_text_file", `"path":"/work/a","content":"x\n"`, spec.ToolResult{Text: "Created"},
			toolCall{"file_write", map[string]any{"path": "/work/a", "content": "x\n"}}, `{}`},
		{"a refused write", "fs/write_text_file", `"path":"a","content":""`, spec.ToolResult{Text: "denied by no-writes", IsError: true},
			toolCall{"file_write", map[string]any{"path": "a", "content": ""}}, `{"code":-32002,"message":"denied by no-writes"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			calls, answers := served(t, test.result, [2]string{test.method, test.params})
			if diff := cmp.Diff([]toolCall{test.call}, calls); diff != "" {
				t.Errorf("call (-want +got):\n%s", diff)
			}
			if answers[0] != test.answer {
				t.Errorf("answered %s, want %s", answers[0], test.answer)
			}
		})
	}
}

// TestTerminal holds that a command is run by the caller's bash, and what is seen of it.
func TestTerminal(t *testing.T) {
	const id = `"terminalId":"terminal-1"`
	for _, test := range []struct {
		name, params string
		result       spec.ToolResult
		command      string
		cwd          any
		exit, output string
	}{
		{"a line", `"command":"make test | tail"`, spec.ToolResult{Text: "ok\n"}, "make test | tail", nil, `{"exitCode":0}`, `{"exitStatus":{"exitCode":0},"output":"ok\n","truncated":false}`},
		{"a program", `"command":"git","args":["log","a b"],"cwd":"/work/sub"`, spec.ToolResult{Text: "no\n(exit code: 128)", IsError: true}, "git log 'a b'", "/work/sub",
			`{"exitCode":128}`, `{"exitStatus":{"exitCode":128},"output":"no\n(exit code: 128)","truncated":false}`},
		{"variables", `"command":"ls","env":[{"name":"A","value":"x y"}]`, spec.ToolResult{Text: "(command exited with code 2, no output)", IsError: true}, "export A='x y'; ls", nil,
			`{"exitCode":2}`, `{"exitStatus":{"exitCode":2},"output":"(command exited with code 2, no output)","truncated":false}`},
		{"a limit of output", `"command":"ls","outputByteLimit":3`, spec.ToolResult{Text: "12é"}, "ls", nil, `{"exitCode":0}`, `{"exitStatus":{"exitCode":0},"output":"2é","truncated":true}`},
		{"refused", `"command":"rm"`, spec.ToolResult{Text: "denied", IsError: true}, "rm", nil, `{"exitCode":1}`, `{"exitStatus":{"exitCode":1},"output":"denied","truncated":false}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			calls, answers := served(t, test.result, [2]string{"terminal/create", test.params}, [2]string{"terminal/wait_for_exit", id},
				[2]string{"terminal/output", id}, [2]string{"terminal/release", id}, [2]string{"terminal/output", id})
			want := toolCall{"bash", map[string]any{"command": test.command, "timeout": int64(terminalTime)}}
			if test.cwd != nil {
				want.Input["cwd"] = test.cwd
			}
			if diff := cmp.Diff([]toolCall{want}, calls); diff != "" {
				t.Errorf("call (-want +got):\n%s", diff)
			}
			wantAnswers := []string{`{"terminalId":"terminal-1"}`, test.exit, test.output, `{}`, `{"code":-32002,"message":"terminal \"terminal-1\" is not known"}`}
			if diff := cmp.Diff(wantAnswers, answers); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("what is no command", func(t *testing.T) {
		calls, answers := served(t, spec.ToolResult{}, [2]string{"terminal/create", `"command":" "`}, [2]string{"terminal/create", `"command":"ls","env":[{"name":"A;rm x","value":""}]`})
		if len(calls) != 0 || !strings.Contains(answers[0], "empty") || !strings.Contains(answers[1], "no shell takes") {
			t.Errorf("%d calls, answers %q", len(calls), answers)
		}
	})
}

// TestTerminalEnds holds that commands end when they are killed and when the turn ends, and are no more than a few.
func TestTerminalEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := 0
		o := Options{Capabilities: []string{Terminal}, Door: func(ctx ctxt, _ string, _ map[string]any) spec.ToolResult {
			<-ctx.Done()
			time.Sleep(time.Second)
			ended++ // terminals end one after the other here: each wait is for one of them
			return spec.ToolResult{Text: "killed", IsError: true}
		}}
		var answers []string
		_, err := turnOf(t, o, func(f *fake) {
			ask := func(method, params string) {
				m := f.request(method, `{"sessionId":"s1",`+params+`}`)
				answers = append(answers, string(m.Result)+string(m.Error))
			}
			ask("terminal/create", `"command":"sleep 9"`)
			ask("terminal/output", `"terminalId":"terminal-1"`)
			ask("terminal/kill", `"terminalId":"terminal-1"`)
			ask("terminal/wait_for_exit", `"terminalId":"terminal-1"`)
			ask("terminal/create", `"command":"sleep 9"`)
			f.say("ok")
			f.end(endTurn)
		})
		want := []string{`{"terminalId":"terminal-1"}`, `{"output":"","truncated":false}`, `{}`, `{"exitCode":1}`, `{"terminalId":"terminal-2"}`}
		if diff := cmp.Diff(want, answers); diff != "" || err != nil || ended != 2 {
			t.Errorf("%d ended, %v; answers (-want +got):\n%s", ended, err, diff)
		}
	})
	release := make(chan bool)
	o := Options{Capabilities: []string{Terminal}, Door: func(ctxt, string, map[string]any) spec.ToolResult { <-release; return spec.ToolResult{} }}
	var last message
	_, err := turnOf(t, o, func(f *fake) {
		for range maxTerminals + 1 {
			last = f.request("terminal/create", `{"sessionId":"s1","command":"ls"}`)
		}
		close(release)
		f.say("ok")
		f.end(endTurn)
	})
	if err != nil || !strings.Contains(string(last.Error), "release some") {
		t.Errorf("one too many: %s %s, %v", last.Result, last.Error, err)
	}
}

// TestOptions holds that options that cannot work are told before anything starts.
func TestOptions(t *testing.T) {
	for _, test := range []struct {
		change func(*Options)
		want   string
	}{
		{func(o *Options) { o.Dir = "work" }, `folder "work" is not absolute`},
		{func(o *Options) { o.Permission = "ask" }, `permission "ask" is not one of gates, reject, auto-approve`},
		{func(o *Options) { o.Capabilities = []string{"shell"} }, `capability "shell" is not one of fs, terminal`},
		{func(o *Options) { o.Capabilities = []string{FS} }, `capability "fs" is offered, and nothing is there to serve it`},
	} {
		a, starts := agentAndStarts(t, Options{}, script{})
		test.change(&a.o)
		_, err := a.Prompt(t.Context(), "go")
		if codeOf(t, err) != CodeOptions || *starts != 0 || !strings.HasSuffix(err.Error(), test.want) {
			t.Errorf("ended with %v after %d starts, want %s", err, *starts, test.want)
		}
	}
}
