package spec

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseUSDIsExact(t *testing.T) {
	for text, want := range map[string]USD{"0": 0, "0.025": 25_000_000_000, "0.1": 100_000_000_000, "1e-12": 1, "2.5e-1": 250_000_000_000,
		"0.000000000001": 1, "9000000": 9_000_000 * Dollar, "0.30000000000000": 300_000_000_000} {
		if got, err := ParseUSD(text); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, bad := range []string{"", "-1", "1e-13", "0.0000000000001", "1e99", "1e999999999", "1/3", "0x10", "1_000", "NaN", "ten", "10000000"} {
		if got, err := ParseUSD(bad); err == nil {
			t.Errorf("%q is taken as %d", bad, got)
		}
	}
}

func TestUSDRoundTrips(t *testing.T) {
	for _, u := range []USD{0, 1, 25_000_000_000, Dollar, 12*Dollar + 345, math.MaxInt64} {
		b, err := json.Marshal(u)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseUSD(string(b))
		if err != nil || got != u {
			t.Errorf("%d is written %s and read %d, %v", u, b, got, err)
		}
	}
}

func TestPriceCost(t *testing.T) {
	usd := func(s string) USD { v, _ := ParseUSD(s); return v }
	p := Price{Input: usd("0.25"), CachedInput: usd("0.025"), Output: usd("2")}
	for _, c := range []struct {
		name string
		use  Usage
		want string
	}{
		{"plain", Usage{Input: 1000, Output: 100}, "0.00045"},
		{"cached input is part of input", Usage{Input: 1000, CachedInput: 400, Output: 100}, "0.00036"},
		{"beyond 64 bits in between", Usage{Input: 4_000_000_000_000}, "1000000"},
		{"a part of a pico-dollar is rounded up", Usage{Input: 1, CachedInput: 1}, "0.000000025"},
		{"more cached than input is no credit", Usage{Input: 1, CachedInput: 4}, "0.0000001"},
	} {
		if got := p.Cost(c.use).String(); got != c.want {
			t.Errorf("%s: $%s, want $%s", c.name, got, c.want)
		}
	}
	if got := (Price{Output: 1}).Cost(Usage{Output: 1}); got != 1 {
		t.Errorf("a millionth of a pico-dollar costs %d", got)
	}
}

func TestPriceOutputFor(t *testing.T) {
	p := Price{Output: 2 * Dollar} // two dollars a million
	for amount, want := range map[USD]int64{0: 0, -5: 0, Dollar: 500_000, 1_999_999: 0, 2_000_000: 1} {
		if got := p.OutputFor(amount); got != want {
			t.Errorf("%d pico-dollars buy %d tokens, want %d", amount, got, want)
		}
	}
	if got := (Price{}).OutputFor(0); got != math.MaxInt64 {
		t.Errorf("a free model gives %d", got)
	}
}

func TestPathSplit(t *testing.T) {
	p := Path("agents").Index(1).Key("gates").Key("a.b").Key("x-1").Index(0)
	if p != `agents[1].gates["a.b"].x-1[0]` {
		t.Error(p)
	}
	if diff := cmp.Diff([]any{"agents", 1, "gates", "a.b", "x-1", 0}, p.Split()); diff != "" {
		t.Error(diff)
	}
}

func TestDidYouMean(t *testing.T) {
	valid := []string{"reviewer", "security", "planner"}
	for name, want := range map[string]string{"reviwer": "did you mean reviewer?", "Security": "did you mean security?", "plannre": "did you mean planner?",
		"x": "valid: reviewer, security, planner", "": "valid: reviewer, security, planner"} {
		if got := DidYouMean(name, valid); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestDiagnosticsSortDropsRepetitions(t *testing.T) {
	var ds Diagnostics
	ds.Errorf("b", "x", "two")
	ds.Warnf("a", "x", "one")
	ds.Errorf("b", "x", "two")
	ds.Sort()
	var got []string
	for _, d := range ds {
		got = append(got, d.String())
	}
	if diff := cmp.Diff([]string{"warning: one [a]", "two [b]"}, got); diff != "" {
		t.Error(diff)
	}
	if !ds.HasErrors(false) || (Diagnostics{ds[0]}).HasErrors(false) || !(Diagnostics{ds[0]}).HasErrors(true) {
		t.Error("only errors stop the work, and warnings under strict")
	}
}
