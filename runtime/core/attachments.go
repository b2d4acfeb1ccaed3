package core

import "github.com/open-multi-agent/oma/spec"

// attached is what the attachments of a message count, in bytes of text that would count as much.
func attached(m *spec.Message) (bytes int64) {
	for i := range m.Attachments {
		bytes += 3 * m.Attachments[i].Tokens()
	}
	return bytes
}
