package policies

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/open-multi-agent/oma/spec"
)

// exprs writes random rules that every tool of the tests accepts: fields are behind the tool's name or has().
type exprs struct{ *rand.Rand }

func (g exprs) pick(all ...string) string { return all[g.IntN(len(all))] }

func (g exprs) tool() string { return `"` + g.pick("bash", "file_edit", "file_read", "http_get") + `"` }

// more are constructs beyond the plain ones; T is a tool.
var more = []string{
	// of the tool and its input
	`(toolName == T ? "bash" : "file_read") == toolName`, `(toolName == T ? has(input.path) : has(input.url))`, `(consequential ? toolName : T) == "bash"`,
	`toolName + "x" == "bashx"`, `size(toolName) > 4`, `toolName < "c"`, `matches(toolName, "^file_")`, `{"bash": true, "file_read": false}[toolName]`,
	`toolName in {"bash": 1}`, `[T, toolName].exists_one(t, t == "bash")`, `[toolName].map(t, t + "!") == ["bash!"]`, `T in [toolName, "bash"]`, `dyn(toolName) == T`,
	`(has(input.path) && input.path in ["a", "q"])`, `(toolName.startsWith("file_") && input.?path.orValue("z") == "a")`, `(toolName == "bash" && input.?timeout.orValue(9) > 3)`,
	`(toolName == "bash" ? [input.command] : ["a"]).exists(x, x == "a")`, `(toolName == "http_get" && [?input.?mode].all(m, m == "fast"))`,
	`[1, 2].all(i, toolName == "bash" && input.timeout > i)`, `(toolName == "bash" && optional.of(input.timeout).optMap(t, t > 3).orValue(false))`,
	`(toolName == "bash" ? input.timeout : 4) > 3`, `(toolName == "http_get" ? input.?mode : optional.none()).hasValue()`, `(has(input.timeout) ? input.timeout > 3 : toolName == T)`,
	// of the command line
	`(has(input.command) && classifyBash(input.command).level == "safe")`, `(toolName == "bash" && shell.commands.exists(c, c.name == "a" || c.dynamic))`,
	`(toolName == "bash" && (shell.network || shell.parseError || "x" in shell.writes))`, `(toolName == "bash" ? shell.findings.filter(f, f.level == "review").size() : 0) > 0`,
	`(toolName == "bash" && shell.commands[1].args.exists(a, a == "-x"))`,
	// of marks and of the budget
	`marks.exists(m, m == "x")`, `marks.all(m, m in ["x", "y"] || m == "x")`, `(size(marks) > 0 && marks[0] == "x")`, `marks[0] == "x"`, `marks.filter(m, m == "x").size() == 1`,
	`(has(budget.cost) && budget.cost < 0.5)`, `budget.?tokens.orValue(5) < 10`, `budget.cost > 0.5`, `has(budget.tokens)`,
	// of earlier calls
	`history.exists(c, has(c.input.timeout) && c.input.timeout > 3)`, `history.exists_one(c, c.toolName == "bash" && c.input.command == "a")`,
	`history.all(c, has(c.input.path) || c.toolName == T)`, `history.map(c, c.toolName) == ["bash", "file_read"]`, `history.filter(c, has(c.input.path)).size() > 1`,
	`history.filter(c, c.toolName == "file_read").map(c, c.input.path).exists(p, p == "q")`, `history.map(c, c.toolName == T, c.action).exists(a, a == "deny")`,
	`history.exists(c, c.toolName == toolName && c.action == "deny")`, `history.exists(c, c.toolName == "bash" ? c.input.timeout > 3 : has(c.input.url))`,
	`history[0].toolName == T`, `(history[0].toolName == "bash" ? history[0].input.timeout > 3 : has(history[0].input.url))`, `history.exists(c, c.toolName in ["bash", T] && c.action == "allow")`,
	`history.exists(c, history.exists(d, c.toolName != d.toolName))`, `history.exists(c, c.input == input)`, `history == []`, `has(history[1].input.path)`, `history[?0].hasValue()`,
	// under names that are taken
	`history.exists(input, input.toolName == T)`, `history.exists(toolName, toolName.toolName == T)`, `history.exists(marks, marks.action == "deny")`, `history.exists(shell, has(shell.input.path))`,
	`["x", "y"].all(shell, !(shell == "x" && "x" in marks))`, `["path"].exists(history, history == "path")`, `history.exists(c, history.exists(c, c.toolName == T) && has(c.input.path))`,
	`[T].exists(input, input == toolName)`, `history.exists(history, history.toolName == T)`, `["a"].exists(c, c == "a") && history.exists(c, c.toolName == T)`,
	`optional.of(T).optMap(toolName, toolName == "bash").orValue(false)`,
}

func (g exprs) atom() string {
	if g.IntN(3) > 0 {
		return "(" + strings.ReplaceAll(more[g.IntN(len(more))], "T", g.tool()) + ")"
	}
	switch g.IntN(22) {
	case 0:
		return "toolName == " + g.tool()
	case 1:
		return g.tool() + " != toolName"
	case 2:
		return "toolName in [" + g.tool() + ", " + g.tool() + "]"
	case 3:
		return `toolName.startsWith("file_")`
	case 4:
		return `toolName.matches("^(bash|http_.*)$")`
	case 5:
		return "has(input." + g.pick("path", "command", "timeout", "mode") + ")"
	case 6:
		return `(has(input.command) && input.command.contains("a"))`
	case 7: // fails where the call leaves timeout out
		return `(toolName == "bash" && input.timeout > 3)`
	case 8:
		return `(toolName.startsWith("file_") && input.path.contains("a"))`
	case 9:
		return `(toolName == "http_get" ? input.url.endsWith("u") : ` + g.pick("true", "false") + `)`
	case 10:
		return `["bash", "x"].exists(toolName, toolName == "x")`
	case 11: // fails where the call leaves mode out
		return `(toolName == "http_get" && input.mode == "fast")`
	case 12:
		return g.pick("true", "false", `toolName.contains("_")`, `toolName.endsWith("read")`)
	case 13:
		return `"x" in marks`
	case 14:
		return `history.exists(c, c.toolName == ` + g.tool() + ` && c.action == "deny")`
	case 15:
		return `history.exists(c, c.toolName == "bash" && c.input.command.contains("a"))`
	case 16: // fails where that call left timeout out
		return `history.filter(c, c.toolName == "bash").all(d, d.input.timeout > 3)`
	case 17:
		return `(size(history) > 0 && history[size(history) - 1].toolName.startsWith("file_"))`
	case 18:
		return `history.exists(c, has(c.input.path) && c.input.path == "q")`
	case 19: // fails without a ceiling
		return `budget.tokens < 10`
	case 20:
		return `(toolName == "bash" && shell.risk != "safe")`
	}
	return `agentName == "a"`
}

// situation is what came before a call.
func (g exprs) situation() (s spec.Situation) {
	if g.IntN(2) == 0 {
		s.Marks = []string{"x"}
	}
	if g.IntN(2) == 0 {
		left := int64(g.IntN(20))
		s.Budget = &spec.BudgetRemaining{Tokens: &left}
		if cost := spec.Dollar * spec.USD(left) / 10; g.IntN(2) == 0 {
			s.Budget.Cost = &cost
		}
	}
	for range g.IntN(4) {
		s.History = append(s.History, []spec.HistoryCall{
			{ToolName: "bash", Input: []byte(`{"command":"a"}`)}, {ToolName: "bash", Input: []byte(`{"command":"z","timeout":9}`), Action: "deny"},
			{ToolName: "file_read", Input: []byte(`{"path":"q"}`)}, {ToolName: "http_get", Input: []byte(`{"url":"u"}`)},
			{ToolName: "file_read", Input: []byte(`{"path":"a"}`), Action: "deny"}}[g.IntN(5)])
	}
	return s
}

func (g exprs) expr(depth int) string {
	if depth == 0 {
		return g.atom()
	}
	switch g.IntN(5) {
	case 0:
		return "(" + g.expr(depth-1) + " && " + g.expr(depth-1) + ")"
	case 1:
		return "(" + g.expr(depth-1) + " || " + g.expr(depth-1) + ")"
	case 2:
		return "!(" + g.expr(depth-1) + ")"
	case 3:
		return "(" + g.expr(depth-1) + " ? " + g.expr(depth-1) + " : " + g.expr(depth-1) + ")"
	}
	return g.atom()
}

// The pruned, typed rule and the whole one over any input give the same answer to every call, errors included.
func TestPruningKeepsTheMeaning(t *testing.T) {
	g := exprs{rand.New(rand.NewPCG(1, 2))}
	calls := map[string][]map[string]any{
		"bash": {{"command": "a"}, {"command": "z", "timeout": int64(1)}, {"command": "b", "timeout": int64(9), "cwd": "x"},
			{"command": "a; rm -x > x"}, {"command": "$a | curl 'u"}},
		"file_read": {{"path": "a"}, {"path": "z", "offset": int64(2)}},
		"file_edit": {{"path": "a", "old_string": "x"}, {"path": "q", "old_string": ""}},
		"http_get":  {{"url": "u", "retries": int64(3)}, {"url": "v", "mode": "fast", "retries": int64(1)}, {"url": "v", "mode": "slow", "retries": int64(1)}},
	}
	c := openCompiler(t)
	compared, never, failed := 0, 0, 0
	for range 1000 {
		r := &spec.PlanRule{Rule: spec.Rule{Name: "r", When: g.expr(3)}}
		k := readRule(t, c, r)
		whole, err := c.own.loose.Program(k.when.loose)
		if err != nil {
			t.Fatal(err)
		}
		k.past(&k.when)
		if c.diags.HasErrors(false) {
			t.Fatalf("%s: %s", r.When, show(c.diags))
		}
		for _, tool := range c.known {
			ch := k.check(&k.when, tool)
			if ch.never {
				never++
			} else if ch.ast == nil {
				t.Fatalf("%s for %s: %+v", r.When, tool.info.Name, ch.findings)
			}
			for _, input := range calls[tool.info.Name] {
				vars := &variables{set: c.set, request: &Request{ToolName: tool.info.Name, AgentName: g.pick("a", "b"), Input: input, Situation: g.situation()}}
				want := answer(boolean(whole, vars, &vars.meter))
				got := "false"
				if !ch.never {
					j, err := k.judge(tool, ch)
					if err != nil {
						t.Fatal(err)
					}
					got = answer(j.matches(t.Context(), vars))
				}
				if got != want {
					t.Fatalf("%s\nfor %s %v: whole %s, pruned %s", r.When, tool.info.Name, input, want, got)
				}
				compared++
				if want == "error" {
					failed++
				}
			}
		}
	}
	if compared < 10_000 || never < 300 || failed < 800 {
		t.Errorf("too few cases to mean something: %d compared, %d never match, %d fail", compared, never, failed)
	}
}

func answer(b bool, err error) string {
	if err != nil {
		return "error"
	}
	return fmt.Sprint(b)
}

// openCompiler is a compiler that knows the tools of the tests.
func openCompiler(t testing.TB) *compiler {
	t.Helper()
	c := &compiler{in: team(everyTool()), set: &Set{calls: map[callKey]*gate{}, traces: map[*spec.PlanRule]trace{}}, limit: defaultInputBytes,
		tools: map[string]*tool{}, marks: []string{"x"}}
	if err := c.open(); err != nil {
		t.Fatal(err)
	}
	c.agents()
	return c
}

// readRule reads a rule that is right as far as that goes.
func readRule(t testing.TB, c *compiler, r *spec.PlanRule) *ruleCheck {
	t.Helper()
	k := &ruleCheck{compiler: c, rule: r, words: c.own, scope: c.scope(r), found: map[*tool]*checked{},
		price: &pricing{limit: c.limit, steps: map[string]uint64{}}, when: expression{text: r.When, path: "when", want: cel.BoolType}}
	if !k.read(&k.when) || c.diags.HasErrors(false) {
		t.Fatalf("%s: %s", r.When, show(c.diags))
	}
	return k
}

func TestShapes(t *testing.T) {
	schema := `{"type":"object","additionalProperties":false,"required":["path","edits","headers","tree","mixed","free","union","opts","pair","loop"],
	 "$defs":{"Node":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#/$defs/Node"}}}},
	          "Loop":{"type":"array","items":{"$ref":"#/$defs/Loop"}}},
	 "properties":{
	  "path":{"type":"string"},"note":{"type":["string","null"]},
	  "edits":{"type":"array","items":{"type":"object","required":["old"],"properties":{"old":{"type":"string"},"n":{"type":"integer"}}}},
	  "opts":{"type":"object","required":["deep"],"properties":{"deep":{"type":"object","required":["flag"],"properties":{"flag":{"type":"boolean"}}}}},
	  "headers":{"type":"object","additionalProperties":{"type":"string"}},
	  "mixed":{"type":"object","required":["known"],"properties":{"known":{"type":"string"}},"additionalProperties":{"type":"integer"}},
	  "open":{"type":"object","properties":{"known":{"type":"string"}},"allOf":[{"properties":{"more":{"type":"string"}}}]},
	  "free":{"type":"object"},"union":{"oneOf":[{"type":"string"},{"type":"integer"}]},
	  "pair":{"type":"array","prefixItems":[{"type":"string"}]},"loop":{"$ref":"#/$defs/Loop"},
	  "tree":{"$ref":"#/$defs/Node"},"content-type":{"type":"string"},"in":{"type":"string"}}}`
	input := map[string]any{"path": "/w/a", "note": nil, "edits": []any{map[string]any{"old": "x", "n": int64(1)}, map[string]any{"old": "y"}},
		"opts": map[string]any{"deep": map[string]any{"flag": true}}, "headers": map[string]any{"a": "b"}, "mixed": map[string]any{"known": "k", "z": int64(4)},
		"open": map[string]any{"known": "k", "more": "m"}, "free": map[string]any{"q": int64(1)}, "union": "s", "pair": []any{"x", int64(2)}, "loop": []any{[]any{}},
		"tree": map[string]any{"name": "r", "kids": []any{map[string]any{"name": "c"}}}, "content-type": "json", "in": "i"}
	for expr, want := range map[string]string{
		`input.path.startsWith("/w")`: "true", `has(input.note) && input.note == null`: "true", `has(input.note) && input.note.startsWith("x")`: "error",
		`input.edits.exists(e, e.old == "y")`: "true", `input.edits.exists(e, has(e.n) && e.n > 0)`: "true", `input.edits.all(e, e.n > 0)`: "error",
		`input.edits.map(e, e.old) == ["x", "y"]`: "true", `input.edits[0].old == "x"`: "true",
		`input.opts.deep.flag`: "true", `input.headers["a"] == "b" && input.headers.a == "b"`: "true", `"zz" in input.headers`: "false", `input.headers.zz == "b"`: "error",
		`input.mixed.known == "k" && input.mixed.z == 4`: "true", `has(input.mixed.nope)`: "false", `has(input.open) && has(input.open.more)`: "true",
		`input.free.q == 1`: "true", `input.union == "s" && input.union.startsWith("s")`: "true", `input.pair[1] == 2`: "true", `input.loop[0] == []`: "true",
		`input.tree.kids[0].name == "c"`: "true", "input.`content-type` == \"json\"": "error", "has(input.`in`) && input.`in` == \"i\"": "true",
		`dyn(input)["path"] == "/w/a"`: "true", `input == input`: "true", `input.?note.hasValue()`: "true",

		`input.pth == "x"`: `input has no field "pth"`, `input.edits.exists(e, e.odl == "y")`: `e has no field "odl"`, `input.opts.shallow`: `input.opts has no field "shallow"`,
		`input.opts.deep.flg`: `input.opts.deep has no field "flg"`, `input.tree.kids[0].nme == "c"`: `the value has no field "nme"`, `has(input.opts.nope)`: `input.opts has no field "nope"`,
		`input.?timeot.orValue(7) == 7`: `input has no field "timeot"`, `input["path"] == "x"`: `_[_] does not take (edit input, string)`, `input.note == 3`: `== does not take (string or null, integer)`,
	} {
		in := team([]spec.ToolInfo{toolInfo("edit", schema)}, spec.Rule{When: expr})
		s, ds := Compile(in)
		if s == nil {
			if len(ds) != 1 || ds[0].Message != `rule "r": `+want {
				t.Errorf("%s: want %s, got\n%s", expr, want, show(ds))
			}
			continue
		}
		call := Request{ToolName: "edit", AgentName: "a", Input: input}
		if strings.Contains(expr, "content-type") { // the one rule here that nothing guards
			call.Input = map[string]any{}
		}
		d := s.Decide(t.Context(), call)
		got := fmt.Sprint(!d.Allowed())
		if d.GateOutcome == "error" {
			got = "error"
		}
		if got != want {
			t.Errorf("%s: %s, want %s (%s)", expr, got, want, d.Reason)
		}
	}
}

func TestOptionalReads(t *testing.T) {
	for expr, guarded := range map[string]bool{
		`input.timeout > 5`: false, `has(input.timeout) && input.timeout > 5`: true, `input.timeout > 5 && has(input.timeout)`: true,
		`!has(input.timeout) || input.timeout > 5`: true, `has(input.timeout) || input.timeout > 5`: false,
		`has(input.timeout) ? input.timeout > 5 : false`: true, `has(input.timeout) ? false : input.timeout > 5`: false,
		`!(has(input.timeout) && consequential) || input.timeout > 5`: true, `has(input.cwd) && input.timeout > 5`: false,
		`has(input.cwd) && (has(input.timeout) && input.command == "x") && input.cwd == "y" && input.timeout > 1`: true,
		`input.?timeout.orValue(1) > 5`: true, `{"a": input.timeout}["a"] > 1`: false,
	} {
		_, ds := Compile(team([]spec.ToolInfo{bash}, spec.Rule{When: expr}))
		if ds.HasErrors(true) == guarded {
			t.Errorf("%s: guarded %t, got %s", expr, guarded, show(ds))
		}
	}
}

// TestEstimateIsABound compares the static estimate with what a judgement really costs, at the largest input.
func TestEstimateIsABound(t *testing.T) {
	lists := toolInfo("lists", `{"type":"object","required":["xs","any","rows"],"properties":{
		"xs":{"type":"array","maxItems":20,"items":{"type":"string","maxLength":100}},"any":{"type":"array","maxItems":20},
		"rows":{"type":"array","maxItems":20,"items":{"type":"object","required":["s"],"properties":{"s":{"type":"string","maxLength":100}}}}}}`)
	text := strings.Repeat("x", 100)
	largest := map[string]map[string]any{
		"bash": {"command": strings.Repeat("x", 65536), "cwd": strings.Repeat("y", 4096), "timeout": int64(1)},
		"lists": {"xs": slices.Repeat([]any{text}, 20), "any": slices.Repeat([]any{text}, 20),
			"rows": slices.Repeat([]any{map[string]any{"s": text}}, 20)},
	}
	c := openCompiler(t)
	c.known = append(c.known, c.tool(lists))
	exprs := map[string][]string{
		"bash": append([]string{`input.command + input.command == "x"`, `input.command.contains("xy") || input.command.endsWith(input.?cwd.orValue(""))`}, tenRules...),
		"lists": {`input.xs.all(x, x.contains("xx"))`, `input.xs.all(x, input.xs.all(y, x == y))`, `input.xs.filter(x, x != "").all(x, x.matches("^x+$"))`,
			`input.xs.map(x, x + x).all(x, x.contains("xx"))`, `input.rows.all(r, r.s.startsWith("x"))`, `input.rows.filter(r, r.s != "").map(r, r.s).all(s, s == s)`,
			`input.xs.map(x, [x, x]).all(p, p.all(x, x != ""))`, `input.xs.all(x, x in input.xs)`, `input.any == input.any`,
			`input.any.all(x, x == "y" || x != "z")`, `dyn(input).any.size() == 20`, `input.xs == input.xs && input.rows == input.rows`},
	}
	for name, all := range exprs {
		for _, expr := range all {
			r := &spec.PlanRule{Rule: spec.Rule{Name: "r", When: expr}}
			k := readRule(t, c, r)
			ch := k.check(&k.when, c.namedTool(r, name))
			if ch.ast == nil {
				t.Fatalf("%s: %+v", expr, ch)
			}
			p, err := c.own.typed[ch.tool].Program(ch.ast, cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost), cel.CostTracking(actual{k.price.steps}))
			if err != nil {
				t.Fatal(err)
			}
			_, det, err := p.Eval(&variables{set: c.set, request: &Request{ToolName: name, Input: largest[name]}})
			if err != nil {
				t.Fatalf("%s: %v", expr, err)
			}
			bound := ch.cost
			if strings.Contains(expr, "dyn(") { // a read of an untyped value is estimated at nothing and costs 1
				bound *= 2
			}
			if real := *det.ActualCost(); real > bound {
				t.Errorf("%s: estimated %d, cost %d", expr, ch.cost, real)
			}
		}
	}
}

// actual prices calls as pricing does, from their values.
type actual struct{ steps map[string]uint64 }

func (a actual) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	text := func(i int) string { return string(args[i].(types.String)) }
	var cost uint64
	switch function {
	case "matches":
		cost = scan(uint64(len(text(0))), a.steps[text(1)])
	case "globMatch":
		cost = scan(uint64(len(text(1))), a.steps[text(0)])
	case "within":
		cost = scan(uint64(len(text(0))), 1) + scan(uint64(len(text(1))), 1)
	default:
		return nil
	}
	return &cost
}

func FuzzCompile(f *testing.F) {
	for _, x := range append(tenRules, `input.comand == "é"`, "a\n b", `history.exists(c, c.x)`, `[1, 2].map(x, x * 2) == [input.timeout]`,
		`"\u00e9".matches("(a|b)*")`, "results.`a-b`", `{"a": 1}.a == 1`, `optional.of(1).hasValue()`, `toolName == "bash" && input.?cwd.orValue("x") == 1`) {
		f.Add(x)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		s, ds := Compile(team(everyTool(), spec.Rule{When: expr}))
		if (s == nil) != ds.HasErrors(false) {
			t.Fatalf("set nil: %t\n%s", s == nil, show(ds))
		}
		lines := strings.Split(expr, "\n")
		for _, d := range ds {
			if d.At.Line == 0 {
				continue
			}
			if d.At.Line > len(lines) || d.At.Col < 1 {
				t.Fatalf("%d:%d is outside %q", d.At.Line, d.At.Col, expr)
			}
			if n := utf8.RuneCountInString(lines[d.At.Line-1]); d.At.Col-1+max(d.Width, 1) > max(n, 1) {
				t.Fatalf("%d:%d+%d is outside %q", d.At.Line, d.At.Col, d.Width, lines[d.At.Line-1])
			}
		}
		if s != nil {
			s.Decide(t.Context(), command("ls"))
		}
	})
}
