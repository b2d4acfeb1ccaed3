package builtin

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

const (
	// maxDepth bounds the folders open at a time: one file descriptor each.
	maxDepth = 100
	// maxEntries bounds one folder: its names are sorted in memory.
	maxEntries = 200_000
)

// errStop ends a walk early, without error.
var errStop = errors.New("stop")

// walker visits what lies below a folder, in byte order of the paths. It follows no link and skips
// what skipped names.
type walker struct {
	ctx context.Context
	// gitignore honours .gitignore files and leaves out files that are being written.
	gitignore bool
	// visit gets everything but folders. name is below the top. The folder is open during the call only.
	visit func(dir *os.Root, e fs.DirEntry, name string) error
	// omit hears of what is left out for a reason of its own. nil: nobody asks.
	omit func(e fs.DirEntry, name string, why reason)

	// What could not be visited, for the caller to say.
	unreadable, tooDeep, tooMany int

	buf bytes.Buffer
}

// walk goes through an open folder. rules are those of the folders above it.
func (w *walker) walk(dir *os.Root, name string, rules *ignoreFile, depth int) error {
	if w.gitignore {
		rules = rules.with(dir, name, &w.buf)
	}
	return w.through(dir, name, rules, depth)
}

// through is walk with the folder's own rules among the rules.
func (w *walker) through(dir *os.Root, name string, rules *ignoreFile, depth int) error {
	entries, err := w.list(dir)
	if err != nil {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		w.unreadable++
		return nil
	}
	for _, e := range entries {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		child := path.Join(name, e.Name())
		why := w.reason(e, child, rules)
		switch {
		case why != notOmitted:
			if w.omit != nil {
				w.omit(e, child, why)
			}
		case e.IsDir():
			err = w.enter(dir, e.Name(), child, rules, depth+1)
		default:
			err = w.visit(dir, e, child)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) reason(e fs.DirEntry, name string, rules *ignoreFile) reason {
	switch {
	case skipped(e.Name(), e.Type()):
		return byName
	case !w.gitignore:
		return notOmitted
	case e.Type().IsRegular() && strings.HasPrefix(e.Name(), tempPrefix):
		return unfinished
	case rules.ignored(name, e.IsDir()):
		return byRule
	}
	return notOmitted
}

func (w *walker) enter(dir *os.Root, base, name string, rules *ignoreFile, depth int) error {
	if depth > maxDepth {
		w.tooDeep++
		return nil
	}
	sub, err := dir.OpenRoot(base)
	if err != nil {
		w.unreadable++
		return nil
	}
	defer sub.Close()
	return w.walk(sub, name, rules, depth)
}

// list gives the sorted entries of a folder, none if there are too many.
func (w *walker) list(dir *os.Root) ([]fs.DirEntry, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []fs.DirEntry
	for {
		some, err := f.ReadDir(1024)
		all = append(all, some...)
		if len(all) > maxEntries {
			w.tooMany++
			return nil, nil
		}
		if err == io.EOF {
			break
		}
		if err = errors.Join(err, w.ctx.Err()); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(sortKey(a), sortKey(b)) })
	return all, nil
}

// sortKey makes the order that of whole paths: b-a comes before b/z.
func sortKey(e fs.DirEntry) string {
	if e.IsDir() {
		return e.Name() + "/"
	}
	return e.Name()
}
