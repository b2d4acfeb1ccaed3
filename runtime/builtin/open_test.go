package builtin

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/schemas"
	"github.com/open-multi-agent/oma/spec"
)

// box is an open set of tools over a folder named work in a temporary folder.
type box struct {
	t     *testing.T
	outer string // holds work
	dir   string
	tools map[string]runtime.Tool
}

// tree writes files below a folder; a text that starts with "-> " makes a link.
func tree(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(file), 0o755)
		if to, ok := strings.CutPrefix(files[name], "-> "); ok && err == nil {
			err = os.Symlink(to, file)
		} else if err == nil {
			err = os.WriteFile(file, []byte(files[name]), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// tempDir is a temporary folder without links in its name, as /tmp on macOS has.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func testOptions(dir string) Options {
	return Options{Dir: dir, Contained: true, Env: func(name string) (string, bool) {
		v, ok := map[string]string{"PATH": os.Getenv("PATH"), "HOME": "/home/u", "OPENAI_API_KEY": "sk-test"}[name]
		return v, ok
	}}
}

func openWith(t testing.TB, o Options) map[string]runtime.Tool {
	t.Helper()
	tools, closer, err := Open(o, Presets()["full"])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := closer.Close(); err != nil {
			t.Error(err)
		}
	})
	byName := map[string]runtime.Tool{}
	for _, tool := range tools {
		byName[tool.Name] = tool
	}
	return byName
}

func newBox(t *testing.T, files map[string]string) *box {
	t.Helper()
	outer := tempDir(t)
	dir := filepath.Join(outer, "work")
	tree(t, dir, files)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return &box{t: t, outer: outer, dir: dir, tools: openWith(t, testOptions(dir))}
}

// call passes a call through Normalise and Call, as a run does. An error of Normalise is an error result.
func call(tools map[string]runtime.Tool, name string, in map[string]any) spec.ToolResult {
	in = maps.Clone(in)
	if err := tools[name].Normalise(in); err != nil {
		return spec.ToolResult{Text: "refused: " + err.Error(), IsError: true}
	}
	return tools[name].Call(context.Background(), runtime.Invocation{Input: in})
}

func (b *box) call(name string, in map[string]any) spec.ToolResult {
	b.t.Helper()
	return call(b.tools, name, in)
}

// want runs a call and compares its text, and that it is no error.
func (b *box) want(name string, in map[string]any, text string) {
	b.t.Helper()
	r := b.call(name, in)
	if diff := cmp.Diff(text, r.Text); diff != "" || r.IsError {
		b.t.Errorf("%s %v: error %v\n%s", name, in, r.IsError, diff)
	}
}

// wantError runs a call that must fail with this in its text.
func (b *box) wantError(name string, in map[string]any, part string) {
	b.t.Helper()
	r := b.call(name, in)
	if !r.IsError || !strings.Contains(r.Text, part) {
		b.t.Errorf("%s %v: got error %v %q, want an error with %q", name, in, r.IsError, r.Text, part)
	}
}

func (b *box) wantFile(name, content string) {
	b.t.Helper()
	got, err := os.ReadFile(filepath.Join(b.outer, name))
	if err != nil || string(got) != content {
		b.t.Errorf("%s holds %q, %v; want %q", name, got, err, content)
	}
}

type in = map[string]any

func TestPresetsP1(t *testing.T) {
	want := map[string][]string{
		"readonly":  {"file_read", "grep", "glob"},
		"readwrite": {"file_read", "grep", "glob", "file_write", "file_edit"},
		"full":      {"file_read", "grep", "glob", "file_write", "file_edit", "bash"},
	}
	if diff := cmp.Diff(want, Presets()); diff != "" {
		t.Error(diff)
	}
}

// The schemas are what rules are typed from: closed, bounded, and with the defaults in them.
func TestInfos(t *testing.T) {
	type facts struct {
		Name                    string
		Consequential, ReadOnly bool
		Accepts, Refuses        string
	}
	for _, f := range []facts{
		{"file_read", false, true, `{"path":"a","offset":0,"limit":1}`, `{"path":"a","limit":0}`},
		{"file_write", true, false, `{"path":"a","content":""}`, `{"path":"a"}`},
		{"file_edit", true, false, `{"path":"a","old_string":"","new_string":"","replace_all":true}`, `{"path":"a","old_string":""}`},
		{"grep", false, true, `{"pattern":"x","path":".","glob":"*.go","maxResults":1}`, `{"pattern":"x","maxResults":0}`},
		{"glob", false, true, `{"pattern":"*","path":".","maxFiles":1}`, `{"path":"."}`},
		{"bash", true, false, `{"command":"ls","cwd":"a","timeout":600000}`, `{"command":"ls","timeout":0}`},
	} {
		i := slices.IndexFunc(Infos(), func(i spec.ToolInfo) bool { return i.Name == f.Name })
		info := Infos()[i]
		if info.Consequential != f.Consequential || info.ReadOnly != f.ReadOnly || info.Description == "" {
			t.Errorf("%+v", info)
		}
		v, err := schemas.Compile(info.InputSchema)
		if err != nil {
			t.Fatal(err)
		}
		if got := v.ValidateJSON([]byte(f.Accepts)); len(got) != 0 {
			t.Errorf("%s %s: %v", f.Name, f.Accepts, got)
		}
		for _, bad := range []string{f.Refuses, `{}`, `[]`, `{"other":1}`, strings.Replace(f.Accepts, "{", `{"other":1,`, 1)} {
			if len(v.ValidateJSON([]byte(bad))) == 0 {
				t.Errorf("%s accepts %s", f.Name, bad)
			}
		}
	}
}

// The descriptions name every folder that searches skip.
func TestInfosNameSkippedFolders(t *testing.T) {
	b := newBox(t, nil)
	for _, name := range []string{".git", ".svn", ".hg", "node_modules", ".next", "dist", "build"} {
		if !skipped(name, fs.ModeDir) {
			t.Errorf("%s is not skipped", name)
		}
		for _, tool := range []string{Grep, Glob} {
			if !strings.Contains(b.tools[tool].Description, " "+name) {
				t.Errorf("%s does not say that it skips %s", tool, name)
			}
		}
	}
}

// SH-18: what is no text never reaches a call; and if it did, nothing would run.
func TestBashInputSH18(t *testing.T) {
	b := newBox(t, nil)
	v, err := schemas.Compile(b.tools[Bash].InputSchema)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{`{"command":["ls","-l"]}`, `{"command":null}`, `{"command":""}`, `{}`, `{"command":"ls","timeout":-1}`} {
		if len(v.ValidateJSON([]byte(bad))) == 0 {
			t.Errorf("accepted %s", bad)
		}
	}
	b.want(Bash, in{"command": []any{"touch", "x"}}, "(command completed with no output)")
	b.want(Glob, in{"pattern": "*"}, "No files matched.")
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	tree(t, dir, map[string]string{"file": ""})
	for _, c := range []struct {
		o       Options
		granted string
		want    string
	}{
		{Options{Dir: "work"}, Grep, `working directory "work" is not absolute`},
		{Options{Dir: dir, Protected: []string{"x"}}, Grep, `protected path "x" is not absolute`},
		{Options{Dir: dir}, "file_raed", `"file_raed" is not a built-in tool`},
		{Options{Dir: dir + "/no", Contained: true}, Grep, "could not resolve working directory: no such file or directory"},
		{Options{Dir: dir + "/file", Contained: true}, Grep, "could not resolve working directory: not a directory"},
	} {
		tools, closer, err := Open(c.o, []string{c.granted})
		if err == nil || err.Error() != c.want || tools != nil || closer != nil {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
}

func TestOpenGivesGrantedOnly(t *testing.T) {
	tools, closer, err := Open(Options{Dir: t.TempDir(), Contained: true}, []string{Glob, FileRead, Glob})
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Name)
	}
	if diff := cmp.Diff([]string{FileRead, Glob}, names); diff != "" {
		t.Error(diff)
	}
}

// W5: a missing folder is made by the first write and by nothing else.
func TestMissingFolderW5(t *testing.T) {
	dir := filepath.Join(tempDir(t), "a", ".agent-workspace")
	o := testOptions(dir)
	o.Create = true
	b := &box{t: t, outer: filepath.Dir(dir), dir: dir, tools: openWith(t, o)}
	const missing = "could not resolve working directory: no such file or directory"
	b.wantError(FileRead, in{"path": "x"}, missing)
	b.wantError(FileEdit, in{"path": "x", "old_string": "a", "new_string": "b"}, missing)
	b.wantError(Grep, in{"pattern": "x"}, missing)
	b.wantError(Glob, in{"pattern": "x"}, missing)
	b.wantError(FileWrite, in{"path": "../x", "content": ""}, "outside the agent's working directory")
	b.wantError(FileWrite, in{"path": ".git/hooks/pre-commit", "content": ""}, "protected")
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Fatal("the folder was made too early", err)
	}
	b.want(FileWrite, in{"path": "x", "content": "hi"}, `Created "x" (1 line, 2 bytes).`)
	b.want(FileRead, in{"path": dir + "/x"}, "1\thi")
}

func TestClosedToolsRefuse(t *testing.T) {
	dir := t.TempDir()
	tree(t, dir, map[string]string{"a": "a"})
	tools, closer, err := Open(testOptions(dir), Presets()["full"])
	if err != nil {
		t.Fatal(err)
	}
	if err := closer.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools {
		r := tool.Call(t.Context(), runtime.Invocation{Input: in{"path": "a", "pattern": "a", "command": "ls", "content": "", "old_string": "a", "new_string": "b"}})
		if !r.IsError {
			t.Errorf("%s works after Close: %q", tool.Name, r.Text)
		}
	}
}

// Every tool returns at once under a context that has ended, and changes nothing.
func TestCancelled(t *testing.T) {
	b := newBox(t, map[string]string{"a": "a"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, input := range map[string]in{
		FileRead: {"path": "a"}, FileWrite: {"path": "a", "content": "b"}, FileEdit: {"path": "a", "old_string": "a", "new_string": "b"},
		Grep: {"pattern": "a"}, Glob: {"pattern": "*"}, Bash: {"command": "echo b > a"},
	} {
		r := b.tools[name].Call(ctx, runtime.Invocation{Input: input})
		if !r.IsError || r.Text != "Not run: context canceled." {
			t.Errorf("%s: %+v", name, r)
		}
	}
	b.wantFile("work/a", "a")
}
