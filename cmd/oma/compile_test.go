package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/loader"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

// Every file of testdata/compile loads and has something wrong that only compiling finds. The whole text a person
// would see is compared. A file of the same name in above is a policy that is given above the team.
func TestCompileFindings(t *testing.T) {
	files, err := filepath.Glob("../../testdata/compile/*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		if filepath.Base(file) == "cassette.yaml" {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			loaded, ds := loader.Team(file)
			if loaded.Bundle == nil || ds.HasErrors(false) {
				t.Fatalf("does not load: %v", ds)
			}
			loaded.Under(aboveOf(t, file))
			_, found := runtime.Compile(loaded.Bundle, runtime.CompileOptions{Catalog: catalog()})
			loaded.Sources.Place(found)
			found.Sort()
			if len(found) == 0 {
				t.Fatal("nothing was found")
			}
			everyPlaceExists(t, file, found)
			var out bytes.Buffer
			if err := loader.Render(&out, found); err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(strings.ReplaceAll(out.String(), file, filepath.Base(file)), "../../testdata/compile/", "")
			golden := strings.TrimSuffix(file, ".yaml") + ".out"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// aboveOf reads the policy that a team of testdata/compile stands under, if there is one.
func aboveOf(t *testing.T, file string) *loader.Policies {
	t.Helper()
	path := filepath.Join(filepath.Dir(file), "above", filepath.Base(file))
	if !exists(path) {
		return nil
	}
	p, ds := loader.Above([]string{path})
	if len(ds) > 0 {
		t.Fatalf("%s does not load: %v", path, ds)
	}
	return p
}

func everyPlaceExists(t *testing.T, file string, ds spec.Diagnostics) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for _, d := range ds {
		if d.Path == "" && d.Pos.Line == 0 || d.File != file {
			continue
		}
		if d.Pos.Line < 1 || d.Pos.Line > len(lines) || d.Pos.Col < 1 || d.Pos.Col > len([]rune(lines[d.Pos.Line-1]))+1 {
			t.Errorf("%s points at %d:%d, which is not in the file", d.Code, d.Pos.Line, d.Pos.Col)
		}
	}
}
