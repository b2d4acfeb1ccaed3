package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/runtime/core"
	"github.com/open-multi-agent/oma/spec"
)

// failing is a model that fails as listed and then answers.
type failing struct {
	errs  []error
	calls []time.Time
}

func (m *failing) Complete(ctx context.Context, _ *spec.ModelRequest) (*spec.ModelResponse, error) {
	m.calls = append(m.calls, time.Now())
	if n := len(m.calls); n <= len(m.errs) {
		return nil, m.errs[n-1]
	}
	return &spec.ModelResponse{Finish: spec.FinishStop}, nil
}

func busy(after time.Duration, used *spec.Usage) error {
	return &ProviderError{
		Info:       spec.ErrorInfo{Kind: "provider", Message: "busy", Retryable: true, HTTPStatus: 429, Provider: "p"},
		RetryAfter: after, Usage: used,
	}
}

func noChance() float64 { return 0 }

func TestRetries(t *testing.T) {
	refused := &ProviderError{Info: spec.ErrorInfo{Kind: "provider", Message: "no", HTTPStatus: 400, Provider: "p"}}
	other := errors.New("something else")
	cases := []struct {
		name     string
		errs     []error
		policy   RetryPolicy
		deadline time.Duration // 0: none
		random   float64

		waits   []time.Duration // between attempts
		err     string          // part of the message; empty: answered
		is      error
		noRetry bool // the error is not retryable afterwards
	}{
		{name: "answers at once", policy: RetryPolicy{MaxRetries: 2}},
		{name: "back-off doubles", errs: repeat(busy(0, nil), 3), policy: RetryPolicy{MaxRetries: 3},
			waits: []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second}},
		{name: "chance adds up to as much again", errs: repeat(busy(0, nil), 2), policy: RetryPolicy{MaxRetries: 2}, random: 0.5,
			waits: []time.Duration{375 * time.Millisecond, 750 * time.Millisecond}},
		{name: "attempts are used up", errs: repeat(busy(0, nil), 3), policy: RetryPolicy{MaxRetries: 1},
			waits: []time.Duration{250 * time.Millisecond}, err: "busy"},
		{name: "no retries", errs: repeat(busy(0, nil), 1), err: "busy"},
		{name: "negative is none", errs: repeat(busy(0, nil), 1), policy: RetryPolicy{MaxRetries: -1}, err: "busy"},
		{name: "OA-06 Retry-After 1s", errs: []error{busy(time.Second, nil)}, policy: RetryPolicy{MaxRetries: 2},
			waits: []time.Duration{time.Second}},
		{name: "OA-06 Retry-After of a day", errs: []error{busy(24*time.Hour, nil)}, policy: RetryPolicy{MaxRetries: 2},
			err: "server asks to wait 24h0m0s, more than maxRetryDelay 1m0s; busy", noRetry: true},
		{name: "OA-06 own ceiling", errs: []error{busy(3*time.Second, nil)}, policy: RetryPolicy{MaxRetries: 2, MaxDelay: 2 * time.Second},
			err: "wait 3s, more than maxRetryDelay 2s", noRetry: true},
		{name: "at the ceiling is waited for", errs: []error{busy(2*time.Second, nil)}, policy: RetryPolicy{MaxRetries: 2, MaxDelay: 2 * time.Second},
			waits: []time.Duration{2 * time.Second}},
		{name: "OA-06 the deadline is nearer", errs: []error{busy(5*time.Second, nil)}, policy: RetryPolicy{MaxRetries: 2}, deadline: 4 * time.Second,
			err: "another attempt in 5s would be after the deadline; busy", noRetry: true},
		{name: "refused is final", errs: []error{refused}, policy: RetryPolicy{MaxRetries: 2}, err: "HTTP 400: no", noRetry: true},
		{name: "unknown errors are final", errs: []error{other}, policy: RetryPolicy{MaxRetries: 2}, err: "something else", is: other},
		{name: "a cassette is final", errs: []error{fmt.Errorf("turn 3: %w", ErrCassette)}, policy: RetryPolicy{MaxRetries: 2}, err: "turn 3", is: ErrCassette},
		{name: "a cassette is final whatever comes with it", errs: []error{errors.Join(busy(0, nil), ErrCassette)},
			policy: RetryPolicy{MaxRetries: 2}, err: "busy", is: ErrCassette},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if tc.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.deadline)
					defer cancel()
				}
				m := &failing{errs: tc.errs}
				began := time.Now()
				got, err := completeWithRetries(ctx, m, &spec.ModelRequest{}, tc.policy, retryClock{random: func() float64 { return tc.random }})
				var waits []time.Duration
				for i := 1; i < len(m.calls); i++ {
					waits = append(waits, m.calls[i].Sub(m.calls[i-1]))
				}
				if diff := cmp.Diff(tc.waits, waits); diff != "" {
					t.Errorf("waits (-want +got):\n%s", diff)
				}
				if got.Attempts != len(m.calls) {
					t.Errorf("says %d attempts, made %d", got.Attempts, len(m.calls))
				}
				if answered := got.Response != nil; answered != (tc.err == "") {
					t.Errorf("response %+v, error %v", got.Response, err)
				}
				if time.Since(began) != sum(tc.waits) {
					t.Errorf("took %s, want %s", time.Since(began), sum(tc.waits))
				}
				checkRetryError(t, err, tc.err, tc.is, tc.noRetry, got.Attempts)
			})
		})
	}
}

func checkRetryError(t *testing.T, err error, want string, is error, noRetry bool, attempts int) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("fails: %v", err)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("error %v, want %q", err, want)
	}
	if is != nil {
		if !errors.Is(err, is) {
			t.Errorf("error %v is not %v", err, is)
		}
		return
	}
	var pe *ProviderError
	if !errors.As(err, &pe) {
		t.Fatalf("error %T, want *ProviderError", err)
	}
	if pe.Info.Retryable == noRetry || pe.Info.Attempt != attempts {
		t.Errorf("retryable %v attempt %d, want %v and %d", pe.Info.Retryable, pe.Info.Attempt, !noRetry, attempts)
	}
}

func TestRetriesCountWhatFailedAttemptsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := busy(0, &spec.Usage{Input: 10, Output: 1})
		m := &failing{errs: []error{shared, busy(0, nil), shared}}
		got, err := completeWithRetries(t.Context(), m, &spec.ModelRequest{}, RetryPolicy{MaxRetries: 5}, retryClock{})
		if err != nil {
			t.Fatal(err)
		}
		want := core.ModelResult{Response: &spec.ModelResponse{Finish: spec.FinishStop}, Attempts: 4, Wasted: spec.Usage{Input: 20, Output: 2}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("result (-want +got):\n%s", diff)
		}
		var pe *ProviderError
		if errors.As(shared, &pe); pe.Info.Attempt != 0 {
			t.Error("the model's own error was changed")
		}
	})
}

func TestRetriesEndWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		m := &failing{errs: repeat(busy(30*time.Second, nil), 9)}
		began := time.Now()
		time.AfterFunc(7*time.Second, cancel)
		got, err := completeWithRetries(ctx, m, &spec.ModelRequest{}, RetryPolicy{MaxRetries: 9}, retryClock{random: noChance})
		if err != context.Canceled || got.Attempts != 1 || time.Since(began) != 7*time.Second {
			t.Errorf("error %v after %d attempts and %s, want a prompt cancellation after 7s", err, got.Attempts, time.Since(began))
		}
	})
}

func TestRetriesPreferTheContextsError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got, err := completeWithRetries(ctx, &failing{errs: repeat(busy(0, nil), 1)}, &spec.ModelRequest{}, RetryPolicy{MaxRetries: 3}, retryClock{})
	if err != context.Canceled || got.Attempts != 1 {
		t.Errorf("error %v after %d attempts, want context.Canceled after 1", err, got.Attempts)
	}
}

func TestBackoffStaysInBounds(t *testing.T) {
	almost := func() float64 { return 0.999999 }
	for attempt := 1; attempt <= 200; attempt++ {
		least, most := backoff(attempt, noChance), backoff(attempt, almost)
		if least < firstRetryDelay/2 || most > maxRetryBackoff || most < least {
			t.Fatalf("attempt %d waits between %s and %s", attempt, least, most)
		}
	}
	if d := backoff(100, noChance); d != maxRetryBackoff/2 {
		t.Errorf("back-off grows to %s at least, want %s", d, maxRetryBackoff/2)
	}
}

func TestRetryClockIsInjected(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	var slept []time.Duration
	clock := retryClock{
		now:    func() time.Time { return now },
		sleep:  func(_ context.Context, d time.Duration) error { slept = append(slept, d); now = now.Add(d); return nil },
		random: noChance,
	}
	m := &failing{errs: repeat(busy(0, nil), 2)}
	if _, err := completeWithRetries(t.Context(), m, &spec.ModelRequest{}, RetryPolicy{MaxRetries: 2}, clock); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]time.Duration{250 * time.Millisecond, 500 * time.Millisecond}, slept); diff != "" {
		t.Errorf("slept (-want +got):\n%s", diff)
	}
}

func repeat(err error, n int) []error {
	out := make([]error, n)
	for i := range out {
		out[i] = err
	}
	return out
}

func sum(ds []time.Duration) (total time.Duration) {
	for _, d := range ds {
		total += d
	}
	return total
}
