package policies

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

const bashSchema = `{"type":"object","additionalProperties":false,"required":["command"],"properties":{
	"command":{"type":"string","maxLength":65536},"timeout":{"type":"integer"},"cwd":{"type":"string","maxLength":4096}}}`

func toolInfo(name, schema string) spec.ToolInfo {
	return spec.ToolInfo{Name: name, InputSchema: spec.Schema(schema)}
}

// The tools of the tests.
var (
	bash     = spec.ToolInfo{Name: "bash", InputSchema: spec.Schema(bashSchema), Consequential: true}
	fileRead = toolInfo("file_read", `{"type":"object","additionalProperties":false,"required":["path"],"properties":{
		"path":{"type":"string","maxLength":4096},"offset":{"type":"integer"}}}`)
	fileEdit = toolInfo("file_edit", `{"type":"object","additionalProperties":false,"required":["path","old_string"],"properties":{
		"path":{"type":"string","maxLength":4096},"old_string":{"type":"string"}}}`)
	httpGet = toolInfo("http_get", `{"type":"object","required":["url"],"properties":{"url":{"type":"string"},"ratio":{"type":"number"},
		"mode":{"enum":["fast","slow"]},"retries":{"type":"integer","default":3}}}`)
	anything = toolInfo("free", `{"type":"object"}`)
)

func everyTool() []spec.ToolInfo { return []spec.ToolInfo{bash, fileRead, fileEdit, httpGet} }

// team is an agent named a with the tools given, and one named b with none; the tools of the tests exist.
func team(tools []spec.ToolInfo, rules ...spec.Rule) RuleSet {
	in := RuleSet{Declared: true, Agents: []AgentTools{{Name: "a", Tools: tools}, {Name: "b"}}, Known: everyTool(), Roles: []string{"reviewer"}}
	for i, r := range rules {
		if r.Name == "" {
			r.Name = "r"
		}
		if r.Action == "" {
			r.Action = spec.ActionDeny
		}
		in.Rules = append(in.Rules, spec.PlanRule{Rule: r, Source: "team", Path: spec.Path("gates.rules").Index(i)})
	}
	return in
}

func mustCompile(t testing.TB, in RuleSet) *Set {
	t.Helper()
	s, ds := Compile(in)
	if s == nil {
		t.Fatalf("rules do not compile:\n%s", show(ds))
	}
	return s
}

// show writes diagnostics as "severity path line:col+width: message [code] | hint".
func show(ds spec.Diagnostics) string {
	var b strings.Builder
	for _, d := range ds {
		fmt.Fprintf(&b, "%s %s", d.Severity, d.Path)
		if d.At.Line > 0 {
			fmt.Fprintf(&b, " %d:%d+%d", d.At.Line, d.At.Col, d.Width)
		}
		fmt.Fprintf(&b, ": %s [%s]", d.Message, d.Code)
		if d.Hint != "" {
			b.WriteString(" | " + d.Hint)
		}
		b.WriteString("\n")
	}
	return b.String()
}

const known = "known names are agentName, budget, classifyBash, consequential, globMatch, has, history, input, marks, matches, role, runId, shell, size, taskId, toolCallId, toolName, within"

func TestCompileFindsMistakes(t *testing.T) {
	for _, c := range []struct{ name, when, want string }{
		{"guarded by the tool's name", `toolName == "bash" && input.command.startsWith("rm")`, ""},
		{"guard behind", `input.command.startsWith("rm") && toolName == "bash"`, ""},
		{"guard by list", `toolName in ["file_read", "file_edit"] && input.path.contains("x")`, ""},
		{"guard by prefix", `toolName.startsWith("file_") && input.path.contains("x")`, ""},
		{"guard by pattern", `toolName.matches("^file_.*$") && input.path.contains("x")`, ""},
		{"guard by choice", `toolName == "bash" ? input.command == "x" : toolName.startsWith("file_") && input.path == "x"`, ""},
		{"guard by or", `toolName != "bash" || input.command.contains("x")`, ""},
		{"guard by has", `has(input.path) && input.path.startsWith("/etc")`, ""},
		{"shadowed names", `["x"].exists(toolName, toolName == "zz") || [1].exists(shell, shell == 2)`, ""},
		{"shadowed input", `[{"nope": 1}].exists(input, has(input.nope))`, ""},
		{"default filled in", `toolName == "http_get" && input.retries > 2`, ""},
		{"way out of typing", `dyn(input).x == 1`, ""},

		{"misspelt field", `input.comand.startsWith("rm")`,
			`error gates.rules[0].when 1:7+6: rule "r": input has no field "comand" [gate-type] | bash takes command, cwd, timeout`},
		{"on its line and in runes", "toolName == \"bash\" &&\n  input.command == \"é\" && input.comand == \"x\"",
			`error gates.rules[0].when 2:33+6: rule "r": input has no field "comand" [gate-type] | bash takes command, cwd, timeout`},
		{"misspelt field in has", `has(input.pth) && input.pth == "x"`,
			`error gates.rules[0].when 1:11+3: rule "r": input has no field "pth" [gate-type] | file_edit takes old_string, path; file_read takes offset, path`},
		{"field of another tool", `input.command.startsWith("rm")`,
			`error gates.rules[0].when 1:7+7: rule "r": input of file_edit, file_read, http_get has no field "command" [gate-type] | only bash has it: write tools: [bash], or has(input.command) && …`},
		{"optional field", `toolName == "bash" && input.timeout > 5`,
			`warning gates.rules[0].when 1:29+7: rule "r": "timeout" may be left out, and reading it then fails [gate-optional] | write has(input.timeout) && …`},
		{"CE-02 number against whole literal", `toolName == "http_get" && has(input.ratio) && input.ratio == 5`,
			`error gates.rules[0].when 1:59+2: rule "r": == does not take (number, integer) [gate-type] | write 5.0`},
		{"CE-02 in a list", `toolName == "http_get" && has(input.ratio) && input.ratio in [1, 2]`,
			`error gates.rules[0].when 1:59+2: rule "r": in does not take (number, list(integer)) [gate-type] | write 1.0`},
		{"word outside an enum", `toolName == "http_get" && has(input.mode) && input.mode in ["fats", "slow"]`,
			`error gates.rules[0].when 1:62+4: rule "r": "fats" is never a value here [gate-enum] | the values are fast, slow`},
		{"word outside an enum, optional read", `toolName == "http_get" && input.?mode.orValue("fast") == "fats"`,
			`error gates.rules[0].when 1:59+4: rule "r": "fats" is never a value here [gate-enum] | the values are fast, slow`},
		{"tool that does not exist", `toolName in ["bash", "file_raed"]`,
			`error gates.rules[0].when 1:23+9: rule "r": there is no tool "file_raed" [unknown-tool] | did you mean file_read?`},
		{"no boolean", `toolName`, `error gates.rules[0].when 1:1+0: rule "r": gives string, want a boolean [gate-type] | write a comparison`},
		{"no boolean, untyped", `dyn(input).x`, `error gates.rules[0].when 1:11+0: rule "r": gives dyn, want a boolean [gate-type] | write a comparison`},
		{"unknown name", `agentNam == "x"`, `error gates.rules[0].when 1:1+8: rule "r": unknown name "agentNam" [gate-type] | did you mean agentName?`},
		{"unknown function", `foo(1)`, `error gates.rules[0].when 1:1+3: rule "r": unknown name "foo" [gate-type] | ` + known},
		{"misspelt method", `input.path.endWith("x")`, `error gates.rules[0].when 1:12+7: rule "r": unknown method "endWith" [gate-type] | did you mean endsWith?`},
		{"misspelt macro", `["a"].exist(toolName, true)`, `error gates.rules[0].when 1:7+5: rule "r": unknown method "exist" [gate-type] | did you mean exists?`},
		{"unknown method", `toolName.frobnicate()`, `error gates.rules[0].when 1:10+10: rule "r": unknown method "frobnicate" [gate-type] | ` +
			`methods are all, contains, endsWith, exists, exists_one, filter, map, matches, orValue, size, startsWith`},
		{"macro as a function", `exists(["a"], toolName, true)`, `error gates.rules[0].when 1:1+6: rule "r": unknown name "exists" [gate-type] | write it after a dot: value.exists(…)`},
		{"one equals sign", `toolName = "bash"`, `error gates.rules[0].when 1:10+0: rule "r": syntax error: unexpected '=' [gate-syntax] | write == to compare`},
		{"one equals sign, close up", `toolName="bash"`, `error gates.rules[0].when 1:9+0: rule "r": syntax error: unexpected '="' [gate-syntax] | write == to compare`},
		{"an arrow", `toolName => "bash"`, `error gates.rules[0].when 1:10+0: rule "r": syntax error: unexpected '=>' [gate-syntax]`},
		{"no boolean beside &&", `toolName == "bash" && toolName`, `error gates.rules[0].when 1:23+0: rule "r": gives string, want a boolean [gate-type] | write a comparison`},
		{"syntax", `1 +`, `error gates.rules[0].when 1:3+0: rule "r": syntax error: unexpected end of the expression [gate-syntax]`},
		{"N14 nothing left of it", ``, `error gates.rules[0].when 1:1+0: rule "r": syntax error: unexpected end of the expression [gate-syntax]`},
		{"N8 pattern too large", `toolName == "http_get" && input.url.matches("(a|b| ){1,999}c$")`,
			`error gates.rules[0].when 1:45+0: rule "r": the pattern compiles to 3999 steps; at most 100 are allowed [gate-type]`},
		{"N8 pattern from the call", `toolName == "http_get" && input.url.matches(input.url)`,
			`error gates.rules[0].when 1:50+0: rule "r": the pattern of matches must be a literal [gate-type] | write the pattern itself, in quotes`},
		{"N8 pattern from the call, as a function", `matches(toolName, agentName)`,
			`error gates.rules[0].when 1:19+0: rule "r": the pattern of matches must be a literal [gate-type] | write the pattern itself, in quotes`},
		{"bad pattern", `agentName.matches("(")`,
			"error gates.rules[0].when 1:19+0: rule \"r\": bad pattern: missing closing ): `(` [gate-type]"},
		{"glob from the call", `globMatch(agentName, role)`,
			`error gates.rules[0].when 1:11+0: rule "r": the pattern of globMatch must be a literal [gate-type] | write the pattern itself, in quotes`},
		{"glob with too many ways", `globMatch("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", role)`,
			`error gates.rules[0].when 1:11+0: rule "r": the glob has more than 64 combinations of its {…} [gate-type]`},
		{"bad glob", `globMatch("[", role)`, `error gates.rules[0].when 1:11+0: rule "r": "[" is no glob [gate-type]`},
		{"building a message", `google.protobuf.Int32Value{value: 1} == 1`,
			`error gates.rules[0].when 1:27+0: rule "r": a rule cannot build google.protobuf.Int32Value [gate-type] | compare the fields instead`},
		{"dead", `toolName == "bash" && false`, `warning gates.rules[0].when: rule "r" can never match a call of bash, file_edit, file_read, http_get [gate-dead]`},
		{"too dear", `toolName == "file_edit" && ["x","y","z"].exists(s, input.old_string.matches("[a-z]{1,40}x") && s == input.path)`,
			`error gates.rules[0].when: rule "r": judging one call may cost 25795037 units; at most 10000000 are allowed [gate-cost] | look at less: bound the field with maxLength or maxItems, or test a shorter one`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, ds := Compile(team(everyTool(), spec.Rule{When: c.when}))
			if diff := cmp.Diff(c.want, strings.TrimSuffix(show(ds), "\n")); diff != "" {
				t.Errorf("diagnostics (-want +got):\n%s", diff)
			}
			if (s == nil) != ds.HasErrors(false) {
				t.Errorf("set is nil: %t, errors: %t", s == nil, ds.HasErrors(false))
			}
		})
	}
}

func TestCompileFindsRulesThatDoNothing(t *testing.T) {
	always := spec.Rule{When: "true"}
	for _, c := range []struct {
		name string
		in   RuleSet
		edit func(*RuleSet)
		want string
	}{
		{"N6 allow under default allow", team(everyTool(), spec.Rule{When: "true", Action: "allow"}), nil,
			`error gates.rules[0].action: rule "r": allow has no effect, since everything is allowed by default [gate-no-effect] | put the exception into the deny rule's when, or write default: deny`},
		{"N6 allow in a policy file", team(everyTool(), spec.Rule{When: "true", Action: "allow"}), func(in *RuleSet) { in.Default, in.Rules[0].Source = "deny", "file p.yaml" },
			`warning gates.rules[0].action: rule "r": allow has no effect in a policy file, which can only forbid [gate-no-effect] | put the rule into the team file`},
		{"unknown action", team(everyTool(), spec.Rule{When: "true", Action: "block"}), nil,
			`error gates.rules[0].action: rule "r": unknown action "block" [gate-action] | actions are deny, suspend, ask, warn, allow`},
		{"unknown default", team(everyTool()), func(in *RuleSet) { in.Default = "no" },
			`error gates.default: default "no" is neither allow nor deny [gate-action]`},
		{"unknown tool", team(everyTool(), spec.Rule{When: "true", Tools: []string{"bash", "bahs"}}), nil,
			`error gates.rules[0].tools[1]: rule "r": there is no tool "bahs" [unknown-tool] | did you mean bash?`},
		{"no tool", team(everyTool(), spec.Rule{When: "true", Tools: []string{}}), nil,
			`error gates.rules[0].tools: rule "r": tools is empty, so the rule can never match [gate-dead] | leave tools out to look at every tool`},
		{"nobody reaches the tool", team([]spec.ToolInfo{fileRead}, spec.Rule{When: `input.command == "x"`, Tools: []string{"bash"}}), nil,
			`warning gates.rules[0].when: rule "r" can never match: nobody it governs has a tool it looks at [gate-dead] | grant the tool or remove the rule`},
		{"nobody reaches the tool, and the rule is wrong", team([]spec.ToolInfo{fileRead}, spec.Rule{When: `input.comand == "x"`, Tools: []string{"bash"}}), nil,
			`error gates.rules[0].when 1:7+6: rule "r": input has no field "comand" [gate-type] | bash takes command, cwd, timeout`},
		{"a policy file's rule may be idle", team([]spec.ToolInfo{fileRead}, spec.Rule{When: "true", Tools: []string{"bash"}}), func(in *RuleSet) { in.Rules[0].Source = "file p.yaml" }, ""},
		{"a policy file's rule is checked against every tool", team([]spec.ToolInfo{fileRead}, spec.Rule{When: `has(input.path) && input.path == "x" || toolName == "bash" && input.comand == "x"`}),
			func(in *RuleSet) { in.Rules[0].Source, in.Rules[0].Doc = "file p.yaml", "p.yaml" },
			`error gates.rules[0].when 1:69+6: rule "r": input has no field "comand" [gate-type] | bash takes command, cwd, timeout`},
		{"another agent's tools do not count", team(everyTool(), spec.Rule{When: "true"}), func(in *RuleSet) {
			in.Agents = append(in.Agents, AgentTools{Name: "idle"})
			in.Rules[0].Agent, in.Rules[0].Source = "idle", "agent idle"
		}, `warning gates.rules[0].when: rule "r" can never match: nobody it governs has a tool it looks at [gate-dead] | grant the tool or remove the rule`},
		{"a schema that is no JSON", team([]spec.ToolInfo{toolInfo("odd", "{")}, always), nil,
			`error : tool "odd": input schema: not valid JSON at byte 1: unexpected EOF [tool-schema]`},
		{"N17 a reference out of the schema", team([]spec.ToolInfo{toolInfo("odd", `{"$ref":"file:///etc/passwd"}`)}, always), nil,
			`error : tool "odd": input schema: reference "file:///etc/passwd" is not local [tool-schema]`},
		{"an untyped tool owns no field", team([]spec.ToolInfo{anything, bash}, spec.Rule{When: `toolName == "bash" && input.x == 1`}), nil,
			`error gates.rules[0].when 1:29+1: rule "r": input has no field "x" [gate-type] | bash takes command, cwd, timeout`},
		{"a tool without a type", team([]spec.ToolInfo{anything}, spec.Rule{When: `input.x == 1`}), nil,
			`warning gates.rules[0].when: rule "r": input has no known type, so nothing checks what the rule reads of it [gate-untyped]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.edit != nil {
				c.edit(&c.in)
			}
			_, ds := Compile(c.in)
			if diff := cmp.Diff(c.want, strings.TrimSuffix(show(ds), "\n")); diff != "" {
				t.Errorf("diagnostics (-want +got):\n%s", diff)
			}
			for _, d := range ds {
				if len(c.in.Rules) > 0 && d.Code != "tool-schema" && d.File != c.in.Rules[0].Doc {
					t.Errorf("file %q, want %q", d.File, c.in.Rules[0].Doc)
				}
			}
		})
	}
}

func TestRulesSayWhatTheyApplyTo(t *testing.T) {
	in := team(everyTool(),
		spec.Rule{Name: "shell", When: `toolName == "bash" && input.command.startsWith("rm")`},
		spec.Rule{Name: "files", When: `input.path.startsWith("/etc")`, Tools: []string{"file_read", "file_edit"}},
		spec.Rule{Name: "matching", When: `input.command.matches("^sudo ")`, Tools: []string{"bash"}})
	got := map[string][]string{}
	s := mustCompile(t, in)
	for _, r := range s.Rules() {
		for _, a := range r.AppliesTo {
			got[r.Name] = append(got[r.Name], a.Tool)
			if a.Cost == 0 || a.Cost > maxRuleCost {
				t.Errorf("%s for %s costs %d", r.Name, a.Tool, a.Cost)
			}
		}
	}
	want := map[string][]string{"shell": {"bash"}, "files": {"file_edit", "file_read"}, "matching": {"bash"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("applies to (-want +got):\n%s", diff)
	}
	// 64 KiB of text and 8 steps at 0.1 a step: the estimate knows maxLength and the pattern.
	if c := s.Rules()[2].AppliesTo[0].Cost; c < 40_000 || c > 80_000 {
		t.Errorf("matching 64 KiB costs %d", c)
	}
	if in.Rules[0].AppliesTo != nil {
		t.Error("compiling changed the caller's rules")
	}
}

func TestSizesFollowTheLargestInput(t *testing.T) {
	in := team([]spec.ToolInfo{fileEdit}, spec.Rule{When: `input.old_string.matches("[a-z]{1,20}x")`})
	if s, ds := Compile(in); s == nil {
		t.Fatalf("1 MiB is affordable:\n%s", show(ds))
	}
	in.Agents[0].MaxInputBytes = 64 << 20
	if s, _ := Compile(in); s != nil {
		t.Error("64 MiB are not")
	}
}

func TestExamples(t *testing.T) {
	rule := func(matches, ignores []spec.CallExample) spec.Rule {
		return spec.Rule{When: `toolName == "bash" ? input.command.startsWith("rm") : has(input.path) && input.path == "x"`,
			Examples: &spec.RuleExamples{Matches: matches, Ignores: ignores}}
	}
	call := func(tool, input string) []spec.CallExample {
		return []spec.CallExample{{ToolName: tool, Input: []byte(input)}}
	}
	at := "error gates.rules[0].examples."
	for _, c := range []struct {
		name string
		rule spec.Rule
		want string
	}{
		{"both hold", rule(call("bash", `{"command":"rm x"}`), call("bash", `{"command":"ls"}`)), ""},
		{"does not match", rule(call("bash", `{"command":"ls"}`), nil), at + `matches[0]: rule "r": this call must match, and does not [gate-example]`},
		{"matches", rule(nil, call("bash", `{"command":"rm x"}`)), at + `ignores[0]: rule "r": this call must not match, and does [gate-example]`},
		{"no tool", rule(call("", `{"command":"rm x"}`), nil), at + `matches[0]: rule "r": the example does not say which tool is called [gate-example] | add toolName`},
		{"unknown tool", rule(call("bahs", `{}`), nil), at + `matches[0].toolName: rule "r": there is no tool "bahs" [unknown-tool] | did you mean bash?`},
		{"not in the schema", rule(call("bash", `{"comand":"rm x"}`), nil),
			at + `matches[0].input: rule "r": no call of bash has this input: missing "command" [gate-example] | bash takes command, cwd, timeout
` + at + `matches[0].input: rule "r": no call of bash has this input: unknown "comand" [gate-example] | bash takes command, cwd, timeout`},
		{"of a wrong type", rule(call("bash", `{"command":7}`), nil),
			at + `matches[0].input.command: rule "r": no call of bash has this input: got a number, want text [gate-example] | bash takes command, cwd, timeout`},
		{"N11 twice the same name", rule(call("bash", `{"command":"rm","command":"ls"}`), nil),
			at + `matches[0].input: rule "r": the example's input is not usable: not valid JSON at byte 16: duplicate object member name [gate-example]`},
		{"one tool, so its name may be left out", spec.Rule{When: `input.command == "x"`, Tools: []string{"bash"}, Examples: &spec.RuleExamples{Matches: call("", `{"command":"x"}`)}}, ""},
		{"a tool the rule does not look at", spec.Rule{When: `input.command == "x"`, Tools: []string{"bash"}, Examples: &spec.RuleExamples{Matches: call("file_read", `{"path":"x"}`)}},
			at + `matches[0]: rule "r": this call must match, and does not [gate-example]`},
		{"CE-01 the rule fails", spec.Rule{When: `input.timeout > 5`, Tools: []string{"bash"}, Examples: &spec.RuleExamples{Ignores: call("", `{"command":"x"}`)}},
			`warning gates.rules[0].when 1:7+7: rule "r": "timeout" may be left out, and reading it then fails [gate-optional] | write has(input.timeout) && …
` + at + `ignores[0]: rule "r": the rule fails on this call, which denies it: the input has no field "timeout" [gate-example]`},
		{"K2 defaults are filled in, CE-02 5 and 5.0 are one number", spec.Rule{When: `input.retries == 3 && has(input.ratio) && input.ratio == 5.0`, Tools: []string{"http_get"},
			Examples: &spec.RuleExamples{Matches: append(call("", `{"url":"u","ratio":5}`), call("", `{"url":"u","ratio":5.0,"retries":3.0}`)...)}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, ds := Compile(team(everyTool(), c.rule))
			if diff := cmp.Diff(c.want, strings.TrimSuffix(show(ds), "\n")); diff != "" {
				t.Errorf("diagnostics (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExampleOfAToolNobodyReaches(t *testing.T) {
	in := team([]spec.ToolInfo{fileRead}, spec.Rule{When: `toolName == "bash" && input.command == "x" || has(input.path)`,
		Examples: &spec.RuleExamples{Matches: []spec.CallExample{{ToolName: "bash", Input: []byte(`{"command":"x"}`)}}}})
	if s, ds := Compile(in); s == nil {
		t.Errorf("unexpected:\n%s", show(ds))
	}
}

// A rule of the team about an agent or a role that the team does not have would never match: the misspelt deny rule.
func TestStrangers(t *testing.T) {
	for _, c := range []struct{ when, want string }{
		{`agentName == "bb"`, `error gates.rules[0].when 1:15+2: rule "r": the team has no agent "bb" [unknown-agent] | did you mean b?`},
		{`agentName in ["a", "zzz"]`, `error gates.rules[0].when 1:21+3: rule "r": the team has no agent "zzz" [unknown-agent] | valid: a, b`},
		{`role == "reviewr"`, `error gates.rules[0].when 1:10+7: rule "r": the team requires no role "reviewr" [unknown-role] | did you mean reviewer?`},
		{`role == ""`, ``},
		{`agentName != "a" && role in ["reviewer"]`, ``},
	} {
		_, ds := Compile(team([]spec.ToolInfo{bash}, spec.Rule{When: c.when}))
		if got := strings.TrimSpace(show(ds)); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.when, got, c.want)
		}
	}
	in := team([]spec.ToolInfo{bash}, spec.Rule{When: `agentName == "bb"`})
	in.Rules[0].Source = "file shared.yaml"
	if _, ds := Compile(in); ds.HasErrors(false) {
		t.Errorf("a file shared by teams may name agents this one does not have: %s", show(ds))
	}
	in = team([]spec.ToolInfo{bash}, spec.Rule{When: `agentName == "a"`, Examples: &spec.RuleExamples{
		Matches: []spec.CallExample{{ToolName: "bash", AgentName: "aa", Input: []byte(`{"command": "x"}`)}}}})
	if _, ds := Compile(in); !strings.Contains(show(ds), "unknown-agent") {
		t.Errorf("an example about nobody: %s", show(ds))
	}
}
