package builtin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// TreeLimits bound a tree digest. A zero field takes the default.
type TreeLimits struct {
	Files int   // files and links; default 500,000
	Bytes int64 // content, all files together; default 8 GiB
	// Skip are absolute files and folders that are left out: what the run itself writes meanwhile.
	Skip []string
}

// TreeDigest says what a folder holds, as evidence that nothing changed between two moments: the names of all files,
// whether they are executable, their content, and the targets of links. It follows no link, and leaves out empty
// folders and what searches skip: .git, .svn, .hg, node_modules, .next, dist and build. A missing folder is an empty
// one. Anything that cannot be read, and a folder over the limits, is an error: no digest stands for a part.
func TreeDigest(ctx context.Context, dir string, limits TreeLimits) (string, error) {
	if limits.Files == 0 {
		limits.Files = 500_000
	}
	if limits.Bytes == 0 {
		limits.Bytes = 8 << 30
	}
	d := &treeDigest{sum: sha256.New(), one: sha256.New(), limits: limits, ctx: ctx, copyBuf: make([]byte, 64<<10)}
	io.WriteString(d.sum, "oma/v1 tree\n")
	root, err := os.OpenRoot(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d.String(), ctx.Err()
	case err != nil:
		return "", fmt.Errorf("tree digest: %w", cause(err))
	}
	defer root.Close()
	d.skip = namesBelow(dir, limits.Skip)
	w := walker{ctx: ctx, visit: d.add}
	err = w.walk(root, ".", nil, 0)
	if err == nil && w.unreadable+w.tooDeep+w.tooMany > 0 {
		err = fmt.Errorf("%d folders could not be read, %d are deeper than %d levels, %d have more than %d entries",
			w.unreadable, w.tooDeep, maxDepth, w.tooMany, maxEntries)
	}
	if err != nil {
		return "", fmt.Errorf("tree digest: %w", err)
	}
	return d.String(), nil
}

type treeDigest struct {
	ctx     context.Context
	limits  TreeLimits
	sum     hash.Hash // of all records
	one     hash.Hash // of one file
	skip    []string  // names below the folder
	files   int
	bytes   int64
	copyBuf []byte
}

func (d *treeDigest) String() string { return "sha256:" + hex.EncodeToString(d.sum.Sum(nil)) }

// namesBelow gives the paths that lie in a folder, as names below it, links on the way resolved.
func namesBelow(dir string, paths []string) []string {
	var names []string
	for _, p := range paths {
		for _, base := range []string{dir, Resolve(dir)} {
			for _, path := range []string{p, Resolve(p)} {
				if rel, err := filepath.Rel(base, path); err == nil && filepath.IsLocal(rel) {
					names = append(names, filepath.ToSlash(rel))
				}
			}
		}
	}
	return names
}

func (d *treeDigest) skipped(name string) bool {
	return slices.ContainsFunc(d.skip, func(s string) bool { return name == s || strings.HasPrefix(name, s+"/") })
}

// add hashes one record. Every part has a length before it or a fixed one, so that no two trees give one text.
func (d *treeDigest) add(dir *os.Root, e fs.DirEntry, name string) error {
	if d.skipped(name) {
		return nil
	}
	if d.files++; d.files > d.limits.Files {
		return fmt.Errorf("more than %d files", d.limits.Files)
	}
	kind, content := "other", []byte(nil)
	var err error
	switch {
	case e.Type().IsRegular():
		kind, content, err = d.file(dir, e.Name())
	case e.Type()&fs.ModeSymlink != 0:
		var target string
		kind = "link"
		target, err = dir.Readlink(e.Name())
		content = []byte(filepath.ToSlash(target))
	}
	if err != nil {
		return fmt.Errorf("%q: %w", name, cause(err))
	}
	fmt.Fprintf(d.sum, "%s %d %s %d ", kind, len(name), name, len(content))
	d.sum.Write(content)
	return nil
}

// file gives the hash of a file's content.
func (d *treeDigest) file(dir *os.Root, base string) (kind string, sum []byte, err error) {
	f, err := dir.OpenFile(base, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", nil, err
	}
	if !info.Mode().IsRegular() {
		return "", nil, errors.New("it changed while it was being read")
	}
	kind = "file"
	if info.Mode()&0o111 != 0 {
		kind = "executable"
	}
	d.one.Reset()
	for {
		n, err := f.Read(d.copyBuf)
		d.one.Write(d.copyBuf[:n])
		if d.bytes += int64(n); d.bytes > d.limits.Bytes {
			return "", nil, fmt.Errorf("more than %d bytes in all", d.limits.Bytes)
		}
		if err == io.EOF {
			return kind, d.one.Sum(nil), nil
		}
		if err = errors.Join(err, d.ctx.Err()); err != nil {
			return "", nil, err
		}
	}
}
