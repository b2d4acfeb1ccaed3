package process

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Command is what is started.
type Command struct {
	Program string   // absolute; see [Find]
	Args    []string // without the program
	Dir     string   // absolute; where it starts
	// Env is the whole environment, as NAME=VALUE; see [Environment]. nil: empty.
	Env []string
}

// ErrUnsupported says that this system has no process groups.
var ErrUnsupported = errors.New("child processes work on Linux and macOS only")

// Environment gives a child the variables that programs need to work at all, as env has them, with the declared ones over
// them: no key of any kind comes along unless it is declared. Declared variables follow the others, sorted.
func Environment(env func(name string) (value string, ok bool), declared map[string]string) []string {
	list := []string{}
	for _, name := range [...]string{"HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TEMP", "TERM", "TMP", "TMPDIR", "USER"} {
		if _, over := declared[name]; over || env == nil {
			continue
		}
		if v, ok := env(name); ok {
			list = append(list, name+"="+v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		list = append(list, name+"="+declared[name])
	}
	return list
}

// Variable looks a variable up in an environment. The last of several is meant, as it is for the child.
func Variable(env []string, name string) string {
	for _, v := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// Find gives the absolute path of a program. A name with a slash is a path, below base unless it is absolute; any other
// is looked for in the folders of path (as PATH has them), then in the further ones. Relative folders in path are passed
// over: they would be looked up where agents write.
func Find(name, base, path string, further ...string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(base, name)
		}
		return name, executable(name)
	}
	for _, dir := range append(filepath.SplitList(path), further...) {
		if file := filepath.Join(dir, name); name != "" && filepath.IsAbs(dir) && executable(file) == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("program %q is in no folder of PATH", name)
}

func executable(file string) error {
	info, err := os.Stat(file)
	switch {
	case !filepath.IsAbs(file):
		return fmt.Errorf("program %q: want an absolute path", file)
	case err != nil:
		return fmt.Errorf("program %q: %w", file, cause(err))
	case !info.Mode().IsRegular():
		return fmt.Errorf("program %q is not a file", file)
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("program %q is not executable", file)
	}
	return nil
}

// cause drops the system call and the path, which whoever asks knows.
func cause(err error) error {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return pe.Err
	}
	return err
}

// TooLongError is a command line beyond what the system takes. It unwraps to the system's own error.
type TooLongError struct {
	Argument int // which one, from 1; 0: all of them with the variables, together
	Size     int // bytes
	Limit    int // bytes; 0: not known
	cause    error
}

func (e *TooLongError) Error() string {
	what := "the arguments and variables have"
	if e.Argument > 0 {
		what = fmt.Sprintf("argument %d has", e.Argument)
	}
	most := "more than this system takes"
	if e.Limit > 0 {
		most = fmt.Sprintf("and this system takes at most %d", e.Limit)
	}
	return fmt.Sprintf("%s %d bytes, %s: hand the text over on standard input", what, e.Size, most)
}

func (e *TooLongError) Unwrap() error { return e.cause }

// tooLong finds out what the system objected to.
func tooLong(c *Command, err error) error {
	one, all := argumentLimits()
	sum := 0
	for i, arg := range c.Args {
		if one > 0 && len(arg) > one {
			return &TooLongError{Argument: i + 1, Size: len(arg), Limit: one, cause: err}
		}
		sum += len(arg) + 1 + pointer
	}
	for _, v := range c.Env {
		sum += len(v) + 1 + pointer
	}
	if sum <= all { // another bound than the ones that are known
		all = 0
	}
	return &TooLongError{Size: sum, Limit: all, cause: err}
}

// pointer is what a system counts for an argument beside its text.
const pointer = 8
