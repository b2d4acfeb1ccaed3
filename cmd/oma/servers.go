package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/open-multi-agent/oma/policies/servers"
	"github.com/open-multi-agent/oma/policies/tools"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/mcp"
	"github.com/open-multi-agent/oma/runtime/process"
	"github.com/open-multi-agent/oma/spec"
)

// serving is what a command needs to start MCP servers. Commands that only judge have none, and start no server.
type serving struct {
	log  hclog.Logger
	open map[string]*served // by server and by what it is given
}

// served is a connection to a server, with what it offers now. Agents that give it the same share it.
type served struct {
	client *mcp.Client
	tools  []spec.ServerTool
	left   spec.Diagnostics // about tools that cannot be described
}

// serve lets the wiring start servers.
func (w *wiring) serve(log hclog.Logger) { w.serving = &serving{log, map[string]*served{}} }

// serverTools gives an agent the tools of servers that it is granted. Each server is held against what the plan has of
// it: a tool that is no longer what was judged ends the run before any model is asked.
func (w *wiring) serverTools(ctx context.Context, a *spec.PlanAgent) (all []runtime.Tool, opened closers, err error) {
	for _, server := range runtime.ServersOf(w.plan, a) {
		offered := slices.DeleteFunc(runtime.Offered(w.plan, server), func(o servers.Offered) bool { return !a.Has(o.Name) })
		if w.serving == nil {
			for _, o := range offered {
				all = append(all, mcp.Locked(o))
			}
			continue
		}
		declared := w.plan.MCPServers[server].MCPServer
		s, err := w.connect(ctx, server, &declared, a.Name)
		if err != nil {
			return nil, opened, err
		}
		opened = append(opened, s.client)
		if err := unchanged(server, offered, s.tools); err != nil {
			return nil, opened, err
		}
		for _, o := range offered {
			all = append(all, s.client.Tool(o))
		}
	}
	return all, opened, nil
}

// unchanged holds granted tools against what a server offers now. What else it has is granted to nobody.
func unchanged(server string, granted []servers.Offered, now []spec.ServerTool) error {
	was := make([]spec.ServerTool, len(granted))
	for i, o := range granted {
		was[i] = o.Tool
	}
	is := slices.DeleteFunc(slices.Clone(now), func(t spec.ServerTool) bool {
		return !slices.ContainsFunc(was, func(w spec.ServerTool) bool { return w.Name == t.Name })
	})
	changes, err := servers.Compare(server, was, is)
	if err != nil || len(changes) == 0 {
		return err
	}
	return fmt.Errorf("%w: MCP server %q does not offer what was judged\n%s\nlook at it, then run oma mcp lock with the team file [mcp-changed]",
		runtime.ErrStale, server, strings.TrimRight(servers.Diff(changes), "\n"))
}

// connect gives the connection to a server for an agent, with that agent's credentials.
func (w *wiring) connect(ctx context.Context, name string, s *spec.MCPServer, agent string) (*served, error) {
	env, err := tools.Resolve(s.Env, w.credentials[agent])
	if err != nil {
		return nil, fmt.Errorf("MCP server %q: %w", name, err)
	}
	headers, err := tools.Resolve(s.Headers, w.credentials[agent])
	if err != nil {
		return nil, fmt.Errorf("MCP server %q: %w", name, err)
	}
	key, err := json.Marshal([]any{name, env, headers})
	if err != nil {
		return nil, err
	}
	if is := w.serving.open[string(key)]; is != nil {
		return is, nil
	}
	client, err := mcp.Open(ctx, name, w.serverOptions(s, env, headers))
	if err != nil {
		return nil, err
	}
	offers, ds, err := client.List(ctx)
	if err != nil {
		client.Close()
		return nil, err
	}
	for _, d := range ds {
		w.serving.log.Warn(d.Message, "code", d.Code)
	}
	is := &served{client, offers, ds}
	w.serving.open[string(key)] = is
	return is, nil
}

// serverOptions say how a server is reached. Its program is looked for from the team file's folder, wherever it works.
func (w *wiring) serverOptions(s *spec.MCPServer, env, headers map[string]string) mcp.Options {
	o := mcp.Options{URL: s.URL, Headers: headers, RequestTimeout: time.Duration(s.RequestTimeout), Version: build().Version, Redact: w.redactor.Text, Log: w.serving.log}
	if s.URL != "" {
		return o
	}
	o.Command = append([]string{w.serverProgram(s)}, s.Args...)
	o.Env, o.Dir, o.Path = process.Environment(w.app.lookup, env), w.serverFolder(s), w.app.getenv("PATH")
	return o
}

// serverProgram is a path where the command has a slash, else a name.
func (w *wiring) serverProgram(s *spec.MCPServer) string {
	program := filepath.FromSlash(s.Command)
	if strings.ContainsRune(program, filepath.Separator) && !filepath.IsAbs(program) {
		program = filepath.Join(w.dir, program)
	}
	return program
}

func (w *wiring) serverFolder(s *spec.MCPServer) string {
	if dir := filepath.FromSlash(s.Cwd); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(w.dir, filepath.FromSlash(s.Cwd))
}

// starts says that programs of others are started, which could read what this one has open.
func (w *wiring) starts() bool {
	for _, s := range w.plan.MCPServers {
		if w.serving != nil && s.Command != "" {
			return true
		}
	}
	return anyStarts(w.plan)
}

// Close ends every server that was started.
func (s *serving) Close() error {
	var all closers
	for _, is := range s.open {
		all = append(all, is.client)
	}
	return all.Close()
}
