package schemas

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

var structs = map[string]any{
	spec.KindTeam:             spec.Team{},
	spec.KindPolicy:           spec.Policy{},
	spec.KindPolicyTest:       spec.PolicyTest{},
	spec.KindCassette:         spec.Cassette{},
	spec.KindPlan:             spec.Plan{},
	spec.KindReceipt:          spec.Receipt{},
	spec.KindEvent:            spec.Event{},
	spec.KindLock:             spec.Lock{},
	spec.KindApprovalRequest:  spec.ApprovalRequestFile{},
	spec.KindApprovalDecision: spec.ApprovalDecisionFile{},
}

// written says which kinds people write: there every key must be known, elsewhere additions are ignored.
var written = []string{spec.KindTeam, spec.KindPolicy, spec.KindPolicyTest, spec.KindCassette}

// TestParity holds structs and schemas together: every JSON name is a property of the right type, and no property
// is without a field.
func TestParity(t *testing.T) {
	if diff := cmp.Diff(Kinds(), sortedKeys(structs)); diff != "" {
		t.Fatalf("schemas -, structs +\n%s", diff)
	}
	for kind, zero := range structs {
		t.Run(kind, func(t *testing.T) {
			p := parity{t: t, root: text(t, kind), closed: slices.Contains(written, kind), used: map[string]bool{}}
			p.object(kind, p.root, reflect.TypeOf(zero))
			defs, _ := p.root["$defs"].(map[string]any)
			for _, name := range sortedKeys(defs) {
				if !p.used[name] {
					t.Errorf("$defs/%s is used by no field", name)
				}
			}
		})
	}
}

type parity struct {
	t      *testing.T
	root   map[string]any
	closed bool
	used   map[string]bool
}

func (p *parity) resolve(s map[string]any) map[string]any {
	ref, ok := s["$ref"].(string)
	if !ok {
		return s
	}
	name := strings.TrimPrefix(ref, "#/$defs/")
	p.used[name] = true
	def, ok := p.root["$defs"].(map[string]any)[name].(map[string]any)
	if !ok {
		p.t.Fatalf("no definition %s", ref)
	}
	return def
}

func (p *parity) object(at string, s map[string]any, typ reflect.Type) {
	props, _ := s["properties"].(map[string]any)
	var names, always []string
	for _, f := range reflect.VisibleFields(typ) {
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "-" {
			continue
		}
		names = append(names, name)
		if opts == "" {
			always = append(always, name)
		}
		prop, ok := props[name].(map[string]any)
		if !ok {
			p.t.Errorf("%s: no property %q", at, name)
			continue
		}
		if d, _ := prop["description"].(string); d == "" {
			p.t.Errorf("%s.%s: no description", at, name)
		}
		p.value(at+"."+name, prop, f.Type)
	}
	slices.Sort(names)
	if diff := cmp.Diff(sortedKeys(props), names); diff != "" {
		p.t.Errorf("%s: properties -, fields +\n%s", at, diff)
	}
	p.members(at, s, always)
}

// members checks which members must be there and whether others may be.
func (p *parity) members(at string, s map[string]any, always []string) {
	if p.closed {
		_, ours := s["patternProperties"].(map[string]any)["^x-"]
		if s["additionalProperties"] != false || !ours {
			p.t.Errorf("%s: not closed but for x-", at)
		}
		return
	}
	if _, ok := s["additionalProperties"]; ok {
		p.t.Errorf("%s: refuses additions", at)
	}
	var required []string
	list, _ := s["required"].([]any)
	for _, r := range list {
		required = append(required, r.(string))
	}
	slices.Sort(required)
	slices.Sort(always)
	if diff := cmp.Diff(required, always); diff != "" {
		p.t.Errorf("%s: required -, always written +\n%s", at, diff)
	}
}

func (p *parity) value(at string, s map[string]any, typ reflect.Type) {
	pointer := typ.Kind() == reflect.Pointer
	if pointer {
		typ = typ.Elem()
	}
	s = p.resolve(s)
	want := jsonType(typ)
	if typ == reflect.TypeFor[json.RawMessage]() {
		return // any value, or the schema or object the description says
	}
	if typ == reflect.TypeFor[spec.Variable]() { // text, or the reference of the description
		if diff := cmp.Diff([]string{"string", "object"}, typesOf(s)); diff != "" {
			p.t.Errorf("%s: field -, schema +\n%s", at, diff)
		}
		return
	}
	if typ == reflect.TypeFor[spec.SharedMemory]() && p.closed {
		want = []string{"boolean", "object"}
	}
	got := typesOf(s)
	if pointer && slices.Contains(got, "null") { // an unknown price
		got = slices.DeleteFunc(got, func(t string) bool { return t == "null" })
	}
	if typ == reflect.TypeFor[spec.Compress]() && p.closed {
		want = []string{"boolean", "integer"}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		p.t.Errorf("%s: field -, schema +\n%s", at, diff)
	}
	switch {
	case want[0] == "array":
		p.value(at+"[]", s["items"].(map[string]any), typ.Elem())
	case typ.Kind() == reflect.Map:
		p.value(at+"{}", p.element(at, s), typ.Elem())
	case slices.Contains(want, "object"):
		p.object(at, s, typ)
	}
}

// element gives the schema of the members of a map by name.
func (p *parity) element(at string, s map[string]any) map[string]any {
	if e, ok := s["additionalProperties"].(map[string]any); ok && !p.closed {
		return e
	}
	patterns, _ := s["patternProperties"].(map[string]any)
	if len(patterns) != 1 || s["additionalProperties"] != false || s["x-want"] == nil {
		p.t.Fatalf("%s: no pattern of names, or no words for it", at)
	}
	return patterns[sortedKeys(patterns)[0]].(map[string]any)
}

func jsonType(typ reflect.Type) []string {
	switch typ {
	case reflect.TypeFor[spec.Duration](), reflect.TypeFor[time.Time](), reflect.TypeFor[[]byte]():
		return []string{"string"}
	case reflect.TypeFor[spec.USD]():
		return []string{"number"}
	}
	switch typ.Kind() {
	case reflect.String:
		return []string{"string"}
	case reflect.Bool:
		return []string{"boolean"}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return []string{"integer"}
	case reflect.Float64:
		return []string{"number"}
	case reflect.Slice:
		return []string{"array"}
	}
	return []string{"object"}
}

func typesOf(s map[string]any) []string {
	switch t := s["type"].(type) {
	case string:
		return []string{t}
	case []any:
		return words(t)
	}
	if s["enum"] != nil || s["const"] != nil {
		return []string{"string"}
	}
	return nil
}

// TestOurSchemasAreSchemas holds them against the metaschema, which the program itself does not do.
func TestOurSchemasAreSchemas(t *testing.T) {
	for _, kind := range Kinds() {
		raw, _ := Get(kind)
		if _, err := Compile(raw); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if _, err := compile(ours, map[string]any{"$ref": "other.json"}); err == nil {
		t.Error("one of our schemas opens another file")
	}
	if _, err := compile(foreign, map[string]any{"type": 3}); err == nil {
		t.Error("a foreign schema is not held against the metaschema")
	}
}

// TestShared holds definitions of one name together across documents that people write.
func TestShared(t *testing.T) {
	first := map[string]any{}
	for _, kind := range written {
		defs, _ := text(t, kind)["$defs"].(map[string]any)
		for name, def := range defs {
			if seen, ok := first[name]; ok {
				if diff := cmp.Diff(seen, def); diff != "" {
					t.Errorf("$defs/%s of %s differs\n%s", name, kind, diff)
				}
			}
			first[name] = def
		}
	}
}

func TestCheck(t *testing.T) {
	agents := []any{map[string]any{"name": "a"}}
	doc := func(extra map[string]any) map[string]any {
		d := map[string]any{"apiVersion": "oma/v1", "kind": "Team", "name": "t", "agents": agents}
		for k, v := range extra {
			d[k] = v
		}
		return d
	}
	type found struct {
		Path, Keyword string
		Want, Later   []string
		Asked         string
	}
	for name, test := range map[string]struct {
		doc  map[string]any
		want []found
	}{
		"fits":       {doc(nil), nil},
		"x- is ours": {doc(map[string]any{"x-y": nil}), nil},
		"later word": {doc(map[string]any{"mode": "team"}), []found{{"mode", "enum", []string{"auto", "single"}, []string{"team"}, ""}}},
		"name of a map": {doc(map[string]any{"providers": map[string]any{"1": nil}}), []found{
			{"providers", "additionalProperties", []string{"1"}, nil, "a letter, then letters, digits, - and _"}}},
		"reserved": {doc(map[string]any{"agents": []any{map[string]any{"name": "coordinator"}}}), []found{
			{"agents[0].name", "not", nil, nil, "a letter, then letters, digits, - and _"}}},
		"nested pattern": {doc(map[string]any{"budgets": map[string]any{"maxDuration": "0s"}}), []found{
			{"budgets.maxDuration", "pattern", []string{"[1-9]"}, nil, "a duration above zero"}}},
		"twice": {doc(map[string]any{"gates": map[string]any{"files": []any{"f", "f"}}}), []found{
			{"gates.files[1]", "uniqueItems", nil, nil, ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []found
			for _, v := range Check(spec.KindTeam, test.doc) {
				got = append(got, found{string(v.Path), v.Keyword, v.Want, v.Later, v.Asked})
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
	if got := Check("Nothing", nil); len(got) != 1 || got[0].Message != `no schema for kind "Nothing"` {
		t.Errorf("unknown kind: %+v", got)
	}
	if _, ok := Get("Nothing"); ok {
		t.Error("a schema for an unknown kind")
	}
}

func text(t *testing.T, kind string) map[string]any {
	t.Helper()
	raw, ok := Get(kind)
	if !ok {
		t.Fatalf("no schema for %s", kind)
	}
	var v map[string]any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// BenchmarkCompileTeam is what a program pays once, at its first team file.
func BenchmarkCompileTeam(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := open("team")(); err != nil {
			b.Fatal(err)
		}
	}
}
