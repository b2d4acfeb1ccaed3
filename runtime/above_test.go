package runtime

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/spec"
)

func tool(name string, consequential bool) spec.ToolInfo {
	return spec.ToolInfo{Name: name, Description: name, Consequential: consequential,
		InputSchema: spec.Schema(`{"type":"object","additionalProperties":false,"properties":{"path":{"type":"string","maxLength":4096}}}`)}
}

func deny(name string) spec.Rule {
	return spec.Rule{Name: name, When: "consequential", Action: spec.ActionDeny}
}

func policyOf(name, digest string, limits *spec.Limits, rules ...spec.Rule) spec.PolicyFile {
	return spec.PolicyFile{File: spec.File{Path: name, Digest: digest}, Policy: &spec.Policy{Name: name, Rules: rules, Limits: limits}}
}

// pair is a team of two required roles, both with tools.
func pair() *spec.Bundle {
	tools := []string{"look", "change"}
	agent := func(name string) spec.Agent {
		return spec.Agent{Name: name, Provider: "ollama", Model: "m", SystemPrompt: "p", Tools: &tools, Cwd: "."}
	}
	return &spec.Bundle{Team: &spec.Team{Name: "t", Goal: "work", Agents: []spec.Agent{agent("a"), agent("b")},
		Governance: &spec.Governance{GovernanceIntent: spec.IntentRequired, RequiredRoles: []string{"a", "b"}, RequiredOrder: []string{"a", "b"}}},
		TeamFile: spec.File{Path: "team.yaml", Digest: "sha256:t"}, Packs: map[string]spec.PolicyFile{}, Policies: map[string]spec.PolicyFile{}}
}

func compilePair(t *testing.T, b *spec.Bundle) (*spec.Plan, spec.Diagnostics) {
	t.Helper()
	return Compile(b, CompileOptions{Catalog: policies.Catalog{Tools: []spec.ToolInfo{tool("look", false), tool("change", true)}}})
}

func compiledPair(t *testing.T, b *spec.Bundle) *spec.Plan {
	t.Helper()
	p, ds := compilePair(t, b)
	if p == nil {
		t.Fatal(ds)
	}
	return p
}

// Rules come from five kinds of sources, in an order that nothing but their names decides.
func TestSourcesOfRules(t *testing.T) {
	b := pair()
	b.Packs["safe"] = policyOf("safe", "d1", nil, deny("of-pack"))
	b.Policies["x.yaml"] = policyOf("x", "d2", nil, deny("of-file"))
	b.Above = []spec.PolicyFile{policyOf("zeta", "d3", nil, deny("of-zeta")), policyOf("alpha", "d4", &spec.Limits{MaxTokenBudget: 9000}, deny("of-alpha"))}
	b.Team.Gates = &spec.Gates{Packs: []string{"safe"}, Files: []string{"x.yaml"}, Rules: []spec.Rule{deny("own")}}
	b.Team.Agents[1].Gates = &spec.Gates{Rules: []spec.Rule{deny("of-b")}}
	p := compiledPair(t, b)
	var got []string
	for _, r := range p.Gates.Rules {
		got = append(got, r.Source+": "+r.Name)
	}
	want := []string{"policy alpha: of-alpha", "policy zeta: of-zeta", "pack safe: of-pack", "team: own", "file x.yaml: of-file", "agent b: of-b"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	policies := []spec.PlanPolicy{{Name: "safe", Source: "pack safe", Digest: "d1"}, {Name: "x", Source: "file x.yaml", Digest: "d2"},
		{Name: "alpha", Source: "policy alpha", Digest: "d4", Limits: &spec.Limits{MaxTokenBudget: 9000}}, {Name: "zeta", Source: "policy zeta", Digest: "d3"}}
	if diff := cmp.Diff(policies, p.Policies); diff != "" {
		t.Error(diff)
	}
	if p.Budgets.MaxTokenBudget != 9000 {
		t.Errorf("the ceiling is %d", p.Budgets.MaxTokenBudget)
	}
	other := pair()
	*other = *b
	other.Above = []spec.PolicyFile{b.Above[1], b.Above[0]}
	if q := compiledPair(t, other); q.Digest != p.Digest {
		t.Error("the order in which policies are given changes the plan")
	}
}

// A policy from above gates a team that declares no gates. One with limits alone does not.
func TestAboveDeclaresGates(t *testing.T) {
	b := pair()
	b.Above = []spec.PolicyFile{policyOf("limits", "d", &spec.Limits{MaxTokenBudget: 9000})}
	if compiledPair(t, b).Gates.Declared {
		t.Error("limits alone declare gates")
	}
	b.Above = append(b.Above, policyOf("rules", "e", nil, deny("r")))
	if p := compiledPair(t, b); !p.Gates.Declared || p.Gates.Default != spec.ActionAllow {
		t.Errorf("gates are %+v", p.Gates)
	}
}

// A document that several agents name holds for each; one that holds for all, or from above, is not added again. The
// receipt counts its rule once.
func TestOneDocumentForSeveralAgents(t *testing.T) {
	b := pair()
	b.Packs["safe"] = policyOf("safe", "d1", nil, deny("of-pack"))
	for i := range b.Team.Agents {
		b.Team.Agents[i].Gates = &spec.Gates{Packs: []string{"safe"}}
	}
	p := compiledPair(t, b)
	if len(p.Gates.Rules) != 2 || p.Gates.Rules[0].Agent != "a" || p.Gates.Rules[1].Agent != "b" {
		t.Fatalf("rules are %+v", p.Gates.Rules)
	}
	sums, denied := totals(p, []spec.DecisionRecord{
		{Agent: "a", Decision: spec.Decision{Gated: true, GateAction: spec.ActionDeny, Rules: []spec.RuleOutcome{{Name: "of-pack", Outcome: "matched"}}}},
		{Agent: "b", Decision: spec.Decision{Gated: true, GateAction: spec.ActionDeny, Rules: []spec.RuleOutcome{{Name: "of-pack", Outcome: "matched"}}}}})
	if diff := cmp.Diff([]spec.RuleTotal{{Name: "of-pack", Source: "pack safe", Matched: 2}}, sums); diff != "" || denied != 2 {
		t.Error(denied, diff)
	}
	b.Team.Gates = &spec.Gates{Packs: []string{"safe"}}
	if p := compiledPair(t, b); len(p.Gates.Rules) != 1 || p.Gates.Rules[0].Agent != "" {
		t.Errorf("beside the team's the rules are %+v", p.Gates.Rules)
	}
	b.Above = []spec.PolicyFile{policyOf("safe", "d1", nil, deny("of-pack"))}
	if p := compiledPair(t, b); len(p.Gates.Rules) != 1 || p.Gates.Rules[0].Source != "policy safe" {
		t.Errorf("beside one from above the rules are %+v", p.Gates.Rules)
	}
}

// N13: an agent is without a rule of the team only where the rule lets it.
func TestN13Replace(t *testing.T) {
	b := pair()
	loose := deny("loose")
	loose.Overridable = true
	b.Team.Gates = &spec.Gates{Rules: []spec.Rule{loose, deny("firm")}, Shell: &spec.ShellGates{Levels: []spec.ShellLevel{{Match: []string{"go", "test"}, Level: "safe", Reason: "r"}}}}
	b.Team.Agents[0].Gates = &spec.Gates{Replace: []string{"loose"}}
	b.Team.Agents[1].Gates = &spec.Gates{Replace: []string{"loose"}}
	p := compiledPair(t, b)
	if diff := cmp.Diff([]string{"a", "b"}, p.Gates.Rules[0].ReplacedFor); diff != "" || p.Gates.Rules[1].ReplacedFor != nil {
		t.Errorf("%s %+v", diff, p.Gates.Rules[1])
	}
	if diff := cmp.Diff(p.Gates.Levels, ruleSet(p, p.Gates, nil).Levels); diff != "" || len(p.Gates.Levels) != 1 {
		t.Errorf("levels are %v %s", p.Gates.Levels, diff)
	}
	b.Team.Agents[1].Gates.Replace = []string{"firm"}
	if p, ds := compilePair(t, b); p != nil || ds[0].Code != "not-overridable" || ds[0].Path != "agents[1].gates.replace[0]" {
		t.Errorf("got %v", ds)
	}
}

// Of several ceilings the lowest holds, wherever it comes from, and the team is told once where its own does not.
func TestTheLowestCeilingHolds(t *testing.T) {
	two, one := 2*spec.Dollar, spec.Dollar
	b := pair()
	b.Team.Providers = map[string]spec.Provider{"p": {Kind: "openai", Models: map[string]spec.ModelPrice{"m": {InputPer1M: &one, OutputPer1M: &one}}}}
	b.Team.Defaults.Provider = "p"
	for i := range b.Team.Agents {
		b.Team.Agents[i].Provider = ""
	}
	b.Team.Budgets = spec.Budgets{MaxTokenBudget: 10_000, MaxCostBudget: &one}
	b.Above = []spec.PolicyFile{
		policyOf("first", "d1", &spec.Limits{MaxTokenBudget: 8000, MaxCostBudget: &two, MaxDuration: spec.Duration(time.Hour)}),
		policyOf("second", "d2", &spec.Limits{MaxTokenBudget: 6000, MaxDuration: spec.Duration(time.Minute)}),
		policyOf("third", "d3", &spec.Limits{MaxTokenBudget: 9000})}
	p, ds := compilePair(t, b)
	if p == nil {
		t.Fatal(ds)
	}
	if diff := cmp.Diff(spec.Budgets{MaxTokenBudget: 6000, MaxCostBudget: &one, MaxDuration: spec.Duration(time.Minute)}, p.Budgets); diff != "" {
		t.Error(diff)
	}
	var got []string
	for _, d := range ds {
		if d.Code == "policy-budget" {
			got = append(got, string(d.Severity)+" "+string(d.Path)+" "+d.Message)
		}
	}
	if diff := cmp.Diff([]string{`warning budgets.maxTokenBudget policy "second" lowers maxTokenBudget from 10000 to 6000`}, got); diff != "" {
		t.Error(diff)
	}
}

// N3: a wildcard never takes in a way out of the team file's folder.
func TestN3FilesOfATeam(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"**", "a.md", true},
		{"**", "a/b.md", true},
		{"**", "../a.md", false},
		{"**", "..", false},
		{"*/a.md", "../a.md", false},
		{"../**", "../a/b.md", true},
		{"../**", "../../a.md", false},
		{"../**", "a.md", false},
		{"../../x/*", "../../x/a", true},
		{"../../x/*", "../x/a", false},
		{"prompts/*.md", "prompts/a.md", true},
		{"prompts/*.md", "prompts/a/b.md", false},
		{"{a,b}/c", "b/c", true},
		{"..foo/*", "..foo/a", true},
		{"*", "..foo", true},
		{"a[", "a[", false},
	} {
		if got := covers(c.pattern, c.name); got != c.want {
			t.Errorf("%q over %q: %v", c.pattern, c.name, got)
		}
	}
}

// N3: where a model is asked is compared as the address leads, not as it is written.
func TestN3Origins(t *testing.T) {
	for _, c := range []struct {
		address, want string
		ok            bool
	}{
		{"https://LLM.Example.com/v1", "https://llm.example.com", true},
		{"https://llm.example.com:443", "https://llm.example.com", true},
		{"http://llm.example.com:80/x?y#z", "http://llm.example.com", true},
		{"https://llm.example.com:80", "https://llm.example.com:80", true},
		{"https://llm.example.com@evil.example/v1", "https://evil.example", true},
		{"https://llm.example.com.evil.example", "https://llm.example.com.evil.example", true},
		{"http://[::1]:11434/v1", "http://[::1]:11434", true},
		{OllamaBaseURL, "http://127.0.0.1:11434", true},
		{OpenAIBaseURL, "https://api.openai.com", true},
		{"llm.example.com", "://", false},
		{"https://", "https://", false},
		{"ftp://llm.example.com", "ftp://llm.example.com", false},
		{"https://a b", "an address that cannot be read", false},
	} {
		if got, ok := origin(c.address); got != c.want || ok != c.ok {
			t.Errorf("%q: %q %v", c.address, got, ok)
		}
	}
}

// An address that leads nowhere is on no list, and neither is the list's own nonsense.
func TestN3NoOriginMatchesNothing(t *testing.T) {
	b := pair()
	b.Team.Providers = map[string]spec.Provider{"odd": {Kind: "openai", BaseURL: "https://"}}
	b.Above = []spec.PolicyFile{policyOf("org", "d", &spec.Limits{Origins: &[]string{"http://127.0.0.1:11434"}})}
	if p, ds := compilePair(t, b); p != nil || ds[0].Code != "policy-origin" || ds[0].Path != "providers.odd.baseURL" {
		t.Errorf("got %v", ds)
	}
}

// A provider that answers by itself has no address and no key; what it plays is a file like any other.
func TestN3ScriptedAsksNobody(t *testing.T) {
	none := &[]string{}
	b := pair()
	b.Team.Providers = map[string]spec.Provider{"demo": {Kind: "scripted", Cassette: "tapes/a.yaml"}}
	for i := range b.Team.Agents {
		b.Team.Agents[i].Provider = "demo"
	}
	b.Above = []spec.PolicyFile{policyOf("org", "d", &spec.Limits{Origins: none, Env: none, Files: &[]string{"tapes/*"}})}
	compiledPair(t, b)
	b.Above[0].Policy.Limits.Files = none
	if p, ds := compilePair(t, b); p != nil || ds[0].Code != "policy-file" {
		t.Errorf("got %v", ds)
	}
}

// A path is judged as the file that is opened: Join takes an absolute one as relative, so this does too.
func TestN3AbsoluteKeyFile(t *testing.T) {
	b := pair()
	b.Team.Providers = map[string]spec.Provider{"p": {Kind: "openai", APIKey: &spec.SecretRef{File: "/../secret"}}}
	b.Above = []spec.PolicyFile{policyOf("org", "d", &spec.Limits{Files: &[]string{"**"}})}
	if p, ds := compilePair(t, b); p != nil || !strings.Contains(ds[0].Message, `"../secret"`) {
		t.Errorf("got %v", ds)
	}
}

// A saved plan that lists a policy is held against all of it.
func TestNotUnder(t *testing.T) {
	known := []spec.ToolInfo{tool("look", false), tool("change", true)}
	given := policyOf("org", "d", &spec.Limits{MaxTokenBudget: 9000, RequiredRoles: []string{"a"}, RequireEnforced: []string{"budget"}}, deny("r"))
	for _, c := range []struct {
		name   string
		change func(*spec.Plan)
		want   string
	}{
		{"as compiled", func(*spec.Plan) {}, ""},
		{"another digest", func(p *spec.Plan) { p.Policies[0].Digest = "e" }, `the plan was not compiled under policy "org" of d`},
		{"a file of the team", func(p *spec.Plan) { p.Policies[0].Source = "file org" }, `the plan was not compiled under policy "org" of d`},
		{"no gates", func(p *spec.Plan) { p.Gates.Declared = false }, `the plan gates no call, and policy "org" gates every one`},
		{"no rule", func(p *spec.Plan) { p.Gates.Rules = nil }, `the plan lists policy "org" and is without its rule "r"`},
		{"another rule", func(p *spec.Plan) { p.Gates.Rules[0].When = "false" }, `the plan lists policy "org" and is without its rule "r"`},
		{"a rule for one agent", func(p *spec.Plan) { p.Gates.Rules[0].Agent = "a" }, `the plan lists policy "org" and is without its rule "r"`},
		{"no ceiling", func(p *spec.Plan) { p.Budgets = spec.Budgets{} }, `policy "org" sets lower ceilings than the plan has`},
		{"no declaration", func(p *spec.Plan) { p.Governance = nil }, `policy "org" requires the roles a, and the team declares no governance (limits.requiredRoles)`},
		{"no task for a role", func(p *spec.Plan) { p.Tasks = p.Tasks[1:] }, `policy "org" requires role "a", and this run has no task for it (limits.requiredRoles)`},
		{"a map of its own", func(p *spec.Plan) { p.Agents[0].Unmetered = "allow" },
			`policy "org" requires control budget to be enforced, and for agent "a" it is observed: usage that the provider does not report is estimated (limits.requireEnforced)`},
		{"another tool", func(p *spec.Plan) { p.Agents[0].Tools[1].Consequential = false }, `the plan says something else of tool "change" than this program`},
	} {
		b := pair()
		b.Above = []spec.PolicyFile{given}
		p := compiledPair(t, b)
		c.change(p)
		why := NotUnder(p, []spec.PolicyFile{given}, known)
		got := ""
		if len(why) > 0 {
			got = why[0]
		}
		if got != c.want || len(why) > 3 {
			t.Errorf("%s: %q, want %q", c.name, why, c.want)
		}
	}
	if why := NotUnder(compiledPair(t, pair()), nil, nil); why != nil {
		t.Errorf("nothing was given: %v", why)
	}
}

// N3: a policy with rules gates every call, so one on the receipt that met no gate was made under something else. A call
// that was refused before meets none.
func TestPolicyLeavesNoCallUngated(t *testing.T) {
	rules, limits := policyOf("org", "d", nil, deny("r")), policyOf("org", "d", &spec.Limits{MaxTokenBudget: 9})
	for _, c := range []struct {
		name   string
		given  spec.PolicyFile
		call   spec.Decision
		broken bool
	}{
		{"gated", rules, spec.Decision{Gated: true}, false},
		{"refused", rules, spec.Decision{Refused: "not-granted"}, false},
		{"ungated", rules, spec.Decision{}, true},
		{"ungated under limits alone", limits, spec.Decision{}, false},
	} {
		r := &spec.Receipt{Policies: []spec.NamedInput{{Name: "policy org", Digest: "d"}}, Rules: []spec.RuleTotal{{Name: "r", Source: "policy org"}},
			Decisions: []spec.DecisionRecord{{Decision: c.call}}, Budgets: spec.BudgetRecord{Effective: spec.Budgets{MaxTokenBudget: 9}}}
		v := emptyVerdict()
		v.under(r, []spec.PolicyFile{c.given}, nil)
		if broken := len(v.Reasons) > 0; broken != c.broken || broken && v.Reasons[0].Code != "integrity" {
			t.Errorf("%s: %v", c.name, v.Reasons)
		}
	}
}

// What a limit can never let through is an error of the policy.
func TestLimitsThatMatchNothing(t *testing.T) {
	for _, pattern := range []string{".", "..", "../..", "./a", "a/", "/a", "[", "a/.."} {
		if problem, _ := badPattern(pattern); problem == "" {
			t.Errorf("files %q is taken", pattern)
		}
	}
	for _, pattern := range []string{"**", "../**", ".env", "..foo", "a..", "{a,b}/*.md"} {
		if problem, _ := badPattern(pattern); problem != "" {
			t.Errorf("files %q %s", pattern, problem)
		}
	}
	for _, at := range []string{"https://*.example.com", "https://*", "example.com", "ftp://a", "https://a/b", "https://u@a", "https://a?"} {
		if problem, _ := badOrigin(at); problem == "" {
			t.Errorf("origin %q is taken", at)
		}
	}
}
