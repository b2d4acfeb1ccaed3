package schemas

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

// TestLint: a name is a keyword only where a schema stands, not among the names of properties and not in data.
func TestLint(t *testing.T) {
	for _, c := range []struct {
		name, schema string
		unknown      []spec.Path
		idle         bool
	}{
		{name: "misspelt", schema: `{"tpe": "object", "requird": []}`, unknown: []spec.Path{"s.requird", "s.tpe"}},
		{name: "letter case", schema: `{"Type": "object"}`, unknown: []spec.Path{"s.Type"}},
		{name: "extension", schema: `{"x-note": 1, "type": "object"}`},
		{name: "names of properties", schema: `{"properties": {"tpe": {"type": "string"}, "a.b": {"typ": 1}}}`, unknown: []spec.Path{`s.properties["a.b"].typ`}},
		{name: "data", schema: `{"const": {"tpe": 1}, "default": {"tpe": 1}, "enum": [{"tpe": 1}], "examples": [{"tpe": 1}]}`},
		{name: "lists", schema: `{"anyOf": [true, {"tpe": 1}], "items": [{"tpe": 1}]}`, unknown: []spec.Path{"s.anyOf[1].tpe", "s.items[0].tpe"}},
		{name: "below", schema: `{"not": {"if": {"additionalProperties": {"tpe": 1}}}}`, unknown: []spec.Path{"s.not.if.additionalProperties.tpe"}},
		{name: "definitions", schema: `{"$ref": "#/$defs/a", "$defs": {"a": {"tpe": 1}}}`, unknown: []spec.Path{`s["$defs"].a.tpe`}},
		{name: "draft 7", schema: `{"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {}, "dependencies": {"a": ["b"], "c": {"tpe": 1}}}`,
			unknown: []spec.Path{"s.dependencies.c.tpe"}},
		{name: "empty", schema: `{}`, idle: true},
		{name: "only words", schema: `{"title": "Verdict", "$defs": {"a": {"type": "string"}}, "x-note": 1}`, idle: true},
		{name: "true", schema: `true`},
		{name: "nothing", schema: ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			unknown, idle := Lint(spec.Schema(c.schema), "s")
			if diff := cmp.Diff(c.unknown, unknown); diff != "" || idle != c.idle {
				t.Errorf("idle %v, want %v\n%s", idle, c.idle, diff)
			}
		})
	}
	for _, kind := range []string{spec.KindTeam, spec.KindPolicy, spec.KindPolicyTest, spec.KindCassette, spec.KindPlan, spec.KindReceipt, spec.KindEvent} {
		s, _ := Get(kind)
		if unknown, idle := Lint(spec.Schema(s), ""); unknown != nil || idle {
			t.Errorf("our schema of %s: %v", kind, unknown)
		}
	}
}
