package plandiff

import (
	"slices"

	"github.com/open-multi-agent/oma/spec"
)

// strictness are the actions of rules, from the one that lets most happen.
var strictness = []string{spec.ActionAllow, spec.ActionWarn, spec.ActionAsk, spec.ActionSuspend, spec.ActionDeny}

func gates() *part {
	return &part{of: map[string]*part{
		"declared": control("every call is judged", "no call is judged", false),
		"default":  ladder("what happens to a call that no rule permits", "", spec.ActionAllow, spec.ActionDeny),
		"rules":    rules(),
		"levels":   {each: level(), by: []string{"match"}, added: levelNew, removed: levelGone, reads: readRisk},
	}}
}

// readRisk are words by which rules see levels. They compare them word by word, so that even a higher one may open a rule.
var readRisk = []string{"risk", "findings", "classifyBash"}

func level() *part {
	raised := ladder("the level", "", "safe", "review", "high")
	raised.reads = readRisk
	return &part{of: map[string]*part{
		"match":    always(Widened, "is of other commands"),
		"level":    raised,
		"reason":   changed("has another reason"),
		"override": licence("lowers what is high by itself", "lowers nothing that is high by itself", false, readRisk...),
	}}
}

func levelNew(_ *walk, e any) verdict {
	if o, _ := e.(object); o["override"] == true || member(e, "level") != "review" && member(e, "level") != "high" {
		return verdict{Widened, "commands have a level by the team's word, which may be a lower one"}
	}
	return verdict{Narrowed, "commands have a higher level by the team's word"}
}

func levelGone(_ *walk, e any) verdict {
	if member(e, "level") == "safe" {
		return verdict{Narrowed, "commands have no lower level any more"}
	}
	return verdict{Widened, "commands have no level by the team's word any more"}
}

func approvals() *part {
	return &part{of: map[string]*part{
		"requireConsequentialConfirmation": control("consequential calls wait for an approved plan", "consequential calls wait for no approved plan", false),
		"plan":                             rules(),
		"dispatch":                         rules(),
		"reviewers":                        {choose: reviewers},
		"expires":                          ceiling("the time in which somebody can approve", ""),
		"quorum":                           quorum("how many must approve"),
		"separateApprover":                 control("the author approves nothing", "the author may approve", false),
	}}
}

// quorum is a number of people, of whom there is at least one.
func quorum(what string) *part {
	return &part{judge: func(_ *walk, a, b any) verdict {
		x, okA := bound(a, "1")
		y, okB := bound(b, "1")
		switch {
		case !okA || !okB:
			return unknown
		case y.Cmp(x) < 0:
			return verdict{Widened, what + " is lowered"}
		case y.Cmp(x) > 0:
			return verdict{Narrowed, what + " is raised"}
		}
		return verdict{Changed, what + " is the same"}
	}}
}

// reviewers are all who may decide, and without any that is everybody.
func reviewers(a, b any) *part {
	x, _ := a.([]any)
	y, _ := b.([]any)
	switch {
	case len(x) == 0:
		return always(Narrowed, "not everybody may decide any more")
	case len(y) == 0:
		return always(Widened, "everybody may decide")
	}
	return &part{by: []string{"id"}, added: widens("may decide"), removed: narrows("may no longer decide"),
		each: &part{of: map[string]*part{"id": changed(""), "publicKey": {judge: func(_ *walk, a, _ any) verdict {
			if a == nil {
				return verdict{Narrowed, "must sign what they decide"}
			}
			return verdict{Widened, "decides with another key, or without one"}
		}}}}}
}

func rules() *part {
	return &part{each: &part{choose: rule}, by: []string{"name"}, agent: "agent", added: ruleNew, removed: ruleGone}
}

func forbids(action string) bool {
	return action == spec.ActionDeny || action == spec.ActionSuspend || action == spec.ActionAsk
}

// described says in a word or two what a rule does.
func described(e any) string {
	return first(member(e, "action"), "unknown") + " rule of " + first(member(e, "source"), "nowhere")
}

func ruleNew(w *walk, e any) verdict {
	switch action := member(e, "action"); {
	case forbids(action):
		return w.sets(e, verdict{Narrowed, "is a further " + described(e)})
	case action == spec.ActionWarn:
		return w.sets(e, verdict{Changed, "is a further " + described(e)})
	}
	return verdict{Widened, "is a further " + described(e)}
}

func ruleGone(w *walk, e any) verdict {
	v := verdict{Widened, "is gone, a " + described(e)}
	if member(e, "action") == spec.ActionAllow {
		v.Direction = Narrowed
		return w.sets(e, v)
	}
	return v
}

// sets keeps a rule from being narrowed, or harmless, that does more than judge: its mark may open another rule, and a call
// that it denies stands in the history as denied.
func (w *walk) sets(e any, v verdict) verdict {
	reads := []string{"history+action"}
	if member(e, "mark") != "" {
		reads = append(reads, "marks")
	}
	return w.guarded(&part{reads: reads}, v)
}

// rule is a rule that both plans have. What its parts mean depends on whether it forbids or permits.
func rule(a, b any) *part {
	x, y := member(a, "action"), member(b, "action")
	tools, replaced, scope := always(Widened, "is about other tools"), always(Widened, "is replaced for other agents"), always(Widened, "is about other agents")
	switch {
	case forbids(x) && forbids(y):
		tools, replaced, scope = toolsOf(true), permits("an agent is free of it", "an agent is no longer free of it"), holder(true)
	case x == spec.ActionAllow && y == spec.ActionAllow:
		tools, replaced, scope = toolsOf(false), demands("an agent is without it", "an agent is no longer without it"), holder(false)
	}
	if member(a, "mark") != "" || member(b, "mark") != "" {
		tools.reads, replaced.reads, scope.reads = []string{"marks"}, []string{"marks"}, []string{"marks"}
	}
	return &part{of: map[string]*part{
		"name":             changed(""),
		"tools":            tools,
		"when":             always(Widened, "has another condition, which may let more happen"),
		"action":           action(),
		"reason":           changed("has another reason"),
		"reasonExpression": changed("has another reason"),
		"annotate":         changed("has other notes"),
		"mark":             changed("sets another mark", "marks"),
		"overridable":      licence("an agent may do without it", "no agent may do without it", false),
		"examples":         changed("has other examples"),
		"source":           always(Widened, "comes from elsewhere, which decides what it may do"),
		"agent":            scope,
		"replacedFor":      replaced,
		"appliesTo":        {each: &part{of: map[string]*part{"tool": changed(""), "cost": changed("its judgement has another cost")}}, by: []string{"tool"}, added: changes("meets the tool, which follows from the rest"), removed: changes("no longer meets the tool, which follows from the rest")},
	}}
}

func action() *part {
	return &part{reads: []string{"history+action"}, judge: func(_ *walk, a, b any) verdict {
		rung := func(v any) int { s, _ := v.(string); return slices.Index(strictness, s) }
		switch x, y := rung(a), rung(b); {
		case x < 0 || y < 0:
			return unknown
		case y < x:
			return verdict{Widened, "its action is weaker"}
		}
		return verdict{Narrowed, "its action is stricter"}
	}}
}

// toolsOf are the tools of a rule. Without any it is about all of them.
func toolsOf(forbids bool) *part {
	return &part{judge: func(_ *walk, a, b any) verdict {
		x, okA := texts(a)
		y, okB := texts(b)
		if !okA || !okB {
			return unknown
		}
		grows := b == nil || a != nil && contained(x, y)
		shrinks := a == nil || b != nil && contained(y, x)
		switch {
		case grows && shrinks:
			return verdict{Changed, "is about the same tools"}
		case grows && forbids:
			return verdict{Narrowed, "is about more tools"}
		case shrinks && !forbids:
			return verdict{Narrowed, "is about fewer tools"}
		case grows:
			return verdict{Widened, "is about more tools"}
		}
		return verdict{Widened, "is no longer about some tools"}
	}}
}

func contained(in, all []string) bool {
	return !slices.ContainsFunc(in, func(s string) bool { return !slices.Contains(all, s) })
}

// holder is the one agent that a rule is about. Without one it is about all of them.
func holder(forbids bool) *part {
	return &part{judge: func(_ *walk, a, b any) verdict {
		switch {
		case b == nil && forbids:
			return verdict{Narrowed, "is about every agent"}
		case a == nil && !forbids:
			return verdict{Narrowed, "is about one agent alone"}
		}
		return verdict{Widened, "is about other agents"}
	}}
}
