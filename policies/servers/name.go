package servers

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	// maxName is what servers of models take for a tool's name.
	maxName = 64
	// nameHash is how many hexadecimal digits tell two cut names apart.
	nameHash = 8
)

// toolName gives the name that models, rules and grants have for a server's tool: prefix_name, with _ for what is no
// letter of a name. A longer one is cut, and ends in a hash of all of it. An empty prefix stands for none.
func toolName(prefix, name string) string {
	full := name
	if prefix = strings.TrimSpace(prefix); prefix != "" {
		full = prefix + "_" + name
	}
	plain := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, full)
	if len(plain) <= maxName {
		return plain
	}
	sum := sha256.Sum256([]byte(full))
	return plain[:maxName-nameHash-1] + "_" + hex.EncodeToString(sum[:])[:nameHash]
}
