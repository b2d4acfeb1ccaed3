package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/open-multi-agent/oma/runtime"
)

// TestCancellation ends the context at every stage of a call. The call must come back with the context's own error.
func TestCancellation(t *testing.T) {
	hang := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	after := func(kind, begin string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			io.WriteString(w, begin)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}
	first := "data: " + delta(`"content":"a"`, "") + "\n\n"
	cases := []struct {
		name    string
		handler http.HandlerFunc
		stream  bool
	}{
		{"no response", hang, true},
		{"no response", hang, false},
		{"headers only", after("text/event-stream", ""), true},
		{"between events", after("text/event-stream", first), true},
		{"inside an event", after("text/event-stream", first+"data: {"), true},
		{"keep-alives for ever", endless("text/event-stream", ": k\n"), true},
		{"inside a whole answer", after("application/json", `{"choices":[`), false},
		{"inside an error", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(500)
			after("application/json", `{"err`)(w, r)
		}, false},
	}
	for _, tc := range cases {
		for _, deadline := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream=%v/deadline=%v", tc.name, tc.stream, deadline), func(t *testing.T) {
				started := make(chan struct{}, 1)
				s := serve(t, func(w http.ResponseWriter, r *http.Request) {
					started <- struct{}{}
					tc.handler(w, r)
				})
				ctx, cancel := context.WithCancel(t.Context())
				want := context.Canceled
				if deadline {
					ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
					want = context.DeadlineExceeded
				} else {
					go func() { <-started; cancel() }()
				}
				defer cancel()
				within(t, func() {
					resp, err := model(s, tc.stream).Complete(ctx, ask(), nil)
					var pe *runtime.ProviderError
					if resp != nil || !errors.Is(err, want) || errors.As(err, &pe) {
						t.Errorf("answer %v, error %v, want %v alone", resp, err, want)
					}
				})
			})
		}
	}
}

func TestCancelledFromEmit(t *testing.T) {
	// Everything is in the buffer already: what was not handed out must not be.
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 5 {
			fmt.Fprintf(w, "data: %s\n\n", delta(`"content":"a"`, ""))
		}
		fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", delta("", "stop"))
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	heard := 0
	_, err := model(s, true).Complete(ctx, ask(), func(string) { heard++; cancel() })
	if err != context.Canceled || heard != 1 {
		t.Errorf("error %v after %d pieces, want context.Canceled after 1", err, heard)
	}
}

func TestCancelledBefore(t *testing.T) {
	s := serve(t, whole(answer(`"content":"a"`, "stop", "")))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := model(s, false).Complete(ctx, ask(), nil); err != context.Canceled || s.count() != 0 {
		t.Errorf("error %v after %d requests, want context.Canceled after none", err, s.count())
	}
}
