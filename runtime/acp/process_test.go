package acp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/open-multi-agent/oma/spec"
)

// programs are the scripts that run as programs.
func programs() map[string]script {
	ok := func(f *fake) { f.say("ok: " + f.text); f.end(endTurn) }
	ignoreTERM := func() { signal.Ignore(syscall.SIGTERM) }
	forEver := func(f *fake) { time.Sleep(time.Hour) }
	return map[string]script{
		"ordinary": {prompt: ok},
		"exit in a turn": {prompt: func(f *fake) {
			f.say("half")
			fmt.Fprintln(os.Stderr, "panic: password=hunter2")
			os.Exit(3)
		}},
		"killed in a turn":  {prompt: func(f *fake) { syscall.Kill(os.Getpid(), syscall.SIGKILL); time.Sleep(time.Hour) }},
		"closes its output": {prompt: func(f *fake) { os.Stdout.Close(); time.Sleep(time.Hour) }},
		"exit after a turn": {prompt: func(f *fake) { ok(f); os.Exit(0) }},
		"child keeps the pipes": {prompt: func(f *fake) {
			sleeper(f)
			os.Exit(4)
		}},
		"leaves a child":     {prompt: func(f *fake) { sleeper(f); f.end(endTurn) }},
		"ignores everything": {prompt: func(f *fake) { ignoreTERM(); f.say(strconv.Itoa(os.Getpid())); forEver(f) }},
		"big line":           {prompt: func(f *fake) { f.say(strings.Repeat("x", 20<<20)); f.end(endTurn) }},
		"environment":        {prompt: func(f *fake) { f.say(strings.Join(os.Environ(), "\n")); f.end(endTurn) }},
		"echo":               {prompt: func(f *fake) { f.say("x"); f.end(endTurn) }},
	}
}

// sleeper starts a process that outlives its parent, and says its number.
func sleeper(f *fake) {
	cmd := exec.Command("sleep", "300")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err == nil {
		f.say(strconv.Itoa(cmd.Process.Pid))
	}
}

// ended waits for the end of a process. Killing is not dying: that takes the system a moment.
func ended(t *testing.T, number string) bool {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if !alive(t, number) {
			return true
		}
	}
	return false
}

// alive also knows a dead process that nobody has collected, as in a container without an init.
func alive(t *testing.T, number string) bool {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(number))
	if err != nil {
		t.Fatalf("%q is no process", number)
	}
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

const shortGrace = 100 * time.Millisecond

// TestAC02 holds that the end of the program ends the prompt, and is named.
func TestAC02(t *testing.T) {
	for _, test := range []struct {
		mode string
		want []string
	}{
		{"exit in a turn", []string{`agent "coder"`, "exited with code 3 while the prompt ran", "panic: password=[redacted]"}},
		{"killed in a turn", []string{"signal 9"}},
		{"closes its output", []string{"the agent closed its output, and was ended"}},
		{"child keeps the pipes", []string{"exited with code 4"}},
	} {
		t.Run(test.mode, func(t *testing.T) {
			o := Options{Name: "coder", Grace: shortGrace, Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "[redacted]") }}
			a := program(t, test.mode, o)
			r, err := a.Prompt(t.Context(), "go")
			if codeOf(t, err) != CodeDied || r.Stop != spec.StopError || !err.(*Error).Retryable {
				t.Fatalf("ended with %+v", err)
			}
			wantText(t, err.Error(), test.want...)
			if test.mode == "exit in a turn" && r.Output != "half" {
				t.Errorf("output %q was not kept", r.Output)
			}
			if test.mode == "child keeps the pipes" && !ended(t, r.Output) {
				t.Error("what the agent started is left")
			}
			a.Close()
		})
	}
}

// TestStart holds that a program that does not start says why.
func TestStart(t *testing.T) {
	for _, test := range []struct {
		name    string
		command []string
		code    string
		want    string
	}{
		{"absent", []string{"no-such-agent"}, CodeStart, "no-such-agent"},
		{"exits at once", []string{"sh", "-c", "echo wrong version >&2; exit 7"}, CodeDied, "exited with code 7 while it was greeted: wrong version"},
		{"is no agent", []string{"sh", "-c", "yes"}, CodeProtocol, "sent more than 10000 lines that are no message"},
		{"no command", nil, CodeOptions, "no command"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := New(Options{Name: "coder", Command: test.command, Dir: t.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH")}, Grace: shortGrace})
			defer a.Close()
			_, err := a.Prompt(t.Context(), "go")
			if codeOf(t, err) != test.code {
				t.Fatalf("ended with %v, want code %s", err, test.code)
			}
			wantText(t, err.Error(), test.want)
		})
	}
}

// TestRestart holds that a program that died is started once more, with the system prompt, and no more than that.
func TestRestart(t *testing.T) {
	a := program(t, "exit after a turn", Options{SystemPrompt: "Be brief.", Grace: shortGrace})
	for i, restarted := range []bool{false, true} {
		r, err := a.Prompt(t.Context(), "go")
		if err != nil || r.Output != "ok: Be brief.\n\ngo" || r.Restarted != restarted {
			t.Fatalf("prompt %d: %+v, %v", i+1, r, err)
		}
		<-a.live.child.done // it exits after its answer
	}
	_, err := a.Prompt(t.Context(), "go")
	if codeOf(t, err) != CodeGone || err.(*Error).Retryable {
		t.Errorf("a third start ended with %v", err)
	}
}

// TestNothingLeft holds that Close ends everything, the unwilling too.
func TestNothingLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("a child of the agent", func(t *testing.T) {
		a := program(t, "leaves a child", Options{Grace: shortGrace})
		r, err := a.Prompt(t.Context(), "go")
		if err != nil || !alive(t, r.Output) {
			t.Fatalf("%+v, %v", r, err)
		}
		a.Close()
		if !ended(t, r.Output) {
			t.Error("it is left")
		}
	})
	t.Run("an agent that ignores cancelling and SIGTERM", func(t *testing.T) {
		number := make(chan string, 1)
		a := program(t, "ignores everything", Options{Grace: shortGrace, Update: func(u Update) { number <- u.Text }})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { pid := <-number; cancel(); number <- pid }()
		r, err := a.Prompt(ctx, "go")
		pid := <-number
		if codeOf(t, err) != CodeCancelled || r.Stop != spec.StopCancelled || !ended(t, pid) {
			t.Errorf("ended with %v, or is left", err)
		}
		wantText(t, err.Error(), "was killed")
		a.Close()
	})
	t.Run("closed while a prompt runs", func(t *testing.T) {
		number := make(chan string, 1)
		a := program(t, "ignores everything", Options{Grace: shortGrace, Update: func(u Update) { number <- u.Text }})
		go func() { pid := <-number; number <- pid; a.Close() }()
		_, err := a.Prompt(t.Context(), "go")
		if pid := <-number; codeOf(t, err) != CodeGone || !ended(t, pid) {
			t.Errorf("ended with %v, or is left", err)
		}
		if _, err := a.Prompt(t.Context(), "go"); codeOf(t, err) != CodeGone {
			t.Errorf("a prompt after Close ended with %v", err)
		}
	})
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if runtime.NumGoroutine() <= before {
			return
		}
	}
	buf := make([]byte, 1<<20)
	t.Errorf("goroutines are left:\n%s", buf[:runtime.Stack(buf, true)])
}

// TestBigLine holds that a line of 20 MiB is read whole and its text kept within bounds.
func TestBigLine(t *testing.T) {
	size := 0
	a := program(t, "big line", Options{Update: func(u Update) { size += len(u.Text) }})
	r, err := a.Prompt(t.Context(), "go")
	if err != nil || size != 20<<20 || len(r.Output) > 2*keepBytes+100 {
		t.Errorf("read %d bytes, kept %d: %v", size, len(r.Output), err)
	}
}

// TestEnvironment holds that an agent gets what it is given and nothing else.
func TestEnvironment(t *testing.T) {
	t.Setenv("ACP_TEST_SECRET", "hunter2")
	a := program(t, "environment", Options{Env: []string{"A=b"}})
	r, err := a.Prompt(t.Context(), "go")
	if err != nil || strings.Contains(r.Output, "hunter2") || !strings.Contains(r.Output, "A=b") {
		t.Errorf("environment %q, %v", r.Output, err)
	}
}

func TestErrorUnwraps(t *testing.T) {
	_, err := turnOf(t, Options{}, func(f *fake) {
		f.line(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"Internal error","data":{"details":"bad request"}}}`, f.id)
	})
	rpc, ok := errors.AsType[*RPCError](err)
	if !ok || rpc.Code != codeInternal || rpc.Data != `{"details":"bad request"}` {
		t.Errorf("error %v holds %+v", err, rpc)
	}
}
