package loader

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// MarshalCassette writes a cassette as YAML that Read takes back unchanged. What the language has no form for, such
// as a negative duration, is an error.
func MarshalCassette(c *spec.Cassette) ([]byte, error) {
	raw, want, err := encodings(c)
	if err != nil {
		return nil, err
	}
	// Some text with odd white space does not survive as a block; then all text is quoted.
	out, err := encode(raw, true)
	if err == nil && readsBack(out, want) == nil {
		return out, nil
	}
	out, err = encode(raw, false)
	if err == nil {
		err = readsBack(out, want)
	}
	if err != nil {
		return nil, fmt.Errorf("cassette cannot be written: %w", err)
	}
	return out, nil
}

// encodings gives a cassette's JSON in the order of its fields, and the one encoding to compare by.
func encodings(c *spec.Cassette) (raw, canonical []byte, err error) {
	if raw, err = json.Marshal(c); err != nil {
		return nil, nil, err
	}
	canonical, err = canon.Canonical(raw)
	return raw, canonical, err
}

func readsBack(out, want []byte) error {
	l, ds := Read("cassette", out, spec.KindCassette)
	if len(ds) > 0 {
		return errors.New(ds[0].Message)
	}
	_, got, err := encodings(l.Cassette.Cassette)
	if err == nil && !bytes.Equal(got, want) {
		err = errors.New("it reads back as something else")
	}
	return err
}

func encode(raw []byte, blocks bool) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	root, err := nodeOf(dec, blocks)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return nil, err
	}
	return out.Bytes(), enc.Close()
}

// nodeOf turns the next JSON value into a node and keeps the order of its members, which is that of the struct.
func nodeOf(dec *json.Decoder, blocks bool) (*yaml.Node, error) {
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := tok.(type) {
	case json.Delim:
		n := &yaml.Node{Kind: yaml.MappingNode}
		if t == '[' {
			n.Kind = yaml.SequenceNode
		}
		for dec.More() {
			c, err := nodeOf(dec, blocks)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, c)
		}
		if len(n.Content) == 0 {
			n.Style = yaml.FlowStyle
		}
		_, err := dec.Token()
		return n, err
	case string:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: t, Style: textStyle(t, blocks)}, nil
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: t.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(t)}, nil
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
	}
	return nil, io.ErrUnexpectedEOF
}

// textStyle keeps words plain, and text of several lines readable where YAML allows it. The encoder quotes a plain
// word that would be read as something else.
func textStyle(s string, blocks bool) yaml.Style {
	if strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && !plainCharacter(r) }) {
		return yaml.DoubleQuotedStyle
	}
	if blocks && strings.Contains(strings.TrimRight(s, "\n"), "\n") {
		return yaml.LiteralStyle
	}
	for _, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && !strings.ContainsRune("-_./:", r) {
			return yaml.DoubleQuotedStyle
		}
	}
	return 0
}
