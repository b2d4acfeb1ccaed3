package core

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/spec"
)

// Input is everything a run starts from.
type Input struct {
	Plan    *spec.Plan
	Budgets spec.Budgets // the ceilings in force: the plan's, narrowed
	// Seed makes the waits before further attempts differ from run to run: the run's id.
	Seed string
	// Redact is what the shared memory takes out of texts. nil: nothing.
	Redact func(string) string
	// Answers checks final answers, by agent. An agent without an output schema has none.
	Answers map[string]AnswerCheck
}

// AnswerCheck validates a final answer. problem is empty when it fits; then value is the decoded answer.
type AnswerCheck func(text string) (value any, problem string)

// run is the state of one run. It needs no lock: one thread of the core runs at a time.
type run struct {
	in     Input
	plan   *spec.Plan
	ledger *policies.Ledger
	agents map[string]*spec.PlanAgent
	tasks  []*task
	lent   []*task // delegated runs
	memory memory
	index  map[string]int // of tasks, by id

	confirms bool // consequential calls need a confirmation

	now      int64 // of the last result: the core's clock
	stop     string
	cancel   func() // ends every effect of every task
	finished []int  // from task threads to the scheduler
	working  int    // tasks at work, without those that only wait for people
	out      *Outcome
}

// task is one node while the run lasts.
type task struct {
	TaskOutcome
	index   int
	waits   int   // dependencies that have not completed
	feeds   []int // tasks that depend on this one
	settled bool
}

// The effects by which the core knows when a run began and when it was over.
const (
	TimerStart = "start"
	TimerEnd   = "end"
)

// Run drives the plan to its end and gives the facts. Threads exist for running tasks only, so a wake costs what is
// running and not what was planned.
func Run(root Flow, in Input) *Outcome {
	r := newRun(in)
	flow, cancel := root.WithCancel()
	r.cancel = cancel
	r.clock(root.Do(&Effect{Kind: Timer, ID: TimerStart}))
	r.out.StartedAt = r.now
	r.planned(root)
	stopDeadline := r.deadline(root)
	r.schedule(root, flow)
	stopDeadline()
	r.finalTrees(root)
	r.clock(root.Do(&Effect{Kind: Timer, ID: TimerEnd}))
	return r.outcome()
}

func newRun(in Input) *run {
	r := &run{in: in, plan: in.Plan, agents: in.Plan.ByName(), index: map[string]int{}, confirms: Confirms(in.Plan), out: &Outcome{}}
	r.ledger = policies.NewLedger(in.Budgets.MaxTokenBudget, in.Budgets.MaxCostBudget)
	for i, t := range in.Plan.Tasks {
		r.index[t.ID] = i
		r.tasks = append(r.tasks, &task{index: i, TaskOutcome: TaskOutcome{Task: t, Status: spec.TaskPending}})
	}
	for i, t := range in.Plan.Tasks {
		r.tasks[i].waits = len(t.DependsOn)
		for _, d := range t.DependsOn {
			d := r.byID(d)
			d.feeds = append(d.feeds, i)
		}
	}
	r.setAside()
	return r
}

// setAside holds tokens back for required roles that have not started: their own ceiling, else an equal share.
func (r *run) setAside() {
	if !r.in.Budgets.ReserveForRequired || r.in.Budgets.MaxTokenBudget == 0 || r.plan.Governance == nil {
		return
	}
	for _, role := range r.plan.Governance.RequiredRoles {
		r.ledger.SetAside(role, r.share(role))
	}
}

func (r *run) share(role string) int64 {
	if a := r.agents[role]; a != nil && a.MaxTokenBudget > 0 {
		return a.MaxTokenBudget
	}
	return r.in.Budgets.MaxTokenBudget / int64(len(r.plan.Governance.RequiredRoles))
}

func (r *run) clock(res Result) { r.now = max(r.now, res.At) }

// deadline ends the run when maxDuration has passed. The func ends the timer.
func (r *run) deadline(root Flow) func() {
	if r.in.Budgets.MaxDuration <= 0 {
		return func() {}
	}
	flow, stop := root.WithCancel()
	flow.Go("deadline", func(f Flow) {
		res := f.Do(&Effect{Kind: Timer, ID: "deadline", Delay: r.in.Budgets.MaxDuration})
		if !res.Cancelled {
			r.clock(res)
			r.halt("duration")
			r.cancel()
		}
	})
	return stop
}

// halt stops admitting tasks. The first reason stands.
func (r *run) halt(why string) {
	if r.stop == "" {
		r.stop = why
	}
}

// schedule starts each task when its own dependencies have completed, never more at once than the plan allows.
func (r *run) schedule(root, flow Flow) {
	var ready ready
	for _, t := range r.tasks {
		if t.waits == 0 {
			ready.add(t)
		}
	}
	started := 0
	for {
		for ready.n > 0 && r.vacant() && r.admit() {
			t := ready.take()
			started++
			r.working++
			flow.Go(t.Task.ID, func(f Flow) {
				r.work(f, t)
				r.working--
				r.finished = append(r.finished, t.index)
			})
		}
		if started == 0 {
			break
		}
		root.Await(func() bool { return len(r.finished) > 0 || ready.n > 0 && r.stop == "" && r.vacant() })
		done := r.finished
		r.finished = nil
		for _, i := range done {
			started--
			r.settle(root, i, &ready)
		}
	}
	for _, t := range r.tasks {
		if !t.settled && r.stop != StopSuspended { // what waits for a person waits with all that depends on it
			r.skip(root, t, r.stopCause())
		}
	}
}

// vacant says that fewer tasks are at work than may be.
func (r *run) vacant() bool { return r.working < r.plan.Scheduling.MaxConcurrency }

// leave gives a task's place to others while it waits for people, and takes one again before it goes on.
func (r *run) leave(f Flow, wait func()) {
	r.working--
	wait()
	f.Await(func() bool { return r.vacant() || r.stop != "" })
	r.working++
}

// admit says whether another task may start. A ceiling that is used up stops the run before the task, not in it.
func (r *run) admit() bool {
	if r.stop == "" {
		r.halt(r.ledger.Exhausted())
	}
	return r.stop == ""
}

// settle frees the tasks that waited for this one, or skips them, transitively and without recursion.
func (r *run) settle(root Flow, i int, ready *ready) {
	r.tasks[i].settled = true
	queue := []int{i}
	for len(queue) > 0 {
		t := r.tasks[queue[0]]
		queue = queue[1:]
		for _, n := range t.feeds {
			next := r.tasks[n]
			switch {
			case next.settled, t.Status == spec.TaskPending, t.Status == spec.TaskInProgress:
			case t.Status != spec.TaskCompleted:
				r.skip(root, next, fmt.Sprintf("dependency %q %s", t.Task.Title, t.Status))
				queue = append(queue, n)
			default:
				if next.waits--; next.waits == 0 {
					ready.add(next)
				}
			}
		}
	}
}

// ready are the tasks that could start: those of a higher priority first, and of one priority in the order in which they
// came to be.
type ready struct {
	n      int
	queues [4][]*task // by the place in spec.Priorities
}

func (q *ready) add(t *task) {
	p := max(slices.Index(spec.Priorities, cmp.Or(t.Task.Priority, "normal")), 0)
	q.queues[p] = append(q.queues[p], t)
	q.n++
}

// take gives the next task. There is one.
func (q *ready) take() *task {
	p := len(q.queues) - 1
	for len(q.queues[p]) == 0 {
		p--
	}
	t := q.queues[p][0]
	q.queues[p] = q.queues[p][1:]
	q.n--
	return t
}

func (r *run) skip(root Flow, t *task, cause string) {
	t.settled, t.Status, t.Cause = true, spec.TaskSkipped, cause
	r.note(root, t)
}

func (r *run) note(f Flow, t *task) {
	r.clock(f.Do(&Effect{Kind: Note, ID: t.Task.ID + "/" + t.Status, TaskID: t.Task.ID, AgentName: t.Task.Assignee,
		Status: &TaskStatus{Status: t.Status, StopReason: t.StopReason, Cause: t.Cause, Caller: t.Caller}}))
}

func (r *run) stopCause() string {
	switch r.stop {
	case "tokens":
		return "the run's token budget is used up"
	case "cost":
		return "the run's cost budget is used up"
	case "duration":
		return "the run's time is up"
	case StopRejected:
		return "the run was rejected"
	}
	return "the run was cancelled"
}

// finalTrees looks once more at every folder a required role worked in.
func (r *run) finalTrees(root Flow) {
	seen := map[string]bool{}
	for _, t := range r.tasks {
		a := r.agents[t.Task.Assignee]
		if t.Task.Role == "" || t.StartedAt == 0 || !a.Acts() || seen[a.Cwd] {
			continue
		}
		seen[a.Cwd] = true
		r.tree(root, t, "")
	}
}

// TreeCancelled stands for the digest of a folder that could not be looked at in time.
const TreeCancelled = "unknown: cancelled"

func (r *run) tree(f Flow, t *task, before string) {
	id := t.Task.ID + "/tree/end"
	if before != "" {
		id = t.Task.ID + "/tree"
	}
	res := f.Do(&Effect{Kind: Tree, ID: id, TaskID: t.Task.ID, AgentName: t.Task.Assignee})
	r.clock(res)
	if res.Cancelled {
		res.Tree = TreeCancelled
		r.halt(StopCancelled)
	}
	if res.Tree != "" {
		r.out.Trees = append(r.out.Trees, spec.Tree{Before: before, Cwd: r.agents[t.Task.Assignee].Cwd, Digest: res.Tree})
	}
}

func (r *run) outcome() *Outcome {
	o := r.out
	o.EndedAt, o.Stop = r.now, r.stop
	o.UsedTokens, o.UsedCost = r.ledger.Used()
	o.Exceeded = r.ledger.Exceeded()
	o.Tasks = make([]TaskOutcome, 0, len(r.tasks))
	for _, t := range r.tasks {
		o.Tasks = append(o.Tasks, t.TaskOutcome)
	}
	for _, t := range r.lent {
		o.Delegated = append(o.Delegated, t.TaskOutcome)
	}
	return o
}
