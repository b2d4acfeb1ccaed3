package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/term"

	"github.com/open-multi-agent/oma/loader"
)

// app is the program's surroundings, injected so that a test can give others.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	lookup         func(string) (string, bool)
	now            func() time.Time
	newID          func() string
	size           func() (cols, rows int)           // of the terminal on standard error; nil: it is none
	tick           func() (<-chan time.Time, func()) // the time, now and then, until stopped; called on a terminal only
	signals        bool                              // handle Ctrl-C and SIGTERM
	asks           bool                              // standard input is a terminal, at which somebody may answer
	discard        func()                            // drops what was typed there and not read yet; nil: nothing does
	login          func() string                     // the name of the user that the program runs as; empty: it has none

	environment map[string]string // nil unless the program started itself again without its environment
	closed      bool              // other processes of this user cannot read this one
	input       []byte            // standard input, if it was read

	logLevel, logFormat string
}

// main runs one command and gives the exit code.
func (a *app) main(ctx context.Context, args []string) int {
	out := &output{w: a.stdout}
	a.stdout = out
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if out.err != nil {
		err = fmt.Errorf("the result cannot be written: %w", out.err)
	}
	return a.exit(err)
}

// output is standard output. It keeps the first failure, so that a result nobody received is no success. A reader that
// has gone has received what it wanted: the rest goes nowhere, and what the command does goes on (SP-05).
type output struct {
	w    io.Writer
	gone bool
	err  error
}

func (o *output) Write(b []byte) (int, error) {
	if o.gone {
		return len(b), nil
	}
	n, err := o.w.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		o.gone = true
		return len(b), nil
	}
	if o.err == nil {
		o.err = err
	}
	return n, err
}

func (a *app) getenv(name string) string {
	v, _ := a.lookup(name)
	return v
}

func randomID() string {
	var b [6]byte
	rand.Read(b[:]) // never fails
	return "run_" + time.Now().UTC().Format("20060102T150405") + "_" + hex.EncodeToString(b[:])
}

// sizeOf tells how large a terminal is now. nil: the file is none. One that does not say has 80 columns and 24 rows.
func sizeOf(f *os.File) func() (cols, rows int) {
	fd := int(f.Fd())
	if !term.IsTerminal(fd) {
		return nil
	}
	return func() (cols, rows int) {
		cols, rows, err := term.GetSize(fd)
		if err != nil || cols <= 0 || rows <= 0 {
			return 80, 24
		}
		return cols, rows
	}
}

// everySecond gives the time once a second, until it is stopped.
func everySecond() (<-chan time.Time, func()) {
	t := time.NewTicker(time.Second)
	return t.C, t.Stop
}

// logger gives the commentary. It is off unless asked for.
func (a *app) logger() (hclog.Logger, error) {
	level := hclog.LevelFromString(a.logLevel)
	if level == hclog.NoLevel {
		return nil, usage("--log-level %q is not one of off, error, warn, info, debug, trace", a.logLevel)
	}
	if a.logFormat != "text" && a.logFormat != "json" {
		return nil, usage("--log-format %q is not text or json", a.logFormat)
	}
	return hclog.New(&hclog.LoggerOptions{Name: "oma", Level: level, Output: a.stderr, JSONFormat: a.logFormat == "json"}), nil
}

// print writes a document to standard output in the format asked for. text is called for the format text.
func (a *app) print(format string, doc any, text func(io.Writer)) error {
	switch format {
	case "text":
		text(a.stdout)
		return nil
	case "json", "yaml":
		b, err := json.MarshalIndent(doc, "", "  ")
		if err == nil && format == "yaml" {
			b, err = loader.YAML(b)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(a.stdout, string(bytes.TrimRight(b, "\n")))
		return err
	}
	return usage("-o %q is not text, json or yaml", format)
}

// writeFile replaces a file whole, for its owner only: a reader never sees half of it, a crash leaves the old one.
func writeFile(path string, b []byte) error {
	return writeTo(path, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// writeTo is writeFile for what need not be in memory whole.
func writeTo(path string, write func(io.Writer) error) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // nothing is left to remove once it was renamed
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}

// writable says whether writeFile can replace a file, and makes its folder.
func writable(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return &fs.PathError{Op: "write", Path: path, Err: errNotRegular}
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// maxInputBytes bounds what is read at once: a receipt, a plan, standard input.
const maxInputBytes = 64 << 20

// readInput reads a regular file, or standard input for "-".
func (a *app) readInput(path string) ([]byte, error) {
	if path != "-" {
		return readFile(path)
	}
	b, err := bounded(path, a.stdin)
	a.input = b
	return b, err
}

var errNotRegular = errors.New("not a regular file")

// readFile reads a regular file: a pipe or a device could keep the program waiting for ever.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: path, Err: errNotRegular}
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return bounded(path, f)
}

func bounded(path string, r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxInputBytes+1))
	if err == nil && len(b) > maxInputBytes {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("over %d MiB", maxInputBytes>>20)}
	}
	return b, err
}
