package runtime

import (
	"fmt"
	"slices"

	"github.com/open-multi-agent/oma/policies/roster"
	"github.com/open-multi-agent/oma/spec"
)

// TaskView is one task of a plan, who could do it, and who does.
type TaskView struct {
	spec.PlanTask
	Strategy   string      `json:"strategy,omitempty"` // by which agents are chosen for tasks that name none
	Candidates []Candidate `json:"candidates"`         // every agent of the team, in its order
	Feeds      []string    `json:"feeds"`              // the tasks that depend on it
}

// Candidate is what selection finds of one agent.
type Candidate struct {
	Agent string   `json:"agent"`
	Fit   float64  `json:"fit"`             // by words and capabilities. 0 too: it lacks something
	Lacks []string `json:"lacks,omitempty"` // why it cannot do the task
}

// TaskOf gives the view of a task, by its place in the plan, from 0, or by its id. nil: there is none.
func TaskOf(p *spec.Plan, at any) *TaskView {
	i, byPlace := at.(int)
	if !byPlace {
		i = slices.IndexFunc(p.Tasks, func(t spec.PlanTask) bool { return t.ID == fmt.Sprint(at) })
	}
	if i < 0 || i >= len(p.Tasks) {
		return nil
	}
	v := &TaskView{PlanTask: p.Tasks[i], Strategy: p.Scheduling.Strategy, Candidates: []Candidate{}, Feeds: []string{}}
	if v.Strategy == "" {
		v.Strategy = roster.DependencyFirst
	}
	_, all := roster.Best(subject(&v.PlanTask), v.Requires, rosterAll(p))
	for _, a := range all {
		v.Candidates = append(v.Candidates, Candidate{a.Agent, a.Score, a.Lacks})
	}
	for _, t := range p.Tasks {
		if slices.Contains(t.DependsOn, v.ID) {
			v.Feeds = append(v.Feeds, t.ID)
		}
	}
	return v
}

// subject is the text by which agents are held against a task.
func subject(t *spec.PlanTask) string { return t.Title + "\n" + t.Description }

// rosterAll are the agents of a plan as selection sees them.
func rosterAll(p *spec.Plan) []roster.Agent {
	agents := make([]roster.Agent, len(p.Agents))
	for i := range p.Agents {
		agents[i] = rosterOf(&p.Agents[i])
	}
	return agents
}
