package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	sourceFile = regexp.MustCompile("^[a-z./_0-9]+\\.(go|json|md|yaml|txtar)$")
	// named finds what a page says is in a file, such as `root` of `cmd/oma/main.go`.
	named = regexp.MustCompile("`(\\w+)`(?: and `(\\w+)`)? (?:of|in) `([a-z./_]+\\.go)`")
)

// TestNamedSource wants every file that the pages about the source name, and every name that they say is in one.
func TestNamedSource(t *testing.T) {
	files, names := 0, 0
	for _, page := range []string{"../ARCHITECTURE.md", "../CONTRIBUTING.md"} {
		p := readPage(t, page)
		text := strings.Join(p.prose(), " ")
		for _, m := range code.FindAllStringSubmatch(text, -1) {
			if !sourceFile.MatchString(m[1]) || !strings.Contains(m[1], "/") {
				continue
			}
			files++
			if _, err := os.Stat("../" + m[1]); err != nil {
				t.Errorf("%s names %s, which does not exist", p.name, m[1])
			}
		}
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			raw, err := os.ReadFile("../" + m[3])
			if err != nil {
				t.Errorf("%s: %v", p.name, err)
				continue
			}
			for _, name := range m[1:3] {
				names++
				if !regexp.MustCompile(`\b` + name + `\b`).Match(raw) {
					t.Errorf("%s says that %s has %s, and it has not", p.name, m[3], name)
				}
			}
		}
	}
	if files < 30 || names < 8 {
		t.Errorf("only %d files and %d names were looked at", files, names)
	}
}

// TestPackages holds the list of packages in ARCHITECTURE.md against the folders that hold source.
func TestPackages(t *testing.T) {
	var want, got []string
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && path != ".." && (name == "testdata" || name == "bin" || strings.HasPrefix(name, ".")):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".go"):
			want = append(want, strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	want = slices.Compact(want)
	for _, line := range readPage(t, "../ARCHITECTURE.md").under(t, "Packages") {
		if m := regexp.MustCompile(`^([a-z/]+) {2,}\S`).FindStringSubmatch(line); m != nil {
			got = append(got, m[1])
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("ARCHITECTURE.md lists\n%v, want\n%v", got, want)
	}
}

// TestTargets wants every target of make that the pages show.
func TestTargets(t *testing.T) {
	var rules strings.Builder
	makefiles, err := filepath.Glob("../*.mk")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(makefiles, "../Makefile") {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		rules.Write(raw)
	}
	seen := 0
	for _, p := range pages(t) {
		for _, m := range regexp.MustCompile("(?m)^make ([a-z-]+)|`make ([a-z-]+)`").FindAllStringSubmatch(strings.Join(p.lines, "\n"), -1) {
			seen++
			target := m[1] + m[2]
			if !regexp.MustCompile(`(?m)^` + target + `:`).MatchString(rules.String()) {
				t.Errorf("%s shows make %s, and there is no such target", p.name, target)
			}
		}
	}
	if seen < 6 {
		t.Errorf("only %d targets were found on the pages", seen)
	}
}
