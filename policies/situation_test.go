package policies

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

func TestRulesOverWhatCameBefore(t *testing.T) {
	marked := spec.Rule{Name: "secret", When: `has(input.path) && input.path.startsWith("secrets/")`, Action: "warn", Mark: "secrets"}
	for _, c := range []struct{ name, when, want string }{
		{"history, guarded by the tool's name", `history.exists(c, c.toolName == "file_read" && c.input.path.contains("secret"))`,
			`warning when 1:1+7: rule "r": history holds the last 64 calls of one task: an earlier one drops out, and no other task has it [gate-history] | for what must hold for the rest of the run, set a mark where it happens and test it here`},
		{"history, a field misspelt", `history.exists(c, c.toolName == "file_read" && c.input.pth.contains("secret"))`,
			`error when 1:56+3: rule "r": c.input has no field "pth" [gate-type] | file_read takes offset, path`},
		{"history, a field of another tool", `history.exists(c, c.input.path.contains("secret"))`,
			`error when 1:27+4: rule "r": for earlier calls of bash, http_get, c.input has no field "path" [gate-type] | only file_edit, file_read has it: ask for the call's toolName first, or write has(c.input.path) && …`},
		{"history, guarded by has", `history.exists(c, has(c.input.path) && c.input.path.contains("secret"))`, ""},
		{"history, an optional field", `history.exists(c, c.toolName == "bash" && c.input.timeout > 5)`,
			`warning when 1:51+7: rule "r": for earlier calls of bash, "timeout" may be left out, and reading it then fails [gate-optional] | write has(c.input.timeout) && …`},
		{"history, a word outside an enum", `history.exists(c, c.action == "denied")`,
			`error when 1:32+6: rule "r": "denied" is never a value here [gate-enum] | the values are allow, deny, suspend`},
		{"history, an enum of the tool", `history.exists(c, c.toolName == "http_get" && has(c.input.mode) && c.input.mode == "fats")`,
			`error when 1:85+4: rule "r": for earlier calls of http_get, "fats" is never a value here [gate-enum] | the values are fast, slow`},
		{"history, no such tool", `history.exists(c, c.toolName == "file_raed")`,
			`error when 1:34+9: rule "r": there is no tool "file_raed" [unknown-tool] | did you mean file_read?`},
		{"history, through filter and index", `history.filter(c, c.toolName == "bash").all(d, d.input.command != "") && history[0].toolName == "bash"`, ""},
		{"history, too dear", `history.exists(c, c.toolName == "bash" && classifyBash(c.input.command).level == "high")`,
			`error when: rule "r": judging one call may cost 25192130 units; at most 10000000 are allowed [gate-cost] | look at less: bound the field with maxLength or maxItems, or test a shorter one`},
		{"marks", `"secrets" in marks`, ""},
		{"marks, misspelt", `"secret" in marks`, `error when 1:2+6: rule "r": no rule sets the mark "secret" [unknown-mark] | did you mean secrets?`},
		{"marks, misspelt, in a loop", `marks.exists(m, m == "secret")`, `error when 1:23+6: rule "r": no rule sets the mark "secret" [unknown-mark] | did you mean secrets?`},
		{"marks, misspelt, by a loop", `["secret"].exists(m, m in marks)`, `error when 1:3+6: rule "r": no rule sets the mark "secret" [unknown-mark] | did you mean secrets?`},
		{"marks, misspelt, by a choice", `(consequential ? "secret" : "secrets") in marks`,
			`error when 1:19+6: rule "r": no rule sets the mark "secret" [unknown-mark] | did you mean secrets?`},
		{"marks, misspelt, by number", `size(marks) > 0 && marks[0] == "secret"`, `error when 1:33+6: rule "r": no rule sets the mark "secret" [unknown-mark] | did you mean secrets?`},
		{"marks, another list in the loop", `["secret"].exists(marks, marks == "secret")`, ""},
		{"no such tool, in a loop", `["bash", "bsah"].exists(t, t == toolName)`, `error when 1:11+4: rule "r": there is no tool "bsah" [unknown-tool] | did you mean bash?`},
		{"no such agent, in a loop", `["z"].exists(x, agentName == x)`, `error when 1:3+1: rule "r": the team has no agent "z" [unknown-agent] | did you mean a?`},
		{"history, has a field that no tool has", `history.exists(c, has(c.input.pth))`,
			`error when 1:31+3: rule "r": c.input has no field "pth" [gate-type] | file_edit takes old_string, path; file_read takes offset, path`},
		{"history, has a field, by number", `size(history) > 0 && has(history[0].input.pth)`,
			`error when 1:43+3: rule "r": the value has no field "pth" [gate-type] | file_edit takes old_string, path; file_read takes offset, path`},
		{"history, the first of none", `history[0].toolName == "bash"`,
			`warning when 1:1+7: rule "r": history may hold less, and reading past its end then fails [gate-optional] | write size(history) > … && …`},
		{"history, the first of some", `size(history) > 0 && history[0].toolName == "bash"`, ""},
		{"history, the first, if any", `history[?0].optMap(c, c.toolName == "bash").orValue(false)`, ""},
		{"budget, guarded", `has(budget.tokens) && budget.tokens < 100`, ""},
		{"budget, unguarded", `budget.tokens < 100`,
			`warning when 1:8+6: rule "r": "tokens" may be left out, and reading it then fails [gate-optional] | write has(budget.tokens) && …`},
		{"budget, a dollar is a number", `has(budget.cost) && budget.cost < 1`, `error when 1:33+1: rule "r": < does not take (number, integer) [gate-type] | write 1.0`},
		{"shell, behind the tool's name", `toolName == "bash" && shell.risk == "high"`, ""},
		{"shell, of any tool", `shell.risk == "high"`,
			`error when 1:1+5: rule "r": for file_edit, file_read, http_get, there is no shell: the tool takes no command line [gate-type] | write tools: [bash], or toolName == "bash" && …`},
		{"shell, a word outside the enum", `toolName == "bash" && shell.risk == "hihg"`,
			`error when 1:38+4: rule "r": "hihg" is never a value here [gate-enum] | the values are safe, review, high`},
		{"shell, a field misspelt", `toolName == "bash" && shell.comands.size() > 1`,
			`error when 1:29+7: rule "r": shell has no field "comands" [gate-type] | shell has background, commands, findings, hasSubstitution, network, parseError, reason, redirects, risk, writes`},
		{"shell, of a command", `toolName == "bash" && shell.commands.exists(c, c.name == "git" && c.args.exists(a, a == "push"))`, ""},
		{"shell, of a command, misspelt", `toolName == "bash" && shell.commands.exists(c, c.nam == "git")`,
			`error when 1:50+3: rule "r": c has no field "nam" [gate-type] | c has args, assignments, dynamic, name, path`},
		{"shell, a code that no finding has", `toolName == "bash" && shell.findings.exists(f, f.code == "pipe-to-shel")`,
			`error when 1:59+12: rule "r": "pipe-to-shel" is never a value here [gate-enum] | did you mean pipe-to-shell?`},
		{"classifyBash", `toolName == "bash" && classifyBash(input.command).level == "hihg"`,
			`error when 1:61+4: rule "r": "hihg" is never a value here [gate-enum] | the values are safe, review, high`},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := team(everyTool(), spec.Rule{When: c.when}, marked)
			_, ds := Compile(in)
			ds = ofRule(ds, "r")
			if strings.HasPrefix(c.name, "history") && !strings.Contains(c.want, "[gate-history]") { // each of them is warned of
				ds = without(ds, "gate-history")
			}
			got := strings.ReplaceAll(strings.TrimSuffix(show(ds), "\n"), "gates.rules[0].", "")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("diagnostics (-want +got):\n%s", diff)
			}
		})
	}
}

func ofRule(ds spec.Diagnostics, name string) (out spec.Diagnostics) {
	for _, d := range ds {
		if strings.Contains(d.Message, fmt.Sprintf("rule %q", name)) {
			out = append(out, d)
		}
	}
	return out
}

func without(ds spec.Diagnostics, code string) (out spec.Diagnostics) {
	for _, d := range ds {
		if d.Code != code {
			out = append(out, d)
		}
	}
	return out
}

// N7: a mark is set by a rule that matches a call which then runs, once, and a call that is denied sets none.
func TestMarks(t *testing.T) {
	s := mustCompile(t, team(everyTool(),
		spec.Rule{Name: "read", When: `has(input.path) && input.path.startsWith("secrets/")`, Action: "warn", Mark: "secrets"},
		spec.Rule{Name: "also", When: `has(input.path) && input.path.startsWith("secrets/")`, Action: "warn", Mark: "asked"},
		spec.Rule{Name: "no-key", When: `has(input.path) && input.path.endsWith(".key")`},
		spec.Rule{Name: "offline", Tools: []string{"http_get"}, When: `"secrets" in marks`, Reason: "secrets were read"}))
	read := func(path string, marks ...string) Request {
		return Request{ToolName: "file_read", AgentName: "a", Input: map[string]any{"path": path}, Situation: spec.Situation{Marks: marks}}
	}
	get := func(marks ...string) Request {
		return Request{ToolName: "http_get", AgentName: "a", Input: map[string]any{"url": "u", "retries": int64(3)}, Situation: spec.Situation{Marks: marks}}
	}
	for _, c := range []struct {
		name    string
		request Request
		allowed bool
		marks   []string
	}{
		{"nothing to mark", read("src/a.go"), true, nil},
		{"set, sorted", read("secrets/a"), true, []string{"asked", "secrets"}},
		{"set before", read("secrets/a", "secrets"), true, []string{"asked"}},
		{"a denied call sets none", read("secrets/a.key"), false, nil},
		{"never after", get("secrets"), false, nil},
		{"before", get("other"), true, nil},
	} {
		d := s.Decide(t.Context(), c.request)
		if d.Allowed() != c.allowed || cmp.Diff(c.marks, d.Marks) != "" {
			t.Errorf("%s: %+v", c.name, d)
		}
	}
}

// What an earlier call was is seen as it was judged: shaped, the newest last, and no more than 64 of them.
func TestHistory(t *testing.T) {
	broken := []spec.HistoryCall{{ToolName: "file_read", Input: []byte(`{"path":`)}}
	for _, c := range []struct {
		name, when string
		calls      []spec.HistoryCall
		want       string
	}{
		{"none", `history == []`, nil, "matched"},
		{"newest last", `dyn(history[size(history) - 1].input).path == "b"`, calls("a", "b"), "matched"},
		{"defaults are filled in", `history.exists(c, c.toolName == "http_get" && c.input.retries == 3)`, []spec.HistoryCall{{ToolName: "http_get", Input: []byte(`{"url":"u"}`)}}, "matched"},
		{"allowed unless said", `history.all(c, c.action == "allow")`, calls("a"), "matched"},
		{"the last ones", `size(history) == 64 && dyn(history[0].input).path == "36"`, numbered(100), "matched"},
		{"CE-01 a field that is not there", `history.exists(c, dyn(c).input.nope == "x")`, calls("a"), "error"},
		{"one that cannot be read", `history.exists(c, dyn(c).input.command == "x")`, broken, "error"},
		{"one that cannot be read, whatever else is true", `history.exists(c, dyn(c).input == {}) || has(input.path)`, broken, "error"},
		{"more than rules can look into", `history.all(c, c.toolName == "file_read" && size(c.input.path) > 9)`, large(5), "error"},
		{"as much as rules can look into", `history.all(c, c.toolName == "file_read" && size(c.input.path) > 9)`, large(3), "matched"},
		{"more, and no rule looks into it", `history.all(c, c.toolName == "file_read")`, large(64), "matched"},
		{"an input that no rule looks into is not read", `!history.exists(c, c.action == "deny")`, broken, "matched"},
	} {
		s := mustCompile(t, team([]spec.ToolInfo{fileRead, httpGet}, spec.Rule{When: c.when, Action: "warn"}))
		d := s.Decide(t.Context(), Request{ToolName: "file_read", AgentName: "a", Input: map[string]any{"path": "x"}, Situation: spec.Situation{History: c.calls}})
		if len(d.Rules) != 1 || d.Rules[0].Outcome != c.want {
			t.Errorf("%s: %+v", c.name, d)
		}
	}
}

func calls(paths ...string) (out []spec.HistoryCall) {
	for _, p := range paths {
		out = append(out, spec.HistoryCall{ToolName: "file_read", Input: fmt.Appendf(nil, `{"path":%q}`, p)})
	}
	return out
}

// large gives calls of a mebibyte each.
func large(n int) []spec.HistoryCall {
	return slices.Repeat(calls(strings.Repeat("x", 1<<20)), n)
}

func numbered(n int) []spec.HistoryCall {
	paths := make([]string, n)
	for i := range paths {
		paths[i] = fmt.Sprint(i)
	}
	return calls(paths...)
}

// Facts are computed once for all rules of a call, and only when a rule asks.
func TestShellIsComputedWhenAsked(t *testing.T) {
	s := mustCompile(t, team([]spec.ToolInfo{bash}, spec.Rule{Name: "a", When: `input.command == "x"`}, spec.Rule{Name: "b", When: `shell.risk == "high"`},
		spec.Rule{Name: "c", When: `shell.commands.exists(c, c.name == "rm")`}))
	vars := &variables{set: s, request: &Request{ToolName: "bash", Input: map[string]any{"command": "rm x"}}}
	rules := s.calls[callKey{"a", "bash"}].rules
	for i, want := range []bool{false, true, true} {
		if _, err := rules[i].matches(t.Context(), vars); err != nil {
			t.Fatal(err)
		}
		if got := vars.shells[0] != nil; got != want {
			t.Errorf("after rule %d: computed %t", i, got)
		}
		if i == 1 {
			vars.request.Input = map[string]any{} // nothing to compute it from any more
		}
	}
}

// What a team says of shell commands reaches its own rules, and no rule from above.
func TestLevels(t *testing.T) {
	in := team([]spec.ToolInfo{bash}, spec.Rule{Name: "own", When: `shell.risk != "safe" || classifyBash(input.command).level != "safe"`, Action: "warn"})
	in.Levels = []spec.ShellLevel{{Match: []string{"frobnicate"}, Level: "safe", Reason: "it only reads"}}
	in.Rules = append(in.Rules, spec.PlanRule{Source: "policy org", Rule: spec.Rule{Name: "org", Tools: []string{"bash"}, Action: "warn",
		When: `shell.risk != "safe" && classifyBash(input.command).level != "safe"`}})
	d := mustCompile(t, in).Decide(t.Context(), command("frobnicate"))
	if len(d.Rules) != 1 || d.Rules[0].Name != "org" {
		t.Errorf("%+v", d)
	}
	in.Levels = []spec.ShellLevel{{Match: []string{""}, Level: "safe"}, {Match: []string{"ls"}, Level: "harmless"}}
	_, ds := Compile(in)
	if got := show(ds); strings.Count(got, "[shell-level]") != 2 {
		t.Error(got)
	}
}

func TestReasonsAndAnnotations(t *testing.T) {
	s := mustCompile(t, team([]spec.ToolInfo{bash},
		spec.Rule{Name: "long", When: `size(input.command) > 3`, ReasonExpression: `string(size(input.command)) + " characters"`,
			Annotate: map[string]string{"b": `input.?cwd.orValue("here")`, "a": `agentName`, "c": `string(dyn(input).nope)`}},
		spec.Rule{Name: "odd", When: `input.command == "odd!"`, ReasonExpression: `input.cwd`}))
	d := s.Decide(t.Context(), command("odd!"))
	want := spec.Decision{Gated: true, GateAction: "deny", GateOutcome: "decided", Reason: `rule "long": 4 characters; rule "odd"`, Rules: []spec.RuleOutcome{
		{Name: "long", Source: "team", Action: "deny", Outcome: "matched", Reason: "4 characters",
			Annotations: []spec.Annotation{{Name: "a", Value: "a"}, {Name: "b", Value: "here"}, {Name: "c", Error: "it reads a field that is not there"}}},
		{Name: "odd", Source: "team", Action: "deny", Outcome: "matched", Error: `reasonExpression: the input has no field "cwd"`}}}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
	for expr, want := range map[string]string{
		`size(input.command)`: `error gates.rules[0].reasonExpression 1:5+0: rule "r": gives integer, want a text [gate-type] | write string(…)`,
		`input.comand`:        `error gates.rules[0].reasonExpression 1:7+6: rule "r": input has no field "comand" [gate-type] | bash takes command, cwd, timeout`,
	} {
		_, ds := Compile(team([]spec.ToolInfo{bash}, spec.Rule{When: "true", ReasonExpression: expr}))
		if got := strings.TrimSpace(show(ds)); got != want {
			t.Errorf("%s:\n got %s\nwant %s", expr, got, want)
		}
	}
	_, ds := Compile(team([]spec.ToolInfo{bash}, spec.Rule{When: "true", Reason: "x", ReasonExpression: `"y"`, Mark: "m", Annotate: map[string]string{"n": "1"}}))
	for _, code := range []string{"[gate-two-reasons]", "gates.rules[0].mark: rule \"r\": a call that is denied sets no mark [gate-no-effect]", "gates.rules[0].annotate.n"} {
		if !strings.Contains(show(ds), code) {
			t.Errorf("no %s in\n%s", code, show(ds))
		}
	}
}

// A mark of a rule that denies is never set. One of a rule that asks is set if a person lets the call run.
func TestMarksThatAreNeverSet(t *testing.T) {
	for action, want := range map[string]string{"deny": "error", "ask": "", "suspend": "", "warn": ""} {
		_, ds := Compile(team([]spec.ToolInfo{bash}, spec.Rule{When: "true", Action: action, Mark: "m"}))
		if got := show(ds); want == "" && got != "" || !strings.HasPrefix(got, want) || want != "" && !strings.Contains(got, "sets no mark [gate-no-effect]") {
			t.Errorf("%s: %s", action, got)
		}
	}
}

func TestToolPatterns(t *testing.T) {
	_, ds := Compile(team(everyTool(), spec.Rule{Tools: []string{"file_*"}, When: `true`, Examples: &spec.RuleExamples{Matches: []spec.CallExample{{Input: []byte(`{"path":"x"}`)}}}}))
	if !strings.Contains(show(ds), "the example does not say which tool is called [gate-example] | add toolName") {
		t.Error(show(ds))
	}
	for pattern, want := range map[string]bool{"*": true, "file_*": true, "*_read": true, "f*_*d": true, "file_read": true, "file_read*": true,
		"file": false, "*_write": false, "file_*_read": false, "ffile*": false} {
		if got := nameMatches(pattern, "file_read"); got != want {
			t.Errorf("%s: %t", pattern, got)
		}
	}
	s := mustCompile(t, team(everyTool(), spec.Rule{Tools: []string{"file_*"}, When: `input.path == "x"`, Action: "warn"}))
	var tools []string
	for _, a := range s.Rules()[0].AppliesTo {
		tools = append(tools, a.Tool)
	}
	if strings.Join(tools, " ") != "file_edit file_read" {
		t.Error(tools)
	}
	_, ds = Compile(team(everyTool(), spec.Rule{Tools: []string{"mcp_*"}, When: `true`}))
	if !strings.Contains(show(ds), `there is no tool "mcp_*" [unknown-tool]`) {
		t.Error(show(ds))
	}
}

// A rule that an agent replaces does not hold for that agent, and holds for every other.
func TestReplacedRules(t *testing.T) {
	in := team([]spec.ToolInfo{bash}, spec.Rule{Name: "no", When: "true"})
	in.Agents[1].Tools = []spec.ToolInfo{bash}
	in.Rules[0].ReplacedFor = []string{"b"}
	s := mustCompile(t, in)
	for agent, allowed := range map[string]bool{"a": false, "b": true} {
		r := command("ls")
		r.AgentName = agent
		if d := s.Decide(t.Context(), r); d.Allowed() != allowed {
			t.Errorf("%s: %+v", agent, d)
		}
	}
}

func TestExamplesOfASituation(t *testing.T) {
	left := int64(5)
	x := func(s spec.Situation) spec.CallExample {
		return spec.CallExample{ToolName: "file_read", Input: []byte(`{"path":"x"}`), Situation: s}
	}
	marked := spec.Rule{Name: "m", When: "true", Action: "warn", Mark: "seen"}
	rule := spec.Rule{Name: "r", When: `"seen" in marks || history.exists(c, c.action == "deny") || has(budget.tokens) && budget.tokens < 10`, Action: "warn",
		Examples: &spec.RuleExamples{Matches: []spec.CallExample{x(spec.Situation{Marks: []string{"seen"}}),
			x(spec.Situation{History: []spec.HistoryCall{{ToolName: "file_read", Input: []byte(`{"path":"y"}`), Action: "deny"}}}),
			x(spec.Situation{Budget: &spec.BudgetRemaining{Tokens: &left}})},
			Ignores: []spec.CallExample{x(spec.Situation{})}}}
	mustCompile(t, team(everyTool(), rule, marked))
	rule.Examples.Ignores = []spec.CallExample{x(spec.Situation{History: []spec.HistoryCall{{ToolName: "file_read", Input: []byte(`{"pth":"y"}`)}}}),
		x(spec.Situation{History: []spec.HistoryCall{{ToolName: "nope"}}})}
	_, ds := Compile(team(everyTool(), rule, marked))
	for _, want := range []string{`examples.ignores[0].history[0].input: rule "r": no call of file_read has this input: unknown "pth"`, "examples.ignores[1].history[0].toolName"} {
		if !strings.Contains(show(ds), want) {
			t.Errorf("no %s in\n%s", want, show(ds))
		}
	}
}

// The record of a denial says what each rule that forbade it asked and read, and nothing of rules that did not.
func TestExplain(t *testing.T) {
	s := mustCompile(t, team([]spec.ToolInfo{bash},
		spec.Rule{Name: "log", When: `input.command != ""`, Action: "warn"},
		spec.Rule{Name: "no-rm", When: `toolName == "bash" && (has(input.timeout) && input.timeout > 5 || input.command.startsWith("rm") && input.?cwd.orValue(".") == ".")`},
		spec.Rule{Name: "slow", When: `input.timeout > 5`},
		spec.Rule{Name: "loops", When: `["rm"].exists(x, input.command.contains(x)) && size(history) == 0`}))
	r := command("rm x")
	d := s.Decide(t.Context(), r)
	s.Explain(t.Context(), r, &d)
	got := map[string]string{}
	for _, out := range d.Rules {
		text := ""
		for _, v := range out.Values {
			text += v.Path + "=" + v.Value + " "
		}
		got[out.Name] = strings.TrimSpace(text)
		if (out.When != "") != (out.Name != "log") {
			t.Errorf("%s: when %q", out.Name, out.When)
		}
	}
	want := map[string]string{"log": "", "no-rm": `toolName="bash" has(input.timeout)=false input.command="rm x" input.?cwd=null`,
		"slow": `input.timeout=(it reads a field that is not there)`, "loops": `input.command="rm x" history=[]`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	again := s.Decide(t.Context(), r)
	if again.Reason != d.Reason || again.GateAction != d.GateAction {
		t.Errorf("explaining changed the decision: %+v", d)
	}
}

// What a team says of shell commands changes what a pack decides in its runs, and not whether the pack's examples hold.
func TestExamplesOfPacksKnowNoTeam(t *testing.T) {
	for source, fails := range map[string]bool{"team": true, "pack p": false, "file p.yaml": false, "policy p": false} {
		in := team([]spec.ToolInfo{bash})
		in.Levels = []spec.ShellLevel{{Match: []string{"go", "test"}, Level: "safe", Reason: "it only reads"}}
		in.Rules = []spec.PlanRule{{Source: source, Rule: spec.Rule{Name: "r", Tools: []string{"bash"}, Action: "deny",
			When:     `shell.risk != "safe" && classifyBash(input.command).level != "safe"`,
			Examples: &spec.RuleExamples{Matches: []spec.CallExample{{Input: []byte(`{"command":"go test ./..."}`)}}}}}}
		s, ds := Compile(in)
		if ds.HasErrors(false) != fails {
			t.Errorf("%s: %s", source, show(ds))
		}
		if s != nil && s.Decide(t.Context(), command("go test")).Allowed() != !strings.HasPrefix(source, "policy") {
			t.Errorf("%s: the levels of the team", source)
		}
	}
}

// Matching the words of a command line is affordable, and its price is a bound: one word may be all of the line.
func TestThePriceOfWords(t *testing.T) {
	const one = `shell.commands.exists(c, c.args.exists(a, a.matches(r"(^|/)\.env(\..*)?$") || a.endsWith(".pem")))`
	mustCompile(t, team([]spec.ToolInfo{bash}, spec.Rule{When: one}))
	var many []string
	for i := range 70 {
		many = append(many, fmt.Sprintf(`shell.commands[0].args[0].matches("(a|b)*%d[a-z0-9]{20}x")`, i))
	}
	if _, ds := Compile(team([]spec.ToolInfo{bash}, spec.Rule{When: strings.Join(many, " || ")})); !strings.Contains(show(ds), "[gate-cost]") {
		t.Errorf("seventy searches of 64 KiB are let through\n%s", show(ds))
	}
}

// A command line with more in it than is listed is denied by every rule that looks: it must not find less than there is.
func TestMoreThanIsListed(t *testing.T) {
	s := mustCompile(t, team([]spec.ToolInfo{bash}, spec.Rule{When: `shell.writes.exists(w, w == "x")`, Action: "warn"}))
	for text, want := range map[string]string{strings.Repeat("ls;", 1025): "error", strings.Repeat(">a ", 1025): "error", "ls" + strings.Repeat(" >a", 1024): "decided"} {
		d := s.Decide(t.Context(), command(text))
		if d.GateOutcome != want {
			t.Errorf("%.9s…: %+v", text, d)
		}
		if want == "error" && d.Reason != `rule "r": it could not be evaluated: the command line has more commands, redirects or files than are listed` {
			t.Error(d.Reason)
		}
	}
}
