package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/open-multi-agent/oma/spec"
)

// Model answers one request. Implementations make no retries of their own and read no environment. They are safe for
// concurrent use and return soon after ctx ends. A broken or incomplete stream is an error, never a short answer;
// failures of the other side are a *ProviderError. So is an attachment of a tool's result that cannot be sent: none is left
// out, and the request is not made.
type Model interface {
	Complete(ctx context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error)
}

// ProviderError is a failure of a model's server or of the way to it.
type ProviderError struct {
	Info spec.ErrorInfo
	// RetryAfter is what the server asked for. Zero: nothing usable.
	RetryAfter time.Duration
	// Usage is what the failed attempt reported, if anything, and Cost what it says that has cost.
	Usage *spec.Usage
	Cost  *spec.USD
}

func (e *ProviderError) Error() string {
	if e.Info.HTTPStatus != 0 {
		return fmt.Sprintf("%s: HTTP %d: %s", e.Info.Provider, e.Info.HTTPStatus, e.Info.Message)
	}
	return e.Info.Provider + ": " + e.Info.Message
}

// ErrCassette marks a request that a cassette does not answer: the run and the recording differ. It is never retried.
var ErrCassette = errors.New("cassette")

// ErrProtected marks a path that no agent may write, whatever the rules say.
var ErrProtected = errors.New("protected")

// Tool is something an agent may be granted.
type Tool struct {
	spec.ToolInfo
	// Normalise rewrites decoded, valid input before it is judged, such as a path to its cleaned form below cwd. An
	// error refuses the call. nil: nothing to do. It changes input in place and does no more than look at the disk.
	Normalise func(input map[string]any) error
	// Call acts. It never panics on input that its schema accepts and returns soon after ctx ends.
	Call func(ctx context.Context, call Invocation) spec.ToolResult
}

// Invocation is one judged call.
type Invocation struct {
	ID        string
	AgentName string
	TaskID    string
	Input     map[string]any // the canonical value; the tool must not change it
	Canonical []byte         // its encoding
}

// ToolSource opens the tools of one agent for one run. The closer is called once, at the end of the run.
type ToolSource interface {
	Open(ctx context.Context, agent *spec.PlanAgent) ([]Tool, io.Closer, error)
}
