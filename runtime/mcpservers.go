package runtime

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/policies/servers"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/redact"
)

// mcpServers checks the team's servers and puts what they offered when they were locked beside the tools there are. No
// server is asked.
func (c *compiler) mcpServers() {
	if len(c.team.MCPServers) == 0 {
		return
	}
	c.plan.MCPServers = map[string]spec.PlanMCPServer{}
	var lock spec.Lock
	if f := c.b.Lock; f != nil {
		lock = *f.Lock
		if err := servers.Verify(f.Lock); err != nil {
			d := c.diags.Errorf("mcp-lock", "", "the lock was edited by hand: %v", err)
			d.File, d.Hint = spec.LockName, "put the file back, or delete it and run oma mcp lock"
		}
	}
	for _, name := range sortedKeys(c.team.MCPServers) {
		s := c.team.MCPServers[name]
		sound := c.declared(name, &s)
		locked, ok := lock.Servers[name]
		if !ok && sound {
			d := c.diags.Warnf("mcp-not-locked", spec.Path("mcpServers").Key(name), "the tools of MCP server %q are not known: %s does not have it", name, spec.LockName)
			d.OnKey, d.Hint = true, "run oma mcp lock with this file, which starts the server and asks it"
		}
		c.offered(name, s, locked.Tools)
	}
}

// declared checks the declaration of a server, and that it carries no secret: a plan and a log show what a team file says.
// false: nobody could start it.
func (c *compiler) declared(name string, s *spec.MCPServer) bool {
	at := spec.Path("mcpServers").Key(name)
	problems := servers.Check(s)
	for _, d := range problems {
		d.Path = at.Join(d.Path)
		c.diags = append(c.diags, d)
	}
	const hint = "if it is a secret, write {credential: NAME}, and put it into the credentials of the agents"
	if secret := secretParameter(s.URL); secret != "" {
		c.diags.Errorf("secret-in-url", at.Key("url"), "url carries the secret %s", secret).Hint = "a plan and a log show addresses; use headers: {NAME: {credential: NAME}}"
	}
	for i, arg := range s.Args {
		if redact.Mask(arg) != arg {
			c.diags.Warnf("mcp-server", at.Key("args").Index(i), "this argument looks like a secret, and stands in every plan and in the list of processes").Hint =
				"give it in env: {NAME: {credential: NAME}}, if the server takes it there"
		}
	}
	for key, vars := range map[string]map[string]spec.Variable{"env": s.Env, "headers": s.Headers} { // of which one is empty
		for _, name := range sortedKeys(vars) {
			if v := vars[name]; v.Credential == "" && v.Value != "" && redact.SensitiveKey(name) {
				c.diags.Warnf("mcp-server", at.Key(key).Key(name), "%s stands in the team file with its value, and so in every plan", name).Hint = hint
			}
		}
	}
	return !problems.HasErrors(false)
}

// offered adds the tools of a server to the plan and to the catalog.
func (c *compiler) offered(name string, s spec.MCPServer, locked []spec.LockedTool) {
	at := spec.Path("mcpServers").Key(name)
	p := spec.PlanMCPServer{MCPServer: s, Tools: []spec.PlanServerTool{}}
	set := policies.Preset{Name: name}
	var all []servers.Offered
	if locked != nil {
		var ds spec.Diagnostics
		all, ds = servers.Offer(name, s, servers.Tools(locked))
		c.diags = append(c.diags, ds...)
	}
	for _, o := range all {
		if _, taken := c.catalog.Tool(o.Name); taken {
			c.diags.Errorf("mcp-name", at, "tool %q of MCP server %q would be called %s, and there is a tool of that name", o.Tool.Name, name, o.Name).Hint = "give the server another namePrefix"
			continue
		}
		p.Tools = append(p.Tools, spec.PlanServerTool{As: o.Name, ServerTool: o.Tool})
		c.catalog.Tools = append(c.catalog.Tools, o.ToolInfo)
		set.Tools = append(set.Tools, o.Name)
	}
	c.plan.MCPServers[name] = p
	c.catalog.Servers = append(c.catalog.Servers, set)
}

// serverTools are the tools of a plan's servers as rules see them.
func serverTools(p *spec.Plan) []spec.ToolInfo {
	var out []spec.ToolInfo
	for _, name := range sortedKeys(p.MCPServers) {
		for _, o := range Offered(p, name) {
			out = append(out, o.ToolInfo)
		}
	}
	return out
}

// Offered makes tools of what a server of a plan offered when it was locked.
func Offered(p *spec.Plan, server string) []servers.Offered {
	s := p.MCPServers[server]
	tools := make([]spec.ServerTool, len(s.Tools))
	for i, t := range s.Tools {
		tools[i] = t.ServerTool
	}
	all, _ := servers.Offer(server, s.MCPServer, tools) // what is wrong with them was said when the plan was made
	return all
}

// serverTool is how a server names a tool: SERVER/TOOL. Empty: it is of none.
func serverTool(p *spec.Plan, tool string) string {
	server, t, ok := p.ServerOf(tool)
	if !ok {
		return ""
	}
	return server + "/" + t.Name
}

// grant resolves what an agent may use. Of servers, it may have tools of those alone that it names, if it names any.
func (c *compiler) grant(a *spec.Agent, preset string, at spec.Path) policies.Grants {
	g, diags := policies.Grant(c.catalog, a, preset, at)
	unlocked := c.unlocked(a, at)
	for _, d := range diags {
		if d.Code != "unknown-tool" || !slices.ContainsFunc(unlocked, func(u spec.Diagnostic) bool { return u.Path == d.Path }) {
			c.diags = append(c.diags, d)
		}
	}
	c.diags = append(c.diags, unlocked...)
	c.mayUse(a, &g, at)
	return g
}

// unlocked finds tools of servers that nobody has asked yet.
func (c *compiler) unlocked(a *spec.Agent, at spec.Path) (ds spec.Diagnostics) {
	lists := map[string][]string{"customTools": a.CustomTools, "disallowedTools": a.DisallowedTools}
	if a.Tools != nil {
		lists["tools"] = *a.Tools
	}
	for _, key := range sortedKeys(lists) {
		for i, tool := range lists[key] {
			if server := c.unlockedServer(tool); server != "" {
				ds.Errorf("mcp-not-locked", at.Key(key).Index(i), "%q is of MCP server %q, whose tools are not known", tool, server).Hint = "run oma mcp lock with this file"
			}
		}
	}
	return ds
}

// unlockedServer gives the server without a lock that a tool of this name would be of. Empty: there is none.
func (c *compiler) unlockedServer(tool string) string {
	if _, known := c.catalog.Tool(tool); known {
		return ""
	}
	for _, name := range sortedKeys(c.team.MCPServers) {
		prefix := cmp.Or(c.team.MCPServers[name].NamePrefix, name) + "_"
		if !c.locked(name) && (tool == name+"/*" || strings.HasPrefix(tool, prefix)) {
			return name
		}
	}
	return ""
}

// locked says that the tools of a server are known.
func (c *compiler) locked(server string) bool {
	if c.b.Lock == nil {
		return false
	}
	_, ok := c.b.Lock.Lock.Servers[server]
	return ok
}

// ruledTools are the tools that rules may name: those there are, and those of servers without a lock, which is a problem of
// its own and not that of a name.
func (c *compiler) ruledTools(rules []spec.PlanRule) []spec.ToolInfo {
	known := c.catalog.Tools
	for _, r := range rules {
		for i, tool := range r.Tools {
			server := c.unlockedServer(tool)
			if server == "" {
				continue
			}
			d := c.diags.Errorf("mcp-not-locked", r.Path.Key("tools").Index(i), "rule %q: %q is of MCP server %q, whose tools are not known", r.Name, tool, server)
			d.File, d.Hint = r.Doc, "run oma mcp lock with this team"
			if !slices.ContainsFunc(known, func(t spec.ToolInfo) bool { return t.Name == tool }) {
				known = append(slices.Clip(known), spec.ToolInfo{Name: tool})
			}
		}
	}
	return known
}

// mayUse holds an agent's grants against the servers it names.
func (c *compiler) mayUse(a *spec.Agent, g *policies.Grants, at spec.Path) {
	if a.MCPServers == nil {
		return
	}
	for _, t := range g.Tools {
		if server, _, ok := c.plan.ServerOf(t.Name); ok && !slices.Contains(*a.MCPServers, server) {
			c.diags.Errorf("mcp-server-not-listed", at.Key("mcpServers"), "tool %q is of MCP server %q, and mcpServers leaves it out", t.Name, server).Hint = "add the server to mcpServers, or take the tool away"
		}
	}
	for i, server := range *a.MCPServers {
		where := at.Key("mcpServers").Index(i)
		s, ok := c.team.MCPServers[server]
		if !ok {
			c.diags.Errorf("mcp-unknown-server", where, "there is no MCP server %q", server).Hint = spec.DidYouMean(server, sortedKeys(c.team.MCPServers))
			continue
		}
		has := func(t spec.Grant) bool { of, _, ok := c.plan.ServerOf(t.Name); return ok && of == server }
		if c.locked(server) && !slices.ContainsFunc(g.Tools, has) {
			c.diags.Warnf("mcp-unused", where, "agent %q has no tool of MCP server %q: to name a server gives none", a.Name, server).Hint =
				fmt.Sprintf("add tools: [%s_TOOL], or customTools: [%s/*]", cmp.Or(s.NamePrefix, server), server)
		}
	}
}

// serverCredentials asks that an agent has what the servers of its tools need, and notes what that is.
func (c *compiler) serverCredentials(a *spec.PlanAgent, at spec.Path, used map[string]bool) {
	for _, server := range sortedKeys(c.team.MCPServers) { // nobody knows yet who has tools of one without a lock
		s := c.team.MCPServers[server]
		for _, name := range servers.Credentials(&s) {
			used[name] = used[name] || !c.locked(server)
		}
	}
	for _, server := range ServersOf(c.plan, a) {
		s := c.plan.MCPServers[server].MCPServer
		for _, name := range servers.Credentials(&s) {
			used[name] = true
			if _, has := a.Credentials[name]; !has {
				c.diags.Errorf("credential-missing", at, "MCP server %q needs credential %s, and agent %q, which has tools of it, has none of that name", server, name, a.Name).Hint =
					fmt.Sprintf("add credentials: {%s: {env: VARIABLE}} to the agent, or take the tools away", name)
			}
		}
	}
}

// ServersOf names the servers that an agent has tools of, sorted.
func ServersOf(p *spec.Plan, a *spec.PlanAgent) []string {
	var names []string
	for _, g := range a.Tools {
		if server, _, ok := p.ServerOf(g.Name); ok {
			names = append(names, server)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// unusedServers finds servers whose tools nobody has. One that is not locked is spoken of already.
func (c *compiler) unusedServers() {
	for _, name := range sortedKeys(c.plan.MCPServers) {
		has := func(a spec.PlanAgent) bool { return slices.Contains(ServersOf(c.plan, &a), name) }
		if len(c.plan.MCPServers[name].Tools) > 0 && !slices.ContainsFunc(c.plan.Agents, has) {
			d := c.diags.Warnf("mcp-unused", spec.Path("mcpServers").Key(name), "no agent has a tool of MCP server %q, so it is not started", name)
			d.OnKey, d.Hint = true, fmt.Sprintf("add tools: [%s], or customTools: [%s/*], to an agent", c.plan.MCPServers[name].Tools[0].As, name)
		}
	}
}

// CheckServers finds what stands against starting the servers of a team in order to ask them what they offer: they need
// no lock for that, and the rest of the team may have problems.
func CheckServers(b *spec.Bundle) spec.Diagnostics {
	c := &compiler{b: b, team: b.Team, plan: &spec.Plan{MCPServers: map[string]spec.PlanMCPServer{}}}
	for _, name := range sortedKeys(b.Team.MCPServers) {
		s := b.Team.MCPServers[name]
		c.declared(name, &s)
		c.plan.MCPServers[name] = spec.PlanMCPServer{MCPServer: s}
	}
	for _, a := range b.Team.Agents {
		c.plan.Agents = append(c.plan.Agents, spec.PlanAgent{Name: a.Name, Credentials: a.Credentials})
	}
	held := bounds{plan: c.plan, team: c.team, files: c.named()}
	for _, p := range c.above() {
		if p.Policy.Limits != nil && limitProblems(p.Policy.Limits) == nil {
			held.reach(p.Policy)
		}
	}
	return append(c.diags, held.diags...)
}
