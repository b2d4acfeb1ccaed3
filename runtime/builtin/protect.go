package builtin

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/open-multi-agent/oma/runtime"
)

// protectedForms gives the spellings of a protected path: as declared, and with links resolved as far as it exists.
func protectedForms(abs string) []string {
	abs = filepath.Clean(abs)
	if real := Resolve(abs); real != abs {
		return []string{abs, real}
	}
	return []string{abs}
}

// Resolve follows the links of the longest part of an absolute path that exists.
func Resolve(abs string) string {
	for dir, rest := abs, ""; ; {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return abs
		}
		dir, rest = parent, filepath.Join(filepath.Base(dir), rest)
	}
}

// writable refuses a protected place. It asks twice: by the names, in any letter case since the disk may fold it, and
// by what the disk says is the same file or folder.
func (w *workspace) writable(p *place) error {
	if err := w.writableName(w.absolute(p.name), w.display(p.name)); err != nil {
		return err
	}
	if slices.ContainsFunc(w.protected, p.passes) {
		return fmt.Errorf("%q is %w: it judges or records this run", w.display(p.name), runtime.ErrProtected)
	}
	return nil
}

// writableName judges an absolute path by its letters alone.
func (w *workspace) writableName(abs, shown string) error {
	if slices.ContainsFunc(elements(shown), isGit) {
		return fmt.Errorf("%q is %w: no tool writes below .git", shown, runtime.ErrProtected)
	}
	for _, form := range w.protected {
		// A file in the place of a folder on the way to form would keep form from ever being written.
		if within(abs, form) || within(form, abs) {
			return fmt.Errorf("%q is %w: it judges or records this run", shown, runtime.ErrProtected)
		}
	}
	return nil
}

// passes says whether the place is the file or folder with this absolute path, or lies below it.
func (p *place) passes(abs string) bool {
	info, err := os.Stat(abs)
	return err == nil && slices.ContainsFunc(p.trail, func(on fs.FileInfo) bool { return os.SameFile(on, info) })
}

// creatable refuses to make the agent's folder inside a protected one.
func (w *workspace) creatable() error {
	for _, form := range w.protected {
		if within(w.base, form) || within(Resolve(w.base), form) {
			return fmt.Errorf("the working directory is %w: it lies in what judges or records this run", runtime.ErrProtected)
		}
	}
	return nil
}

func within(p, dir string) bool {
	if len(p) < len(dir) || !strings.EqualFold(p[:len(dir)], dir) {
		return false
	}
	return len(p) == len(dir) || os.IsPathSeparator(p[len(dir)]) || os.IsPathSeparator(dir[len(dir)-1])
}

// isGit knows .git also as disks of macOS and Windows do: any case, invisible characters dropped, trailing dots and
// spaces dropped, and by its short name.
func isGit(element string) bool {
	s := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, element)
	s, _, _ = strings.Cut(s, ":") // a stream of NTFS
	s = strings.TrimRight(s, ". ")
	return s == ".git" || s == "git~1"
}

// kind says what something is that is no regular file.
func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m&fs.ModeSymlink != 0:
		return "a link"
	}
	return "no regular file"
}
