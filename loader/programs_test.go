package loader

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec/canon"
)

// Of the words of commands, those are in the bundle that name a program in the team's folder: the first one by its path, the
// others by how they look. What a program works on is not, nor what lies elsewhere, whatever leads there.
func TestPrograms(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "team")
	for _, file := range []string{"bin/tool", "tools/scan.sh", "tools/plain", "tools/lint", "server.py", "served/inner.mjs", "agent.js", "agent.conf", "lib.so", "data.db", "../outside.sh", "{q}.sh", "unused.sh"} {
		text := "a program\r\n"
		if file == "tools/lint" {
			text = "#!/bin/sh\n"
		}
		write(t, filepath.Join(dir, file), text)
	}
	for link, to := range map[string]string{"link.sh": "tools/scan.sh", "away.sh": "../outside.sh", "loop.sh": "loop.sh", "folder.sh": "tools"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	write(t, dir+"/team.yaml", head+`
agents:
  - {name: a, systemPrompt: p, customTools: [one, two, three, four], cwd: served, backend: {kind: process, command: ./agent.js, args: [inner.mjs, agent.conf]}}
customTools:
  one: {command: [tools/scan.sh, tools/plain, data.db, link.sh, away.sh, loop.sh, folder.sh, ../outside.sh, gone.sh]}
  two: {command: [sh, ./tools/lint, tools/../tools/scan.sh, "{q}.sh", --file=unused.sh], inputSchema: {type: object, required: [q], properties: {q: {type: string}}}}
  three: {command: [bin/tool, "`+filepath.ToSlash(dir)+`/unused.sh"]}
  four: {command: [agent.js]}
mcpServers:
  s: {command: python3, args: [server.py, inner.mjs, data.db], cwd: served}
`)
	l, _ := Team(dir + "/team.yaml")
	want := []string{"agent.js", "bin/tool", "link.sh", "served/inner.mjs", "server.py", "tools/lint", "tools/scan.sh"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(l.Bundle.Programs))); diff != "" {
		t.Error(diff)
	}
	if got, want := l.Bundle.Programs["bin/tool"].Digest, canon.Text("file", []byte("a program\n")); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A program that cannot be held against anything is a problem, with the place of the command that names it.
func TestProgramTooLarge(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/team.yaml", head+`
agents: [{name: a, systemPrompt: p, customTools: [one]}]
customTools: {one: {command: [./large, large.db]}}
`)
	for _, name := range []string{"large", "large.db"} {
		write(t, filepath.Join(dir, name), "")
		if err := os.Truncate(filepath.Join(dir, name), maxProgram+1); err != nil {
			t.Fatal(err)
		}
	}
	_, ds := Team(dir + "/team.yaml")
	if len(ds) != 1 || ds[0].Code != "file-too-large" || ds[0].Path != "customTools.one.command" {
		t.Errorf("%s", text(ds))
	}
}
