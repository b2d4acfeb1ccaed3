package main

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// The variable that names the hidden environment is believed only with the file that hideSecrets makes, and only
// where nothing but what it keeps stands beside it. A file that is somebody else's stays open and unread.
func TestHiddenEnvironment(t *testing.T) {
	list := []byte(`["GATEWAY_KEY=sk-1","EMPTY="]`)
	memory := func(name string) func(t *testing.T) int {
		return func(t *testing.T) int {
			fd, err := memoryFile(name, list)
			if err != nil {
				t.Skip(err)
			}
			return fd
		}
	}
	file := func(t *testing.T) int {
		path := filepath.Join(t.TempDir(), "memfd:oma-environment")
		if err := os.WriteFile(path, list, 0o600); err != nil {
			t.Fatal(err)
		}
		fd, err := unix.Open(path, unix.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		return fd
	}
	want := map[string]string{"GATEWAY_KEY": "sk-1", "EMPTY": ""}
	for name, c := range map[string]struct {
		open   func(*testing.T) int
		beside []string
		want   map[string]string
	}{
		"ours":           {memory("environment"), []string{"PATH=/bin", "HOME=/"}, want},
		"ours, alone":    {memory("environment"), nil, want},
		"beside a key":   {memory("environment"), []string{"PATH=/bin", "GATEWAY_KEY=sk-2"}, nil},
		"another memory": {memory("stdin"), []string{"PATH=/bin"}, nil},
		"a file":         {file, []string{"PATH=/bin"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			fd := c.open(t)
			got := hiddenEnvironment(append(c.beside, environmentFD+"="+strconv.Itoa(fd)))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if c.want != nil {
				return
			}
			if at, err := unix.Seek(fd, 0, 1); err != nil || at != 0 {
				t.Errorf("the file was touched: at %d, %v", at, err)
			}
			unix.Close(fd)
		})
	}
	for _, value := range []string{"", "-1", "x", "9999"} {
		if got := hiddenEnvironment([]string{environmentFD + "=" + value}); got != nil {
			t.Errorf("descriptor %q: %v", value, got)
		}
	}
	if got := hiddenEnvironment([]string{"PATH=/bin"}); got != nil {
		t.Errorf("no variable: %v", got)
	}
}
