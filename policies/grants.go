package policies

import (
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

// Catalog is every tool and preset that exists before any agent is looked at, in a fixed order.
type Catalog struct {
	Tools   []spec.ToolInfo
	Presets []Preset
	// Servers are the tools of each server. SERVER/* stands for all of them where no grant is needed or one is taken away.
	Servers []Preset
}

// each gives the tools that a name stands for: all of a server's, or itself.
func (c Catalog) each(name string) []string {
	if server, ok := strings.CutSuffix(name, "/*"); ok {
		if i := slices.IndexFunc(c.Servers, func(p Preset) bool { return p.Name == server }); i >= 0 {
			return c.Servers[i].Tools
		}
	}
	return []string{name}
}

// Preset is a named set of tools.
type Preset struct {
	Name  string
	Tools []string
}

// Tool gives a tool by name.
func (c Catalog) Tool(name string) (spec.ToolInfo, bool) {
	i := slices.IndexFunc(c.Tools, func(t spec.ToolInfo) bool { return t.Name == name })
	if i < 0 {
		return spec.ToolInfo{}, false
	}
	return c.Tools[i], true
}

// Names gives the names of all tools.
func (c Catalog) Names() []string {
	names := make([]string, len(c.Tools))
	for i, t := range c.Tools {
		names[i] = t.Name
	}
	return names
}

func (c Catalog) preset(name string) (Preset, bool) {
	i := slices.IndexFunc(c.Presets, func(p Preset) bool { return p.Name == name })
	if i < 0 {
		return Preset{}, false
	}
	return c.Presets[i], true
}

// Grants is what one agent may use, and why, in the catalog's order.
type Grants struct {
	Tools   []spec.Grant
	Removed []spec.Removal
}

// Grant resolves an agent's grants. Nothing is granted that is not declared: an agent with neither tools nor a preset
// gets defaults.toolPreset, and without one it gets nothing. With both, a tool of a preset is granted only if both name
// it; a tool in no preset is granted by being named; when tools names no preset tool, the preset stands whole. What
// customTools names needs no grant. What disallowedTools names is taken away last.
func Grant(cat Catalog, a *spec.Agent, defaultPreset string, at spec.Path) (Grants, spec.Diagnostics) {
	g := grants{cat: cat, agent: a, at: at, by: map[string]string{}}
	g.preset, g.presetBy, g.presetAt = a.ToolPreset, "toolPreset "+a.ToolPreset, at.Key("toolPreset")
	if a.ToolPreset == "" && a.Tools == nil && defaultPreset != "" {
		g.preset, g.presetBy, g.presetAt = defaultPreset, "defaults.toolPreset "+defaultPreset, "defaults.toolPreset"
	}
	g.resolve()
	return g.out, g.diags
}

type grants struct {
	cat      Catalog
	agent    *spec.Agent
	at       spec.Path
	preset   string
	presetBy string
	presetAt spec.Path
	by       map[string]string // tool -> the step that granted it
	out      Grants
	diags    spec.Diagnostics
}

func (g *grants) resolve() {
	g.checkNames()
	preset := g.presetTools()
	g.named(preset)
	for _, entry := range g.agent.CustomTools {
		by := "customTools"
		if strings.HasSuffix(entry, "/*") {
			by += " " + entry
		}
		for _, name := range g.cat.each(entry) {
			if _, ok := g.by[name]; !ok {
				g.by[name] = by
			}
		}
	}
	for i, entry := range g.agent.DisallowedTools {
		for _, name := range g.cat.each(entry) {
			g.disallow(name, g.at.Key("disallowedTools").Index(i))
		}
	}
	for _, t := range g.cat.Tools {
		if by, ok := g.by[t.Name]; ok {
			g.out.Tools = append(g.out.Tools, spec.Grant{ToolInfo: t, GrantedBy: by})
		}
	}
}

// disallow takes a tool away. To take away one that was given by its own name says two things.
func (g *grants) disallow(name string, at spec.Path) {
	by, ok := g.by[name]
	if !ok {
		return
	}
	delete(g.by, name)
	g.out.Removed = append(g.out.Removed, spec.Removal{Name: name, RemovedBy: "disallowedTools"})
	if by == "tools" || by == "customTools" {
		g.diags.Warnf("tool-both-allowed-and-disallowed", at, "tool %q is both granted by %s and disallowed; it is not granted", name, by)
	}
}

func (g *grants) checkNames() {
	check := func(names []string, at spec.Path, servers bool) {
		for i, n := range names {
			if strings.HasSuffix(n, "/*") {
				g.checkServer(n, at.Index(i), servers)
				continue
			}
			if _, ok := g.cat.Tool(n); !ok {
				g.diags.Errorf("unknown-tool", at.Index(i), "unknown tool %q", n).Hint = spec.DidYouMean(n, g.cat.Names())
			}
		}
	}
	if g.agent.Tools != nil {
		check(*g.agent.Tools, g.at.Key("tools"), false)
	}
	check(g.agent.CustomTools, g.at.Key("customTools"), true)
	check(g.agent.DisallowedTools, g.at.Key("disallowedTools"), true)
}

// checkServer checks SERVER/*. A grant names each tool by itself: what a server offers tomorrow is granted by nobody.
func (g *grants) checkServer(entry string, at spec.Path, allowed bool) {
	server := strings.TrimSuffix(entry, "/*")
	var names []string
	for _, s := range g.cat.Servers {
		names = append(names, s.Name)
	}
	switch {
	case !slices.Contains(names, server):
		g.diags.Errorf("unknown-tool", at, "there is no MCP server %q", server).Hint = spec.DidYouMean(server, names)
	case !allowed:
		g.diags.Errorf("unknown-tool", at, "%q stands for no single tool", entry).Hint = "name each tool, or write it in customTools, which needs no grant"
	}
}

// presetTools grants the preset, for now, and gives its tools.
func (g *grants) presetTools() []string {
	if g.preset == "" {
		return nil
	}
	p, ok := g.cat.preset(g.preset)
	if !ok {
		var names []string
		for _, p := range g.cat.Presets {
			names = append(names, p.Name)
		}
		g.diags.Errorf("unknown-preset", g.presetAt, "unknown tool preset %q", g.preset).Hint = spec.DidYouMean(g.preset, names)
		return nil
	}
	for _, n := range p.Tools {
		g.by[n] = g.presetBy
	}
	return p.Tools
}

// named applies the tools key: an allowlist over the preset, and a grant by itself where no preset is declared.
func (g *grants) named(preset []string) {
	if g.agent.Tools == nil {
		return
	}
	names := *g.agent.Tools
	if g.preset == "" {
		for _, n := range names {
			g.by[n] = "tools"
		}
		return
	}
	narrows := len(names) == 0 || slices.ContainsFunc(names, g.inAnyPreset)
	if narrows {
		for _, n := range preset {
			if !slices.Contains(names, n) {
				delete(g.by, n)
				g.out.Removed = append(g.out.Removed, spec.Removal{Name: n, RemovedBy: "tools"})
			}
		}
	}
	for i, n := range names {
		switch {
		case slices.Contains(preset, n):
			g.by[n] = g.presetBy + " and tools"
		case g.inAnyPreset(n):
			d := g.diags.Warnf("tool-outside-preset", g.at.Key("tools").Index(i), "tool %q is not in preset %q, so it is not granted", n, g.preset)
			d.Hint = "with both keys a tool must be in both; drop toolPreset or use a wider one"
			g.out.Removed = append(g.out.Removed, spec.Removal{Name: n, RemovedBy: g.presetBy})
		default:
			g.by[n] = "tools"
		}
	}
}

func (g *grants) inAnyPreset(name string) bool {
	return slices.ContainsFunc(g.cat.Presets, func(p Preset) bool { return slices.Contains(p.Tools, name) })
}
