package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/loader"
	"github.com/open-multi-agent/oma/policies/servers"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/redact"
)

func (a *app) mcpCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Pin, list and call the tools of a team's MCP servers",
		Args:  noSuchCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.mcpLockCommand(), a.mcpListCommand(), a.mcpCallCommand())
	return cmd
}

// survey is a team whose servers are asked what they offer. It need not compile: what agents name may not be known yet.
type survey struct {
	*app
	loaded *loader.Loaded
	wiring *wiring
	agent  string // whose credentials servers get; empty: for each server the first agent that has what it needs
}

// survey checks what there is to start. Whatever a policy from above does not let through is refused before.
func (a *app) survey(path, agent string, f *teamFlags) (*survey, error) {
	above, err := a.above(f)
	if err != nil {
		return nil, err
	}
	loaded, ds, err := a.load(path)
	if err != nil {
		return nil, err
	}
	loaded.Under(above)
	ds = slices.DeleteFunc(ds, func(d spec.Diagnostic) bool { return d.File != path && d.File != spec.LockName }) // no matter of prompts, say
	if loaded.Bundle != nil {
		more := runtime.CheckServers(loaded.Bundle)
		loaded.Sources.Place(more)
		ds = append(ds, more...)
		ds.Sort()
	}
	if err := a.problems(ds, f.strict); err != nil {
		return nil, err
	}
	return a.surveyOf(path, agent, loaded)
}

// surveyOf is survey for a team that was read and looked at.
func (a *app) surveyOf(path, agent string, loaded *loader.Loaded) (*survey, error) {
	team := loaded.Bundle.Team
	if len(team.MCPServers) == 0 {
		return nil, usage("%s declares no mcpServers", path)
	}
	p := &spec.Plan{MCPServers: map[string]spec.PlanMCPServer{}}
	for name, s := range team.MCPServers {
		p.MCPServers[name] = spec.PlanMCPServer{MCPServer: s}
	}
	w, err := a.newWiring(&compiled{plan: p, loaded: loaded, file: path, dir: folderOf(path)})
	if err != nil {
		return nil, err
	}
	log, err := a.logger()
	if err != nil {
		return nil, err
	}
	w.serve(log)
	return &survey{a, loaded, w, agent}, nil
}

// ask starts every server and gives what each offers, by name. Servers end before it returns.
func (k *survey) ask(ctx context.Context) (map[string][]spec.ServerTool, error) {
	team := k.loaded.Bundle.Team
	who, err := k.credentials(team)
	if err != nil {
		return nil, err
	}
	sig := k.watchSignals(ctx, 0, func() {})
	defer sig.stop()
	defer k.wiring.serving.Close()
	out := map[string][]spec.ServerTool{}
	for _, name := range slices.Sorted(maps.Keys(team.MCPServers)) {
		s := team.MCPServers[name]
		is, err := k.wiring.connect(sig.ctx, name, &s, who[name])
		if err != nil {
			return nil, sig.because(err)
		}
		for _, d := range is.left {
			k.say("warning: %s [%s]", d.Message, d.Code)
		}
		out[name] = is.tools
	}
	return out, nil
}

// because gives a failure the exit code of the signal that caused it, if one did.
func (in *interruption) because(err error) error {
	if in.signal.Load() == 0 {
		return err
	}
	return &exitError{in.code(), err.Error()}
}

// credentials resolves what the servers need, and says whose it is, by server.
func (k *survey) credentials(team *spec.Team) (who map[string]string, err error) {
	if k.agent != "" && !slices.ContainsFunc(team.Agents, func(a spec.Agent) bool { return a.Name == k.agent }) {
		return nil, usage("--agent: unknown agent %q: %s", k.agent, spec.DidYouMean(k.agent, agentNames(team)))
	}
	who = map[string]string{}
	var known []redact.Secret
	k.wiring.credentials = map[string]map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(team.MCPServers)) {
		s := team.MCPServers[name]
		needs := servers.Credentials(&s)
		i := slices.IndexFunc(team.Agents, func(a spec.Agent) bool {
			return (k.agent == "" || a.Name == k.agent) && !slices.ContainsFunc(needs, func(need string) bool { return a.Credentials[need] == spec.SecretRef{} })
		})
		if i < 0 {
			return nil, usage("MCP server %q needs the credentials %v, and no agent has them all [credential-missing]", name, needs)
		}
		agent := &team.Agents[i]
		if k.wiring.credentials[agent.Name] == nil {
			k.wiring.credentials[agent.Name] = map[string]string{}
		}
		for _, need := range needs {
			ref := agent.Credentials[need]
			value, err := k.wiring.secret(&ref)
			if err != nil {
				return nil, usage("agent %q, credential %s: %v [secret-missing]", agent.Name, need, err)
			}
			k.wiring.credentials[agent.Name][need] = value
			known = append(known, redact.Secret{Name: need, Value: value})
		}
		who[name] = agent.Name
	}
	k.wiring.redactor = redact.New(known...)
	return who, nil
}

func agentNames(t *spec.Team) []string {
	names := make([]string, len(t.Agents))
	for i, a := range t.Agents {
		names[i] = a.Name
	}
	return names
}

// lockChanges says how what servers offer differs from what was locked. nil lock: nothing was.
func lockChanges(lock *spec.Lock, now map[string][]spec.ServerTool) (*lockDiff, error) {
	d := &lockDiff{Changes: []servers.Change{}}
	if lock == nil {
		lock = &spec.Lock{}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		was, ok := lock.Servers[name]
		if !ok {
			d.Added = append(d.Added, name)
			continue
		}
		changes, err := servers.Compare(name, servers.Tools(was.Tools), now[name])
		if err != nil {
			return nil, err
		}
		d.Changes = append(d.Changes, changes...)
	}
	return d, nil
}

// lockDiff is the difference between a lock and what servers offer.
type lockDiff struct {
	Added   []string         `json:"added,omitempty"` // servers that the lock does not have
	Changes []servers.Change `json:"changes"`         // of tools of the others
}

func (d *lockDiff) empty() bool { return len(d.Added)+len(d.Changes) == 0 }

// text is for people. What a server says is quoted in it.
func (d *lockDiff) text(now map[string][]spec.ServerTool) (lines []string) {
	for _, name := range d.Added {
		lines = append(lines, fmt.Sprintf("MCP server %q: new, with %s", name, counted(len(now[name]), "tool")))
	}
	if text := servers.Diff(d.Changes); text != "" {
		lines = append(lines, text[:len(text)-1])
	}
	return lines
}
