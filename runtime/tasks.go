package runtime

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/policies/roster"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/redact"
)

// graph makes the plan's tasks of the team's own.
func (c *compiler) graph() {
	c.plan.RoutingDecision = spec.RoutingDecision{Source: "declared", Mode: "team", Reasons: []string{"the team file declares its tasks"}}
	if c.team.Mode != "" && c.team.Mode != "auto" {
		c.diags.Errorf("mode-beside-tasks", "mode", "mode %s has no meaning beside tasks", c.team.Mode).Hint = "leave mode out: the tasks say who works"
	}
	find := c.titles()
	for i := range c.team.Tasks {
		t, at := &c.team.Tasks[i], spec.Path("tasks").Index(i)
		p := spec.PlanTask{ID: taskID(i), Title: t.Title, Description: c.described(t, at), Assignee: t.Assignee, Status: spec.TaskPending, Label: t.Role, Requires: t.Requires,
			DependencyPayload: omitDefault(t.DependencyPayload, spec.PayloadOutput), MemoryScope: omitDefault(t.MemoryScope, spec.MemoryDependencies),
			Priority: omitDefault(t.Priority, "normal"), Metadata: t.Metadata}
		if t.MaxRetries > 0 {
			p.MaxRetries, p.RetryDelay, p.RetryBackoff = t.MaxRetries, cmp.Or(t.RetryDelay, defaultRetryDelay), defaultRetryBackoff
			if t.RetryBackoff != nil {
				p.RetryBackoff = *t.RetryBackoff
			}
		}
		for _, key := range sortedKeys(t.Metadata) {
			if redact.SensitiveKey(key) || strings.HasPrefix(key, "oma.") {
				d := c.diags.Errorf("task-metadata", at.Key("metadata").Key(key), "%q is no name for metadata: a plan shows what is there, and oma. is the program's own", key)
				d.OnKey, d.Hint = true, "secrets go into credentials, by reference"
			}
		}
		if t.Assignee != "" && c.plan.Agent(t.Assignee) == nil {
			c.diags.Errorf("unknown-agent", at.Key("assignee"), "no agent is called %q", t.Assignee).Hint = spec.DidYouMean(t.Assignee, c.agentNames())
		}
		for j, name := range t.DependsOn {
			k, known := find(name)
			switch where := at.Key("dependsOn").Index(j); {
			case !known:
				c.diags.Errorf("INVALID_TASK_DEPENDENCIES", where, "task %q depends on %q, and there is no such task", t.Title, name).Hint = spec.DidYouMean(name, c.taskTitles())
			case k == i:
				c.diags.Errorf("INVALID_TASK_DEPENDENCIES", where, "task %q depends on itself", t.Title)
			case !slices.Contains(p.DependsOn, taskID(k)):
				p.DependsOn = append(p.DependsOn, taskID(k))
			}
		}
		if p.MemoryScope == spec.MemoryAll && c.plan.SharedMemory == nil {
			c.diags.Errorf("memory-off", at.Key("memoryScope"), "memoryScope all, and the team has no shared memory").Hint = "add sharedMemory: true"
		}
		c.plan.Tasks = append(c.plan.Tasks, p)
	}
	if circle := circleIn(c.plan.Tasks); circle != nil {
		c.diags.Errorf("INVALID_TASK_DEPENDENCIES", spec.Path("tasks").Index(circle[0]).Key("dependsOn"), "tasks depend on each other in a circle: %s", c.circleText(circle))
		return // who does what follows from the graph
	}
	c.weights()
	c.assignees()
	c.payloads()
	c.governedGraph()
}

// The defaults of the reference (S9).
const (
	defaultRetryDelay   = spec.Duration(1_000_000_000)
	defaultRetryBackoff = 2
)

func omitDefault(word, is string) string {
	if word == is {
		return ""
	}
	return word
}

func taskID(i int) string { return fmt.Sprintf("task-%d", i+1) }

// described expands the inputs that a description names.
func (c *compiler) described(t *spec.Task, at spec.Path) string {
	text, problems := expand(t.Description, c.value)
	for _, p := range problems {
		c.diags.Errorf("unknown-input", at.Key("description"), "%s", strings.Replace(p, "goal uses", "the description uses", 1)).Hint = spec.DidYouMean("", sortedKeys(c.team.Inputs))
	}
	return text
}

// titles finds tasks by title, whatever its case, or by id, and refuses titles that cannot be told apart.
func (c *compiler) titles() func(string) (int, bool) {
	index := make(map[string]int, 2*len(c.team.Tasks))
	for i := range c.team.Tasks {
		index[taskID(i)] = i
	}
	ids := len(index)
	for i, t := range c.team.Tasks {
		key := strings.ToLower(strings.TrimSpace(t.Title))
		at := spec.Path("tasks").Index(i).Key("title")
		switch first, twice := index[key]; {
		case strings.TrimSpace(t.Title) == "":
			c.diags.Errorf("task-title", at, "a task needs a title")
		case twice && key == taskID(first):
			c.diags.Errorf("task-title", at, "%q is the id of a task, and no title", t.Title).Hint = fmt.Sprintf("ids are task-1 to %s, by place", taskID(ids-1))
		case twice:
			c.diags.Errorf("task-title", at, "title %q is that of tasks[%d] as well", t.Title, first).Hint = "titles are compared without case and blanks around them"
		default:
			index[key] = i
		}
	}
	return func(name string) (int, bool) {
		i, ok := index[strings.ToLower(strings.TrimSpace(name))]
		return i, ok
	}
}

func (c *compiler) taskTitles() []string {
	titles := make([]string, len(c.team.Tasks))
	for i, t := range c.team.Tasks {
		titles[i] = t.Title
	}
	return titles
}

// maxCircle is how many tasks of a circle are named.
const maxCircle = 12

func (c *compiler) circleText(circle []int) string {
	var names []string
	for i, t := range circle {
		if i == maxCircle {
			names = append(names, fmt.Sprintf("%d more", len(circle)-i))
			break
		}
		names = append(names, fmt.Sprintf("%q", c.team.Tasks[t].Title))
	}
	return strings.Join(append(names, fmt.Sprintf("%q", c.team.Tasks[circle[0]].Title)), " -> ")
}

// circleIn gives tasks that wait for each other, each for the one before it and the first for the last, or nil. Unknown
// dependencies wait for nothing.
func circleIn(tasks []spec.PlanTask) []int {
	index := make(map[string]int, len(tasks))
	for i := range tasks {
		index[tasks[i].ID] = i
	}
	waits, feeds := make([]int, len(tasks)), make([][]int, len(tasks))
	for i := range tasks {
		for _, d := range tasks[i].DependsOn {
			if k, ok := index[d]; ok {
				waits[i]++
				feeds[k] = append(feeds[k], i)
			}
		}
	}
	var queue []int
	for i, n := range waits {
		if n == 0 {
			queue = append(queue, i)
		}
	}
	for len(queue) > 0 {
		for _, n := range feeds[queue[0]] {
			if waits[n]--; waits[n] == 0 {
				queue = append(queue, n)
			}
		}
		queue = queue[1:]
	}
	i := slices.IndexFunc(waits, func(n int) bool { return n > 0 })
	if i < 0 {
		return nil
	}
	// every task that is left waits for one that is left: going back from any, one comes by twice
	at, seen := i, map[int]int{}
	var path []int
	for {
		if first, again := seen[at]; again {
			circle := path[first:]
			slices.Reverse(circle)
			low := slices.Index(circle, slices.Min(circle))
			return slices.Concat(circle[low:], circle[:low])
		}
		seen[at] = len(path)
		path = append(path, at)
		at = index[tasks[at].DependsOn[slices.IndexFunc(tasks[at].DependsOn, func(d string) bool { k, ok := index[d]; return ok && waits[k] > 0 })]]
	}
}

// weights checks those of scheduling.
func (c *compiler) weights() {
	if w := c.team.Scheduling.Weights; w != nil {
		at := spec.Path("scheduling").Key("weights")
		if w.Fit == 0 && w.Load == 0 {
			c.diags.Errorf("scheduling-weights", at, "fit and load are both 0, so nothing counts").Hint = "give one of them a weight"
		}
		if c.team.Scheduling.Strategy != roster.Composite {
			c.diags.Warnf("scheduling-weights", at, "weights are of the strategy composite, and another one is used").Hint = "add strategy: composite, or leave them out"
		}
	}
}

// assignees chooses an agent for each task that names none, and holds those that are named against what their tasks require.
func (c *compiler) assignees() {
	tasks := make([]roster.Task, len(c.plan.Tasks))
	index := make(map[string]int, len(tasks))
	for i := range c.plan.Tasks {
		index[c.plan.Tasks[i].ID] = i
	}
	for i := range c.plan.Tasks {
		p, t := &c.plan.Tasks[i], &c.team.Tasks[i]
		c.required(t.Requires, spec.Path("tasks").Index(i).Key("requires"))
		tasks[i] = roster.Task{Subject: subject(p), Assignee: p.Assignee, Requires: t.Requires}
		for _, d := range p.DependsOn {
			tasks[i].DependsOn = append(tasks[i].DependsOn, index[d])
		}
	}
	for i, a := range roster.Assign(roster.Options{Strategy: c.team.Scheduling.Strategy, Weights: c.team.Scheduling.Weights}, tasks, rosterAll(c.plan)) {
		p, at := &c.plan.Tasks[i], spec.Path("tasks").Index(i)
		switch {
		case p.Assignee != "" && len(a.Reasons) > 0:
			c.diags.Errorf("ASSIGNEE_REQUIREMENTS_MISMATCH", at.Key("assignee"), "agent %q cannot do task %q: %s", p.Assignee, p.Title, strings.Join(a.Reasons, "; "))
		case p.Assignee != "":
		case a.Agent == "":
			c.diags.Errorf("NO_ELIGIBLE_AGENT", at, "no agent can do task %q: %s", p.Title, strings.Join(a.Reasons, "; "))
		default:
			p.Assignee, p.AssignedBy = a.Agent, a.Why
		}
	}
}

// rosterOf is an agent as selection sees it.
func rosterOf(a *spec.PlanAgent) roster.Agent {
	r := roster.Agent{Name: a.Name, SystemPrompt: a.SystemPrompt, Model: a.Model, Provider: a.Provider, Backend: "llm", Capabilities: a.Capabilities}
	if a.Backend != nil {
		r.Backend, r.Provider = a.Backend.Kind, ""
	}
	for _, g := range a.Tools {
		r.Tools = append(r.Tools, g.Name)
	}
	return r
}

// required checks the names in what a task requires.
func (c *compiler) required(r *spec.Requires, at spec.Path) {
	if r == nil {
		return
	}
	for i, name := range r.RequiredTools {
		if _, ok := c.catalog.Tool(name); !ok {
			c.diags.Errorf("unknown-tool", at.Key("requiredTools").Index(i), "unknown tool %q", name).Hint = spec.DidYouMean(name, c.catalog.Names())
		}
	}
	if _, ok := c.plan.Providers[r.RequiredProvider]; r.RequiredProvider != "" && !ok {
		c.diags.Errorf("unknown-provider", at.Key("requiredProvider"), "no provider is called %q", r.RequiredProvider).Hint = spec.DidYouMean(r.RequiredProvider, sortedKeys(c.plan.Providers))
	}
}

// payloads refuses a task that is to be handed a structured result by an agent that gives none.
func (c *compiler) payloads() {
	agents := c.plan.ByName()
	by := map[string]*spec.PlanTask{}
	for i := range c.plan.Tasks {
		by[c.plan.Tasks[i].ID] = &c.plan.Tasks[i]
	}
	for i := range c.plan.Tasks {
		p := &c.plan.Tasks[i]
		if p.DependencyPayload == "" {
			continue
		}
		at := spec.Path("tasks").Index(i).Key("dependencyPayload")
		if len(p.DependsOn) == 0 {
			c.diags.Warnf("payload-unused", at, "task %q is handed nothing by tasks it depends on, so dependencyPayload has no effect", p.Title)
		}
		for _, d := range p.DependsOn {
			if a := agents[by[d].Assignee]; a != nil && len(a.OutputSchema) == 0 {
				c.diags.Errorf("DEPENDENCY_STRUCTURED_RESULT_MISSING", at, "task %q gives no structured result: its agent %q has no outputSchema", by[d].Title, a.Name).Hint = "add outputSchema to the agent, or use dependencyPayload: output"
			}
		}
	}
}

// governedGraph holds the declaration against the graph: each role must have work, and the order must follow from the edges.
func (c *compiler) governedGraph() {
	g := c.team.Governance
	if g == nil || g.GovernanceIntent == spec.IntentNone {
		return
	}
	at := spec.Path("governance")
	work := map[string][]int{}
	for i := range c.plan.Tasks {
		p := &c.plan.Tasks[i]
		work[p.Assignee] = append(work[p.Assignee], i)
		if slices.Contains(g.RequiredRoles, p.Assignee) {
			p.Role = p.Assignee
		}
	}
	for i, role := range g.RequiredRoles {
		if len(work[role]) == 0 && c.plan.Agent(role) != nil {
			c.diags.Errorf("governance-roles", at.Key("requiredRoles").Index(i), "required role %q has no task", role).Hint = "give it one: roles are met by agents that did the work"
		}
	}
	after := afterRoles(c.plan.Tasks, g.RequiredRoles)
	for i := 1; i < len(g.RequiredOrder); i++ {
		from, to := g.RequiredOrder[i-1], g.RequiredOrder[i]
		for _, k := range work[to] {
			if !after[k][from] && len(work[from]) > 0 {
				c.diags.Errorf("governance-order", at.Key("requiredOrder").Index(i), "task %q of role %q can start before role %q has worked", c.plan.Tasks[k].Title, to, from).Hint =
					fmt.Sprintf("let it depend on a task of %q", from)
			}
		}
	}
	c.independent(g, work, after)
}

// independent refuses graphs in which independence could not be observed, however well a run goes.
func (c *compiler) independent(g *spec.Governance, work map[string][]int, after []map[string]bool) {
	at := spec.Path("governance")
	if i := dependent(g, c.plan.Tasks); i >= 0 {
		c.diags.Errorf("governance-unsatisfiable", spec.Path("tasks").Index(i).Key("memoryScope"), "task %q is told what everybody did, and independence.parallel says that no required role sees another's work", c.plan.Tasks[i].Title).Hint =
			"leave memoryScope out, or declare requiredOrder instead of independence.parallel"
	}
	if g.GovernanceIntent != spec.IntentRequired || g.RequiredOrder != nil || len(g.RequiredRoles) < 2 {
		return
	}
	if g.Independence.Parallel {
		for _, why := range c.unmet(g) {
			c.diags.Errorf("governance-unsatisfiable", at.Key("independence").Key("parallel"), "in a run in which everything completes, %s", why.Message).Hint =
				"let no required role depend on another, or declare requiredOrder instead of independence.parallel"
		}
		return
	}
	for i, role := range g.RequiredRoles {
		if len(work[role]) > 0 && !linked(c.plan.Tasks, after, g.RequiredRoles, role) {
			c.diags.Errorf("governance-unsatisfiable", at.Key("requiredRoles").Index(i), "no task of role %q depends on one of another required role, or the other way round, so independent review can never be observed", role).Hint =
				"let one depend on the other, or declare independence: {parallel: true}"
		}
	}
}

// unmet gives why required roles without an order would not have been independent in a run in which everything completes.
func (c *compiler) unmet(g *spec.Governance) (reasons []spec.Reason) {
	var r spec.Receipt
	for _, t := range c.plan.Tasks {
		r.Tasks = append(r.Tasks, spec.TaskRecord{ID: t.ID, Assignee: t.Assignee, DependsOn: t.DependsOn, Status: spec.TaskCompleted, StartedAt: "then"})
	}
	r.Topology = policies.Topology(r.Tasks, g, c.plan.RoutingDecision)
	ideal := *g
	ideal.Independence.DifferentModel = false // that is a matter of the answers
	for _, why := range policies.Conclude(&ideal, &r, nil).Reasons {
		if why.Code == "independence" {
			reasons = append(reasons, why)
		}
	}
	return reasons
}

// dependent gives a task that is told what everybody did, and that is a required role's or one that it depends on, where
// independence rests on roles seeing nothing of each other. -1: there is none.
func dependent(g *spec.Governance, tasks []spec.PlanTask) int {
	if g == nil || !g.Independence.Parallel || g.RequiredOrder != nil {
		return -1
	}
	index, seen := make(map[string]int, len(tasks)), make([]bool, len(tasks))
	var queue []int
	for i, t := range tasks {
		if index[t.ID] = i; slices.Contains(g.RequiredRoles, t.Assignee) {
			queue = append(queue, i)
			seen[i] = true
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		t := &tasks[queue[0]]
		if t.MemoryScope == spec.MemoryAll {
			return queue[0]
		}
		for _, d := range t.DependsOn {
			if k, ok := index[d]; ok && !seen[k] {
				seen[k] = true
				queue = append(queue, k)
			}
		}
	}
	return -1
}

// linked says whether a role is bound to see the work of another required role, or another one its work.
func linked(tasks []spec.PlanTask, after []map[string]bool, roles []string, role string) bool {
	for i := range tasks {
		who := tasks[i].Assignee
		for _, before := range roles {
			if after[i][before] && before != who && (who == role || before == role && slices.Contains(roles, who)) {
				return true
			}
		}
	}
	return false
}

// afterRoles gives for each task the required roles that are bound to have completed a task before it starts.
func afterRoles(tasks []spec.PlanTask, roles []string) []map[string]bool {
	index := make(map[string]int, len(tasks))
	for i := range tasks {
		index[tasks[i].ID] = i
	}
	out := make([]map[string]bool, len(tasks))
	var visit func(i int) map[string]bool
	visit = func(i int) map[string]bool {
		if out[i] != nil {
			return out[i]
		}
		out[i] = map[string]bool{}
		for _, d := range tasks[i].DependsOn {
			k := index[d]
			for role := range visit(k) {
				out[i][role] = true
			}
			if slices.Contains(roles, tasks[k].Assignee) {
				out[i][tasks[k].Assignee] = true
			}
		}
		return out[i]
	}
	for i := range tasks {
		visit(i)
	}
	return out
}

// sound refuses what no compiler gives: tasks that would never end, and agents that may go past rules over tasks.
func sound(p *spec.Plan) error {
	tasks := p.Tasks
	if p.Delegation != nil && p.Approvals != nil && len(p.Approvals.Dispatch) > 0 {
		return fmt.Errorf("%w: its agents may delegate past the rules of approvals.dispatch", ErrStale)
	}
	ids := make(map[string]bool, len(tasks))
	for _, t := range tasks {
		if ids[t.ID] || t.ID == "" || strings.Contains(t.ID, "/") {
			return fmt.Errorf("%w: %q is no id of a task, or that of two", ErrStale, t.ID)
		}
		ids[t.ID] = true
	}
	for _, t := range tasks {
		if a := p.Agent(t.Assignee); a != nil && t.Requires != nil {
			who := rosterOf(a)
			if lacks := roster.Lacks(&who, t.Requires); lacks != nil {
				return fmt.Errorf("%w: agent %q cannot do task %q: %s", ErrStale, a.Name, t.ID, strings.Join(lacks, "; "))
			}
		}
		for _, d := range t.DependsOn {
			if !ids[d] {
				return fmt.Errorf("%w: task %q depends on %q, which is not in the plan", ErrStale, t.ID, d)
			}
		}
	}
	if i := dependent(p.Governance, tasks); i >= 0 {
		return fmt.Errorf("%w: task %q is told what everybody did, and its required roles must see nothing of each other", ErrStale, tasks[i].ID)
	}
	if circle := circleIn(tasks); circle != nil {
		return fmt.Errorf("%w: task %q waits for itself", ErrStale, tasks[circle[0]].ID)
	}
	return nil
}

// selected gives the agent that fits the goal best, and why.
func (c *compiler) selected() (name, why string) {
	name, all := roster.Best(c.plan.Goal, nil, rosterAll(c.plan))
	score := all[slices.IndexFunc(all, func(a roster.Candidate) bool { return a.Agent == name })].Score
	return name, fmt.Sprintf("agent %q fits the goal best, by %.2f", name, score)
}
