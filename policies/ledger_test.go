package policies

import (
	"math/rand"
	"testing"

	"github.com/open-multi-agent/oma/spec"
)

func usd(t testing.TB, s string) *spec.USD {
	t.Helper()
	v, err := spec.ParseUSD(s)
	if err != nil {
		t.Fatal(err)
	}
	return &v
}

func TestReserve(t *testing.T) {
	l := NewLedger(100, nil)
	h, a := l.Reserve(Ask{Output: 60, Input: 10})
	if a != Granted || h.Output != 60 || h.Cut {
		t.Fatalf("%+v %v", h, a)
	}
	// 30 remain, but a call in flight may give something back: wait for it
	if _, a := l.Reserve(Ask{Output: 60}); a != Wait || !l.Busy(Ask{Output: 60}) {
		t.Fatalf("%v, want to wait", a)
	}
	if h2, a := l.Reserve(Ask{Output: 30}); a != Granted || h2.Output != 30 {
		t.Fatalf("%+v %v", h2, a)
	} else {
		l.Settle(h2, spec.Usage{Input: 3, Output: 4}, 0)
	}
	l.Settle(h, spec.Usage{Input: 20, Output: 50}, 0)
	if used, _ := l.Used(); used != 77 {
		t.Fatalf("used %d, want 77", used)
	}
	// nothing is in flight: the rest is all there is
	h, a = l.Reserve(Ask{Output: 60})
	if a != Granted || h.Output != 23 || !h.Cut {
		t.Fatalf("%+v %v, want 23 and cut", h, a)
	}
	l.Settle(h, spec.Usage{Input: 0, Output: 23}, 0)
	if _, a := l.Reserve(Ask{Output: 1}); a != NoTokens || l.Exhausted() != "tokens" || l.Exceeded() != "" {
		t.Fatalf("%v, exhausted %q, exceeded %q: equal to the ceiling is used up and not exceeded", a, l.Exhausted(), l.Exceeded())
	}
}

func TestReserveMoney(t *testing.T) {
	price := spec.Price{Input: *usd(t, "1"), CachedInput: *usd(t, "1"), Output: *usd(t, "2")} // per million
	l := NewLedger(0, usd(t, "0.0001"))
	h, a := l.Reserve(Ask{Output: 1000, Price: price})
	if a != Granted || h.Output != 50 || !h.Cut {
		t.Fatalf("%+v %v, want 50 tokens for 100 micro-dollars", h, a)
	}
	l.Settle(h, spec.Usage{Input: 10, Output: 44}, price.Cost(spec.Usage{Input: 10, Output: 44}))
	if h, a = l.Reserve(Ask{Output: 1000, Price: price}); a != Granted || h.Output != 1 {
		t.Fatalf("%+v %v, want 1 token for 2 micro-dollars", h, a)
	}
	l.Settle(h, spec.Usage{Output: 1}, price.Cost(spec.Usage{Output: 1}))
	if _, a = l.Reserve(Ask{Output: 1, Price: price}); a != NoMoney || l.Exhausted() != "cost" {
		t.Fatalf("%v, exhausted %q", a, l.Exhausted())
	}
	// a free model may go on
	if _, a = l.Reserve(Ask{Output: 1}); a != Granted {
		t.Fatalf("%v for a free model", a)
	}
}

func TestChildIsBoundByItsParent(t *testing.T) {
	run := NewLedger(50, nil)
	a := run.Child(100)
	h, answer := a.Reserve(Ask{Output: 80})
	if answer != Granted || h.Output != 50 {
		t.Fatalf("%+v %v", h, answer)
	}
	a.Settle(h, spec.Usage{Output: 30}, 0)
	b := run.Child(10)
	if h, answer = b.Reserve(Ask{}); answer != Granted || h.Output != 10 {
		t.Fatalf("%+v %v", h, answer)
	}
	b.Settle(h, spec.Usage{Output: 10}, 0)
	if used, _ := run.Used(); used != 40 || b.Exhausted() != "tokens" || run.Exhausted() != "" {
		t.Fatalf("used %d, child %q, run %q", used, b.Exhausted(), run.Exhausted())
	}
}

func TestReserveForRequired(t *testing.T) {
	l := NewLedger(100, nil)
	l.SetAside("security", 60)
	if h, _ := l.Reserve(Ask{Output: 90}); h.Output != 40 {
		t.Fatalf("%+v, want the 40 that are not set aside", h)
	} else {
		l.Settle(h, spec.Usage{Output: 20}, 0)
	}
	l.Release("security")
	l.Release("security")
	if h, _ := l.Reserve(Ask{Output: 90}); h.Output != 80 {
		t.Fatalf("%+v, want 80: what was left over flows on", h)
	}
}

func TestUnboundedLedgerAsksForNothing(t *testing.T) {
	l := NewLedger(0, nil)
	if h, a := l.Reserve(Ask{}); a != Granted || h.Output != 0 {
		t.Fatalf("%+v %v: without a ceiling no output limit is invented", h, a)
	}
	bounded := NewLedger(1_000_000, nil)
	if h, _ := bounded.Reserve(Ask{}); h.Output != DefaultOutput || h.Cut {
		t.Fatalf("%+v", h)
	}
}

// Whatever order calls come and go in, what is held returns to nothing and what is used adds up.
func TestLedgerBalances(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for range 200 {
		l := NewLedger(int64(1+rng.Intn(5000)), usd(t, "0.01"))
		price := spec.Price{Input: *usd(t, "0.3"), CachedInput: *usd(t, "0.03"), Output: *usd(t, "1.7")}
		var held []Hold
		var tokens int64
		var cost spec.USD
		for range 300 {
			if len(held) > 0 && rng.Intn(2) == 0 {
				i := rng.Intn(len(held))
				u := spec.Usage{Input: int64(rng.Intn(50)), Output: min(held[i].Output, int64(rng.Intn(200)))}
				l.Settle(held[i], u, price.Cost(u))
				tokens += u.Total()
				cost += price.Cost(u)
				held = append(held[:i], held[i+1:]...)
				continue
			}
			h, a := l.Reserve(Ask{Output: int64(1 + rng.Intn(300)), Input: int64(rng.Intn(30)), Price: price})
			if a == Granted {
				if h.Output < 1 {
					t.Fatal("a call without an output token was granted")
				}
				held = append(held, h)
			} else if a == Wait && len(held) == 0 {
				t.Fatal("told to wait for nothing")
			}
		}
		for _, h := range held {
			l.Settle(h, spec.Usage{}, 0)
		}
		gotTokens, gotCost := l.Used()
		if l.heldTokens != 0 || l.heldCost != 0 || gotTokens != tokens || gotCost != cost {
			t.Fatalf("held %d, %d; used %d of %d, %d of %d", l.heldTokens, l.heldCost, gotTokens, tokens, gotCost, cost)
		}
	}
}

func BenchmarkReserveAndSettle(b *testing.B) {
	l := NewLedger(1<<40, nil)
	for b.Loop() {
		h, _ := l.Reserve(Ask{Output: 100, Input: 50})
		l.Settle(h, spec.Usage{}, 0)
	}
}

// Figures at the edge of 64 bits never come round to small ones.
func TestLedgerDoesNotOverflow(t *testing.T) {
	const most = 1<<63 - 1
	l := NewLedger(100_000, usd(t, "1"))
	for range 3 {
		l.Settle(Hold{}, spec.Usage{Input: most, Output: most}, most)
	}
	tokens, cost := l.Used()
	if tokens != most || cost != most || l.Exceeded() != "tokens" {
		t.Errorf("%d tokens, %d, exceeded %q", tokens, cost, l.Exceeded())
	}
	if _, a := l.Reserve(Ask{Output: 1}); a != NoTokens {
		t.Errorf("another call is answered %v", a)
	}
	if NewLedger(most, nil).Exceeded() != "" {
		t.Error("a ceiling as large as can be is exceeded by nothing")
	}
	if got := (spec.Usage{Input: most}).Add(spec.Usage{Input: 1, Output: 5}); got.Total() != most {
		t.Errorf("%+v", got)
	}
}
