package servers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/open-multi-agent/oma/schemas"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// inputSchema gives the form of a schema that models' servers take: an object's, without the name of a draft. The draft
// stays where the schema means nothing without it. The order of properties is the server's.
func inputSchema(s spec.Schema) (spec.Schema, error) {
	if len(s) == 0 {
		return spec.Schema(`{"type":"object"}`), nil
	}
	if len(s) > maxSchemaBytes {
		return nil, tooLarge(s)
	}
	members, err := membersOf(s)
	if err != nil {
		return nil, err
	}
	plain, err := usable(objectSchema(members, false))
	if err == nil {
		return plain, nil
	}
	if full, ferr := usable(objectSchema(members, true)); ferr == nil {
		return full, nil
	}
	return nil, err
}

// outputSchema gives a schema that results can be checked against. nil: there is none, or it cannot be used.
func outputSchema(s spec.Schema) (spec.Schema, error) {
	if len(s) == 0 {
		return nil, nil
	}
	return usable(s)
}

// usable says why a schema cannot be used, if so.
func usable(s spec.Schema) (spec.Schema, error) {
	if len(s) > maxSchemaBytes+100 { // a little more than what a server may write: the type is added
		return nil, tooLarge(s)
	}
	s = spec.CompactSchema(s)
	if _, err := canon.Decode(s); err != nil {
		return nil, err
	}
	if _, err := schemas.Compile(s); err != nil {
		return nil, err
	}
	return s, nil
}

func tooLarge(s spec.Schema) error {
	return fmt.Errorf("it has %d bytes, at most %d are taken", len(s), maxSchemaBytes)
}

// member is one of an object, in its place.
type member struct {
	name  string
	value json.RawMessage
}

func membersOf(object json.RawMessage) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("it is no object")
	}
	var all []member
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		all = append(all, member{name.(string), value}) // the decoder takes nothing else for a name
	}
	return all, nil
}

// objectSchema writes a schema whose type is object.
func objectSchema(members []member, draft bool) spec.Schema {
	out := []byte(`{"type":"object"`)
	for _, m := range members {
		if m.name == "type" || m.name == "$schema" && !draft {
			continue
		}
		name, _ := json.Marshal(m.name) // of a string, it cannot fail
		out = append(append(append(append(out, ','), name...), ':'), m.value...)
	}
	return append(out, '}')
}
