package builtin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// place is where a path leads, with every link on the way resolved. The folder is held open and was reached through
// folders only, so what happens in it does not depend on names any more: nobody can put a link in the way.
type place struct {
	dir     *os.Root      // the deepest folder on the way that exists
	missing []string      // folders between dir and base that do not exist
	base    string        // the last element; "." for the top itself
	name    string        // below the top, without links
	info    fs.FileInfo   // of base, which is no link; nil: it does not exist
	trail   []fs.FileInfo // of every folder from the top down, and of base
}

func (p *place) close() { p.dir.Close() }

// maxHops bounds the links, and the steps up in links, that one path may take.
const maxHops = 100

// locate follows a name below the top to its end. The caller closes the place.
func (w *workspace) locate(name string) (*place, error) {
	for range maxHops {
		p, next, err := w.descend(name)
		if err != nil {
			return nil, err
		}
		if next == "" {
			return p, nil
		}
		name = next
	}
	return nil, errors.New("too many links")
}

// descend goes down until the end of the name, something that does not exist, or a link. For a link it gives the name
// to start over with: the link replaced by its target. Steps up (..) are taken only where no link is left before them,
// as the system does it.
func (w *workspace) descend(name string) (_ *place, next string, err error) {
	dir, err := w.top.OpenRoot(".")
	if err != nil {
		return nil, "", cause(err)
	}
	p := &place{dir: dir, base: ".", name: "."}
	defer func() {
		if err != nil || next != "" {
			p.close()
		}
	}()
	if p.info, err = dir.Stat("."); err != nil {
		return p, "", cause(err)
	}
	p.trail = append(p.trail, p.info)
	for parts := elements(name); len(parts) > 0; parts = parts[1:] {
		if err = p.enter(); err != nil {
			return p, "", err
		}
		if parts[0] == ".." {
			next, err = w.up(p.name, parts[1:])
			return p, next, err
		}
		p.base, p.name = parts[0], path.Join(p.name, parts[0])
		p.info, err = p.dir.Lstat(p.base)
		if errors.Is(err, fs.ErrNotExist) {
			err = p.pending(parts)
			return p, "", err
		}
		if err != nil {
			return p, "", cause(err)
		}
		if p.info.Mode()&fs.ModeSymlink != 0 {
			next, err = w.target(p, parts[1:])
			return p, next, err
		}
		p.trail = append(p.trail, p.info)
	}
	return p, "", nil
}

func elements(name string) []string {
	return slices.DeleteFunc(strings.Split(name, "/"), func(e string) bool { return e == "" || e == "." })
}

// enter opens base, which must be the very folder that was looked at: OpenRoot would follow a link that has taken its
// place since.
func (p *place) enter() error {
	if p.base == "." {
		return nil
	}
	if !p.info.IsDir() {
		return fmt.Errorf("%q is not a folder", p.base)
	}
	return p.into(p.base, p.info)
}

func (p *place) into(name string, want fs.FileInfo) error {
	sub, err := p.dir.OpenRoot(name)
	if err != nil {
		return cause(err)
	}
	got, err := sub.Stat(".")
	if err == nil && !os.SameFile(got, want) {
		err = fmt.Errorf("%q changed while it was being opened", name)
	}
	if err != nil {
		sub.Close()
		return cause(err)
	}
	p.dir.Close()
	p.dir = sub
	return nil
}

// pending fills in a place whose rest does not exist.
func (p *place) pending(rest []string) error {
	if slices.Contains(rest, "..") {
		return fs.ErrNotExist
	}
	last := len(rest) - 1
	p.missing, p.base, p.info = rest[:last], rest[last], nil
	p.name = path.Join(append([]string{path.Dir(p.name)}, rest...)...)
	return nil
}

// target gives the name that a link leads to, followed by the rest.
func (w *workspace) target(p *place, rest []string) (string, error) {
	to, err := p.dir.Readlink(p.base)
	if err != nil {
		return "", cause(err)
	}
	if filepath.IsAbs(to) {
		if to, err = w.below(filepath.Clean(to)); err != nil {
			return "", fmt.Errorf("%q is %w", w.display(p.name), err)
		}
		return raw(to, rest), nil
	}
	return raw(path.Dir(p.name)+"/"+filepath.ToSlash(to), rest), nil
}

// up gives the name one step above a folder, followed by the rest. Above the top it must come back in by the names of
// the folders the top lies in.
func (w *workspace) up(dir string, rest []string) (string, error) {
	if dir != "." {
		return raw(path.Dir(dir), rest), nil
	}
	return w.below(filepath.Join(append([]string{w.absolute("."), ".."}, rest...)...))
}

// raw joins without cleaning: what a .. undoes is known only when the links before it are resolved.
func raw(dir string, rest []string) string {
	s := dir
	for _, e := range rest {
		s += "/" + e
	}
	return s
}

// makeFolders makes the missing folders, one by one through the folder held, and then holds the last one.
func (p *place) makeFolders() error {
	for _, name := range p.missing {
		if err := p.dir.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return cause(err)
		}
		info, err := p.dir.Lstat(name)
		if err != nil {
			return cause(err)
		}
		if !info.IsDir() {
			return fmt.Errorf("%q is not a folder", name)
		}
		if err := p.into(name, info); err != nil {
			return err
		}
	}
	p.missing = nil
	return nil
}
