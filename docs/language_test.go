package docs_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/open-multi-agent/oma/loader"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/schemas"
	"github.com/open-multi-agent/oma/spec"
)

func itoa(n int) string { return strconv.Itoa(n) }

// node is a part of a JSON Schema.
type node struct {
	Properties map[string]node `json:"properties"`
	Defs       map[string]node `json:"$defs"`
	Default    any             `json:"default"`
	Enum       []any           `json:"enum"`
	Required   []string        `json:"required"`
	Later      []string        `json:"x-later"`
}

func schemaOf(t *testing.T, kind string) node {
	t.Helper()
	raw, ok := schemas.Get(kind)
	if !ok {
		t.Fatalf("there is no schema of %s", kind)
	}
	var n node
	if err := json.Unmarshal(raw, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// teamSections says which section of team-file.md has the table of which part of the schema. The empty part is the
// document itself.
var teamSections = map[string]string{
	"": "The document", "agent": "agents", "budgets": "budgets", "callExample": "rules.examples.matches and ignores", "defaults": "defaults",
	"gates": "gates", "governance": "governance", "independence": "governance.independence", "input": "inputs.NAME",
	"modelPrice": "providers.NAME.models.MODEL", "provider": "providers.NAME", "release": "release", "requirement": "release.require",
	"rule": "gates.rules", "ruleExamples": "rules.examples", "scheduling": "scheduling", "contextStrategy": "contextStrategy", "loopDetection": "loopDetection", "weights": "scheduling.weights", "task": "tasks", "requires": "tasks.requires", "delegation": "delegation", "sharedMemory": "sharedMemory", "secretRef": "providers.NAME.apiKey",
	"historyCall": "rules.examples: history", "budgetRemaining": "rules.examples: budget",
	"customTool": "customTools.NAME", "mcpServer": "mcpServers.NAME", "httpTool": "customTools.NAME.http", "variable": "customTools.NAME.http.headers",
	"shellGates": "gates.shell", "shellLevel": "gates.shell.levels", "approvals": "approvals", "reviewer": "approvals.reviewers", "backend": "agents.backend", "shellExecutor": "shellExecutor", "egressPolicy": "egressPolicy",
}

// TestTeamTables holds the tables of team-file.md against the schema, both ways: every key has one row, in the section of
// its place, with its default and its words, and no row is of another key.
func TestTeamTables(t *testing.T) {
	p := readPage(t, "team-file.md")
	s := schemaOf(t, spec.KindTeam)
	parts := map[string]node{"": s}
	for name, part := range s.Defs {
		if len(part.Properties) > 0 {
			parts[name] = part
		}
	}
	for name, part := range parts {
		title, ok := teamSections[name]
		if !ok {
			t.Errorf("the schema's part %q has no section in team-file.md", name)
			continue
		}
		var table [][]string
		for _, line := range p.under(t, title) {
			if strings.HasPrefix(line, "#") {
				break // of a section below this one
			}
			table = append(table, rows([]string{line})...)
		}
		got, want := slices.Sorted(slices.Values(firsts(table))), slices.Sorted(maps.Keys(part.Properties))
		if !slices.Equal(got, want) {
			t.Errorf("section %q has rows for\n%v, want\n%v", title, got, want)
			continue
		}
		for _, r := range table {
			describe(t, title, r, part)
		}
	}
}

func describe(t *testing.T, title string, row []string, part node) {
	key := part.Properties[row[0]]
	if len(row) != 3 {
		t.Errorf("section %q, key %s: want three cells", title, row[0])
		return
	}
	if slices.Contains(part.Required, row[0]) && row[1] != "required" {
		t.Errorf("section %q: %s is required, and the table says %q", title, row[0], row[1])
	}
	if key.Default != nil && !strings.Contains(row[1], "`"+text(key.Default)+"`") {
		t.Errorf("section %q: the default of %s is %s, and the table says %q", title, row[0], text(key.Default), row[1])
	}
	for _, w := range key.Enum {
		if !strings.Contains(row[1]+row[2], "`"+text(w)+"`") {
			t.Errorf("section %q: %s does not name the word %v", title, row[0], w)
		}
	}
}

// text writes a value of a schema as a team file has it.
func text(v any) string {
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

// TestCompiledDefaults holds the defaults of agents against what the compiler fills in.
func TestCompiledDefaults(t *testing.T) {
	loaded, ds := loader.TeamBytes("sample", filesOf, []byte(completed("")))
	if loaded.Bundle == nil {
		t.Fatal(rendered(t, ds))
	}
	plan, ds := runtime.Compile(loaded.Bundle, runtime.CompileOptions{Catalog: catalog()})
	if plan == nil {
		t.Fatal(rendered(t, ds))
	}
	a := plan.Agents[0]
	want := map[string]string{"maxTurns": itoa(a.MaxTurns), "callTimeout": strings.TrimSuffix(a.CallTimeout.String(), "0s"),
		"maxToolInputBytes": itoa(a.MaxToolInputBytes), "maxToolConcurrency": itoa(a.MaxToolConcurrency)}
	for _, r := range rows(readPage(t, "team-file.md").under(t, "defaults")) {
		if w := want[r[0]]; w != "" && r[1] != "`"+w+"`" {
			t.Errorf("the compiler takes %s for %s, and team-file.md says %s", w, r[0], r[1])
		}
	}
}

// TestLaterKeys holds the list of what this version leaves out against the schema.
func TestLaterKeys(t *testing.T) {
	said := strings.Join(readPage(t, "team-file.md").under(t, "Not in this version"), "\n")
	s := schemaOf(t, spec.KindTeam)
	all := slices.Clone(s.Later)
	for _, part := range s.Defs {
		all = append(all, part.Later...)
	}
	if len(all) < 5 {
		t.Fatalf("the schema names only %d keys of later versions", len(all))
	}
	for _, key := range all {
		if !strings.Contains(said, "`"+key+"`") {
			t.Errorf("team-file.md does not say that %s is not in this version", key)
		}
	}
}

// TestReceiptFields wants every member of a receipt in the table of receipts.md, and no other.
func TestReceiptFields(t *testing.T) {
	var got []string
	for _, line := range readPage(t, "receipts.md").under(t, "Fields") {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| ") && len(cells) == 2 {
			for _, m := range code.FindAllStringSubmatch(cells[0], -1) {
				got = append(got, m[1])
			}
		}
	}
	slices.Sort(got)
	if want := slices.Sorted(maps.Keys(schemaOf(t, spec.KindReceipt).Properties)); !slices.Equal(got, want) {
		t.Errorf("the table has\n%v, want\n%v", got, want)
	}
}

// TestExitCodes holds the table of cli.md against the codes of the program.
func TestExitCodes(t *testing.T) {
	var want []string
	for _, c := range []int{runtime.ExitOK, runtime.ExitFailed, runtime.ExitUsage, runtime.ExitBroken, runtime.ExitGovernance, runtime.ExitCeiling,
		runtime.ExitSuspended, runtime.ExitStale, runtime.ExitDenied, runtime.ExitRelease, runtime.ExitHeld, runtime.ExitInterrupted, runtime.ExitTerminated} {
		want = append(want, itoa(c))
	}
	if got := firsts(rows(readPage(t, "cli.md").under(t, "Exit codes"))); !slices.Equal(got, want) {
		t.Errorf("the table has %v, want %v", got, want)
	}
}

// TestControls wants every control of --require-enforced in security.md.
func TestControls(t *testing.T) {
	got := firsts(rows(readPage(t, "security.md").under(t, "The enforcement map")))
	if want := runtime.Controls(); !slices.Equal(got, want) {
		t.Errorf("the table has %v, want %v", got, want)
	}
}
