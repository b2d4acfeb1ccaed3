package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/loader"
	"github.com/open-multi-agent/oma/policies/servers"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

func (a *app) mcpListCommand() *cobra.Command {
	var f lockFlags
	var live bool
	cmd := &cobra.Command{
		Use:   "list FILE",
		Short: "Show the tools of a team's MCP servers, and who may use them",
		Long: "List shows what " + spec.LockName + " has of each server: the name that models and rules have for a tool, its server's own name,\n" +
			"what the team file says of its effects, what the server hints of them, which decides nothing, and who it is granted to.\n" +
			"With --live the servers are started and asked instead.",
		Args: argsExactly(1, "one team file"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.mcpList(cmd.Context(), args[0], &f, live) },
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&live, "live", false, "start the servers and ask them")
	return cmd
}

// listedServer is a server in the document mcp list prints.
type listedServer struct {
	Name  string       `json:"name"`
	How   string       `json:"how"` // its command or its address
	Tools []listedTool `json:"tools"`
}

type listedTool struct {
	Name          string           `json:"name"`
	ServerName    string           `json:"serverName"`
	Description   string           `json:"description,omitempty"`
	Consequential bool             `json:"consequential,omitempty"`
	ReadOnly      bool             `json:"readOnly,omitempty"`
	Hints         spec.ServerHints `json:"hints,omitzero"`
	Granted       []listedGrant    `json:"granted"`
}

type listedGrant struct {
	Agent string `json:"agent"`
	By    string `json:"by"`
}

// listing is the document mcp list prints.
type listing struct {
	Live    bool           `json:"live"`
	Servers []listedServer `json:"servers"`
	// Differs says how the servers differ from the lock. nil: not asked.
	Differs *lockDiff `json:"differs,omitempty"`
}

func (a *app) mcpList(ctx context.Context, path string, f *lockFlags, live bool) error {
	if f.whose != "" && !live {
		return usage("--agent belongs to --live")
	}
	team := f.teamFlags
	team.goal, team.alone = "list the tools", func(t *spec.Team) string { return aloneIn(t, t.Agents[0].Name) }
	l := &listing{Live: live, Servers: []listedServer{}}
	var now map[string][]spec.ServerTool
	if live {
		release := a.holdBack()
		defer func() { release() }()
		if _, err := a.survey(path, f.whose, &f.teamFlags); err != nil { // what stands against starting them
			return err
		}
		team.relock = func(loaded *loader.Loaded) error {
			k, err := a.surveyOf(path, f.whose, loaded)
			if err == nil {
				err = k.hideSecrets(k.wiring)
			}
			if err != nil {
				return err
			}
			now, err = k.ask(ctx)
			if err == nil {
				l.Differs, err = relocked(loaded, now)
			}
			return err
		}
	}
	c, err := a.compile(path, &team)
	if err != nil {
		return err
	}
	if len(c.plan.MCPServers) == 0 {
		return usage("%s declares no mcpServers", path)
	}
	for _, name := range slices.Sorted(maps.Keys(c.plan.MCPServers)) {
		l.Servers = append(l.Servers, listedServerOf(c.plan, name))
	}
	return a.print(f.output, l, func(w io.Writer) { a.listText(w, l, now) })
}

// relocked compiles a team under what its servers offer now, and says how that differs from its lock.
func relocked(loaded *loader.Loaded, now map[string][]spec.ServerTool) (*lockDiff, error) {
	var was *spec.Lock
	if file := loaded.Bundle.Lock; file != nil {
		was = file.Lock
	}
	diff, err := lockChanges(was, now)
	if err != nil {
		return nil, err
	}
	lock, err := servers.NewLock(now)
	loaded.Bundle.Lock = &spec.LockFile{File: spec.File{Path: spec.LockName}, Lock: lock}
	return diff, err
}

func listedServerOf(p *spec.Plan, name string) listedServer {
	s := p.MCPServers[name]
	out := listedServer{Name: name, How: serverText(&s.MCPServer), Tools: []listedTool{}}
	for _, o := range runtime.Offered(p, name) {
		t := listedTool{Name: o.Name, ServerName: o.Tool.Name, Description: o.Description, Consequential: o.Consequential, ReadOnly: o.ReadOnly, Hints: o.Tool.Hints, Granted: []listedGrant{}}
		for _, agent := range p.Agents {
			for _, g := range agent.Tools {
				if g.Name == o.Name {
					t.Granted = append(t.Granted, listedGrant{agent.Name, g.GrantedBy})
				}
			}
		}
		out.Tools = append(out.Tools, t)
	}
	return out
}

// serverText says how a server is reached.
func serverText(s *spec.MCPServer) string {
	if s.URL != "" {
		return s.URL
	}
	return shellLine(append([]string{s.Command}, s.Args...))
}

func (a *app) listText(w io.Writer, l *listing, now map[string][]spec.ServerTool) {
	for _, s := range l.Servers {
		fmt.Fprintf(w, "%s  %s\n", s.Name, a.outside(s.How))
		if len(s.Tools) == 0 {
			fmt.Fprintln(w, "  no tools are known")
		}
		for _, t := range s.Tools {
			a.listedText(w, &t)
		}
	}
	if l.Differs != nil && !l.Differs.empty() {
		fmt.Fprintf(w, "%s does not hold:\n", spec.LockName)
		for _, line := range l.Differs.text(now) {
			fmt.Fprintln(w, a.outside(line))
		}
	}
}

func (a *app) listedText(w io.Writer, t *listedTool) {
	fmt.Fprintf(w, "  %s\n", t.Name)
	line := a.lines(w, "    ")
	if t.ServerName != t.Name {
		line("is", fmt.Sprintf("%q", t.ServerName))
	}
	line("says", cutLine(t.Description))
	var effects []string
	for _, e := range []struct {
		name string
		set  bool
	}{{"consequential", t.Consequential}, {"readOnly", t.ReadOnly}} {
		if e.set {
			effects = append(effects, e.name)
		}
	}
	line("effects", strings.Join(effects, ", "))
	line("hints", t.Hints.String())
	granted := make([]string, len(t.Granted))
	for i, g := range t.Granted {
		granted[i] = fmt.Sprintf("%s (%s)", g.Agent, g.By)
	}
	if len(granted) == 0 {
		granted = []string{"nobody"}
	}
	line("granted", strings.Join(granted, ", "))
}
