package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

var errNoProgram = errors.New("there is no program to run")

// Check finds what is wrong with a tool, with paths below it. That its schemas are valid and that its agents have its
// credentials are questions for others.
func Check(t *spec.CustomTool) spec.Diagnostics {
	c := &checker{tool: t}
	c.props, c.always = properties(t.InputSchema)
	c.input()
	switch {
	case t.HTTP != nil && t.Command != nil:
		c.diags.Errorf("custom-tool", "http", "a tool has command or http, not both")
	case t.HTTP != nil:
		c.http(t.HTTP)
	case t.Command == nil:
		c.diags.Errorf("custom-tool", "", "a tool needs command or http").Hint = "add command: [PROGRAM, ARGUMENT], or http: {url: URL}"
	default:
		c.command(t.Command)
	}
	if !slices.Contains(outputs, t.Output) {
		c.diags.Errorf("custom-tool", "output", "output %q is not known", t.Output).Hint = spec.DidYouMean(t.Output, outputs[1:])
	}
	if (t.Output == "" || t.Output == "text") && (t.HTTP == nil || t.HTTP.Response == "") && !allowsText(t.OutputSchema) {
		c.diags.Errorf("custom-tool", "outputSchema", "no answer fits: outputSchema does not take text, and that is what the output is").Hint = "add output: json"
	}
	for i, name := range t.Credentials {
		switch {
		case t.HTTP != nil:
			c.diags.Errorf("custom-tool-credential", "credentials", "an http tool gets a credential in a header alone").Hint = "write headers: {Authorization: {credential: NAME, prefix: \"Bearer \"}}"
			return c.diags
		case !variable(name):
			c.diags.Errorf("custom-tool-credential", spec.Path("credentials").Index(i), "credential %q is no name of an environment variable", name).Hint = "name it with letters, digits and _"
		}
	}
	return c.diags
}

// allowsText says that a schema takes some text, as far as its type tells.
func allowsText(schema spec.Schema) bool {
	var s struct{ Type any }
	if len(schema) == 0 || json.Unmarshal(schema, &s) != nil {
		return true
	}
	switch t := s.Type.(type) {
	case string:
		return t == "string"
	case []any:
		return slices.Contains(t, any("string"))
	}
	return true
}

var outputs = []string{"", "text", "json", "rich"}

// variable says whether a name can be that of an environment variable.
func variable(name string) bool {
	for i := range len(name) {
		b := name[i]
		if !(b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_' || i > 0 && b >= '0' && b <= '9') {
			return false
		}
	}
	return name != ""
}

// input checks what the input of a tool must be beside a valid schema: an object, all of which arrives.
func (c *checker) input() {
	at := spec.Path("inputSchema")
	var s map[string]any
	if c.tool.InputSchema == nil || json.Unmarshal(c.tool.InputSchema, &s) != nil { // whoever compiles it says so
		return
	}
	if s["type"] != "object" {
		c.diags.Errorf("custom-tool-schema", at, "the input of a tool is an object, and inputSchema does not say so").Hint = "write inputSchema: {type: object, properties: {NAME: {type: string}}}"
		return
	}
	if len(c.props) == 0 || open(s) || c.tool.PassUndeclared {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c.always)) {
		if _, ok := c.props[name]; !ok {
			d := c.diags.Errorf("custom-tool-schema", at.Key("required"), "%q is required and not declared, so it would be dropped from every input", name)
			if d.Hint = "declare it in properties"; spec.Nearest(name, slices.Sorted(maps.Keys(c.props))) != "" {
				d.Hint = spec.DidYouMean(name, slices.Sorted(maps.Keys(c.props)))
			}
		}
	}
}

type checker struct {
	tool   *spec.CustomTool
	props  map[string]map[string]any // of the input schema
	always map[string]bool           // that are in every input
	diags  spec.Diagnostics
}

func (c *checker) command(argv []string) {
	at := spec.Path("command")
	if len(argv) == 0 || strings.TrimSpace(argv[0]) == "" {
		c.diags.Errorf("custom-tool-command", at, "%v", errNoProgram).Hint = "write command: [PROGRAM, ARGUMENT]"
		return
	}
	if strings.ContainsAny(argv[0], "{}") {
		c.diags.Errorf("custom-tool-command", at.Index(0), "the program must be written out: a model must not choose it").Hint = "put placeholders into arguments alone"
	}
	options := true // until --
	for i, arg := range argv[1:] {
		options = options && arg != "--"
		c.argument(argv, i+1, options)
	}
}

// argument checks argv[i]. options says that a program would still take it for one of its options.
func (c *checker) argument(argv []string, i int, options bool) {
	at, arg := spec.Path("command").Index(i), argv[i]
	if strings.ContainsRune(arg, 0) {
		c.diags.Errorf("custom-tool-command", at, "a zero byte cannot be in an argument")
	}
	parts, err := parse(arg)
	if err != nil {
		c.diags.Errorf("custom-tool-placeholder", at, "%v", err)
		return
	}
	for k, p := range parts {
		switch {
		case p.name == "" || !c.placeholder(at, p.name):
		case script(argv[:i]):
			c.diags.Errorf("custom-tool-script", at, "%s would run the value of {%s} as a part of its script", path.Base(argv[0]), p.name).Hint =
				"give the value as an argument behind the script, or read the input, which is JSON on stdin"
		case k == 0 && options && c.dashes(p.name):
			c.diags.Warnf("custom-tool-option", at, "the value of {%s} may begin with - and be taken for an option", p.name).Hint =
				`put "--" before it, or write --option={` + p.name + `}, or give the property a pattern such as ^[a-z0-9]`
		}
	}
}

// placeholder checks that a property has a value that is text in every call.
func (c *checker) placeholder(at spec.Path, name string) bool {
	prop, ok := c.props[name]
	switch {
	case !ok && c.tool.InputSchema == nil:
		c.diags.Errorf("custom-tool-placeholder", at, "{%s} is no property: the tool has no inputSchema", name).Hint =
			fmt.Sprintf("add inputSchema: {type: object, required: [%[1]s], properties: {%[1]s: {type: string}}}, or write {{ and }} for braces", name)
	case !ok:
		d := c.diags.Errorf("custom-tool-placeholder", at, "{%s} is no property of inputSchema", name)
		if d.Hint = spec.DidYouMean(name, slices.Sorted(maps.Keys(c.props))); d.Hint == "" {
			d.Hint = "declare it in inputSchema.properties, or write {{ and }} for braces"
		}
	case !c.always[name]:
		c.diags.Errorf("custom-tool-placeholder", at, "{%s} may be missing from an input", name).Hint = "put it into inputSchema.required, or give it a default"
	case !scalar(prop):
		c.diags.Errorf("custom-tool-placeholder", at, "{%s} is not declared as text, a number or a boolean", name).Hint = "give it type: string, integer, number or boolean; the whole input is on stdin besides"
	default:
		return true
	}
	return false
}

// scalar says that every value of a schema is text, a number or a boolean.
func scalar(prop map[string]any) bool {
	switch t := prop["type"].(type) {
	case string:
		return scalarType(t)
	case []any:
		return len(t) > 0 && !slices.ContainsFunc(t, func(v any) bool { s, ok := v.(string); return !ok || !scalarType(s) })
	}
	words, known := words(prop)
	return known && !slices.ContainsFunc(words, func(v any) bool {
		switch v.(type) {
		case string, bool, float64:
			return false
		}
		return true
	})
}

func scalarType(t string) bool {
	return t == "string" || t == "integer" || t == "number" || t == "boolean"
}

// words gives the only values of a schema.
func words(prop map[string]any) (words []any, known bool) {
	if v, ok := prop["const"]; ok {
		return []any{v}, true
	}
	words, known = prop["enum"].([]any)
	return words, known && len(words) > 0
}

// script says that the next argument is a program text to the program: to bash -c, python -c, node -e.
func script(argv []string) bool {
	name, _, _ := strings.Cut(strings.TrimRight(path.Base(argv[0]), "0123456789."), ".")
	letters := map[string]string{"sh": "c", "ash": "c", "bash": "c", "dash": "c", "fish": "c", "ksh": "c", "zsh": "c", "python": "c", "pypy": "c",
		"node": "ep", "deno": "e", "bun": "e", "perl": "eE", "ruby": "e", "php": "r", "lua": "e", "Rscript": "e"}[name]
	for _, arg := range slices.Backward(argv[1:]) {
		switch {
		case letters == "":
			return false
		case arg == "eval" || arg == "--eval" || arg == "--print" || arg == "--command":
			return true
		case !strings.HasPrefix(arg, "-"): // the script, or a file of one
			return false
		case !strings.HasPrefix(arg, "--") && strings.ContainsAny(arg, letters):
			return true
		}
	}
	return false
}
