package policies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

// report puts a finding into the diagnostics of its rule. A nil expression: it is about the whole rule.
func (c *compiler) report(r *spec.PlanRule, x *expression, f finding) {
	path, text := r.Path, ""
	if x != nil {
		path, text = x.path, x.text
	}
	f.report(&c.diags, "gate-", path, fmt.Sprintf("rule %q", r.Name), text).File = r.Doc
}

// report adds the finding as the code it has. Warnings are what may be meant.
func (f finding) report(ds *spec.Diagnostics, prefix string, path spec.Path, who, expr string) *spec.Diagnostic {
	add, code := ds.Errorf, prefix+f.kind
	switch f.kind {
	case "optional", "untyped", "history":
		add = ds.Warnf
	case "unknown-tool", "unknown-agent", "unknown-role", "unknown-mark":
		code = f.kind
	}
	if f.mild {
		add = ds.Warnf
	}
	d := add(code, path, "%s: %s", who, f.message)
	d.Hint = f.hint
	if f.at != nil {
		d.At, d.Width = f.place(expr)
	}
	return d
}

// shared is one finding and the tools that have it.
type shared struct {
	finding
	tools []*tool
}

// reportAll reports what checking against each tool found, once for all tools that have the same problem.
func (k *ruleCheck) reportAll(x *expression, all map[*tool]*checked) {
	var groups []*shared
	for _, t := range k.scope.tools {
		if all[t] == nil {
			continue
		}
		for _, f := range all[t].findings {
			i := slices.IndexFunc(groups, func(g *shared) bool { return g.same(f) })
			if i < 0 {
				groups, i = append(groups, &shared{finding: f}), len(groups)
			}
			groups[i].tools = append(groups[i].tools, t)
		}
	}
	for _, g := range groups {
		k.report(k.rule, x, g.merged(k.scope, all))
	}
}

func (g *shared) same(f finding) bool {
	if g.kind != f.kind || g.message != f.message || (g.at == nil) != (f.at == nil) {
		return false
	}
	return g.at == nil || g.at.Line() == f.at.Line() && g.at.Column() == f.at.Column()
}

// merged says which tools a problem is about, unless it is about all that the rule can match.
func (g *shared) merged(s scope, all map[*tool]*checked) finding {
	if g.object != nil {
		return g.missing(s)
	}
	f := g.finding
	for _, t := range s.tools {
		if all[t] != nil && !all[t].never && !slices.Contains(g.tools, t) {
			f.message = fmt.Sprintf("for %s%s, %s", earlierCalls(f), toolList(g.tools, 4), f.message)
			break
		}
	}
	return f
}

func earlierCalls(f finding) string {
	if f.past {
		return "earlier calls of "
	}
	return ""
}

// missing explains a field that is not there. A field that other tools have calls for a guard, any other is misspelt.
func (g *shared) missing(s scope) finding {
	f := g.finding
	if !slices.Contains(inputs(g.tools), f.object) { // of an object inside the input
		f.hint = fields(cmp.Or(f.path, "it"), f.object, "has")
		return f
	}
	f.hint = takes(g.tools, f.name)
	var owners []*tool
	for _, t := range s.tools {
		if t.input.fields[f.name] != nil {
			owners = append(owners, t)
		}
	}
	if len(owners) == 0 {
		return f
	}
	who := toolList(owners, 4)
	if f.past {
		f.message = fmt.Sprintf("for earlier calls of %s, %s", toolList(g.tools, 4), f.message)
		f.hint = fmt.Sprintf("only %s has it: ask for the call's toolName first, or write has(%s.%s) && …", who, cmp.Or(f.path, "…"), f.name)
		return f
	}
	f.message = fmt.Sprintf("input of %s has no field %q", toolList(g.tools, 4), f.name)
	f.hint = fmt.Sprintf("only %s has it: write tools: [%s], or has(input.%s) && …", who, who, f.name)
	return f
}

func inputs(tools []*tool) (out []*shape) {
	for _, t := range tools {
		out = append(out, t.input)
	}
	return out
}

func toolList(tools []*tool, most int) string {
	var names []string
	for _, t := range tools {
		if !slices.Contains(names, t.info.Name) {
			names = append(names, t.info.Name)
		}
	}
	if len(names) > most {
		names = append(names[:most], "…")
	}
	return strings.Join(names, ", ")
}

// takes names the fields of the tools: of those alone where the missing one was probably meant, if any.
func takes(tools []*tool, missing string) string {
	var all []string
	for _, t := range tools {
		all = append(all, t.input.names...)
	}
	near := spec.Nearest(missing, all)
	if near != "" && len(tools) > 1 {
		tools = slices.DeleteFunc(slices.Clone(tools), func(t *tool) bool { return !t.has(near) })
	}
	var out []string
	for i, t := range tools {
		if i == 3 {
			out = append(out, "…")
			break
		}
		out = append(out, t.takes())
	}
	return strings.Join(out, "; ")
}

// takes names the fields of the input.
func (t *tool) takes() string {
	if t.subject {
		return fields("input", t.input, "has")
	}
	return fields(t.info.Name, t.input, "takes")
}

func fields(who string, s *shape, verb string) string {
	if len(s.names) == 0 {
		return who + " " + verb + " nothing"
	}
	return who + " " + verb + " " + strings.Join(s.names, ", ")
}
