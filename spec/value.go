package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"
)

// USD is an amount of money in pico-dollars (1e-12 US dollar), so that a price of 0.025 per million tokens is a whole
// number. In JSON it is the exact decimal number of dollars. The zero value is nothing; negative amounts are refused.
type USD int64

// Dollar is one US dollar.
const Dollar USD = 1_000_000_000_000

// ParseUSD reads a JSON number exactly. More than twelve decimals, a negative amount and more than nine million
// dollars are errors.
func ParseUSD(text string) (USD, error) {
	if len(text) > 64 { // 1e999999999 must not be expanded
		return 0, fmt.Errorf("amount is too long")
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 && len(text)-i > 4 {
		return 0, fmt.Errorf("amount %s has an exponent out of range", text)
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok || strings.ContainsAny(text, "/_xXpP") {
		return 0, fmt.Errorf("amount %q is not a number", text)
	}
	r.Mul(r, new(big.Rat).SetInt64(int64(Dollar)))
	if !r.IsInt() {
		return 0, fmt.Errorf("amount %s has more than twelve decimals", text)
	}
	if r.Sign() < 0 || !r.Num().IsInt64() {
		return 0, fmt.Errorf("amount %s is out of range", text)
	}
	return USD(r.Num().Int64()), nil
}

// String gives the exact amount without trailing zeros, such as 0.025.
func (u USD) String() string {
	neg := ""
	if u < 0 {
		neg, u = "-", -u
	}
	s := fmt.Sprintf("%d.%012d", u/Dollar, u%Dollar)
	return neg + strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

func (u USD) MarshalJSON() ([]byte, error) { return []byte(u.String()), nil }

func (u *USD) UnmarshalJSON(b []byte) error {
	v, err := ParseUSD(string(b))
	*u = v
	return err
}

// AddCapped adds two amounts that are not negative. A sum too large for 64 bits is the largest there is: a figure that a
// server made up must never turn into a small or a negative one.
func AddCapped[T ~int64](a, b T) T {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}

// Duration is a length of time, written as a Go duration string such as 90s or 15m. Zero means no limit wherever a
// limit is meant.
type Duration time.Duration

func (d Duration) String() string { return time.Duration(d).String() }

func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("a duration is text such as 90s or 15m")
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("%q is no duration; write it as 90s or 15m", s)
	}
	*d = Duration(v)
	return nil
}

// Schema is a JSON Schema as written. A nil Schema is none.
type Schema = json.RawMessage

// CompactSchema drops white space, so that two spellings of one schema compare equal.
func CompactSchema(s Schema) Schema {
	var b bytes.Buffer
	if json.Compact(&b, s) != nil {
		return s
	}
	return b.Bytes()
}
