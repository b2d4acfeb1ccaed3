// Command generate lets oma take part in a bench of agent-team runners. It reads a workload, writes a team file or a
// saved plan of the same work beside it, and prints the command to measure, one argument a line.
//
//	generate WORKLOAD.json OMA [FLAG...]
//
// OMA is the binary to measure; the flags go to oma run. Work with dependencies of its own is written as a saved plan,
// since the team language of this version declares none: the plan is sealed like one of oma plan, so the run reads,
// verifies and judges it in full. Runs are kept in a folder next to the workload's, so that the agents, which may
// write in the workload's folder, do not reach their own log.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/builtin"
	"github.com/open-multi-agent/oma/spec"
)

// workload is the work as the bench declares it. Members that oma does not need are left out.
type workload struct {
	Mode        string `json:"mode"` // run, plan or help
	BaseURL     string `json:"base_url"`
	Concurrency int    `json:"concurrency"`
	Dir         string `json:"dir"` // the folder tools work in, absolute
	Agents      []struct {
		Name   string   `json:"name"`
		System string   `json:"system"`
		Tools  []string `json:"tools"`
	} `json:"agents"`
	Tasks []struct {
		ID     string   `json:"id"`
		Agent  string   `json:"agent"`
		Prompt string   `json:"prompt"`
		Deps   []string `json:"deps"`
	} `json:"tasks"`
}

const (
	model    = "mock"
	provider = "bench"
	maxTurns = 10_000 // above what any case takes
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: generate WORKLOAD.json OMA [FLAG...]")
		os.Exit(2)
	}
	argv, err := generate(os.Args[1], os.Args[2], os.Args[3:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
	fmt.Println(strings.Join(argv, "\n"))
}

func generate(path, oma string, flags []string) ([]string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var w workload
	if err := json.Unmarshal(b, &w); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	switch w.Mode {
	case "help":
		return []string{oma, "--help"}, nil
	case "plan":
		file := filepath.Join(w.Dir, "team.yaml")
		return []string{oma, "plan", file}, writeJSON(file, w.team())
	case "run":
		argv := append([]string{oma, "run", "--quiet", "--state", w.Dir + ".state"}, flags...)
		if w.isRow() {
			file := filepath.Join(w.Dir, "team.yaml")
			return append(argv, file), writeJSON(file, w.team())
		}
		file := filepath.Join(w.Dir, "plan.json")
		return append(argv, "--again", file), w.writePlan(file) // it is measured many times
	}
	return nil, fmt.Errorf("mode %q is not run, plan or help", w.Mode)
}

// isRow says that the work is a row of agents without tools, one task each: the team language has words for that.
func (w *workload) isRow() bool {
	for i, t := range w.Tasks {
		if len(w.Agents) != len(w.Tasks) || t.Agent != w.Agents[i].Name || len(w.Agents[i].Tools) > 0 {
			return false
		}
		if i > 0 && !slices.Equal(t.Deps, []string{w.Tasks[i-1].ID}) {
			return false
		}
	}
	return true
}

// team is roles in order, as a person would declare them. JSON is YAML.
func (w *workload) team() map[string]any {
	var agents []map[string]any
	var roles []string
	for _, a := range w.Agents {
		agents = append(agents, map[string]any{"name": a.Name, "systemPrompt": a.System})
		roles = append(roles, a.Name)
	}
	return map[string]any{
		"apiVersion": spec.APIVersion, "kind": spec.KindTeam, "name": "bench", "goal": "Review the work.",
		"providers":  map[string]any{provider: map[string]any{"kind": "openai", "baseURL": w.BaseURL}},
		"defaults":   map[string]any{"provider": provider, "model": model},
		"agents":     agents,
		"governance": map[string]any{"governanceIntent": "required", "requiredRoles": roles, "requiredOrder": roles},
	}
}

func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}

// writePlan writes the tasks exactly as they are declared. Nothing is gated, since the other runners gate nothing.
func (w *workload) writePlan(path string) error {
	p := &spec.Plan{
		Envelope: spec.Envelope{APIVersion: spec.APIVersion, Kind: spec.KindPlan}, PlanOnly: true,
		GovernanceConclusion: spec.NotApplicable, Team: spec.PlanTeam{Name: "bench", Path: filepath.Base(path)},
		Inputs:          []spec.PlanInput{},
		RoutingDecision: spec.RoutingDecision{Source: "declared", Mode: "team", Reasons: []string{}},
		Providers:       map[string]spec.PlanProvider{provider: {Provider: spec.Provider{Kind: "openai", BaseURL: w.BaseURL}}},
		Gates:           spec.PlanGates{Default: spec.ActionAllow, Rules: []spec.PlanRule{}},
		Scheduling:      spec.Scheduling{MaxConcurrency: w.Concurrency},
		Enforcement:     []spec.Control{},
	}
	for _, a := range w.Agents {
		grants, err := grants(a.Tools)
		if err != nil {
			return fmt.Errorf("agent %q: %w", a.Name, err)
		}
		p.Agents = append(p.Agents, spec.PlanAgent{Name: a.Name, Provider: provider, Model: model, SystemPrompt: a.System, Tools: grants,
			Cwd: w.Dir, MaxTurns: maxTurns, MaxToolInputBytes: 1 << 20, MaxToolConcurrency: 4})
	}
	for _, t := range w.Tasks {
		p.Tasks = append(p.Tasks, spec.PlanTask{ID: t.ID, Title: t.ID, Description: t.Prompt, Assignee: t.Agent, DependsOn: t.Deps,
			Status: spec.TaskPending})
	}
	if err := runtime.SealPlan(p); err != nil {
		return err
	}
	b, err := p.Encode()
	return errors.Join(err, os.WriteFile(path, b, 0o644))
}

func grants(names []string) ([]spec.Grant, error) {
	infos, out := builtin.Infos(), []spec.Grant{}
	for _, name := range names {
		i := slices.IndexFunc(infos, func(t spec.ToolInfo) bool { return t.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("oma has no tool %q", name)
		}
		out = append(out, spec.Grant{ToolInfo: infos[i], GrantedBy: "tools"})
	}
	return out, nil
}
