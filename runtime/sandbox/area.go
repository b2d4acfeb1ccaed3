package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// area is the folders that commands may write. It is safe for concurrent use.
type area struct {
	mu      sync.Mutex
	folders []*folder // the agent's own first
}

// folder is one of them. Commands could put a link in its place, or in that of a folder above it: what it was when it was
// first looked at is all that it may be.
type folder struct {
	name string      // as declared
	real string      // without links; empty: not looked at yet
	info os.FileInfo // of real
}

func newArea(dir string, write []string) *area {
	names := append([]string{dir}, write...)
	for i := range names {
		names[i] = filepath.Clean(names[i])
	}
	a := &area{}
	for i, name := range names {
		nested := slices.IndexFunc(names, func(other string) bool { return other != name && inside(other, name) }) >= 0
		if i == 0 || !nested && !slices.Contains(names[:i], name) {
			a.folders = append(a.folders, &folder{name: name})
		}
	}
	return a
}

// declared looks at the folders that must be there from the start: all but the agent's own, which may be made later.
func (a *area) declared() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range a.folders[1:] {
		if err := f.look(); err != nil {
			return err
		}
	}
	if err := a.folders[0].look(); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// now gives the folders' paths without links.
func (a *area) now() ([]string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []string
	for _, f := range a.folders {
		if err := f.look(); err != nil {
			return nil, err
		}
		out = append(out, f.real)
	}
	return out, nil
}

func (f *folder) look() error {
	path := f.real
	if path == "" {
		var err error
		if path, err = filepath.EvalSymlinks(f.name); err != nil {
			return fmt.Errorf("folder %q: %w", f.name, cause(err))
		}
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("folder %q: %w", f.name, cause(err))
	case !info.IsDir():
		return fmt.Errorf("%q is not a folder", f.name)
	case path == "/":
		return fmt.Errorf("folder %q is the whole machine: nothing would be held", f.name)
	case f.info != nil && !os.SameFile(info, f.info):
		return fmt.Errorf("folder %q was moved: another folder has taken its place", f.name)
	}
	f.real, f.info = path, info
	return nil
}

// around gives the folder a path lies in, or "".
func (a *area) around(path string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	path = realPath(path)
	for _, f := range a.folders {
		if inside(realPath(f.name), path) {
			return f.name
		}
	}
	return ""
}

// reaches gives the first of some paths that commands may write, wholly or in part, or "".
func (a *area) reaches(paths []string) string {
	for _, path := range paths {
		if a.around(path) != "" {
			return path
		}
		for _, f := range a.folders {
			if inside(realPath(path), realPath(f.name)) {
				return path
			}
		}
	}
	return ""
}

// inside says whether path is dir or below it. Both are clean.
func inside(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// realPath resolves the links of the part of a path that exists.
func realPath(path string) string {
	path = filepath.Clean(path)
	for rest, at := "", path; ; rest, at = filepath.Join(filepath.Base(at), rest), filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		if at == filepath.Dir(at) {
			return path
		}
	}
}

// cause drops the system call and the path, which the message names.
func cause(err error) error {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return pe.Err
	}
	return err
}
