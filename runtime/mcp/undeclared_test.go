package mcp

import (
	"encoding/json"
	"testing"
)

func TestUndeclared(t *testing.T) {
	for _, test := range []struct{ schema, in, want string }{
		{`{"properties":{"a":{}}}`, `{"a":1,"b":2}`, `{"a":1}`},
		{`{"properties":{"a":{"properties":{"x":{}}}}}`, `{"a":{"x":1,"y":2}}`, `{"a":{"x":1}}`},
		{`{"properties":{"a":{"items":{"properties":{"x":{}}}}}}`, `{"a":[{"x":1},{"y":2}]}`, `{"a":[{"x":1},{}]}`},
		{`{"properties":{"a":{}},"additionalProperties":true}`, `{"a":1,"b":2}`, `{"a":1,"b":2}`},
		{`{"properties":{"a":{}},"anyOf":[{"properties":{"b":{}}}]}`, `{"a":1,"b":2}`, `{"a":1,"b":2}`},
		{`{}`, `{"b":2}`, `{"b":2}`},
	} {
		var schema, in any
		if json.Unmarshal([]byte(test.schema), &schema) != nil || json.Unmarshal([]byte(test.in), &in) != nil {
			t.Fatal("not JSON")
		}
		undeclared(schema, in)
		if got, err := json.Marshal(in); err != nil || string(got) != test.want {
			t.Errorf("%s under %s: got %s, want %s", test.in, test.schema, got, test.want)
		}
	}
}
