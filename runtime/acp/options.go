package acp

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/open-multi-agent/oma/spec"
)

// How requests for permission are answered.
const (
	Gates       = "gates"        // by Options.Permit
	Reject      = "reject"       // with no, always
	AutoApprove = "auto-approve" // with yes, always
)

// What an agent may be offered.
const (
	FS       = "fs"       // to read and write text files, as file_read and file_write
	Terminal = "terminal" // to run commands, as bash
)

// Options describe one agent of one run. All functions are called from several goroutines and return soon after their
// context ends.
type Options struct {
	Name    string   // for messages
	Command []string // the program and its arguments. A name without a slash is looked up on Env's PATH
	Dir     string   // where the agent works, absolute
	Env     []string // all of its environment, NAME=value. nil: none
	// SystemPrompt comes before the first prompt of each session, and so again after a restart.
	SystemPrompt string

	Permission   string   // empty: Gates
	Capabilities []string // FS, Terminal

	// Timeout bounds one prompt, starting the agent included, waiting for other prompts not. 0: the context alone does.
	Timeout time.Duration
	// StartTimeout bounds starting the agent and opening its session. 0: a minute.
	StartTimeout time.Duration
	// Grace is how long an agent gets to answer a cancellation before it is killed. Half of it is how long it gets to end
	// once its input is closed, and again after SIGTERM. 0: two seconds.
	Grace time.Duration

	// Redact takes secrets out of everything that is shown or kept. What Permit and Door get is not redacted: it is what
	// is judged. nil: nothing is redacted.
	Redact func(string) string
	// Log gets remarks for people, redacted and clipped. nil: nobody does.
	Log func(string)
	// Permit answers a request for permission in the mode Gates. nil: with no.
	Permit func(ctx context.Context, p Permission) Answer
	// Update gets what the agent tells during a prompt, in order, one at a time. It may be slow: the agent then waits for
	// it, and nothing is lost. It must not wait for the agent. Text is redacted piece by piece: a secret that the agent cuts
	// in two is not recognised here, while Reply has its texts redacted as a whole. nil: nobody does.
	Update func(u Update)
	// Door runs a tool for the agent as for any other: granted, judged and contained. It is needed where Capabilities are
	// offered. file_read gives its text with line numbers as the built-in one does, or the whole content as a JSON string in
	// Data.
	Door func(ctx context.Context, tool string, input map[string]any) spec.ToolResult
}

const (
	defaultGrace        = 2 * time.Second
	defaultStartTimeout = time.Minute
)

// withDefaults fills in what is left to this package.
func (o Options) withDefaults() Options {
	if o.Permission == "" {
		o.Permission = Gates
	}
	if o.Grace <= 0 {
		o.Grace = defaultGrace
	}
	if o.StartTimeout <= 0 {
		o.StartTimeout = defaultStartTimeout
	}
	return o
}

// check says what is wrong with the options.
func (o *Options) check() error {
	switch {
	case len(o.Command) == 0 || o.Command[0] == "":
		return errors.New("no command is given")
	case !filepath.IsAbs(o.Dir):
		return fmt.Errorf("folder %q is not absolute", o.Dir)
	}
	if !slices.Contains([]string{Gates, Reject, AutoApprove}, o.Permission) {
		return fmt.Errorf("permission %q is not one of %s, %s, %s", o.Permission, Gates, Reject, AutoApprove)
	}
	for _, c := range o.Capabilities {
		if c != FS && c != Terminal {
			return fmt.Errorf("capability %q is not one of %s, %s", c, FS, Terminal)
		}
		if o.Door == nil {
			return fmt.Errorf("capability %q is offered, and nothing is there to serve it", c)
		}
	}
	return nil
}

func (o *Options) offers(capability string) bool { return slices.Contains(o.Capabilities, capability) }

func (o *Options) redact(s string) string {
	if o.Redact == nil {
		return s
	}
	return o.Redact(s)
}

// maxRemark bounds a remark in the log and a message of an error, in runes.
const maxRemark = 1024

func (o *Options) log(format string, args ...any) {
	if o.Log != nil {
		o.Log(clip(o.redact(fmt.Sprintf(format, args...)), maxRemark))
	}
}
