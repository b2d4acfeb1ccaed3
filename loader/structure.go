package loader

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

// visit calls f for every map at a pattern of steps below v. * stands for every member or element. Whatever has
// another shape is passed over: the schema has reported it.
func visit(v any, at spec.Path, f func(m map[string]any, at spec.Path), steps ...string) {
	m, isMap := v.(map[string]any)
	if len(steps) == 0 {
		if isMap {
			f(m, at)
		}
		return
	}
	if steps[0] != "*" {
		if next, ok := m[steps[0]]; ok {
			visit(next, at.Key(steps[0]), f, steps[1:]...)
		}
		return
	}
	for _, k := range sortedKeys(m) {
		visit(m[k], at.Key(k), f, steps[1:]...)
	}
	list, _ := v.([]any)
	for i, x := range list {
		visit(x, at.Index(i), f, steps[1:]...)
	}
}

// expressions takes true and false in the place of an expression as text, which is what they are there.
func expressions(root map[string]any) {
	take := func(key string) func(map[string]any, spec.Path) {
		return func(m map[string]any, _ spec.Path) {
			if b, ok := m[key].(bool); ok {
				m[key] = strconv.FormatBool(b)
			}
		}
	}
	takeAll := func(m map[string]any, at spec.Path) {
		for key := range m {
			take(key)(m, at)
		}
	}
	for _, steps := range ruleLists {
		rules := append(strings.Fields(steps), "*")
		visit(root, "", take("when"), rules...)
		visit(root, "", take("reasonExpression"), rules...)
		visit(root, "", takeAll, append(slices.Clone(rules), "annotate")...)
	}
	visit(root, "", take("that"), "release", "require", "*")
}

// ruleLists are the places of rules: of a policy, of a team and its approvals, and of an agent.
var ruleLists = []string{"rules", "gates rules", "approvals plan", "approvals dispatch", "agents * gates rules"}

// structure checks what a schema cannot say and what needs no other document. It stops at maxProblems.
func (d *document) structure(root map[string]any, ds *spec.Diagnostics) {
	each := func(f func(m map[string]any, at spec.Path), steps ...string) {
		visit(root, "", func(m map[string]any, at spec.Path) {
			if len(*ds) < maxProblems {
				f(m, at)
			}
		}, steps...)
	}
	d.names(root, "", "agent", ds, "agents")
	for _, steps := range ruleLists[:4] {
		d.names(root, "", "rule", ds, strings.Fields(steps)...)
	}
	d.names(root, "", "requirement", ds, "release", "require")
	each(func(m map[string]any, at spec.Path) {
		d.names(m, at, "rule", ds, "gates", "rules")
		exclusive(m, at, ds, "systemPromptFile", "systemPrompt")
	}, "agents", "*")
	d.names(root, "", "case", ds, "cases")
	gatesPlace(each, ds)
	if root["kind"] == spec.KindPolicy {
		says(root, ds)
	}
	each(func(m map[string]any, at spec.Path) { provider(m, at, ds) }, "providers", "*")
	for _, steps := range []string{"providers * apiKey", "agents * credentials *"} {
		each(func(m map[string]any, at spec.Path) {
			exclusive(m, at, ds, "file", "env")
			if _, env := m["env"]; !env && m["file"] == nil {
				ds.Errorf("missing-key", at, `missing "env" or "file" in %s`, at).Hint = "add env: NAME, the variable that holds the key"
			}
			unfollowed(m, "file", always, at, ds)
		}, strings.Fields(steps)...)
	}
	each(func(m map[string]any, at spec.Path) { unfollowed(m, "cwd", home, at, ds) }, "defaults")
	each(func(m map[string]any, at spec.Path) { unfollowed(m, "cwd", home, at, ds) }, "agents", "*")
	each(func(m map[string]any, at spec.Path) { unfollowed(m, "cwd", home, at, ds) }, "mcpServers", "*")
	each(func(m map[string]any, at spec.Path) { besideNone(m, at, ds) }, "governance")
	each(func(m map[string]any, at spec.Path) {
		money(m, at, ds, "inputPer1M", "cachedInputPer1M", "outputPer1M")
	}, "providers", "*", "models", "*")
	each(func(m map[string]any, at spec.Path) { money(m, at, ds, "maxCostBudget") }, "budgets")
	for _, by := range []string{"agents", "tasks"} {
		each(func(m map[string]any, at spec.Path) {
			exclusive(m, at, ds, "error", "text", "reasoning", "toolCalls", "usage", "finish", "model")
		}, by, "*", "*")
		each(func(m map[string]any, at spec.Path) { exclusive(m, at, ds, "arguments", "input") }, by, "*", "*", "toolCalls", "*")
		each(func(m map[string]any, at spec.Path) { usage(m, at, ds) }, by, "*", "*", "usage")
	}
}

// names finds names that stand twice in a list, also where only their case differs.
func (d *document) names(v any, at spec.Path, what string, ds *spec.Diagnostics, steps ...string) {
	f := finder{}
	first := map[string]spec.Path{}
	spelled := map[string]string{}
	visit(v, at, func(m map[string]any, at spec.Path) {
		name, ok := m["name"].(string)
		if !ok || name == "" || len(*ds) >= maxProblems {
			return
		}
		low := strings.ToLower(name)
		if _, seen := first[low]; !seen {
			first[low], spelled[low] = at.Key("name"), name
			return
		}
		pos, _ := d.span(f.find(d.root, first[low]).value)
		if spelled[low] == name {
			ds.Errorf("duplicate-name", at.Key("name"), "%s %q is already declared on line %d", what, name, pos.Line)
			return
		}
		ds.Errorf("duplicate-name", at.Key("name"), "%s %q and %q on line %d differ only in case", what, name, spelled[low], pos.Line)
	}, append(steps, "*")...)
}

// exclusive refuses a key beside others.
func exclusive(m map[string]any, at spec.Path, ds *spec.Diagnostics, key string, others ...string) {
	if _, ok := m[key]; !ok {
		return
	}
	for _, other := range others {
		if _, ok := m[other]; ok {
			p := ds.Errorf("exclusive-keys", at.Key(key), "%q and %q exclude each other", key, other)
			p.OnKey, p.Hint = true, "keep one of them"
		}
	}
}

func provider(m map[string]any, at spec.Path, ds *spec.Diagnostics) {
	_, has := m["cassette"]
	if m["kind"] != "scripted" {
		if has {
			p := ds.Errorf("misplaced-key", at.Key("cassette"), `"cassette" belongs to kind: scripted`)
			p.OnKey, p.Hint = true, "leave it out or write kind: scripted"
		}
		return
	}
	if !has {
		ds.Errorf("missing-key", at, `missing "cassette" in %s`, at).Hint = "add cassette: FILE, the turns to play"
	}
	for _, key := range []string{"baseURL", "apiKey"} {
		if _, ok := m[key]; ok {
			p := ds.Errorf("misplaced-key", at.Key(key), "%q has no use in a scripted provider", key)
			p.OnKey, p.Hint = true, "leave it out"
		}
	}
}

// unfollowed refuses paths that are not followed here and can lead nowhere, where the key takes offence at them: a cwd
// may be absolute, and a key file is named like any other file.
func unfollowed(m map[string]any, key string, offends func(string) bool, at spec.Path, ds *spec.Diagnostics) {
	name, ok := m[key].(string)
	if !ok || !offends(name) {
		return
	}
	if p := badPath(name); p != nil {
		p.Path = at.Key(key)
		*ds = append(*ds, *p)
	}
}

func always(string) bool { return true }

// besideNone refuses what a governance of none cannot mean. The key counts, not its value: a default that is written
// out was meant to do something too.
func besideNone(m map[string]any, at spec.Path, ds *spec.Diagnostics) {
	if m["governanceIntent"] != spec.IntentNone {
		return
	}
	for _, key := range sortedKeys(m) {
		if key == "governanceIntent" || strings.HasPrefix(key, "x-") {
			continue
		}
		if len(*ds) >= maxProblems {
			return
		}
		p := ds.Errorf("governance-none", at.Key(key), "%s has no meaning beside governanceIntent none", key)
		p.OnKey, p.Hint = true, "drop it, or use required or preferred"
	}
}

// maxDollars is the largest amount in the schema, just below what spec.USD holds.
const maxDollars = 9_000_000

// money refuses amounts that cannot be kept exactly.
func money(m map[string]any, at spec.Path, ds *spec.Diagnostics, keys ...string) {
	for _, key := range keys {
		n, ok := m[key].(json.Number)
		if f, err := n.Float64(); !ok || err != nil || f < 0 || f > maxDollars {
			continue // the schema reports it
		}
		if _, err := spec.ParseUSD(n.String()); err != nil {
			ds.Errorf("bad-value", at.Key(key), "%s: %s", key, err)
		}
	}
}

// usage refuses a part that is larger than the whole it is part of.
func usage(m map[string]any, at spec.Path, ds *spec.Diagnostics) {
	for _, of := range []struct{ part, whole string }{{"cachedInput", "input"}, {"reasoning", "output"}} {
		part, ok := m[of.part].(json.Number)
		whole, has := m[of.whole].(json.Number)
		p, err := part.Float64() // exact: the schema reports counts above spec.MaxTokens
		w, bad := whole.Float64()
		if ok && has && err == nil && bad == nil && w < p && p <= spec.MaxTokens {
			ds.Errorf("out-of-range", at.Key(of.part), "%s %s is more than %s %s, which it is part of", of.part, part, of.whole, whole)
		}
	}
}
