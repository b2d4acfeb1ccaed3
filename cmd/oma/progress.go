package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
)

// progress tells a person on standard error what is going on: one plain line for each change of state. On a terminal
// one line for each running task stands below them and is redrawn in place, at each change and once a second.
type progress struct {
	app     *app
	redact  func(string) string // a denial or a cause may quote what a model wrote
	quiet   bool
	live    bool
	prices  map[string]spec.Price
	outside map[string]bool // agents that are programs
	stop    func()          // ends the ticks and waits until nothing is drawn any more; nil: there are none

	mu    sync.Mutex // guards what follows, and standard error while lines are drawn
	drawn []int      // runes of each line below, to be taken away before the next text
	now   int64      // milliseconds since 1970: of the last result or tick
	tasks map[string]*taskProgress
	order []string

	asking bool // a question stands below: what there is to say is kept back
	kept   strings.Builder

	recalling bool // what is seen happened in an earlier attempt

	causes []string // that were printed, of tasks that did not complete: alone, and after the agent's name
}

type taskProgress struct {
	agent   string
	outside bool // it is a program
	turn    int
	tokens  int64
	cost    spec.USD
	tool    string
	denied  int
	start   int64

	estimated bool  // some of tokens was not reported
	counted   int   // messages whose bytes are counted
	bytes     int64 // of the request so far, for the estimate
}

func newProgress(a *app, p *spec.Plan, redact func(string) string, quiet bool) *progress {
	pr := &progress{app: a, redact: redact, quiet: quiet, tasks: map[string]*taskProgress{}, prices: map[string]spec.Price{}, outside: map[string]bool{}}
	pr.live = a.size != nil && a.getenv("TERM") != "dumb" && a.getenv("CI") == ""
	for i := range p.Agents {
		pr.prices[p.Agents[i].Name], _ = p.Price(&p.Agents[i])
		pr.outside[p.Agents[i].Name] = p.Agents[i].Backend != nil
	}
	return pr
}

// recall is watch for what an earlier attempt of the run has done: it counts, and nothing of it is printed.
func (p *progress) recall(e *core.Effect, res *core.Result) {
	p.recalling = true
	defer func() { p.recalling = false }()
	if e.Kind == core.ModelCall || e.Kind == core.ToolCall {
		p.watch(e, nil)
	}
	p.watch(e, res)
}

// watch is called on the engine's goroutine, one effect at a time.
func (p *progress) watch(e *core.Effect, res *core.Result) {
	if p.quiet || e.TaskID == "" && e.Kind != core.Approval {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if res != nil {
		p.now = max(p.now, res.At)
	}
	t := p.tasks[e.TaskID]
	switch {
	case e.Kind == core.Note:
		p.status(e, res)
		return
	case e.Kind == core.Approval:
		p.approval(e, res)
	case t == nil:
		return
	case e.Kind == core.ModelCall && res == nil:
		t.turn, t.tool = e.Request.Turn, ""
	case e.Kind == core.ModelCall && res.Model != nil && res.Model.Response != nil:
		used := t.usage(e.Request, res.Model.Response)
		t.tokens += used.Total()
		t.cost += p.prices[e.AgentName].Cost(used)
		if said := res.Model.Response.Cost; said != nil {
			t.cost = spec.AddCapped(t.cost, *said)
		}
	case e.Kind == core.Judge && res.Judged != nil && !res.Judged.Allowed() && !res.Judged.Waits(): // nil: the run was interrupted before
		t.denied++
		p.line("%s: denied %s: %s", e.AgentName, e.Call.Name, firstLine(res.Judged.Text))
	case e.Kind == core.ToolCall && res == nil:
		t.tool = e.Call.Name
	}
	p.redraw()
}

// approval says what people are asked, and what they said.
func (p *progress) approval(e *core.Effect, res *core.Result) {
	what := "the plan"
	switch {
	case e.Call != nil:
		what = e.AgentName + ": " + e.Call.Name
	case e.Task != nil:
		what = e.AgentName + ": the start"
		if e.Ask.Again {
			what = e.AgentName + ": starting it again, as it was at work when the run ended,"
		}
	}
	switch {
	case res == nil:
		p.line("%s waits for a person", what)
	case res.Approval == nil || res.Cancelled:
	case res.Approval.Decision == spec.ApprovalExpired:
		p.line("%s was approved by nobody in time", what)
	default:
		p.line("%s was %s", what, res.Approval.Decision)
	}
}

func (p *progress) status(e *core.Effect, res *core.Result) {
	s := e.Status
	if s.StopReason == spec.StopSuspended { // what it waits for was said
		p.drop(e.TaskID)
		p.redraw()
		return
	}
	switch s.Status {
	case spec.TaskInProgress:
		if t := p.tasks[e.TaskID]; s.Attempt > 1 && t != nil {
			p.line("%s: attempt %d, after: %s", e.AgentName, s.Attempt, firstLine(s.Cause))
			t.counted, t.bytes = 0, 0 // a new conversation
			break
		}
		p.tasks[e.TaskID] = &taskProgress{agent: e.AgentName, start: res.At, outside: p.outside[e.AgentName]}
		p.order = append(p.order, e.TaskID)
		if s.Caller != "" {
			p.line("%s: started for %s", e.AgentName, s.Caller)
		} else {
			p.line("%s: started", e.AgentName)
		}
		p.start()
	case spec.TaskCompleted:
		t := p.tasks[e.TaskID]
		p.line("%s: completed%s, %s", e.AgentName, t.turns(" in %d turns"), t.used())
		p.drop(e.TaskID)
	default:
		p.line("%s: %s: %s", e.AgentName, s.Status, firstLine(s.Cause))
		if s.Caller == "" { // what became of a delegated run does not end the run
			p.causes = append(p.causes, p.redact(s.Cause), p.redact(e.AgentName+": "+s.Cause))
		}
		p.drop(e.TaskID)
	}
	p.redraw()
}

func (p *progress) drop(id string) {
	delete(p.tasks, id)
	p.order = slices.DeleteFunc(p.order, func(o string) bool { return o == id })
}

// start begins to move the time on, once something runs that takes some.
func (p *progress) start() {
	if !p.live || p.stop != nil {
		return
	}
	ticks, stop := p.app.tick()
	end, ended := make(chan struct{}), make(chan struct{})
	p.stop = func() {
		stop()
		close(end)
		<-ended
	}
	go func() {
		defer close(ended)
		for {
			select {
			case t := <-ticks:
				p.elapse(t)
			case <-end:
				return
			}
		}
	}()
}

func (p *progress) elapse(t time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = max(p.now, t.UnixMilli())
	if len(p.order) > 0 {
		p.redraw()
	}
}

// close is called when no more effects come. Nothing is drawn after it.
func (p *progress) close() {
	if p.stop != nil {
		p.stop()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write("")
}

// announce prints a line of the program's own, whatever is kept quiet.
func (p *progress) announce(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line("%s", text)
	p.redraw()
}

func (p *progress) line(format string, args ...any) {
	if p.recalling {
		return
	}
	text := p.app.outside(p.redact(fmt.Sprintf(format, args...))) + "\n"
	if p.asking {
		p.kept.WriteString(text)
		return
	}
	p.write(text)
}

// hold shows a question's text and keeps everything else back until it was answered. One that cannot be drawn over stands
// where it is.
func (p *progress) hold(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write(text)
	p.asking = true
}

// release goes on below the question.
func (p *progress) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking = false
	p.write(p.kept.String())
	p.kept.Reset()
	p.redraw()
}

// maxLines is how many running tasks have a line at most; the rest are counted.
const maxLines = 8

// redraw shows what is running now, in what the terminal has room for now: above the cursor's own line, and with one more
// for the count. What does not fit on the screen could not be taken away again.
func (p *progress) redraw() {
	if !p.live || p.recalling || p.asking {
		return
	}
	cols, rows := p.app.size()
	room := min(maxLines, max(0, rows-2), len(p.order))
	var lines []string
	for _, id := range p.order[:room] {
		lines = append(lines, escape(p.redact(p.tasks[id].line(p.now))))
	}
	if rest := len(p.order) - room; rest > 0 && rows > 1 {
		lines = append(lines, fmt.Sprintf("  and %d more", rest))
	}
	var b strings.Builder
	var drawn []int
	for _, line := range lines {
		line = cutTo(line, cols-1)
		b.WriteString(line + "\n")
		drawn = append(drawn, utf8.RuneCountInString(line))
	}
	p.write(b.String())
	p.drawn = drawn
}

// write puts text in the place of the lines below, in one piece so that nothing flickers.
func (p *progress) write(text string) {
	if text = p.erase() + text; text != "" {
		fmt.Fprint(p.app.stderr, text)
	}
}

// erase takes the lines below away. In a window that has become narrower since, each takes the rows it was broken into.
func (p *progress) erase() string {
	if len(p.drawn) == 0 {
		return ""
	}
	cols, rows := p.app.size()
	up := 0
	for _, n := range p.drawn {
		up += max(1, (n+cols-1)/cols)
	}
	p.drawn = nil
	if up = min(up, rows-1); up < 1 {
		return "\r\x1b[J"
	}
	return fmt.Sprintf("\x1b[%dA\x1b[J", up)
}

// usage is what an answer reports as used, else a third of the bytes of request and answer, as the ledger takes it.
func (t *taskProgress) usage(q *spec.ModelRequest, r *spec.ModelResponse) spec.Usage {
	if t.counted > len(q.Messages) { // the conversation has become shorter
		t.counted, t.bytes = 0, 0
	}
	if t.counted == 0 {
		t.bytes = int64(len(q.System))
		for _, tool := range q.Tools {
			t.bytes += int64(len(tool.Name) + len(tool.Description) + len(tool.InputSchema))
		}
	}
	if r.Usage != nil {
		return *r.Usage
	}
	for ; t.counted < len(q.Messages); t.counted++ {
		b, _ := json.Marshal(q.Messages[t.counted]) // plain strings and booleans cannot fail to encode
		t.bytes += int64(len(b))
	}
	t.estimated = true
	out := len(r.Message.Text) + len(r.Message.Reasoning)
	for _, c := range r.Message.ToolCalls {
		out += len(c.Name) + len(c.Arguments)
	}
	return spec.Usage{Input: t.bytes/3 + 1, Output: int64(out)/3 + 1}
}

func tokensText(n int64, estimated bool) string {
	if estimated {
		return fmt.Sprintf("~%d tokens (estimated)", n)
	}
	return fmt.Sprintf("%d tokens", n)
}

// turns says it of a model. How often a program turns to its own model nobody knows.
func (t *taskProgress) turns(format string) string {
	if t.outside {
		return ""
	}
	return fmt.Sprintf(format, t.turn)
}

func (t *taskProgress) used() string {
	if t.outside && (t.estimated || t.tokens == 0) {
		return "usage not reported"
	}
	return tokensText(t.tokens, t.estimated)
}

func (t *taskProgress) line(now int64) string {
	s := fmt.Sprintf("  %s  %ds%s  %s", t.agent, (now-t.start)/1000, t.turns("  turn %d"), t.used())
	if t.cost > 0 {
		s += "  $" + t.cost.String()
	}
	if t.denied > 0 {
		s += fmt.Sprintf("  %d denied", t.denied)
	}
	if t.tool != "" {
		s += "  " + t.tool
	}
	return s
}

// cutTo keeps a line from wrapping, which would break the redrawing.
func cutTo(s string, width int) string {
	if r := []rune(s); len(r) > width {
		return string(r[:max(0, width)])
	}
	return s
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
