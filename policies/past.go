package policies

import (
	"fmt"
	"slices"
)

// past checks what an expression reads of earlier calls: once for each tool that such a call may have been of, as if all
// of them had been of that tool.
func (k *ruleCheck) past(x *expression) {
	if !reads(x.loose, "history") {
		return
	}
	if x == &k.when && (levelOf(k.rule.Action) != free) {
		k.report(k.rule, x, finding{kind: "history", name: "history", at: firstRead(x.loose, "history"),
			message: fmt.Sprintf("history holds the last %d calls of one task: an earlier one drops out, and no other task has it", MaxHistory),
			hint:    "for what must hold for the rest of the run, set a mark where it happens and test it here"})
	}
	every := *k
	every.scope.tools = k.everyTool()
	found := map[*tool]*checked{}
	for _, t := range every.scope.tools {
		found[t] = &checked{tool: t, findings: k.checkPast(x, t)}
	}
	every.reportAll(x, found)
}

func (k *ruleCheck) checkPast(x *expression, t *tool) []finding {
	env, err := k.forPast(k.words, t)
	if err != nil {
		return []finding{{kind: "type", message: fmt.Sprintf("cannot be checked: %v", err)}}
	}
	clear(k.provider.missed)
	p := ofPast(t)
	a, iss := p.prune(env, x.loose)
	if iss != nil && iss.Err() != nil {
		findings := explain(iss, k.provider, p.root, k.nameable())
		for i := range findings {
			findings[i].past = true
		}
		return findings
	}
	// What the linter says of anything else was said when the judged call was checked.
	return slices.DeleteFunc(lint(k.provider, a), func(f finding) bool { return !f.past })
}

// everyTool gives the tools that a governed agent can have called before, in the order of their names.
func (k *ruleCheck) everyTool() []*tool {
	r := *k.rule
	r.Tools = nil
	return k.compiler.scope(&r).tools
}
