package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
)

// screen is a terminal as far as progress uses one. Lines that are too long are broken, also when it becomes narrower.
type screen struct {
	cols, rows int
	lines      []string // what was printed, broken at line ends only; the last is the cursor's
}

var control = regexp.MustCompile(`\x1b\[(\d+)A\x1b\[J|\n|[^\x1b\n]+`)

func (s *screen) Write(b []byte) (int, error) {
	for _, m := range control.FindAllStringSubmatch(string(b), -1) {
		switch {
		case m[1] != "":
			up, _ := strconv.Atoi(m[1])
			for taken := 0; taken < up; {
				last := len(s.lines) - 2
				taken += s.height(s.lines[last])
				s.lines = append(s.lines[:last], "")
			}
		case m[0] == "\n":
			s.lines = append(s.lines, "")
		default:
			s.lines[len(s.lines)-1] += m[0]
		}
	}
	return len(b), nil
}

func (s *screen) height(line string) int { return max(1, (len(line)+s.cols-1)/s.cols) }

// below gives the lines that stand below the last plain one.
func (s *screen) below() (lines []string) {
	for _, l := range s.lines {
		if strings.HasPrefix(l, "  ") {
			lines = append(lines, l)
		}
	}
	return lines
}

// watched gives a progress on a screen, and a clock whose ticks the test makes.
func watched(s *screen) (p *progress, ticks chan time.Time, stopped *bool) {
	s.lines = []string{""}
	ticks, stopped = make(chan time.Time), new(bool)
	a := &app{stderr: s, lookup: func(string) (string, bool) { return "", false }, size: func() (int, int) { return s.cols, s.rows },
		tick: func() (<-chan time.Time, func()) { return ticks, func() { *stopped = true } }}
	return newProgress(a, &spec.Plan{}, func(s string) string { return s }, false), ticks, stopped
}

func status(p *progress, n int, to string) {
	e := &core.Effect{Kind: core.Note, TaskID: fmt.Sprintf("t%d", n), AgentName: fmt.Sprintf("agent%d", n), Status: &core.TaskStatus{Status: to}}
	p.watch(e, &core.Result{At: 1000})
}

// With more tasks than rows the lines that are drawn all fit on the screen, and so are all taken away again.
func TestProgressFitsTheScreen(t *testing.T) {
	for rows, want := range map[int][]string{
		1:  nil,
		2:  {"  and 30 more"},
		5:  {"  agent0  0s  turn 0  0 tokens", "  agent1  0s  turn 0  0 tokens", "  agent2  0s  turn 0  0 tokens", "  and 27 more"},
		50: {"  agent0", "  agent1", "  agent2", "  agent3", "  agent4", "  agent5", "  agent6", "  agent7", "  and 22"},
	} {
		t.Run(fmt.Sprint(rows), func(t *testing.T) {
			s := &screen{cols: 80, rows: rows}
			if rows == 50 {
				s.cols = 9
			}
			p, _, _ := watched(s)
			for n := range 30 {
				status(p, n, spec.TaskInProgress)
			}
			if diff := cmp.Diff(want, s.below()); diff != "" {
				t.Error(diff)
			}
			if n := len(s.below()) + 1; rows > 1 && n > rows {
				t.Errorf("%d rows are drawn on, of %d", n, rows)
			}
			p.close()
			if got := s.below(); got != nil || len(s.lines) != 31 {
				t.Errorf("%d lines are left: %q", len(s.lines), got)
			}
		})
	}
}

// A change of the window's size is seen at the next line that is drawn.
func TestProgressFollowsTheWindow(t *testing.T) {
	s := &screen{cols: 80, rows: 24}
	p, _, _ := watched(s)
	for n := range 4 {
		status(p, n, spec.TaskInProgress)
	}
	s.cols, s.rows = 20, 5 // each line is broken into two, which is more than the window has
	status(p, 3, spec.TaskCompleted)
	if got, want := s.below(), []string{"  agent0  0s  turn ", "  agent1  0s  turn ", "  agent2  0s  turn "}; !cmp.Equal(got[len(got)-3:], want) {
		t.Errorf("got %q, want %q", got, want)
	}
	s.cols, s.rows = 80, 24
	status(p, 4, spec.TaskInProgress)
	if got := s.below(); len(got) < 4 || got[len(got)-1] != "  agent4  0s  turn 0  0 tokens" {
		t.Errorf("got %q", got)
	}
	p.close()
}

// Time moves on while a task runs and nothing else happens, and nothing moves once the run is over.
func TestProgressTicks(t *testing.T) {
	s := &screen{cols: 80, rows: 24}
	p, ticks, stopped := watched(s)
	status(p, 0, spec.TaskInProgress)
	for second := range 4 { // a tick is taken once the one before it was drawn
		ticks <- time.UnixMilli(1000 + int64(second)*1000)
	}
	p.mu.Lock()
	got := s.below()
	p.mu.Unlock()
	if len(got) != 1 || got[0] < "  agent0  2s  turn 0  0 tokens" {
		t.Errorf("after three seconds: %q", got)
	}
	p.close()
	if !*stopped {
		t.Error("the clock was not stopped")
	}
	select {
	case ticks <- time.UnixMilli(9000):
		t.Error("somebody still waits for the time")
	default:
	}
	if s.below() != nil {
		t.Errorf("left: %q", s.below())
	}
}

// Nothing ticks away from a terminal, nor where lines are not redrawn.
func TestProgressWithoutTerminal(t *testing.T) {
	for name, a := range map[string]*app{
		"no terminal": {lookup: func(string) (string, bool) { return "", false }},
		"dumb":        {lookup: func(n string) (string, bool) { return "dumb", n == "TERM" }, size: func() (int, int) { return 80, 24 }},
		"job":         {lookup: func(n string) (string, bool) { return "true", n == "CI" }, size: func() (int, int) { return 80, 24 }},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			a.stderr = &out
			a.tick = func() (<-chan time.Time, func()) { t.Error("it ticks"); return nil, func() {} }
			p := newProgress(a, &spec.Plan{}, func(s string) string { return s }, false)
			status(p, 0, spec.TaskInProgress)
			status(p, 0, spec.TaskCompleted)
			p.close()
			if got := out.String(); got != "agent0: started\nagent0: completed in 0 turns, 0 tokens\n" {
				t.Errorf("%q", got)
			}
		})
	}
}

// Usage that nobody reported is shown as what it is.
func TestProgressEstimates(t *testing.T) {
	s := &screen{cols: 80, rows: 24}
	p, _, _ := watched(s)
	status(p, 0, spec.TaskInProgress)
	e := &core.Effect{Kind: core.ModelCall, TaskID: "t0", AgentName: "agent0", Request: &spec.ModelRequest{Turn: 1, System: strings.Repeat("s", 300)}}
	p.watch(e, nil)
	p.watch(e, &core.Result{At: 1000, Model: &core.ModelResult{Response: &spec.ModelResponse{Message: spec.Message{Text: strings.Repeat("a", 30)}}}})
	if got, want := s.below(), []string{"  agent0  0s  turn 1  ~112 tokens (estimated)"}; !cmp.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	status(p, 0, spec.TaskCompleted)
	if got, want := s.lines[len(s.lines)-2], "agent0: completed in 1 turns, ~112 tokens (estimated)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	p.close()
}

// What a progress line has said of a task, the summary does not say again.
func TestSummarySaysNothingTwice(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"team.yaml": `apiVersion: oma/v1
kind: Team
name: fails
goal: Look.
providers: {demo: {kind: scripted, cassette: tape.yaml}}
agents: [{name: w, provider: demo, systemPrompt: You look.}]
`, "tape.yaml": `apiVersion: oma/v1
kind: Cassette
name: fails
agents: {w: [{error: {status: 400, code: X, message: no such model}}]}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, errs, _ := call(t, 0, "run", "--state", t.TempDir(), filepath.Join(dir, "team.yaml"))
	if n := strings.Count(errs, "no such model"); n != 1 {
		t.Errorf("said %d times:\n%s", n, errs)
	}
}
