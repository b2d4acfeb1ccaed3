package loader

import (
	"cmp"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// maxProgram is the largest program that is read, in bytes. Programs may be compiled ones.
const maxProgram = 64 << 20

// endings are those of scripts that an interpreter is given by name.
var endings = []string{".bash", ".cjs", ".fish", ".js", ".ksh", ".lua", ".mjs", ".mts", ".php", ".pl", ".ps1", ".py", ".r", ".rb", ".sh", ".tcl", ".ts", ".zsh"}

// programs reads the team's own programs: what its tools, servers and external agents are made of, as far as it lies in the
// team file's folder. What a word names that is no program, such as a database, is not read: it may change with every run.
func (f *follower) programs() {
	t := f.bundle.Team
	f.bundle.Programs = map[string]spec.File{}
	for _, name := range sortedKeys(t.CustomTools) {
		f.command(t.CustomTools[name].Command, "", spec.Path("customTools").Key(name).Key("command"))
	}
	for _, name := range sortedKeys(t.MCPServers) {
		if s := t.MCPServers[name]; s.Command != "" {
			f.command(append([]string{s.Command}, s.Args...), s.Cwd, spec.Path("mcpServers").Key(name))
		}
	}
	for i, a := range t.Agents {
		if b := a.Backend; b != nil {
			cwd := cmp.Or(b.Cwd, a.Cwd, t.Defaults.Cwd)
			f.command(append([]string{b.Command}, b.Args...), cwd, spec.Path("agents").Index(i).Key("backend"))
		}
	}
}

// command reads the programs among the words of a command. The first word is one if it is no name to be looked for in PATH; any
// other if it looks like a script, seen from the team file's folder or from the one that the command works in.
func (f *follower) command(words []string, cwd string, at spec.Path) {
	for i, word := range words {
		switch {
		case badPath(word) != nil || strings.ContainsAny(word, "{}\n"):
		case i == 0 && strings.Contains(word, "/"):
			f.program(word, false, at)
		case i > 0:
			f.program(word, true, at)
			if cwd != "" {
				f.program(path.Join(cwd, word), true, at)
			}
		}
	}
}

func (f *follower) program(name string, onlyScript bool, at spec.Path) {
	rel := clean(name)
	if _, read := f.bundle.Programs[rel]; read || !filepath.IsLocal(filepath.FromSlash(rel)) {
		return
	}
	file, ok := f.within(rel)
	if !ok || onlyScript && !script(file) {
		return
	}
	data, problem := readUpTo(file, maxProgram)
	if problem != nil {
		f.ds.Errorf(problem.Code, at, "%s", problem.Message).Hint = "a plan holds the digests of the programs beside it: keep one that cannot be read elsewhere"
		return
	}
	f.bundle.Programs[rel] = spec.File{Path: rel, Digest: canon.Text("file", data)}
}

// script says whether a file has the ending of a script or begins like one. One that cannot be opened shows neither.
func script(file string) bool {
	if slices.Contains(endings, strings.ToLower(filepath.Ext(file))) {
		return true
	}
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [2]byte
	_, err = io.ReadFull(f, head[:])
	return err == nil && string(head[:]) == "#!"
}

// within gives a regular file that really lies in the team file's folder, whatever links lead to it.
func (f *follower) within(rel string) (string, bool) {
	file := filepath.Join(f.dir, filepath.FromSlash(rel))
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	dir, err := filepath.EvalSymlinks(f.dir)
	if err != nil {
		return "", false
	}
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return "", false
	}
	below, err := filepath.Rel(dir, real)
	return file, err == nil && filepath.IsLocal(below)
}
