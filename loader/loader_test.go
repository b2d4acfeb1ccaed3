package loader

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the expected text of testdata/err")

// TestFiles loads every fixture: those in ok without a word, those in err with exactly the text beside them.
func TestFiles(t *testing.T) {
	t.Chdir("..")
	for _, dir := range []string{"testdata/ok", "testdata/err"} {
		for _, file := range documents(t, dir) {
			t.Run(file, func(t *testing.T) {
				_, ds := Any(file)
				var got bytes.Buffer
				if err := Render(&got, ds); err != nil {
					t.Fatal(err)
				}
				out := strings.TrimSuffix(file, filepath.Ext(file)) + ".out"
				if *update && dir == "testdata/err" {
					if err := os.WriteFile(out, got.Bytes(), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(out)
				if err != nil && dir == "testdata/err" {
					t.Fatal(err)
				}
				if dir == "testdata/err" && len(want) == 0 {
					t.Error("a fixture of errors has none")
				}
				if diff := cmp.Diff(string(want), got.String()); diff != "" {
					t.Errorf("want -, got +\n%s", diff)
				}
			})
		}
	}
}

func documents(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	for _, ext := range []string{"yaml", "yml", "json"} {
		found, err := filepath.Glob(filepath.Join(dir, "*."+ext))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		t.Fatalf("no fixtures in %s", dir)
	}
	return files
}
