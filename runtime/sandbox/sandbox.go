package sandbox

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/open-multi-agent/oma/runtime/process"
)

// The kinds of executors.
const (
	Local      = "local"
	Landlock   = "landlock"
	Bubblewrap = "bubblewrap"
	Container  = "container"
)

// Kinds gives the kinds that [New] takes.
func Kinds() []string { return []string{Local, Landlock, Bubblewrap, Container} }

// Options say where one agent's commands run and what they may reach.
type Options struct {
	Kind string // empty: local
	// Dir is the agent's folder, absolute: commands may write it. It must be there when the first command starts, and stay
	// the folder that it was then.
	Dir string
	// Write are further folders that commands may write, absolute. They must be there at the start. One inside another, or
	// inside Dir, adds nothing and is passed over unread: what is in a folder that commands write, they choose.
	Write []string
	// NoNetwork keeps commands from opening connections.
	NoNetwork bool
	Image     string // container alone: the image, exactly as it is named
	// Name begins the names of containers and must be unique among runs on the machine. Container alone.
	Name string
	// Protected are absolute files and folders that judge the run. Nothing here protects them: they say whether the
	// promise about evidence holds.
	Protected []string
	// Env looks up PATH, TMPDIR and the variables of the container program. nil: none is set.
	Env func(name string) (value string, ok bool)
}

// Executor runs nothing itself: it says what to start. It is safe for concurrent use.
type Executor interface {
	// Wrap gives the command to start in place of c. done must be called when it has ended, with how; it returns when
	// nothing of it is left that this executor can end. An error means that it must not run at all.
	Wrap(c process.Command) (wrapped process.Command, done func(process.Outcome), err error)
	// Why says why the machine cannot keep the promises; nil: it can. It starts a program to find out, for 10 seconds at
	// most, and is to be asked before the first command.
	Why(context.Context) error
	// Held gives every promise, in a fixed order.
	Held() []Promise
	// Close removes what was made for commands, once none runs any more. An error says what is left.
	Close() error
}

// probeTime bounds each look at what the machine can do, and each removal of a container.
const probeTime = 10 * time.Second

// New gives an executor. It looks at nothing on the machine: an error means options that make no sense together.
func New(o Options) (Executor, error) {
	if o.Kind == "" {
		o.Kind = Local
	}
	if o.Env == nil {
		o.Env = func(string) (string, bool) { return "", false }
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	a := newArea(o.Dir, o.Write)
	switch o.Kind {
	case Landlock:
		return &landlocked{area: a, o: o}, nil
	case Bubblewrap:
		return &bubblewrapped{area: a, o: o}, nil
	case Container:
		return &contained{area: a, o: o}, nil
	}
	return local{o: o}, nil
}

func (o *Options) check() error {
	for _, path := range append([]string{o.Dir}, o.Write...) {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("folder %q: want an absolute path", path)
		}
	}
	switch {
	case !slices.Contains(Kinds(), o.Kind):
		return fmt.Errorf("there is no executor %q: want one of %s", o.Kind, strings.Join(Kinds(), ", "))
	case o.Kind == Local && len(o.Write) > 0:
		return errors.New("kind local lets commands write everywhere: it takes no folders")
	case o.Kind != Container:
		if o.Image != "" {
			return fmt.Errorf("kind %s takes no image", o.Kind)
		}
		return nil
	case !imageName.MatchString(o.Image):
		return fmt.Errorf("image %q is not the name of an image", o.Image)
	case !containerName.MatchString(o.Name):
		return fmt.Errorf("%q does not begin the name of a container: want letters, digits, ., _ and -", o.Name)
	}
	return nil
}

// local starts commands as they are.
type local struct{ o Options }

// Unheld gives an executor for a team that would rather run its commands with nothing held than not at all. Its promises
// are those of e, none of them kept, because of why.
func Unheld(e Executor, why error) Executor {
	return unheld{promises: e.Held(), why: why}
}

func (local) Wrap(c process.Command) (process.Command, func(process.Outcome), error) {
	return c, func(process.Outcome) {}, nil
}

func (l local) Why(context.Context) error {
	if l.o.NoNetwork {
		return errors.New("kind local cannot keep commands off the network")
	}
	return nil
}

func (local) Close() error { return nil }

type unheld struct {
	local
	promises []Promise
	why      error
}

func (u unheld) Held() []Promise {
	out := slices.Clone(u.promises)
	for i := range out {
		out[i].Level, out[i].Mechanism = notHeld, "commands run as they would without a sandbox: "+u.why.Error()
	}
	return out
}

// withTemp gives an environment in which temporary files go to dir.
func withTemp(env []string, dir string) []string {
	return append(without(env, "TMPDIR", "TMP", "TEMP"), "TMPDIR="+dir)
}

func without(env []string, names ...string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(names, name)
	})
}

// find looks for a program of the machine's own. One that commands can write would be a way out.
func (o *Options) find(a *area, name string) (string, error) {
	search, _ := o.Env("PATH")
	file, err := process.Find(name, "", search)
	if err != nil {
		return "", err
	}
	if in := a.around(file); in != "" {
		return "", fmt.Errorf("%s lies in %s, which commands may write", file, in)
	}
	return file, nil
}

// probe runs a program that is to say whether something works, and gives its answer or its complaint.
func probe(ctx context.Context, c process.Command) (string, error) {
	got, err := process.Run(ctx, c, process.Limits{Timeout: probeTime, Keep: 4 << 10})
	switch {
	case err != nil:
		return "", err
	case got.Reason == process.TimedOut:
		return "", fmt.Errorf("no answer after %v", probeTime)
	case got.Reason != process.Exited:
		return "", fmt.Errorf("no answer: %w", context.Cause(ctx))
	case !got.Exit.OK():
		if said := firstLine(got.Stderr.Text); said != "" {
			return "", errors.New(said)
		}
		return "", errors.New(got.Exit.String())
	}
	return strings.TrimSpace(got.Stdout.Text), nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD")), "\n")
	return strings.TrimSpace(line)
}
