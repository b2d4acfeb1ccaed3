package builtin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// ErrOutside marks a path that is not below the agent's folder, or leads out of it through a link.
var ErrOutside = errors.New("outside the agent's working directory")

// errNoRoot marks a folder that does not exist yet and that this tool does not create.
var errNoRoot = errors.New("could not resolve working directory")

// workspace turns what a model wrote into places below one open folder, the top. Contained, the top is the agent's
// folder; else it is the root of the file system, and the agent's folder is where relative paths start.
//
// Three forms of a path occur. A *given* path is what the model wrote. A *shown* path is what rules, receipts and
// results see: cleaned, with /, relative to the agent's folder, and absolute only if it is not below it. A *name* is
// relative to the top.
type workspace struct {
	base      string // the agent's folder as declared, absolute and clean
	contained bool
	create    bool // the first write may make base
	protected []string

	mu   sync.Mutex // guards what follows, which is set when the folder is opened
	top  *os.Root   // nil: the folder does not exist yet
	real string     // base without links; empty while top is nil
}

func newWorkspace(o Options) (*workspace, error) {
	if !filepath.IsAbs(o.Dir) {
		return nil, fmt.Errorf("working directory %q is not absolute", o.Dir)
	}
	w := &workspace{base: filepath.Clean(o.Dir), contained: o.Contained, create: o.Create}
	for _, p := range o.Protected {
		if !filepath.IsAbs(p) {
			return nil, fmt.Errorf("protected path %q is not absolute", p)
		}
		w.protected = append(w.protected, protectedForms(p)...)
	}
	err := w.open(false)
	if errors.Is(err, errNoRoot) && o.Create {
		return w, nil
	}
	return w, err
}

// open finds the folder, once. With write it makes a missing folder if it may. Afterwards top and real do not change.
func (w *workspace) open(write bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.top != nil {
		return nil
	}
	if write && w.create {
		if err := w.creatable(); err != nil {
			return err
		}
		if err := os.MkdirAll(w.base, 0o755); err != nil {
			return fmt.Errorf("could not create working directory: %w", cause(err))
		}
	}
	real, err := filepath.EvalSymlinks(w.base)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoRoot, cause(err))
	}
	top, err := os.OpenRoot(real) // also uncontained: base must be a folder
	if err != nil {
		return fmt.Errorf("%w: %w", errNoRoot, cause(err))
	}
	if !w.contained {
		top.Close()
		if top, err = os.OpenRoot(volume(real)); err != nil {
			return fmt.Errorf("%w: %w", errNoRoot, cause(err))
		}
	}
	w.top, w.real = top, real
	return nil
}

// volume is the root of the file system that holds an absolute path.
func volume(abs string) string { return filepath.VolumeName(abs) + string(filepath.Separator) }

func (w *workspace) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.top == nil {
		return nil
	}
	return w.top.Close()
}

// shown cleans a given path, by its letters only. It is what Normalise puts in its place.
func (w *workspace) shown(given string) (string, error) {
	if given == "" {
		return "", errors.New("path is empty")
	}
	if strings.ContainsRune(given, 0) {
		return "", fmt.Errorf("path %q holds a NUL", given)
	}
	abs := filepath.Clean(given)
	if !filepath.IsAbs(abs) {
		abs = filepath.Join(w.base, given)
	}
	if rel, ok := w.relative(abs); ok {
		return rel, nil
	}
	if w.contained {
		return "", fmt.Errorf("%q is %w", given, ErrOutside)
	}
	return filepath.ToSlash(abs), nil
}

// relative gives an absolute path below the agent's folder, in either of its spellings.
func (w *workspace) relative(abs string) (string, bool) {
	w.mu.Lock()
	real := w.real
	w.mu.Unlock()
	for _, dir := range []string{w.base, real} {
		if dir == "" {
			continue
		}
		if rel, err := filepath.Rel(dir, abs); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel), true
		}
	}
	return "", false
}

// below gives an absolute path as a name below the top.
func (w *workspace) below(abs string) (string, error) {
	if w.contained {
		rel, ok := w.relative(abs)
		if !ok {
			return "", fmt.Errorf("a link to %w", ErrOutside)
		}
		return rel, nil
	}
	rel, err := filepath.Rel(volume(w.real), abs)
	if err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("a path %w", ErrOutside)
	}
	return filepath.ToSlash(rel), nil
}

// name gives a given path as a name below the top. The workspace is open.
func (w *workspace) name(given string) (string, error) {
	shown, err := w.shown(given)
	if err != nil || w.contained {
		return shown, err
	}
	if filepath.IsAbs(filepath.FromSlash(shown)) {
		return w.below(filepath.FromSlash(shown))
	}
	return w.below(filepath.Join(w.real, shown))
}

// absolute gives a name below the top as an absolute path.
func (w *workspace) absolute(name string) string {
	if w.contained {
		return filepath.Join(w.real, filepath.FromSlash(name))
	}
	return filepath.Join(volume(w.real), filepath.FromSlash(name))
}

// display gives a name below the top in its shown form.
func (w *workspace) display(name string) string {
	if w.contained {
		return name
	}
	abs := w.absolute(name)
	if rel, ok := w.relative(abs); ok {
		return rel
	}
	return filepath.ToSlash(abs)
}

// home is the agent's folder as a name below the top.
func (w *workspace) home() string {
	if w.contained {
		return "."
	}
	name, err := w.below(w.real)
	if err != nil {
		return "."
	}
	return name
}

// sameFolder says whether the path still leads to the folder that is open. bash starts by path, the file tools hold
// the folder itself; when somebody moved one of them, they would work on different files.
func sameFolder(held *os.Root, abs string) error {
	a, err := held.Stat(".")
	if err != nil {
		return cause(err)
	}
	b, err := os.Stat(abs)
	if err != nil {
		return cause(err)
	}
	if !os.SameFile(a, b) {
		return errors.New("another folder has taken its place")
	}
	return nil
}

// cause drops the operation and the path from an error of package os: the caller names the path in its own form.
func cause(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	if le, ok := errors.AsType[*os.LinkError](err); ok {
		return le.Err
	}
	return err
}
