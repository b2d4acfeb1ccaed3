package loader

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/open-multi-agent/oma/spec"
)

const lockedTeam = `apiVersion: oma/v1
kind: Team
name: t
goal: g
agents:
  - name: a
mcpServers:
  s: {command: server}
`

func TestLockBesideTheTeam(t *testing.T) {
	const good = `{"apiVersion":"oma/v1","kind":"Lock","servers":{"s":{"tools":[{"name":"x","inputSchema":{"type":"object"},"digest":"sha256:0"}]}}}`
	for name, test := range map[string]struct{ text, want string }{
		"good":          {good, ""},
		"empty":         {"", "the lock is damaged: not valid JSON"},
		"half":          {good[:40], "the lock is damaged: not valid JSON"},
		"a merge":       {"<<<<<<< ours\n" + good, "the lock is damaged: not valid JSON"},
		"other kind":    {strings.Replace(good, `"Lock"`, `"Plan"`, 1), "the lock is damaged: "},
		"other version": {strings.Replace(good, `oma/v1`, `oma/v9`, 1), `the lock is of apiVersion "oma/v9", want oma/v1`},
		"twice":         {`{"apiVersion":"oma/v1","kind":"Lock","servers":{"s":{"tools":[]},"s":{"tools":[]}}}`, "the lock is damaged: "},
		"no digest":     {strings.Replace(good, `,"digest":"sha256:0"`, "", 1), "the lock is damaged: "},
		"no servers":    {`{"apiVersion":"oma/v1","kind":"Lock"}`, "the lock is damaged: "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, spec.LockName), []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			l, ds := TeamBytes("t.yaml", dir, []byte(lockedTeam))
			if test.want == "" {
				if len(ds) > 0 || l.Bundle.Lock == nil || l.Bundle.Lock.Lock.Servers["s"].Tools[0].Name != "x" || l.Bundle.Lock.Digest == "" {
					t.Errorf("got %+v, %v", l.Bundle.Lock, ds)
				}
				return
			}
			if len(ds) != 1 || ds[0].Code != "mcp-lock" || ds[0].File != spec.LockName || !strings.HasPrefix(ds[0].Message, test.want) || ds[0].Hint == "" || l.Bundle.Lock != nil {
				t.Errorf("got %+v", ds)
			}
		})
	}
}

// A lock is looked for where there are servers alone, and only beside the team file.
func TestLockIsNotNeeded(t *testing.T) {
	dir := t.TempDir()
	if l, ds := TeamBytes("t.yaml", dir, []byte(lockedTeam)); len(ds) > 0 || l.Bundle.Lock != nil {
		t.Errorf("got %v", ds)
	}
	if err := os.WriteFile(filepath.Join(dir, spec.LockName), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	without, _, _ := strings.Cut(lockedTeam, "mcpServers")
	if l, ds := TeamBytes("t.yaml", dir, []byte(without)); len(ds) > 0 || l.Bundle.Lock != nil {
		t.Errorf("got %v", ds)
	}
	if err := os.Remove(filepath.Join(dir, spec.LockName)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, spec.LockName), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, ds := TeamBytes("t.yaml", dir, []byte(lockedTeam)); len(ds) != 1 || ds[0].Code != "file-not-regular" {
		t.Errorf("got %v", ds)
	}
}
