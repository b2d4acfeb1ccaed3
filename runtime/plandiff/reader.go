package plandiff

import (
	"regexp"
	"slices"
	"strings"
)

// bareInput finds input as a whole, of which a rule may read anything.
var bareInput = regexp.MustCompile(`\binput\s*([^.\s\w]|$)`)

// besideInput are words for what rules see beside the input.
var besideInput = []string{"agentName", "budget", "classifyBash", "findings", "history+action", "marks", "risk"}

// reader gives the name of a rule of either plan that may read a word, or nothing. A + in it joins words that must stand in
// one rule. It looks at the text alone. It may find too many and never too few: CEL has no way to make up a name.
func (w *walk) reader(word string) string {
	name, ok := w.readers[word]
	if !ok {
		name = w.findReader(word)
		w.readers[word] = name
	}
	return name
}

func (w *walk) findReader(word string) string {
	var patterns []*regexp.Regexp
	for _, one := range strings.Split(word, "+") {
		patterns = append(patterns, regexp.MustCompile(`\b`+regexp.QuoteMeta(one)+`\b`))
	}
	reads := func(when string) bool {
		missing := slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return !p.MatchString(when) })
		return !missing || !slices.Contains(besideInput, word) && bareInput.MatchString(when)
	}
	for _, plan := range []object{w.a, w.b} {
		gates, _ := plan["gates"].(object)
		approvals, _ := plan["approvals"].(object)
		for _, list := range []any{gates["rules"], approvals["plan"], approvals["dispatch"]} {
			rules, _ := list.([]any)
			for _, r := range rules {
				if reads(member(r, "when")) {
					return first(member(r, "name"), "without a name")
				}
			}
		}
	}
	return ""
}
