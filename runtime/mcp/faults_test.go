//go:build unix

package mcp

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// faults are what a server does wrong in a process of its own, by name: at its start, or in a call.
var faults = map[string]func(f *fake){
	"dies while it reads":      inCall(func(f *fake, id string) { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }),
	"dies while it answers":    inCall(func(f *fake, id string) { fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","id":%s,"res`, id); os.Exit(4) }),
	"dies after its answer":    inCall(func(f *fake, id string) { f.answer(id, through); os.Exit(4) }),
	"hangs":                    inCall(func(f *fake, id string) { time.Sleep(time.Hour) }),
	"floods stdout":            inCall(func(f *fake, id string) { flood(os.Stdout, "noise\n", 4<<20); f.answer(id, through) }),
	"floods stdout for ever":   inCall(func(f *fake, id string) { flood(os.Stdout, "noise\n", 1<<62) }),
	"writes one line for ever": inCall(func(f *fake, id string) { flood(os.Stdout, "noise", 1<<62) }),
	"floods stderr":            inCall(func(f *fake, id string) { flood(os.Stderr, "noise\n", 4<<20); f.answer(id, through) }),
	"floods stderr for ever":   inCall(func(f *fake, id string) { flood(os.Stderr, "noise\n", 1<<62) }),
	"closes its input":         inCall(func(f *fake, id string) { os.Stdin.Close(); f.answer(id, through); time.Sleep(time.Hour) }),
	"leaves a grandchild with the pipes": inCall(func(f *fake, id string) {
		child := exec.Command("sleep", "600")
		child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
		if child.Start() == nil {
			os.Exit(5)
		}
	}),
	"ignores SIGTERM": func(f *fake) {
		signal.Ignore(syscall.SIGTERM)
		inCall(func(f *fake, id string) { time.Sleep(time.Hour) })(f)
	},
	"writes what is no UTF-8": inCall(func(f *fake, id string) { f.answer(id, "{\"content\":[{\"type\":\"text\",\"text\":\"caf\xe9\"}]}") }),
	"does not read": func(f *fake) {
		f.list = func(f *fake, _ string) string {
			f.say(`{"jsonrpc":"2.0","id":2,"result":{"tools":[%s]}}`, echoTool)
			time.Sleep(time.Hour)
			return ""
		}
	},
}

const through = `{"content":[{"type":"text","text":"through"}]}`

func inCall(do func(f *fake, id string)) func(*fake) {
	return func(f *fake) {
		f.call = func(f *fake, id, _, _ string) string { do(f, id); return "" }
	}
}

func flood(w io.Writer, text string, n int) {
	text = strings.Repeat(text, 1000)
	for ; n > 0; n -= len(text) {
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
	}
}

// Whatever a server does to its pipes and to whoever waits for it, a call ends with a reason of its own, the next one with that
// the server has gone, and nothing of it is left when the client is closed.
func TestFaults(t *testing.T) {
	const short, enough = 2 * time.Second, 20 * time.Second
	late := "no answer to tools/call within 2s"
	for _, c := range []struct {
		name        string
		limit       time.Duration
		first, next string // what two calls give, up to what a flood left of it; next empty: one is enough
	}{
		{"dies while it reads", enough, "tools/call failed: the server died of signal 9, killed", "tools/call failed: the server died of signal 9, killed"},
		{"dies while it answers", enough, "tools/call failed: the server exited with code 4", "tools/call failed: the server exited with code 4"},
		{"dies after its answer", enough, "through", "tools/call failed: the server exited with code 4"},
		{"hangs", short, late, ""},
		{"floods stdout", enough, "through", "through"},
		{"floods stdout for ever", short, late, ""},
		{"writes one line for ever", enough, "tools/call failed: a message is over 64 MiB", "tools/call failed: the server died of signal 13, broken pipe"},
		{"floods stderr", enough, "through", "through"},
		{"floods stderr for ever", short, late, ""},
		{"closes its input", enough, "through", "tools/call failed: the server has closed its input and still runs"},
		{"leaves a grandchild with the pipes", enough, "tools/call failed: the server exited with code 5", "tools/call failed: the server exited with code 5"},
		{"ignores SIGTERM", short, late, ""},
		{"writes what is no UTF-8", enough, "caf\uFFFD", "caf\uFFFD"},
		{"does not read", short, late, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := program(t, c.name)
			o.RequestTimeout = c.limit
			mark := "TMP=" + o.Dir
			o.Env = append(o.Env, mark)
			client, err := Open(t.Context(), "s", o)
			if err != nil {
				t.Fatal(err)
			}
			echo := tool(t, client)
			for i, want := range []string{c.first, c.next} {
				if want == "" {
					continue
				}
				start := time.Now()
				got := invoke(t.Context(), echo, `{"text":"`+strings.Repeat("x", 1<<20)+`"}`).Text // more than any pipe holds
				if took := time.Since(start); took > enough {
					t.Errorf("call %d took %v", i+1, took)
				}
				got, _, _ = strings.Cut(strings.TrimPrefix(got, `MCP tool "echo" failed: MCP server "s": `), ";")
				if got != want {
					t.Errorf("call %d: got %.300q, want %q", i+1, got, want)
				}
			}
			start := time.Now()
			client.Close()
			if took := time.Since(start); took > enough {
				t.Errorf("closing took %v", took)
			}
			for end := time.Now().Add(enough); left(mark); time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("a process was left behind")
				}
			}
		})
	}
}

// left says whether a process lives whose environment has a text. Where there is no /proc it can see none.
func left(text string) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		if env, err := os.ReadFile(file); err == nil && bytes.Contains(env, []byte(text)) {
			return true
		}
	}
	return false
}
