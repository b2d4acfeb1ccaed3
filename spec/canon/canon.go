// Package canon gives every value one encoding. What is judged, hashed, approved, recorded and run is the value decoded
// here, once, and never the text somebody sent: two parsers may read one text in two ways.
//
// It is the sole importer of the JSON library that refuses duplicate names and broken UTF-8.
package canon

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// numbers decodes 5 to int64 and 5.5 to float64, which is what CEL wants, and refuses to lose a digit.
var numbers = json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, v *any) error {
	if d.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	tok, err := d.ReadToken()
	if err != nil {
		return err
	}
	*v, err = number(tok.String())
	return err
}))

func number(s string) (any, error) {
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return i, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil || math.IsInf(f, 0):
		return nil, fmt.Errorf("number %s is out of range", s)
	case f == math.Trunc(f) && math.Abs(f) >= 1<<53:
		return nil, fmt.Errorf("number %s has more digits than can be kept", s)
	}
	return f, nil
}

// Decode reads a JSON value: objects are map[string]any, lists []any, whole numbers int64, other numbers float64.
// Duplicate names, invalid UTF-8, lone surrogates, trailing text and numbers that would lose digits are errors.
func Decode(raw []byte) (any, error) {
	var v any
	if err := json.Unmarshal(raw, &v, numbers); err != nil {
		return nil, plain(err)
	}
	return v, nil
}

// Check says what Decode would object to, and builds nothing: for large documents that are decoded into structs.
func Check(raw []byte) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(raw))
	for {
		tok, err := d.ReadToken()
		if err == nil && tok.Kind() == '0' {
			_, err = number(tok.String())
		}
		if err != nil {
			return plain(err)
		}
		if d.StackDepth() > 0 {
			continue
		}
		if end := d.InputOffset(); len(bytes.Trim(raw[end:], " \t\r\n")) > 0 {
			return fmt.Errorf("not valid JSON at byte %d: there is text behind the value", end)
		}
		return nil
	}
}

// Arguments reads the arguments of a tool call. Empty, blank and null text is an empty object: several servers send
// that for a tool without parameters.
func Arguments(raw string) (map[string]any, error) {
	if t := strings.TrimSpace(raw); t == "" || t == "null" {
		return map[string]any{}, nil
	}
	v, err := Decode([]byte(raw))
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("arguments are %s, want an object", kind(v))
	}
	return m, nil
}

func kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case []any:
		return "a list"
	case string:
		return "text"
	case bool:
		return "a boolean"
	}
	return "a number"
}

// plain keeps the library's explanation and drops its package name and Go types.
func plain(err error) error {
	var syn *jsontext.SyntacticError
	if errors.As(err, &syn) {
		if syn.Err != nil {
			return fmt.Errorf("not valid JSON at byte %d: %s", syn.ByteOffset, strings.TrimPrefix(syn.Err.Error(), "jsontext: "))
		}
		return fmt.Errorf("not valid JSON at byte %d", syn.ByteOffset)
	}
	var sem *json.SemanticError
	if errors.As(err, &sem) && sem.Err != nil {
		return sem.Err
	}
	return errors.New("not valid JSON")
}

// Shape fits a decoded value to a decoded schema: 5.0 for an integer becomes int64, 5 for a number float64, and
// defaults are filled in. It changes maps and lists in place. A value that does not fit is left for the validator.
func Shape(schema, v any) any {
	s, ok := schema.(map[string]any)
	if !ok {
		return v
	}
	switch s["type"] {
	case "integer":
		if f, ok := v.(float64); ok && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return int64(f)
		}
	case "number":
		if i, ok := v.(int64); ok {
			return float64(i)
		}
	}
	switch t := v.(type) {
	case []any:
		for i := range t {
			t[i] = Shape(s["items"], t[i])
		}
	case map[string]any:
		props, _ := s["properties"].(map[string]any)
		for name, p := range props {
			if have, ok := t[name]; ok {
				t[name] = Shape(p, have)
			} else if def, ok := defaultOf(p); ok {
				t[name] = Shape(p, def)
			}
		}
	}
	return v
}

// defaultOf gives a copy, since Shape and the tools change what they are given.
func defaultOf(schema any) (any, bool) {
	s, ok := schema.(map[string]any)
	if !ok {
		return nil, false
	}
	def, ok := s["default"]
	return clone(def), ok
}

func clone(v any) any {
	switch t := v.(type) {
	case []any:
		out := make([]any, len(t))
		for i := range t {
			out[i] = clone(t[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, x := range t {
			out[k] = clone(x)
		}
		return out
	}
	return v
}

// Bytes gives the one encoding of a value: names sorted, only the escapes JSON needs, number text kept.
func Bytes(v any) ([]byte, error) {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	return Canonical(b)
}

// Canonical gives the one encoding of a JSON text. Numbers keep their text: RFC 8785 would make different whole
// numbers above 2^53 equal. The input is not changed.
func Canonical(raw []byte) ([]byte, error) {
	out := jsontext.Value(append([]byte(nil), raw...))
	if err := out.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)); err != nil {
		return nil, plain(err)
	}
	return out, nil
}

// Digest hashes bytes as a thing of one kind, so that a plan never passes for a receipt.
func Digest(kind string, b []byte) string { return hashed(b, kind) }

// DigestOf hashes the canonical encoding of a value.
func DigestOf(kind string, v any) (string, error) {
	b, err := Bytes(v)
	if err != nil {
		return "", err
	}
	return Digest(kind, b), nil
}

// DigestWithout hashes a JSON document as if the member at the path were not there: a document that carries its own
// digest. Members the program does not know are hashed too.
func DigestWithout(kind string, doc []byte, path ...string) (string, error) {
	c, err := Canonical(doc)
	if err != nil {
		return "", err
	}
	if c, err = without(c, path); err != nil {
		return "", err
	}
	return Digest(kind, c), nil
}

// without cuts a member out of a canonical text, which has no white space and no name twice. The text is changed.
func without(doc []byte, path []string) ([]byte, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(doc), jsontext.AllowDuplicateNames(true))
	if tok, err := d.ReadToken(); err != nil || tok.Kind() != '{' {
		return nil, errors.New("not a JSON object")
	}
	for d.PeekKind() == '"' {
		start := d.InputOffset() // behind the member before this one
		name, err := d.ReadToken()
		if err != nil {
			return nil, plain(err)
		}
		found := name.String() == path[0]
		v, err := d.ReadValue()
		switch end := d.InputOffset(); {
		case err != nil:
			return nil, plain(err)
		case !found:
		case len(path) == 1:
			if doc[start] != ',' && doc[end] == ',' {
				end++ // the first member goes with the comma behind it
			}
			return slices.Delete(doc, int(start), int(end)), nil
		default:
			inner, err := without(bytes.Clone(v), path[1:])
			return slices.Replace(doc, int(end)-len(v), int(end), inner...), err
		}
	}
	return doc, nil
}

// Text hashes a text file with its line ends normalised and without a byte-order mark, so that a checkout on Windows
// has the same digest.
func Text(kind string, b []byte) string { return Digest(kind, []byte(NormaliseText(string(b)))) }

// NormaliseText drops a byte-order mark and makes CRLF line ends LF.
func NormaliseText(s string) string {
	return strings.ReplaceAll(strings.TrimPrefix(s, "\uFEFF"), "\r\n", "\n")
}

// Chain hashes a record onto the digest of all records before it. The first record's prev is empty.
func Chain(prev string, record []byte) string { return hashed(record, "chain", prev) }

// hashed hashes bytes behind a line that says what they are. It is called for every event and every message.
func hashed(b []byte, words ...string) string {
	head := append(make([]byte, 0, 128), "oma/v1"...)
	for _, w := range words {
		head = append(append(head, ' '), w...)
	}
	head = append(strconv.AppendInt(append(head, ' '), int64(len(b)), 10), '\n')
	h := sha256.New()
	h.Write(head)
	h.Write(b)
	return string(hex.AppendEncode(append(make([]byte, 0, 71), "sha256:"...), h.Sum(head[:0])))
}
