package runtime

import (
	"path/filepath"
	"slices"

	"github.com/open-multi-agent/oma/spec"
)

// watched gives the tasks whose folder is looked at before they start and at the end, with that folder: those of
// required roles that have tools.
func watched(p *spec.Plan) map[string]string {
	agents := p.ByName()
	out := map[string]string{}
	for _, t := range p.Tasks {
		if a := agents[t.Assignee]; t.Role != "" && a != nil && a.Acts() {
			out[t.ID] = a.Cwd
		}
	}
	return out
}

// markWriters marks the trees of folders in which a task that came later, or ran beside, could have written: that
// explains a change. It follows from the plan alone.
func markWriters(p *spec.Plan, trees []spec.Tree) {
	agents, line := p.ByName(), ancestryOf(p)
	writers := map[string][]int{} // tasks by their place, by folder
	for i := range trees {
		t := &trees[i]
		who, known := writers[t.Cwd]
		if !known {
			for k, task := range p.Tasks {
				if a := agents[task.Assignee]; a != nil && mayWrite(p, a, t.Cwd) {
					who = append(who, k)
				}
			}
			writers[t.Cwd] = who
		}
		t.LaterWriter = len(who) > 0 && !line.holds(t.Before, who)
	}
}

// mayWrite says whether an agent reaches into a folder, by itself or by an agent that it delegates to.
func mayWrite(p *spec.Plan, a *spec.PlanAgent, cwd string) bool {
	return writes(p, a, cwd) || a.Has(spec.DelegateTool) && slices.ContainsFunc(p.Agents, func(b spec.PlanAgent) bool { return writes(p, &b, cwd) })
}

// writes says whether an agent's own tools reach into a folder. Programs reach every folder.
func writes(p *spec.Plan, a *spec.PlanAgent, cwd string) bool {
	return a.Consequential() && (a.Starts(p) || a.Containment == "none" || overlap(a.Cwd, cwd))
}

// overlap says whether one folder may be the other or lie in it. Where the default workspace (empty) lies, and how a
// relative and an absolute folder relate, is not known before a run: they may.
func overlap(a, b string) bool { return a == "" || b == "" || within(a, b) || within(b, a) }

func within(a, b string) bool {
	rel, err := filepath.Rel(b, a)
	return err != nil || filepath.IsLocal(rel)
}

// ancestry is which tasks are bound to have ended when another one starts. It is asked for many tasks of a plan, so nothing of
// it is made anew for each.
type ancestry struct {
	index  map[string]int // of tasks, by id
	deps   [][]int
	seen   []int // by task: the number of the last question in which it was come by
	asked  int
	behind []int
}

func ancestryOf(p *spec.Plan) *ancestry {
	a := &ancestry{index: make(map[string]int, len(p.Tasks)), deps: make([][]int, len(p.Tasks)), seen: make([]int, len(p.Tasks))}
	for i := range p.Tasks {
		a.index[p.Tasks[i].ID] = i
	}
	for i := range p.Tasks {
		for _, d := range p.Tasks[i].DependsOn {
			if k, ok := a.index[d]; ok {
				a.deps[i] = append(a.deps[i], k)
			}
		}
	}
	return a
}

// holds says whether all of some tasks are bound to have ended when one starts. Nothing is known of what is no task of the
// plan, and none has ended when it starts itself.
func (a *ancestry) holds(id string, all []int) bool {
	at, ok := a.index[id]
	if !ok || slices.Contains(all, at) {
		return false
	}
	a.asked++
	a.behind = append(a.behind[:0], at)
	for n := 0; n < len(a.behind); n++ {
		for _, d := range a.deps[a.behind[n]] {
			if a.seen[d] != a.asked {
				a.seen[d] = a.asked
				a.behind = append(a.behind, d)
			}
		}
	}
	return !slices.ContainsFunc(all, func(k int) bool { return a.seen[k] != a.asked })
}
