package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/open-multi-agent/oma/runtime/process"
)

var (
	imageName     = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._:/@-]*$`)
	containerName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`)
	digested      = regexp.MustCompile(`(^|@)sha256:[0-9a-f]{64}$`)
)

// IsPinned says whether an image is named by its digest.
func IsPinned(image string) bool { return digested.MatchString(image) }

// contained runs every command in a container of its own.
type contained struct {
	*area
	o Options

	mu      sync.Mutex
	started int
	doubt   []string // containers that may come to life yet, or could not be removed
}

// engineVariables are those that docker and podman work by.
var engineVariables = []string{"HOME", "PATH", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "DOCKER_CERT_PATH", "DOCKER_CONFIG", "DOCKER_CONTEXT",
	"DOCKER_HOST", "DOCKER_TLS_VERIFY", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", "CONTAINER_HOST"}

// engine gives a call of docker, or of podman where there is no docker.
func (c *contained) engine(args ...string) (process.Command, error) {
	program, err := c.o.find(c.area, "docker")
	if err != nil {
		var other error
		if program, other = c.o.find(c.area, "podman"); other != nil {
			return process.Command{}, fmt.Errorf("%w, and %w", err, other)
		}
	}
	var env []string
	for _, name := range engineVariables {
		if v, ok := c.o.Env(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return process.Command{Program: program, Args: args, Dir: "/", Env: env}, nil
}

func (c *contained) Wrap(bash process.Command) (process.Command, func(process.Outcome), error) {
	folders, err := c.now()
	if err != nil {
		return bash, nil, err
	}
	dir := realPath(bash.Dir)
	if !slices.ContainsFunc(folders, func(f string) bool { return inside(f, dir) }) {
		return bash, nil, fmt.Errorf("folder %q is not in the container", bash.Dir)
	}
	run, err := c.engine()
	if err != nil {
		return bash, nil, err
	}
	name := c.next()
	walls, err := c.walls(run.Program, folders)
	if err != nil {
		return bash, nil, err
	}
	run.Args = append([]string{"run", "--rm", "--pull=never", "--name", name}, walls...)
	run.Args = append(run.Args, "--workdir", dir, "--env", "HOME=/tmp")
	// The rest is the machine's: its paths mean nothing in the image. Values are handed on by name, not on the command line.
	theirs := without(bash.Env, append([]string{"SHELL", "TMPDIR", "TMP", "TEMP"}, engineVariables...)...)
	for _, v := range theirs {
		name, _, _ := strings.Cut(v, "=")
		run.Args = append(run.Args, "--env", name)
	}
	run.Env = append(run.Env, theirs...)
	run.Args = append(run.Args, "--entrypoint", "bash", c.o.Image)
	run.Args = append(run.Args, bash.Args...)
	return run, func(o process.Outcome) { c.done(name, o) }, nil
}

// walls are what keeps the container in. Its output is not kept by the engine beside.
func (c *contained) walls(engine string, folders []string) ([]string, error) {
	args := []string{"--read-only", "--tmpfs", "/tmp:exec,mode=1777", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--log-driver", "none",
		"--user", strconv.Itoa(os.Getuid()) + ":" + strconv.Itoa(os.Getgid())}
	if filepath.Base(engine) == "podman" {
		// It would mount folders to write over those of a read-only image, and wait ten seconds for what it is to remove.
		args = append(args, "--read-only-tmpfs=false", "--stop-timeout", "0")
		if os.Getuid() != 0 {
			args = append(args, "--userns", "keep-id") // or the user's files would be another's
		}
	}
	if c.o.NoNetwork {
		args = append(args, "--network", "none")
	}
	for _, dir := range folders {
		if strings.ContainsAny(dir, ",\"\n") {
			return nil, fmt.Errorf("folder %q cannot be named to %s", dir, filepath.Base(engine))
		}
		args = append(args, "--mount", "type=bind,source="+dir+",target="+dir)
	}
	return args, nil
}

func (c *contained) next() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started++
	return c.o.Name + "-" + strconv.Itoa(c.started)
}

// lostContact is the exit code of an engine's own failures. A container may be at work nevertheless.
const lostContact = 125

// done removes a container whose program did not end by itself: it would go on without.
func (c *contained) done(name string, o process.Outcome) {
	if o.Reason == process.Exited && o.Exit.Err == nil && o.Exit.Signal == 0 && o.Exit.Code != lostContact {
		return
	}
	if removed, err := c.remove(name); err != nil || !removed {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.doubt = append(c.doubt, name)
	}
}

// remove kills a container. removed is false where there was none, or none yet.
func (c *contained) remove(name string) (removed bool, err error) {
	command, err := c.engine("rm", "--force", name)
	if err != nil {
		return false, err
	}
	said, err := probe(context.Background(), command)
	if says(err, "no such container") {
		return false, nil
	}
	return said != "", err
}

func says(err error, what string) bool {
	return err != nil && strings.Contains(strings.ToLower(err.Error()), what)
}

// Close looks once more for containers whose making had been asked for when their program was killed.
func (c *contained) Close() error {
	c.mu.Lock()
	doubt := c.doubt
	c.doubt = nil
	c.mu.Unlock()
	var errs []error
	for _, name := range doubt {
		if _, err := c.remove(name); err != nil {
			errs = append(errs, fmt.Errorf("container %s may still run: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// Why asks the engine for the image.
func (c *contained) Why(ctx context.Context) error {
	ask, err := c.engine("image", "inspect", "--format", "{{.Id}}", c.o.Image)
	if err != nil {
		return err
	}
	if err := c.declared(); err != nil {
		return err
	}
	name := filepath.Base(ask.Program)
	id, err := probe(ctx, ask)
	switch {
	case err == nil && id == "", says(err, "no such image"), says(err, "image not known"):
		return fmt.Errorf("image %q is not on this machine, and none is fetched: %s pull it before", c.o.Image, name)
	case err != nil:
		return fmt.Errorf("%s cannot be used: %w", name, err)
	}
	return nil
}
