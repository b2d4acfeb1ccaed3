package loader

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/open-multi-agent/oma/schemas"
	"github.com/open-multi-agent/oma/spec"
)

// load takes the document from its text to the struct of its kind, or to nil if anything is wrong with it. An empty kind is set to what the document says it is.
func (d *document) load(kind *string) (any, spec.Diagnostics) {
	if ds := d.parse(); ds != nil {
		return nil, ds
	}
	value, r := d.read()
	ds := r.ds
	if len(ds) >= maxProblems {
		return nil, ds
	}
	root, ok := value.(map[string]any)
	if !ok {
		if !r.bad[""] {
			ds.Errorf("wrong-type", "", "the document is %s, want a map", kindOf(value))
		}
		return nil, ds
	}
	if !envelope(root, kind, r.bad, &ds) {
		return nil, ds
	}
	expressions(root)
	for _, v := range schemas.Check(*kind, root) {
		if len(ds) >= maxProblems {
			break
		}
		if !covered(r.bad, v.Path) {
			explain(v, &ds)
		}
	}
	d.structure(root, &ds)
	if len(ds) > 0 {
		return nil, ds[:min(len(ds), maxProblems)]
	}
	typed, err := typed(root, *kind)
	if err != nil {
		ds.Errorf("bad-value", "", "%s", err)
		return nil, ds
	}
	return typed, ds
}

// envelope checks what the document says it is. false: it is something else, so that more checks would be noise.
func envelope(root map[string]any, kind *string, bad map[spec.Path]bool, ds *spec.Diagnostics) bool {
	if v, ok := root["apiVersion"]; ok && v != spec.APIVersion && !bad["apiVersion"] {
		d := ds.Errorf("wrong-version", "apiVersion", "apiVersion is %s, want %s", shown(v), spec.APIVersion)
		d.Hint = "write apiVersion: " + spec.APIVersion
		return false
	}
	v, ok := root["kind"]
	if !ok || bad["kind"] {
		if *kind == "" && !ok {
			ds.Errorf("missing-key", "", `missing "kind"`).Hint = "add kind: " + readable
		}
		return *kind != "" // the schema reports it with everything else
	}
	if name, ok := v.(string); ok && *kind == "" && newStruct(name) != nil {
		*kind = name
	}
	if v == *kind {
		return true
	}
	want := *kind
	if want == "" {
		want = readable
	}
	switch v {
	case "TeamTest":
		ds.Errorf("not-in-this-version", "kind", "kind %q is not in this version", v).Hint = "want " + want
	case spec.KindPlan, spec.KindReceipt, spec.KindEvent, spec.KindLock, spec.KindApprovalRequest, spec.KindApprovalDecision:
		ds.Errorf("wrong-kind", "kind", "kind is %s, which oma writes and nobody else, want %s", v, want)
	default:
		d := ds.Errorf("wrong-kind", "kind", "kind is %s, want %s", shown(v), want)
		if near := spec.Nearest(fmt.Sprint(v), strings.Split(want, " ")); near != "" {
			d.Hint = "write kind: " + strings.TrimSuffix(near, ",")
		}
	}
	return false
}

// readable names the kinds that people write, for messages.
const readable = "Team, Policy, PolicyTest or Cassette"

// newStruct gives a struct for a kind that people write. nil: it is none.
func newStruct(kind string) any {
	switch kind {
	case spec.KindTeam:
		return new(spec.Team)
	case spec.KindPolicy:
		return new(spec.Policy)
	case spec.KindPolicyTest:
		return new(spec.PolicyTest)
	case spec.KindCassette:
		return new(spec.Cassette)
	}
	return nil
}

// covered says whether a place, or one around it, was refused already.
func covered(bad map[spec.Path]bool, p spec.Path) bool {
	if len(bad) == 0 {
		return false
	}
	if bad[""] || bad[p] {
		return true
	}
	var at spec.Path
	for _, step := range p.Split() {
		switch s := step.(type) {
		case string:
			at = at.Key(s)
		case int:
			at = at.Index(s)
		}
		if bad[at] {
			return true
		}
	}
	return false
}

// explain makes diagnostics of a violation.
func explain(v schemas.Violation, ds *spec.Diagnostics) {
	name := tail(v.Path)
	switch v.Keyword {
	case "additionalProperties":
		unknown(v, ds)
	case "required":
		for _, key := range v.Want {
			ds.Errorf("missing-key", v.Path, "missing %q%s", key, where(v.Path)).Hint = fmt.Sprintf("add %s:", key)
		}
	case "minItems", "minProperties":
		ds.Errorf("empty-value", v.Path, "%s is empty", name).Hint = "add an entry or leave the key out"
	case "uniqueItems":
		ds.Errorf("duplicate-entry", v.Path, "%s is in the list twice", shown(v.Got))
	case "not":
		ds.Errorf("reserved-name", v.Path, "name %s is reserved", shown(v.Got))
	case "minimum", "exclusiveMinimum", "maximum":
		ds.Errorf("out-of-range", v.Path, "%s %s", name, v.Message)
	default:
		misfit(v, name, ds)
	}
}

func unknown(v schemas.Violation, ds *spec.Diagnostics) {
	for _, key := range v.Want {
		if len(*ds) >= maxProblems {
			return
		}
		path := v.Path.Key(key)
		var d *spec.Diagnostic
		switch {
		case slices.Contains(v.Later, key):
			d = ds.Errorf("not-in-this-version", path, "key %s is not in this version", quote(key))
			d.Hint = "leave it out; nothing would act on it"
		case v.Asked != "" && len(v.Valid) == 0: // the names are the author's
			d = ds.Errorf("bad-name", path, "name %s does not fit, want %s", quote(key), v.Asked)
		default:
			d = ds.Errorf("unknown-key", path, "unknown key %s", quote(key))
			d.Hint = spec.DidYouMean(key, v.Valid)
		}
		d.OnKey = true
	}
}

// misfit is a value of the wrong type or form.
func misfit(v schemas.Violation, name string, ds *spec.Diagnostics) {
	text, isText := v.Got.(string)
	switch {
	case v.Got == nil:
		ds.Errorf("empty-value", v.Path, "%s has no value", name).Hint = "give it a value or leave the key out"
	case isText && text == "":
		ds.Errorf("empty-value", v.Path, "%s is empty", name).Hint = "give it a value or leave the key out"
	case v.Keyword == "type":
		want := v.Asked
		if want == "" {
			_, want, _ = strings.Cut(v.Message, "want ")
		}
		got := shown(v.Got)
		if isText && slices.Equal(v.Want, []string{"object"}) {
			got = "text" // it says nothing about what is missing, and may be the key that was to be named
		}
		ds.Errorf("wrong-type", v.Path, "%s is %s, want %s", name, got, want).Hint = typeHint(v)
	case slices.Contains(v.Later, fmt.Sprint(v.Got)):
		d := ds.Errorf("not-in-this-version", v.Path, "%s %s is not in this version", name, shown(v.Got))
		d.Hint = "want " + strings.Join(v.Valid, ", ")
	case v.Keyword == "enum":
		d := ds.Errorf("bad-value", v.Path, "%s %s is not one of %s", name, shown(v.Got), strings.Join(v.Valid, ", "))
		if near := spec.Nearest(text, v.Valid); isText && near != "" {
			d.Hint = fmt.Sprintf("did you mean %s?", near)
		}
	case v.Asked != "" && name == "name":
		ds.Errorf("bad-name", v.Path, "name %s does not fit, want %s", shown(v.Got), v.Asked)
	case v.Asked != "":
		ds.Errorf("bad-value", v.Path, "%s %s does not fit, want %s", name, shown(v.Got), v.Asked)
	default:
		ds.Errorf("bad-value", v.Path, "%s: %s", name, v.Message)
	}
}

// typeHint knows how a value of the wrong type usually comes about.
func typeHint(v schemas.Violation) string {
	wants := func(t string) bool { return slices.Contains(v.Want, t) }
	switch got := v.Got.(type) {
	case string:
		switch low := strings.ToLower(got); {
		case wants("boolean") && slices.Contains([]string{"on", "yes", "y", "off", "no", "n", "true", "false"}, low):
			return "write true or false, without quotes"
		case (wants("integer") || wants("number")) && json.Valid([]byte(got)):
			return "write it without quotes"
		case wants("array"):
			return fmt.Sprintf("write [%s]", cut(strings.Join(elements(got), ", ")))
		}
	case map[string]any: // {name} without quotes is a map to YAML
		if name := slices.Collect(maps.Keys(got)); wants("string") && len(name) == 1 && got[name[0]] == nil {
			return fmt.Sprintf("if {%[1]s} is meant, write \"{%[1]s}\" in quotes", cut(name[0]))
		}
	case bool, json.Number:
		if strings.HasPrefix(v.Asked, "a duration") {
			return fmt.Sprintf("write %vs for seconds", got)
		}
		if wants("string") {
			return fmt.Sprintf("write %q", fmt.Sprint(got))
		}
	}
	return ""
}

// elements takes a text apart that should have been a list of texts: into words, in quotes where YAML needs them.
func elements(text string) []string {
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' })
	for i, w := range words {
		if strings.ContainsAny(w, "{}[]:#&*!|>'\"%@`") {
			words[i] = strconv.Quote(w)
		}
	}
	return words
}

// tail is the last key of a path, with the indices behind it.
func tail(p spec.Path) string {
	steps := p.Split()
	for i := len(steps) - 1; i >= 0; i-- {
		if _, ok := steps[i].(string); !ok {
			continue
		}
		var t spec.Path
		for _, s := range steps[i:] {
			if n, ok := s.(int); ok {
				t = t.Index(n)
			} else {
				t = t.Key(s.(string))
			}
		}
		return string(t)
	}
	return "the document"
}

// where names the map a key belongs to, for a message.
func where(p spec.Path) string {
	if p == "" {
		return ""
	}
	return " in " + string(p)
}

// shown puts a value of a document into a message.
func shown(v any) string {
	switch t := v.(type) {
	case string:
		return quote(t)
	case nil:
		return "nothing"
	case []any, map[string]any:
		return kindOf(v)
	default:
		return cut(fmt.Sprint(t))
	}
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "empty"
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	case string:
		return "text"
	case bool:
		return "true or false"
	}
	return "a number"
}

// typed fills the struct of a kind from a value that its schema accepts.
func typed(root map[string]any, kind string) (any, error) {
	raw, err := compact(wholes(root))
	if err != nil {
		return nil, err
	}
	v := newStruct(kind)
	if v == nil {
		return nil, fmt.Errorf("kind %q is not read from files", kind)
	}
	return v, json.Unmarshal(raw, v)
}
