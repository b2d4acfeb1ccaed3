package main

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/schemas"
	"github.com/open-multi-agent/oma/spec"
)

//go:embed templates
var templates embed.FS

func (a *app) initCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a team that runs at once without a key, and a CI job for it",
		Long: "Init writes team.yaml, the cassette that team plays, a test of its rules, the schemas editors complete by, and a\n" +
			"GitHub job that tests, runs and gates the team. A file that is there is kept as it is, whatever it holds; when all are there, init ends 2.",
		Args: argsAtMost(1, "one folder"),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			return a.init(dir, output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, json or yaml")
	return cmd
}

// started is the document init prints. Paths are relative to Dir.
type started struct {
	Dir     string   `json:"dir"`
	Written []string `json:"written"`
	Kept    []string `json:"kept"` // existed before
}

func (a *app) init(dir, output string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return usage("%s is no folder", dir)
	}
	files, err := starterFiles()
	if err != nil {
		return err
	}
	s := started{Dir: dir, Written: []string{}, Kept: []string{}}
	for _, f := range files {
		switch err := writeNew(filepath.Join(dir, filepath.FromSlash(f.path)), f.data); {
		case errors.Is(err, fs.ErrExist):
			s.Kept = append(s.Kept, f.path)
		case err != nil:
			return fmt.Errorf("%s cannot be written: %w", f.path, err)
		default:
			s.Written = append(s.Written, f.path)
		}
	}
	if err := a.print(output, s, s.text); err != nil {
		return err
	}
	if len(s.Written) == 0 {
		a.say("nothing was written: every file is there already")
		return ended(runtime.ExitUsage)
	}
	fmt.Fprintln(a.stderr, "next: oma run "+filepath.Join(dir, "team.yaml"))
	return nil
}

func (s started) text(w io.Writer) {
	for _, path := range s.Written {
		fmt.Fprintln(w, "written "+filepath.Join(s.Dir, path))
	}
	for _, path := range s.Kept {
		fmt.Fprintln(w, "kept    "+filepath.Join(s.Dir, path))
	}
}

// starterFile is a file of a new team. path is relative to its folder, with slashes.
type starterFile struct {
	path string
	data []byte
}

// starterFiles gives the files in the order in which they are best read.
func starterFiles() ([]starterFile, error) {
	files := []starterFile{{path: "team.yaml"}, {path: "cassettes/team.yaml"}, {path: "team.test.yaml"}, {path: ".github/workflows/oma.yml"}}
	for i, from := range []string{"team.yaml", "cassettes/team.yaml", "team.test.yaml", "workflow.yml"} {
		b, err := templates.ReadFile("templates/" + from)
		if err != nil {
			return nil, err
		}
		files[i].data = b
	}
	for _, s := range []struct{ kind, name string }{{spec.KindTeam, "team"}, {spec.KindPolicy, "policy"}, {spec.KindPolicyTest, "policytest"}, {spec.KindCassette, "cassette"}} {
		b, ok := schemas.Get(s.kind)
		if !ok {
			return nil, fmt.Errorf("there is no schema of kind %s", s.kind)
		}
		files = append(files, starterFile{".oma/schema/" + s.name + ".json", b})
	}
	return files, nil
}

// writeNew makes a file, with its folders, and leaves one that exists alone, a link included: fs.ErrExist.
func writeNew(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(path) // half a file would be kept by the next init
	}
	return err
}
