package runtime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/policies/tools"
	"github.com/open-multi-agent/oma/schemas"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/redact"
)

// customTools checks the team's own tools and puts them beside the ones there are.
func (c *compiler) customTools() {
	c.catalog = policies.Catalog{Tools: slices.Clone(c.o.Catalog.Tools), Presets: c.o.Catalog.Presets}
	c.catalog.Tools = append(c.catalog.Tools, c.delegateTool())
	if len(c.team.CustomTools) == 0 {
		return
	}
	c.plan.CustomTools = map[string]spec.CustomTool{}
	for _, name := range sortedKeys(c.team.CustomTools) {
		t, at := c.team.CustomTools[name], spec.Path("customTools").Key(name)
		t.InputSchema, t.OutputSchema = spec.CompactSchema(t.InputSchema), spec.CompactSchema(t.OutputSchema)
		if _, taken := c.o.Catalog.Tool(name); taken || name == spec.PermissionTool || name == spec.DelegateTool {
			d := c.diags.Errorf("custom-tool-name", at, "%q is a built-in tool", name)
			d.OnKey, d.Hint = true, "give the team's own tool another name"
			continue
		}
		usable := c.toolSchema(t.InputSchema, at, "inputSchema")
		for _, d := range tools.Check(&t) {
			if !usable && (d.Code == "custom-tool-placeholder" || d.Code == "custom-tool-schema") {
				continue // it follows from that
			}
			d.Path = at.Join(d.Path)
			c.diags = append(c.diags, d)
		}
		c.toolSchema(t.OutputSchema, at, "outputSchema")
		if t.HTTP != nil {
			c.secretsInPlan(t.HTTP, at.Key("http"))
		}
		c.plan.CustomTools[name] = t
		c.catalog.Tools = append(c.catalog.Tools, tools.Info(name, &t))
	}
}

// toolSchema checks a schema of a tool: that it can be used, and that each word of it asks for something.
func (c *compiler) toolSchema(s spec.Schema, at spec.Path, key string) (usable bool) {
	at = at.Key(key)
	if len(s) == 0 {
		return true
	}
	if _, err := schemas.Compile(s); err != nil {
		c.diags.Errorf("custom-tool-schema", at, "%s is not usable: %v", key, err)
		return false
	}
	unknown, _ := schemas.Lint(s, at)
	for _, where := range unknown {
		c.noKeyword("custom-tool-schema", where)
	}
	return true
}

// secretsInPlan finds values of an HTTP tool that belong into credentials: a plan and a log show what a team file says.
func (c *compiler) secretsInPlan(h *spec.HTTPTool, at spec.Path) {
	base, query, _ := strings.Cut(h.URL, "?")
	pairs := slices.DeleteFunc(strings.Split(query, "&"), func(pair string) bool { return strings.Contains(pair, "{") }) // a value of the input
	if name := secretParameter(base + "?" + strings.Join(pairs, "&")); name != "" {
		c.diags.Errorf("secret-in-url", at.Key("url"), "url carries the secret %s", name).Hint = "a plan and a log show addresses; use headers: {NAME: {credential: NAME}}"
	}
	for _, name := range sortedKeys(h.Headers) {
		if v := h.Headers[name]; v.Credential == "" && redact.SensitiveKey(name) && !strings.Contains(v.Value, "{") { // of braces more is said
			c.diags.Warnf("custom-tool-header", at.Key("headers").Key(name), "header %s stands in the team file with its value, and so in every plan", name).Hint =
				`if it is a secret, write {credential: NAME, prefix: "Bearer "}`
		}
	}
}

// ToolsOf gives the tools of a plan that depend on it, as rules see them: the team's own, those of its servers, and that by
// which its agents delegate.
func ToolsOf(p *spec.Plan) []spec.ToolInfo {
	var out []spec.ToolInfo
	for _, name := range sortedKeys(p.CustomTools) {
		t := p.CustomTools[name]
		out = append(out, tools.Info(name, &t))
	}
	out = append(out, serverTools(p)...)
	out = append(out, delegateTo(p.Agents))
	for i := range p.Agents {
		if b := p.Agents[i].Backend; b.Asks() {
			return append(out, permission(b))
		}
	}
	return out
}

// ownTools asks that what an agent has without a grant is no built-in tool, which needs one.
func (c *compiler) ownTools(a *spec.Agent, at spec.Path) {
	for i, name := range a.CustomTools {
		if _, builtin := c.o.Catalog.Tool(name); builtin || name == spec.DelegateTool {
			c.diags.Errorf("custom-tool-name", at.Key("customTools").Index(i), "%q is a built-in tool", name).Hint = "name it in tools"
		}
	}
}

// credentials asks that an agent has what its tools need, and that they need what it has.
func (c *compiler) credentials(a *spec.PlanAgent, at spec.Path) {
	used := map[string]bool{}
	for _, g := range a.Tools {
		t, ok := c.plan.CustomTools[g.Name]
		if !ok {
			continue
		}
		for _, name := range tools.Needs(&t) {
			used[name] = true
			if _, has := a.Credentials[name]; !has {
				d := c.diags.Errorf("credential-missing", at, "tool %q needs credential %s, and agent %q has none of that name", g.Name, name, a.Name)
				d.Hint = fmt.Sprintf("add credentials: {%s: {env: VARIABLE}} to the agent, or take the tool away", name)
				if near := spec.Nearest(name, sortedKeys(a.Credentials)); near != "" {
					d.Hint = fmt.Sprintf("did you mean %s? a tool and its agents have one name for it", near)
				}
			}
		}
	}
	c.serverCredentials(a, at, used)
	if a.Backend != nil {
		for _, variable := range sortedKeys(a.Backend.Env) {
			name := a.Backend.Env[variable].Credential
			if used[name] = true; name == "" || a.Credentials[name] != (spec.SecretRef{}) {
				continue
			}
			c.diags.Errorf("credential-missing", at.Key("backend").Key("env").Key(variable), "backend needs credential %s, and agent %q has none of that name", name, a.Name).Hint =
				fmt.Sprintf("add credentials: {%s: {env: VARIABLE}} to the agent", name)
		}
	}
	for _, name := range sortedKeys(a.Credentials) {
		if !used[name] {
			d := c.diags.Warnf("credential-unused", at.Key("credentials").Key(name), "no tool of agent %q is given credential %s", a.Name, name)
			d.OnKey, d.Hint = true, "name it in the tool's credentials or headers, or leave it out"
		}
	}
}

// unusedTools finds tools of the team's own that nobody has.
func (c *compiler) unusedTools() {
	for _, name := range sortedKeys(c.plan.CustomTools) {
		has := func(a spec.PlanAgent) bool { return a.Has(name) }
		if !slices.ContainsFunc(c.plan.Agents, has) {
			d := c.diags.Warnf("custom-tool-unused", spec.Path("customTools").Key(name), "no agent has tool %q", name)
			d.OnKey, d.Hint = true, fmt.Sprintf("add customTools: [%s] to an agent", name)
		}
	}
}
