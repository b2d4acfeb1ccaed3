package policies

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

func reviewRoles() []RoleSchema {
	verdict := spec.Schema(`{"type":"object","required":["verdict"],"properties":{"verdict":{"enum":["approve","reject"]},"score":{"type":"number"},
		"notes":{"type":"array","items":{"$ref":"#/$defs/note"}}},"$defs":{"note":{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}}}`)
	return []RoleSchema{{"reviewer", verdict}, {"code-reviewer", verdict}, {"writer", nil}}
}

func require(that string) []spec.Requirement {
	return []spec.Requirement{{Name: "q", That: that, Reason: "not good enough"}}
}

func TestReleaseFindsMistakes(t *testing.T) {
	for _, c := range []struct{ name, that, want string }{
		{"fine", `results.reviewer.structured.verdict == "approve" && results.reviewer.filesRead.size() > 0`, ""},
		{"a role with a hyphen", "results.`code-reviewer`.structured.verdict == \"approve\"", ""},
		{"its hyphen read as minus", `results.code-reviewer.structured.verdict == "approve"`,
			"error release.require[0].that 1:9+4: requirement \"q\": results has no role \"code\" [release-type] | write results.`code-reviewer`"},
		{"unknown role", `results.reviwer.turns > 1`,
			`error release.require[0].that 1:9+7: requirement "q": results has no role "reviwer" [release-type] | roles are code-reviewer, reviewer, writer`},
		{"unknown fact", `results.reviewer.filesred.size() > 0`,
			`error release.require[0].that 1:18+8: requirement "q": results.reviewer has no field "filesred" [release-type] | results.reviewer has calls, denied, filesRead, stopReason, structured, text, turns`},
		{"no answer to look into", `results.writer.structured.verdict == "approve"`,
			`error release.require[0].that 1:16+10: requirement "q": results.writer has no field "structured" [release-type] | give the agent an outputSchema`},
		{"unknown field of an answer", `results.reviewer.structured.verdit == "approve"`,
			`error release.require[0].that 1:29+6: requirement "q": results.reviewer.structured has no field "verdit" [release-type] | results.reviewer.structured has notes, score, verdict`},
		{"in an element", `results.reviewer.structured.verdict == "approve" && has(results.reviewer.structured.notes) && results.reviewer.structured.notes.all(n, n.txt != "")`,
			`error release.require[0].that 1:138+3: requirement "q": n has no field "txt" [release-type] | n has text`},
		{"word outside an enum", `results.reviewer.structured.verdict == "aprove"`,
			`error release.require[0].that 1:41+6: requirement "q": "aprove" is never a value here [release-enum] | the values are approve, reject`},
		{"stop reason", `results.writer.stopReason == "done"`,
			`error release.require[0].that 1:31+4: requirement "q": "done" is never a value here [release-enum] | the values are completed, max_turns, refused, length, budget, cancelled, timeout, empty, error, suspended, rejected`},
		{"optional", `results.reviewer.structured.score > 0.5`,
			`warning release.require[0].that 1:29+5: requirement "q": "score" may be left out, and reading it then fails [release-optional] | write has(results.reviewer.structured.score) && …`},
		{"no boolean", `results.writer.text`, `error release.require[0].that 1:15+0: requirement "q": gives string, want a boolean [release-type] | write a comparison`},
		{"gate variables are not there", `toolName == "x"`,
			`error release.require[0].that 1:1+8: requirement "q": unknown name "toolName" [release-type] | known names are results, has, size, within, globMatch, matches`},
		{"pattern from a result", `results.writer.text.matches(results.reviewer.text)`,
			`error release.require[0].that 1:45+0: requirement "q": the pattern of matches must be a literal [release-type] | write the pattern itself, in quotes`},
	} {
		t.Run(c.name, func(t *testing.T) {
			rel, ds := CompileRelease(require(c.that), reviewRoles(), "release.require")
			if diff := cmp.Diff(c.want, strings.TrimSuffix(show(ds), "\n")); diff != "" {
				t.Errorf("diagnostics (-want +got):\n%s", diff)
			}
			if (rel == nil) != ds.HasErrors(false) {
				t.Errorf("release is nil: %t", rel == nil)
			}
		})
	}
}

func TestReleaseStopReasonsAreTheDocuments(t *testing.T) {
	for _, s := range []spec.StopReason{spec.StopCompleted, spec.StopMaxTurns, spec.StopRefused, spec.StopLength, spec.StopBudget,
		spec.StopCancelled, spec.StopTimeout, spec.StopEmpty, spec.StopError} {
		if _, ds := CompileRelease(require(`results.writer.stopReason == "`+string(s)+`"`), reviewRoles(), ""); len(ds) > 0 {
			t.Error(show(ds))
		}
	}
}

func TestReleaseJudge(t *testing.T) {
	verdict := func(v string) any { return map[string]any{"verdict": v} }
	good := map[string]RoleResult{
		"reviewer": {Structured: map[string]any{"verdict": "approve", "score": int64(1)}, StopReason: "completed", Turns: 3, FilesRead: []string{"a.go"},
			Calls: []CallFact{{ToolName: "bash", Input: map[string]any{"command": "ls"}, Action: "allow"}, {ToolName: "bash", Action: "refused", IsError: true}}},
		"code-reviewer": {Structured: verdict("reject"), Denied: 2},
		"writer":        {Text: "done"},
	}
	noAnswer := map[string]RoleResult{"reviewer": {StopReason: "empty"}, "writer": {}, "code-reviewer": {}}
	for _, c := range []struct {
		name, that string
		results    map[string]RoleResult
		want       spec.Released
	}{
		{"held", `results.reviewer.structured.verdict == "approve"`, good, spec.Released{Outcome: "held"}},
		{"failed", "results.`code-reviewer`.structured.verdict == \"approve\"", good, spec.Released{Outcome: "failed", Reason: "not good enough"}},
		{"N19 it read something", `results.reviewer.filesRead.exists(f, f.startsWith("a"))`, good, spec.Released{Outcome: "held"}},
		{"N19 it read nothing", `results.writer.filesRead.size() > 0`, good, spec.Released{Outcome: "failed", Reason: "not good enough"}},
		{"calls", `results.reviewer.calls.exists(c, c.toolName == "bash" && c.action == "allow" && c.input.command == "ls")`, good, spec.Released{Outcome: "held"}},
		{"figures", "results.reviewer.turns == 3 && results.`code-reviewer`.denied == 2 && results.writer.text == \"done\"", good, spec.Released{Outcome: "held"}},
		{"CE-02 a number is a number", `has(results.reviewer.structured.score) && results.reviewer.structured.score > 0.5`, good, spec.Released{Outcome: "held"}},
		{"no answer", `results.reviewer.structured.verdict == "approve"`, noAnswer,
			spec.Released{Outcome: "error", Reason: `it could not be evaluated: the result has no field "structured"`}},
		{"no answer, asked for with has", `!has(results.reviewer.structured)`, noAnswer, spec.Released{Outcome: "held"}},
		{"no result", `results.reviewer.turns >= 0`, nil, spec.Released{Outcome: "error", Reason: `"reviewer" has no result`}},
		{"no result never holds", `!has(results.reviewer) || true`, map[string]RoleResult{"writer": {}}, spec.Released{Outcome: "error", Reason: `"reviewer" has no result`}},
		{"no result behind a whole use", `[results].exists(r, !has(r.reviewer))`, map[string]RoleResult{"writer": {}}, spec.Released{Outcome: "error", Reason: `"code-reviewer" has no result`}},
		{"other roles do not matter", `results.writer.denied == 0`, map[string]RoleResult{"writer": {}}, spec.Released{Outcome: "held"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rel, ds := CompileRelease(require(c.that), reviewRoles(), "release.require")
			if rel == nil {
				t.Fatal(show(ds))
			}
			c.want.Name = "q"
			if diff := cmp.Diff([]spec.Released{c.want}, rel.Judge(c.results)); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReleaseFailsClosed(t *testing.T) {
	if got := (*Release)(nil).Judge(nil); len(got) != 1 || got[0].Outcome != "error" {
		t.Errorf("requirements that do not compile: %+v", got)
	}
	rel, _ := CompileRelease(require(`results.writer.denied == 0`), reviewRoles(), "")
	got := rel.Judge(map[string]RoleResult{"writer": {}, "reviewer": {Structured: func() {}}})
	if got[0].Outcome != "error" {
		t.Errorf("an answer that is no JSON: %+v", got)
	}
	if rel, ds := CompileRelease(nil, nil, ""); rel.Judge(nil) != nil || ds != nil {
		t.Error("no requirement gives no outcome")
	}
	if rel, ds := CompileRelease(append(require("true"), require("false")...), reviewRoles(), "release.require"); rel != nil || len(ds) != 1 || ds[0].Path != "release.require[1].name" {
		t.Errorf("two requirements of one name: %s", show(ds))
	}
	if rel, ds := CompileRelease(require("true"), []RoleSchema{{"r", spec.Schema("{")}}, "release.require"); rel != nil || len(ds) != 1 {
		t.Errorf("a schema that is no JSON: %s", show(ds))
	}
}

func TestJudgeLeavesTheAnswerAlone(t *testing.T) {
	answer := map[string]any{"verdict": "approve", "score": int64(1)}
	rel, _ := CompileRelease(require(`results.reviewer.turns == 0`), reviewRoles(), "")
	rel.Judge(map[string]RoleResult{"reviewer": {Structured: answer}})
	if diff := cmp.Diff(map[string]any{"verdict": "approve", "score": int64(1)}, answer); diff != "" {
		t.Error(diff)
	}
}
