package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
)

// progress tells a person on standard error what is going on: one plain line for each change of state. On a terminal
// one line for each running task stands below them and is redrawn in place.
type progress struct {
	app    *app
	redact func(string) string // a denial or a cause may quote what a model wrote
	quiet  bool
	live   bool
	drawn  int   // lines below, to be taken away before the next text
	now    int64 // time of the last result
	width  int
	prices map[string]spec.Price
	tasks  map[string]*taskProgress
	order  []string
}

type taskProgress struct {
	agent  string
	turn   int
	tokens int64
	cost   spec.USD
	tool   string
	denied int
	start  int64
}

func newProgress(a *app, p *spec.Plan, redact func(string) string, quiet bool) *progress {
	pr := &progress{app: a, redact: redact, quiet: quiet, tasks: map[string]*taskProgress{}, prices: map[string]spec.Price{}}
	pr.live = a.width > 0 && a.getenv("TERM") != "dumb" && a.getenv("CI") == ""
	pr.width = a.width - 1
	for i := range p.Agents {
		pr.prices[p.Agents[i].Name], _ = p.Price(&p.Agents[i])
	}
	return pr
}

// watch is called on the engine's goroutine, one effect at a time.
func (p *progress) watch(e *core.Effect, res *core.Result) {
	if p.quiet || e.TaskID == "" {
		return
	}
	if res != nil {
		p.now = res.At
	}
	t := p.tasks[e.TaskID]
	switch {
	case e.Kind == core.Note:
		p.status(e, res)
		return
	case t == nil:
		return
	case e.Kind == core.ModelCall && res == nil:
		t.turn, t.tool = e.Request.Turn, ""
	case e.Kind == core.ModelCall && res.Model != nil && res.Model.Response != nil && res.Model.Response.Usage != nil:
		t.tokens += res.Model.Response.Usage.Total()
		t.cost += p.prices[e.AgentName].Cost(*res.Model.Response.Usage)
	case e.Kind == core.Judge && res.Judged != nil && !res.Judged.Allowed(): // nil: the run was interrupted before
		t.denied++
		p.line("%s: denied %s: %s", e.AgentName, e.Call.Name, firstLine(res.Judged.Text))
	case e.Kind == core.ToolCall && res == nil:
		t.tool = e.Call.Name
	}
	p.redraw()
}

func (p *progress) status(e *core.Effect, res *core.Result) {
	s := e.Status
	switch s.Status {
	case spec.TaskInProgress:
		p.tasks[e.TaskID] = &taskProgress{agent: e.AgentName, start: res.At}
		p.order = append(p.order, e.TaskID)
		p.line("%s: started", e.AgentName)
	case spec.TaskCompleted:
		t := p.tasks[e.TaskID]
		p.line("%s: completed in %d turns, %d tokens", e.AgentName, t.turn, t.tokens)
		p.drop(e.TaskID)
	default:
		p.line("%s: %s: %s", e.AgentName, s.Status, firstLine(s.Cause))
		p.drop(e.TaskID)
	}
	p.redraw()
}

func (p *progress) drop(id string) {
	delete(p.tasks, id)
	p.order = slices.DeleteFunc(p.order, func(o string) bool { return o == id })
}

func (p *progress) line(format string, args ...any) {
	p.clear()
	fmt.Fprintln(p.app.stderr, p.app.outside(p.redact(fmt.Sprintf(format, args...))))
}

// shown is how many running tasks have a line; the rest are counted.
const shown = 8

// redraw shows what is running now.
func (p *progress) redraw() {
	if !p.live {
		return
	}
	p.clear()
	var b strings.Builder
	for i, id := range p.order {
		if i == shown {
			fmt.Fprintf(&b, "  and %d more\n", len(p.order)-shown)
			p.drawn++
			break
		}
		b.WriteString(cutTo(escape(p.redact(p.tasks[id].line(p.now))), p.width) + "\n")
		p.drawn++
	}
	fmt.Fprint(p.app.stderr, b.String())
}

func (t *taskProgress) line(now int64) string {
	s := fmt.Sprintf("  %s  %ds  turn %d  %d tokens", t.agent, (now-t.start)/1000, t.turn, t.tokens)
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
		return string(r[:width])
	}
	return s
}

func (p *progress) clear() {
	if p.drawn > 0 {
		fmt.Fprintf(p.app.stderr, "\x1b[%dA\x1b[J", p.drawn)
		p.drawn = 0
	}
}

func (p *progress) close() { p.clear() }

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
