package builtin

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

const (
	// maxFile is the largest file a tool reads or makes, in bytes.
	maxFile = 10 << 20
	// maxShown bounds the text of file_read: line numbers make a file of empty lines nine times as long.
	maxShown = 16 << 20
	// binaryHead is how many bytes are searched for a NUL, the mark of a binary file, as git does.
	binaryHead = 8000
)

func (t *toolbox) fileRead(_ context.Context, in arguments) spec.ToolResult {
	shown := in.text("path")
	data, name, err := t.read(shown)
	if err != nil {
		return failed("Could not read file %q: %v.", shown, err)
	}
	if isBinary(data) {
		return failed("Could not read file %q: it is a binary file of %d bytes.", shown, len(data))
	}
	text, err := numbered(string(data), in.number("offset", 1), in.number("limit", len(data)+1))
	if err != nil {
		return failed("Could not read file %q: %v.", shown, err)
	}
	return spec.ToolResult{Text: text, FilesRead: []string{t.display(name)}}
}

// read gives a whole regular file and the name it has once links are resolved.
func (t *toolbox) read(shown string) (data []byte, name string, err error) {
	if err := t.open(false); err != nil {
		return nil, "", err
	}
	p, err := t.find(shown)
	if err != nil {
		return nil, "", cause(err)
	}
	defer p.close()
	data, err = p.read()
	return data, p.name, err
}

// read never waits: what is no regular file is not opened, and if a pipe takes its place meanwhile the open does not
// block.
func (p *place) read() ([]byte, error) {
	if p.info == nil {
		return nil, errors.New("no such file or directory")
	}
	if !p.info.Mode().IsRegular() {
		return nil, fmt.Errorf("it is %s, not a regular file", kind(p.info.Mode()))
	}
	return readRegular(p.dir, p.base, nil)
}

// readRegular reads through buf, which it may grow; the result is valid until buf is used again.
func readRegular(dir *os.Root, base string, buf *bytes.Buffer) ([]byte, error) {
	f, err := dir.OpenFile(base, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, cause(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, cause(err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("it is %s, not a regular file", kind(info.Mode()))
	}
	if info.Size() > maxFile {
		return nil, tooLarge(info.Size())
	}
	if buf == nil {
		buf = &bytes.Buffer{}
	}
	buf.Reset()
	buf.Grow(int(info.Size()) + bytes.MinRead)
	n, err := buf.ReadFrom(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, cause(err)
	}
	if n > maxFile { // grew, or a file of /proc, which says 0
		return nil, tooLarge(n)
	}
	return buf.Bytes(), nil
}

// tooLarge is the size of a file over maxFile.
type tooLarge int64

func (n tooLarge) Error() string {
	return fmt.Sprintf("it has %d bytes, over the limit of %d", int64(n), maxFile)
}

func isBinary(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), binaryHead)], 0) >= 0
}

// numbered gives lines from offset (1-based; 0 is 1) as NUMBER<tab>TEXT, and says so if it left some out.
func numbered(text string, offset, limit int) (string, error) {
	if text == "" {
		return "", nil
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	first := max(offset, 1)
	if first > len(lines) {
		return "", fmt.Errorf("it has %d line%s, offset %d is beyond the end", len(lines), plural(len(lines)), first)
	}
	var b strings.Builder
	last := first - 1
	for _, line := range lines[first-1:] {
		if last-first+1 == limit || b.Len()+len(line) > maxShown {
			break
		}
		if last++; last > first {
			b.WriteByte('\n')
		}
		b.WriteString(strconv.Itoa(last))
		b.WriteByte('\t')
		b.WriteString(line)
	}
	if first > 1 || last < len(lines) {
		fmt.Fprintf(&b, "\n\n(showing lines %d–%d of %d)", first, last, len(lines))
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD"), nil
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

func (t *toolbox) fileWrite(ctx context.Context, in arguments) spec.ToolResult {
	shown, content := in.text("path"), in.text("content")
	if err := t.open(true); err != nil {
		return failed("Could not write file %q: %v.", shown, err)
	}
	verb := "Updated"
	name, err := t.update(ctx, shown, func(p *place) ([]byte, error) {
		if p.info == nil {
			verb = "Created"
		}
		return []byte(content), nil
	})
	if err != nil {
		return failed("Could not write file %q: %v.", shown, err)
	}
	lines := strings.Count(content, "\n") + 1
	return spec.ToolResult{
		Text:         fmt.Sprintf("%s %q (%d line%s, %d bytes).", verb, shown, lines, plural(lines), len(content)),
		FilesWritten: []string{t.display(name)},
	}
}

func (t *toolbox) fileEdit(ctx context.Context, in arguments) spec.ToolResult {
	shown, count := in.text("path"), 0
	if err := t.open(false); err != nil {
		return failed("Could not read file %q: %v.", shown, err)
	}
	name, err := t.update(ctx, shown, func(p *place) ([]byte, error) {
		data, err := p.read()
		if err != nil {
			return nil, unreadable{err}
		}
		data, count, err = replaced(data, in.text("old_string"), in.text("new_string"), in.flag("replace_all"))
		return data, err
	})
	if u, ok := errors.AsType[unreadable](err); ok {
		return failed("Could not read file %q: %v.", shown, u.error)
	}
	if err != nil {
		return failed("Could not edit file %q: %v.", shown, err)
	}
	return spec.ToolResult{
		Text:         fmt.Sprintf("Replaced %d occurrence%s in %q.", count, plural(count), shown),
		FilesWritten: []string{t.display(name)},
	}
}

// unreadable is why a file to be edited could not be read.
type unreadable struct{ error }

// replaced takes both texts literally. The size of the result is known before it is made.
func replaced(data []byte, old, text string, all bool) ([]byte, int, error) {
	count := 0
	if old != "" {
		count = bytes.Count(data, []byte(old))
	}
	switch {
	case count == 0:
		return nil, 0, errors.New("`old_string` was not found")
	case count > 1 && !all:
		return nil, 0, fmt.Errorf("`old_string` appears %d times; give more context to make it unique, or set replace_all", count)
	}
	if size := int64(len(data)) + int64(count)*int64(len(text)-len(old)); size > maxFile {
		return nil, 0, fmt.Errorf("the result would have %d bytes, over the limit of %d", size, maxFile)
	}
	return bytes.ReplaceAll(data, []byte(old), []byte(text)), count, nil
}

// update replaces a file by what change makes of it, while no other call of the run writes it.
func (t *toolbox) update(ctx context.Context, shown string, change func(*place) ([]byte, error)) (name string, err error) {
	p, err := t.find(shown)
	if err != nil {
		return "", cause(err)
	}
	name = p.name
	p.close()
	unlock, err := t.locks.lock(ctx, t.absolute(name))
	if err != nil {
		return "", err
	}
	defer unlock()
	if p, err = t.find(shown); err != nil { // what it was before the wait does not count
		return "", cause(err)
	}
	defer p.close()
	if p.name != name {
		return "", errors.New("it became another file meanwhile")
	}
	if err := t.writable(p); err != nil {
		return "", err
	}
	data, err := change(p)
	if err != nil {
		return "", err
	}
	return name, p.write(data)
}

// write puts a whole file in place of the old one, with its permissions, so that a reader never sees half of it.
func (p *place) write(data []byte) error {
	mode := fs.FileMode(0o644)
	if p.info != nil {
		mode = p.info.Mode().Perm()
		if !p.info.Mode().IsRegular() {
			return fmt.Errorf("it is %s, not a regular file", kind(p.info.Mode()))
		}
		if mode&0o200 == 0 { // a rename would go past this
			return errors.New("it is read-only")
		}
	}
	if err := p.makeFolders(); err != nil {
		return err
	}
	tmp := tempPrefix + rand.Text()[:12]
	f, err := p.dir.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return cause(err)
	}
	_, err = f.Write(data)
	if p.info != nil && err == nil {
		err = f.Chmod(mode) // past the umask
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = p.dir.Rename(tmp, p.base)
	}
	if err != nil {
		p.dir.Remove(tmp)
		return cause(err)
	}
	return nil
}

// tempPrefix starts the names of files that are being written. Searches leave them out.
const tempPrefix = ".oma-write-"
