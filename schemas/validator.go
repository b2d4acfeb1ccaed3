package schemas

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/open-multi-agent/oma/spec"
)

// Violation is one way in which a value does not fit a schema.
type Violation struct {
	Path spec.Path
	// Keyword is the schema keyword that failed, such as required or enum.
	Keyword string
	// Want holds what the keyword asked for: missing properties, unknown properties, allowed words.
	Want    []string
	Message string // lower case, without the path
	// Got is the value at Path. nil: null, or nothing.
	Got any

	// Asked says in words what a pattern asks for, Valid holds the names or words the place knows, and Later those
	// that only a later version of the language has. [Check] fills them in, where its schema says.
	Asked string
	Valid []string
	Later []string
}

// Validator checks decoded JSON values. It is immutable and safe for concurrent use.
type Validator struct{ schema *jsonschema.Schema }

// Compile makes a validator from a JSON Schema (2020-12 unless it names another draft). References may only point
// into the schema itself: nothing is ever opened or fetched. Patterns that would make matching slow are errors.
// A nil or empty schema accepts every value.
func Compile(s spec.Schema) (*Validator, error) {
	if len(bytes.TrimSpace(s)) == 0 {
		s = spec.Schema("true")
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(s))
	if err != nil {
		return nil, fmt.Errorf("schema is not valid JSON: %w", err)
	}
	return compile(foreign, doc)
}

// The compiler's names for a schema. It holds what it compiles against the metaschema, unless the name is below
// json-schema.org. Our own schemas are named so, since they are fixed and a test does it for them: that halves what every
// command pays that reads a team.
const (
	foreign = "oma:///schema"
	ours    = "https://json-schema.org/oma"
)

func compile(at string, doc any) (*Validator, error) {
	c := jsonschema.NewCompiler()
	c.UseLoader(refuse{})
	c.UseRegexpEngine(pattern)
	c.AssertFormat()
	if err := c.AddResource(at, doc); err != nil {
		return nil, fmt.Errorf("schema: %s", clean(doc, err))
	}
	sch, err := c.Compile(at)
	if err != nil {
		return nil, fmt.Errorf("schema: %s", clean(doc, err))
	}
	return &Validator{sch}, nil
}

// clean keeps what a schema's author can act on, on one line, and drops the name the compiler was given.
func clean(doc any, err error) string {
	var bad *jsonschema.SchemaValidationError
	var e *jsonschema.ValidationError
	if !errors.As(err, &bad) || !errors.As(bad.Err, &e) {
		text := strings.ReplaceAll(strings.ReplaceAll(err.Error(), foreign, ""), "jsonschema: ", "")
		return strings.Join(strings.Fields(text), " ")
	}
	var all []Violation
	leaves(e, func(e *jsonschema.ValidationError) { all = append(all, violation(doc, e)) })
	var parts []string
	for _, v := range sorted(all) {
		part := v.Message
		if v.Path != "" {
			part = string(v.Path) + ": " + part
		}
		parts = append(parts, part)
	}
	return strings.Join(slices.Compact(parts), "; ")
}

// refuse is the loader of every compiler: a schema from a server or a team file must not open files or addresses.
type refuse struct{}

func (refuse) Load(url string) (any, error) {
	return nil, fmt.Errorf("reference %q is not local; only references into the schema itself are followed", url)
}

// maxPatternSteps bounds a pattern's compiled size: matching costs text times steps, about 5 ns each.
const maxPatternSteps = 1000

func pattern(expr string) (jsonschema.Regexp, error) {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return nil, err
	}
	if len(prog.Inst) > maxPatternSteps {
		return nil, fmt.Errorf("pattern compiles to %d steps; at most %d are allowed", len(prog.Inst), maxPatternSteps)
	}
	return newRegexp(expr)
}

// MaxViolations is where violations of one value are no longer told apart: nobody reads so many, and a value of a few
// megabytes can have a million. Those of the last place that counts are still given whole.
const MaxViolations = 1000

// Validate gives the violations of a value, sorted by path and message, at most about [MaxViolations]. v is what
// canon.Decode or encoding/json gives.
func (s *Validator) Validate(v any) []Violation {
	var out []Violation
	for _, e := range s.failures(v) {
		out = append(out, violation(v, e))
	}
	return sorted(out)
}

// sorted is needed since the compiler's own order is that of Go's maps.
func sorted(all []Violation) []Violation {
	slices.SortStableFunc(all, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	return all
}

// failures gives the errors that no other error explains. Where there are too many it keeps the first by place, since
// the compiler's own order changes from run to run.
func (s *Validator) failures(v any) []*jsonschema.ValidationError {
	var e *jsonschema.ValidationError
	if !errors.As(s.schema.Validate(v), &e) {
		return nil
	}
	var all []*jsonschema.ValidationError
	leaves(e, func(e *jsonschema.ValidationError) { all = append(all, e) })
	if len(all) <= MaxViolations {
		return all
	}
	slices.SortFunc(all, func(a, b *jsonschema.ValidationError) int {
		return slices.CompareFunc(a.InstanceLocation, b.InstanceLocation, byStep)
	})
	n := MaxViolations
	for n < len(all) && slices.Equal(all[n].InstanceLocation, all[n-1].InstanceLocation) {
		n++
	}
	return all[:n]
}

// byStep puts the shorter first, so that element 9 comes before element 10.
func byStep(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// ValidateJSON decodes a JSON text and validates it.
func (s *Validator) ValidateJSON(raw json.RawMessage) []Violation {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return []Violation{{Message: "not valid JSON"}}
	}
	return s.Validate(v)
}

var english = message.NewPrinter(language.English)

func leaves(e *jsonschema.ValidationError, visit func(*jsonschema.ValidationError)) {
	if len(e.Causes) == 0 {
		visit(e)
	}
	for _, c := range e.Causes {
		leaves(c, visit)
	}
}
