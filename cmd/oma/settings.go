package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

// setting is one value in force, as a document.
type setting struct {
	Path   spec.Path `json:"path"`
	Value  any       `json:"value"`  // null: none
	Source string    `json:"source"` // flag, variable, policy NAME, agent, defaults, file, program …
	Where  string    `json:"where,omitempty"`
}

// settings adds to what follows from the documents what only the command line and the environment know.
func (a *app) settings(c *compiled, f *teamFlags, o runtime.CompileOptions, ceilings spec.Budgets) (out []setting) {
	given := a.givenPolicies(f)
	for _, s := range runtime.Effective(c.loaded.Bundle, c.plan, o, ceilings) {
		x := setting{Path: s.Path, Value: s.Value, Source: s.Source}
		if s.At != "" {
			x.Where = c.loaded.Sources.Where(s.Doc, s.At)
		}
		if steps := s.Path.Split(); steps[0] == "providers" && steps[len(steps)-1] == "baseURL" {
			x.Value = baseURL(c.plan.Providers[fmt.Sprint(steps[1])].Provider)
		}
		if s.Source == runtime.FromFlag {
			x.Where = flagOf(s.Path, f)
		}
		if name, above := strings.CutPrefix(s.Source, "policy "); above {
			x.Where = cmp.Or(x.Where, given[name])
		}
		out = append(out, x)
	}
	if s, err := a.stateSetting(c); err == nil {
		out = append(out, s)
	}
	return out
}

// givenPolicies says where each policy above the team file was named.
func (a *app) givenPolicies(f *teamFlags) map[string]string {
	out := map[string]string{}
	fromEnv := filepath.SplitList(a.getenv("OMA_POLICY"))
	for _, p := range f.above.Files {
		for i, path := range a.abovePaths(f) {
			if p.Path != "//policy/"+filepath.ToSlash(path) {
				continue
			}
			out[p.Policy.Name] = "--policy " + path
			if i < len(fromEnv) {
				out[p.Policy.Name] = "OMA_POLICY, " + path
			}
			break
		}
	}
	return out
}

// flagOf names the flag that gave a value.
func flagOf(path spec.Path, f *teamFlags) string {
	switch steps := path.Split(); steps[0] {
	case "goal":
		if f.goalFile != "" {
			return "--goal-file"
		}
		return "--goal"
	case "inputs":
		return "--input"
	case "mode":
		return "--agent"
	default:
		return map[any]string{"maxTokenBudget": "--max-token-budget", "maxCostBudget": "--max-cost-budget", "maxDuration": "--max-duration"}[steps[len(steps)-1]]
	}
}

// stateSetting says where a run of the team would be kept.
func (a *app) stateSetting(c *compiled) (setting, error) {
	dir, err := filepath.Abs(c.dir)
	if err != nil {
		return setting{}, err
	}
	state, err := a.stateDir("", dir)
	s := setting{Path: "state", Value: state, Source: "variable", Where: "HOME"}
	for _, name := range []string{"OMA_STATE", "XDG_STATE_HOME"} {
		if v := a.getenv(name); v != "" && (name == "OMA_STATE" || filepath.IsAbs(v)) {
			s.Where = name
			break
		}
	}
	return s, err
}

// explained is a compiled team that is asked about.
type explained struct {
	*app
	c        *compiled
	settings []setting
	ceilings spec.Budgets // of the command line
}

// path shows the values at a path and below it; of an agent, what it can do.
func (v *explained) path(path spec.Path, output string) error {
	want := path.Split()
	if len(want) == 2 && want[0] == "agents" {
		name := fmt.Sprint(want[1])
		view := runtime.CapabilityOf(v.c.plan, name, catalog().Tools)
		if view == nil {
			return usage("the team has no agent %q: %s", name, spec.DidYouMean(name, v.agents()))
		}
		view.Budgets = runtime.Narrow(view.Budgets, v.ceilings)
		return v.print(output, view, func(w io.Writer) { v.capabilityText(w, view) })
	}
	if len(want) == 2 && want[0] == "tasks" {
		view := runtime.TaskOf(v.c.plan, want[1])
		if view == nil {
			return usage("the plan has no task %q: it has %d, from tasks[0], and the id of the first is %s", path, len(v.c.plan.Tasks), v.c.plan.Tasks[0].ID)
		}
		return v.print(output, view, func(w io.Writer) { v.taskText(w, view) })
	}
	var found []setting
	for _, s := range v.settings {
		if have := s.Path.Split(); len(have) >= len(want) && slices.Equal(have[:len(want)], want) {
			found = append(found, s)
		}
	}
	if found == nil || len(want) == 0 {
		return v.noPath(path)
	}
	return v.list(found, output)
}

// noPath says what can be asked instead: what there is below the part of the path that is right.
func (v *explained) noPath(path spec.Path) error {
	want, right := path.Split(), 0
	var below []string
	for _, s := range v.settings {
		have, n := s.Path.Split(), 0
		for n < len(have) && n < len(want) && have[n] == want[n] {
			n++
		}
		if n > right {
			below, right = nil, n
		}
		if n == right && n < len(have) {
			if next := fmt.Sprint(have[n]); !slices.Contains(below, next) {
				below = append(below, next)
			}
		}
	}
	if right == len(want) {
		return usage("nothing is at %q", path)
	}
	return usage("nothing is at %q: %s", path, spec.DidYouMean(fmt.Sprint(want[right]), below))
}

func (v *explained) roots() (out []string) {
	for _, s := range v.settings {
		if root := fmt.Sprint(s.Path.Split()[0]); !slices.Contains(out, root) {
			out = append(out, root)
		}
	}
	if !slices.Contains(out, "tasks") { // those that follow from the declaration
		out = append(out, "tasks")
	}
	return out
}

func (v *explained) agents() (names []string) {
	for _, a := range v.c.plan.Agents {
		names = append(names, a.Name)
	}
	return names
}

// list shows settings: one document, or a line each.
func (v *explained) list(all []setting, output string) error {
	return v.print(output, map[string]any{"settings": all}, func(w io.Writer) {
		for _, s := range all {
			from := s.Source
			if s.Where != "" {
				from += " (" + s.Where + ")"
			}
			fmt.Fprintf(w, "%-36s %-28s %s\n", s.Path, v.outside(short(valueText(s.Value))), v.outside(from))
		}
	})
}

// short keeps a column of values narrow.
func short(text string) string {
	if cut := cutTo(text, 60); cut != text {
		return cut + " …"
	}
	return text
}

// valueText is a value on one line.
func valueText(value any) string {
	switch t := value.(type) {
	case nil:
		return "none"
	case string:
		return cutLine(t)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(value) != nil {
		return "(no JSON)"
	}
	return cutLine(b.String())
}
