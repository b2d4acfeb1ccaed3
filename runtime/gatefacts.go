package runtime

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/spec"
)

// consistent holds the receipt against itself: whatever can be derived is derived again.
func (v *GateVerdict) consistent(r *spec.Receipt) {
	if len(r.Tasks) == 0 {
		v.broken(hintReceipt, "the receipt has no task")
	}
	if plain(policies.Topology(r.Tasks, r.Governance, r.RoutingDecision)) != plain(r.Topology) {
		v.broken(hintReceipt, "the topology does not follow from the tasks")
	}
	var tokens spec.Usage
	completed := 0
	for i, t := range r.Work() {
		tokens = tokens.Add(t.Tokens)
		if t.Status == spec.TaskCompleted {
			if i < len(r.Tasks) {
				completed++
			}
			if t.StopReason != spec.StopCompleted || t.Turns == 0 || t.ModelCalls == 0 || t.StartedAt == "" {
				v.broken(hintReceipt, "task %q is called completed without having worked", t.ID)
			}
		}
	}
	if tokens != r.TotalTokens || tokens.Total() != r.Budgets.Used.Tokens {
		v.broken(hintReceipt, "the tokens of the tasks do not add up to the total")
	}
	if r.Success != (r.Status.Code == spec.StatusOK) || r.Success && completed != len(r.Tasks) {
		v.broken(hintReceipt, "the receipt calls itself a success and its tasks do not")
	}
	v.sums(r)
	v.decisions(r)
	v.delegations(r)
	v.reasoned(r)
	v.approvals(r)
}

// sums adds up again what the receipt says of the whole.
func (v *GateVerdict) sums(r *spec.Receipt) {
	var tasks int64
	for i, t := range r.Work() {
		if i < len(r.Tasks) {
			tasks += t.DurationMs
		}
		if took, ok := between(t.StartedAt, t.EndedAt); !ok || took != t.DurationMs {
			v.broken(hintReceipt, "the times of task %q do not make up its duration", t.ID)
		}
	}
	used, limit := r.Budgets.Used, r.Budgets.Effective
	switch {
	case tasks != r.TaskDurationMs || used.DurationMs != r.DurationMs:
		v.broken(hintReceipt, "the durations do not add up")
	case plain(used.Cost) != plain(r.Cost):
		v.broken(hintReceipt, "the cost that was used is another than the cost")
	case r.Success && limit.MaxTokenBudget > 0 && used.Tokens > limit.MaxTokenBudget,
		r.Success && limit.MaxCostBudget != nil && used.Cost != nil && *used.Cost > *limit.MaxCostBudget:
		v.broken(hintReceipt, "the receipt calls itself a success above its ceilings")
	case r.ID != r.RunID+":execution-receipt" || r.Partial != partial(r):
		v.broken(hintReceipt, "the receipt's id or its word on being partial does not follow from the rest")
	}
}

// between gives the milliseconds from one time of a receipt to another. Two empty times are none at all.
func between(from, to string) (int64, bool) {
	if from == "" && to == "" {
		return 0, true
	}
	a, err1 := time.Parse(time.RFC3339Nano, from)
	b, err2 := time.Parse(time.RFC3339Nano, to)
	return b.Sub(a).Milliseconds(), err1 == nil && err2 == nil
}

// words holds what the receipt says of itself against what was derived. Nothing else is read from those words.
func (v *GateVerdict) words(r *spec.Receipt, c policies.Conclusion) {
	said := []any{r.GovernanceConclusion, r.GovernanceDetail}
	if plain(said) != plain([]any{c.Conclusion, c.Reasons}) {
		v.broken(hintReceipt, "the receipt says governance is %s, and its facts say %s", r.GovernanceConclusion, c.Conclusion)
	}
	for _, code := range exitCodes(r, false, Options{}) {
		if !slices.Contains(r.ExitCodes, code) {
			v.broken(hintReceipt, "the receipt leaves out exit code %d", code)
		}
	}
}

// now holds the folders that required roles looked at against what is there now, where that can be looked at.
func (v *GateVerdict) now(r *spec.Receipt, folders map[string]string, tree func(string) (string, error)) {
	if tree == nil {
		return
	}
	if folders == nil {
		v.broken(hintNoPlan, "what is there now can only be compared with a plan: give --team FILE or --plan FILE")
	}
	v.Tree = TreeNothing
	for _, t := range r.Trees {
		if t.Before != "" {
			continue
		}
		if v.Tree == TreeNothing {
			v.Tree = TreeChecked
		}
		switch digest, err := tree(t.Cwd); {
		case err != nil:
			v.Tree = TreeDiffers
			v.broken(hintTree, "the files under %q cannot be looked at: %v", t.Cwd, err)
		case digest != t.Digest:
			v.Tree = TreeDiffers
			v.broken(hintTree, "the files under %q are not what they were when the run ended", t.Cwd)
		}
	}
}

// decisions counts the decisions again, by task.
func (v *GateVerdict) decisions(r *spec.Receipt) {
	counted := map[string]spec.CallSums{}
	assignee := map[string]string{}
	work := r.Work()
	for _, t := range work {
		assignee[t.ID] = t.Assignee
	}
	denied := 0
	for i, d := range r.Decisions {
		who, known := assignee[d.TaskID]
		if d.Scope == spec.ScopePlan {
			known = d.TaskID == ""
		}
		if d.Seq != i+1 || !known || d.Agent != who || !slices.Contains([]string{"", spec.ScopePlan, spec.ScopeDispatch}, d.Scope) {
			v.broken(hintReceipt, "decision %d is out of order or about somebody else", i+1)
			return
		}
		if d.Scope != "" {
			continue
		}
		c := counted[d.TaskID]
		switch {
		case d.Allowed():
			c.Allowed++
		case d.Waits():
			c.Suspended++
		case d.Refused != "":
			c.Refused++
			denied++
		default:
			c.Denied++
			denied++
		}
		counted[d.TaskID] = c
	}
	for _, t := range work {
		c := counted[t.ID]
		if c.Failed = t.ToolCalls.Failed; c != t.ToolCalls {
			v.broken(hintReceipt, "the decisions about the calls of task %q are not the ones its record counts", t.ID)
		}
	}
	if denied != r.Denied {
		v.broken(hintReceipt, "%d decisions kept a call from running and the receipt says %d", denied, r.Denied)
	}
}

// bind holds the receipt against the plan it is said to be of: everything that follows from the plan.
func (v *GateVerdict) bind(r *spec.Receipt, p *spec.Plan) {
	v.Against = append(v.Against, "plan")
	if r.Plan.Digest != p.Digest {
		v.Yardstick = YardstickDiffers
		v.broken(hintPlan, "the receipt is of plan %s and the yardstick is plan %s: %s", short(r.Plan.Digest), short(p.Digest), otherPlan(r, p))
		return
	}
	v.Bound, v.Yardstick = true, YardstickMatched
	differs := func(what string, got, want any) {
		if plain(got) != plain(want) {
			v.broken(hintReceipt, "the receipt has other %s than its plan", what)
		}
	}
	differs("governance", r.Governance, p.Governance)
	differs("routing", r.RoutingDecision, p.RoutingDecision)
	differs("inputs", r.Inputs, p.Inputs)
	differs("policies", r.Policies, policiesOf(p))
	differs("team", []any{r.Team, r.GoalDigest}, []any{p.Team, p.GoalDigest})
	differs("declared budgets", r.Budgets.Declared, p.Budgets)
	if !keptTo(p, r.Enforcement) {
		v.broken(hintReceipt, "the receipt has other levels of enforcement than its plan")
	}
	if plain(Narrow(p.Budgets, r.Budgets.Effective)) != plain(r.Budgets.Effective) {
		v.broken(hintReceipt, "the ceilings in force are wider than those of the plan")
	}
	for _, f := range p.Flags {
		if !slices.Contains(r.Flags, f) {
			v.broken(hintReceipt, "the receipt leaves out the flag %s", f)
		}
	}
	if !sameTasks(r.Tasks, p.Tasks) {
		v.broken(hintReceipt, "the receipt has other tasks than its plan")
		return
	}
	agents := p.ByName()
	for _, t := range r.Work() {
		if a := agents[t.Assignee]; a == nil || t.Provider != a.Provider {
			v.broken(hintReceipt, "task %q was answered by another provider than in its plan", t.ID)
			return
		}
	}
	if counted, _ := totals(p, r.Decisions); plain(counted) != plain(r.Rules) {
		v.broken(hintReceipt, "the counts by rule do not follow from the decisions")
	}
	for _, d := range r.Decisions {
		if d.ServerTool != serverTool(p, d.ToolName) {
			v.broken(hintReceipt, "decision %d is about another tool of a server than its plan has under that name", d.Seq)
			break
		}
	}
	v.depths(r, p)
	v.rulings(r, p, agents)
	v.people(r, p)
	marked := slices.Clone(r.Trees)
	markWriters(p, marked)
	differs("later writers", r.Trees, marked)
	v.costs(r, p, agents)
}

// otherPlan says in what two plans differ, as far as a receipt tells.
func otherPlan(r *spec.Receipt, p *spec.Plan) string {
	was := map[string]string{}
	for _, in := range r.Inputs {
		was[in.Path] = in.Digest
	}
	var differ []string
	for _, in := range p.Inputs {
		switch digest, known := was[in.Path]; {
		case !known:
			differ = append(differ, in.Path+" was not there")
		case digest != in.Digest:
			differ = append(differ, in.Path+" has changed")
		}
		delete(was, in.Path)
	}
	for _, path := range slices.Sorted(maps.Keys(was)) {
		differ = append(differ, path+" is not there any more")
	}
	differ = append(differ, otherPolicies(r, p)...)
	if r.GoalDigest != p.GoalDigest {
		differ = append(differ, "the goal is another: give the same --goal and --input")
	}
	if differ == nil {
		return "give the same flags as the run"
	}
	return strings.Join(differ, "; ")
}

// otherPolicies names the policies from above that a run was under and its yardstick is not. That the yardstick is under
// one that the run was not is a reason of its own.
func otherPolicies(r *spec.Receipt, p *spec.Plan) (differ []string) {
	now := policiesOf(p)
	for _, in := range r.Policies {
		if strings.HasPrefix(in.Name, "policy ") && !slices.Contains(now, in) {
			differ = append(differ, fmt.Sprintf("the run was under %s of %s: give --policy as the run had it", in.Name, short(in.Digest)))
		}
	}
	return differ
}

// levels is what a plan promises. How it is kept may be said in other words on another machine.
func short(digest string) string {
	if len(digest) > 19 {
		return digest[:19] + "…"
	}
	return digest
}

func sameTasks(got []spec.TaskRecord, want []spec.PlanTask) bool {
	return slices.EqualFunc(got, want, func(g spec.TaskRecord, w spec.PlanTask) bool {
		return g.Attempts <= w.MaxRetries+1 && g.ID == w.ID && g.Title == w.Title && g.Assignee == w.Assignee && g.Role == w.Role && g.Label == w.Label && slices.Equal(g.DependsOn, w.DependsOn)
	})
}

// costs works out again what the tokens cost. Each model call is rounded up by itself, by less than a pico-dollar.
func (v *GateVerdict) costs(r *spec.Receipt, p *spec.Plan, agents map[string]*spec.PlanAgent) {
	var total spec.USD
	known := true
	for _, t := range r.Work() {
		price, priced := p.Price(agents[t.Assignee])
		if t.Cost == nil {
			known = false
		} else {
			total += *t.Cost
		}
		least := price.Cost(t.Tokens)
		switch b := agents[t.Assignee].Backend; {
		case b != nil && b.Kind == spec.BackendACP: // its own word, which the log has
		case priced != (t.Cost != nil) && t.StartedAt != "":
			v.broken(hintReceipt, "the cost of task %q is known on one side only", t.ID)
		case priced && t.Cost != nil && (*t.Cost < least || *t.Cost > least+spec.USD(t.ModelCalls)):
			v.broken(hintReceipt, "task %q cost $%s by its tokens, and $%s by the receipt", t.ID, least, *t.Cost)
		}
	}
	if known != (r.Cost != nil) || known && total != *r.Cost {
		v.broken(hintReceipt, "the costs of the tasks do not add up to the total")
	}
}
