package builtin

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func digest(t *testing.T, dir string) string {
	t.Helper()
	d, err := TreeDigest(t.Context(), dir, TreeLimits{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestTreeDigest(t *testing.T) {
	files := map[string]string{"a": "1", "sub/b": "2", "sub/run": "#!", "l": "-> a", ".git/HEAD": "x", "node_modules/x": "y", ".gitignore": "a\n"}
	dir := t.TempDir()
	tree(t, dir, files)
	before := digest(t, dir)
	// The same on every machine and in every folder.
	const pinned = "sha256:19b31d6f9b083909cc9a67eee08e95a9bcabe6ef739a9642c98d9e69fbd34f96"
	if before != pinned {
		t.Errorf("got %s, want %s", before, pinned)
	}
	for name, change := range map[string]func(dir string) error{
		"content, though ignored": func(d string) error { return os.WriteFile(d+"/a", []byte("9"), 0o644) },
		"renamed":                 func(d string) error { return os.Rename(d+"/a", d+"/A2") },
		"moved":                   func(d string) error { return os.Rename(d+"/a", d+"/sub/a") },
		"added":                   func(d string) error { return os.WriteFile(d+"/new", nil, 0o644) },
		"removed":                 func(d string) error { return os.Remove(d + "/sub/b") },
		"executable":              func(d string) error { return os.Chmod(d+"/sub/run", 0o755) },
		"link turned":             func(d string) error { return errors.Join(os.Remove(d+"/l"), os.Symlink("sub/b", d+"/l")) },
		"link to copy":            func(d string) error { return errors.Join(os.Remove(d+"/l"), os.WriteFile(d+"/l", []byte("1"), 0o644)) },
		"hidden as temporary":     func(d string) error { return os.WriteFile(d+"/"+tempPrefix+"x", nil, 0o644) },
	} {
		d := t.TempDir()
		tree(t, d, files)
		if err := change(d); err != nil {
			t.Fatal(err)
		}
		if digest(t, d) == before {
			t.Errorf("%s: not seen", name)
		}
	}
	for name, change := range map[string]func() error{
		"git":          func() error { return os.WriteFile(dir+"/.git/HEAD", []byte("z"), 0o644) },
		"dependencies": func() error { return os.WriteFile(dir+"/node_modules/x", []byte("z"), 0o644) },
		"empty folder": func() error { return os.Mkdir(dir+"/empty", 0o755) },
		"permissions":  func() error { return os.Chmod(dir+"/a", 0o600) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if digest(t, dir) != before {
			t.Errorf("%s: counted", name)
		}
	}
	if digest(t, dir+"/none") != digest(t, dir+"/empty") {
		t.Error("a missing folder is an empty one")
	}
}

// No digest stands for a part of a tree.
func TestTreeDigestLimits(t *testing.T) {
	dir := t.TempDir()
	tree(t, dir, map[string]string{"a": "12345", "b": "12345"})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	deep := t.TempDir()
	tree(t, deep, map[string]string{strings.Repeat("n/", maxDepth+1) + "a": ""})
	for _, c := range []struct {
		ctx    context.Context
		dir    string
		limits TreeLimits
		want   string
	}{
		{t.Context(), dir, TreeLimits{Files: 1}, "tree digest: more than 1 files"},
		{t.Context(), dir, TreeLimits{Bytes: 9}, `tree digest: "b": more than 9 bytes in all`},
		{ended, dir, TreeLimits{}, "tree digest: context canceled"},
		{t.Context(), dir + "/a", TreeLimits{}, "tree digest: not a directory"},
		{t.Context(), deep, TreeLimits{}, "tree digest: 0 folders could not be read, 1 are deeper than 100 levels, 0 have more than 200000 entries"},
	} {
		got, err := TreeDigest(c.ctx, c.dir, c.limits)
		if err == nil || err.Error() != c.want || got != "" {
			t.Errorf("%+v: %q, %v; want %q", c.limits, got, err, c.want)
		}
	}
	if _, err := TreeDigest(t.Context(), dir, TreeLimits{Files: 2, Bytes: 10}); err != nil {
		t.Error(err)
	}
}

func TestTreeDigestLeavesOutWhatTheRunWrites(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	digest := func() string {
		t.Helper()
		d, err := TreeDigest(t.Context(), dir, TreeLimits{Skip: []string{filepath.Join(dir, "state"), filepath.Join(dir, "receipt.json"), "/elsewhere"}})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	write("a.go", "x")
	before := digest()
	write("state/runs/1/events.jsonl", "{}")
	write("receipt.json", "{}")
	if digest() != before {
		t.Error("the run's own files count")
	}
	write("state-of-affairs.md", "y")
	if digest() == before {
		t.Error("a file that only starts like a skipped one is left out")
	}
}
