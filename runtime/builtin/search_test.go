package builtin

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGrepW9(t *testing.T) {
	b := newBox(t, map[string]string{
		"a.go": "package a\nfunc A() {}\n", "b.txt": "func text\r\n", "sub/c.go": "x\n\tfunc C()", "sub/deep/d.GO": "func D", ".hidden/e.go": "func E",
		"bin": "func\x00", "latin": "func caf\xe9", "large": strings.Repeat("func\n", maxFile/5+1), "node_modules/m/x.go": "func M", "sub/.git/x.go": "func G",
		"build/x.go": "func X", "dist": "func file named dist", "link.go": "-> a.go", "ldir": "-> sub",
	})
	const out = "\n(left out: folders .git, build and node_modules, "
	const large = "\n(1 file over 10485760 bytes not searched)" + out + "2 links, 1 binary file)"
	b.want(Grep, in{"pattern": `^\s*func \w`}, ".hidden/e.go:1:func E\na.go:2:func A() {}\nb.txt:1:func text\ndist:1:func file named dist\n"+
		"latin:1:func caf\uFFFD\nsub/c.go:2:\tfunc C()\nsub/deep/d.GO:1:func D"+large)
	b.want(Grep, in{"pattern": "func", "glob": "*.go"}, ".hidden/e.go:1:func E\na.go:2:func A() {}\nsub/c.go:2:\tfunc C()\nsub/deep/d.GO:1:func D"+out+"1 link)")
	b.want(Grep, in{"pattern": "func", "glob": "deep/*", "path": "sub"}, "sub/deep/d.GO:1:func D\n(left out: folder .git)")
	b.want(Grep, in{"pattern": "func", "glob": "sub/*", "path": "sub"}, "No matches found.\n(left out: folder .git)")
	b.want(Grep, in{"pattern": "func", "path": "sub/c.go"}, "sub/c.go:2:\tfunc C()")
	b.want(Grep, in{"pattern": "func", "path": "sub/c.go", "glob": "*.txt"}, "No matches found.")
	b.want(Grep, in{"pattern": "func", "path": "link.go"}, "a.go:2:func A() {}")
	b.want(Grep, in{"pattern": "func", "path": "build"}, "build/x.go:1:func X")
	b.want(Grep, in{"pattern": "func", "path": "bin"}, "No matches found.\n(\"bin\" is a binary file)")
	b.want(Grep, in{"pattern": "text$", "path": "b.txt"}, "b.txt:1:func text")
	b.want(Grep, in{"pattern": "FUNC [AD]$"}, "No matches found."+large)
	b.want(Grep, in{"pattern": "(?i)FUNC D$"}, "sub/deep/d.GO:1:func D"+large)
	b.want(Grep, in{"pattern": "func", "maxResults": int64(2), "glob": "*.go"},
		".hidden/e.go:1:func E\na.go:2:func A() {}\n(results capped at 2; narrow the pattern, path or glob to see the rest)"+out+"1 link)")
	b.want(Grep, in{"pattern": "func", "maxResults": int64(4), "glob": "*.go"},
		".hidden/e.go:1:func E\na.go:2:func A() {}\nsub/c.go:2:\tfunc C()\nsub/deep/d.GO:1:func D"+out+"1 link)")
	b.wantError(Grep, in{"pattern": "a(b"}, "Invalid regular expression: missing closing ): \"a(b\".")
	b.wantError(Grep, in{"pattern": "(?=a)"}, "Invalid regular expression: invalid or unsupported Perl syntax")
	b.wantError(Grep, in{"pattern": "((a{10}){10}){10}{9}"}, "Invalid regular expression: ")
	b.wantError(Grep, in{"pattern": "((a|b){20}){45}"}, "over the limit of 1000")
	b.wantError(Grep, in{"pattern": "x", "path": "none"}, `"none": no such file or directory`)
	b.wantError(Grep, in{"pattern": "x", "glob": "[a"}, `invalid pattern "[a"`)
	if r := b.call(Grep, in{"pattern": "func"}); r.FilesRead != nil {
		t.Error("grep is no reading:", r.FilesRead)
	}
}

func TestGrepLongLines(t *testing.T) {
	b := newBox(t, map[string]string{"min.js": strings.Repeat("é", 600) + "\n" + strings.Repeat("x", maxLine) + "needle\n"})
	b.want(Grep, in{"pattern": "é"}, "min.js:1:"+strings.Repeat("é", 500)+" … (line cut)\n(1 long line searched to byte 65536 only)")
	b.want(Grep, in{"pattern": "[n]eedle"}, "No matches found.\n(1 long line searched to byte 65536 only)")
}

func TestGlobW10(t *testing.T) {
	b := newBox(t, map[string]string{
		"src/a.ts": "", "src/deep/b.ts": "", "src/deep/c.tsx": "", "README.md": "", "x/src/d.ts": "", "a[1].txt": "", ".env": "",
		"b/z": "", "b-a": "", "b.a": "",
	})
	for pattern, want := range map[string]string{
		"*.ts":                         "src/a.ts\nsrc/deep/b.ts\nx/src/d.ts",
		"**/*.ts":                      "src/a.ts\nsrc/deep/b.ts\nx/src/d.ts",
		"src/**/*.ts":                  "src/a.ts\nsrc/deep/b.ts",
		"./src/*.ts":                   "src/a.ts",
		"src/*":                        "src/a.ts",
		"src/**":                       "src/a.ts\nsrc/deep/b.ts\nsrc/deep/c.tsx",
		"*.{ts,tsx}":                   "src/a.ts\nsrc/deep/b.ts\nsrc/deep/c.tsx\nx/src/d.ts",
		"{src/{a,deep/b}.ts,readme.*}": "README.md\nsrc/a.ts\nsrc/deep/b.ts",
		"[r-s]eadme.md":                "README.md",
		"?.ts":                         "src/a.ts\nsrc/deep/b.ts\nx/src/d.ts",
		`a\[1\].txt`:                   "a[1].txt",
		".*":                           ".env",
		"b*":                           "b-a\nb.a\nsrc/deep/b.ts",
		"{b,b*}{,/*}":                  "b-a\nb.a\nb/z\nsrc/deep/b.ts",
		"*.go":                         "No files matched.",
		b.dir + "/src/*.ts":            "src/a.ts",
	} {
		b.want(Glob, in{"pattern": pattern}, want)
	}
	b.want(Glob, in{"pattern": "*.ts", "path": "x"}, "x/src/d.ts")
	b.want(Glob, in{"pattern": "src/*", "path": "x"}, "x/src/d.ts")
	b.want(Glob, in{"pattern": "*.ts", "path": "src/a.ts"}, "src/a.ts")
	b.want(Glob, in{"pattern": "*.ts", "maxFiles": int64(2)}, "src/a.ts\nsrc/deep/b.ts\n(listing capped at 2 paths; narrow the pattern or the path to see the rest)")
	b.want(Glob, in{"pattern": "*.ts", "maxFiles": int64(3)}, "src/a.ts\nsrc/deep/b.ts\nx/src/d.ts")
	b.wantError(Glob, in{"pattern": "*", "path": "none"}, `Cannot access path "none": no such file or directory.`)
	b.wantError(Glob, in{"pattern": "{a,b"}, `invalid pattern "{a,b"`)
	b.wantError(Glob, in{"pattern": strings.Repeat("{a,b}", 9)}, "stand for more than 256 patterns")
	b.wantError(Glob, in{"pattern": strings.Repeat("{a,b", 800) + strings.Repeat("}", 800)}, "stand for more than 256 patterns")
}

// W11: order does not depend on the disk, and depth is bounded and said.
func TestWalkW11(t *testing.T) {
	files, want := map[string]string{}, []string{}
	for i := range 300 {
		name := fmt.Sprintf("d%d/f%03d", i%7, i)
		files[name] = ""
		want = append(want, name)
	}
	slices.Sort(want)
	b := newBox(t, files)
	b.want(Glob, in{"pattern": "f*"}, strings.Join(want, "\n"))

	tree(t, b.dir, map[string]string{"d0/" + strings.Repeat("n/", maxDepth) + "deep": ""})
	b.want(Glob, in{"pattern": "deep"}, "No files matched.\n(1 folder deeper than 100 levels not searched)")
	if os.Getuid() != 0 {
		if err := os.Mkdir(b.dir+"/closed", 0); err != nil {
			t.Fatal(err)
		}
		b.want(Glob, in{"pattern": "closed"}, "No files matched.\n(1 could not be read)\n(1 folder deeper than 100 levels not searched)")
	}
}

func TestGitignoreD10(t *testing.T) {
	b := newBox(t, map[string]string{
		".gitignore": "\uFEFF# comment\n\n*.log\r\n!keep.log\n/top\nout/\nsub/anchored.txt\nopen/**\n!open/kept\n\\#hash\n\\!bang\ntrail \nspace\\ \n{a,b}.c\n[!x]1.z\n**/deep/**/t.y\n",
		"a.log":      "", "keep.log": "", "top": "", "sub/top": "", "out": "", "sub/out/x": "", "sub/anchored.txt": "", "sub/sub/anchored.txt": "",
		"open/x": "", "open/kept": "", "open/y/kept": "", "#hash": "", "!bang": "", "trail": "", "space ": "", "{a,b}.c": "", "a.c": "", "x1.z": "", "y1.z": "",
		"p/deep/q/r/t.y": "", "sub/.gitignore": "!*.log\n/only\n", "sub/b.log": "", "sub/only": "", "only": "", "sub/in/only": "",
	})
	b.want(Glob, in{"pattern": "**"}, strings.Join([]string{
		".gitignore", "a.c", "keep.log", "only", "open/kept", "out", "sub/.gitignore", "sub/b.log", "sub/in/only", "sub/sub/anchored.txt", "sub/top", "x1.z",
		"(left out: 12 files and 2 folders by .gitignore)",
	}, "\n"))
	// The rules above the folder searched hold too; a file named is searched whatever ignores it.
	b.want(Glob, in{"pattern": "*", "path": "sub"}, "sub/.gitignore\nsub/b.log\nsub/in/only\nsub/sub/anchored.txt\nsub/top\n(left out: 2 files and 1 folder by .gitignore)")
	b.want(Glob, in{"pattern": "*", "path": "sub/out"}, "sub/out/x")
	b.want(Glob, in{"pattern": "*", "path": "a.log"}, "a.log")
}

// The real git is the judge of the same tree, where there is one.
func TestGitignoreAgainstGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git here")
	}
	rules := []string{"*.log", "!keep.log", "/top", "out/", "a/b", "a/**", "!a/keep", "**/c", "a/**/c", "*.tx?", "[ab].o", "[!a].o", "!/a/", "foo*", "/foo/*", "!/foo/bar",
		"**", "*", "!*/", "a*/b", "**/b/*", "\\*", "x\\?", "b/", "!b/", "{x,y}", "c/**/", "/**/d", "***/e", "a**b", "!top", " lead", "trail  ", "#no", "/", "//", "!"}
	names := []string{"top", "a/b", "a/keep", "a/c", "a/x/c", "a/x/y/c", "c/d", "c/x/d", "keep.log", "z.log", "a/z.log", "f.txt", "a.o", "b.o", "q.o", "foo/bar", "foo/baz",
		"foobar", "b/b", "b/x", "out/x", "x/out", "*", "x?", "xy", "{x,y}", "x/e", "axb", "ab/b", " lead", "trail", "#no"}
	for n := range 60 {
		files := map[string]string{}
		for _, name := range names {
			files[name] = ""
		}
		pick := func(k int) string { return rules[(n*7+k*k*11+n*n*k)%len(rules)] }
		files[".gitignore"] = pick(1) + "\n" + pick(2) + "\n" + pick(3) + "\n" + pick(4) + "\n"
		files["a/.gitignore"] = pick(5) + "\n" + pick(6) + "\n"
		b := newBox(t, files)
		cmd := exec.Command(git, "-c", "core.excludesFile=/dev/null", "-c", "core.quotePath=false", "ls-files", "-z", "--others", "--exclude-per-directory=.gitignore")
		if out, err := exec.Command(git, "init", "-q", b.dir).CombinedOutput(); err != nil {
			t.Skip("git init:", string(out))
		}
		cmd.Dir = b.dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		r := b.call(Glob, in{"pattern": "**"})
		listing, note, _ := strings.Cut(r.Text, "\n(left out: ")
		if !strings.HasSuffix(note, "folder .git)") {
			t.Errorf("the note is %q", note)
		}
		got := strings.Split(listing, "\n")
		if listing == "No files matched." {
			got = []string{""}
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("git and glob differ for %q and a/ %q:\n%s", files[".gitignore"], files["a/.gitignore"], diff)
		}
	}
}

// A file's name cannot pass for a line of its own, for another name, or for a note.
func TestNamesThatAreQuoted(t *testing.T) {
	b := newBox(t, map[string]string{"a\nsafe.go:1:fake": "x", "ü.go": "x"})
	b.want(Glob, in{"pattern": "*"}, `"a\nsafe.go:1:fake"`+"\nü.go")
	b.want(Grep, in{"pattern": "x"}, `"a\nsafe.go:1:fake":1:x`+"\nü.go:1:x")
	for name, want := range map[string]string{
		"ü b.go": "ü b.go", "日本.go": "日本.go", `a\nb`: `a\nb`, `a"b`: `a"b`, "a(b)": "a(b)",
		"og\u202etxt.exe": `"og\u202etxt.exe"`, "a\u2028b": `"a\u2028b"`, "a\u200bb": `"a\u200bb"`, "a\u00a0b": `"a\u00a0b"`, "a\x7fb": `"a\x7fb"`, "a\tb": `"a\tb"`,
		"caf\xe9": `"caf\xe9"`, "caf\ufffd": "caf\ufffd", `"a\nb"`: `"\"a\\nb\""`, "(left out: nothing)": `"(left out: nothing)"`,
	} {
		if got := (&toolbox{workspace: &workspace{contained: true}}).listed(name); got != want {
			t.Errorf("%q is listed as %s, want %s", name, got, want)
		}
	}
}

func TestSearchStopsWithContext(t *testing.T) {
	b := newBox(t, map[string]string{"a": strings.Repeat("x\n", 10000), "b": "x"})
	ctx := &countdown{Context: t.Context(), left: 3, err: errGone}
	w := walker{ctx: ctx, visit: func(*os.Root, os.DirEntry, string) error { return nil }}
	root, err := os.OpenRoot(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	ctx.left = 2
	if err := w.walk(root, ".", nil, 0); err != errGone {
		t.Error("walk:", err)
	}
	g := &grepping{search: &search{walker: walker{ctx: &countdown{Context: t.Context(), left: 3, err: errGone}}, t: &toolbox{workspace: &workspace{contained: true}}}, most: 1 << 20}
	if g.re, err = compileRegexp("y"); err != nil {
		t.Fatal(err)
	}
	g.literal = "x"
	if err := g.file(root, "a", filepath.Join("a")); err != errGone {
		t.Error("grep within a file:", err)
	}
}
