package loader

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/open-multi-agent/oma/schemas"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// lock reads the lock beside the team file, if the team has servers for it. The program writes it and nobody edits it, so
// it is read as JSON alone and problems in it have no line.
func (f *follower) lock() {
	if len(f.bundle.Team.MCPServers) == 0 {
		return
	}
	path := filepath.Join(f.dir, spec.LockName)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return
	}
	data, problem := readFile(path)
	if problem != nil {
		problem.File = spec.LockName
		f.ds = append(f.ds, *problem)
		return
	}
	l, ds := lockOf(data)
	for i := range ds {
		ds[i].File = spec.LockName
	}
	if f.ds = append(f.ds, ds...); l != nil {
		f.bundle.Lock = &spec.LockFile{File: spec.File{Path: spec.LockName, Digest: canon.Text("file", data), Text: string(data)}, Lock: l}
	}
}

// lockOf decodes a lock. Whether its digests fit is for others to say.
func lockOf(data []byte) (*spec.Lock, spec.Diagnostics) {
	var ds spec.Diagnostics
	damaged := func(at spec.Path, format string, args ...any) (*spec.Lock, spec.Diagnostics) {
		ds.Errorf("mcp-lock", at, format, args...).Hint = "put the file back, or delete it and run oma mcp lock"
		return nil, ds
	}
	if err := canon.Check(data); err != nil {
		return damaged("", "the lock is damaged: %v", err)
	}
	var doc any
	if err := json.Unmarshal(data, &doc); err != nil {
		return damaged("", "the lock is damaged: %v", err)
	}
	if m, ok := doc.(map[string]any); ok && m["kind"] == spec.KindLock && m["apiVersion"] != spec.APIVersion {
		return damaged("apiVersion", "the lock is of apiVersion %s, want %s", shown(m["apiVersion"]), spec.APIVersion)
	}
	for _, v := range schemas.Check(spec.KindLock, doc) {
		return damaged(v.Path, "the lock is damaged: %s", v.Message)
	}
	var l spec.Lock
	if err := json.Unmarshal(data, &l); err != nil {
		return damaged("", "the lock is damaged: %v", err)
	}
	return &l, nil
}
