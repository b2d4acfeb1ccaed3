package openai

import (
	"fmt"
	"net/http"
	"testing"
)

// BenchmarkTurn is one turn over loopback: an answer of 200 pieces, or the same text whole. The pieces case is also
// reported per event.
func BenchmarkTurn(b *testing.B) {
	const pieces = 200
	var stream []byte
	text := ""
	for range pieces {
		stream = fmt.Appendf(stream, "data: %s\n\n", delta(`"content":" word"`, ""))
		text += " word"
	}
	stream = fmt.Appendf(stream, "data: %s\n\ndata: [DONE]\n\n", delta("", "stop"))
	streamed := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(stream)
	}
	for _, bc := range []struct {
		name    string
		handler http.HandlerFunc
		stream  bool
	}{
		{"stream", streamed, true},
		{"whole", whole(answer(`"content":`+quoted(text), "stop", "")), false},
	} {
		b.Run(bc.name, func(b *testing.B) {
			s := serve(b, bc.handler)
			m := model(s, bc.stream)
			req := ask()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Complete(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}
			if bc.stream {
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*pieces), "µs/event")
			}
		})
	}
}

// BenchmarkCollect is the reading of one event alone.
func BenchmarkCollect(b *testing.B) {
	event := []byte(delta(`"content":" word"`, ""))
	c := &collector{}
	b.ReportAllocs()
	for b.Loop() {
		if err := decode(event, c); err != nil {
			b.Fatal(err)
		}
	}
}
