package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/schemas"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

const review = "../../examples/teams/04-required-review.yaml"

// call runs one command in this process, with time and ids that do not change.
// cols is 0 away from a terminal, which otherwise has 24 rows and no ticks.
func call(t *testing.T, cols int, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, tick: func() (<-chan time.Time, func()) { return nil, func() {} },
		lookup: func(name string) (string, bool) {
			if name == "HOME" || name == "PATH" {
				return os.LookupEnv(name)
			}
			return "", false
		},
		now:   func() time.Time { now = now.Add(time.Millisecond); return now },
		newID: func() string { return "run_test" }, login: func() string { return "tester" }}
	if cols > 0 {
		a.size = func() (int, int) { return cols, 24 }
	}
	code = a.main(context.Background(), args)
	return out.String(), errs.String(), code
}

func fits(t *testing.T, kind string, doc []byte) {
	t.Helper()
	v, err := canon.Decode(doc)
	if err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	for _, v := range schemas.Check(kind, v) {
		t.Errorf("%s: %s: %s", kind, v.Path, v.Message)
	}
}

// What the program writes fits the schemas it publishes.
func TestDocumentsFitTheirSchemas(t *testing.T) {
	state := t.TempDir()
	receipt := filepath.Join(t.TempDir(), "receipt.json")
	_, errs, code := call(t, 0, "run", "--state", state, "--receipt", receipt, review)
	if code != 0 {
		t.Fatalf("ended %d\n%s", code, errs)
	}
	b, err := os.ReadFile(receipt)
	if err != nil {
		t.Fatal(err)
	}
	fits(t, spec.KindReceipt, b)
	plan, _, _ := call(t, 0, "plan", "-o", "json", review)
	fits(t, spec.KindPlan, []byte(plan))
	log, err := os.ReadFile(filepath.Join(state, "runs", "run_test", "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(log), []byte("\n"))
	if len(lines) < 20 {
		t.Fatalf("%d events", len(lines))
	}
	for _, line := range lines {
		fits(t, spec.KindEvent, line)
	}
	info, err := os.Stat(receipt)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the receipt has mode %v, %v", info.Mode(), err)
	}
}

// The same inputs give the same plan bytes wherever they lie, and the same run the same receipt but for its times.
func TestPlanBytesDoNotDependOnThePlace(t *testing.T) {
	here, _, _ := call(t, 0, "plan", "-o", "json", review)
	dir := filepath.Join(t.TempDir(), "elsewhere", "teams")
	if err := os.CopyFS(dir, os.DirFS("../../examples/teams")); err != nil {
		t.Fatal(err)
	}
	there, errs, code := call(t, 0, "plan", "-o", "json", filepath.Join(dir, "04-required-review.yaml"))
	if code != 0 || here != there {
		t.Errorf("ended %d\n%s%s", code, errs, cmp.Diff(here, there))
	}
	if strings.Contains(here, "/") && strings.Contains(here, os.TempDir()) {
		t.Error("the plan holds a machine path")
	}
}

func TestCI03OneDocumentOnStandardOutput(t *testing.T) {
	out, _, _ := call(t, 0, "run", "--state", t.TempDir(), "-o", "json", review)
	fits(t, spec.KindReceipt, []byte(out))
	out, _, _ = call(t, 0, "run", "--state", t.TempDir(), "-o", "ndjson", review)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for i, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Errorf("line %d is no JSON: %s", i+1, line)
		}
	}
	if !strings.Contains(lines[0], spec.APIVersion) || !strings.Contains(lines[len(lines)-1], `"kind":"Receipt"`) {
		t.Errorf("first line %s", lines[0])
	}
}

// Away from a terminal there is one plain line for each change of state and nothing that moves a cursor.
func TestProgress(t *testing.T) {
	_, errs, _ := call(t, 0, "run", "--state", t.TempDir(), review)
	lines := strings.Split(errs, "\n")
	want := []string{"reviewer: started",
		`reviewer: denied file_read: Tool "file_read" denied by gate: rule "no-secret-files": reviewers do not read files that hold secrets`,
		"reviewer: completed in 3 turns, 3991 tokens", "security: started", "security: completed in 3 turns, 2832 tokens"}
	if diff := cmp.Diff(want, lines[:len(want)]); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(errs, "\x1b") {
		t.Error("an escape sequence away from a terminal")
	}
	_, errs, _ = call(t, 40, "run", "--state", t.TempDir(), review)
	if !strings.Contains(errs, "\x1b[1A\x1b[J") || !strings.Contains(errs, "  reviewer  0s  turn 2") {
		t.Errorf("nothing is redrawn on a terminal: %q", errs)
	}
	if _, errs, _ = call(t, 0, "run", "-q", "--state", t.TempDir(), review); strings.Contains(errs, "started") {
		t.Errorf("--quiet says %q", errs)
	}
}
