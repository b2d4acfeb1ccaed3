package mcp

// undeclared takes properties out of a value that its schema does not name, and gives their names. Rules are typed by
// what the schema names, so what they could not see is not sent. Where a schema says in another way what an object
// may hold, nothing is taken.
func undeclared(schema, v any) []string {
	s, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	var gone []string
	switch t := v.(type) {
	case []any:
		for _, e := range t {
			gone = append(gone, undeclared(s["items"], e)...)
		}
	case map[string]any:
		properties, ok := s["properties"].(map[string]any)
		if !ok {
			return nil
		}
		for name, e := range t {
			if p, ok := properties[name]; ok {
				gone = append(gone, undeclared(p, e)...)
			} else if closed(s) {
				delete(t, name)
				gone = append(gone, name)
			}
		}
	}
	return gone
}

// closed says that only properties say what an object may hold.
func closed(s map[string]any) bool {
	for _, key := range []string{"additionalProperties", "patternProperties", "unevaluatedProperties", "propertyNames", "$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if",
		"dependentSchemas", "dependencies"} {
		if _, ok := s[key]; ok {
			return false
		}
	}
	return true
}
