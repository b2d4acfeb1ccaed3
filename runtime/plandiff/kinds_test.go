package plandiff

import (
	"time"

	"github.com/open-multi-agent/oma/spec"
)

func agentCases() []differenceCase {
	writer := func(f func(*spec.PlanAgent)) func(*spec.Plan) { return func(p *spec.Plan) { f(&p.Agents[0]) } }
	return []differenceCase{
		{"a further agent", func(p *spec.Plan) { p.Agents = append(p.Agents, spec.PlanAgent{Name: "new"}) }, "agents.new", Widened, Narrowed},
		{"a further tool", writer(func(a *spec.PlanAgent) {
			a.Tools = append(a.Tools, spec.Grant{ToolInfo: spec.ToolInfo{Name: "file_write"}})
		}), "agents.writer.tools.file_write", Widened, Narrowed},
		{"a tool takes other input", writer(func(a *spec.PlanAgent) { a.Tools[0].InputSchema = spec.Schema(`{}`) }), "agents.writer.tools.bash.inputSchema", Widened, Widened},
		{"a tool is not consequential", writer(func(a *spec.PlanAgent) { a.Tools[0].Consequential = false }), "agents.writer.tools.bash.consequential", Widened, Widened},
		{"a tool is not read-only", writer(func(a *spec.PlanAgent) { a.Tools[1].ReadOnly = false }), "agents.writer.tools.grep.readOnly", Widened, Widened},
		{"a tool is idempotent", writer(func(a *spec.PlanAgent) { a.Tools[0].Idempotent = true }), "agents.writer.tools.bash.idempotent", Widened, Narrowed},
		{"a tool's text", writer(func(a *spec.PlanAgent) { a.Tools[0].Description = "else" }), "agents.writer.tools.bash.description", Changed, Changed},
		{"another step grants", writer(func(a *spec.PlanAgent) { a.Tools[0].GrantedBy = "toolPreset full" }), "agents.writer.tools.bash.grantedBy", Changed, Changed},
		{"a removal", func(p *spec.Plan) { p.Agents[1].Removed = nil }, "agents.reviewer.removed.bash", Changed, Changed},
		{"another provider", writer(func(a *spec.PlanAgent) { a.Provider = "other" }), "agents.writer.provider", Widened, Widened},
		{"another model", writer(func(a *spec.PlanAgent) { a.Model = "large" }), "agents.writer.model", Changed, Changed},
		{"a prompt", writer(func(a *spec.PlanAgent) { a.SystemPrompt = "Else." }), "agents.writer.systemPrompt", Changed, Changed},
		{"containment none", writer(func(a *spec.PlanAgent) { a.Containment = "none" }), "agents.writer.containment", Widened, Narrowed},
		{"N12: another containment", writer(func(a *spec.PlanAgent) { a.Containment = "some" }), "agents.writer.containment", Widened, Widened},
		{"a folder below", writer(func(a *spec.PlanAgent) { a.Cwd = "src/sub" }), "agents.writer.cwd", Widened, Widened},
		{"a further credential", writer(func(a *spec.PlanAgent) { a.Credentials["x"] = spec.SecretRef{Env: "X"} }), "agents.writer.credentials.x", Widened, Narrowed},
		{"a credential from elsewhere", writer(func(a *spec.PlanAgent) { a.Credentials["token"] = spec.SecretRef{Env: "X"} }), "agents.writer.credentials.token", Widened, Widened},
		{"more turns", writer(func(a *spec.PlanAgent) { a.MaxTurns = 11 }), "agents.writer.maxTurns", Widened, Narrowed},
		{"no token budget", writer(func(a *spec.PlanAgent) { a.MaxTokenBudget = 0 }), "agents.writer.maxTokenBudget", Widened, Narrowed},
		{"shorter answers", writer(func(a *spec.PlanAgent) { a.MaxOutputTokens = 9 }), "agents.writer.maxOutputTokens", Narrowed, Widened},
		{"a time for a task", writer(func(a *spec.PlanAgent) { a.Timeout = spec.Duration(time.Minute) }), "agents.writer.timeout", Narrowed, Widened},
		{"a longer call", writer(func(a *spec.PlanAgent) { a.CallTimeout = spec.Duration(time.Hour) }), "agents.writer.callTimeout", Widened, Narrowed},
		{"larger input", writer(func(a *spec.PlanAgent) { a.MaxToolInputBytes = 2 << 20 }), "agents.writer.maxToolInputBytes", Widened, Narrowed},
		{"shorter results", writer(func(a *spec.PlanAgent) { a.MaxToolOutputChars = 5 }), "agents.writer.maxToolOutputChars", Narrowed, Widened},
		{"more tools at once", writer(func(a *spec.PlanAgent) { a.MaxToolConcurrency = 5 }), "agents.writer.maxToolConcurrency", Widened, Narrowed},
		{"compressed results", writer(func(a *spec.PlanAgent) { a.CompressToolResults = 500 }), "agents.writer.compressToolResults", Changed, Changed},
		{"unmetered", writer(func(a *spec.PlanAgent) { a.Unmetered = "allow" }), "agents.writer.unmetered", Widened, Narrowed},
		{"unmetered, written out", writer(func(a *spec.PlanAgent) { a.Unmetered = "refuse" }), "agents.writer.unmetered", Changed, Changed},
		{"no output schema", writer(func(a *spec.PlanAgent) { a.OutputSchema = nil }), "agents.writer.outputSchema", Widened, Narrowed},
		{"another output schema", writer(func(a *spec.PlanAgent) { a.OutputSchema = spec.Schema(`{}`) }), "agents.writer.outputSchema", Widened, Widened},
		{"a program works", writer(func(a *spec.PlanAgent) { a.Backend = &spec.Backend{Kind: "process", Command: "x"} }), "agents.writer.backend", Widened, Narrowed},
		{"no sandbox", writer(func(a *spec.PlanAgent) { a.ShellExecutor = nil }), "agents.writer.shellExecutor.kind", Widened, Narrowed},
		{"another sandbox", writer(func(a *spec.PlanAgent) { a.ShellExecutor.Kind = "container" }), "agents.writer.shellExecutor.kind", Widened, Widened},
		{"a network", writer(func(a *spec.PlanAgent) { a.ShellExecutor.Network = nil }), "agents.writer.shellExecutor.network", Widened, Narrowed},
		{"a sandbox that may fail", writer(func(a *spec.PlanAgent) { f := false; a.ShellExecutor.Required = &f }), "agents.writer.shellExecutor.required", Widened, Narrowed},
		{"a further folder", writer(func(a *spec.PlanAgent) { a.ShellExecutor.Write = []string{"out"} }), "agents.writer.shellExecutor.write.out", Widened, Narrowed},
		{"an image", writer(func(a *spec.PlanAgent) { a.ShellExecutor.Image = "x" }), "agents.writer.shellExecutor.image", Widened, Widened},
		{"other agents first", func(p *spec.Plan) { p.Agents[0], p.Agents[1] = p.Agents[1], p.Agents[0] }, "agents", Changed, Changed},
	}
}

func ruleCases() []differenceCase {
	forbids := func(f func(*spec.PlanRule)) func(*spec.Plan) { return func(p *spec.Plan) { f(&p.Gates.Rules[0]) } }
	allows := func(f func(*spec.PlanRule)) func(*spec.Plan) { return func(p *spec.Plan) { f(&p.Gates.Rules[1]) } }
	add := func(action string) func(*spec.Plan) {
		return func(p *spec.Plan) {
			p.Gates.Rules = append(p.Gates.Rules, spec.PlanRule{Rule: spec.Rule{Name: "new", When: "true", Action: action}, Source: "team"})
		}
	}
	return []differenceCase{
		{"no gates", func(p *spec.Plan) { p.Gates.Declared = false }, "gates.declared", Widened, Narrowed},
		{"default allow", func(p *spec.Plan) { p.Gates.Default = "allow" }, "gates.default", Widened, Narrowed},
		{"a further deny", add("deny"), "gates.rules.new", Narrowed, Widened},
		{"a further ask", add("ask"), "gates.rules.new", Narrowed, Widened},
		{"a further allow", add("allow"), "gates.rules.new", Widened, Narrowed},
		{"a further warn", add("warn"), "gates.rules.new", Changed, Widened},
		{"a further rule of no kind", add("shrug"), "gates.rules.new", Widened, Widened},
		{"a weaker action", forbids(func(r *spec.PlanRule) { r.Action = "ask" }), "gates.rules.no-push.action", Widened, Narrowed},
		{"a warning only", forbids(func(r *spec.PlanRule) { r.Action = "warn" }), "gates.rules.no-push.action", Widened, Narrowed},
		{"allow for ask", forbids(func(r *spec.PlanRule) { r.Action = "allow" }), "gates.rules.no-push.action", Widened, Narrowed},
		{"another condition", forbids(func(r *spec.PlanRule) { r.When = "false" }), "gates.rules.no-push.when", Widened, Widened},
		{"denies fewer tools", forbids(func(r *spec.PlanRule) { r.Tools = []string{"bash"} }), "gates.rules.no-push.tools", Widened, Narrowed},
		{"denies every tool", forbids(func(r *spec.PlanRule) { r.Tools = nil }), "gates.rules.no-push.tools", Narrowed, Widened},
		{"allows fewer tools", allows(func(r *spec.PlanRule) { r.Tools = []string{"grep"} }), "gates.rules.may-read.tools", Narrowed, Widened},
		{"allows every tool", allows(func(r *spec.PlanRule) { r.Tools = nil }), "gates.rules.may-read.tools", Widened, Narrowed},
		{"tools in another order", allows(func(r *spec.PlanRule) { r.Tools = []string{"files_read", "grep"} }), "gates.rules.may-read.tools", Changed, Changed},
		{"tools of a rule that turns", forbids(func(r *spec.PlanRule) { r.Action, r.Tools = "allow", nil }), "gates.rules.no-push.tools", Widened, Widened},
		{"denies one agent", forbids(func(r *spec.PlanRule) { r.Agent = "writer" }), "gates.rules.no-push.agent", Widened, Narrowed},
		{"allows one agent", allows(func(r *spec.PlanRule) { r.Agent = "writer" }), "gates.rules.may-read.agent", Narrowed, Widened},
		{"an agent is free of it", forbids(func(r *spec.PlanRule) { r.ReplacedFor = []string{"writer"} }), "gates.rules.no-push.replacedFor.writer", Widened, Narrowed},
		{"an agent is without it", allows(func(r *spec.PlanRule) { r.ReplacedFor = []string{"writer"} }), "gates.rules.may-read.replacedFor.writer", Narrowed, Widened},
		{"overridable", forbids(func(r *spec.PlanRule) { r.Overridable = true }), "gates.rules.no-push.overridable", Widened, Narrowed},
		{"from elsewhere", forbids(func(r *spec.PlanRule) { r.Source = "pack x" }), "gates.rules.no-push.source", Widened, Widened},
		{"a mark", forbids(func(r *spec.PlanRule) { r.Mark = "m" }), "gates.rules.no-push.mark", Changed, Changed},
		{"a reason", forbids(func(r *spec.PlanRule) { r.Reason = "m" }), "gates.rules.no-push.reason", Changed, Changed},
		{"examples", forbids(func(r *spec.PlanRule) { r.Examples = &spec.RuleExamples{} }), "gates.rules.no-push.examples", Changed, Changed},
		{"a cost", forbids(func(r *spec.PlanRule) { r.AppliesTo[0].Cost = 6 }), "gates.rules.no-push.appliesTo.bash.cost", Changed, Changed},
		{"rules in another order", func(p *spec.Plan) { p.Gates.Rules[0], p.Gates.Rules[1] = p.Gates.Rules[1], p.Gates.Rules[0] }, "gates.rules", Changed, Changed},
		{"a higher level", func(p *spec.Plan) { p.Gates.Levels[0].Level = "high" }, `gates.levels["terraform apply"].level`, Narrowed, Widened},
		{"an override", func(p *spec.Plan) { p.Gates.Levels[0].Override = true }, `gates.levels["terraform apply"].override`, Widened, Narrowed},
		{"a level gone", func(p *spec.Plan) { p.Gates.Levels = p.Gates.Levels[1:] }, `gates.levels["terraform apply"]`, Widened, Narrowed},
		{"a safe command gone", func(p *spec.Plan) { p.Gates.Levels = p.Gates.Levels[:1] }, "gates.levels.ls", Narrowed, Widened},
		{"no confirmation", func(p *spec.Plan) { p.Approvals.RequireConsequentialConfirmation = false }, "approvals.requireConsequentialConfirmation", Widened, Narrowed},
		{"no plan rule", func(p *spec.Plan) { p.Approvals.Plan = nil }, "approvals.plan.plan", Widened, Narrowed},
		{"no approvals", func(p *spec.Plan) { p.Approvals = nil }, "approvals.separateApprover", Widened, Narrowed},
		{"nobody in particular", func(p *spec.Plan) { p.Approvals.Reviewers = nil }, "approvals.reviewers", Widened, Narrowed},
		{"a further reviewer", func(p *spec.Plan) { p.Approvals.Reviewers = append(p.Approvals.Reviewers, spec.Reviewer{ID: "eve"}) }, "approvals.reviewers.eve", Widened, Narrowed},
		{"a reviewer without a key", func(p *spec.Plan) { p.Approvals.Reviewers[0].PublicKey = "" }, "approvals.reviewers.ann.publicKey", Widened, Narrowed},
		{"a reviewer with another key", func(p *spec.Plan) { p.Approvals.Reviewers[0].PublicKey = "B" }, "approvals.reviewers.ann.publicKey", Widened, Widened},
		{"a smaller quorum", func(p *spec.Plan) { p.Approvals.Quorum = 1 }, "approvals.quorum", Widened, Narrowed},
		{"no end", func(p *spec.Plan) { p.Approvals.Expires = 0 }, "approvals.expires", Widened, Narrowed},
		{"the author approves", func(p *spec.Plan) { p.Approvals.SeparateApprover = false }, "approvals.separateApprover", Widened, Narrowed},
	}
}

func planCases() []differenceCase {
	budget := func(f func(*spec.Budgets)) func(*spec.Plan) { return func(p *spec.Plan) { f(&p.Budgets) } }
	governed := func(f func(*spec.Governance)) func(*spec.Plan) { return func(p *spec.Plan) { f(p.Governance) } }
	return []differenceCase{
		{"an egress policy", func(p *spec.Plan) { p.EgressPolicy = &spec.EgressPolicy{Offline: true} }, "egressPolicy", Narrowed, Widened},
		{"no token budget", budget(func(b *spec.Budgets) { b.MaxTokenBudget = 0 }), "budgets.maxTokenBudget", Widened, Narrowed},
		{"a higher token budget", budget(func(b *spec.Budgets) { b.MaxTokenBudget++ }), "budgets.maxTokenBudget", Widened, Narrowed},
		{"a higher cost budget", budget(func(b *spec.Budgets) { b.MaxCostBudget = ptr(2 * spec.Dollar) }), "budgets.maxCostBudget", Widened, Narrowed},
		{"a cost budget of nothing", budget(func(b *spec.Budgets) { b.MaxCostBudget = ptr(spec.USD(0)) }), "budgets.maxCostBudget", Narrowed, Widened},
		{"no cost budget", budget(func(b *spec.Budgets) { b.MaxCostBudget = nil }), "budgets.maxCostBudget", Widened, Narrowed},
		{"a longer run", budget(func(b *spec.Budgets) { b.MaxDuration *= 2 }), "budgets.maxDuration", Widened, Narrowed},
		{"nothing kept back", budget(func(b *spec.Budgets) { b.ReserveForRequired = false }), "budgets.reserveForRequired", Widened, Narrowed},
		{"no governance", func(p *spec.Plan) { p.Governance = nil }, "governance.governanceIntent", Widened, Narrowed},
		{"preferred", governed(func(g *spec.Governance) { g.GovernanceIntent = "preferred" }), "governance.governanceIntent", Widened, Narrowed},
		{"a role less", governed(func(g *spec.Governance) { g.RequiredRoles = g.RequiredRoles[:1] }), "governance.requiredRoles.reviewer", Widened, Narrowed},
		{"no order", governed(func(g *spec.Governance) { g.RequiredOrder = nil }), "governance.requiredOrder", Widened, Narrowed},
		{"another order", governed(func(g *spec.Governance) { g.RequiredOrder = []string{"reviewer", "writer"} }), "governance.requiredOrder", Widened, Widened},
		{"a longer order", governed(func(g *spec.Governance) { g.RequiredOrder = []string{"writer", "tester", "reviewer"} }), "governance.requiredOrder", Narrowed, Widened},
		{"parallel", governed(func(g *spec.Governance) { g.Independence.Parallel = true }), "governance.independence.parallel", Widened, Narrowed},
		{"reviewers write", governed(func(g *spec.Governance) { g.Independence.ReviewersReadOnly = false }), "governance.independence.reviewersReadOnly", Widened, Narrowed},
		{"one model", governed(func(g *spec.Governance) { g.Independence.DifferentModel = false }), "governance.independence.differentModel", Widened, Narrowed},
		{"under budget", governed(func(g *spec.Governance) { g.PreferredUnderBudget = "skip" }), "governance.preferredUnderBudget", Widened, Widened},
		{"a release requirement less", func(p *spec.Plan) { p.Release = nil }, "release.approved", Widened, Narrowed},
		{"another release requirement", func(p *spec.Plan) { p.Release[0].That = "false" }, "release.approved.that", Widened, Widened},
		{"another release reason", func(p *spec.Plan) { p.Release[0].Reason = "x" }, "release.approved.reason", Changed, Changed},
		{"a further task", func(p *spec.Plan) { p.Tasks = append(p.Tasks, spec.PlanTask{ID: "t4"}) }, "tasks.t4", Widened, Narrowed},
		{"a required task less", func(p *spec.Plan) { p.Tasks = p.Tasks[1:] }, "tasks.t1", Widened, Widened},
		{"another assignee", func(p *spec.Plan) { p.Tasks[0].Assignee = "reviewer" }, "tasks.t1.assignee", Widened, Widened},
		{"another role", func(p *spec.Plan) { p.Tasks[0].Role = "" }, "tasks.t1.role", Widened, Widened},
		{"no dependency", func(p *spec.Plan) { p.Tasks[1].DependsOn = nil }, "tasks.t2.dependsOn.t1", Widened, Widened},
		{"another status", func(p *spec.Plan) { p.Tasks[1].Status = "completed" }, "tasks.t2.status", Widened, Widened},
		{"another title", func(p *spec.Plan) { p.Tasks[1].Title = "Zwei" }, "tasks.t2.title", Changed, Changed},
		{"another goal", func(p *spec.Plan) { p.Goal, p.GoalDigest = "x", "y" }, "goal", Changed, Changed},
		{"a goal of another digest", func(p *spec.Plan) { p.GoalDigest = "y" }, "goalDigest", Widened, Widened},
		{"a further flag", func(p *spec.Plan) { p.Flags = []string{"f"} }, `flags.f`, Widened, Widened},
		{"a flag that asked for nothing", func(p *spec.Plan) { p.Flags, p.Approvals = []string{"f"}, nil }, `flags.f`, Widened, Widened},
		{"more at once", func(p *spec.Plan) { p.Scheduling.MaxConcurrency = 6 }, "scheduling.maxConcurrency", Widened, Narrowed},
		{"delegation", func(p *spec.Plan) { p.Delegation = &spec.Delegation{} }, "delegation", Widened, Narrowed},
		{"delegation of no depth", func(p *spec.Plan) { p.Delegation = &spec.Delegation{MaxDelegationDepth: ptr(0)} }, "delegation", Changed, Changed},
		{"shared memory", func(p *spec.Plan) { p.SharedMemory = &spec.SharedMemory{} }, "sharedMemory", Widened, Narrowed},
		{"a weaker control", func(p *spec.Plan) { p.Enforcement[0].Level = spec.Observed }, `enforcement["writer gates"].level`, Widened, Narrowed},
		{"a control of no level", func(p *spec.Plan) { p.Enforcement[0].Level = "sometimes" }, `enforcement["writer gates"].level`, Widened, Widened},
		{"a control less", func(p *spec.Plan) { p.Enforcement = p.Enforcement[1:] }, `enforcement["writer gates"]`, Widened, Narrowed},
		{"another mechanism", func(p *spec.Plan) { p.Enforcement[0].Mechanism = "x" }, `enforcement["writer gates"].mechanism`, Changed, Changed},
		{"worst case", func(p *spec.Plan) { p.WorstCase.FloorTokens++ }, "worstCase", Changed, Changed},
		{"another topology", func(p *spec.Plan) { p.RoutingDecision.Source = "override" }, "routingDecision.source", Changed, Changed},
	}
}

func outsideCases() []differenceCase {
	provider := func(f func(*spec.PlanProvider)) func(*spec.Plan) {
		return func(p *spec.Plan) { g := p.Providers["gateway"]; f(&g); p.Providers["gateway"] = g }
	}
	tool := func(f func(*spec.CustomTool)) func(*spec.Plan) {
		return func(p *spec.Plan) { g := p.CustomTools["build"]; f(&g); p.CustomTools["build"] = g }
	}
	server := func(f func(*spec.PlanMCPServer)) func(*spec.Plan) {
		return func(p *spec.Plan) { g := p.MCPServers["files"]; f(&g); p.MCPServers["files"] = g }
	}
	limits := func(f func(*spec.Limits)) func(*spec.Plan) { return func(p *spec.Plan) { f(p.Policies[0].Limits) } }
	return []differenceCase{
		{"a further provider", func(p *spec.Plan) { p.Providers["x"] = spec.PlanProvider{} }, "providers.x", Widened, Narrowed},
		{"another address", provider(func(g *spec.PlanProvider) { g.BaseURL = "https://b.example" }), "providers.gateway.baseURL", Widened, Widened},
		{"no key", provider(func(g *spec.PlanProvider) { g.APIKey = nil }), "providers.gateway.apiKey", Narrowed, Widened},
		{"N3: another key", provider(func(g *spec.PlanProvider) { g.APIKey = &spec.SecretRef{Env: "GITHUB_TOKEN"} }), "providers.gateway.apiKey", Widened, Widened},
		{"another kind", provider(func(g *spec.PlanProvider) { g.Kind = "scripted" }), "providers.gateway.kind", Widened, Widened},
		{"another cassette", provider(func(g *spec.PlanProvider) { g.CassetteDigest = "x" }), "providers.gateway.cassetteDigest", Changed, Changed},
		{"more retries", provider(func(g *spec.PlanProvider) { g.MaxRetries = nil }), "providers.gateway.maxRetries", Widened, Narrowed},
		{"no retries", provider(func(g *spec.PlanProvider) { g.MaxRetries = ptr(0) }), "providers.gateway.maxRetries", Narrowed, Widened},
		{"a longer wait", provider(func(g *spec.PlanProvider) { g.MaxRetryDelay = 0 }), "providers.gateway.maxRetryDelay", Widened, Narrowed},
		{"a lower price", func(p *spec.Plan) {
			m := p.Providers["gateway"].Models
			x := m["small"]
			x.InputPer1M = ptr(spec.USD(0))
			m["small"] = x
		}, "providers.gateway.models.small.inputPer1M", Widened, Narrowed},
		{"a further priced model", func(p *spec.Plan) { p.Providers["gateway"].Models["large"] = spec.ModelPrice{} }, "providers.gateway.models.large", Widened, Widened},
		{"a further tool of the team's own", func(p *spec.Plan) { p.CustomTools["x"] = spec.CustomTool{} }, "customTools.x", Widened, Narrowed},
		{"another command", tool(func(c *spec.CustomTool) { c.Command = []string{"sh"} }), "customTools.build.command", Widened, Widened},
		{"a request", tool(func(c *spec.CustomTool) { c.HTTP = &spec.HTTPTool{URL: "https://x.example"} }), "customTools.build.http", Widened, Widened},
		{"not consequential", tool(func(c *spec.CustomTool) { c.Consequential = false }), "customTools.build.consequential", Widened, Widened},
		{"a tool's further credential", tool(func(c *spec.CustomTool) { c.Credentials = append(c.Credentials, "x") }), "customTools.build.credentials.x", Widened, Narrowed},
		{"a tool's longer call", tool(func(c *spec.CustomTool) { c.Timeout = 0 }), "customTools.build.timeout", Widened, Narrowed},
		{"undeclared input", tool(func(c *spec.CustomTool) { c.PassUndeclared = true }), "customTools.build.passUndeclared", Widened, Narrowed},
		{"another input", tool(func(c *spec.CustomTool) { c.InputSchema = spec.Schema(`{}`) }), "customTools.build.inputSchema", Widened, Widened},
		{"a further server", func(p *spec.Plan) { p.MCPServers["x"] = spec.PlanMCPServer{} }, "mcpServers.x", Widened, Narrowed},
		{"another server program", server(func(s *spec.PlanMCPServer) { s.Command = "x" }), "mcpServers.files.command", Widened, Widened},
		{"other arguments", server(func(s *spec.PlanMCPServer) { s.Args = nil }), "mcpServers.files.args", Widened, Widened},
		{"a variable less", server(func(s *spec.PlanMCPServer) { s.Env = nil }), "mcpServers.files.env", Widened, Widened},
		{"a server's address", server(func(s *spec.PlanMCPServer) { s.URL = "https://x.example" }), "mcpServers.files.url", Widened, Widened},
		{"other headers", server(func(s *spec.PlanMCPServer) { s.Headers = map[string]spec.Variable{"a": {Value: "b"}} }), "mcpServers.files.headers", Widened, Widened},
		{"fewer consequential", server(func(s *spec.PlanMCPServer) { s.Consequential = nil }), "mcpServers.files.consequential", Widened, Widened},
		{"more read-only", server(func(s *spec.PlanMCPServer) { s.ReadOnly = []string{"*"} }), "mcpServers.files.readOnly", Widened, Widened},
		{"a prefix", server(func(s *spec.PlanMCPServer) { s.NamePrefix = "f" }), "mcpServers.files.namePrefix", Widened, Widened},
		{"a longer request", server(func(s *spec.PlanMCPServer) { s.RequestTimeout = spec.Duration(2 * time.Minute) }), "mcpServers.files.requestTimeout", Widened, Narrowed},
		{"a server's further tool", server(func(s *spec.PlanMCPServer) { s.Tools = append(s.Tools, spec.PlanServerTool{As: "files_write"}) }), "mcpServers.files.tools.files_write", Widened, Narrowed},
		{"a server's text", func(p *spec.Plan) { p.MCPServers["files"].Tools[0].Description = "x" }, "mcpServers.files.tools.files_read.description", Changed, Changed},
		{"no policy above", func(p *spec.Plan) { p.Policies = p.Policies[1:] }, `policies["policy org"]`, Widened, Narrowed},
		{"no pack", func(p *spec.Plan) { p.Policies = p.Policies[:1] }, `policies["pack read-only"]`, Changed, Changed},
		{"a limit on variables", limits(func(l *spec.Limits) { l.Env = nil }), `policies["policy org"].limits.env`, Widened, Narrowed},
		{"a further variable", limits(func(l *spec.Limits) { l.Env = &[]string{"KEY", "TOKEN", "X"} }), `policies["policy org"].limits.env`, Widened, Narrowed},
		{"no variable", limits(func(l *spec.Limits) { l.Env = &[]string{} }), `policies["policy org"].limits.env`, Narrowed, Widened},
		{"a limit on tokens", limits(func(l *spec.Limits) { l.MaxTokenBudget = 0 }), `policies["policy org"].limits.maxTokenBudget`, Widened, Narrowed},
		{"a role for every team", limits(func(l *spec.Limits) { l.RequiredRoles = nil }), `policies["policy org"].limits.requiredRoles.reviewer`, Widened, Narrowed},
		{"a control for every team", limits(func(l *spec.Limits) { l.RequireEnforced = nil }), `policies["policy org"].limits.requireEnforced.gates`, Widened, Narrowed},
		{"a policy's text", func(p *spec.Plan) { p.Policies[0].Digest = "x" }, `policies["policy org"].digest`, Changed, Changed},
		{"a file", func(p *spec.Plan) { p.Inputs[0].Digest, p.Team.Digest = "x", "x" }, `inputs["team.yaml Team"].digest`, Changed, Changed},
		{"a team file of another digest", func(p *spec.Plan) { p.Team.Digest = "x" }, "team.digest", Changed, Changed},
	}
}
