package builtin

import (
	"errors"
	"github.com/open-multi-agent/oma/runtime"
	"os"
	"path/filepath"
	"testing"
)

func TestProtectedN2(t *testing.T) {
	b := newBox(t, map[string]string{
		"team.yaml": "kind: Team", "prompts/a.md": "p", ".git/config": "c", "sub/.git/config": "c", "ok.txt": "ok",
		"gitlink": "-> .git", "teamlink": "-> team.yaml", "sub/uplink": "-> ../prompts", "../state/approvals": "rows",
	})
	if err := os.Link(b.dir+"/team.yaml", b.dir+"/hard.yaml"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(b.dir, b.outer+"/alias"); err != nil {
		t.Fatal(err)
	}
	o := testOptions(b.dir)
	// The receipt does not exist yet; the prompts are named through a link to the agent's own folder.
	o.Protected = []string{b.dir + "/team.yaml", b.outer + "/alias/prompts/", b.dir + "/out/receipt.json", b.outer + "/state"}
	b.tools = openWith(t, o)
	for _, p := range []string{
		".git/config", ".git/hooks/pre-commit", ".GIT/config", ".//.git/config", "x/./../.git/config", "sub/.git/config", "sub/.git/HEAD", ".git",
		"gitlink/config", "new/.git/x", ".git./config", ".git /config", ".g\u200cit/config", "git~1/config", ".git::$INDEX_ALLOCATION/config",
		"team.yaml", "TEAM.yaml", "teamlink", "hard.yaml", b.dir + "/team.yaml", "prompts/a.md", "prompts/new.md", "sub/uplink/a.md",
		"out/receipt.json", "OUT/Receipt.json", "out", "out/receipt.json/x",
	} {
		for tool, input := range map[string]in{FileWrite: {"path": p, "content": "evil"}, FileEdit: {"path": p, "old_string": "c", "new_string": "evil"}} {
			if err := b.tools[tool].Normalise(input); !errors.Is(err, runtime.ErrProtected) {
				t.Errorf("%s %q: Normalise gives %v, want ErrProtected", tool, p, err)
			}
		}
	}
	b.wantFile("work/team.yaml", "kind: Team")
	b.wantFile("work/.git/config", "c")
	for _, p := range []string{"ok.txt", ".github/x.yml", ".gitignore", "out/other.json", "team.yaml.bak", "promptsx", "git", "state/x"} {
		if r := b.call(FileWrite, in{"path": p, "content": "ok"}); r.IsError {
			t.Errorf("%q: %s", p, r.Text)
		}
	}
	b.want(FileRead, in{"path": ".git/config"}, "1\tc") // reading is not restricted
}

// The call looks again: a link may have come since the call was judged.
func TestProtectedAtTheCall(t *testing.T) {
	b := newBox(t, map[string]string{".git/config": "c", "docs/config": "d"})
	input := in{"path": "docs/config", "content": "evil"}
	if err := b.tools[FileWrite].Normalise(input); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.RemoveAll(b.dir+"/docs"), os.Symlink(".git", b.dir+"/docs")); err != nil {
		t.Fatal(err)
	}
	if r := b.call(FileWrite, input); !r.IsError {
		t.Error(r.Text)
	}
	b.wantFile("work/.git/config", "c")
}

func TestFolderInsideProtected(t *testing.T) {
	state := filepath.Join(tempDir(t), "state")
	tree(t, state, map[string]string{"x": ""})
	o := testOptions(filepath.Join(state, "agent"))
	o.Create, o.Protected = true, []string{state}
	b := &box{t: t, tools: openWith(t, o)}
	b.wantError(FileWrite, in{"path": "a", "content": ""}, "protected")
	b.wantError(Bash, in{"command": "true"}, "protected")
	if _, err := os.Lstat(o.Dir); !os.IsNotExist(err) {
		t.Error("the folder was made", err)
	}
}
