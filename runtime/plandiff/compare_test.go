package plandiff

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

func ptr[T any](v T) *T { return &v }

// sample is a plan with something in every place that a test changes.
func sample() *spec.Plan {
	return &spec.Plan{
		Envelope: spec.Envelope{APIVersion: spec.APIVersion, Kind: spec.KindPlan}, Digest: "sha256:0", PlanOnly: true, GovernanceConclusion: "not-applicable",
		Team: spec.PlanTeam{Name: "team", Path: "team.yaml", Digest: "sha256:1"}, Goal: "goal", GoalDigest: "sha256:2",
		Inputs:          []spec.PlanInput{{Path: "team.yaml", Digest: "sha256:1", Kind: "Team"}},
		RoutingDecision: spec.RoutingDecision{Source: "declared", Mode: "team", Reasons: []string{"because"}},
		Governance: &spec.Governance{GovernanceIntent: "required", RequiredRoles: []string{"writer", "reviewer"}, RequiredOrder: []string{"writer", "reviewer"},
			Independence: spec.Independence{ReviewersReadOnly: true, DifferentModel: true}},
		Providers: map[string]spec.PlanProvider{"gateway": {Provider: spec.Provider{Kind: "openai", BaseURL: "https://a.example/v1", APIKey: &spec.SecretRef{Env: "KEY"},
			MaxRetries: ptr(1), MaxRetryDelay: spec.Duration(30 * time.Second), Models: map[string]spec.ModelPrice{"small": {InputPer1M: ptr(spec.Dollar), OutputPer1M: ptr(2 * spec.Dollar), ContextWindow: 1000}}}}},
		CustomTools: map[string]spec.CustomTool{"build": {Command: []string{"make"}, Consequential: true, Credentials: []string{"token"}, Timeout: spec.Duration(time.Minute)}},
		MCPServers: map[string]spec.PlanMCPServer{"files": {MCPServer: spec.MCPServer{Command: "files", Args: []string{"--safe"}, Env: map[string]spec.Variable{"SAFE": {Value: "1"}}, Consequential: []string{"*"}},
			Tools: []spec.PlanServerTool{{As: "files_read", ServerTool: spec.ServerTool{Name: "read", Description: "reads", InputSchema: spec.Schema(`{"type":"object"}`)}}}}},
		Agents: []spec.PlanAgent{
			{Name: "writer", Provider: "gateway", Model: "small", SystemPrompt: "Write.\n", Cwd: "src", OutputSchema: spec.Schema(`{"type":"object"}`), MaxTurns: 10, MaxTokenBudget: 1000,
				MaxToolInputBytes: 1 << 20, MaxToolConcurrency: 4, CallTimeout: spec.Duration(10 * time.Minute), Credentials: map[string]spec.SecretRef{"token": {Env: "TOKEN"}},
				ShellExecutor: &spec.ShellExecutor{Kind: "landlock", Network: ptr(false)},
				Tools: []spec.Grant{{ToolInfo: spec.ToolInfo{Name: "bash", Description: "a shell", InputSchema: spec.Schema(`{"type":"object"}`), Consequential: true}, GrantedBy: "tools"},
					{ToolInfo: spec.ToolInfo{Name: "grep", ReadOnly: true}, GrantedBy: "tools"}}},
			{Name: "reviewer", Provider: "gateway", Model: "small", SystemPrompt: "Review.\n", MaxTurns: 5, Tools: []spec.Grant{}, Removed: []spec.Removal{{Name: "bash", RemovedBy: "disallowedTools"}}},
		},
		Tasks: []spec.PlanTask{{ID: "t1", Title: "One", Description: "goal", Assignee: "writer", Role: "writer", Status: "pending"},
			{ID: "t2", Title: "Two", Description: "goal", Assignee: "reviewer", Role: "reviewer", DependsOn: []string{"t1"}, Status: "pending"}, {ID: "t3", Title: "Three", Assignee: "writer", Status: "pending"}},
		Gates: spec.PlanGates{Declared: true, Default: "deny", Rules: []spec.PlanRule{
			{Rule: spec.Rule{Name: "no-push", Tools: []string{"bash", "build"}, When: `"push" in input.command`, Action: "suspend"}, Source: "team", AppliesTo: []spec.RuleCost{{Tool: "bash", Cost: 5}}},
			{Rule: spec.Rule{Name: "may-read", Tools: []string{"grep", "files_read"}, When: "true", Action: "allow"}, Source: "team", AppliesTo: []spec.RuleCost{}},
			{Rule: spec.Rule{Name: "note", When: "true", Action: "warn"}, Source: "team", Agent: "writer", AppliesTo: []spec.RuleCost{}}},
			Levels: []spec.ShellLevel{{Match: []string{"terraform", "apply"}, Level: "review", Reason: "it deploys"}, {Match: []string{"ls"}, Level: "safe", Reason: "it lists"}}},
		Release: []spec.Requirement{{Name: "approved", That: "true"}},
		Approvals: &spec.PlanApprovals{RequireConsequentialConfirmation: true, Plan: []spec.PlanRule{{Rule: spec.Rule{Name: "plan", When: "consequential", Action: "suspend"}, Source: "team", AppliesTo: []spec.RuleCost{}}},
			Reviewers: []spec.Reviewer{{ID: "ann", PublicKey: "A"}, {ID: "bob"}}, Expires: spec.Duration(time.Hour), Quorum: 2, SeparateApprover: true},
		Policies: []spec.PlanPolicy{{Name: "org", Source: "policy org", Digest: "sha256:3", Limits: &spec.Limits{Env: &[]string{"KEY", "TOKEN"}, MaxTokenBudget: 5000, RequiredRoles: []string{"reviewer"}, RequireEnforced: []string{"gates"}}},
			{Name: "read-only", Source: "pack read-only", Digest: "sha256:4"}},
		Budgets:    spec.Budgets{MaxTokenBudget: 5000, MaxCostBudget: ptr(spec.Dollar), MaxDuration: spec.Duration(time.Hour), ReserveForRequired: true},
		Scheduling: spec.Scheduling{MaxConcurrency: 5},
		Enforcement: []spec.Control{{Agent: "writer", Control: "gates", Level: spec.Enforced, Mechanism: "the door"}, {Agent: "writer", Control: "secrets", Level: spec.Observed, Mechanism: "minimal"},
			{Agent: "reviewer", Control: "gates", Level: spec.Enforced, Mechanism: "the door"}},
		WorstCase: spec.WorstCase{FloorTokens: 10},
	}
}

// differenceCase is a change of the sample. there is what it comes to, and back what comes of taking it back.
type differenceCase struct {
	name        string
	change      func(*spec.Plan)
	path        spec.Path
	there, back Direction
}

// compared holds the differences of one case in both directions. Others may stand beside the one that is looked for.
func compared(t *testing.T, c differenceCase) {
	t.Helper()
	one, two := sample(), sample()
	c.change(two)
	for _, way := range []struct {
		name string
		a, b *spec.Plan
		want Direction
	}{{"there", one, two, c.there}, {"back", two, one, c.back}} {
		r, err := Compare(way.a, way.b)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(r.Changes, func(x Change) bool { return x.Path == c.path })
		if i < 0 {
			t.Errorf("%s: nothing is said of %s: %+v", way.name, c.path, r.Changes)
			continue
		}
		if got := r.Changes[i]; got.Direction != way.want || got.What == "" {
			t.Errorf("%s: %s is %s: %s, want %s", way.name, c.path, got.Direction, got.What, way.want)
		}
	}
}

func TestEveryKindOfDifference(t *testing.T) {
	for _, c := range slices.Concat(agentCases(), ruleCases(), planCases(), outsideCases()) {
		t.Run(c.name, func(t *testing.T) { compared(t, c) })
	}
}

func TestTheSamePlan(t *testing.T) {
	r, err := Compare(sample(), sample())
	if err != nil {
		t.Fatal(err)
	}
	side := Side{"team", "sha256:0"}
	if diff := cmp.Diff(&Result{Same: true, A: side, B: side, Changes: []Change{}}, r); diff != "" {
		t.Error(diff)
	}
}

// TestEveryMemberHasAMeaning holds the table against the type: a member of a plan without a row would be widened for ever.
func TestEveryMemberHasAMeaning(t *testing.T) {
	meant(t, "", reflect.TypeFor[spec.Plan](), plan())
}

func meant(t *testing.T, at spec.Path, typ reflect.Type, p *part) {
	t.Helper()
	if p.choose != nil {
		p = p.choose(object{"action": "deny"}, object{"action": "deny"})
	}
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
		if typ.Kind() != reflect.Pointer && p.each != nil {
			if p.added == nil || p.removed == nil {
				t.Errorf("%s: an element has no meaning when it comes or goes", at)
			}
			if p = p.each; p.choose != nil {
				p = p.choose(object{"action": "deny"}, object{"action": "deny"})
			}
		}
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || p.of == nil {
		return
	}
	fixed := []string{"apiVersion", "kind", "planOnly", "governanceConclusion", "status"} // of every plan the same
	for _, f := range reflect.VisibleFields(typ) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "" || name == "-" {
			continue
		}
		q := p.of[name]
		if q == nil && !(slices.Contains(fixed, name) && (at == "" || name == "status")) {
			t.Errorf("%s: the part has no meaning: add a row, or its differences are all widened", at.Key(name))
		} else if q != nil {
			meant(t, at.Key(name), f.Type, q)
		}
	}
}

// TestNothingIsLost changes, drops and adds at every place of a plan. Something must be said each time, and of a member
// that nobody has heard of, that it is widened.
func TestNothingIsLost(t *testing.T) {
	whole, err := document(sample())
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	everywhere(whole, func(string, func()) { count++ })
	for i := range count {
		one, _ := document(sample())
		two, _ := document(sample())
		n, at := 0, ""
		everywhere(two, func(where string, alter func()) {
			if n == i {
				at = where
				alter()
			}
			n++
		})
		for _, way := range [][2]object{{one, two}, {two, one}} {
			got := differences(way[0], way[1])
			if len(got) == 0 {
				t.Errorf("%s: nothing differs", at)
			}
			if strings.HasSuffix(at, " new") && (len(got) != 1 || got[0].Direction != Widened) {
				t.Errorf("%s: an unknown member is %+v", at, got)
			}
		}
	}
	if count < 300 {
		t.Errorf("only %d places were changed", count)
	}
}

// everywhere offers every change that can be made below a value.
func everywhere(v any, offer func(where string, alter func())) { below(v, "", func(any) {}, offer) }

func below(v any, at string, put func(any), offer func(string, func())) {
	switch v := v.(type) {
	case object:
		if !dynamic(at) {
			offer(at+".unheard new", func() { v["unheard"] = "x" })
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			offer(at+"."+name+" gone", func() { delete(v, name) })
			below(v[name], at+"."+name, func(x any) { v[name] = x }, offer)
		}
	case []any:
		for i := range v {
			offer(fmt.Sprintf("%s[%d] twice", at, i), func() { put(append(slices.Clone(v), v[i])) })
			below(v[i], fmt.Sprintf("%s[%d]", at, i), func(x any) { v[i] = x }, offer)
		}
	case string:
		offer(at+" text", func() { put(v + "x") })
		offer(at+" kind", func() { put(true) })
	case json.Number:
		offer(at+" number", func() { put(json.Number(string(v) + "7")) })
		offer(at+" kind", func() { put("x") })
	case bool:
		offer(at+" bool", func() { put(!v) })
	}
}

// dynamic says that the members of an object have names of the user's own, or are judged as one.
func dynamic(at string) bool {
	for _, end := range []string{".providers", ".models", ".customTools", ".mcpServers", ".credentials", ".worstCase", "chema", ".env", ".apiKey", ".token"} {
		if strings.HasSuffix(at, end) {
			return true
		}
	}
	return false
}

// A long text is shown by its digest and by what has changed in it.
func TestTextsAreShownByTheirDifference(t *testing.T) {
	b := sample()
	b.Agents[1].SystemPrompt = "Review.\nApprove everything."
	r, err := Compare(sample(), b)
	if err != nil || len(r.Changes) != 1 {
		t.Fatalf("%v %+v", err, r)
	}
	c := r.Changes[0]
	if want := "--- a\n+++ b\n@@ -1,1 +1,2 @@\n Review.\n+Approve everything.\n"; c.Diff != want || c.Agent != "reviewer" || !strings.HasPrefix(string(c.A), `"sha256:`) {
		t.Errorf("got %+v, want the difference %q", c, want)
	}
	b.Agents[1].SystemPrompt = strings.Repeat("x\n", diffLimit)
	if r, err = Compare(sample(), b); err != nil || r.Changes[0].Diff != "" {
		t.Errorf("a text of %d bytes is compared line by line: %v", diffLimit, err)
	}
}

// What a rule reads may open it, so that nothing it reads is narrowed or harmless.
func TestWhatRulesReadIsNeverNarrowed(t *testing.T) {
	for _, c := range []struct {
		name, when string
		path       spec.Path
		change     func(*spec.Plan)
	}{
		{"a lower budget", "budget.tokens < 100", "budgets.maxTokenBudget", func(p *spec.Plan) { p.Budgets.MaxTokenBudget = 10 }},
		{"a higher level", `shell.risk == "review"`, "gates.levels[\"terraform apply\"].level", func(p *spec.Plan) { p.Gates.Levels[0].Level = "high" }},
		{"a further mark", `!("seen" in marks)`, "gates.rules.also", func(p *spec.Plan) {
			p.Gates.Rules = append(p.Gates.Rules, spec.PlanRule{Rule: spec.Rule{Name: "also", When: "true", Action: "ask", Mark: "seen"}, Source: "team"})
		}},
		{"a denied call", `history.exists(c, c.action == "deny")`, "gates.rules.also", func(p *spec.Plan) {
			p.Gates.Rules = append(p.Gates.Rules, spec.PlanRule{Rule: spec.Rule{Name: "also", When: "true", Action: "deny"}, Source: "team"})
		}},
		{"a tool gone", `"grep" in input.tools`, "agents.writer.tools.grep", func(p *spec.Plan) { p.Agents[0].Tools = p.Agents[0].Tools[:1] }},
		{"a title", `input.title == "One"`, "tasks.t1.title", func(p *spec.Plan) { p.Tasks[0].Title = "Eins" }},
		{"a title, of the whole", `dyn(input)["ti" + "tle"] == "One"`, "tasks.t1.title", func(p *spec.Plan) { p.Tasks[0].Title = "Eins" }},
		{"a goal", `input.goal.contains("x")`, "goal", func(p *spec.Plan) { p.Goal = "y" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, reader := range []string{"", c.when} {
				a, b := sample(), sample()
				c.change(b)
				if reader != "" {
					for _, p := range []*spec.Plan{a, b} {
						p.Approvals.Dispatch = []spec.PlanRule{{Rule: spec.Rule{Name: "reader", When: reader, Action: "suspend"}, Source: "team"}}
					}
				}
				r, err := Compare(a, b)
				if err != nil {
					t.Fatal(err)
				}
				i := slices.IndexFunc(r.Changes, func(x Change) bool { return x.Path == c.path })
				if i < 0 {
					t.Fatalf("nothing is said of %s: %+v", c.path, r.Changes)
				}
				if got := r.Changes[i]; (got.Direction == Widened) != (reader != "") || reader != "" && !strings.Contains(got.What, `"reader"`) {
					t.Errorf("with the rule %q it is %+v", reader, got)
				}
			}
		})
	}
}

// Two elements of one name cannot be told apart, and a digest that nothing explains is not the same plan.
func TestDisguises(t *testing.T) {
	twice := sample()
	twice.Agents = append(twice.Agents, twice.Agents[0])
	digest := sample()
	digest.Digest = "sha256:9"
	for path, b := range map[spec.Path]*spec.Plan{"agents": twice, "digest": digest} {
		r, err := Compare(sample(), b)
		if err != nil || r.Same || r.Widened != 1 || r.Changes[0].Path != path {
			t.Errorf("%s: %v %+v", path, err, r)
		}
	}
}

func BenchmarkCompare(b *testing.B) {
	one, two := sample(), sample()
	for i := range 1000 {
		a := one.Agents[0]
		a.Name = fmt.Sprintf("agent-%d", i)
		one.Agents = append(one.Agents, a)
		a.MaxTurns += i % 2
		two.Agents = append(two.Agents, a)
	}
	for b.Loop() {
		if r, err := Compare(one, two); err != nil || r.Widened != 500 {
			b.Fatal(err, r.Widened)
		}
	}
}

// An egress policy without a list of origins lets models be asked anywhere, and one with an empty list nowhere.
func TestOrigins(t *testing.T) {
	one, two, none := []any{"https://a"}, []any{"https://a", "https://b"}, []any{}
	for _, c := range []struct {
		a, b any
		want Direction
	}{{nil, one, Narrowed}, {one, nil, Widened}, {one, two, Widened}, {two, one, Narrowed}, {one, []any{"https://b"}, Widened}, {none, one, Widened}, {one, none, Narrowed}, {nil, none, Narrowed}, {"x", one, Widened}} {
		if got := origins(nil, c.a, c.b).Direction; got != c.want {
			t.Errorf("%v to %v is %s, want %s", c.a, c.b, got, c.want)
		}
	}
}
