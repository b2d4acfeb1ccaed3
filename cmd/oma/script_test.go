package main

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/open-multi-agent/oma/runtime/sandbox"
)

var update = flag.Bool("update", false, "rewrite the text that scripts compare with")

// TestMain lets scripts start this test binary as oma. The real main runs, in a process of its own.
func TestMain(m *testing.M) {
	if code, mine := sandbox.Helper(os.Args, os.Environ(), os.Stderr); mine {
		os.Exit(code)
	}
	testscript.Main(m, programs())
}

// TestScripts runs one user story a file. Each has the folder above its own to itself: what runs leave goes there, beside what
// is under review, and two stories may call it by one name.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("../../testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no scripts: %v", err)
	}
	for _, file := range files {
		testscript.Run(t, testscript.Params{
			Files:               []string{file},
			UpdateScripts:       *update,
			RequireExplicitExec: true,
			RequireUniqueNames:  true,
			Cmds: map[string]func(*testscript.TestScript, bool, []string){"declare": declare, "ends": ends, "forge": forge, "jsonlines": jsonlines,
				"keep": keep, "keypair": keypair, "mcpserver": mcpserver,
				"mockserver": mockserver, "reproduced": reproduced, "toolserver": toolserver, "value": value, "waitfor": waitfor},
			Setup: surroundings,
		})
	}
}

// surroundings give a script a home of its own, so that nothing of whoever runs the tests is seen.
func surroundings(env *testscript.Env) error {
	home := env.WorkDir + "-home"
	env.Setenv("HOME", home)
	env.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
	env.Setenv("NO_COLOR", "1")
	if keep := flag.Lookup("testwork"); keep == nil || keep.Value.String() != "true" {
		env.Defer(func() { os.RemoveAll(filepath.Dir(env.WorkDir)) })
	}
	return nil
}

// ends runs a program and holds its exit code against the first argument: ends CODE PROGRAM [ARGUMENT…].
func ends(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: ends CODE PROGRAM [ARGUMENT…]")
	}
	want, err := strconv.Atoi(args[0])
	if err != nil {
		ts.Fatalf("%q is no exit code", args[0])
	}
	got := 0
	var exit *exec.ExitError
	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%s does not run: %v", args[1], err)
	}
	if got != want {
		ts.Fatalf("%s ends %d, want %d", args[1], got, want)
	}
}
