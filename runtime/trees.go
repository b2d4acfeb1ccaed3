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
	agents := p.ByName()
	writers := map[string][]string{} // tasks, by folder
	for i := range trees {
		t := &trees[i]
		ids, known := writers[t.Cwd]
		if !known {
			for _, task := range p.Tasks {
				if a := agents[task.Assignee]; a != nil && mayWrite(p, a, t.Cwd) {
					ids = append(ids, task.ID)
				}
			}
			writers[t.Cwd] = ids
		}
		t.LaterWriter = false
		if len(ids) > 0 {
			ended := ancestors(p, t.Before)
			t.LaterWriter = slices.ContainsFunc(ids, func(id string) bool { return !ended[id] })
		}
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

// ancestors are the tasks that are bound to have ended when this one starts.
func ancestors(p *spec.Plan, id string) map[string]bool {
	deps := map[string][]string{}
	for _, t := range p.Tasks {
		deps[t.ID] = t.DependsOn
	}
	seen, queue := map[string]bool{}, slices.Clone(deps[id])
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if !seen[at] {
			seen[at] = true
			queue = append(queue, deps[at]...)
		}
	}
	return seen
}
