package builtin

import (
	"context"
	"strings"
	"testing"
	"time"
)

// Whoever makes a change also chooses its .gitignore and the names of its folders: what they hide is counted.
func TestSearchSaysWhatItLeavesOut(t *testing.T) {
	b := newBox(t, map[string]string{
		".gitignore": "*.log\nsecret/\n/evil.go\n", "a.go": "needle", "evil.go": "needle", "x.log": "needle", "secret/a.go": "needle", "secret/b.go": "needle",
		"build/x.go": "needle", "pkg/build/y.go": "needle", "dist/z.go": "needle", "node_modules/m/x.js": "needle", ".git/config": "needle", "b.bin": "needle\x00", "c.bin": "\x00needle",
		"link.go": "-> evil.go", ".oma-write-ABC": "needle", ".oma-write-dir/d.go": "needle",
	})
	const folders = "folders .git, build (2), dist and node_modules"
	b.want(Grep, in{"pattern": "needle"}, ".oma-write-dir/d.go:1:needle\na.go:1:needle\n"+
		"(left out: 2 files and 1 folder by .gitignore, "+folders+", 1 link, 2 binary files, 1 unfinished .oma-write- file)")
	b.want(Grep, in{"pattern": "nothing"}, "No matches found.\n"+
		"(left out: 2 files and 1 folder by .gitignore, "+folders+", 1 link, 2 binary files, 1 unfinished .oma-write- file)")
	// What the glob does not ask for is not left out; a folder may hold what it asks for.
	b.want(Grep, in{"pattern": "nothing", "glob": "*.go"}, "No matches found.\n(left out: 1 file and 1 folder by .gitignore, "+folders+", 1 link)")
	b.want(Glob, in{"pattern": "*.log"}, "No files matched.\n(left out: 1 file and 1 folder by .gitignore, "+folders+")")
	b.want(Glob, in{"pattern": "*.bin"}, "b.bin\nc.bin\n(left out: 1 folder by .gitignore, "+folders+")")
	b.want(Grep, in{"pattern": "needle", "path": "pkg"}, "No matches found.\n(left out: folder build)")
	b.want(Grep, in{"pattern": "needle", "path": "a.go"}, "a.go:1:needle")
}

// What a path names is searched, whatever ignores it.
func TestNamedPathIsSearched(t *testing.T) {
	b := newBox(t, map[string]string{
		".gitignore": "*\n!*.go\n!*/\n/secret/\n/open/**\n/all/*\n*.log\n!.gitignore\n", "a.txt": "x", "a.log": "x", "build/x.txt": "x",
		"secret/s.txt": "x", "secret/in/t.txt": "x", "open/o.txt": "x", "open/in/p.txt": "x", "all/q.txt": "x",
		"own/.gitignore": "*\n", "own/r.txt": "x", "own/in/u.txt": "x",
	})
	for path, want := range map[string]string{
		"":          "No matches found.\n(left out: 6 files and 3 folders by .gitignore, folder build)",
		"a.txt":     "a.txt:1:x",
		"a.log":     "a.log:1:x",
		"build":     "build/x.txt:1:x",
		"secret":    "secret/in/t.txt:1:x\nsecret/s.txt:1:x",
		"secret/in": "secret/in/t.txt:1:x",
		"open":      "open/in/p.txt:1:x\nopen/o.txt:1:x",
		"open/in":   "open/in/p.txt:1:x",
		"all":       "all/q.txt:1:x",
		"own":       "own/in/u.txt:1:x\nown/r.txt:1:x",
		"own/in":    "own/in/u.txt:1:x",
	} {
		input := in{"pattern": "x$", "path": path}
		if path == "" {
			delete(input, "path")
		}
		b.want(Grep, input, want)
	}
	// Rules that leave out some of a folder hold in it.
	tree(t, b.dir, map[string]string{".gitignore": "*.log\n", "src/a.go": "x", "src/a.log": "x", "src/in/.gitignore": "*.tmp", "src/in/a.tmp": "x"})
	b.want(Glob, in{"pattern": "a*", "path": "src"}, "src/a.go\n(left out: 2 files by .gitignore)")
}

// One search has a time limit. What it found by then is given, and that it is not all.
func TestSearchTimeLimit(t *testing.T) {
	b := newBox(t, map[string]string{"a": "x\n"})
	tools, closer, err := Open(testOptions(b.dir), Presets()["readonly"])
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	closer.(*toolbox).searchTime = time.Nanosecond
	for _, tool := range tools {
		b.tools[tool.Name] = tool
	}
	const incomplete = "\n(incomplete: stopped at the time limit of 1ns; narrow the pattern or the path)"
	b.want(Grep, in{"pattern": "x"}, "No matches found."+incomplete)
	b.want(Glob, in{"pattern": "*"}, "No files matched."+incomplete)
}

func TestSearchTimeLimitKeepsMatches(t *testing.T) {
	b := newBox(t, map[string]string{"a": "needle\n" + strings.Repeat("x\n", 10*askEvery)})
	w, err := newWorkspace(testOptions(b.dir))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	box := &toolbox{workspace: w, searchTime: time.Hour}
	g := &grepping{most: 9}
	if g.re, err = compileRegexp("nee+dle"); err != nil {
		t.Fatal(err)
	}
	if g.search, err = box.begin(t.Context(), "a", ""); err != nil {
		t.Fatal(err)
	}
	defer g.search.close()
	g.ctx = &countdown{Context: t.Context(), left: 2, err: context.DeadlineExceeded}
	if err := g.run(g.file); err != nil {
		t.Fatal(err)
	}
	const want = "a:1:needle\n(incomplete: stopped at the time limit of 1h0m0s; narrow the pattern or the path)"
	if got := g.result(g.lines, "").Text; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	// The caller's own limit is no result.
	ended, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	g.caller, g.ctx = ended, ended
	if err := g.outcome(ended.Err()); err != context.DeadlineExceeded {
		t.Error("the caller's limit:", err)
	}
}
