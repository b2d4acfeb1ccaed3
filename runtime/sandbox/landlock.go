package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/open-multi-agent/oma/runtime/process"
)

// The versions of landlock's interface from which it knows more.
const (
	landlockFiles = 3 // cutting files short, Linux 6.2: without it they could be emptied everywhere
	landlockTCP   = 4 // Linux 6.7
	landlockUnix  = 9
	landlockUDP   = 10
)

// helperWord is the first argument of the program when it is to be the helper: a flag, so that a program that does not
// call [Helper] ends with an error instead of doing what it does without arguments. self is the running program itself,
// whatever stands at its path by now.
const (
	helperWord = "-landlock-exec"
	self       = "/proc/self/exe"
)

// rights are what the helper keeps when it becomes another program: it reads and runs everything and writes Folders.
type rights struct {
	Folders   []string `json:"folders"`
	NoNetwork bool     `json:"noNetwork,omitempty"`
	// Version is the one that the promises were made for. A helper that finds less refuses.
	Version int `json:"version"`
}

type landlocked struct {
	*area
	o Options

	mu   sync.Mutex
	temp string // what TMPDIR is for commands; empty: not made yet
}

func (l *landlocked) Wrap(c process.Command) (process.Command, func(process.Outcome), error) {
	folders, err := l.now()
	if err != nil {
		return c, nil, err
	}
	temp, err := l.temporary()
	if err != nil {
		return c, nil, err
	}
	helper, err := l.helper(append(folders, temp))
	if err != nil {
		return c, nil, err
	}
	helper.Args = append(append(helper.Args, c.Program), c.Args...)
	helper.Dir, helper.Env = c.Dir, withTemp(c.Env, temp)
	return helper, func(process.Outcome) {}, nil
}

func (l *landlocked) helper(folders []string) (process.Command, error) {
	text, err := json.Marshal(rights{Folders: folders, NoNetwork: l.o.NoNetwork, Version: landlockVersion()})
	return process.Command{Program: self, Args: []string{helperWord, string(text)}, Dir: "/"}, err
}

// temporary makes a folder for the temporary files of commands: those of other programs in /tmp are not theirs to write.
func (l *landlocked) temporary() (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.temp != "" {
		return l.temp, nil
	}
	parent, ok := l.o.Env("TMPDIR")
	if !ok || !filepath.IsAbs(parent) {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, "oma-")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", fmt.Errorf("there is no folder for temporary files: %w", err)
	}
	l.temp = dir
	return dir, nil
}

func (l *landlocked) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.temp == "" || os.RemoveAll(l.temp) == nil {
		return nil
	}
	// A folder that its owner may not write keeps what is in it.
	_ = filepath.WalkDir(l.temp, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && err == nil {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	if err := os.RemoveAll(l.temp); err != nil {
		return fmt.Errorf("temporary files of commands are left in %s: %w", l.temp, cause(err))
	}
	return nil
}

// tooOld says what a version of landlock lacks for these options.
func tooOld(version int, noNetwork bool) error {
	switch {
	case version == 0:
		return errors.New("this kernel does not offer landlock: it came with Linux 5.13 and must be among the security modules that the kernel starts")
	case version < landlockFiles:
		return fmt.Errorf("landlock has version %d here, and version %d (Linux 6.2) is needed: before it, files can be emptied everywhere", version, landlockFiles)
	case noNetwork && version < landlockTCP:
		return fmt.Errorf("landlock has version %d here, and version %d (Linux 6.7) is needed to refuse connections", version, landlockTCP)
	}
	return nil
}
