package policies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

// Topology derives what ran, in which order, from the task records alone. A role counts only when its task started and
// completed. g may be nil: undeclared.
func Topology(tasks []spec.TaskRecord, g *spec.Governance, routing spec.RoutingDecision) spec.Topology {
	t := spec.Topology{Mode: "single", RolesExecuted: []string{}, WorkerInstancesExecuted: []string{}, ExecutionOrder: []string{},
		DependencyEdges: []spec.Edge{}, RoutingDecision: routing}
	byID := make(map[string]*spec.TaskRecord, len(tasks))
	var executed, failed, idle, order, labels set[string]
	var edges set[spec.Edge]
	for i := range tasks {
		task := &tasks[i]
		byID[task.ID] = task
		switch {
		case task.StartedAt == "":
			idle.add(task.Assignee)
		case task.Status == spec.TaskCompleted:
			executed.add(task.Assignee)
			if task.Label != "" {
				labels.add(task.Label)
			}
		default:
			failed.add(task.Assignee)
		}
	}
	for _, task := range inOrder(tasks, byID) {
		order.add(task.Assignee)
		for _, id := range task.DependsOn {
			if d := byID[id]; d != nil && d.Status == spec.TaskCompleted && d.Assignee != task.Assignee {
				edges.add(spec.Edge{From: d.Assignee, To: task.Assignee})
			}
		}
	}
	t.RolesExecuted = append(t.RolesExecuted, executed.list...)
	t.RolesFailed, t.RolesNotStarted, t.TaskRolesExecuted = failed.list, idle.list, labels.list
	t.WorkerInstancesExecuted = append(t.WorkerInstancesExecuted, executed.list...)
	t.ExecutionOrder = append(t.ExecutionOrder, order.list...)
	t.DependencyEdges = append(t.DependencyEdges, edges.list...)
	if len(t.RolesExecuted) > 1 {
		t.Mode = "multi-agent"
	}
	t.IndependentRolesCount = len(t.RolesExecuted)
	t.IndependentReviewOccurred = len(t.RolesExecuted) > 1 && (len(t.DependencyEdges) > 0 || g != nil && g.Independence.Parallel)
	return t
}

// inOrder gives the tasks that started and completed, the first to start first. The timestamps are RFC 3339 of one fixed
// width, so text order is time order. A task may start within the millisecond in which one that it depends on did: of
// equals, those come first, and of the rest the plan's order is kept.
func inOrder(tasks []spec.TaskRecord, byID map[string]*spec.TaskRecord) []*spec.TaskRecord {
	out, seen := make([]*spec.TaskRecord, 0, len(tasks)), make(map[string]bool, len(tasks))
	var visit func(*spec.TaskRecord)
	visit = func(t *spec.TaskRecord) {
		if t == nil || seen[t.ID] {
			return
		}
		seen[t.ID] = true
		for _, id := range t.DependsOn {
			visit(byID[id])
		}
		if t.StartedAt != "" && t.Status == spec.TaskCompleted {
			out = append(out, t)
		}
	}
	for i := range tasks {
		visit(&tasks[i])
	}
	slices.SortStableFunc(out, func(a, b *spec.TaskRecord) int { return strings.Compare(a.StartedAt, b.StartedAt) })
	return out
}

// set keeps what was added once, in the order of adding.
type set[T comparable] struct {
	list []T
	has  map[T]bool
}

func (s *set[T]) add(v T) {
	if s.has == nil {
		s.has = map[T]bool{}
	}
	if !s.has[v] {
		s.has[v] = true
		s.list = append(s.list, v)
	}
}

// Conclusion says whether a declaration was met. Reasons stand in the order of their weight; the first is the reason.
type Conclusion struct {
	Conclusion string
	Reasons    []spec.Reason
}

// Conclude judges a declaration by the facts of a receipt: topology, tasks, status and trees. It never reads the
// receipt's own conclusion, nor any answer's text. Only governanceIntent required can be satisfied or unsatisfied.
// watched gives the tasks whose folder must have been looked at, with that folder; nil where the plan is not known.
func Conclude(g *spec.Governance, r *spec.Receipt, watched map[string]string) Conclusion {
	if g == nil || g.GovernanceIntent != spec.IntentRequired {
		return Conclusion{Conclusion: spec.NotApplicable}
	}
	c := conclude{g: g, r: r, watched: watched}
	c.roles()
	c.order()
	c.independence()
	c.integrity()
	if len(c.reasons) == 0 {
		return Conclusion{Conclusion: spec.Satisfied}
	}
	return Conclusion{spec.Unsatisfied, append(c.causes(), c.reasons...)}
}

type conclude struct {
	g       *spec.Governance
	r       *spec.Receipt
	watched map[string]string
	reasons []spec.Reason
}

func (c *conclude) add(code, format string, args ...any) {
	c.reasons = append(c.reasons, spec.Reason{Code: code, Message: fmt.Sprintf(format, args...)})
}

// causes says what in the run kept the declaration from being met.
func (c *conclude) causes() []spec.Reason {
	var out []spec.Reason
	if c.r.RoutingDecision.Source == "override" {
		out = append(out, spec.Reason{Code: "overridden", Message: "the run was told to use another topology"})
	}
	codes := map[string]string{spec.StatusBudget: "budget", spec.StatusCancelled: "cancelled", spec.StatusRejected: "rejected", spec.StatusSuspended: "suspended"}
	if code, ok := codes[c.r.Status.Code]; ok {
		out = append(out, spec.Reason{Code: code, Message: orStatus(c.r.Status)})
	}
	return out
}

func orStatus(s spec.Status) string {
	if s.Message != "" {
		return s.Message
	}
	return "the run ended with status " + s.Code
}

func (c *conclude) roles() {
	if len(c.g.RequiredRoles) == 0 {
		c.add("role-missing", "no role is required, so none can have been met")
	}
	var missing []spec.Reason
	for i, role := range c.g.RequiredRoles {
		switch {
		case slices.Contains(c.g.RequiredRoles[:i], role):
			c.add("role-missing", "role %q is required twice", role)
		case slices.Contains(c.r.RolesExecuted, role) && (slices.Contains(c.r.RolesFailed, role) || slices.Contains(c.r.RolesNotStarted, role)):
			c.add("role-failed", "required role %q did not complete every task that it has", role)
		case slices.Contains(c.r.RolesExecuted, role):
		case slices.Contains(c.r.RolesFailed, role):
			c.add("role-failed", "required role %q did not complete its task", role)
		default:
			missing = append(missing, spec.Reason{Code: "role-missing", Message: fmt.Sprintf("required role %q did not run", role)})
		}
	}
	c.reasons = append(c.reasons, missing...)
}

func (c *conclude) order() {
	order := c.g.RequiredOrder
	if order == nil {
		return
	}
	if !samePeople(order, c.g.RequiredRoles) {
		c.add("order", "the required order is not a permutation of the required roles")
		return
	}
	for i := 1; i < len(order); i++ {
		from, to := order[i-1], order[i]
		a, b := slices.Index(c.r.ExecutionOrder, from), slices.Index(c.r.ExecutionOrder, to)
		switch {
		case a < 0 || b < 0: // said by roles already
		case a >= b:
			c.add("order", "%q did not start before %q", from, to)
		case !reaches(c.r.DependencyEdges, from, to):
			c.add("order", "%q does not depend on %q", to, from)
		}
	}
}

func samePeople(a, b []string) bool {
	x, y := slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(x, y) && len(slices.Compact(x)) == len(a)
}

// reaches says whether a path of edges leads from one role to the other.
func reaches(edges []spec.Edge, from, to string) bool {
	seen, queue := map[string]bool{from: true}, []string{from}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, e := range edges {
			if e.From != at || seen[e.To] {
				continue
			}
			if e.To == to {
				return true
			}
			seen[e.To] = true
			queue = append(queue, e.To)
		}
	}
	return false
}

func (c *conclude) independence() {
	if len(c.g.RequiredRoles) < 2 {
		return
	}
	if !c.r.IndependentReviewOccurred {
		c.add("independence", "no independent review was observed")
	}
	if !c.g.Independence.Parallel {
		c.linked()
	}
	if c.g.Independence.Parallel && c.g.RequiredOrder == nil && len(c.r.DependencyEdges) > 0 {
		for i, a := range c.g.RequiredRoles {
			for _, b := range c.g.RequiredRoles[i+1:] {
				if reaches(c.r.DependencyEdges, a, b) || reaches(c.r.DependencyEdges, b, a) {
					c.add("independence", "%q and %q saw each other's output", a, b)
				}
			}
		}
	}
	c.asked()
	if c.g.Independence.DifferentModel {
		c.differentModels()
	}
}

// linked finds roles that worked and whose work no other required role saw, nor they another's: an edge between agents that
// nobody requires is no review of theirs.
func (c *conclude) linked() {
	for _, a := range c.g.RequiredRoles {
		saw := func(b string) bool {
			return a != b && (reaches(c.r.DependencyEdges, a, b) || reaches(c.r.DependencyEdges, b, a))
		}
		if slices.Contains(c.r.RolesExecuted, a) && c.r.IndependentReviewOccurred && !slices.ContainsFunc(c.g.RequiredRoles, saw) {
			c.add("independence", "no other required role saw the work of %q, nor %q that of another", a, a)
		}
	}
}

// asked finds roles that worked for each other: what one asks of the other is no review by either.
func (c *conclude) asked() {
	roles := map[string]string{}
	for _, t := range c.r.Tasks {
		roles[t.ID] = t.Assignee
	}
	for _, d := range c.r.Delegations {
		root, _, _ := strings.Cut(d.ID, "/")
		role := roles[root]
		if d.StartedAt != "" && role != d.Assignee && slices.Contains(c.g.RequiredRoles, role) && slices.Contains(c.g.RequiredRoles, d.Assignee) {
			c.add("independence", "%q worked for %q, in its task", d.Assignee, role)
		}
	}
}

// differentModels compares the models the responses named, not what was asked for. A role whose responses named none
// cannot be told from another. What a role had others do in its task was answered for it.
func (c *conclude) differentModels() {
	who, roles := map[string]string{}, map[string]string{}
	answered := func(role, agent string, models []string) {
		if len(models) == 0 {
			c.add("independence", "no response to %q named its model", agent)
		}
		for _, m := range models {
			if other, taken := who[m]; taken && other != role {
				c.add("independence", "%q and %q were both answered by %s", other, role, m)
			}
			who[m] = role
		}
	}
	for _, t := range c.r.Tasks {
		if t.Status == spec.TaskCompleted && slices.Contains(c.g.RequiredRoles, t.Assignee) {
			roles[t.ID] = t.Assignee
			answered(t.Assignee, t.Assignee, t.Models)
		}
	}
	for _, d := range c.r.Delegations {
		root, _, _ := strings.Cut(d.ID, "/")
		if role := roles[root]; role != "" && d.Status == spec.TaskCompleted {
			answered(role, d.Assignee, d.Models)
		}
	}
}

// integrity compares what a required role looked at with what was there at the end. A later task that may write
// explains a change; nothing else does. A folder that was not looked at, or could not be, is no evidence.
func (c *conclude) integrity() {
	end, before := map[string]string{}, map[string]spec.Tree{}
	for _, t := range c.r.Trees {
		if t.Before == "" {
			end[t.Cwd] = t.Digest
		} else {
			before[t.Before] = t
		}
		if !looked(t.Digest) && !(t.Before == "" && c.r.Status.Code == spec.StatusSuspended) { // a run that waits has not ended yet
			c.add("integrity", "the files under %q were not looked at: %s", cwdName(t.Cwd), t.Digest)
		}
	}
	for _, t := range c.r.Tasks {
		cwd, must := c.watched[t.ID]
		if _, ended := end[cwd]; must && t.StartedAt != "" && (!ended || before[t.ID].Cwd != cwd || before[t.ID].Before == "") {
			c.add("integrity", "the files under %q were not looked at for task %q", cwdName(cwd), t.ID)
		}
	}
	for _, t := range c.r.Trees {
		last := end[t.Cwd]
		if t.Before != "" && looked(last) && looked(t.Digest) && last != t.Digest && !t.LaterWriter {
			c.add("integrity", "the files under %q changed after task %q had started, and no task in the plan may write there", cwdName(t.Cwd), t.Before)
		}
	}
}

// looked says whether a folder's digest is one: what could not be looked at has a word in its place.
func looked(digest string) bool { return strings.HasPrefix(digest, "sha256:") }

func cwdName(cwd string) string {
	if cwd == "" {
		return spec.DefaultCwd
	}
	return cwd
}

// ReleaseConclusion sums up release requirements. Every requirement must be there and must have held.
func ReleaseConclusion(got []spec.Released, want []spec.Requirement) string {
	if len(want) == 0 {
		return spec.NotApplicable
	}
	for _, w := range want {
		held := slices.ContainsFunc(got, func(r spec.Released) bool { return r.Name == w.Name && r.Outcome == "held" })
		if !held {
			return spec.Unsatisfied
		}
	}
	return spec.Satisfied
}
