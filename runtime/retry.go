package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
)

// The wait before the first further attempt, which doubles each time, and the most it grows to. A server's Retry-After
// replaces it.
const (
	firstRetryDelay = 500 * time.Millisecond
	maxRetryBackoff = 30 * time.Second
	// defaultMaxRetryDelay is the longest Retry-After that is waited for unless the provider says otherwise.
	defaultMaxRetryDelay = 60 * time.Second
)

// RetryPolicy says how often a model call is tried again and how long a server may keep it waiting.
type RetryPolicy struct {
	MaxRetries int           // further attempts; 0 or less: none
	MaxDelay   time.Duration // the longest Retry-After that is obeyed; 0: 60s
}

// retryClock is time and chance. The zero value is the real ones.
type retryClock struct {
	now    func() time.Time
	sleep  func(context.Context, time.Duration) error // gives ctx's error if that ends first
	random func() float64                             // in [0, 1)
	drain  <-chan struct{}                            // when closed, no further attempt is made; nil: never
}

// completeWithRetries asks m until it answers, fails for good, or has failed policy.MaxRetries+1 times. Beside an error
// the result has no response, but its attempts and what the failed ones used count all the same.
//
// It waits only where the wait is of use: a server that wants to be left alone for longer than policy.MaxDelay, or past
// the deadline of ctx, fails the call at once, and the error is then not retryable for anybody else either. What is not
// a *ProviderError, and ErrCassette above all, is never tried again.
func completeWithRetries(ctx context.Context, m Model, req *spec.ModelRequest, policy RetryPolicy, clock retryClock) (core.ModelResult, error) {
	var res core.ModelResult
	for {
		res.Attempts++
		resp, err := m.Complete(ctx, req)
		if err == nil {
			res.Response = resp
			return res, nil
		}
		var failed *ProviderError
		known := errors.As(err, &failed)
		if known && failed.Usage != nil {
			res.Wasted = res.Wasted.Add(*failed.Usage)
		}
		if known && failed.Cost != nil {
			res.WastedCost = spec.AddCapped(res.WastedCost, max(*failed.Cost, 0))
		}
		switch {
		case ctx.Err() != nil:
			return res, ctx.Err()
		case errors.Is(err, ErrCassette), !known, !failed.Info.Retryable, res.Attempts > policy.MaxRetries:
			return res, numbered(err, res.Attempts)
		}
		wait, hopeless := policy.wait(ctx, failed.RetryAfter, res.Attempts, clock)
		if hopeless != "" {
			given := *failed
			given.Info.Retryable = false
			given.Info.Message = hopeless + "; " + given.Info.Message
			return res, numbered(&given, res.Attempts)
		}
		if err := clock.pause(ctx, wait); err != nil {
			return res, err
		}
	}
}

// wait gives the time before the next attempt, or why waiting is of no use.
func (p RetryPolicy) wait(ctx context.Context, asked time.Duration, attempt int, clock retryClock) (time.Duration, string) {
	if limit := cmp.Or(p.MaxDelay, defaultMaxRetryDelay); asked > limit {
		return 0, fmt.Sprintf("server asks to wait %s, more than maxRetryDelay %s", asked.Round(time.Millisecond), limit)
	}
	wait := asked
	if wait <= 0 {
		wait = backoff(attempt, clock.random)
	}
	if end, ok := ctx.Deadline(); ok && clock.time().Add(wait).After(end) {
		return 0, fmt.Sprintf("another attempt in %s would be after the deadline", wait.Round(time.Millisecond))
	}
	return wait, ""
}

// backoff is half certain and half chance, so that calls which failed together do not come back together.
func backoff(attempt int, random func() float64) time.Duration {
	d := maxRetryBackoff
	if shift := attempt - 1; shift < 6 { // 500ms * 2^6 is above the most
		d = firstRetryDelay << shift
	}
	if random == nil {
		random = rand.Float64
	}
	return d/2 + time.Duration(random()*float64(d/2))
}

func (c retryClock) time() time.Time {
	if c.now == nil {
		return time.Now()
	}
	return c.now()
}

// errDrained ends a wait because nothing new is to start any more.
var errDrained = errors.New("no further attempt: the run is ending")

func (c retryClock) pause(ctx context.Context, d time.Duration) error {
	if c.sleep != nil {
		return c.sleep(ctx, d)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c.drain:
		return errDrained
	case <-t.C:
		return nil
	}
}

// numbered gives a ProviderError the number of the attempt it ended. The original is left alone: models may share it.
func numbered(err error, attempt int) error {
	var failed *ProviderError
	if !errors.As(err, &failed) || errors.Is(err, ErrCassette) {
		return err
	}
	given := *failed
	given.Info.Attempt = attempt
	return &given
}
