package custom

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// enough is longer than any of these may take on a busy machine.
const enough = 20 * time.Second

func testOptions(t testing.TB) Options {
	dir := t.TempDir()
	return Options{Dir: dir, Credentials: map[string]string{"KEY": "hunter2", "OTHER": "other", "LINES": "a\r\nb"},
		Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "[redacted]") },
		Env: func(name string) (string, bool) {
			v, ok := map[string]string{"PATH": os.Getenv("PATH"), "HOME": "/home/u", "OPENAI_API_KEY": "sk-test", "TMP": dir}[name]
			return v, ok
		}}
}

// open1 opens one tool named t. Nothing of it may be left after the test.
func open1(t testing.TB, o Options, declared spec.CustomTool) runtime.Tool {
	t.Helper()
	o.Tools = map[string]spec.CustomTool{"t": declared}
	list, closer, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := closer.Close(); err != nil {
			t.Error(err)
		}
		for end := time.Now().Add(enough); left(o.Dir); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("a process was left behind")
			}
		}
	})
	return list[0]
}

// left says whether a process lives whose environment has the mark. Where there is no /proc it can see none.
func left(mark string) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		if env, err := os.ReadFile(file); err == nil && bytes.Contains(env, []byte("TMP="+mark)) {
			return true
		}
	}
	return false
}

// invoke makes a call as the door does.
func invoke(t testing.TB, ctx context.Context, tool runtime.Tool, arguments string) spec.ToolResult {
	t.Helper()
	input, err := canon.Arguments(arguments)
	if err != nil {
		t.Fatal(err)
	}
	if tool.Normalise != nil {
		if err := tool.Normalise(input); err != nil {
			t.Fatal(err)
		}
	}
	canonical, err := canon.Bytes(input)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	defer func() {
		if d := time.Since(start); d > enough {
			t.Errorf("took %v", d)
		}
	}()
	return tool.Call(ctx, runtime.Invocation{Input: input, Canonical: canonical})
}

func with(c spec.CustomTool, change func(*spec.CustomTool)) spec.CustomTool { change(&c); return c }

func okText(s string) spec.ToolResult { return spec.ToolResult{Text: s} }
func bad(s string) spec.ToolResult {
	return spec.ToolResult{Text: `Tool "t" failed: ` + s, IsError: true}
}
func kind(k string) func(*spec.CustomTool) { return func(c *spec.CustomTool) { c.Output = k } }
func both(s string) spec.ToolResult        { return spec.ToolResult{Text: s, Data: json.RawMessage(s)} }
