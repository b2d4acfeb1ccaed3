package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/policies/servers"
	"github.com/open-multi-agent/oma/policies/tools"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

func (a *app) planCommand() *cobra.Command {
	var f teamFlags
	var output, out, failOn string
	cmd := &cobra.Command{
		Use:   "plan FILE",
		Short: "Show exactly what a run would do; run nothing",
		Args:  argsExactly(1, "one team file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if failOn != "" && failOn != "unaffordable" {
				return usage("--fail-on %q is not unaffordable", failOn)
			}
			return a.showPlan(args[0], &f, output, out, failOn)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, json or yaml")
	cmd.Flags().StringVar(&out, "out", "", "write the plan to this file; oma run takes it")
	cmd.Flags().StringVar(&failOn, "fail-on", "", "end 7 on: unaffordable")
	cmd.AddCommand(a.planDiffCommand())
	return cmd
}

func (a *app) showPlan(path string, f *teamFlags, output, out, failOn string) error {
	if path == "-" && out != "" {
		return usage("--out: a run reads the team file again, so a plan of standard input could never run")
	}
	c, err := a.compile(path, f)
	if err != nil {
		return err
	}
	why, bad := runtime.Unaffordable(c.plan)
	if bad = bad && failOn == "unaffordable"; bad {
		out = "" // nobody is to run it
	}
	if out != "" {
		inputs, err := (&wiring{plan: c.plan, dir: c.dir, above: c.above}).inputs(path)
		if err == nil {
			err = notAnInput("--out", out, inputs)
		}
		if err != nil {
			return err
		}
		b, err := c.plan.Encode()
		if err == nil {
			err = writeFile(out, append(b, '\n'))
		}
		if err != nil {
			return err
		}
	}
	if err := a.print(output, c.plan, func(w io.Writer) { planText(w, c.plan) }); err != nil {
		return err
	}
	if bad {
		a.say("%s", why)
		return ended(runtime.ExitStale)
	}
	next := []string{"oma", "run", cmp.Or(out, path)}
	if dir := c.dir; out != "" && dir != "." {
		next = append(next, "--dir", dir)
	}
	fmt.Fprintln(a.stderr, "next: "+shellLine(append(next, f.policyWords()...)))
	return nil
}

// planText shows a plan to a person.
func planText(w io.Writer, p *spec.Plan) {
	fmt.Fprintf(w, "plan %s of team %s\n", p.Digest, p.Team.Name)
	if p.Goal != "" {
		fmt.Fprintf(w, "  goal        %s\n", escape(cutLine(p.Goal)))
	}
	fmt.Fprintf(w, "  topology    %s (%s)\n", p.RoutingDecision.Mode, p.RoutingDecision.Source)
	fmt.Fprintf(w, "  governance  %s\n", governanceText(p.Governance))
	fmt.Fprintf(w, "  budgets     %s\n", budgetsText(p.Budgets))
	if p.EgressPolicy != nil {
		fmt.Fprintf(w, "  egress      model calls to %s alone\n", escape(runtime.EgressText(p.EgressPolicy)))
	}
	fmt.Fprintf(w, "  worst case  %s\n", worstText(p.WorstCase))
	for _, f := range p.Flags {
		fmt.Fprintf(w, "  flag        %s\n", f)
	}
	fmt.Fprintln(w, "\ntasks")
	for i := range p.Tasks {
		taskLine(w, &p.Tasks[i])
	}
	fmt.Fprintln(w, "\nagents")
	for _, ag := range p.Agents {
		agentText(w, p, &ag)
	}
	fmt.Fprintf(w, "\ngates  default %s\n", p.Gates.Default)
	for _, r := range p.Gates.Rules {
		ruleText(w, &r)
	}
	for _, l := range p.Gates.Levels {
		levelText(w, &l)
	}
	approvalsText(w, p)
	for _, r := range p.Release {
		fmt.Fprintf(w, "release requires %s:\n    %s\n", named(r.Name), strings.ReplaceAll(escape(strings.TrimSpace(r.That)), "\n", "\n    "))
	}
	enforcementText(w, p.Enforcement)
	policiesText(w, p.Policies)
	fmt.Fprintln(w, "\ninputs")
	for _, in := range p.Inputs {
		fmt.Fprintf(w, "  %-9s %s %s\n", in.Kind, in.Digest, in.Path)
	}
}

func agentText(w io.Writer, p *spec.Plan, ag *spec.PlanAgent) {
	cwd := ag.Cwd
	if cwd == "" {
		cwd = spec.DefaultCwd
	}
	if ag.Containment != "" {
		cwd += " (containment: " + ag.Containment + ")"
	}
	schema := "no"
	if len(ag.OutputSchema) > 0 {
		schema = "yes"
	}
	if b := ag.Backend; b != nil {
		fmt.Fprintf(w, "  %s  cwd %s\n    starts %s\n", ag.Name, named(cwd), backendText(b))
		if b.Env != nil {
			fmt.Fprintf(w, "    given %s\n", escape(strings.Join(slices.Sorted(maps.Keys(b.Env)), ", ")))
		}
		fmt.Fprintf(w, "    timeout %s  outputSchema %s\n", limitText(ag), schema)
	} else {
		fmt.Fprintf(w, "  %s  %s/%s  cwd %s  at most %d turns\n", ag.Name, ag.Provider, named(ag.Model), named(cwd), ag.MaxTurns)
		fmt.Fprintf(w, "    asks %s\n", providerText(p.Providers[ag.Provider]))
		fmt.Fprintf(w, "    callTimeout %s  outputSchema %s\n", ag.CallTimeout, schema)
	}
	for _, g := range ag.Tools {
		mark := ""
		if g.Consequential {
			mark = "  consequential"
		}
		fmt.Fprintf(w, "    + %-11s %s%s\n", g.Name, g.GrantedBy, mark)
		if own, ok := p.CustomTools[g.Name]; ok {
			fmt.Fprintf(w, "        %s\n", ownText(&own))
		}
		if server, t, ok := p.ServerOf(g.Name); ok {
			fmt.Fprintf(w, "        %s\n", servedText(p, server, t))
		}
	}
	for _, r := range ag.Removed {
		fmt.Fprintf(w, "    - %-11s %s\n", r.Name, r.RemovedBy)
	}
	if ref := p.Providers[ag.Provider].APIKey; ref != nil && ref.Env != "" {
		fmt.Fprintf(w, "    key from the environment variable %s\n", ref.Env)
	}
	for _, name := range slices.Sorted(maps.Keys(ag.Credentials)) {
		from := "the environment variable " + ag.Credentials[name].Env
		if file := ag.Credentials[name].File; file != "" {
			from = "the file " + file
		}
		fmt.Fprintf(w, "    credential %s from %s\n", name, escape(from))
	}
}

// ownText says what a tool of the team's own does, and what it is given.
func ownText(t *spec.CustomTool) string {
	text := escape(cutLine(tools.Does(t)))
	if needs := tools.Needs(t); needs != nil {
		text += "  is given " + strings.Join(needs, ", ")
	}
	return text
}

// limitText is the time an external agent has: for a prompt, and for its task.
func limitText(ag *spec.PlanAgent) string {
	var all []string
	if t := ag.Backend.Timeout; t > 0 {
		all = append(all, t.String()+" a prompt")
	}
	if t := ag.Timeout; t > 0 {
		all = append(all, t.String()+" in all")
	}
	return cmp.Or(strings.Join(all, ", "), "none")
}

// servedText says whose tool it is, how its server is reached and what that is given.
func servedText(p *spec.Plan, server string, t *spec.PlanServerTool) string {
	s := p.MCPServers[server].MCPServer
	text := escape(cutLine(fmt.Sprintf("%q of MCP server %s: %s", t.Name, server, serverText(&s))))
	if needs := servers.Credentials(&s); needs != nil {
		text += "  is given " + strings.Join(needs, ", ")
	}
	return text
}

// backendText is the program that works in a model's place.
func backendText(b *spec.Backend) string {
	return escape(cutLine(b.Kind + " " + shellLine(append([]string{b.Command}, b.Args...))))
}

// providerText is what answers an agent: what it plays, or the address that gets the key.
func providerText(p spec.PlanProvider) string {
	if p.Kind == "scripted" {
		return "the cassette " + p.Cassette
	}
	return p.Kind + " at " + baseURL(p.Provider)
}

// enforcementText names the controls that hold for every agent once, and the exceptions one a line.
func enforcementText(w io.Writer, all []spec.Control) {
	var everywhere []string
	for _, control := range runtime.Controls() {
		if !slices.ContainsFunc(all, func(c spec.Control) bool { return c.Control == control && c.Level != spec.Enforced }) {
			everywhere = append(everywhere, control)
		}
	}
	fmt.Fprintln(w, "\nenforcement")
	if everywhere != nil {
		fmt.Fprintf(w, "  enforced for every agent: %s\n", strings.Join(everywhere, ", "))
	}
	holds := func(c spec.Control) bool { // all of it, and not only what oma does for an agent
		return !slices.ContainsFunc(all, func(o spec.Control) bool {
			return o.Agent == c.Agent && o.Control == c.Control && o.Level != spec.Enforced
		})
	}
	for _, c := range all {
		if !holds(c) || !slices.Contains(runtime.Controls(), c.Control) { // that one not every agent has
			fmt.Fprintf(w, "  %-16s %-12s %-16s %s\n", c.Agent, c.Control, c.Level, c.Mechanism)
		}
	}
}

// named is a name that a team file gives, where another line would pass for one of the program's.
func named(name string) string { return escape(cutLine(name)) }

// cutLine is the first line of a text, at 100 characters at most.
func cutLine(text string) string {
	line := firstLine(strings.TrimSpace(text))
	if cut := cutTo(line, 100); cut != strings.TrimSpace(text) {
		return cut + " …"
	}
	return line
}

// ruleCostLimit is what one judgement may cost; a rule above it is refused.
const ruleCostLimit = 10_000_000

func ruleText(w io.Writer, r *spec.PlanRule) {
	var tools []string
	for _, t := range r.AppliesTo {
		tools = append(tools, fmt.Sprintf("%s (cost %d of %d)", t.Tool, t.Cost, ruleCostLimit))
	}
	on := strings.Join(tools, ", ")
	if on == "" {
		on = "no reachable tool"
	}
	whose := r.Source
	if r.Agent != "" && r.Source != "agent "+r.Agent {
		whose += " of agent " + r.Agent
	}
	if r.ReplacedFor != nil {
		whose += ", not for " + strings.Join(r.ReplacedFor, ", ")
	}
	fmt.Fprintf(w, "  %-20s %-8s %s  %s\n", named(r.Name), r.Action, escape(whose), on)
}

// levelText shows what the team says of a shell command. One that lowers a risk stands out.
func levelText(w io.Writer, l *spec.ShellLevel) {
	override := ""
	if l.Override {
		override = "override: lowers what is high by itself; "
	}
	fmt.Fprintf(w, "  shell level %-8s %s  %s%s\n", l.Level, escape(strings.Join(l.Match, " ")), override, escape(cutLine(l.Reason)))
}

// policiesText shows the documents of rules, and what those from above the team file limit.
func policiesText(w io.Writer, all []spec.PlanPolicy) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(w, "\npolicies")
	for _, p := range all {
		fmt.Fprintf(w, "  %s %s", p.Digest, escape(p.Source))
		if strings.HasPrefix(p.Source, "policy ") {
			fmt.Fprint(w, "  above the team file")
		}
		if limits := limitsText(p.Limits); limits != "" {
			fmt.Fprint(w, "; limits "+limits)
		}
		fmt.Fprintln(w)
	}
}

// limitsText names the limits that are set. nil limits have none.
func limitsText(l *spec.Limits) string {
	if l == nil {
		return ""
	}
	var set []string
	for _, k := range []struct {
		name string
		has  bool
	}{{"env", l.Env != nil}, {"files", l.Files != nil}, {"origins", l.Origins != nil}, {"commands", l.Commands != nil},
		{"maxTokenBudget", l.MaxTokenBudget > 0}, {"maxCostBudget", l.MaxCostBudget != nil}, {"maxDuration", l.MaxDuration > 0},
		{"requiredRoles", len(l.RequiredRoles) > 0}, {"requireEnforced", len(l.RequireEnforced) > 0},
		{"reviewers", len(l.Reviewers) > 0}, {"quorum", l.Quorum > 0}, {"separateApprover", l.SeparateApprover}} {
		if k.has {
			set = append(set, k.name)
		}
	}
	return strings.Join(set, ", ")
}

func governanceText(g *spec.Governance) string {
	if g == nil {
		return "undeclared"
	}
	s := g.GovernanceIntent
	if len(g.RequiredRoles) > 0 {
		s += ": " + strings.Join(g.RequiredRoles, ", ")
	}
	if g.RequiredOrder != nil {
		s += "; in order " + strings.Join(g.RequiredOrder, " -> ")
	}
	return s
}

func budgetsText(b spec.Budgets) string {
	var parts []string
	if b.MaxTokenBudget > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens", b.MaxTokenBudget))
	}
	if b.MaxCostBudget != nil {
		parts = append(parts, "$"+b.MaxCostBudget.String())
	}
	if b.MaxDuration > 0 {
		parts = append(parts, b.MaxDuration.String())
	}
	if parts == nil {
		return "no ceiling"
	}
	return strings.Join(parts, ", ")
}

func worstText(w spec.WorstCase) string {
	s := fmt.Sprintf("at least %d tokens for one turn of every task", w.FloorTokens)
	if w.Tokens != nil {
		s += fmt.Sprintf("; at most %d tokens", *w.Tokens)
	}
	if w.Cost != nil {
		s += fmt.Sprintf(", $%s", *w.Cost)
	}
	if w.Reason != "" {
		s += "; " + w.Reason
	}
	return s
}
