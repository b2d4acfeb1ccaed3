package loader

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// document is one file as it was read.
type document struct {
	name  string // as the user sees it
	raw   []byte
	text  string     // without a byte-order mark, line ends normalised
	lines []string   // of text
	marks marks      // of lines
	root  *yaml.Node // nil until parse succeeds
}

func newDocument(name string, data []byte) *document {
	d := &document{name: name, raw: data, text: canon.NormaliseText(string(data))}
	d.lines = strings.Split(d.text, "\n")
	d.marks = newMarks(d.lines)
	return d
}

// parse fills in root, or says why it cannot.
func (d *document) parse() spec.Diagnostics {
	if p := checkSize(d.name, len(d.raw), maxFile); p != nil {
		return spec.Diagnostics{*p}
	}
	if p := notText(d.raw); p != nil {
		return spec.Diagnostics{*p}
	}
	if ds := d.characters(); ds != nil {
		return ds
	}
	src := &lineReader{rest: jsonEscapes(d.text)}
	dec := yaml.NewDecoder(src)
	var first, second yaml.Node
	err := decode(dec, &first)
	if errors.Is(err, io.EOF) {
		return spec.Diagnostics{*problem("empty-file", "%q holds no document", d.name)}
	}
	if err == nil {
		err = decode(dec, &second)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return spec.Diagnostics{*d.syntax(err, src.lines)}
	}
	if err == nil {
		p := problem("second-document", "a second document starts here")
		p.Pos, p.Hint = nodePos(&second), "one file holds one document; put it into a file of its own"
		return spec.Diagnostics{*p}
	}
	d.root = first.Content[0]
	return nil
}

// decode turns a panic of the parser, which keeps some for what it holds impossible, into an error.
func decode(dec *yaml.Decoder, n *yaml.Node) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("the parser gave up")
		}
	}()
	return dec.Decode(n)
}

// lineReader hands out a line at a time, so that the number of lines the parser took bounds the place of an error.
type lineReader struct {
	rest  string
	lines int
}

func (r *lineReader) Read(p []byte) (int, error) {
	if r.rest == "" {
		return 0, io.EOF
	}
	n := len(r.rest)
	if i := strings.IndexByte(r.rest, '\n'); i >= 0 {
		n = i + 1
	}
	n = copy(p, r.rest[:n])
	r.lines += strings.Count(r.rest[:n], "\n")
	r.rest = r.rest[n:]
	return n, nil
}

// characters refuses what YAML does not allow and what it takes for a line end though editors do not.
func (d *document) characters() spec.Diagnostics {
	var ds spec.Diagnostics
	for i, line := range d.lines {
		col := 0
		for _, r := range line {
			col++
			if plainCharacter(r) {
				continue
			}
			p := ds.Errorf("bad-character", "", "character U+%04X may not stand in a document", r)
			p.Pos = spec.Pos{Line: i + 1, Col: col}
			p.Hint = fmt.Sprintf(`in text between double quotes write \u%04x`, r)
			break // one a line is enough
		}
		if len(ds) == maxProblems {
			break
		}
	}
	return ds
}

func plainCharacter(r rune) bool {
	switch {
	case r == '\t':
		return true
	case r < 0x20, r >= 0x7F && r < 0xA0, r == 0x2028, r == 0x2029, r == 0xFEFF, r == 0xFFFE, r == 0xFFFF:
		return false
	}
	return true
}

var escapes = regexp.MustCompile(`\\(?:[^u]|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})`)

// jsonEscapes rewrites the two escapes of JSON that the YAML parser has not: \/ and a pair such as \ud83d\ude00. Text
// that is no JSON is left alone, since there a backslash outside double quotes is only a backslash.
func jsonEscapes(text string) string {
	if !strings.Contains(text, `\`) || !json.Valid([]byte(text)) {
		return text
	}
	return escapes.ReplaceAllStringFunc(text, func(s string) string {
		if s == `\/` {
			return "/"
		}
		if len(s) != 12 {
			return s
		}
		hi, _ := strconv.ParseUint(s[2:6], 16, 32)
		lo, _ := strconv.ParseUint(s[8:12], 16, 32)
		return fmt.Sprintf(`\U%08x`, 0x10000+(hi-0xD800)<<10+(lo-0xDC00))
	})
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(?:yaml: )?`)

// syntax places an error of the YAML parser, which gives at best the line where the enclosing block begins.
func (d *document) syntax(err error, read int) *spec.Diagnostic {
	text := err.Error()
	m := yamlLine.FindStringSubmatch(text)
	line := 1
	if m != nil {
		text = text[len(m[0]):]
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = n
		}
	}
	line = min(max(1, d.broken(min(read+1, len(d.lines)), line)), len(d.lines))
	p := problem("yaml-syntax", "not valid YAML: %s", text)
	src := d.lines[line-1]
	p.Pos = spec.Pos{Line: line, Col: len(src) - len(strings.TrimLeft(src, " \t")) + 1}
	p.Width = len([]rune(strings.TrimSpace(src)))
	p.Hint = d.syntaxHint(src)
	return p
}

// broken gives the first line after the longest beginning of the text that is YAML. Neither the number of attempts nor
// their work is unbounded; beyond the bound the parser's own line has to do.
func (d *document) broken(upTo, fallback int) int {
	const attempts, work = 200, 16 << 20
	size := -1 // the text has one line end less than lines
	for _, l := range d.lines[:upTo] {
		size += len(l) + 1
	}
	for k, done := upTo, 0; k > 0 && upTo-k < attempts && done < work; k-- {
		size = max(0, size-len(d.lines[k-1])-1)
		done += size
		var n yaml.Node
		err := decode(yaml.NewDecoder(strings.NewReader(d.text[:size])), &n)
		if err == nil || errors.Is(err, io.EOF) {
			return k
		}
	}
	return fallback
}

var expressionKey = regexp.MustCompile(`^[\s{\-]*(?:.*[{,]\s*)?["']?(when|that|reasonExpression)["']?\s*:`)

const expressionHint = "YAML reads quotes, colons and # itself; put the expression after |"

func (d *document) syntaxHint(line string) string {
	switch {
	case expressionKey.MatchString(line):
		return expressionHint
	case strings.HasPrefix(strings.TrimLeft(line, " "), "\t"):
		return "YAML indents with spaces, not tabs"
	}
	return "look for a quote or bracket left open, a missing space after a colon, and the indentation"
}

func nodePos(n *yaml.Node) spec.Pos {
	if n.Kind == yaml.DocumentNode && len(n.Content) > 0 {
		n = n.Content[0]
	}
	return spec.Pos{Line: max(1, n.Line), Col: max(1, n.Column)}
}

// compact is the JSON of a decoded document.
func compact(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}
