package plandiff

import (
	"reflect"
	"slices"

	"github.com/open-multi-agent/oma/spec"
)

// plan says what the parts of a plan mean. A member without a row is one whose differences are widened.
func plan() *part {
	return &part{of: map[string]*part{
		"digest":          {judge: func(*walk, any, any) verdict { return elsewhere }}, // it follows from all the rest
		"goal":            changed("the goal is another text", "goal"),
		"goalDigest":      follows("goal"),
		"team":            {of: map[string]*part{"name": changed("the team has another name"), "path": changed("the team file has another name"), "digest": teamDigest()}},
		"inputs":          {each: &part{of: map[string]*part{"path": changed(""), "digest": changed("the file has another text"), "kind": changed("the file is of another kind")}}, by: []string{"path", "kind"}, added: changes("is a file of the plan"), removed: changes("is no file of the plan any more")},
		"routingDecision": {of: map[string]*part{"source": changed("the topology comes from elsewhere"), "mode": changed("the topology is of another kind", "mode"), "reasons": changed("the topology has other reasons"), "routerVersion": changed("the goal is judged by other rules")}},
		"governance":      governance(),
		"flags":           {each: changed(""), added: widens("the plan carries a further flag"), removed: flagGone, reads: []string{"flags"}},
		"policies":        policies(),
		"providers":       {each: provider(), added: widens("is a further provider, which may be asked"), removed: narrows("is no longer a provider")},
		"customTools":     {each: customTool(), added: widens("is a further tool of the team's own"), removed: narrows("is no longer a tool of the team's own")},
		"mcpServers":      {each: mcpServer(), added: widens("is a further MCP server"), removed: narrows("is no longer an MCP server")},
		"agents":          {each: agent(), by: []string{"name"}, agent: "name", added: agentNew, removed: narrows("is no longer an agent"), reads: []string{"agents"}},
		"tasks":           {each: task(), by: []string{"id"}, agent: "assignee", added: widens("is a further task"), removed: taskGone, reads: []string{"tasks"}},
		"gates":           gates(),
		"release":         {each: requirement(), by: []string{"name"}, added: narrows("must hold before release"), removed: widens("need no longer hold before release")},
		"approvals":       approvals(),
		"budgets":         budgets(),
		"scheduling": {of: map[string]*part{"maxConcurrency": ceiling("how many tasks run at once", "5"), "strategy": changed("agents are chosen in another way"),
			"weights": changed("fit and load count otherwise")}},
		"delegation": {judge: delegation},
		"egressPolicy": {of: map[string]*part{"offline": control("models are asked on this machine alone", "models are asked beyond this machine", false),
			"allow": {judge: origins}}, added: narrows("it is bounded where models are asked"), removed: widens("models may be asked anywhere")},
		"sharedMemory":         {of: map[string]*part{"redact": demands("is taken out of the shared memory", "is no longer taken out of the shared memory")}, added: widens("agents share a memory"), removed: narrows("agents share no memory any more")},
		"enforcement":          {each: &part{choose: enforced}, by: []string{"agent", "control"}, agent: "agent", added: controlNew, removed: controlGone},
		"worstCase":            changed("the worst case is another one; it is no limit"),
		"planOnly":             nil,
		"governanceConclusion": nil,
		"apiVersion":           nil,
		"kind":                 nil,
	}}
}

// follows is a digest of another member: told there, if that differs too.
func follows(of string) *part {
	return &part{judge: func(w *walk, _, _ any) verdict {
		if reflect.DeepEqual(w.a[of], w.b[of]) {
			return unexplained
		}
		return elsewhere
	}}
}

// teamDigest is told with the files of the plan, among which the team file is.
func teamDigest() *part {
	return &part{judge: func(w *walk, _, _ any) verdict {
		if reflect.DeepEqual(w.a["inputs"], w.b["inputs"]) {
			return verdict{Changed, "the team file has another text"}
		}
		return elsewhere
	}}
}

func governance() *part {
	return &part{of: map[string]*part{
		"governanceIntent": ladder("governance", spec.IntentNone, spec.IntentNone, spec.IntentPreferred, spec.IntentRequired),
		"requiredRoles":    demands("is a required role", "is no longer a required role"),
		"requiredOrder":    sequence("the order of the roles"),
		"independence": {of: map[string]*part{
			"parallel":          licence("roles without an order count as independent", "roles without an order no longer count as independent", false),
			"reviewersReadOnly": control("required roles have no consequential tool", "required roles may have consequential tools", false),
			"differentModel":    control("required roles work with different models", "required roles may work with one model", false),
		}},
		"preferredUnderBudget": always(Widened, "preferred roles under a ceiling are dealt with in another way"),
	}}
}

func budgets() *part {
	return &part{of: map[string]*part{
		"maxTokenBudget":     ceiling("the token budget", "", "budget", "budgets"),
		"maxCostBudget":      cost(),
		"maxDuration":        ceiling("the duration", "", "budgets"),
		"reserveForRequired": control("tokens are kept back for required roles", "no tokens are kept back for required roles", false, "budget"),
	}}
}

// cost is a ceiling of which 0 is one: nothing may be spent.
func cost() *part {
	return &part{reads: []string{"budget", "budgets"}, judge: func(_ *walk, a, b any) verdict {
		x, okA := number(a)
		y, okB := number(b)
		switch {
		case !okA || !okB:
			return unknown
		case y == nil:
			return verdict{Widened, "the cost has no ceiling any more"}
		case x == nil:
			return verdict{Narrowed, "the cost has a ceiling"}
		case x.Cmp(y) < 0:
			return verdict{Widened, "the cost budget is raised"}
		}
		return verdict{Narrowed, "the cost budget is lowered"}
	}}
}

// origins compares where models may be asked: anywhere without a list.
func origins(_ *walk, a, b any) verdict {
	was, listed := a.([]any)
	is, bounded := b.([]any)
	switch {
	case a != nil && !listed, b != nil && !bounded:
		return unknown
	case b == nil:
		return verdict{Widened, "models may be asked at any origin"}
	case a == nil:
		return verdict{Narrowed, "models may be asked at these origins alone"}
	}
	for _, origin := range is {
		if !slices.Contains(was, origin) {
			return verdict{Widened, "models may be asked at further origins"}
		}
	}
	return verdict{Narrowed, "models may be asked at fewer origins"}
}

// delegation compares depths: none without the object, and the default without a depth.
func delegation(_ *walk, a, b any) verdict {
	depth := func(v any) any {
		o, ok := v.(object)
		switch {
		case v == nil:
			return "0"
		case !ok || len(o) > 1:
			return false
		case o["maxDelegationDepth"] == nil && len(o) == 0:
			return "3"
		}
		return o["maxDelegationDepth"]
	}
	x, okA := number(depth(a))
	y, okB := number(depth(b))
	switch {
	case !okA || !okB || x == nil || y == nil:
		return unknown
	case x.Cmp(y) < 0:
		return verdict{Widened, "agents may delegate further"}
	case x.Cmp(y) > 0:
		return verdict{Narrowed, "agents may delegate less far"}
	}
	return verdict{Changed, "agents may delegate as far as before"}
}

func provider() *part {
	return &part{of: map[string]*part{
		"kind":           always(Widened, "answers come from another kind of provider"),
		"baseURL":        always(Widened, "prompts and key go to another address"),
		"apiKey":         secret(),
		"cassette":       changed("the cassette is another file"),
		"cassetteDigest": changed("the cassette has another text"),
		"stream":         changed("answers are streamed in another way"),
		"echoReasoning":  changed("reasoning is sent back in another way"),
		"maxRetries":     retries(),
		"maxRetryDelay":  ceiling("the wait for a retry", "60s"),
		"models": {each: &part{of: map[string]*part{
			"inputPer1M": money("the price of input"), "cachedInputPer1M": money("the price of cached input"), "outputPer1M": money("the price of output"),
			"contextWindow": changed("the context window is another one; it is no limit"),
		}}, added: widens("is a further priced model"), removed: widens("has no price any more")},
	}}
}

// retries is a ceiling of which 0 is one, and 2 the default.
func retries() *part {
	return &part{judge: func(_ *walk, a, b any) verdict {
		count := func(v any) any {
			if v == nil {
				return "2"
			}
			return v
		}
		x, okA := number(count(a))
		y, okB := number(count(b))
		switch {
		case !okA || !okB:
			return unknown
		case x.Cmp(y) < 0:
			return verdict{Widened, "a failed call is made again more often"}
		case x.Cmp(y) > 0:
			return verdict{Narrowed, "a failed call is made again less often"}
		}
		return verdict{Changed, "a failed call is made again as often as before"}
	}}
}

// secret is where a secret comes from.
func secret() *part {
	return &part{judge: func(_ *walk, a, b any) verdict {
		switch {
		case a == nil:
			return verdict{Widened, "is a new credential"}
		case b == nil:
			return verdict{Narrowed, "is given no credential any more"}
		}
		return verdict{Widened, "is a credential from elsewhere"}
	}}
}

func requirement() *part {
	return &part{of: map[string]*part{"name": changed(""), "that": always(Widened, "asks for something else, which may be less"), "reason": changed("has another reason")}}
}

// flagGone is for the better, unless something was asked of plans that carry it.
func flagGone(w *walk, _ any) verdict {
	for _, plan := range []object{w.a, w.b} {
		if a, _ := plan["approvals"].(object); a["requireConsequentialConfirmation"] == true {
			return verdict{Widened, "the plan no longer carries the flag, so that it needs no confirmation"}
		}
	}
	return verdict{Narrowed, "the plan no longer carries the flag"}
}

// taskGone is less work, unless it was that of a required role.
func taskGone(_ *walk, e any) verdict {
	if member(e, "role") != "" {
		return verdict{Widened, "is no longer a task, and it filled a required role"}
	}
	return verdict{Narrowed, "is no longer a task"}
}

func task() *part {
	return &part{of: map[string]*part{
		"id":                changed(""),
		"title":             changed("the title is another text", "title", "tasks"),
		"description":       changed("the description is another text", "description", "tasks"),
		"assignee":          always(Widened, "another agent works on it"),
		"role":              always(Widened, "it fills another role, and rules see that"),
		"dependsOn":         {each: changed(""), added: widens("it waits for this task, and is given its text"), removed: widens("it no longer waits for this task")},
		"status":            nil,
		"label":             changed("the label is another text"),
		"requires":          always(Widened, "its agent must have something else"),
		"assignedBy":        changed("its agent is chosen in another way"),
		"memoryScope":       always(Widened, "it is told other things of what others did"),
		"dependencyPayload": always(Widened, "it is handed other things by the tasks it waits for"),
		"priority":          changed("its priority is another one"),
		"metadata":          changed("its metadata differ"),
		"maxRetries":        ceiling("how often it is tried again", "0"),
		"retryDelay":        changed("the wait before it is tried again is another one"),
		"retryBackoff":      changed("the wait before it is tried again grows otherwise"),
	}}
}

// enforced is how far a control holds. Where that differs, so does the mechanism, which is told with it.
func enforced(a, b any) *part {
	mechanism := changed("the control has another mechanism")
	if member(a, "level") != member(b, "level") {
		mechanism = always("", "")
	}
	return &part{of: map[string]*part{
		"agent": changed(""), "control": changed(""), "mechanism": mechanism,
		"level": ladder("the control", "", spec.NotEnforceable, spec.Observed, spec.Enforced),
	}}
}

// inBoth gives the agents of both plans. What follows from one that is new, or gone, is told with it.
func inBoth(a, b object) map[string]bool {
	first, both := map[string]bool{}, map[string]bool{}
	x, _ := a["agents"].([]any)
	y, _ := b["agents"].([]any)
	for _, e := range x {
		first[member(e, "name")] = true
	}
	for _, e := range y {
		both[member(e, "name")] = first[member(e, "name")]
	}
	return both
}

func controlNew(w *walk, e any) verdict {
	switch {
	case !w.both[member(e, "agent")]:
		return elsewhere
	case member(e, "level") == spec.Enforced:
		return verdict{Narrowed, "the control is enforced"}
	}
	return verdict{Widened, "the control is not enforced"}
}

func controlGone(w *walk, e any) verdict {
	if !w.both[member(e, "agent")] {
		return elsewhere
	}
	return verdict{Widened, "nothing is said of the control any more"}
}
