package loader

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/open-multi-agent/oma/spec"
)

// maxFile is the most bytes a file may have. Documents are written by people; cassettes are the longest of them.
const maxFile = 4 << 20

// readFile reads a regular file. It never waits for a FIFO or a device.
func readFile(path string) ([]byte, *spec.Diagnostic) { return readUpTo(path, maxFile) }

func readUpTo(path string, most int) ([]byte, *spec.Diagnostic) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, unreadable(path, err)
	}
	if info.IsDir() {
		return nil, problem("file-not-regular", "%q is a folder, not a file", path)
	}
	if !info.Mode().IsRegular() {
		d := problem("file-not-regular", "%q is not a regular file", path)
		d.Hint = "to read a pipe, give - as the file and send the text on standard input"
		return nil, d
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err != nil {
		return nil, unreadable(path, err)
	}
	return data, checkSize(path, len(data), most)
}

func checkSize(name string, n, most int) *spec.Diagnostic {
	if n > most {
		return problem("file-too-large", "%q has more than %d MiB", name, most>>20)
	}
	return nil
}

func unreadable(path string, err error) *spec.Diagnostic {
	if errors.Is(err, fs.ErrNotExist) {
		return problem("file-missing", "no file %q", path)
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return problem("file-unreadable", "cannot read %q: %s", path, strings.ToLower(err.Error()))
}

func problem(code, format string, args ...any) *spec.Diagnostic {
	return &spec.Diagnostic{Code: code, Severity: spec.Error, Message: fmt.Sprintf(format, args...)}
}

// notText says why bytes are no text, or gives nil.
func notText(data []byte) *spec.Diagnostic {
	if wide(data) {
		d := problem("not-utf8", "the file is UTF-16 or UTF-32, want UTF-8")
		d.Hint = "save it again as UTF-8"
		return d
	}
	pos := spec.Pos{Line: 1, Col: 1}
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		switch {
		case r == 0:
			d := problem("not-text", "the file is binary, want text")
			d.Pos = pos
			return d
		case r == utf8.RuneError && n == 1:
			d := problem("not-utf8", "byte 0x%02x is not UTF-8", data[i])
			d.Pos, d.Hint = pos, "save the file again as UTF-8"
			return d
		case r == '\n':
			pos = spec.Pos{Line: pos.Line + 1, Col: 1}
		case r != '\uFEFF' || i > 0: // a byte-order mark takes no column
			pos.Col++
		}
		i += n
	}
	return nil
}

// wide finds UTF-16 and UTF-32 by their byte-order marks, and without one by the zero in an ASCII character.
func wide(data []byte) bool {
	if len(data) < 2 {
		return false
	}
	a, b := data[0], data[1]
	return a == 0xFE && b == 0xFF || a == 0xFF && b == 0xFE || a == 0 && b != 0 && b < 0x80 || b == 0 && a != 0 && a < 0x80
}
