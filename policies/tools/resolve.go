package tools

import (
	"fmt"
	"maps"
	"slices"

	"github.com/open-multi-agent/oma/spec"
)

// Resolve gives the values of headers or environment variables. credentials are the agent's, resolved, by name.
func Resolve(vars map[string]spec.Variable, credentials map[string]string) (map[string]string, error) {
	out := make(map[string]string, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		v := vars[name]
		if v.Credential == "" {
			out[name] = v.Value
			continue
		}
		secret, ok := credentials[v.Credential]
		if !ok {
			return nil, fmt.Errorf("%s: the agent has no credential %q", name, v.Credential)
		}
		out[name] = v.Prefix + secret
	}
	return out, nil
}
