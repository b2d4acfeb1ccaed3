package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"

	"github.com/open-multi-agent/oma/runtime/builtin"
)

// stateDir is where runs are kept: outside every agent's folder unless somebody moves it. --state wins over
// OMA_STATE, and both over the default, which is one folder for each project.
func (a *app) stateDir(flag, project string) (string, error) {
	dir := flag
	if dir == "" {
		dir = a.getenv("OMA_STATE")
	}
	if dir != "" {
		return filepath.Abs(dir)
	}
	base := a.getenv("XDG_STATE_HOME")
	if base == "" || !filepath.IsAbs(base) {
		home := a.getenv("HOME")
		if home == "" {
			return "", usage("there is no HOME and no XDG_STATE_HOME: say where runs are kept with --state DIR")
		}
		base = filepath.Join(home, ".local", "state")
	}
	sum := sha256.Sum256([]byte(project))
	return filepath.Join(base, "oma", hex.EncodeToString(sum[:8])), nil
}

// below says whether a path lies in a folder, links resolved as far as the path exists.
func below(path, dir string) bool {
	rel, err := filepath.Rel(builtin.Resolve(dir), builtin.Resolve(path))
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
