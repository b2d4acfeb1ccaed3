package graph

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

// Options are what a drawing needs beside the plan.
type Options struct {
	// Escape takes out of a text what could act on whoever shows it. It is called once for each text.
	Escape func(string) string
	// Receipt says what became of the tasks. nil: nothing ran.
	Receipt *spec.Receipt
	// PlanRules are the rules that put the plan before a person, and TaskRules those that do so with a task, by its id.
	PlanRules []string
	TaskRules map[string][]string
}

// Graph is a plan's tasks in layers: each task is below all that it waits for.
type Graph struct {
	team     string
	ran      bool
	asked    []string // rules that put the plan before a person
	tasks    []task
	layers   [][]int // positions in tasks
	edges    int
	required bool // some task fills a required role
}

// task is a node. Its texts are escaped, and on one line.
type task struct {
	id, title, agent string
	role             string   // empty: it fills no required role
	asked            []string // who stands before its start, and before calls in it
	state            string   // of the receipt; empty: there is none
	why              string   // a stop reason other than completed
	after, before    []int    // what it waits for, and what waits for it
	layer, column    int
}

// formats are the names of the ways to draw.
var formats = map[string]func(*Graph, *strings.Builder){"text": text, "mermaid": mermaid, "dot": dot, "svg": svg}

// Formats gives the formats that Draw takes.
func Formats() []string { return []string{"text", "mermaid", "dot", "svg"} }

// Draw writes the graph in a format.
func (g *Graph) Draw(w io.Writer, format string) error {
	draw := formats[format]
	if draw == nil {
		return fmt.Errorf("no format is called %q: %s", format, spec.DidYouMean(format, Formats()))
	}
	var b strings.Builder
	draw(g, &b)
	_, err := io.WriteString(w, b.String())
	return err
}

// New reads the graph of a plan.
func New(p *spec.Plan, o Options) (*Graph, error) {
	flat := func(s string) string { return strings.Join(strings.Fields(o.Escape(s)), " ") }
	g := &Graph{team: flat(p.Team.Name), ran: o.Receipt != nil, asked: flatAll(o.PlanRules, flat), tasks: make([]task, len(p.Tasks))}
	index := make(map[string]int, len(p.Tasks))
	for i := range p.Tasks {
		t := &p.Tasks[i]
		if _, twice := index[t.ID]; twice {
			return nil, fmt.Errorf("two tasks have the id %q", t.ID)
		}
		index[t.ID] = i
	}
	calls := callRules(p)
	for i := range p.Tasks {
		t := &p.Tasks[i]
		n := task{id: flat(t.ID), title: flat(t.Title), agent: flat(t.Assignee), role: flat(t.Role)}
		n.asked = flatAll(slices.Concat(o.TaskRules[t.ID], calls[t.Assignee]), flat)
		for _, id := range t.DependsOn {
			d, ok := index[id]
			if !ok {
				return nil, fmt.Errorf("task %q depends on %q, which is no task", t.ID, id)
			}
			n.after = append(n.after, d)
		}
		g.tasks[i] = n
		g.edges += len(n.after)
		g.required = g.required || n.role != ""
	}
	g.outcomes(o.Receipt, index, flat)
	return g, g.arrange()
}

func flatAll(list []string, flat func(string) string) []string {
	var out []string
	for _, s := range list {
		out = append(out, flat(s))
	}
	return out
}

// callRules gives for each agent the rules that ask a person about calls of tools it has.
func callRules(p *spec.Plan) map[string][]string {
	out := map[string][]string{}
	for i := range p.Agents {
		a := &p.Agents[i]
		has := make(map[string]bool, len(a.Tools))
		for _, t := range a.Tools {
			has[t.Name] = true
		}
		for _, r := range p.Gates.Rules {
			if !r.Asks() || r.Agent != "" && r.Agent != a.Name || slices.Contains(r.ReplacedFor, a.Name) {
				continue
			}
			if slices.ContainsFunc(r.AppliesTo, func(c spec.RuleCost) bool { return has[c.Tool] }) {
				out[a.Name] = append(out[a.Name], r.Name)
			}
		}
	}
	return out
}

// outcomes takes over what a receipt says of the tasks.
func (g *Graph) outcomes(r *spec.Receipt, index map[string]int, flat func(string) string) {
	if r == nil {
		return
	}
	for i := range g.tasks {
		g.tasks[i].state = spec.TaskPending
	}
	for _, t := range r.Tasks {
		if i, ok := index[t.ID]; ok {
			g.tasks[i].state = flat(t.Status)
			if t.StopReason != spec.StopCompleted {
				g.tasks[i].why = flat(string(t.StopReason))
			}
		}
	}
}

// arrange puts every task into the first layer below all that it waits for. Within a layer the order is that of the tasks
// above, by the last that each waits for, which keeps most edges short.
func (g *Graph) arrange() error {
	waits := make([]int, len(g.tasks))
	var ready []int
	for i := range g.tasks {
		waits[i] = len(g.tasks[i].after)
		if waits[i] == 0 {
			ready = append(ready, i)
		}
		for _, d := range g.tasks[i].after {
			g.tasks[d].before = append(g.tasks[d].before, i)
		}
	}
	placed := 0
	for layer := ready; len(layer) > 0; {
		var next []int
		for column, i := range layer {
			g.tasks[i].layer, g.tasks[i].column = len(g.layers), column
			for _, n := range g.tasks[i].before {
				if waits[n]--; waits[n] == 0 {
					next = append(next, n)
				}
			}
		}
		placed += len(layer)
		g.layers = append(g.layers, layer)
		layer = next
	}
	if placed < len(g.tasks) {
		i := slices.IndexFunc(waits, func(n int) bool { return n > 0 })
		return fmt.Errorf("task %q waits for itself: its dependencies come back to it, or to another task that does", g.tasks[i].id)
	}
	return nil
}

// summary says how large the graph is.
func (g *Graph) summary() string {
	return fmt.Sprintf("%s in %s, %s", counted(len(g.tasks), "task", "tasks"), counted(len(g.layers), "layer", "layers"), counted(g.edges, "dependency", "dependencies"))
}

func counted(n int, one, many string) string {
	if n == 1 {
		many = one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// outcome is what became of a task, in words. Empty: nothing ran.
func (t *task) outcome() string {
	if t.why != "" {
		return t.state + ": " + t.why
	}
	return t.state
}

// class is one of the states that a drawing has colours for. Empty: it is another one.
func (t *task) class() string {
	switch t.state {
	case spec.TaskCompleted, spec.TaskFailed, spec.TaskSkipped, spec.TaskPending, spec.TaskInProgress:
		return t.state
	}
	return ""
}

// lines are what stands in a node: title, agent, and what else there is to say.
func (t *task) lines() []string {
	out := []string{first(t.title, t.id), t.agent}
	if t.role != "" {
		out[1] += " (required)"
	}
	if len(t.asked) > 0 {
		out = append(out, "asks a person: "+strings.Join(t.asked, ", "))
	}
	if s := t.outcome(); s != "" {
		out = append(out, s)
	}
	return out
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
