package schemas

import (
	"bytes"
	"embed"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/open-multi-agent/oma/spec"
)

//go:embed *.schema.json
var files embed.FS

// documents holds a schema for each kind of document. A schema is decoded and compiled at its first use.
var documents = map[string]func() (*document, error){
	spec.KindTeam:             open("team"),
	spec.KindPolicy:           open("policy"),
	spec.KindPolicyTest:       open("policytest"),
	spec.KindCassette:         open("cassette"),
	spec.KindPlan:             open("plan"),
	spec.KindReceipt:          open("receipt"),
	spec.KindEvent:            open("event"),
	spec.KindLock:             open("lock"),
	spec.KindApprovalRequest:  open("approvalrequest"),
	spec.KindApprovalDecision: open("approvaldecision"),
}

// document is an embedded schema, and its text as a value: what it says in words is read from there.
type document struct {
	text  any
	check *Validator
}

func open(name string) func() (*document, error) {
	return sync.OnceValues(func() (*document, error) {
		raw, err := files.ReadFile(name + ".schema.json")
		if err != nil {
			return nil, err
		}
		text, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", name, err)
		}
		check, err := compile(ours, text)
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", name, err)
		}
		return &document{text, check}, nil
	})
}

// Kinds names the kinds of documents that have a schema, sorted.
func Kinds() []string { return slices.Sorted(maps.Keys(documents)) }

// Get gives the text of a kind's schema. The caller may keep and change it.
func Get(kind string) ([]byte, bool) {
	if _, ok := documents[kind]; !ok {
		return nil, false
	}
	raw, err := files.ReadFile(strings.ToLower(kind) + ".schema.json")
	return raw, err == nil
}

// Check gives the ways in which a decoded document does not fit the schema of its kind, at most about [MaxViolations].
// Beside what [Validator.Validate] says of a violation, it fills in Asked, Valid and Later. It is safe for concurrent use.
func Check(kind string, doc any) []Violation {
	load, ok := documents[kind]
	if !ok {
		return []Violation{{Message: fmt.Sprintf("no schema for kind %q", kind)}}
	}
	d, err := load()
	if err != nil {
		return []Violation{{Message: err.Error()}}
	}
	var out []Violation
	for _, e := range d.check.failures(doc) {
		v := violation(doc, e)
		d.explain(&v, e.SchemaURL)
		out = append(out, v)
	}
	return sorted(out)
}

// explain adds what the schema says at the place that failed. Two keywords are our own: x-want says a pattern in
// words, and x-later lists the names or words that a later version of the language has.
func (d *document) explain(v *Violation, at string) {
	place := d.at(at)
	switch v.Keyword {
	case "additionalProperties":
		props, _ := place["properties"].(map[string]any)
		v.Valid = slices.Sorted(maps.Keys(props))
	case "enum":
		v.Valid = v.Want
	}
	if later, ok := place["x-later"].([]any); ok {
		v.Later = words(later)
	}
	if want, ok := place["x-want"].(string); ok {
		v.Asked = want
	}
}

// at follows the fragment of a schema's location.
func (d *document) at(location string) map[string]any {
	_, fragment, _ := strings.Cut(location, "#")
	node := d.text
	for _, step := range strings.Split(strings.TrimPrefix(fragment, "/"), "/") {
		if fragment == "" {
			break
		}
		if s, err := url.PathUnescape(step); err == nil {
			step = s
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch t := node.(type) {
		case map[string]any:
			node = t[step]
		case []any:
			var i int
			if _, err := fmt.Sscan(step, &i); err != nil || i < 0 || i >= len(t) {
				return nil
			}
			node = t[i]
		}
	}
	m, _ := node.(map[string]any)
	return m
}

func words(values []any) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = fmt.Sprint(v)
	}
	return out
}
