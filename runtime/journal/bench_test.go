package journal

import (
	"fmt"
	"strings"
	"testing"
)

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{200, 2 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			l := begin(b, open(b, b.TempDir()), "r1")
			record := []byte(`{"data":"` + strings.Repeat("x", size) + `"}`)
			b.SetBytes(int64(len(record)))
			b.ReportAllocs()
			for b.Loop() {
				if err := keep(l, record); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The cost of a record does not grow with those before it.
func BenchmarkAppendAfter(b *testing.B) {
	for _, before := range []int{0, 10_000, 100_000} {
		b.Run(fmt.Sprint(before), func(b *testing.B) {
			l := begin(b, open(b, b.TempDir()), "r1")
			record := []byte(`{"data":"` + strings.Repeat("x", 300) + `"}`)
			for range before {
				if err := keep(l, record); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if err := keep(l, record); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendSync(b *testing.B) {
	l := begin(b, open(b, b.TempDir()), "r1")
	for b.Loop() {
		if err := keep(l, []byte(`{"kind":"tool/call"}`)); err != nil {
			b.Fatal(err)
		}
		if err := l.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

// One operation reads n records, so its time should be n times the same.
func BenchmarkRecords(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := open(b, b.TempDir())
			l := begin(b, s, "r1")
			record := []byte(`{"data":"` + strings.Repeat("x", 300) + `"}`)
			for range n {
				if err := keep(l, record); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				got := 0
				for _, err := range s.Records(b.Context(), "r1") {
					if err != nil {
						b.Fatal(err)
					}
					got++
				}
				if got != n {
					b.Fatal(got)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/record")
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	b.Run("cold", func(b *testing.B) {
		dir := b.TempDir()
		for i := 0; b.Loop(); i++ {
			s, err := Open(fmt.Sprintf("%s/%d", dir, i), Options{})
			if err != nil {
				b.Fatal(err)
			}
			s.Close()
		}
	})
	b.Run("warm", func(b *testing.B) {
		dir := b.TempDir()
		s := open(b, dir)
		appendEvents(b, begin(b, s, "r1"), 10_000, 100)
		for b.Loop() {
			s, err := Open(dir, Options{})
			if err != nil {
				b.Fatal(err)
			}
			s.Close()
		}
	})
	b.Run("alone", func(b *testing.B) { // nobody else has it open: the log beside the database is made and removed
		dir := b.TempDir()
		open(b, dir).Close()
		for b.Loop() {
			s, err := Open(dir, Options{})
			if err != nil {
				b.Fatal(err)
			}
			s.Close()
		}
	})
}

// BenchmarkBatch is what a step of a run records, stored together.
func BenchmarkBatch(b *testing.B) {
	for _, n := range []int{1, 8} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l := begin(b, open(b, b.TempDir()), "r1")
			record := []byte(`{"kind":"llm/response","data":"` + strings.Repeat("x", 300) + `"}`)
			b.ReportAllocs()
			for b.Loop() {
				for range n {
					if err := l.Append(record); err != nil {
						b.Fatal(err)
					}
				}
				if err := l.Flush(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
