package canon

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArguments(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     map[string]any
		err      string
	}{
		{"OA-01 empty", "", map[string]any{}, ""},
		{"OA-01 blank", " \n\t ", map[string]any{}, ""},
		{"OA-01 null", "null", map[string]any{}, ""},
		{"whole and other numbers", `{"a":5,"b":5.5,"c":-1,"d":1e2}`, map[string]any{"a": int64(5), "b": 5.5, "c": int64(-1), "d": 100.0}, ""},
		{"large whole numbers keep their digits", `{"a":9007199254740993}`, map[string]any{"a": int64(9007199254740993)}, ""},
		{"duplicate name", `{"a":1,"a":2}`, nil, "duplicate"},
		{"duplicate name, escaped", `{"a":1,"\u0061":2}`, nil, "duplicate"},
		{"duplicate name, deep", `{"x":[{"a":1,"a":2}]}`, nil, "duplicate"},
		{"trailing text", `{} {}`, nil, "not valid JSON"},
		{"broken UTF-8", "{\"a\":\"\xff\"}", nil, "UTF-8"},
		{"lone surrogate", `{"a":"\ud800"}`, nil, "not valid JSON"},
		{"no object", `[1]`, nil, "a list, want an object"},
		{"too large", `{"a":1E400}`, nil, "out of range"},
		{"digits lost", `{"a":18446744073709551616}`, nil, "more digits"},
		{"cut", `{"a":"x`, nil, "not valid JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Arguments(c.in)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestShape(t *testing.T) {
	var schema any
	if err := json.Unmarshal([]byte(`{"properties":{"i":{"type":"integer"},"n":{"type":"number"},"d":{"type":"integer","default":3},
		"o":{"properties":{"x":{"default":[1]}}},"l":{"type":"array","items":{"type":"integer"}}}}`), &schema); err != nil {
		t.Fatal(err)
	}
	got := Shape(schema, map[string]any{"i": 5.0, "n": int64(5), "o": map[string]any{}, "l": []any{2.0, 2.5}, "other": 1.0})
	want := map[string]any{"i": int64(5), "n": 5.0, "d": int64(3), "o": map[string]any{"x": []any{1.0}}, "l": []any{int64(2), 2.5}, "other": 1.0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// a default is copied: changing one call's input must not change the next one's
	got.(map[string]any)["o"].(map[string]any)["x"].([]any)[0] = "changed"
	again := Shape(schema, map[string]any{"o": map[string]any{}}).(map[string]any)["o"].(map[string]any)["x"]
	if diff := cmp.Diff([]any{1.0}, again); diff != "" {
		t.Error(diff)
	}
}

func TestDigests(t *testing.T) {
	same := func(a, b string) bool {
		x, err1 := Canonical([]byte(a))
		y, err2 := Canonical([]byte(b))
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		return string(x) == string(y)
	}
	if !same(`{ "b":1, "a":"\u0061/" }`, `{"a":"a\/","b":1}`) {
		t.Error("spelling matters")
	}
	if same(`{"a":9007199254740993}`, `{"a":9007199254740992}`) || same(`{"a":0.1234567890123456789}`, `{"a":0.1234567890123456788}`) {
		t.Error("different numbers have one encoding")
	}
	if Digest("plan", []byte("x")) == Digest("receipt", []byte("x")) {
		t.Error("a plan passes for a receipt")
	}
	if Chain("a", []byte("b")) == Chain("ab", nil) {
		t.Error("the chain does not separate its parts")
	}
}

func TestDigestWithout(t *testing.T) {
	digest := func(doc string) string {
		d, err := DigestWithout("receipt", []byte(doc), "evidence", "digest")
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	base := digest(`{"a":1,"evidence":{"digest":"x","n":2}}`)
	if digest(`{"evidence":{"n":2,"digest":"other"},"a":1}`) != base || digest(`{"a":1,"evidence":{"n":2}}`) != base {
		t.Error("the digest counts itself")
	}
	for _, other := range []string{`{"a":1,"evidence":{"digest":"x","n":3}}`, `{"a":1,"new":true,"evidence":{"digest":"x","n":2}}`, `{"a":1,"digest":"x","evidence":{"n":2}}`} {
		if digest(other) == base {
			t.Errorf("%s has the same digest", other)
		}
	}
	if _, err := DigestWithout("receipt", []byte(`{"a":1,"a":2}`), "digest"); err == nil {
		t.Error("duplicate names are taken")
	}
}

// The member may stand anywhere among the others, and be the only one.
func TestDigestWithoutIsThatOfTheRest(t *testing.T) {
	for doc, rest := range map[string]string{
		`{"digest":"x"}`:                  `{}`,
		`{"digest":{"a":[1]},"z":1}`:      `{"z":1}`,
		`{"a":1,"digest":"x"}`:            `{"a":1}`,
		` {"z" : 1.50, "digest":3,"a":2}`: `{"a":2,"z":1.50}`,
		`{"a":{"digest":"x"}}`:            `{"a":{"digest":"x"}}`,
	} {
		got, err := DigestWithout("plan", []byte(doc), "digest")
		if want := Digest("plan", []byte(rest)); err != nil || got != want {
			t.Errorf("%s: %s and %v, want %s", doc, got, err, want)
		}
	}
	for _, doc := range []string{`[]`, `null`, `{"evidence":3}`, `{"digest":"x"} 1`} {
		if got, err := DigestWithout("receipt", []byte(doc), "evidence", "digest"); err == nil {
			t.Errorf("%s has the digest %s", doc, got)
		}
	}
}

func TestYM05TextDigestIgnoresLineEnds(t *testing.T) {
	if Text("file", []byte("\xEF\xBB\xBFa\r\nb\r\n")) != Text("file", []byte("a\nb\n")) {
		t.Error("a checkout on Windows has another digest")
	}
}

func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `{"a":{"b":[1.5,null,"x"]}}`, ``, `{"a":1e308}`, `{"a":1,"a":2}`, `{} {}`, ` [1] `, `{"a":`, `[9007199254740993.5]`, "\"\xff\""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := Decode([]byte(s)); (Check([]byte(s)) == nil) != (err == nil) {
			t.Errorf("%q: Decode says %v, Check says %v", s, err, Check([]byte(s)))
		}
		v, err := Arguments(s)
		if err != nil {
			return
		}
		b, err := Bytes(v)
		if err != nil {
			t.Fatalf("%q decodes and does not encode: %v", s, err)
		}
		again, err := Arguments(string(b))
		if err != nil {
			t.Fatalf("%q encodes to %q, which does not decode: %v", s, b, err)
		}
		// a float that holds a whole number may come back as one; its encoding must not change
		c, _ := Bytes(again)
		if string(b) != string(c) {
			t.Fatalf("%q: %q, then %q", s, b, c)
		}
	})
}

func BenchmarkArgumentsAndDigest(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		v, _ := Arguments(`{"path":"runtime/guard.go","offset":1,"limit":40}`)
		c, _ := Bytes(v)
		Digest("input", c)
	}
}
