package builtin

import (
	"context"
	"errors"
)

var errGone = errors.New("gone")

// countdown is a context that ends after it has been asked a number of times.
type countdown struct {
	context.Context
	left int
	err  error // what it ends with
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return c.err
	}
	return nil
}
