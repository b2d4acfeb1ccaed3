package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
					resp, err := model(s, tc.stream).Complete(ctx, ask())
					var pe *runtime.ProviderError
					if resp != nil || !errors.Is(err, want) || errors.As(err, &pe) {
						t.Errorf("answer %v, error %v, want %v alone", resp, err, want)
					}
				})
			})
		}
	}
}

// overheard tells of each read of an answer's body that brought something, before its reader sees it.
type overheard struct {
	io.ReadCloser
	hear func(p []byte)
}

func (o *overheard) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	if n > 0 {
		o.hear(p[:n])
	}
	return n, err
}

// The first piece was read, and the rest of the answer is in the buffer when the context ends. It must stay there.
func TestCancelledWithTheRestInTheBuffer(t *testing.T) {
	first := "data: " + delta(`"content":"a"`, "") + "\n\n"
	rest := strings.Repeat(first, 4) + "data: " + delta("", "stop") + "\n\ndata: [DONE]\n\n"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var reads []string
	body := &overheard{io.NopCloser(io.MultiReader(strings.NewReader(first), strings.NewReader(rest))), func(p []byte) {
		if reads = append(reads, string(p)); len(reads) == 2 {
			cancel()
		}
	}}
	m := New(Options{Name: "local", Stream: true, HTTPClient: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}, nil
	})}})
	resp, err := m.Complete(ctx, ask())
	if resp != nil || err != context.Canceled {
		t.Errorf("answer %+v, error %v, want context.Canceled alone", resp, err)
	}
	if diff := cmp.Diff([]string{first, rest}, reads); diff != "" {
		t.Errorf("the whole answer was not in the buffer (-want +got):\n%s", diff)
	}
}

func TestCancelledBefore(t *testing.T) {
	s := serve(t, whole(answer(`"content":"a"`, "stop", "")))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := model(s, false).Complete(ctx, ask()); err != context.Canceled || s.count() != 0 {
		t.Errorf("error %v after %d requests, want context.Canceled after none", err, s.count())
	}
}
