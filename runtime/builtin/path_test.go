package builtin

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const outsideText = "outside the agent's working directory"

func TestSiblingPC01(t *testing.T) {
	b := newBox(t, map[string]string{"a.txt": "a", "../workshop/secret.txt": "secret"})
	for _, spelling := range []string{"", "/", "/./"} {
		b.tools = openWith(t, testOptions(b.dir+spelling))
		b.want(FileRead, in{"path": b.dir + "/a.txt"}, "1\ta")
		for _, r := range []struct {
			tool string
			in   in
		}{
			{FileRead, in{"path": b.outer + "/workshop/secret.txt"}},
			{FileRead, in{"path": b.dir + "/../workshop/secret.txt"}},
			{FileRead, in{"path": "../workshop/secret.txt"}},
			{Glob, in{"pattern": b.outer + "/workshop/*"}},
			{Glob, in{"pattern": "*", "path": b.outer + "/workshop"}},
			{Glob, in{"pattern": "../workshop/*"}},
			{Glob, in{"pattern": "{a,..}/workshop/*"}},
			{Grep, in{"pattern": "e", "glob": b.outer + "/workshop/*"}},
		} {
			b.wantError(r.tool, r.in, outsideText)
			if got := b.call(r.tool, r.in).Text; strings.Contains(strings.ReplaceAll(got, "workshop/secret.txt", ""), "secret") {
				t.Errorf("%s tells %q", r.tool, got)
			}
		}
	}
}

func TestRootIsSlashPC01(t *testing.T) {
	b := newBox(t, map[string]string{"a.txt": "a"})
	b.tools = openWith(t, testOptions("/"))
	b.want(FileRead, in{"path": b.dir + "/a.txt"}, "1\ta")
	b.want(Glob, in{"pattern": "*.txt", "path": b.dir}, strings.TrimPrefix(b.dir, "/")+"/a.txt")
}

func TestLinksOutPC02(t *testing.T) {
	b := newBox(t, map[string]string{
		"../out/s.txt": "needle", "d": "-> ../out", "l.txt": "-> ../out/s.txt",
		"new.txt": "-> ../out/new.txt", "loop": "-> loop", "up": "-> ..", "chain": "-> d",
	})
	if err := os.Symlink(filepath.Join(b.outer, "out", "abs.txt"), filepath.Join(b.dir, "abs.txt")); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"l.txt", "d/s.txt", "up/out/s.txt", "chain/s.txt"} {
		b.wantError(FileRead, in{"path": p}, outsideText)
		b.wantError(FileEdit, in{"path": p, "old_string": "needle", "new_string": "x"}, outsideText)
		b.wantError(FileWrite, in{"path": p, "content": "x"}, outsideText)
		b.wantError(Grep, in{"pattern": "needle", "path": p}, outsideText)
	}
	// Dangling links create nothing outside, nor do folders made on the way.
	for _, p := range []string{"new.txt", "abs.txt", "d/evil.txt", "d/deep/er/evil.txt", "up/evil.txt"} {
		b.wantError(FileWrite, in{"path": p, "content": "x"}, outsideText)
	}
	b.wantError(FileRead, in{"path": "loop"}, "too many links")
	b.wantError(Bash, in{"command": "pwd", "cwd": "d"}, outsideText)
	b.want(Grep, in{"pattern": "needle", "path": b.dir}, "No matches found.\n(left out: 7 links)")
	b.want(Glob, in{"pattern": "**"}, "No files matched.\n(left out: 7 links)")
	b.wantFile("out/s.txt", "needle")
	if e, _ := os.ReadDir(filepath.Join(b.outer, "out")); len(e) != 1 {
		t.Error("something was made outside:", e)
	}
}

func TestLinksInsidePC03(t *testing.T) {
	b := newBox(t, nil)
	tree(t, b.outer, map[string]string{"real/a.txt": "a", "real/sub/b.txt": "b", "real/sub/deep/c.txt": "c", "link": "-> real",
		"real/in.txt": "-> a.txt", "real/subl": "-> sub", "real/back": "-> ../real/a.txt", "real/mid": "-> subl/../a.txt",
		"real/deepl": "-> sub/deep", "real/phys": "-> deepl/../b.txt", "real/dangling": "-> sub/new.txt", "real/abs": "-> " + b.outer + "/real/sub",
		"real/viaLink": "-> " + b.outer + "/link/a.txt"})
	for _, dir := range []string{"real", "link"} {
		dir = filepath.Join(b.outer, dir)
		b.tools = openWith(t, testOptions(dir))
		for p, text := range map[string]string{"a.txt": "a", dir + "/a.txt": "a", b.outer + "/real/a.txt": "a", "in.txt": "a", "subl/b.txt": "b",
			"back": "a", "mid": "a", "phys": "b", "abs/b.txt": "b", "sub/../a.txt": "a", "./sub//b.txt": "b", "a.txt/": "a"} {
			b.want(FileRead, in{"path": p}, "1\t"+text)
		}
		b.call(FileWrite, in{"path": dir + "/new/b.txt", "content": "new"})
		b.wantFile("real/new/b.txt", "new")
		b.call(FileWrite, in{"path": "dangling", "content": "through"})
		b.wantFile("real/sub/new.txt", "through")
		b.call(FileEdit, in{"path": "subl/b.txt", "old_string": "b", "new_string": "b"})
		b.want(Bash, in{"command": "pwd -P", "cwd": "subl"}, b.outer+"/real/sub\n")
	}
	b.tools = openWith(t, testOptions(filepath.Join(b.outer, "link")))
	b.want(FileRead, in{"path": "viaLink"}, "1\ta")
}

func TestSearchIsContainedPC04(t *testing.T) {
	b := newBox(t, map[string]string{"../out/x": "x"})
	b.wantError(Grep, in{"pattern": "root", "path": "/etc"}, outsideText)
	b.wantError(Grep, in{"pattern": "x", "path": b.dir + "/../out"}, outsideText)
	b.wantError(Glob, in{"pattern": "*", "path": "/"}, outsideText)
	b.wantError(Glob, in{"pattern": "/*"}, outsideText)
	b.wantError(Bash, in{"command": "pwd", "cwd": "/"}, outsideText)
}

// PC-05, N11: rules judge one spelling, and that is what runs.
func TestNormalisePC05(t *testing.T) {
	b := newBox(t, map[string]string{"x/a": ""})
	for given, shown := range map[string]string{
		"a": "a", "./a": "a", "x//a/": "x/a", "x/../a": "a", "..foo": "..foo", ".": ".", "x/..": ".", "x/./y/../a": "x/a",
		b.dir: ".", b.dir + "/": ".", b.dir + "//x/../a": "a", b.dir + "/../work/a": "a", "../work/a": "a", "ä/ö": "ä/ö", "a\nb": "a\nb",
	} {
		for tool, key := range map[string]string{FileRead: "path", FileWrite: "path", Grep: "path", Bash: "cwd"} {
			input := in{key: given}
			if err := b.tools[tool].Normalise(input); err != nil || input[key] != shown {
				t.Errorf("%s %q: %q, %v; want %q", tool, given, input[key], err, shown)
			}
		}
	}
	for given, want := range map[string]string{"": "path is empty", "a\x00b": `path "a\x00b" holds a NUL`, "..": `".." is ` + outsideText,
		"/etc/passwd": `"/etc/passwd" is ` + outsideText, b.dir + "x": `"` + b.dir + `x" is ` + outsideText, "x/../../y": `"x/../../y" is ` + outsideText} {
		err := b.tools[FileRead].Normalise(in{"path": given})
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %q", given, err, want)
		}
		if strings.Contains(want, outsideText) && !errors.Is(err, ErrOutside) {
			t.Errorf("%q: not ErrOutside: %v", given, err)
		}
	}
	if err := b.tools[Grep].Normalise(in{"pattern": "x"}); err != nil {
		t.Error("an absent path is no error:", err)
	}
}

// containment: none. Paths anywhere work, seen relative below the agent's folder and absolute elsewhere.
func TestUncontained(t *testing.T) {
	b := newBox(t, map[string]string{"a.txt": "a", "../out/s.txt": "needle", "l.txt": "-> ../out/s.txt", ".gitignore": "*.log\n", "x.log": "needle"})
	o := testOptions(b.dir)
	o.Contained = false
	b.tools = openWith(t, o)
	out := b.outer + "/out"
	b.want(FileRead, in{"path": "a.txt"}, "1\ta")
	b.want(FileRead, in{"path": "../out/s.txt"}, "1\tneedle")
	b.want(FileRead, in{"path": "l.txt"}, "1\tneedle")
	b.want(Grep, in{"pattern": "needle", "path": out}, out+"/s.txt:1:needle")
	b.want(Grep, in{"pattern": "needle"}, "No matches found.\n(left out: 1 file by .gitignore, 1 link)")
	b.want(Glob, in{"pattern": out + "/*", "path": b.outer}, out+"/s.txt")
	b.want(Glob, in{"pattern": "*.txt"}, "a.txt\n(left out: 1 link)")
	b.want(FileWrite, in{"path": out + "/new/b.txt", "content": "x"}, `Created "`+out+`/new/b.txt" (1 line, 1 bytes).`)
	b.want(Bash, in{"command": "pwd", "cwd": out}, out+"\n")
	b.wantError(FileWrite, in{"path": out + "/.git/config", "content": "x"}, "protected")
	if got := b.call(FileRead, in{"path": "l.txt"}).FilesRead; len(got) != 1 || got[0] != out+"/s.txt" {
		t.Error(got)
	}
}

// A hard link is the file. It cannot be refused; writing leaves the other name's file as it was.
func TestHardLink(t *testing.T) {
	b := newBox(t, map[string]string{"../out/s.txt": "shared"})
	if err := os.Link(b.outer+"/out/s.txt", b.dir+"/h.txt"); err != nil {
		t.Fatal(err)
	}
	b.want(FileRead, in{"path": "h.txt"}, "1\tshared")
	b.want(FileEdit, in{"path": "h.txt", "old_string": "shared", "new_string": "mine"}, `Replaced 1 occurrence in "h.txt".`)
	b.wantFile("out/s.txt", "shared")
}

func FuzzShown(f *testing.F) {
	for _, s := range []string{"a", "../a", "/w/a", "/w/../w/a", "/real", "..foo/..", "\x00", "//w//a", "a/./..", "/wx"} {
		f.Add(s)
	}
	w := &workspace{base: "/w", real: "/real", contained: true}
	f.Fuzz(func(t *testing.T, given string) {
		shown, err := w.shown(given)
		if err != nil {
			if shown != "" {
				t.Fatalf("%q: %q beside %v", given, shown, err)
			}
			return
		}
		if !filepath.IsLocal(shown) || shown != filepath.Clean(shown) || strings.Contains(shown, "\x00") {
			t.Fatalf("%q: %q is not clean and local", given, shown)
		}
		if again, err := w.shown(shown); err != nil || again != shown {
			t.Fatalf("%q: %q becomes %q, %v", given, shown, again, err)
		}
	})
}

// A folder that was looked at and then gave way to a link is not entered, though the link stays inside.
func TestSwappedFolderIsNotEntered(t *testing.T) {
	b := newBox(t, map[string]string{"docs/a": "", ".git/config": "c"})
	w, err := newWorkspace(testOptions(b.dir))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	p, err := w.locate("docs")
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if err := errors.Join(os.RemoveAll(b.dir+"/docs"), os.Symlink(".git", b.dir+"/docs")); err != nil {
		t.Fatal(err)
	}
	if err := p.enter(); err == nil || err.Error() != `"docs" changed while it was being opened` {
		t.Error(err)
	}
}
